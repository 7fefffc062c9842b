/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * span.bpf.h: what every layer shares: the maps, the configuration, the histogram slots, and the
 * ledger: each thread's stack of open spans and its ring of finished ones. The accounting of spans
 * lives here, once; which spans there are is the layers' business, and who claims them the walk's.
 *
 * Several objects are loaded from this text; the collector makes them share one instance of each
 * map.
 */
#ifndef BRICKTOP_SPAN_BPF_H
#define BRICKTOP_SPAN_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

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
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WIRE_TRACED_ROWS);
	__type(key, __u32);
	__type(value, struct wire_traced);
} traced SEC(".maps");

struct span_open {
	__u64 begin;
	__u64 children_ns; /* inclusive time of spans that ended inside this one */
	__u16 layer;
	__u8 sub, part;
	__u32 pad;
};

/* wire_span.claimed: free, taken by the walk under way, or done with (or not in the ring yet). */
enum { SPAN_FREE, SPAN_CLAIMED, SPAN_ENTERED };

/* What a thread does and did; only made for threads that make a call which is watched. */
struct ledger {
	__u32 depth, dropped; /* open spans; pushes beyond WIRE_SPAN_DEPTH */
	struct span_open open[WIRE_SPAN_DEPTH];
	struct wire_span current; /* the outermost open span in the making */
	__u64 head;               /* spans ever finished */
	__u64 evicted_end;        /* end of the newest span pushed out of the ring */
	struct wire_span ring[WIRE_LEDGER];
};
_Static_assert(sizeof(struct ledger) < 64800, "a task storage value has at most 64,800 bytes");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ledger);
} ledgers SEC(".maps");

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

static __always_inline void raise_max(__u64 *max, __u64 v)
{
	__u64 old = *max;

	/* a lost race is tried once more; after that another CPU's maximum is as good */
	if (v > old && __sync_val_compare_and_swap(max, old, v) != old) {
		old = *max;
		if (v > old)
			__sync_val_compare_and_swap(max, old, v);
	}
}

/* Enter one passage: self_ns <= incl_ns. */
static __always_inline void slot_add(struct wire_pool_slot *slot, __u64 self_ns, __u64 incl_ns)
{
	__u32 b = hist_bucket(self_ns);

	__sync_fetch_and_add(&slot->count, 1);
	__sync_fetch_and_add(&slot->self_sum_ns, self_ns);
	__sync_fetch_and_add(&slot->incl_sum_ns, incl_ns);
	raise_max(&slot->self_max_ns, self_ns);
	raise_max(&slot->incl_max_ns, incl_ns);
	if (b < HIST_BUCKETS)
		__sync_fetch_and_add(&slot->bucket[b].self, 1);
	b = hist_bucket(incl_ns);
	if (b < HIST_BUCKETS)
		__sync_fetch_and_add(&slot->bucket[b].incl, 1);
}

/* ---- the ledger -------------------------------------------------------- */

/* This thread's ledger, or NULL: it has none, or its storage is busy. */
static __always_inline struct ledger *ledger_find(void)
{
	return bpf_task_storage_get(&ledgers, bpf_get_current_task_btf(), NULL, 0);
}

static __always_inline struct ledger *ledger_make(__u32 local_target)
{
	struct ledger *l = bpf_task_storage_get(&ledgers, bpf_get_current_task_btf(), NULL,
						BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!l)
		layer_drop(local_target, WIRE_LOST_STORAGE);
	return l;
}

static __always_inline struct wire_proc *proc_get(__u32 tgid)
{
	return bpf_map_lookup_elem(&procs, &tgid);
}

struct span_entry {
	const struct wire_span *span;
	const struct wire_slot_key *base;
};

static long span_enter_part(__u32 i, struct span_entry *e)
{
	const struct wire_span_part *part;
	struct wire_slot_key key = *e->base;
	struct wire_pool_slot *slot;

	if (i >= WIRE_SPAN_PARTS)
		return 1;
	barrier_var(i);
	part = &e->span->part[i];
	key.layer = part->layer;
	key.sub = part->sub;
	if (part->parent_part < WIRE_SPAN_PARTS) {
		const struct wire_span_part *up = &e->span->part[part->parent_part];

		key.parent = up->layer;
		key.parent_sub = up->sub;
	}
	slot = slot_get(&key);
	if (!slot)
		return 0;
	slot_add(slot, part->self_ns, part->incl_ns);
	if (i == 0) {
		__sync_fetch_and_add(&slot->bytes, e->span->bytes);
		__sync_fetch_and_add(&slot->errors, e->span->failed);
		__sync_fetch_and_add(&slot->holds, 1);
	}
	return 0;
}

