/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_priv.h: what the model's own files share: how counters are folded into a window, what is
 * known of a target's graph, and the pieces a snapshot is built from. For model*.c alone.
 *
 * Wire layer numbers are given out in order: the i-th xlator ever known of a target is layer
 * WIRE_LAYER_XLATOR + i, so the number itself is the index into model_graph.known.
 */
#ifndef BRICKTOP_MODEL_PRIV_H
#define BRICKTOP_MODEL_PRIV_H

#include "gluster_layout.h"
#include "model.h"

#define MODEL_FIXED_LAYERS     WIRE_LAYER_XLATOR
#define MODEL_MAX_NODES        1024 /* xlators of one graph */
#define MODEL_MAX_KNOWN        (0x10000 - WIRE_LAYER_XLATOR)
#define MODEL_MAX_TARGET_SLOTS 4096 /* twice what the BPF side gives a target and more */
#define MODEL_MAX_OFF          256
#define MODEL_NONE             0xffffffffU

_Static_assert(GLUSTER_MAX_FOP <= 64, "fops are kept in 64-bit sets");

/* A growing counter: its last value and what the window has added. */
struct model_counter {
	uint64_t last, win;
};

/* One bucket; last is the raw 32-bit word, whose differences are taken modulo 2^32. */
struct model_cell {
	uint64_t win;
	uint32_t last;
};

/* Buckets low .. low + n - 1; all others are zero and have no cell: most slots use a tenth of them.
 */
struct model_hist {
	unsigned int low, n;
	struct model_cell *cells;
};

/* One distribution of a slot: self or inclusive time. */
struct model_side {
	struct model_counter sum;
	uint64_t max_last;
	uint64_t max_win; /* exact maximum, where the window raised it; 0 where not */
	struct model_hist hist;
};

struct model_slot {
	struct wire_slot_key key;
	struct model_counter count, errors, bytes;
	struct model_counter more;                /* modulo 2^64: see model_slot_met() */
	struct model_counter no_errors, no_bytes; /* passages of which these are not known */
	struct model_side self, incl;
};

/* Sum of distributions; a snap_dist is made of it. */
struct model_sum {
	uint64_t count, sum_ns, max_ns;
	uint64_t buckets[HIST_BUCKETS];
};

/* What a process said of one xlator and fop. Latency since lat_base_*, or since it was reset. */
struct model_memory {
	struct model_counter wound, failed;
	uint64_t lat_count, lat_base_count;
	double lat_total_ns, lat_base_ns;
	bool has_counts, has_latency;
};

/* What was lost, of one target or of nobody knows whose. */
struct model_losses {
	struct model_counter losses[WIRE_LOSSES], recursion, uprobe_missed;
	bool has_recursion, has_uprobe_missed;
};

struct model_known {
	char id[64], type[128];
	bool current;                       /* in the graph in use */
	unsigned int order;                 /* place in its graph */
	unsigned int *children, n_children; /* indices into known */
	uint64_t fed, fresh;                /* sets of fops: ever fed; next value counts from 0 */
	struct model_memory *memory[GLUSTER_MAX_FOP];
};

struct model_graph {
	struct model_known *known;
	size_t n_known;
	unsigned int *map; /* node of the graph in use -> index into known */
	size_t n_nodes;
};

struct model_in_flight {
	bool fed;
	bool unknown, start_unknown; /* could not be told when last asked; when the window began */
	unsigned int now;
	int64_t at_start; /* may fall below 0 when a process dies with its requests */
	uint64_t oldest_ns, sum, samples;
};

/* A thread of the window. The base is what it had counted when the window began. */
struct model_thr {
	struct model_thread last;
	bool has_base, alive;
	uint64_t base_oncpu_ns, base_runnable_ns, from_ns, seen_ns;
};

struct model_threads {
	struct model_thr *rows; /* ascending by tid, then by start */
	size_t n;
};

struct model_tgt {
	char kind[16], name[512], device[256], fstype[32], version[32], layout[32];
	int pid;
	unsigned int n_procs;
	enum wire_root root;
	struct model_graph graph;
	struct model_in_flight in_flight[GLUSTER_MAX_FOP];
	uint64_t late_calls[GLUSTER_MAX_FOP]; /* since the last statistics; see model_feed_late() */
	struct model_counter checks[WIRE_CHECKS];
	struct model_losses lost;
	struct snap_cost cost;
	struct snap_oldest oldest;
	struct snap_probes probes;
	bool gone;
	uint64_t gone_ns;                  /* when it ended, CLOCK_MONOTONIC */
	bool unreadable, start_unreadable; /* its memory, at the last look; when the window began */
	unsigned int restarts;
	size_t n_slots;
	struct model_threads threads;
};

struct model_uses;    /* model_uses.c: files, or applications */
struct model_devices; /* model_blockdev.c: the host's block devices */

struct model {
	struct model_layer layers[MODEL_FIXED_LAYERS]; /* title NULL: no such layer */
	struct model_tgt *targets[WIRE_MAX_TARGETS];
	struct model_losses unassigned, device_losses;
	struct model_slot **slots;     /* hash table, open addressing */
	size_t n_slots, slot_cap;      /* cap is a power of two */
	struct model_devices *devices; /* NULL: none was fed */
	struct model_uses *uses[2];    /* by enum model_use_table; likewise */
	struct snap_off off[MODEL_MAX_OFF];
	size_t n_off;
	bool window_open;
	uint64_t start_mono_ns;
	int64_t start_wall_ns;
};

/* An operation under construction, with what sorting and coverage need and a snapshot does not. */
struct model_op {
	struct snap_op op;
	enum wire_root root;
	unsigned int fop;  /* MODEL_NONE: not a fop of the process */
	unsigned int rank; /* users' requests 0, internal 1, background 2, local 3 */
	double total_ns;
};

