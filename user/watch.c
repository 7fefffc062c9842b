/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c: the memory side of a watched process: graphs to model targets, statistics and requests
 * in flight to the model's feeds. See watch.h.
 */
#include "watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gluster_stuck.h"
#include "watch_priv.h"

#define MAX_IN_FLIGHT 4096

int watch_open(pid_t pid, struct watch **ret_w, char *err, size_t err_size)
{
	struct watch *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->pid = pid;
	ret = gluster_proc_open(pid, &w->gp, err, err_size);
	if (ret) {
		free(w);
		return ret;
	}
	*ret_w = w;
	return 0;
}

void watch_close(struct watch *w, struct source *src)
{
	size_t i;

	if (!w)
		return;
	if (src)
		watch_detach(w, src);
	for (i = 0; i < w->n_targets; i++)
		free(w->targets[i].layers);
	free(w->targets);
	gluster_proc_close(w->gp);
	free(w);
}

pid_t watch_pid(const struct watch *w)
{
	return w->pid;
}

/* ---- graphs ------------------------------------------------------------ */

size_t watch_find_graph(const struct watch *w, const struct watch_target *wt)
{
	size_t i, found = SIZE_MAX;

	for (i = 0; i < w->gp->n_graphs; i++) {
		const struct gluster_graph *g = &w->gp->graphs[i];

		if (g->is_brick ? g->key == wt->graph_key : g->is_active)
			return i;
		if (!g->is_brick && g->key == wt->graph_key)
			found = i;
	}
	return found;
}

static void fill_node(struct model_node *node, const struct gluster_xlator *xl)
{
	unsigned int i;

	snprintf(node->id, sizeof(node->id), "%s", xl->id);
	snprintf(node->type, sizeof(node->type), "%s", xl->type);
	for (i = 0; i < xl->n_parents && i < 8; i++)
		node->parents[node->n_parents++] = xl->parents[i];
	for (i = 0; i < xl->n_children && i < 64; i++)
		node->children[node->n_children++] = xl->children[i];
}

/* The model's picture of a target's graph; wt->layers becomes the wire layers of its xlators. */
static int describe(struct watch *w, struct model *m, struct watch_target *wt)
{
	const struct gluster_graph *g = &w->gp->graphs[wt->graph];
	const struct target *t = &wt->target;
	struct model_target mt = { .pid = w->pid, .n_nodes = g->n };
	struct model_node *nodes = calloc(g->n, sizeof(*nodes));
	__u16 *layers = calloc(g->n, sizeof(*layers));
	int ret = -ENOMEM;
	size_t i;

	if (!nodes || !layers)
		goto out_free;
	for (i = 0; i < g->n; i++)
		fill_node(&nodes[i], &g->xl[i]);
	mt.nodes = nodes;
	mt.root = g->is_brick ? WIRE_ROOT_BRICK : WIRE_ROOT_CLIENT;
	snprintf(mt.kind, sizeof(mt.kind), "%s", target_kind_name(t->kind));
	if (g->is_brick)
		snprintf(mt.name, sizeof(mt.name), "%s:%.*s", t->volume, 240, t->path);
	else
		snprintf(mt.name, sizeof(mt.name), "%s on %.*s", t->volume, 240, t->path);
	snprintf(mt.device, sizeof(mt.device), "%s", t->device);
	snprintf(mt.fstype, sizeof(mt.fstype), "%s", t->fstype);
	snprintf(mt.version, sizeof(mt.version), "%s", w->gp->version);
	snprintf(mt.layout, sizeof(mt.layout), "%s", w->gp->layout->releases);
	ret = model_set_target(m, wt->idx, &mt, layers);
	if (ret)
		goto out_free;
	free(wt->layers);
	wt->layers = layers;
	layers = NULL;

out_free:
	free(layers);
	free(nodes);
	return ret;
}

int watch_add_target(struct watch *w, struct model *m, unsigned int idx, const struct target *t,
		     char *err, size_t err_size)
{
	struct watch_target *grown, *wt;
	int ret;

	grown = realloc(w->targets, (w->n_targets + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	w->targets = grown;
	wt = &grown[w->n_targets];
	memset(wt, 0, sizeof(*wt));
	wt->idx = idx;
	wt->target = *t;
	wt->graph_key = t->graph_key;
	wt->graph = watch_find_graph(w, wt);
	if (wt->graph == SIZE_MAX) {
		snprintf(err, err_size, "process %d has no such brick any more", (int)w->pid);
		return -ENOENT;
	}
	wt->graph_key = w->gp->graphs[wt->graph].key;
	ret = describe(w, m, wt);
	if (ret)
		return ret;
	w->n_targets++;
	return 0;
}

/* The graphs were read anew: find each target's again, tell the model where one is another now. */
static int follow_graphs(struct watch *w, struct model *m)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < w->n_targets && !ret; i++) {
		struct watch_target *wt = &w->targets[i];

		wt->graph = watch_find_graph(w, wt);
		if (wt->graph == SIZE_MAX)
			continue;
		wt->graph_key = w->gp->graphs[wt->graph].key;
		ret = describe(w, m, wt);
	}
	return ret;
}

