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

#include "clock.h"
#include "gluster_stuck.h"
#include "watch_priv.h"

int watch_open(pid_t pid, struct watch **ret_w, char *err, size_t err_size)
{
	struct watch *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->pid = pid;
	w->graphs_changed = true;
	ret = gluster_proc_open(pid, &w->gp, err, err_size);
	if (ret) {
		free(w);
		return ret;
	}
	*ret_w = w;
	return 0;
}

void watch_close(struct watch *w)
{
	size_t i;

	if (!w)
		return;
	watch_detach(w);
	for (i = 0; i < w->n_targets; i++)
		free(w->targets[i].layers);
	free(w->targets);
	free(w->told);
	watch_discovery_free(&w->discovery);
	gluster_proc_close(w->gp);
	free(w);
}

int watch_off(const struct watch *w, struct model *m, const char *what, const char *reason)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < w->n_targets && !ret; i++)
		ret = model_feed_off_target(m, (int)w->targets[i].idx, what, reason);
	return ret;
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

int watch_feed_late(struct watch *w, struct model *m)
{
	struct gluster_stat stats[GLUSTER_MAX_FOP];
	unsigned int node, fop;
	size_t i;
	int ret = 0;

	for (i = 0; i < w->n_targets && !ret; i++) {
		const struct watch_target *wt = &w->targets[i];

		if (wt->graph == SIZE_MAX || !model_requests_node(m, wt->idx, &node) ||
		    node >= w->gp->graphs[wt->graph].n)
			continue;
		ret = gluster_stats_read(w->gp, &w->gp->graphs[wt->graph].xl[node], stats);
		for (fop = 1; fop < GLUSTER_MAX_FOP && !ret; fop++)
			model_feed_late(m, wt->idx, fop, stats[fop].wound);
	}
	return ret;
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

void watch_requests(const struct watch *w, const struct model *m,
		    uint64_t ret_calls[GLUSTER_MAX_FOP])
{
	uint64_t calls;
	unsigned int fop;
	size_t i;

	memset(ret_calls, 0, sizeof(*ret_calls) * GLUSTER_MAX_FOP);
	for (i = 0; i < w->n_targets; i++) {
		for (fop = 1; fop < GLUSTER_MAX_FOP; fop++) {
			if (w->targets[i].graph != SIZE_MAX &&
			    model_requests(m, w->targets[i].idx, fop, &calls))
				ret_calls[fop] += calls;
		}
	}
}

/* ---- requests in flight ------------------------------------------------ */

/* Those of an unknown graph belong to the only target there is. */
static bool is_of(const struct watch *w, const struct watch_target *wt,
		  const struct gluster_brief *b)
{
	return b->graph_key == wt->graph_key || (w->n_targets == 1 && !b->graph_key);
}

/* Requests in flight of one target, by fop. */
static void feed_in_flight(struct watch *w, struct model *m, const struct watch_target *wt,
			   const struct gluster_brief *list, size_t n)
{
	unsigned int count[GLUSTER_MAX_FOP] = { 0 };
	uint64_t oldest[GLUSTER_MAX_FOP] = { 0 };
	unsigned int fop;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct gluster_brief *b = &list[i];

		if (b->background || b->fop >= GLUSTER_MAX_FOP || !is_of(w, wt, b))
			continue;
		count[b->fop]++;
		if (b->has_age && b->age_ns > oldest[b->fop])
			oldest[b->fop] = b->age_ns;
	}
	for (fop = 1; fop < GLUSTER_MAX_FOP; fop++)
		model_feed_in_flight(m, wt->idx, fop, count[fop], oldest[fop]);
}

static void fill_oldest(const struct gluster_request *r, struct snap_oldest *oldest)
{
	const char *op = gluster_fop_name(r->fop);

	oldest->valid = true;
	oldest->age_ns = (double)r->age_ns;
	oldest->app_pid = r->app_pid;
	snprintf(oldest->op, sizeof(oldest->op), "%s", op ? op : "?");
	snprintf(oldest->xlator, sizeof(oldest->xlator), "%s", r->xlator);
	snprintf(oldest->file, sizeof(oldest->file), "%.*s", (int)sizeof(oldest->file) - 1,
		 r->file[0] ? r->file : r->gfid);
}

