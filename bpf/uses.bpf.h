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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct wire_uses_made);
} uses_made SEC(".maps");

/* One request, or one call. */
struct use {
	__u64 dur_ns, bytes;
	__u32 class; /* enum wire_use_class */
	__u32 failed;
};

/* A new row. Not inlined: its stack is free again before the rest needs some. */
static __noinline struct wire_use *use_make(void *map, enum wire_use_table table,
					    const struct wire_use_key *key)
{
	__u32 target = key->target;
	struct wire_uses_made *made = bpf_map_lookup_elem(&uses_made, &target);
	struct wire_use fresh = {};

	fresh.born_ns = bpf_ktime_get_ns();
	if (!bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST) && made)
		__sync_fetch_and_add(&made->rows[table], 1);
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

static __always_inline void use_file(const struct wire_use_key *key, const struct use *use,
				     const struct wire_app *last)
{
	struct wire_use *u = bpf_map_lookup_elem(&files, key);

	if (!u)
		u = use_make(&files, WIRE_USES_FILES, key);
	if (u)
		use_add(u, use, last);
}

/* name: of the thread, or NULL. */
static __always_inline void use_app(const struct wire_use_key *key, const struct use *use,
				    const char *name)
{
	struct wire_use *u = bpf_map_lookup_elem(&apps, key);

	if (!u)
		u = use_make(&apps, WIRE_USES_APPS, key);
	if (u)
		use_add(u, use, name);
}

#endif