void watch_each_layer(const struct watch *w,
		      void (*fn)(void *arg, unsigned int target, unsigned int layer,
				 const char *id),
		      void *arg)
{
	size_t i, k;

	for (i = 0; i < w->n_targets; i++) {
		const struct watch_target *wt = &w->targets[i];

		if (wt->graph == SIZE_MAX)
			continue;
		for (k = 0; k < w->gp->graphs[wt->graph].n; k++)
			fn(arg, wt->idx, wt->layers[k], w->gp->graphs[wt->graph].xl[k].id);
	}
}

/* ---- statistics -------------------------------------------------------- */

static int feed_stats(struct watch *w, struct model *m, const struct watch_target *wt)
{
	const struct gluster_graph *g = &w->gp->graphs[wt->graph];
	struct gluster_stat stats[GLUSTER_MAX_FOP];
	unsigned int node, fop;
	int ret;

	for (node = 0; node < g->n; node++) {
		ret = gluster_stats_read(w->gp, &g->xl[node], stats);
		if (ret)
			return ret;
		for (fop = 1; fop < GLUSTER_MAX_FOP; fop++) {
			struct model_stat s = {
				.wound = stats[fop].wound,
				.failed = stats[fop].failed,
				.lat_count = stats[fop].lat_count,
				.lat_total_ns = stats[fop].lat_total_ns,
				.has_counts = stats[fop].has_counts,
				.has_latency = stats[fop].has_latency,
			};

			ret = model_feed_stats(m, wt->idx, node, fop, &s);
			if (ret)
				return ret;
		}
	}
	return 0;
}

uint64_t watch_completed(struct watch *w)
{
	struct gluster_stat stats[GLUSTER_MAX_FOP];
	uint64_t sum = 0;
	unsigned int fop;
	size_t i;

	for (i = 0; i < w->n_targets; i++) {
		const struct watch_target *wt = &w->targets[i];
		const struct gluster_graph *g;

		if (wt->graph == SIZE_MAX)
			continue;
		g = &w->gp->graphs[wt->graph];
		/* server and fuse count what they completed as latencies, and nothing as wound */
		if (gluster_stats_read(w->gp, &g->xl[0], stats))
			continue;
		for (fop = 1; fop < GLUSTER_MAX_FOP; fop++)
			sum += stats[fop].has_latency ? stats[fop].lat_count : 0;
	}
	return sum;
}

/* Requests in flight of one target, by fop. */
static void feed_in_flight(struct model *m, const struct watch_target *wt, bool is_only,
			   const struct gluster_request *list, size_t n)
{
	unsigned int count[GLUSTER_MAX_FOP] = { 0 };
	uint64_t oldest[GLUSTER_MAX_FOP] = { 0 };
	unsigned int fop;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct gluster_request *r = &list[i];

		if (r->background || r->fop >= GLUSTER_MAX_FOP)
			continue;
		if (r->graph_key != wt->graph_key && !(is_only && !r->graph_key))
			continue;
		count[r->fop]++;
		if (r->has_age && r->age_ns > oldest[r->fop])
			oldest[r->fop] = r->age_ns;
	}
	for (fop = 1; fop < GLUSTER_MAX_FOP; fop++)
		model_feed_in_flight(m, wt->idx, fop, count[fop], oldest[fop]);
}

/* The oldest request of all, with its file. */
static void feed_oldest(struct watch *w, struct model *m)
{
	struct snap_oldest oldest = { .valid = false };
	struct gluster_request *list = NULL;
	bool truncated;
	size_t n = 0, i;

	if (gluster_stuck_read(w->gp, 1, true, &list, &n, &truncated))
		n = 0;
	if (n && list[0].has_age) {
		const char *op = gluster_fop_name(list[0].fop);

		oldest.valid = true;
		oldest.age_ns = (double)list[0].age_ns;
		oldest.app_pid = list[0].app_pid;
		snprintf(oldest.op, sizeof(oldest.op), "%s", op ? op : "?");
		snprintf(oldest.xlator, sizeof(oldest.xlator), "%s", list[0].xlator);
		snprintf(oldest.file, sizeof(oldest.file), "%.*s", (int)sizeof(oldest.file) - 1,
			 list[0].file[0] ? list[0].file : list[0].gfid);
	}
	for (i = 0; i < w->n_targets; i++) {
		if (!n || !list[0].graph_key || list[0].graph_key == w->targets[i].graph_key)
			model_feed_oldest(m, w->targets[i].idx, &oldest);
	}
	free(list);
}

int watch_feed_memory(struct watch *w, struct model *m)
{
	struct gluster_request *list = NULL;
	bool truncated = false;
	char err[256];
	size_t n = 0, i;
	int ret = gluster_proc_refresh(w->gp, err, sizeof(err));

	if (ret < 0)
		return ret;
	if (ret > 0) {
		ret = follow_graphs(w, m);
		if (ret)
			return ret;
	}
	ret = gluster_stuck_read(w->gp, MAX_IN_FLIGHT, false, &list, &n, &truncated);
	for (i = 0; i < w->n_targets && !ret; i++) {
		if (w->targets[i].graph == SIZE_MAX)
			continue;
		ret = feed_stats(w, m, &w->targets[i]);
		if (!truncated)
			feed_in_flight(m, &w->targets[i], w->n_targets == 1, list, n);
	}
	free(list);
	if (!ret)
		feed_oldest(w, m);
	return ret;
}
