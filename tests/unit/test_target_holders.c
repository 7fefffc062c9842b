// SPDX-License-Identifier: Apache-2.0
/*
 * test_target_holders.c: who has files open on a mount, in a procfs of the test's own: by binds and
 * from other namespaces, what may not be read, and what is not to be looked at; and which targets
 * that makes. Of those only what is no GlusterFS is looked up on this host: children of the test.
 */
#include "target_holders.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "tap.h"
#include "tree.h"

#define NOBODY 999999999 /* above the kernel's limit of pids */

static const char ours[] = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
			   "40 22 7:0 / /mnt/x\\0401 rw - xfs /dev/loop0 rw\n"
			   "41 22 7:0 /sub /srv rw - xfs /dev/loop0 rw\n"
			   "50 22 7:1 / /mnt/y rw - xfs /dev/loop1 rw\n"
			   "51 22 7:2 / /mnt/under rw - xfs /dev/loop2 rw\n"
			   "52 51 7:3 / /mnt/under rw - xfs /dev/loop3 rw\n";
static const char theirs[] = "80 1 0:50 / / rw - overlay overlay rw\n"
			     "90 80 7:0 /data /data rw - xfs /dev/loop0 rw\n"
			     "91 80 7:1 / /other rw - xfs /dev/loop1 rw\n";

/* A process in that namespace, with nothing open. */
static void add_process(int pid, unsigned int space, const char *mountinfo)
{
	char link[32];

	mkdir(path_of("%d", pid), 0755);
	mkdir(path_of("%d/ns", pid), 0755);
	mkdir(path_of("%d/fdinfo", pid), 0755);
	snprintf(link, sizeof(link), "mnt:[%u]", space);
	if (symlink(link, path_of("%d/ns/mnt", pid)))
		diag("cannot link a namespace");
	write_text(path_of("%d/mountinfo", pid), mountinfo);
}

static void open_file(int pid, int fd, int mount)
{
	char text[128];

	snprintf(text, sizeof(text), "pos:\t0\nflags:\t0100002\nmnt_id:\t%d\nino:\t7\n", mount);
	write_text(path_of("%d/fdinfo/%d", pid, fd), text);
}

static void set_io(int pid, unsigned int in, unsigned int out)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "rchar: 99999\nwchar: 99999\nsyscr: 1\nsyscw: 1\nread_bytes: %u\n"
		 "write_bytes: %u\ncancelled_write_bytes: 77777\n",
		 in, out);
	write_text(path_of("%d/io", pid), text);
}

/* What cannot be opened as a directory stands for what may not be. */
static void forbid(int pid, unsigned long flags)
{
	char text[128];

	rmdir(path_of("%d/fdinfo", pid));
	write_text(path_of("%d/fdinfo", pid), "");
	snprintf(text, sizeof(text), "%d (a) b)) S 1 1 1 0 -1 %lu 0 0", pid, flags);
	write_text(path_of("%d/stat", pid), text);
}

static void make_proc(void)
{
	snprintf(tree_dir, sizeof(tree_dir), "/tmp/test_target_holders.XXXXXX");
	if (!mkdtemp(tree_dir))
		exit(1);
	mkdir(path_of("self"), 0755);
	write_text(path_of("self/mountinfo"), ours);
	write_text(path_of("uptime"), "1 1\n");
	add_process(101, 1, ours);
	open_file(101, 0, 22);
	open_file(101, 3, 40);
	set_io(101, 100, 20);
	add_process(102, 1, ours);
	open_file(102, 0, 22);
	open_file(102, 1, 50);
	add_process(103, 1, ours);
	open_file(103, 1023, 41);
	set_io(103, 0, 5000);
	add_process(104, 2, theirs);
	open_file(104, 5, 90);
	add_process(105, 2, theirs);
	open_file(105, 5, 91);
	open_file(105, 6, 22);
	add_process(getpid(), 1, ours);
	open_file(getpid(), 3, 40);
}

static void is_pids(const char *path, const char *want, size_t unreadable, const char *name)
{
	struct target_holders found = { 0 };
	char have[256] = "";
	size_t len = 0;

	is_int(target_holders_find(tree_dir, path, &found), 0, "%s: looked for", name);
	for (size_t i = 0; i < found.n && len < sizeof(have); i++)
		len += (size_t)snprintf(have + len, sizeof(have) - len, "%s%d", i ? " " : "",
					(int)found.h[i].pid);
	is_str(have, want, "%s: who", name);
	is_int((long long)found.n_unreadable, (long long)unreadable, "%s: unreadable", name);
	target_holders_free(&found);
}

static void test_find(void)
{
	struct target_holders found = { 0 };

	is_pids("/mnt/x 1", "103 101 104", 0, "most I/O first, this process not");
	is_pids("/srv", "103 101 104", 0, "a bind is its file system");
	is_pids("/mnt/y", "102 105", 0, "another one");
	is_pids("/mnt/under", "", 0, "nobody");
	add_process(106, 1, ours);
	open_file(106, 3, 51);
	add_process(107, 1, ours);
	open_file(107, 3, 52);
	is_pids("/mnt/under", "107", 0, "of two at one place the upper");
	is_int(target_holders_find(tree_dir, "/", &found), -ENOENT, "another type");
	is_int(target_holders_find(tree_dir, "/mnt", &found), -ENOENT, "no mount");
	is_int(target_holders_find("/nowhere", "/mnt/y", &found), -ENOENT, "no procfs");
}

