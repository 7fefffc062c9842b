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

/* A slot in use, and those that are the same to the model: listed from the first one. */
struct source_slot {
	struct wire_slot_key key;
	struct wire_slot_key name; /* key, with layer numbers as the model knows them */
	__u32 index;
	__u32 next; /* in known: the next of the same name; NO_SLOT */
	bool is_head;
	__u64 refused; /* what was counted there and had no room in the model */
};

/* Of a slot, by its number. */
struct source_seen {
	__u64 count; /* when last read */
	__u32 still; /* reads since, in which it was the same */
};

#define NO_SLOT 0xffffffffU

struct source {
	struct attach *attach;
	struct wire_cfg cfg;
	enum uprobe_kind kind; /* of links to come */
	bool multi_works;      /* a uprobe-multi link was made here */
	bool layers_off, static_off;
	int stats_fd;
	struct ring_buffer *ring;
	int (*on_record)(void *arg, const void *record, size_t len_bytes);
	void *on_record_arg;

	const struct wire_pool_slot *pool; /* mapped, read-only */
	const __u64 *losses, *checks;
	size_t pool_bytes, losses_bytes, checks_bytes;

	struct wire_layout layouts[MAX_SOURCE_LAYOUTS];
	__u32 n_layouts;

	/* numbers that xlators had before they were told of: [layer - WIRE_LAYER_ADOPTED] */
	__u16 real_layer[WIRE_MAX_ADOPTED]; /* 0: not known yet */
	bool is_grouped;                    /* names and lists in known are up to date */
	bool is_last;                       /* the next feed is the last one */

	struct source_slot *known; /* slots in use, as far as read */
	struct source_seen *seen;  /* [cfg.slots] */
	size_t n_known;
	__u32 used_seen; /* slots_used when they were read */
	__u32 rereads;   /* ... and how often since */

	struct meter_prog last_uprobes, last_tracepoints;
};

/* ring_buffer__new()'s callback. */
int source_on_record(void *arg, void *record, size_t len_bytes);

#endif
