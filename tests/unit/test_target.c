// SPDX-License-Identifier: Apache-2.0
/*
 * test_target.c: what words mean among given targets, how targets are described, and mount tables.
 * Nothing here looks at the host but where no list has the word: pids and mounts.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "tap.h"
#include "target.h"
#include "target_mounts.h"

static struct target items[] = {
	{ .kind = TARGET_BRICK,
	  .pid = 11,
	  .volume = "vol",
	  .path = "/bricks/b1",
	  .device = "/dev/sdb" },
	{ .kind = TARGET_BRICK,
	  .pid = 22,
	  .volume = "two",
	  .path = "/bricks/b2",
	  .device = "/dev/sdb" },
	{ .kind = TARGET_BRICK,
	  .pid = 22,
	  .volume = "two",
	  .path = "/bricks/b3",
	  .device = "/dev/sdc" },
	{ .kind = TARGET_CLIENT, .pid = 33, .volume = "vol", .path = "/mnt/vol" },
	{ .kind = TARGET_CLIENT, .pid = 34, .volume = "far", .path = "/mnt/far" },
	{ .kind = TARGET_XFS, .volume = "-", .path = "/bricks", .device = "/dev/sdb" },
	{ .kind = TARGET_DEVICE, .volume = "-", .path = "/dev/sdb", .device = "/dev/sdb" },
	{ .kind = TARGET_PROCESS, .pid = 44, .volume = "-", .comm = "glustershd" },
	{ .kind = TARGET_BRICK, .pid = 55, .volume = "-", .path = "/bricks/unknown" },
	{ .kind = TARGET_BRICK, .pid = 66, .volume = "777", .path = "/bricks/number" },
	{ .kind = TARGET_DEVICE, .volume = "-", .path = "/dev/sdd", .device = "/dev/sdd" },
};
static struct target_list list = { items, sizeof(items) / sizeof(items[0]) };

static struct target got;

static void check_found(const char *word, int index)
{
	char err[4096] = "", want[5000], have[5000];

	if (!is_int(target_resolve(&list, word, &got, err, sizeof(err)), 0, "'%s' is found", word))
		diag("%s", err);
	is_str(target_describe(&got, have, sizeof(have)),
	       target_describe(&items[index], want, sizeof(want)), "and is that one");
}

static void check_refused(const char *word, int want, const char *named)
{
	char err[4096] = "";

	is_int(target_resolve(&list, word, &got, err, sizeof(err)), want, "'%.40s' is refused",
	       word);
	if (!ok(strstr(err, named) != NULL, "and told: %s", named))
		diag("%s", err);
}

static void test_words(void)
{
	check_found("vol", 0); /* the brick, although a client of that volume is here too */
	check_found("far", 4);
	check_found("/bricks/b2", 1);
	check_found("/bricks/b2///", 1);
	check_found("two:/bricks/b3", 2);
	check_found("/mnt/vol/", 3);
	check_found("/bricks", 5);
	check_found("/dev/sdc", 2); /* a device means the brick on it */
	check_found("sdc", 2);
	check_found("/dev/sdd", 10);
	check_found("11", 0);
	check_found("44", 7);
	check_found("777", 9);                       /* no such pid: a volume's name */
	check_refused("sdb", -EEXIST, "/bricks/b2"); /* two bricks on one device */
	check_refused("two", -EEXIST, "two:/bricks/b3 (pid 22)");
	check_refused("22", -EEXIST, "not one target but 2");
	check_refused("nothing", -ENOENT, "client far on /mnt/far");
	check_refused("-", -ENOENT, "no target '-'");
	check_refused("", -ENOENT, "no target ''");
	check_refused("two:/bricks/b1", -ENOENT, "there is vol:/bricks/b1");
	check_refused("vol:", -ENOENT, "there is");
	check_refused("2000000000", -ENOENT, "there is");
	check_refused("99999999999999999999999999", -ENOENT, "there is");
	check_refused("/proc/self", -ENOENT, "there is");
	check_refused("x\033[2J", -ENOENT, "no target 'x?[2J'");
}

static void test_small_buffer(void)
{
	struct target_list none = { 0 };
	char err[80];

	memset(err, 'x', sizeof(err));
	target_resolve(&list, "zz", &got, err, 70);
	ok(strnlen(err, 70) < 70 && strstr(err, "more"), "a short message says that it is: %s",
	   err);
	ok(err[70] == 'x', "and stays in its buffer");
	is_int(target_resolve(&none, "zz", &got, err, sizeof(err)), -ENOENT, "an empty host");
	ok(strstr(err, "there is nothing") != NULL, "has nothing");
}

static void test_long_list(void)
{
	enum { N = 60 };
	struct target *many = calloc(N, sizeof(*many));
	struct target_list of_many = { many, N };
	unsigned int shown = 0;
	char err[4096] = "";

	for (size_t i = 0; i < N; i++) {
		many[i].kind = TARGET_BRICK;
		many[i].pid = (pid_t)(i + 1);
		snprintf(many[i].volume, sizeof(many[i].volume), "vol");
		snprintf(many[i].path, sizeof(many[i].path), "/bricks/b%zu", i);
	}
	target_resolve(&of_many, "nothing", &got, err, sizeof(err));
	for (const char *s = err; (s = strstr(s, "/bricks/")); s++)
		shown++;
	is_int(shown, 8, "of a crowded host the first are named");
	ok(strstr(err, " and 52 more: see 'bricktop list'") != NULL, "and the others counted: %s",
	   err);
	err[0] = '\0';
	target_resolve(&of_many, "vol", &got, err, sizeof(err));
	ok(strstr(err, "not one target but 60") && strstr(err, " and 52 more"),
	   "the same where a word means many: %s", err);
	free(many);
}

