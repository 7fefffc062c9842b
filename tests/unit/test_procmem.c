// SPDX-License-Identifier: Apache-2.0
/*
 * test_procmem.c: reading another process (a forked child), an image, and lists of mappings; what
 * is wild, gone, recycled or malformed is an error, never a crash or another process's bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "procmem.h"
#include "rights.h"
#include "tap.h"

/* Two pages, the second unreadable; a string ends with the first, another runs into the second. */
static char *make_pages(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		exit(1);
	memcpy(page, "\x88\x77\x66\x55\x44\x33\x22\x11", 8);
	memcpy(page + 100, "hello", 6);
	memcpy(page + 4090, "abcde", 6);
	munmap(page + 4096, 4096);
	return page;
}

static void test_strings(struct procmem *pm, uint64_t at, char *page)
{
	char buf[32];

	is_int(procmem_read_str(pm, at + 100, buf, sizeof(buf)), 0, "a string");
	is_str(buf, "hello", "whole");
	is_int(procmem_read_str(pm, at + 100, buf, 4), 0, "a longer one");
	is_str(buf, "hel", "is cut");
	is_int(procmem_read_str(pm, at + 4090, buf, sizeof(buf)), 0, "one that ends with the page");
	is_str(buf, "abcde", "is whole too");
	is_int(procmem_read_str(pm, at + 4096, buf, sizeof(buf)), -EFAULT, "none at all");
	is_int(procmem_read_str(pm, 0, buf, sizeof(buf)), -EFAULT, "a null pointer");
	(void)page;
}

static void test_process(void)
{
	char *page = make_pages();
	uint64_t at = (uint64_t)(uintptr_t)page, value = 0, failures;
	struct procmem *pm = NULL;
	pid_t pid = child_start();
	uint32_t half = 0;
	char buf[8192];
	int err = procmem_open(pid, &pm);

	if (err == -EACCES || err == -EPERM) {
		skip("reading a process", "not permitted here");
		child_end(pid);
		return;
	}
	is_int(err, 0, "a child opens");
	is_int(procmem_pid(pm), pid, "its pid");
	ok(procmem_start_ticks(pm) > 0, "its start");
	page[0] = 'X'; /* ours alone: copy on write */
	is_int(procmem_read_u64(pm, at, &value), 0, "a word");
	ok(value == 0x1122334455667788, "of the child, not ours");
	is_int(procmem_read_u32(pm, at, &half), 0, "half a word");
	ok(half == 0x55667788, "its value");
	test_strings(pm, at, page);
	failures = procmem_read_failures(pm);
	is_int(procmem_read(pm, at + 4000, buf, 200), -EFAULT, "across the end of a mapping");
	is_int(procmem_read(pm, UINT64_MAX - 3, buf, 8), -EFAULT, "an address that wraps");
	is_int(procmem_read(pm, 0xffffffff81000000, buf, 8), -EFAULT, "a kernel address");
	value = 5;
	is_int(procmem_read_u64(pm, 8, &value), -EFAULT, "almost null");
	ok(value == 5, "an out-parameter is left alone");
	is_int((long long)(procmem_read_failures(pm) - failures), 4, "failures are counted");
	child_end(pid);
	is_int(procmem_read(pm, at, buf, 8), -ESRCH, "the process is gone");
	procmem_close(pm);
	munmap(page, 4096);
}

static void test_gone(void)
{
	struct procmem *pm = NULL;
	pid_t pid = child_start();
	struct procmaps maps = { 0 };

	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	is_int(procmem_open(pid, &pm), -ESRCH, "a zombie");
	waitpid(pid, NULL, 0);
	is_int(procmem_open(pid, &pm), -ESRCH, "nobody");
	is_int(procmaps_load(pid, &maps), -ESRCH, "nobody's mappings");
	is_int(procmem_open(-1, &pm), -ESRCH, "no pid");
	ok(pm == NULL && maps.maps == NULL, "out-parameters are left alone");
}

static void test_image(void)
{
	static const char text[] = "0123456789";
	struct procmem_segment segments[2] = { { 0x10000, text, 10 }, { 0x20000, text, 5 } };
	struct procmem *pm = NULL;
	char buf[16] = "";

	is_int(procmem_open_image(segments, 2, &pm), 0, "an image");
	ok(!procmem_read(pm, 0x20001, buf, 4) && !memcmp(buf, "1234", 4), "its second segment");
	is_int(procmem_read(pm, 0x20001, buf, 5), -EFAULT, "beyond it");
	is_int(procmem_read(pm, 0xffff, buf, 2), -EFAULT, "before it");
	is_int(procmem_read_str(pm, 0x10000, buf, 16), -EFAULT, "a string without an end");
	is_int(procmem_read_str(pm, 0x10000, buf, 5), 0, "as much of it as there is room for");
	is_str(buf, "0123", "its value");
	procmem_close(pm);
}

static void test_own_maps(void)
{
	struct procmaps maps = { 0 };
	const struct procmap *map;
	char path[4200] = "", heap[] = "[heap]";
	int err;

	is_int(procmaps_load(getpid(), &maps), 0, "own mappings");
	map = procmaps_find(&maps, (uint64_t)(uintptr_t)&test_own_maps);
	ok(map && map->exec && !map->write && map->inode && map->path[0] == '/', "own code");
	is_int(procmem_host_path(getpid(), map ? map->path : "", path, sizeof(path)), 0,
	       "its file");
	is_int(access(path, R_OK), 0, "can be opened");
	is_int(procmem_map_path(getpid(), &(struct procmap){ .path = heap }, path, sizeof(path)),
	       -EINVAL, "no file");
	is_int(procmem_host_path(getpid(), "/no/such", path, sizeof(path)), -ENOENT,
	       "no such file");
	err = map ? procmem_map_path(getpid(), map, path, 8) : 0;
	ok(err == -ENAMETOOLONG || err == -ENOENT, "no room");
	ok(!procmaps_find(&maps, 8), "nothing at 8");
	procmaps_free(&maps);
	ok(!maps.n && !procmaps_find(&maps, 8), "freed");
}

