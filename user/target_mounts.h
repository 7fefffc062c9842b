/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_mounts.h: the mounts that a process sees, from /proc/PID/mountinfo. Paths are raw: whoever
 * shows them sanitizes them.
 */
#ifndef BRICKTOP_TARGET_MOUNTS_H
#define BRICKTOP_TARGET_MOUNTS_H

#include <stddef.h>
#include <sys/types.h>

struct mount_entry {
	unsigned int id; /* of the mount: another one in each namespace */
	unsigned int major, minor;
	char *root;   /* of the file system: "/" unless it is a bind mount */
	char *path;   /* where it is mounted */
	char *fstype; /* "xfs", "fuse.glusterfs" */
	char *source; /* "/dev/loop0", "host:/vol" */
};

struct mount_list {
	struct mount_entry *m;
	size_t n;
};

/* In mount order. 0 or -errno; lines that are not understood are left out. Pure. */
int mounts_parse(const char *text, size_t len, struct mount_list *ret_list);
int mounts_load(pid_t pid, struct mount_list *ret_list);
int mounts_load_file(const char *path, struct mount_list *ret_list);
void mounts_free(struct mount_list *list);

/* The mount that holds path: the longest prefix, the latest of equals; NULL where none does. */
const struct mount_entry *mounts_find(const struct mount_list *list, const char *path);

#endif