static void test_odd(void)
{
	add_process(108, 1, ours);
	write_text(path_of("108/fdinfo/1"), "");
	write_text(path_of("108/fdinfo/2"), "pos:\t0\nmnt_id:\tx\n");
	write_text(path_of("108/fdinfo/3"), "pos:\t0\nmnt_id:\t4294967336\n"); /* 40 + 2^32 */
	is_pids("/mnt/x 1", "103 101 104", 0, "what makes no sense is no file");
	add_process(109, 1, ours);
	forbid(109, 0x400100);
	is_pids("/mnt/x 1", "103 101 104", 1, "what may not be read is counted");
	add_process(110, 1, ours);
	forbid(110, 0x208040);
	is_pids("/mnt/x 1", "103 101 104", 1, "but for the kernel's threads");
	mkdir(path_of("111"), 0755);
	is_pids("/mnt/x 1", "103 101 104", 1, "nor those that are gone");
	add_process(112, 3, "");
	open_file(112, 3, 40);
	is_pids("/mnt/x 1", "103 101 104 112", 1, "a file of a mount that its namespace lacks");
}

/* ---- as targets -------------------------------------------------------- */

static struct target items[] = {
	{ .kind = TARGET_BRICK, .pid = 101, .volume = "a", .path = "/1", .device = "/dev/loop0" },
	{ .kind = TARGET_BRICK, .pid = 101, .volume = "a", .path = "/2", .device = "/dev/loop1" },
	{ .kind = TARGET_BRICK, .pid = 103, .volume = "b", .path = "/3", .device = "/dev/loop1" },
	{ .kind = TARGET_BRICK, .pid = 103, .volume = "b", .path = "/4", .device = "/dev/loop1" },
	{ .kind = TARGET_CLIENT, .pid = 104, .volume = "c", .path = "/mnt/c" },
	{ .kind = TARGET_XFS, .volume = "-", .path = "/mnt/x 1", .device = "/dev/loop0" },
	{ .kind = TARGET_BRICK, .pid = NOBODY, .volume = "d", .path = "/5", .problem = "broken" },
};
static const struct target_list known = { items, sizeof(items) / sizeof(items[0]) };
static const struct target mount = {
	.kind = TARGET_XFS, .path = "/mnt/x 1", .device = "/dev/loop0", .fstype = "xfs"
};

/* want: the mount and what is behind it; the others as looked at, left out, unreadable. */
static void is_targets(size_t max, const char *want, const char *counts, const char *name)
{
	struct target_list list = { 0 };
	char have[512] = "", one[128], numbers[64] = "";
	size_t len = 0;

	is_int(target_add_holders(tree_dir, &known, &mount, max, &list), 0, "%s", name);
	for (size_t i = 1; i < list.n && len < sizeof(have); i++)
		len += (size_t)snprintf(have + len, sizeof(have) - len, "%s%s", i > 1 ? ", " : "",
					target_describe(&list.t[i], one, sizeof(one)));
	if (list.n)
		snprintf(numbers, sizeof(numbers), "%u %u %u", list.t[0].n_procs,
			 list.t[0].n_left_out, list.t[0].n_unreadable);
	is_str(have, want, "%s: targets", name);
	is_str(numbers, counts, "%s: how many", name);
	target_list_free(&list);
}

static void test_targets(void)
{
	char want[256];
	pid_t child;

	is_targets(64, "b:/3, b:/4, a:/1, client c on /mnt/c", "3 0 1",
		   "a process's bricks on the device, where there are any");
	is_targets(4, "b:/3, b:/4, a:/1", "2 1 1", "as many as there is room for");
	is_targets(2, "a:/1", "1 2 1", "a process's targets, or none of them");
	is_targets(1, "", "0 3 1", "no room");
	add_process(NOBODY, 1, ours);
	open_file(NOBODY, 3, 40);
	set_io(NOBODY, 9000, 0);
	is_targets(64, "b:/3, b:/4, a:/1, client c on /mnt/c", "3 0 1", "one that has ended");
	child = child_start();
	add_process(child, 1, ours);
	open_file(child, 3, 41);
	set_io(child, 200, 0);
	snprintf(want, sizeof(want), "b:/3, b:/4, process %d (test_target_hol), a:/1, %s",
		 (int)child, "client c on /mnt/c");
	is_targets(64, want, "4 0 1", "a process that is no GlusterFS");
	is_targets(3, "b:/3, b:/4", "1 3 1", "is left out like others");
	child_end(child);
}

static void test_plain(void)
{
	struct target_list list = { 0 };
	pid_t child = child_start();

	add_process(child, 1, ours);
	open_file(child, 3, 50);
	is_int(target_add_holders(tree_dir, &(struct target_list){ 0 },
				  &(struct target){ .kind = TARGET_XFS,
						    .path = "/mnt/y",
						    .device = "/dev/loop1",
						    .fstype = "xfs" },
				  64, &list),
	       0, "a mount that a process uses");
	if (is_int((long long)list.n, 2, "is two targets")) {
		ok(list.t[1].kind == TARGET_PROCESS && list.t[1].pid == child &&
			   list.t[1].start_ticks,
		   "the process as by its pid");
		is_str(list.t[1].device, "/dev/loop1", "its device is the mount's");
	}
	target_list_free(&list);
	child_end(child);
}

int main(void)
{
	char command[128];

	make_proc();
	test_find();
	test_odd();
	test_targets();
	test_plain();
	snprintf(command, sizeof(command), "rm -rf '%s'", tree_dir);
	is_int(system(command), 0, "cleaned up");
	return tap_done();
}
