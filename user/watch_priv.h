/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_priv.h: the inside of struct watch, shared by watch.c (memory) and watch_probe.c (probes).
 */
#ifndef BRICKTOP_WATCH_PRIV_H
#define BRICKTOP_WATCH_PRIV_H

#include "watch.h"

#define WATCH_MAX_BACKGROUND 512

struct watch_target {
	unsigned int idx; /* in the model */
	struct target target;
	uint64_t graph_key; /* graph shown now */
	size_t graph;       /* its place in gp->graphs; SIZE_MAX: gone */
	__u16 *layers;      /* wire layer of each of the graph's xlators */
};

struct watch {
	pid_t pid;
	struct gluster_proc *gp;
	struct watch_target *targets;
	size_t n_targets;

	struct source_probes probes;
	bool attached, proven; /* proven: hits came from more than the main thread */
	uint64_t attached_ns;
	uint64_t wound_at_attach;
	char sites_text[256];

	/* discovery of the callbacks of stacks that xlators make themselves */
	uint64_t armed_until_ns, next_arm_ns, backoff_ns;
	uint64_t background[WATCH_MAX_BACKGROUND]; /* callback addresses probed already */
	size_t n_background;
	uint64_t created_seen, walked_seen;
};

/* Number of the graph that is shown for a target now, by key or, on a client, by use; SIZE_MAX. */
size_t watch_find_graph(const struct watch *w, const struct watch_target *wt);

/* Tell the programs the addresses of all xlators of all targets. 0 or -errno. */
int watch_tell_nodes(struct watch *w, struct source *src);

/* Requests that completed, by the process's own count, since it started (all targets). */
uint64_t watch_completed(struct watch *w);

#endif