/* A path is kept as it is shown; its owner types it as it is. */
static void test_strange_path(void)
{
	struct target strange = { .kind = TARGET_BRICK, .volume = "v", .path = "/b/x?[2Jy?" };
	struct target_list of_one = { &strange, 1 };
	char err[256];

	is_int(target_resolve(&of_one, "/b/x\033[2Jy\n", &got, err, sizeof(err)), 0,
	       "a path with control characters");
	is_int(target_resolve(&of_one, "v:/b/x?[2Jy?", &got, err, sizeof(err)), 0,
	       "or as it is shown");
}

static void test_process(void)
{
	char word[16], err[256];

	snprintf(word, sizeof(word), "%d", (int)getpid());
	is_int(target_resolve(&list, word, &got, err, sizeof(err)), 0, "a pid that no target has");
	ok(got.kind == TARGET_PROCESS && got.pid == getpid() && got.start_ticks > 0,
	   "is a process");
	is_str(got.comm, "test_target", "with its name");
}

static void *tell_tid(void *pipe_end)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	if (write(*(int *)pipe_end, &tid, sizeof(tid)) == sizeof(tid))
		pause();
	return NULL;
}

/* Numbers that are in /proc and still nothing to attach to. */
static void test_no_process(void)
{
	char word[16], reason[64];
	pid_t tid = 0, child;
	pthread_t thread;
	int ends[2];

	if (pipe(ends) || pthread_create(&thread, NULL, tell_tid, &ends[1]) ||
	    read(ends[0], &tid, sizeof(tid)) != sizeof(tid)) {
		ok(false, "a thread");
		return;
	}
	snprintf(word, sizeof(word), "%d", (int)tid);
	snprintf(reason, sizeof(reason), "%d is a thread of process %d", (int)tid, (int)getpid());
	check_refused(word, -EINVAL, reason);
	child = child_start();
	kill(child, SIGKILL);
	waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	snprintf(word, sizeof(word), "%d", (int)child);
	check_refused(word, -EINVAL, "it has ended");
	child_end(child);
	check_refused(word, -ENOENT, "there is");
}

/* Of the mounts that no list has: the first that is one of a block device. */
static void test_other_mount(void)
{
	struct mount_list mounts = { 0 };
	char err[4096];
	struct stat st;
	size_t i;

	is_int(mounts_load(getpid(), &mounts), 0, "this host's mounts");
	for (i = 0; i < mounts.n; i++)
		if (!stat(mounts.m[i].source, &st) && S_ISBLK(st.st_mode) &&
		    mounts_find(&mounts, mounts.m[i].path) == &mounts.m[i])
			break;
	if (i == mounts.n) {
		skip("a mount that no target has", "no block device is mounted here");
	} else {
		is_int(target_resolve(&list, mounts.m[i].path, &got, err, sizeof(err)), 0,
		       "%s, which no target has", mounts.m[i].path);
		is_str(got.device, mounts.m[i].source, "is its device");
		ok(!got.pid && got.kind != TARGET_PROCESS, "and no process");
	}
	mounts_free(&mounts);
}

static void test_describe(void)
{
	char buf[64];

	is_str(target_describe(&items[0], buf, sizeof(buf)), "vol:/bricks/b1", "brick");
	is_str(target_describe(&items[3], buf, sizeof(buf)), "client vol on /mnt/vol", "client");
	is_str(target_describe(&items[5], buf, sizeof(buf)), "xfs /bricks on /dev/sdb", "xfs");
	is_str(target_describe(&items[6], buf, sizeof(buf)), "device /dev/sdb", "device");
	is_str(target_describe(&items[7], buf, sizeof(buf)), "process 44 (glustershd)", "process");
	is_str(target_kind_name(TARGET_CLIENT), "client", "kind");
}

static void test_mounts(void)
{
	static const char text[] =
		"22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
		"23 22 8:16 / /bricks\\040x rw,noatime master:2 propagate_from:3 "
		"- xfs /dev/sdb rw\n"
		"24 22 0:50 / /mnt rw - fuse.glusterfs host:/v\\134ol rw\n"
		"garbage\n25 22 x / / rw - a b\n26 22 8:1 / /x rw\n"
		"27 23 8:32 /sub /bricks\\040x/deep rw - xfs /dev/sdc rw";
	struct mount_list mounts = { 0 };

	is_int(mounts_parse(text, sizeof(text) - 1, &mounts), 0, "a mount table");
	if (!is_int((long long)mounts.n, 4, "lines that make sense"))
		return;
	is_str(mounts.m[1].path, "/bricks x", "a blank in a path");
	is_int(mounts.m[1].id, 23, "a mount's number");
	is_str(mounts.m[2].source, "host:/v\\ol", "a backslash in a source");
	is_str(mounts.m[3].root, "/sub", "a bind mount's root");
	is_str(mounts_find(&mounts, "/bricks x/b1")->source, "/dev/sdb", "by path");
	is_str(mounts_find(&mounts, "/bricks x/deep/b1")->source, "/dev/sdc", "the deepest");
	is_str(mounts_find(&mounts, "/bricks xy")->source, "/dev/sda1", "not by half a name");
	is_str(mounts_find(&mounts, "/")->source, "/dev/sda1", "the root");
	mounts_free(&mounts);
	ok(!mounts.n && !mounts_find(&mounts, "/"), "freed");
}

int main(void)
{
	test_words();
	test_small_buffer();
	test_long_list();
	test_strange_path();
	test_process();
	test_no_process();
	test_other_mount();
	test_describe();
	test_mounts();
	return tap_done();
}
