/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_graph.c: the xlators of a target: which layer number each has, what lies below it, and what
 * the process's own statistics say of it. Owns the numbers' history over graph switches and
 * restarts. Must not know slots or how rows are made.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

/* A replacement being prepared: nothing of the old graph changes until all of it is in memory. */
struct graph_change {
	unsigned int *map;       /* node -> index into known */
	unsigned int **children; /* node -> indices into known */
	bool *taken;             /* known entries already given to a node */
	size_t n_nodes, n_known; /* n_known: after the change */
};

static void free_change(struct graph_change *c)
{
	for (size_t i = 0; c->children && i < c->n_nodes; i++)
		free(c->children[i]);
	free(c->children);
	free(c->map);
	free(c->taken);
}

static bool links_in_range(const struct model_node *nodes, size_t n)
{
	const size_t max = sizeof(nodes->children) / sizeof(nodes->children[0]);

	for (size_t i = 0; i < n; i++) {
		if (nodes[i].n_children > max)
			return false;
		for (unsigned int c = 0; c < nodes[i].n_children; c++)
			if (nodes[i].children[c] >= n)
				return false;
	}
	return true;
}

/* The entry of an xlator of this id and type that no other node of the new graph has. */
static unsigned int find_known(const struct model_graph *g, const struct graph_change *c,
			       const struct model_node *node)
{
	for (size_t k = 1; k < g->n_known; k++)
		if (!c->taken[k] && !strncmp(g->known[k].id, node->id, sizeof(node->id) - 1) &&
		    !strncmp(g->known[k].type, node->type, sizeof(node->type) - 1))
			return (unsigned int)k;
	return MODEL_NONE;
}

/* Entry 0 is always the root, whatever it is called: layer WIRE_LAYER_XLATOR means "root". */
static int number_nodes(const struct model_graph *g, const struct model_node *nodes,
			struct graph_change *c)
{
	c->n_known = g->n_known;
	for (size_t i = 0; i < c->n_nodes; i++) {
		unsigned int k = i == 0 && g->n_known ? 0 : find_known(g, c, &nodes[i]);

		if (k == MODEL_NONE) {
			if (c->n_known >= MODEL_MAX_KNOWN)
				return -ENOSPC;
			k = (unsigned int)c->n_known++;
		} else {
			c->taken[k] = true;
		}
		c->map[i] = k;
	}
	return 0;
}

static int link_nodes(const struct model_node *nodes, struct graph_change *c)
{
	for (size_t i = 0; i < c->n_nodes; i++) {
		c->children[i] = calloc(nodes[i].n_children + 1U, sizeof(*c->children[i]));
		if (!c->children[i])
			return -ENOMEM;
		for (unsigned int j = 0; j < nodes[i].n_children; j++)
			c->children[i][j] = c->map[nodes[i].children[j]];
	}
	return 0;
}

static int prepare_change(struct model_graph *g, const struct model_node *nodes, size_t n_nodes,
			  struct graph_change *c)
{
	struct model_known *grown;
	int err;

