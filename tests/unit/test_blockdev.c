/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_blockdev.c: block devices read from a sysfs of the test's own: partitions, stacks (also one
 * that bites its tail), statistics of several kernels, and what is missing.
 */
#include "blockdev.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../tap.h"
#include "tree.h"

#define DEV(major_number, minor_number) ((uint32_t)(major_number) << 20 | (minor_number))

/* /sys/block/NAME of a number, and the ways that lead to it. */
static void add_device(const char *folder, const char *name, unsigned int major_number,
		       unsigned int minor_number)
{
	char target[PATH_MAX], text[32];

	mkdir(path_of("%s/%s", folder, name), 0755);
	mkdir(path_of("%s/%s/slaves", folder, name), 0755);
	mkdir(path_of("%s/%s/queue", folder, name), 0755);
	snprintf(text, sizeof(text), "%u:%u\n", major_number, minor_number);
	write_text(path_of("%s/%s/dev", folder, name), text);
	snprintf(target, sizeof(target), "../../%s/%s", folder, name);
	/* a number may have a device already: that of the machine's own disk */
	if (symlink(target, path_of("dev/block/%u:%u", major_number, minor_number)) &&
	    errno != EEXIST)
		diag("cannot link %s", name);
	if (symlink(target, path_of("class/block/%s", name)))
		diag("cannot link %s", name);
}

static void add_slave(const char *name, const char *slave)
{
	char target[PATH_MAX];

	snprintf(target, sizeof(target), "../../../class/block/%s", slave);
	if (symlink(target, path_of("block/%s/slaves/%s", name, slave)))
		diag("cannot link %s", slave);
}

/* vda with vda1; dm-0 on vda1 and vdb; dm-1 on dm-0; dm-2 and dm-3 on each other. */
static void make_sysfs(void)
{
	snprintf(tree_dir, sizeof(tree_dir), "/tmp/test_blockdev.XXXXXX");
	if (!mkdtemp(tree_dir))
		exit(1);
	mkdir(path_of("dev"), 0755);
	mkdir(path_of("dev/block"), 0755);
	mkdir(path_of("class"), 0755);
	mkdir(path_of("class/block"), 0755);
	mkdir(path_of("block"), 0755);
	add_device("block", "vda", 254, 0);
	add_device("block/vda", "vda1", 254, 1);
	write_text(path_of("block/vda/vda1/partition"), "1\n");
	add_device("block", "vdb", 254, 16);
	for (unsigned int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "dm-%u", i);
		add_device("block", name, 253, i);
		mkdir(path_of("block/%s/dm", name), 0755);
	}
	write_text(path_of("block/dm-1/dm/name"), "vg-\xff\x1b[31mlv\n");
	add_slave("dm-0", "vda1");
	add_slave("dm-0", "vdb");
	add_slave("dm-1", "dm-0");
	add_slave("dm-2", "dm-3");
	add_slave("dm-3", "dm-2");
}

static void test_disks(void)
{
	uint32_t dev = 0;

	is_int((long long)blockdev_count(tree_dir), 7, "six disks and a partition");
	is_int((long long)blockdev_count("/no/such"), 0, "where there is no sysfs, none");
	is_int(blockdev_disk(tree_dir, DEV(254, 0), &dev), 0, "a disk is found");
	is_int(dev, DEV(254, 0), "and is its own disk");
	is_int(blockdev_disk(tree_dir, DEV(254, 1), &dev), 0, "a partition is found");
	is_int(dev, DEV(254, 0), "and lies on its disk");
	is_int(blockdev_disk(tree_dir, DEV(254, 2), &dev), -ENOENT, "one that is not there is not");
	is_int(blockdev_find(tree_dir, "/no/such/vda1", &dev), 0, "a name without a file is found");
	is_int(dev, DEV(254, 0), "and leads to the disk");
	is_int(blockdev_find(tree_dir, "/no/such/sdz", &dev), -ENOENT, "an unknown one is not");
	is_int(blockdev_find(tree_dir, "/dev/null", &dev), -ENOTBLK, "a file of another kind");
}

static void test_names(void)
{
	char name[32], label[64];

	is_int(blockdev_name(tree_dir, DEV(253, 1), name, sizeof(name), label, sizeof(label)), 0,
	       "a dm device has a name");
	is_str(name, "dm-1", "the kernel's");
	is_str(label, "vg-\xff\x1b[31mlv", "and one of its own, as it is");
	is_int(blockdev_name(tree_dir, DEV(254, 16), name, sizeof(name), label, sizeof(label)), 0,
	       "a disk has a name");
	is_str(name, "vdb", "the kernel's");
	is_str(label, "", "and no other");
	is_int(blockdev_name(tree_dir, DEV(9, 9), name, sizeof(name), label, sizeof(label)),
	       -ENOENT, "one that is not there has none");
}

static bool has(const struct blockdev_list *list, uint32_t dev)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->dev[i] == dev)
			return true;
	return false;
}