/* Each target's oldest request, with its file: the list is in that order. */
static int feed_oldest(struct watch *w, struct model *m, const struct gluster_brief *list, size_t n)
{
	struct gluster_brief *pick = calloc(w->n_targets + 1, sizeof(*pick));
	struct gluster_request *req = NULL;
	size_t n_picks = 0, n_reqs = 0, i, k;
	int ret = pick ? 0 : -ENOMEM;

	for (i = 0; i < w->n_targets && !ret; i++) {
		for (k = 0; k < n && !is_of(w, &w->targets[i], &list[k]); k++)
			;
		if (k < n && list[k].has_age)
			pick[n_picks++] = list[k];
	}
	if (n_picks)
		ret = gluster_stuck_detail(w->gp, pick, n_picks, true, &req, &n_reqs);
	for (i = 0; i < w->n_targets && !ret; i++) {
		struct snap_oldest oldest = { .valid = false };

		for (k = 0; k < n_reqs && !oldest.valid; k++) {
			if (req[k].graph_key == w->targets[i].graph_key || w->n_targets == 1)
				fill_oldest(&req[k], &oldest);
		}
		model_feed_oldest(m, w->targets[i].idx, &oldest);
	}
	free(req);
	free(pick);
	return ret;
}

static int feed_requests(struct watch *w, struct model *m)
{
	struct gluster_brief *list = NULL;
	bool truncated = false;
	size_t n = 0, i;
	int ret = gluster_stuck_brief(w->gp, &list, &n, &truncated);

	if (ret)
		return ret;
	for (i = 0; i < w->n_targets; i++) {
		if (truncated || w->targets[i].graph == SIZE_MAX)
			model_feed_in_flight_unknown(m, w->targets[i].idx);
		else
			feed_in_flight(w, m, &w->targets[i], list, n);
	}
	ret = feed_oldest(w, m, list, n);
	free(list);
	return ret;
}

/* ---- following --------------------------------------------------------- */

/*
 * The graphs were read anew: find each target's again, tell the model where one is another now. The
 * old one's statistics are fed for the last time, while the model still has its picture.
 */
static int follow_graphs(struct watch *w, struct model *m)
{
	static const char detached[] =
		"it was detached from its process, which goes on: its figures end there";
	size_t i, k;
	int ret = 0;

	for (i = 0; i < w->n_targets && !ret; i++) {
		struct watch_target *wt = &w->targets[i];
		size_t now = watch_find_graph(w, wt);

		for (k = 0; k < w->gp->n_graphs && w->gp->graphs[k].key != wt->graph_key; k++)
			;
		wt->graph = k;
		if (k < w->gp->n_graphs && now != k)
			ret = feed_stats(w, m, wt);
		wt->graph = now;
		if (now == SIZE_MAX && !ret)
			ret = model_feed_off_target(m, (int)wt->idx, "brick", detached);
		if (now == SIZE_MAX || ret)
			continue;
		model_clear_off(m, (int)wt->idx, "brick");
		wt->graph_key = w->gp->graphs[now].key;
		ret = describe(w, m, wt);
	}
	return ret;
}

int watch_feed_memory(struct watch *w, struct model *m)
{
	char err[256];
	size_t i;
	int ret = gluster_proc_refresh(w->gp, err, sizeof(err));

	if (ret < 0)
		return ret;
	if (ret > 0) {
		w->graphs_changed = true;
		ret = follow_graphs(w, m);
	}
	for (i = 0; i < w->n_targets && !ret; i++) {
		if (w->targets[i].graph != SIZE_MAX)
			ret = feed_stats(w, m, &w->targets[i]);
	}
	return ret ?: feed_requests(w, m);
}

int watch_look(struct watch *w, struct source *src, struct model *m)
{
	int ret;

	if (gluster_proc_switched(w->gp)) {
		ret = watch_feed_memory(w, m);
		if (ret || !src)
			return ret;
		ret = watch_tell_nodes(w, src);
		if (ret)
			return ret;
	}
	return src && w->attached ? watch_discovery_look(w, src, m, clock_mono_ns()) : 0;
}
