/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nodes.bpf.h: which xlator is which: an address in a process -> its place in a target's graph, as
 * the collector tells it.
 */
#ifndef BRICKTOP_NODES_BPF_H
#define BRICKTOP_NODES_BPF_H

#include "slots.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct wire_node_key);
	__type(value, struct wire_node);
} nodes SEC(".maps");

/* Changes whenever "nodes" has changed; never 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} generation SEC(".maps");

static __always_inline __u32 node_generation(void)
{
	__u32 zero = 0, *n = bpf_map_lookup_elem(&generation, &zero);

	return n ? *n : 0;
}

static __always_inline struct wire_node *node_get(__u32 tgid, __u64 xlator)
{
	struct wire_node_key key = { .xlator = xlator, .tgid = tgid };

	return bpf_map_lookup_elem(&nodes, &key);
}

#endif
