/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blockdev.h: block devices as /sys shows them: names, what lies below what, statistics. Reads
 * files only; must not know BPF. Names are untrusted (a backing file's path is anybody's) and not
 * sanitized here. sys is where sysfs is mounted, "/sys"; a device number is major << 20 | minor.
 */
#ifndef BRICKTOP_BLOCKDEV_H
#define BRICKTOP_BLOCKDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCKDEV_SYS       "/sys"
#define BLOCKDEV_MAX_STACK 16

struct blockdev_list {
	uint32_t dev[BLOCKDEV_MAX_STACK];
	size_t n;
	bool truncated; /* there are more */
};

/* How many there are, partitions included; 0 where that cannot be read. */
size_t blockdev_count(const char *sys);

/* Whole disk of a device file or of a name below /sys/class/block: 0, -ENOENT, -ENOTBLK, -errno. */
int blockdev_find(const char *sys, const char *device, uint32_t *ret_disk);
/* Whole disk of a device, which may be a partition. 0 or -errno. */
int blockdev_disk(const char *sys, uint32_t dev, uint32_t *ret_disk);

/* "loop3", and a name that says more: a loop's backing file, a dm device's name; "". 0 or -errno.
 */
int blockdev_name(const char *sys, uint32_t disk, char *name, size_t name_size, char *label,
		  size_t label_size);

/*
 * The disks below a disk, itself not among them, top first and each once: the slaves of dm and md,
 * the device of the file system in which a loop's backing file lies.
 */
void blockdev_below(const char *sys, uint32_t disk, struct blockdev_list *ret_list);

/* Of /sys/block/X/stat, cumulative. Sectors are of 512 bytes; times in ms. */
struct blockdev_group {
	uint64_t ios, merges, sectors, ticks_ms;
};

struct blockdev_stat {
	struct blockdev_group read, write, discard; /* empty flushes count as writes */
	uint64_t flushes;
	uint64_t busy_ms; /* time in which anything was in flight */
};

/* 0; -ENODATA: the queue keeps none (iostats 0); -errno. */
int blockdev_read_stat(const char *sys, uint32_t disk, struct blockdev_stat *ret_stat);
/* Pure: the text of a stat file; 0 or -EINVAL. Fields of later kernels may be missing: 0. */
int blockdev_parse_stat(const char *text, struct blockdev_stat *ret_stat);

/* /sys/block/X/inflight: requests that are with the device now. 0 or -errno. */
int blockdev_read_in_flight(const char *sys, uint32_t disk, unsigned int *ret_reads,
			    unsigned int *ret_writes);

#endif
