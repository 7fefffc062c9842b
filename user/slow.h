/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow.h: the keeper of slow operations. It tells the BPF programs from how long on an operation is
 * slow, takes the records of those that were, keeps the slowest few of each kind and target, and
 * counts the others: memory is bounded, whatever the limit. Pure: what has to be read or written
 * comes in by pointers; no clock.
 */
#ifndef BRICKTOP_SLOW_H
#define BRICKTOP_SLOW_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "../bpf/wire_slow.h"
#include "model.h"

#define SLOW_KEEP  20  /* operations of a kind and target that are shown, by default */
#define SLOW_SPANS 32  /* system calls of one operation that are shown: its longest */
#define SLOW_LEAST 100 /* operations without which no share of them means anything */

struct slow;

struct slow_config {
	const char *wanted;     /* as it was asked for: "5ms", "p99.9"; outlives the keeper */
	uint64_t limit_ns;      /* where ppm is 0: slow is what takes so long or longer */
	unsigned int ppm;       /* else: what takes longer than so many millionths of its like */
	unsigned int n_targets; /* at most WIRE_MAX_TARGETS */
	unsigned int keep;      /* 0: SLOW_KEEP */
};

/*
 * shared: one entry a target, zeroed, which the programs read and count in; the caller's, and there
 * as long as the keeper. 0 or -ENOMEM.
 */
int slow_new(const struct slow_config *config, struct wire_slow *shared, struct slow **ret_slow);
void slow_free(struct slow *s);

/* A record with WIRE_DUMP_SLOW. 0; -ENOMEM or -EBADMSG: it is counted as lost. */
int slow_take(struct slow *s, const void *record, size_t len);

/* A window begins: what was kept and counted is forgotten; limits stay. */
void slow_start_window(struct slow *s);

/*
 * Move limits that are shares to what the model has of its window. An operation of which too few
 * have ended keeps the limit that it has: none at first, so that nothing is slow. 0 or -ENOMEM.
 */
int slow_tick(struct slow *s, const struct model *m);

/* What a report needs to know besides. */
struct slow_view {
	const struct model *model;
	int64_t wall_ns; /* CLOCK_REALTIME when CLOCK_MONOTONIC was 0 */
	/* number that the model has for a layer of a record, 0 for unknown; NULL: the same one */
	__u16 (*real_layer)(const void *arg, __u16 layer);
	const void *arg;
};

/*
 * Add to a snapshot of that model what was slow; the keeper stays as it is. 0 or -ENOMEM: then some
 * targets have it, and snapshot_free() is fine.
 */
int slow_report(const struct slow *s, const struct slow_view *view, struct snapshot *snap);

#endif