/* What the path of a mapping is to a process that has given up all rights but those: its error. */
static int path_with(uint64_t rights, const struct procmap *map)
{
	char path[4200];
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(rights_keep(rights) ? 255 :
					    -procmem_map_path(getppid(), map, path, sizeof(path)));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

/* As after a package upgrade: the file is deleted, the mapping still has it. */
static void test_deleted(void)
{
	char name[] = "/tmp/bricktop-unit.XXXXXX", path[4200] = "", buf[8] = "";
	int fd = mkstemp(name), err, got;
	struct procmaps maps = { 0 };
	const struct procmap *map;
	void *at;

	if (fd < 0 || write(fd, "deleted", 8) != 8)
		exit(1);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	unlink(name);
	procmaps_load(getpid(), &maps);
	map = procmaps_find(&maps, (uint64_t)(uintptr_t)at);
	err = procmem_host_path(getpid(), map->path, path, sizeof(path));
	if (geteuid()) {
		skip("a deleted file", "map_files may not be read");
	} else {
		is_int(err, 0, "a deleted file has a path");
		got = open(path, O_RDONLY);
		ok(got >= 0 && read(got, buf, 8) == 8, "that opens");
		is_str(buf, "deleted", "and is the one");
		close(got);
		is_int(path_with(rights_to_read(false, false), map), 0,
		       "also with no more rights than are kept");
		is_int(path_with(1ULL << CAP_SYS_PTRACE, map), -EPERM, "with fewer it is refused");
	}
	procmaps_free(&maps);
	munmap(at, 4096);
}

/* An upgrade, or another mount namespace's view: the name leads to another file than the mapping.
 */
static void test_replaced(void)
{
	char name[] = "/tmp/bricktop-unit.XXXXXX", path[4200] = "", buf[4] = "";
	int fd = mkstemp(name), got, err;
	struct procmaps maps = { 0 };
	struct procmap map;
	void *at;

	if (fd < 0 || write(fd, "old", 3) != 3)
		exit(1);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	procmaps_load(getpid(), &maps);
	map = *procmaps_find(&maps, (uint64_t)(uintptr_t)at);
	is_int(procmem_map_path(getpid(), &map, path, sizeof(path)), 0, "a mapped file");
	ok(strstr(path, "/root/tmp/"), "is opened by its name: %s", path);
	unlink(name);
	got = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (got < 0 || write(got, "new", 3) != 3)
		exit(1);
	close(got);
	err = procmem_map_path(getpid(), &map, path, sizeof(path));
	if (geteuid()) {
		is_int(err, -EPERM, "one that was replaced is refused");
	} else {
		got = open(path, O_RDONLY);
		ok(got >= 0 && read(got, buf, 3) == 3, "one that was replaced opens");
		is_str(buf, "old", "and it is the one that is mapped");
		close(got);
	}
	unlink(name);
	procmaps_free(&maps);
	munmap(at, 4096);
	close(fd);
}

static int parse(const char *text, struct procmaps *maps)
{
	return procmaps_parse(text, strlen(text), maps);
}

static void test_parse(void)
{
	struct procmaps maps = { 0 };

	is_int(parse("1000-2000 r-xp 00001000 08:1f 77   /usr/lib/a b.so (deleted)\n"
		     "2000-3000 rw-p 00000000 00:00 0 \n"
		     "3000-4000 r--p 00000000 00:00 0   /tmp/new\\012line",
		     &maps),
	       0, "three mappings");
	is_int((long long)maps.n, 3, "are three");
	is_str(maps.maps[0].path, "/usr/lib/a b.so (deleted)", "a path with blanks");
	ok(maps.maps[0].start == 0x1000 && maps.maps[0].end == 0x2000 &&
		   maps.maps[0].offset == 0x1000 && maps.maps[0].inode == 77 &&
		   maps.maps[0].dev == (8ULL << 32 | 0x1f),
	   "its numbers");
	ok(maps.maps[1].write && !maps.maps[1].exec, "its rights");
	is_str(maps.maps[1].path, "", "anonymous memory");
	is_str(maps.maps[2].path, "/tmp/new\nline", "an escaped newline");
	ok(procmaps_find(&maps, 0x2000) == &maps.maps[1] && procmaps_find(&maps, 0x3fff) &&
		   !procmaps_find(&maps, 0x4000) && !procmaps_find(&maps, 0xfff),
	   "found by address");
	procmaps_free(&maps);
	is_int(parse("", &maps), 0, "no mappings");
	is_int(parse("2000-1000 r-xp 0 0:0 0\n", &maps), -EINVAL, "backwards");
	is_int(parse("1000-2000 r-xp 0 0:0 0\n1800-3000 r-xp 0 0:0 0\n", &maps), -EINVAL,
	       "overlap");
	is_int(parse("hello\n", &maps), -EINVAL, "no mapping");
	is_int(parse("1000-2000 r-x 0 0:0 0\n", &maps), -EINVAL, "rights too short");
	is_int(procmaps_parse("1000-2000 r-xp 0 0:0 0 /a\0b", 27, &maps), -EINVAL, "a NUL");
	ok(!maps.maps && !maps.n, "out-parameter is left alone");
}

int main(void)
{
	test_process();
	test_gone();
	test_image();
	test_own_maps();
	test_deleted();
	test_replaced();
	test_parse();
	return tap_done();
}
