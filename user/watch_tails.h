/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_tails.h: which xlators of a process share frames because they wind by tail, told from the
 * process's own statistics, and the probes at their fops' entries that let the walk tell them
 * apart. Shared by watch*.c alone; knows nothing of how marks are used.
 */
#ifndef BRICKTOP_WATCH_TAILS_H
#define BRICKTOP_WATCH_TAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "../bpf/wire.h"
#include "gluster_graph.h"

struct watch;
struct source;

/* An xlator whose entries are probed: a set of fops, 1 << fop. */
struct watch_tail {
	uint64_t xlator; /* its address in the process */
	uint64_t fops, since_ns;
};

/* Zeroed is empty. */
struct watch_tails {
	struct watch_tail *tail;
	size_t n;
	struct watch_code {
		uint64_t addr; /* of a fop function, in the process */
		bool probed;   /* false: it cannot be, or not cheaply */
	} * code;
	size_t n_code, n_dear; /* n_dear: without a cheap instruction */
	bool failed;           /* they could not be attached: not tried again */
};

/*
 * Which fops of which xlators of a graph share frames, as far as the process's counts show:
 * members[i] is the set of xl[i]. stats[i] are xl[i]'s. Pure.
 *
 * STACK_WIND counts its target, unless that is pass_through, and the frame's latency goes to the
 * xlator it ends in; STACK_WIND_TAIL counts only a target without children (GlusterFS
 * libglusterfs/src/glusterfs/stack.h). So who is called and ends no frames has handed them on: to
 * the next one below that ends some and was not wound to, or is a leaf.
 */
void watch_tails_find(const struct gluster_graph *g,
		      const struct gluster_stat (*stats)[GLUSTER_MAX_FOP], uint64_t *members);

/*
 * Probe the entries of members not probed yet, in every graph shown. 0, or -errno and a line in err
 * where some group stays whole; what could be probed is.
 */
int watch_tails_update(struct watch *w, struct source *src, char *err, size_t err_size);

/* The probed fops of an xlator: sets marked and since_ns of its node. */
void watch_tails_tell(const struct watch_tails *t, uint64_t xlator, struct wire_node *node);

/* The probes are gone: forget them. */
void watch_tails_reset(struct watch_tails *t);

#endif
