/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slots.bpf.h: what every layer shares: the configuration, the maps that the collector reads, the
 * histogram slots and the counters of what is lost. What is measured it does not know.
 *
 * Several objects are loaded from this text; the collector makes them share one instance of each
 * map.
 */
#ifndef BRICKTOP_SLOTS_BPF_H
#define BRICKTOP_SLOTS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "raise.bpf.h"
#include "wire.h"

const volatile struct wire_cfg cfg SEC(".rodata.cfg");

/* ---- maps -------------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct wire_slot_key);
	__type(value, __u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct wire_pool_slot);
} pool SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} slots_used SEC(".maps");

/* One row a target, and a last one for what belongs to no known target. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, (WIRE_MAX_TARGETS + 1) * WIRE_LOSSES);
	__type(key, __u32);
	__type(value, __u64);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WIRE_MAX_TARGETS * WIRE_CHECKS);
	__type(key, __u32);
	__type(value, __u64);
} checks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct wire_proc);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_TRACED_ROWS);
	__type(key, __u32);
	__type(value, struct wire_traced);
} traced SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WIRE_TRACED_ROWS);
	__type(key, __u32);
	__type(value, struct wire_traced_hits);
} traced_hits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wire_duty);
} duty SEC(".maps");

/* See struct wire_duty. */
static __always_inline __u64 layers_since(void)
{
	__u32 zero = 0;
	struct wire_duty *d = bpf_map_lookup_elem(&duty, &zero);

	return d ? d->layers_since_ns : 0;
}

static __always_inline __u64 walk_since(void)
{
	__u32 zero = 0;
	struct wire_duty *d = bpf_map_lookup_elem(&duty, &zero);

	return d ? d->walk_since_ns : 0;
}

/* ---- losses and slots -------------------------------------------------- */

static __always_inline void layer_drop(__u32 target, enum wire_loss loss)
{
	__u32 i = (target < WIRE_MAX_TARGETS ? target : WIRE_MAX_TARGETS) * WIRE_LOSSES + loss;
	__u64 *n = bpf_map_lookup_elem(&losses, &i);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/* Give a key the next free slot. Two CPUs may race for it: the loser's slot stays unused. */
static __noinline __u32 *slot_make(const struct wire_slot_key *key)
{
	__u32 zero = 0, i, *used;

	if (!key)
		return NULL;
	used = bpf_map_lookup_elem(&slots_used, &zero);
	if (!used || *used >= cfg.slots)
		goto out_full;
	i = __sync_fetch_and_add(used, 1);
	if (i >= cfg.slots || bpf_map_update_elem(&slots, key, &i, BPF_NOEXIST) == -7 /* E2BIG */)
		goto out_full;
	return bpf_map_lookup_elem(&slots, key);

out_full:
	return NULL;
}

/* Number of a key's slot, or NULL: there is none left. */
static __always_inline __u32 *slot_number(const struct wire_slot_key *key)
{
	__u32 *at = bpf_map_lookup_elem(&slots, key);

	if (!at)
		at = slot_make(key);
	if (!at)
		layer_drop(key->target, WIRE_LOST_MAP_FULL);
	return at;
}

/* This CPU's part of a slot. */
static __always_inline struct wire_pool_slot *slot_at(__u32 number)
{
	__u32 i = number + cfg.slots * (bpf_get_smp_processor_id() % (cfg.shards ?: 1));

	return bpf_map_lookup_elem(&pool, &i);
}

static __always_inline struct wire_pool_slot *slot_get(const struct wire_slot_key *key)
{
	__u32 *at = slot_number(key);

	return at ? slot_at(*at) : NULL;
}

/* Enter one passage: self_ns <= incl_ns. */
static __always_inline void slot_add(struct wire_pool_slot *slot, __u64 self_ns, __u64 incl_ns)
{
	__u32 b = hist_bucket(self_ns), at = b;

	if (incl_ns != self_ns) {
		__sync_fetch_and_add(&slot->below_ns, incl_ns - self_ns);
		at = hist_bucket(incl_ns);
	}
	__sync_fetch_and_add(&slot->self_ns, self_ns);
	raise_max(&slot->self_max_ns, self_ns);
	raise_max(&slot->incl_max_ns, incl_ns);
	if (b >= HIST_BUCKETS || at >= HIST_BUCKETS)
		return;
	if (at == b) {
		__sync_fetch_and_add(&slot->bucket[b].both, 1ULL << 32 | 1);
		return;
	}
	__sync_fetch_and_add(&slot->bucket[b].self, 1);
	__sync_fetch_and_add(&slot->bucket[at].incl, 1);
}

static __always_inline struct wire_proc *proc_get(__u32 tgid)
{
	return bpf_map_lookup_elem(&procs, &tgid);
}

#endif