/*
 * Enter every part of a finished span under a row of its own. Below a request base holds the
 * frame's layer as parent; a process's own span stands for itself (root local, op = its outermost
 * sub).
 */
static __always_inline void span_account(const struct wire_span *span,
					 const struct wire_slot_key *base)
{
	struct span_entry e = { .span = span, .base = base };

	bpf_loop(span->n_parts, span_enter_part, &e, 0);
}

/* Take a span before who else is after it: a walk, the ring's next turn, the session's end. */
static __always_inline int span_take(struct wire_span *span, __u32 as)
{
	return __sync_val_compare_and_swap(&span->claimed, SPAN_FREE, as) == SPAN_FREE;
}

/* A span that no request claimed is its process's own file operation. 1 where it was entered. */
static __always_inline int span_account_local(struct wire_span *span, __u32 target)
{
	struct wire_slot_key key = {
		.target = target,
		.root = WIRE_ROOT_LOCAL,
		.op = span->part[0].sub,
	};

	if (!span_take(span, SPAN_ENTERED))
		return 0;
	span_account(span, &key);
	return 1;
}

/* The outermost span has ended: remember it; what falls out of the ring unclaimed was local. */
static __always_inline void ledger_append(struct ledger *l, __u32 local_target)
{
	struct wire_span *at = &l->ring[l->head % WIRE_LEDGER];

	if (l->head >= WIRE_LEDGER && span_account_local(at, local_target))
		l->evicted_end = at->end;
	/* not free before it is whole: the end of a session looks on from another CPU */
	if (l->current.n_parts > 1) {
		*at = l->current;
	} else {
		__builtin_memcpy(at, &l->current, sizeof(*at) - sizeof(at->part));
		at->part[0] = l->current.part[0];
	}
	l->head++;
	__sync_lock_test_and_set(&at->claimed, SPAN_FREE);
}

static __always_inline void span_push(struct ledger *l, __u16 layer, __u8 sub, __u64 now)
{
	struct span_open *o;

	if (l->depth >= WIRE_SPAN_DEPTH) {
		l->dropped++;
		return;
	}
	if (l->depth == 0) {
		l->current.begin = now;
		l->current.bytes = 0;
		l->current.file = 0;
		l->current.frame = 0xffff;
		l->current.claimed = SPAN_ENTERED;
		l->current.failed = 0;
		l->current.n_parts = 0;
	}
	o = &l->open[l->depth % WIRE_SPAN_DEPTH];
	o->begin = now;
	o->children_ns = 0;
	o->layer = layer;
	o->sub = sub;
	o->part = l->current.n_parts;
	if (l->current.n_parts < WIRE_SPAN_PARTS) {
		struct wire_span_part *part = &l->current.part[l->current.n_parts++];

		part->layer = layer;
		part->sub = sub;
		part->parent_part = l->depth ? l->open[(l->depth - 1) % WIRE_SPAN_DEPTH].part :
					       0xff;
		part->calls = 1;
		part->self_ns = 0;
		part->incl_ns = 0;
	}
	l->depth++;
}

/* End the innermost open span, which must be one of this layer; returns 0, or -1 where it is not.
 */
static __always_inline int span_pop(struct ledger *l, __u16 layer, __u64 now, __u32 local_target)
{
	struct span_open *o;
	__u64 incl;

	if (l->dropped) {
		l->dropped--;
		layer_drop(local_target, WIRE_LOST_SKIPPED);
		return -1;
	}
	if (l->depth == 0)
		return -1;
	o = &l->open[(l->depth - 1) % WIRE_SPAN_DEPTH];
	if (o->layer != layer) {
		layer_drop(local_target, WIRE_LOST_UNPAIRED);
		return -1;
	}
	l->depth--;
	if (now < o->begin) {
		layer_drop(local_target, WIRE_LOST_ABSURD);
		return -1;
	}
	incl = now - o->begin;
	if (o->part < WIRE_SPAN_PARTS) {
		struct wire_span_part *part = &l->current.part[o->part];

		part->incl_ns += incl;
		part->self_ns += incl - o->children_ns;
	}
	if (l->depth) {
		l->open[(l->depth - 1) % WIRE_SPAN_DEPTH].children_ns += incl;
		return 0;
	}
	l->current.end = now;
	ledger_append(l, local_target);
	return 0;
}

#endif