	c->n_nodes = n_nodes;
	c->map = calloc(n_nodes + 1, sizeof(*c->map));
	c->children = calloc(n_nodes + 1, sizeof(*c->children));
	c->taken = calloc(g->n_known + 1, sizeof(*c->taken));
	if (!c->map || !c->children || !c->taken)
		return -ENOMEM;
	err = number_nodes(g, nodes, c);
	if (!err)
		err = link_nodes(nodes, c);
	if (err)
		return err;
	if (c->n_known > g->n_known) {
		grown = realloc(g->known, c->n_known * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		g->known = grown;
	}
	return 0;
}

/* Same xlators with the same links: the process may have moved them, but did not build a new graph.
 */
static bool same_graph(const struct model_graph *g, const struct model_node *nodes,
		       const struct graph_change *c)
{
	if (c->n_nodes != g->n_nodes)
		return false;
	for (size_t i = 0; i < c->n_nodes; i++) {
		const struct model_known *k;

		if (c->map[i] != g->map[i])
			return false;
		k = &g->known[c->map[i]];
		if (k->n_children != nodes[i].n_children)
			return false;
		for (unsigned int j = 0; j < k->n_children; j++)
			if (k->children[j] != c->children[i][j])
				return false;
	}
	return true;
}

/*
 * mount/fuse and protocol/server are not part of what a switch replaces: the old one stays, with
 * all that it has counted.
 */
static bool root_survives(const struct model_graph *g, const struct model_node *nodes)
{
	const char *type = nodes[0].type;

	return !strncmp(g->known[0].type, type, sizeof(nodes[0].type) - 1) &&
	       (!strcmp(type, "mount/fuse") || !strcmp(type, "protocol/server"));
}

/* What of a target's statistics begins at 0. */
enum reset { RESET_NOTHING, RESET_GRAPH, RESET_PROCESS };

/* Cannot fail. Counters of new xlators begin at 0 while we watch: their first value is a
 * difference. */
static void commit_change(struct model_graph *g, const struct model_node *nodes,
			  struct graph_change *c, enum reset reset)
{
	bool keeps_root = reset == RESET_GRAPH && c->n_nodes && root_survives(g, nodes);

