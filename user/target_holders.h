/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_holders.h: the processes behind a mount: those that have files on it open now. Reads /proc
 * alone, and nothing of the mount or of any other: a file system that hangs is not waited for. Must
 * not know BPF.
 */
#ifndef BRICKTOP_TARGET_HOLDERS_H
#define BRICKTOP_TARGET_HOLDERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target.h"

#define TARGET_PROC "/proc"

struct target_holder {
	pid_t pid;
	uint64_t io_bytes; /* read from and written to devices since it started; 0 where unknown */
};

struct target_holders {
	struct target_holder *h; /* those with most I/O first */
	size_t n;
	size_t n_unreadable; /* processes that may not be looked at */
};

/*
 * Who has files open on the XFS that is mounted at path (as a target's: harmless), by whatever
 * mount, in whatever mount namespace. Not this process, and not the kernel's. proc is where procfs
 * is mounted. 0; -ENOENT: nothing of that type is mounted there; -errno.
 */
int target_holders_find(const char *proc, const char *path, struct target_holders *ret_holders);
void target_holders_free(struct target_holders *holders);

/*
 * The mount, and behind it its holders: bricks and clients as known has them, others as plain
 * processes. At most max targets; the mount's own n_procs, n_left_out and n_unreadable tell how
 * many are, and are not, among them. 0 or -errno.
 */
int target_add_holders(const char *proc, const struct target_list *known,
		       const struct target *mount, size_t max, struct target_list *ret_list);

#endif
