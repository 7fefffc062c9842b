/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h: from growing counters to a snapshot. Pure: no I/O, no clock, no globals, no threads;
 * what time it is and what was counted comes in by model_feed_*(), the picture goes out by
 * model_tick().
 *
 * All counters fed are cumulative; the model subtracts. A counter that falls (a statedump reset, a
 * restarted process) starts a new baseline and is never shown as a negative or huge rate.
 */
#ifndef BRICKTOP_MODEL_H
#define BRICKTOP_MODEL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../bpf/wire.h"
#include "snapshot.h"

struct model;

/*
 * An xlator of a target's graph, or the root (index 0). In a target's first graph its wire layer is
 * WIRE_LAYER_XLATOR + index; the root's always is WIRE_LAYER_XLATOR. Names are sanitized (text.h).
 */
struct model_node {
	char id[64];
	char type[128];
	unsigned int children[64]; /* indices */
	unsigned int n_children;
};

struct model_target {
	char kind[16], name[512], device[256], fstype[32], version[32], layout[32];
	int pid;
	unsigned int n_procs; /* of a mount: processes behind it that are targets of their own */
	enum wire_root root;  /* of its requests: WIRE_ROOT_BRICK or WIRE_ROOT_CLIENT */
	const struct model_node *nodes;
	size_t n_nodes;
};

/* A fixed layer (a row of layers.def), by wire layer number 1 .. 63. Its strings outlive the model.
 */
struct model_layer {
	unsigned int layer;
	const char *title, *kind;
	const char *const *subs; /* sub number -> name, or NULL */
	unsigned int n_subs;
};

/* What the process's own memory says of one xlator and fop; cumulative since the process started.
 */
struct model_stat {
	uint64_t wound, failed, lat_count;
	double lat_total_ns;
	bool has_counts, has_latency;
};

int model_new(const struct model_layer *layers, size_t n_layers, struct model **ret_m);
void model_free(struct model *m);

/*
 * Add a target, or replace its graph (same idx; a client that switched, a brick that restarted).
 * The layer numbers of former graphs keep their names as long as the model lives; nodes of the new
 * graph with an id and type already known keep their layer number, others get fresh ones.
 * ret_layers, if given, receives n_nodes wire layer numbers. A graph that differs, or a new pid,
 * has statistics that begin at 0. 0; -EINVAL: links or idx out of range; -ENOSPC: more than 65,472
 * xlators in all; -ENOMEM. On failure nothing has changed.
 */
int model_set_target(struct model *m, unsigned int idx, const struct model_target *t,
		     __u16 *ret_layers);

/*
 * Everything below is the state at the moment of feeding; feed in any order, then model_tick(). A
 * target never set: -ENOENT, or nothing happens. A slot that appears counts from 0; statistics fed
 * for the first time are a baseline. model_feed_in_flight() must also be fed the fops that have
 * none: the figure shown is the mean of the window's samples.
 */
int model_feed_slot(struct model *m, const struct wire_slot_key *key, const struct wire_slot *sum);
int model_feed_stats(struct model *m, unsigned int target, unsigned int node, unsigned int fop,
		     const struct model_stat *stat);
/*
 * Requests of a fop since the process counts, as last fed: calls that the first xlator below the
 * root received that counts any. false: the process does not say.
 */
bool model_requests(const struct model *m, unsigned int target, unsigned int fop,
		    uint64_t *ret_calls);
/* The node that these are counted at. false: none is. */
bool model_requests_node(const struct model *m, unsigned int target, unsigned int *ret_node);
void model_feed_in_flight(struct model *m, unsigned int target, unsigned int fop, unsigned int n,
			  uint64_t oldest_ns);
/* How many are in flight could not be told this time: neither the figure nor coverage is shown. */
void model_feed_in_flight_unknown(struct model *m, unsigned int target);
/*
 * Whether the process's memory could be read this time. While it cannot, what was read before
 * stands: nothing is said of rates, coverage and what is in flight.
 */
void model_feed_readable(struct model *m, unsigned int target, bool readable);
/*
 * Fed after the slots: requests of a fop that came in by then, counted as in model_requests(). What
 * came in between, or was in flight before, may be in the slots and in no count yet.
 */