	if (c->n_known > g->n_known)
		memset(g->known + g->n_known, 0, (c->n_known - g->n_known) * sizeof(*g->known));
	g->n_known = c->n_known;
	for (size_t k = 0; k < g->n_known; k++) {
		g->known[k].current = false;
		if (reset != RESET_NOTHING && (k || !keeps_root))
			g->known[k].fresh = ~0ULL;
	}
	for (size_t i = 0; i < c->n_nodes; i++) {
		struct model_known *k = &g->known[c->map[i]];

		model_text_set(k->id, sizeof(k->id), nodes[i].id);
		model_text_set(k->type, sizeof(k->type), nodes[i].type);
		k->current = true;
		k->order = (unsigned int)i;
		free(k->children);
		k->children = c->children[i];
		k->n_children = nodes[i].n_children;
		c->children[i] = NULL;
	}
	free(g->map);
	g->map = c->map;
	g->n_nodes = c->n_nodes;
	c->map = NULL;
}

int model_graph_set(struct model_graph *g, const struct model_node *nodes, size_t n_nodes,
		    bool new_process, __u16 *ret_layers)
{
	enum reset reset = RESET_NOTHING;
	struct graph_change c = { 0 };
	int err;

	if (n_nodes > MODEL_MAX_NODES || !links_in_range(nodes, n_nodes))
		return -EINVAL;
	err = prepare_change(g, nodes, n_nodes, &c);
	if (err)
		goto out_free;
	if (g->n_nodes && new_process)
		reset = RESET_PROCESS;
	else if (g->n_nodes && !same_graph(g, nodes, &c))
		reset = RESET_GRAPH;
	commit_change(g, nodes, &c, reset);
	for (size_t i = 0; ret_layers && i < n_nodes; i++)
		ret_layers[i] = (__u16)(WIRE_LAYER_XLATOR + g->map[i]);
out_free:
	free_change(&c);
	return err;
}

void model_graph_free(struct model_graph *g)
{
	for (size_t k = 0; k < g->n_known; k++) {
		free(g->known[k].children);
		for (unsigned int fop = 0; fop < GLUSTER_MAX_FOP; fop++)
			free(g->known[k].memory[fop]);
	}
	free(g->known);
	free(g->map);
}

void model_graph_start(struct model_graph *g)
{
	for (size_t k = 0; k < g->n_known; k++) {
		for (unsigned int fop = 0; fop < GLUSTER_MAX_FOP; fop++) {
			struct model_memory *mem = g->known[k].memory[fop];

			if (!mem)
				continue;
			mem->wound.win = mem->failed.win = 0;
			mem->lat_base_count = mem->lat_count;
			mem->lat_base_ns = mem->lat_total_ns;
		}
	}
}

/*
 * A figure that was not known before begins at its present value, or at 0 where all of it is new.
 * Latencies are zeroed by a statedump: one that fell is shown since then, what was before is gone.
 */
static void fold_latency(struct model_memory *mem, const struct model_stat *stat, bool fresh)
{
	bool had = mem->has_latency;

	mem->has_latency = stat->has_latency && isfinite(stat->lat_total_ns) &&
			   stat->lat_total_ns >= 0;
	if (!mem->has_latency)
		return;
	if (fresh ||
	    (had && (stat->lat_count < mem->lat_count || stat->lat_total_ns < mem->lat_total_ns))) {
		mem->lat_base_count = 0;
		mem->lat_base_ns = 0;
	} else if (!had) {
		mem->lat_base_count = stat->lat_count;
		mem->lat_base_ns = stat->lat_total_ns;
	}
	mem->lat_count = stat->lat_count;
	mem->lat_total_ns = stat->lat_total_ns;
}

static void fold_counts(struct model_memory *mem, const struct model_stat *stat, bool fresh)
{
	bool had = mem->has_counts;

	mem->has_counts = stat->has_counts;
	if (!stat->has_counts)
		return;
	if (!had && !fresh) {
		mem->wound.last = stat->wound;
		mem->failed.last = stat->failed;
	}
	model_counter_fold(&mem->wound, stat->wound, fresh || stat->wound < mem->wound.last);
	model_counter_fold(&mem->failed, stat->failed, fresh || stat->failed < mem->failed.last);
}

int model_graph_feed(struct model_graph *g, unsigned int node, unsigned int fop,
		     const struct model_stat *stat)
{
	struct model_known *k;
	uint64_t bit;
	bool fresh;

	if (node >= g->n_nodes || fop >= GLUSTER_MAX_FOP)
		return -EINVAL;
	k = &g->known[g->map[node]];
	bit = 1ULL << fop;
	fresh = k->fresh & bit;
	if (!k->memory[fop]) {
		if (!stat->has_counts && !stat->has_latency)
			return 0;
		/* Most xlators never see most fops: those cost nothing. */
		if (!stat->wound && !stat->failed && !stat->lat_count)
			goto out_fed;
		k->memory[fop] = calloc(1, sizeof(*k->memory[fop]));
		if (!k->memory[fop])
			return -ENOMEM;
		/* Fed before, and nothing was kept: it was 0 then, so all of it is new. */
		fresh = fresh || (k->fed & bit);
	}
	fold_counts(k->memory[fop], stat, fresh);
	fold_latency(k->memory[fop], stat, fresh);
out_fed:
	k->fed |= bit;
	k->fresh &= ~bit;
	return 0;
}

const struct model_known *model_graph_layer(const struct model_graph *g, unsigned int layer)
{
	if (layer < WIRE_LAYER_XLATOR || layer - WIRE_LAYER_XLATOR >= g->n_known)
		return NULL;
	return &g->known[layer - WIRE_LAYER_XLATOR];
}

bool model_graph_path(const struct model_graph *g, unsigned int from, unsigned int to,
		      unsigned int *prev, unsigned int *queue)
{
	size_t head = 0, tail = 0;

	if (from >= g->n_known || to >= g->n_known)
		return false;
	for (size_t k = 0; k < g->n_known; k++)
		prev[k] = MODEL_NONE;
	prev[from] = from;
	queue[tail++] = from;
	while (head < tail && prev[to] == MODEL_NONE) {
		const struct model_known *k = &g->known[queue[head]];

		for (unsigned int i = 0; i < k->n_children; i++) {
			unsigned int c = k->children[i];

			if (prev[c] != MODEL_NONE)
				continue;
			prev[c] = queue[head];
			queue[tail++] = c;
		}
		head++;
	}
	return prev[to] != MODEL_NONE;
}