/* ---- model.c: hash tables ----------------------------------------------- */
/* FNV-1a over a key's bytes; it must have no uninitialized padding. */
size_t model_hash(const void *key, size_t size);

/* ---- model_text.c: bounded text; a cut never splits a UTF-8 character -- */
void model_text_set(char *dst, size_t dst_size, const char *src);
void model_text_add(char *dst, size_t dst_size, const char *src);
void model_text_add_number(char *dst, size_t dst_size, unsigned int number);

/* ---- model_fold.c: counters -> window ---------------------------------- */
/* fresh: the counter started again from 0 since it was last fed. */
void model_counter_fold(struct model_counter *c, uint64_t now, bool fresh);
/* 0 or -ENOMEM; on failure the slot is as before. */
int model_slot_fold(struct model_slot *s, const struct wire_slot *sum);
void model_slot_start(struct model_slot *s);
/*
 * Of the window's passages: of a root row those in which every node's sum check holds, of a row
 * inside a span how often it was met. The two words behind it are not read at once: 0 at least.
 */
uint64_t model_slot_met(const struct model_slot *s);
void model_slot_free(struct model_slot *s);
void model_sum_add(struct model_sum *sum, const struct model_side *side, uint64_t count);
void model_sum_dist(const struct model_sum *sum, struct snap_dist *ret_dist);
/* How many durations the buckets have. */
uint64_t model_sum_entered(const struct model_sum *sum);
/* The smallest bucket at or below which ppm millionths of all n durations lie, in ns. */
double model_sum_quantile(const struct model_sum *sum, uint64_t n, unsigned int ppm);
/* One distribution that is no slot's. 0 or -ENOMEM; on failure it is as before. */
int model_side_fold(struct model_side *side, uint64_t sum, uint64_t max, const __u32 *buckets);
void model_side_start(struct model_side *side);
/* The whole of one side of a slot. */
void model_side_dist(const struct model_side *side, uint64_t count, struct snap_dist *ret_dist);

/* ---- model_graph.c: xlators and their names ---------------------------- */
/* Take over a graph: 0, -EINVAL for links out of range, -ENOSPC, -ENOMEM; unchanged on failure. */
int model_graph_set(struct model_graph *g, const struct model_node *nodes, size_t n_nodes,
		    bool new_process, __u16 *ret_layers);
void model_graph_free(struct model_graph *g);
void model_graph_start(struct model_graph *g);
int model_graph_feed(struct model_graph *g, unsigned int node, unsigned int fop,
		     const struct model_stat *stat);
/* NULL where the layer is not an xlator of this target. */
const struct model_known *model_graph_layer(const struct model_graph *g, unsigned int layer);
/*
 * Shortest way down the children links: fills prev (n_known words, caller's) so that it can be
 * followed from to back to from. false: there is none.
 */
bool model_graph_path(const struct model_graph *g, unsigned int from, unsigned int to,
		      unsigned int *prev, unsigned int *queue);

/* ---- model_tree.c: slots of one operation -> rows ---------------------- */
/* The slot counts whole operations: those of a root, or of requests that could not be split. */
bool model_is_root(const struct wire_slot_key *key);
/* Passages of requests in which layers were off for a time (WIRE_SUB_UNCOVERED). */
bool model_is_uncovered(const struct wire_slot_key *key);
int model_tree_build(const struct model *m, const struct model_tgt *t,
		     const struct model_slot *const *slots, size_t n_slots,
		     struct model_op *ret_op);

/* ---- model_memory.c: the process's own statistics -> rows -------------- */
/* The first xlator below the root that counts its calls, or NULL; and the calls that it received.
 */
const struct model_known *model_memory_first(const struct model_graph *g);
bool model_memory_calls(const struct model_tgt *t, unsigned int fop, bool lifetime,
			uint64_t *ret_calls);
/* true where any xlator was called, or ended a frame, in the window. */
bool model_memory_active(const struct model_tgt *t, unsigned int fop, bool lifetime);
int model_memory_build(const struct model_tgt *t, unsigned int fop, bool lifetime,
		       struct model_op *ret_op);

/* ---- model_threads.c: threads and their pools --------------------------- */
/* A window begins at mono_ns: what ended before it is forgotten. */
void model_threads_start(struct model_threads *t, uint64_t mono_ns);
void model_threads_gone(struct model_threads *t);
/* Fills st's threads and pools; the caller frees them. 0 or -ENOMEM. */
int model_threads_build(const struct model_threads *t, uint64_t start_ns, double secs,
			struct snap_target *st);

/* ---- model_blockdev.c: the host's block devices (NULL: there are none) -- */
void model_devices_start(struct model_devices *ds);
void model_devices_free(struct model_devices *ds);
int model_devices_build(const struct model *m, double secs, struct snapshot *snap);
void model_devices_free_snapshot(struct snapshot *snap);

/* ---- model_uses.c: files and applications (NULL: there are none) -------- */
void model_uses_start(struct model_uses *u);
void model_uses_free(struct model_uses *u);
/* Into a target whose operations are built. 0 or -ENOMEM. */
int model_uses_build(const struct model *m, unsigned int target, struct snap_target *st);
void model_uses_free_snapshot(struct snap_target *st);

/* ---- model_ops.c: all operations of a target --------------------------- */
int model_ops_build(const struct model *m, unsigned int target, const struct model_view *view,
		    double secs, struct snap_target *st);
const char *model_root_name(enum wire_root root);
/* Layers number their own operations: the one by which a local slot's op is named; else 0. */
unsigned int model_op_layer(const struct wire_slot_key *key);

#endif
