/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nodes.bpf.h: which xlator is which: an address in a process -> its place in a target's graph, as
 * the collector tells it.
 */
#ifndef BRICKTOP_NODES_BPF_H
#define BRICKTOP_NODES_BPF_H

#include "span.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct wire_node_key);
	__type(value, struct wire_node);
} nodes SEC(".maps");

static __always_inline struct wire_node *node_get(__u32 tgid, __u64 xlator)
{
	struct wire_node_key key = { .xlator = xlator, .tgid = tgid };

	return bpf_map_lookup_elem(&nodes, &key);
}

#endif
