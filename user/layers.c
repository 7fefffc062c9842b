/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c: layers.def turned into an array. Owns nothing else.
 */
#include "layers.h"

#include <linux/types.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "../bpf/wire.h"

#define SYSCALL_NAME(name, by) [WIRE_SYS_##name] = #name,
static const char *const wire_syscall_names[WIRE_SYSCALL_COUNT] = { WIRE_SYSCALLS(SYSCALL_NAME) };

/* The lists of the layers below the syscall: an identifier and the text shown. */
#define TEXT_XFS(id, text)       [WIRE_XFS_##id] = text,
#define TEXT_THROTTLE(id, text)  [WIRE_THROTTLE_##id] = text,
#define TEXT_WRITEBACK(id, text) [WIRE_WRITEBACK_##id] = text,
#define TEXT_BLK(id, text)       [WIRE_BLK_##id] = text,
#define TEXT_SCHED(id, text)     [WIRE_SCHED_##id] = text,
static const char *const wire_xfs_names[WIRE_XFS_COUNT] = { WIRE_XFS(TEXT_XFS) };
static const char *const wire_throttle_names[WIRE_THROTTLE_COUNT] = { WIRE_THROTTLE(
	TEXT_THROTTLE) };
static const char *const wire_writeback_names[WIRE_WRITEBACK_COUNT] = { WIRE_WRITEBACK(
	TEXT_WRITEBACK) };
static const char *const wire_blk_names[WIRE_BLK_COUNT] = { WIRE_BLK(TEXT_BLK) };
static const char *const wire_sched_names[WIRE_SCHED_COUNT] = { WIRE_SCHED(TEXT_SCHED) };

/* Of the host table of block devices. */
#define TEXT_DEV(id, text) [WIRE_DEV_##id] = text,
static const char *const wire_dev_op_names[WIRE_DEV_OP_COUNT] = { WIRE_DEV_OPS(TEXT_DEV) };

#define SUBS_COUNT(s) (sizeof(s) / sizeof((s)[0]))

#define LAYER(id_, object_, title_, kind_, parent_, on_, cost_, subs_) \
	[LAYER_##id_] = {                                              \
		.object = #object_,                                    \
		.title = title_,                                       \
		.kind = kind_,                                         \
		.parent = parent_,                                     \
		.on = on_,                                             \
		.cost = cost_,                                         \
		.subs = subs_,                                         \
		.n_subs = SUBS_COUNT(subs_),                           \
	},
static const struct layer rows[LAYER_COUNT] = {
#include "layers.def"
};

const struct layer *layer_get(unsigned int number)
{
	return number > LAYER_NONE && number < LAYER_COUNT ? &rows[number] : NULL;
}

bool layer_is_host(const struct layer *layer)
{
	return !strcmp(layer->kind, "host");
}

/* Not every architecture has every call: arm64 has no open, stat, mkdir ... */
#ifndef SYS_open
#define SYS_open     -1
#define SYS_stat     -1
#define SYS_lstat    -1
#define SYS_mkdir    -1
#define SYS_rmdir    -1
#define SYS_unlink   -1
#define SYS_rename   -1
#define SYS_chmod    -1
#define SYS_lchown   -1
#define SYS_link     -1
#define SYS_symlink  -1
#define SYS_mknod    -1
#define SYS_readlink -1
#endif

void layers_fill_syscalls(unsigned short *numbers, unsigned int n)
{
#define SYSCALL_ENTRY(name, by) { SYS_##name, WIRE_SYS_##name | WIRE_SYS_BY_##by },
	static const struct {
		long nr;
		unsigned int entry;
	} watched[] = { WIRE_SYSCALLS(SYSCALL_ENTRY) };
	size_t i;

	for (i = 0; i < SUBS_COUNT(watched); i++) {
		if (watched[i].nr >= 0 && (unsigned long)watched[i].nr < n)
			numbers[watched[i].nr] = (unsigned short)watched[i].entry;
	}
}
