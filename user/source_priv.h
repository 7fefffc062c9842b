/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_priv.h: the live source's inside, shared by source_bpf.c and attach_layers.c alone.
 */
#ifndef BRICKTOP_SOURCE_PRIV_H
#define BRICKTOP_SOURCE_PRIV_H

#include "source_bpf.h"

struct attach;
struct ring_buffer;

#define MAX_SOURCE_LAYOUTS 32

struct source_slot {
	struct wire_slot_key key;
	__u32 index;
};

struct source {
	struct attach *attach;
	struct wire_cfg cfg;
	enum uprobe_kind kind;
	bool layers_off;
	int stats_fd;
	struct ring_buffer *ring;
	int (*on_record)(void *arg, const void *record, size_t len_bytes);
	void *on_record_arg;

	const struct wire_slot *pool; /* mapped, read-only */
	const __u64 *losses, *checks;
	size_t pool_bytes, losses_bytes, checks_bytes;

	struct wire_layout layouts[MAX_SOURCE_LAYOUTS];
	__u32 n_layouts;

	struct source_slot *known; /* slots in use, as far as read */
	size_t n_known;
	__u32 used_seen; /* slots_used when they were read */

	uint64_t last_run_ns, last_uprobe_hits, last_tp_hits;
};

/* ring_buffer__new()'s callback. */
int source_on_record(void *arg, void *record, size_t len_bytes);

#endif