static void test_stacks(void)
{
	struct blockdev_list list;

	blockdev_below(tree_dir, DEV(253, 1), &list);
	is_int((long long)list.n, 3, "three devices lie below dm-1");
	is_int(list.dev[0], DEV(253, 0), "first the one right below it");
	ok(has(&list, DEV(254, 0)), "a partition stands for its disk");
	ok(has(&list, DEV(254, 16)), "the other disk is there");
	blockdev_below(tree_dir, DEV(254, 0), &list);
	is_int((long long)list.n, 0, "nothing lies below a disk");
	blockdev_below(tree_dir, DEV(253, 2), &list);
	ok(list.n <= 2 && !list.truncated, "a circle ends");
	blockdev_below(tree_dir, DEV(1, 1), &list);
	is_int((long long)list.n, 0, "nothing lies below what is not there");
}

/* The backing file's own file system is a real one; the file itself is not asked for. */
static void test_loop(void)
{
	char name[32], label[PATH_MAX], file[PATH_MAX];
	struct blockdev_list list;
	struct stat st;

	add_device("block", "loop7", 7, 7);
	mkdir(path_of("block/loop7/loop"), 0755);
	snprintf(file, sizeof(file), "%s", path_of("image"));
	write_text(path_of("block/loop7/loop/backing_file"), file);
	stat(tree_dir, &st);
	add_device("block", "below", major(st.st_dev), minor(st.st_dev));
	is_int(blockdev_name(tree_dir, DEV(7, 7), name, sizeof(name), label, sizeof(label)), 0,
	       "a loop has a name");
	is_str(label, file, "and its file");
	blockdev_below(tree_dir, DEV(7, 7), &list);
	is_int((long long)list.n, 1, "one device is below it");
	is_int(list.dev[0], DEV(major(st.st_dev), minor(st.st_dev)), "that of its file system");
	write_text(path_of("block/loop7/loop/backing_file"), "/proc/image\n");
	blockdev_below(tree_dir, DEV(7, 7), &list);
	is_int((long long)list.n, 0, "where that lies on none, nothing is");
	write_text(path_of("block/loop7/loop/backing_file"), "\n");
	blockdev_below(tree_dir, DEV(7, 7), &list);
	is_int((long long)list.n, 0, "nor where it is not known");
}

static void test_stat(void)
{
	struct blockdev_stat s;
	unsigned int reads, writes;

	is_int(blockdev_parse_stat("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", &s), 0,
	       "a statistics file of today");
	ok(s.read.ios == 1 && s.read.merges == 2 && s.read.sectors == 3 && s.read.ticks_ms == 4,
	   "reads");
	ok(s.write.ios == 5 && s.write.merges == 6 && s.write.sectors == 7 && s.write.ticks_ms == 8,
	   "writes");
	ok(s.busy_ms == 10 && s.discard.ios == 12 && s.discard.merges == 13 &&
		   s.discard.sectors == 14 && s.flushes == 16,
	   "what else is used");
	is_int(blockdev_parse_stat("1 2 3 4 5 6 7 8 9 10 11", &s), 0, "one of an old kernel");
	is_int((long long)s.discard.ios, 0, "has no discards");
	is_int(blockdev_parse_stat("1 2 3 4 5 6 7 8 9 10", &s), -EINVAL, "half of one");
	is_int(blockdev_parse_stat("", &s), -EINVAL, "none");
	is_int(blockdev_parse_stat("a b c", &s), -EINVAL, "something else");
	is_int(blockdev_read_stat(tree_dir, DEV(254, 0), &s), -ENOENT, "a device without any");
	write_text(path_of("block/vda/stat"), " 18446744073709551615 0 0 0 0 0 0 0 0 0 0\n");
	is_int(blockdev_read_stat(tree_dir, DEV(254, 0), &s), 0, "a device with one");
	ok(s.read.ios == UINT64_MAX, "large figures are read whole");
	write_text(path_of("block/vda/queue/iostats"), "0\n");
	is_int(blockdev_read_stat(tree_dir, DEV(254, 0), &s), -ENODATA, "that is switched off");
	write_text(path_of("block/vda/inflight"), "       3        4\n");
	is_int(blockdev_read_in_flight(tree_dir, DEV(254, 0), &reads, &writes), 0, "in flight");
	ok(reads == 3 && writes == 4, "reads and writes");
	write_text(path_of("block/vda/inflight"), "x\n");
	is_int(blockdev_read_in_flight(tree_dir, DEV(254, 0), &reads, &writes), -EINVAL, "rubbish");
	is_int(blockdev_read_in_flight(tree_dir, DEV(1, 1), &reads, &writes), -ENOENT,
	       "of nothing");
}

int main(void)
{
	char command[128];

	make_sysfs();
	test_disks();
	test_names();
	test_stacks();
	test_loop();
	test_stat();
	snprintf(command, sizeof(command), "rm -rf '%s'", tree_dir);
	is_int(system(command), 0, "cleaned up");
	return tap_done();
}
