/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * uses.bpf.h: how much each file and each application got: two bounded tables, for requests and for
 * the calls of plain processes. Where a file or an application is known from is not its business.
 */
#ifndef BRICKTOP_USES_BPF_H
#define BRICKTOP_USES_BPF_H

#include "slots.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WIRE_FILES);
	__type(key, struct wire_use_key);
	__type(value, struct wire_use);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WIRE_APPS);
	__type(key, struct wire_use_key);
	__type(value, struct wire_use);
} apps SEC(".maps");

/* One request, or one call. */
struct use {
	__u64 dur_ns, bytes;
	__u32 class; /* enum wire_use_class */
	__u32 failed;
};

/* A new row. Not inlined: its stack is free again before the rest needs some. */
static __noinline struct wire_use *use_make(void *map, const struct wire_use_key *key)
{
	struct wire_use fresh = {};

	fresh.born_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

static __always_inline void use_add(struct wire_use *u, const struct use *use, const void *last)
{
	__u64 class = use->class;

	barrier_var(class);
	if (class >= WIRE_USE_CLASSES)
		return;
	barrier_var(class);
	__sync_fetch_and_add(&u->count[class], 1);
	__sync_fetch_and_add(&u->sum_ns[class], use->dur_ns);
	raise_max(&u->max_ns, use->dur_ns);
	if (use->bytes)
		__sync_fetch_and_add(&u->bytes, use->bytes);
	if (use->failed)
		__sync_fetch_and_add(&u->errors, 1);
	if (last)
		__builtin_memcpy(u->last, last, sizeof(u->last));
}

static __always_inline void use_enter(void *map, const struct wire_use_key *key,
				      const struct use *use, const void *last)
{
	struct wire_use *u = bpf_map_lookup_elem(map, key) ?: use_make(map, key);

	if (u)
		use_add(u, use, last);
}

#endif
