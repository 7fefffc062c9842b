/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c: layers.def turned into an array. Owns nothing else.
 */
#include "layers.h"

#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
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
#define TEXT_AIO(id, text)       [WIRE_AIO_##id] = text,
#define TEXT_URING(id, text)     [WIRE_URING_##id] = text,
static const char *const wire_xfs_names[WIRE_XFS_COUNT] = { WIRE_XFS(TEXT_XFS) };
static const char *const wire_throttle_names[WIRE_THROTTLE_COUNT] = { WIRE_THROTTLE(
	TEXT_THROTTLE) };
static const char *const wire_writeback_names[WIRE_WRITEBACK_COUNT] = { WIRE_WRITEBACK(
	TEXT_WRITEBACK) };
static const char *const wire_blk_names[WIRE_BLK_COUNT] = { WIRE_BLK(TEXT_BLK) };
static const char *const wire_sched_names[WIRE_SCHED_COUNT] = { WIRE_SCHED(TEXT_SCHED) };
static const char *const wire_aio_names[WIRE_AIO_COUNT] = { WIRE_AIO(TEXT_AIO) };
static const char *const wire_uring_names[WIRE_URING_COUNT] = { WIRE_URING(TEXT_URING) };

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

/* ---- a list of layers -------------------------------------------------- */

#define ALL_ROWS (((1ULL << LAYER_COUNT) - 1) & ~(1ULL << LAYER_NONE))

/* Number of the row with that title; LAYER_NONE. */
static unsigned int find_title(const char *title, size_t len)
{
	unsigned int i;

	for (i = LAYER_NONE + 1; i < LAYER_COUNT; i++) {
		if (strlen(rows[i].title) == len && !memcmp(rows[i].title, title, len))
			return i;
	}
	return LAYER_NONE;
}

/* The rows that come with that one, itself included: they share its object. */
static uint64_t rows_with(unsigned int number)
{
	uint64_t set = 0;
	unsigned int i;

	for (i = LAYER_NONE + 1; i < LAYER_COUNT; i++) {
		if (!strcmp(rows[i].object, rows[number].object))
			set |= 1ULL << i;
	}
	return set;
}

static void print_titles(char *buf, size_t size)
{
	size_t at = 0;
	unsigned int i;

	for (i = LAYER_NONE + 1; i < LAYER_COUNT && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s, ", rows[i].title);
}

/* Nothing is seen of a layer where the one that it lies in is off. */
static int check_parents(uint64_t set, char *err, size_t err_size)
{
	unsigned int i, parent;

	for (i = LAYER_NONE + 1; i < LAYER_COUNT; i++) {
		parent = find_title(rows[i].parent, strlen(rows[i].parent));
		if (!(set >> i & 1) || parent == LAYER_NONE || set >> parent & 1)
			continue;
		snprintf(err, err_size, "layer '%s' lies in '%s': name that, too", rows[i].title,
			 rows[i].parent);
		return -EINVAL;
	}
	return 0;
}

int layers_parse(const char *list, uint64_t *ret_off, char *err, size_t err_size)
{
	const char *word = list, *end;
	unsigned int number;
	uint64_t set = 0;
	char titles[256];
	int ret;

	if (!strcmp(list, "all") || !strcmp(list, "none")) {
		*ret_off = *list == 'a' ? 0 : ALL_ROWS;
		return 0;
	}
	do {
		end = word + strcspn(word, ",");
		number = find_title(word, (size_t)(end - word));
		if (number == LAYER_NONE) {
			print_titles(titles, sizeof(titles));
			snprintf(err, err_size, "'%.*s' is no layer: %sor alone: all, none",
				 (int)(end - word), word, titles);
			return -EINVAL;
		}
		set |= rows_with(number);
		word = end + 1;
	} while (*end);
	ret = check_parents(set, err, err_size);
	if (!ret)
		*ret_off = ALL_ROWS & ~set;
	return ret;
}

/* ---- system calls ------------------------------------------------------ */

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
	} watched[] = {
		WIRE_SYSCALLS(SYSCALL_ENTRY){ SYS_io_getevents, WIRE_SYS_REAPS },
		{ SYS_io_pgetevents, WIRE_SYS_REAPS },
	};
	size_t i;

	for (i = 0; i < SUBS_COUNT(watched); i++) {
		if (watched[i].nr >= 0 && (unsigned long)watched[i].nr < n)
			numbers[watched[i].nr] = (unsigned short)watched[i].entry;
	}
}
