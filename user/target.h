/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h: what bricktop can attach to on this host, found in /proc, and what a user's TARGET word
 * means. Must not know BPF. All names found are untrusted and sanitized for display.
 */
#ifndef BRICKTOP_TARGET_H
#define BRICKTOP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum target_kind { TARGET_BRICK, TARGET_CLIENT, TARGET_XFS, TARGET_DEVICE, TARGET_PROCESS };

struct target {
	enum target_kind kind;
	pid_t pid;            /* 0 for XFS mounts and devices */
	uint64_t start_ticks; /* of pid: a recycled pid differs */
	uint64_t graph_key;   /* gluster_graph.key: which brick of a multiplexed process */
	char volume[256];     /* "-" where unknown */
	char path[4096];      /* brick path, mount point; "" for processes */
	char device[256];     /* block device of an XFS mount or of a brick's file system; "" */
	char fstype[32];      /* of a brick's file system */
	char version[32];     /* GlusterFS release, or "-" */
	char xlators[4096];   /* ids in graph order, top first, joined by " > " */
	char comm[16];
	char problem[256]; /* why it cannot be attached to; "" where it can */
	/* of a mount: processes behind it that are targets, too, and those that are not */
	unsigned int n_procs, n_left_out, n_unreadable;
};

struct target_list {
	struct target *t;
	size_t n;
};

/* Everything on this host: bricks one by one, clients, XFS mounts, their devices. 0 or -errno. */
int target_scan(struct target_list *ret_list);
void target_list_free(struct target_list *list);

/*
 * What WORD (volume, brick path, mount point, pid, device, or volume:brickpath) means. Exactly one:
 * 0. None: -ENOENT, several: -EEXIST, and err lists what is there. A process that has no entry of
 * its own but exists is TARGET_PROCESS, such a block device ("/dev/sdb", "sdb") TARGET_DEVICE, as
 * is a mount of one; a number that is no process to attach to (a thread, one that has ended) is
 * -EINVAL, and err says why. The result is a copy.
 */
int target_resolve(const struct target_list *list, const char *word, struct target *ret_target,
		   char *err, size_t err_size);

/*
 * A process as TARGET_PROCESS, whatever it is; with its problem where it may not be read. -ENOENT:
 * there is none; -EINVAL: nothing to attach to, and err says why.
 */
int target_of_process(pid_t pid, struct target *ret_target, char *err, size_t err_size);

/* "perfvol:/bricks/b1", "client perfvol on /mnt" ... into buf; returns buf. */
const char *target_describe(const struct target *t, char *buf, size_t size);
const char *target_kind_name(enum target_kind kind);

#endif