void model_feed_late(struct model *m, unsigned int target, unsigned int fop, uint64_t calls);
/* Replaces the one fed before; invalid: there is none, or it is not known. */
void model_feed_oldest(struct model *m, unsigned int target, const struct snap_oldest *oldest);
void model_feed_probes(struct model *m, unsigned int target, const struct snap_probes *probes);
void model_feed_checks(struct model *m, unsigned int target, const __u64 checks[WIRE_CHECKS]);
/*
 * recursion, uprobe_missed: MODEL_NOT_COUNTED where nobody counts them. target MODEL_UNASSIGNED:
 * what was lost of nobody knows which of the targets; MODEL_DEVICES: in the table of the host's
 * block devices, where other things are looked at, too.
 */
#define MODEL_NOT_COUNTED (~0ULL)
#define MODEL_UNASSIGNED  WIRE_MAX_TARGETS
#define MODEL_DEVICES     (WIRE_MAX_TARGETS + 1)
void model_feed_lost(struct model *m, unsigned int target, const __u64 losses[WIRE_LOSSES],
		     uint64_t recursion, uint64_t uprobe_missed);
void model_feed_cost(struct model *m, unsigned int target, const struct snap_cost *cost);
/* gone_ns: when its process ended (CLOCK_MONOTONIC); 0: it is there. */
void model_feed_gone(struct model *m, unsigned int target, uint64_t gone_ns, unsigned int restarts);
/*
 * What cannot be seen, and why; the last reason for the same thing counts. Of one target, or of all
 * (SNAP_ALL_TARGETS, and model_feed_off()). 0, or -ENOSPC: one thing too many.
 */
int model_feed_off_target(struct model *m, int target, const char *what, const char *reason);
int model_feed_off(struct model *m, const char *what, const char *reason);
/* It can be seen again. */
void model_clear_off(struct model *m, int target, const char *what);

/* One thread of a target's process, now; cumulative since the thread began. */
struct model_thread {
	int tid;
	uint64_t start_ticks; /* of the kernel; with tid it names a thread for good */
	uint64_t born_ns;     /* the same, about, on CLOCK_MONOTONIC */
	char comm[64], pool[64];
	bool has_times; /* the kernel counts */
	uint64_t oncpu_ns, runnable_ns;
};

#define MODEL_MAX_THREADS 4096 /* of one target, ended ones of the window included */

/*
 * All threads of the target's process as of mono_ns, ascending by tid. What a thread did between
 * the last feed and its end is not known. 0, -ENOENT, -ENOMEM, or -ENOSPC: too many; some are left
 * out.
 */
int model_feed_threads(struct model *m, unsigned int target, uint64_t mono_ns,
		       const struct model_thread *threads, size_t n);

/*
 * How a row is called that stands for this slot: fills id, kind, type and reason of *ret_layer, the
 * rest is zero. 0, -ENOENT (no such target) or -ENOMEM.
 */
int model_name_layer(const struct model *m, unsigned int target, const struct wire_slot_key *key,
		     struct snap_layer *ret_layer);
/* ... and the operation that the slot is of: root, origin and op of *ret_op. */
void model_name_op(const struct model *m, const struct wire_slot_key *key, struct snap_op *ret_op);

/* The window's operations of one row of struct wire_slow, as far as they have ended. */
struct model_quantile {
	unsigned int row;
	struct wire_slot_key key; /* of one of its slots */
	uint64_t count;
	double ns; /* this or less took the share of them that was asked for */
};

/*
 * Of all rows that operations of the target ended in: *ret is the caller's (free()), in order of
 * the rows. 0, -ENOENT or -ENOMEM.
 */
int model_quantiles(const struct model *m, unsigned int target, unsigned int ppm,
		    struct model_quantile **ret, size_t *ret_n);

/* Forget the window so far: what was fed last becomes the baseline. Until then there are no rates.
 */
void model_start_window(struct model *m, uint64_t mono_ns, int64_t wall_ns);

/*
 * The window from model_start_window() until now. The snapshot is the caller's (snapshot_free()),
 * and shares nothing with the model; its kernel text is left empty. memory_only: show the process's
 * own statistics only, and from its start where lifetime is set. Then operations that only xlators
 * called among themselves have the origin "internal". 0 or -ENOMEM.
 */
struct model_view {
	bool memory_only, lifetime;
};
int model_tick(const struct model *m, uint64_t mono_ns, const struct model_view *view,
	       struct snapshot **ret_snap);
void snapshot_free(struct snapshot *snap);
/* A target's place in snapshots, which have no holes. SNAP_ALL_TARGETS: it has none. */
int model_place(const struct model *m, int target);

#endif
