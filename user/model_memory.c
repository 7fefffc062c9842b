/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_memory.c: an operation as the process itself counts it: calls, failures and mean latencies
 * per xlator, no probe needed. Owns how xlators that share a frame are told from those that do not,
 * and when a difference of means may be called an estimate of self time. Must not know slots.
 *
 * What GlusterFS counts: a wind counts its target, unless that is pass_through; a tail wind counts
 * only a target without children. Latency goes to the xlator in which a frame ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

#define MAX_GROUP 16

struct mem_figure {
	uint64_t count, lat_count, failed;
	double lat_ns;
	bool has_failed;
};

struct mem_view {
	const struct model_graph *g;
	struct mem_figure *fig; /* by known index, like all that follows */
	bool *active;           /* it, or one below it, was called */
	bool *seen;             /* visited by the walk under way */
	unsigned int *callers;  /* active xlators right above */
	struct snap_layer *out;
	double *total_ns; /* by row: mean x count */
	size_t n_out;
};

static struct mem_figure read_figure(const struct model_known *k, unsigned int fop, bool lifetime)
{
	const struct model_memory *mem = fop < GLUSTER_MAX_FOP ? k->memory[fop] : NULL;
	struct mem_figure f = { 0 };

	if (!mem || !k->current)
		return f;
	if (mem->has_latency) {
		f.lat_count = mem->lat_count - (lifetime ? 0 : mem->lat_base_count);
		f.lat_ns = mem->lat_total_ns - (lifetime ? 0 : mem->lat_base_ns);
	}
	if (mem->has_counts) {
		f.count = lifetime ? mem->wound.last : mem->wound.win;
		f.failed = lifetime ? mem->failed.last : mem->failed.win;
		f.has_failed = true;
	}
	return f;
}

static bool counts_anything(const struct model_known *k)
{
	for (unsigned int fop = 0; fop < GLUSTER_MAX_FOP; fop++)
		if (k->memory[fop] && k->memory[fop]->has_counts && k->memory[fop]->wound.last)
			return true;
	return false;
}

const struct model_known *model_memory_first(const struct model_graph *g)
{
	const struct model_known *k;

	if (!g->n_nodes)
		return NULL;
	k = &g->known[g->map[0]];
	/* A pass_through xlator counts nothing at all: the next one does. */
	for (size_t steps = 0; k->n_children && steps < g->n_nodes; steps++) {
		k = &g->known[k->children[0]];
		if (counts_anything(k))
			return k;
	}
	return NULL;
}

bool model_memory_calls(const struct model_tgt *t, unsigned int fop, bool lifetime,
			uint64_t *ret_calls)
{
	const struct model_known *k = model_memory_first(&t->graph);

	if (k)
		*ret_calls = read_figure(k, fop, lifetime).count;
	return k != NULL;
}

bool model_memory_active(const struct model_tgt *t, unsigned int fop, bool lifetime)
{
	for (size_t i = 0; i < t->graph.n_nodes; i++) {
		const struct model_known *k = &t->graph.known[t->graph.map[i]];
		struct mem_figure f = read_figure(k, fop, lifetime);

		if (f.count || f.lat_count)
			return true;
	}
	return false;
}

/* Depth first; a corrupt graph may hold a cycle, so every xlator is entered once. */
static bool find_active(struct mem_view *v, unsigned int node)
{
	const struct model_known *k = &v->g->known[node];

	if (v->seen[node])
		return v->active[node];
	v->seen[node] = true;
	v->active[node] = v->fig[node].count || v->fig[node].lat_count;
	for (unsigned int i = 0; i < k->n_children; i++)
		if (find_active(v, k->children[i]))
			v->active[node] = true;
	for (unsigned int i = 0; v->active[node] && i < k->n_children; i++)
		v->callers[k->children[i]]++;
	return v->active[node];
}

/* The one active xlator below that has no row yet, or MODEL_NONE where there is none or several. */
static unsigned int only_below(const struct mem_view *v, unsigned int node)
{
	const struct model_known *k = &v->g->known[node];
	unsigned int found = MODEL_NONE;

	for (unsigned int i = 0; i < k->n_children; i++) {
		unsigned int c = k->children[i];

		if (!v->active[c] || c == found)
			continue;
		if (found != MODEL_NONE || v->seen[c])
			return MODEL_NONE;
		found = c;
	}
	return found;
}

/*
 * The xlators that share one row, top first; returns how many. Called, yet no frame ended in it: it
 * wound by tail, and what follows uncounted (or is a leaf, which is counted either way) runs in its
 * frame; or it keeps no latency (io-stats without profiling), and the next counted one has its own.
 * Neither called nor any frame: pass_through, shown with the one below it.
 */
static unsigned int find_group(const struct mem_view *v, unsigned int node,
			       unsigned int group[MAX_GROUP])
{
	bool counted = v->fig[node].count > 0;
	unsigned int n = 1;

	group[0] = node;
	while (n < MAX_GROUP && !v->fig[node].lat_count) {
		const struct mem_figure *f;

		node = only_below(v, node);
		if (node == MODEL_NONE)
			break;
		f = &v->fig[node];
		if (counted && f->count && !(f->lat_count && !v->g->known[node].n_children))
			break;
		counted = counted || f->count;
		group[n++] = node;
	}
	return n;
}

static size_t emit_group(struct mem_view *v, const unsigned int *group, unsigned int n,
			 size_t above)
{
	const struct mem_figure *last = &v->fig[group[n - 1]];
	struct snap_layer *out = &v->out[v->n_out];

	for (unsigned int i = 0; i < n; i++) {
		const struct model_known *k = &v->g->known[group[i]];

		model_text_add(out->id, sizeof(out->id), i ? "+" : "");
		model_text_add(out->id, sizeof(out->id), k->id);
		model_text_add(out->type, sizeof(out->type), i ? "+" : "");
		model_text_add(out->type, sizeof(out->type), k->type);
		if (v->fig[group[i]].count > out->count)
			out->count = v->fig[group[i]].count;
		v->seen[group[i]] = true;
	}
	if (above != SIZE_MAX) {
		out->depth = v->out[above].depth + 1;
		model_text_set(out->path, sizeof(out->path), v->out[above].path);
		model_text_add(out->path, sizeof(out->path), "/");
	}
	model_text_add(out->path, sizeof(out->path), out->id);
	model_text_set(out->kind, sizeof(out->kind), "xlator");
	/* Releases without counts, and the root, which nobody winds to. */
	if (!out->count)
		out->count = last->lat_count;
	if (last->lat_count) {
		out->incl.valid = true;
		out->incl.count = last->lat_count;
		out->incl.mean = last->lat_ns / (double)last->lat_count;
		v->total_ns[v->n_out] = out->incl.mean * (double)out->count;
	} else {
		model_text_set(out->reason, sizeof(out->reason),
			       "the process keeps no latency of it for this operation");
	}
	return v->n_out++;
}

/*
 * mean x count less that of the rows below, per call. Not where it would be wrong: a row below that
 * others call too, or rows below that may run in parallel (more calls than came in).
 */
static void estimate_self(struct mem_view *v, size_t at, double below_ns, uint64_t below_count,
			  unsigned int n_below, bool shared)
{
	struct snap_layer *out = &v->out[at];
	double self_ns = v->total_ns[at] - below_ns;

	if (!out->incl.valid) {
		/* Unknown itself: to the row above it is what lies below it. */
		v->total_ns[at] = below_ns;
		return;
	}
	if (shared || self_ns < 0 || !out->count)
		return;
	if (n_below > 1 && (double)below_count > 1.01 * (double)out->count)
		return;
	out->est_self_ns.v = self_ns / (double)out->count;
	out->est_self_ns.valid = true;
}

static void set_errors(struct snap_layer *out, const struct mem_figure *f)
{
	out->errors = f->failed;
	out->has_errors = f->has_failed;
}

static void emit_below(struct mem_view *v, unsigned int node, size_t above)
{
	unsigned int group[MAX_GROUP], n = find_group(v, node, group), n_below = 0;
	size_t at = emit_group(v, group, n, above), first = v->n_out;
	const struct model_known *k = &v->g->known[group[n - 1]];
	uint64_t below_count = 0;
	double below_ns = 0;
	bool shared = false;

	for (unsigned int i = 0; i < k->n_children; i++) {
		unsigned int c = k->children[i];
		size_t row = v->n_out;

		if (!v->active[c])
			continue;
		shared = shared || v->callers[c] > 1;
		if (v->seen[c])
			continue;
		emit_below(v, c, at);
		below_ns += v->total_ns[row];
		below_count += v->out[row].count;
		n_below++;
	}
	/* A failed reply is counted where it arrives: right above the xlator that failed. */
	if (n_below == 1)
		set_errors(&v->out[first], &v->fig[group[n - 1]]);
	estimate_self(v, at, below_ns, below_count, n_below, shared);
}

static int alloc_view(struct mem_view *v, const struct model_graph *g)
{
	size_t n = g->n_known + 1;

	v->g = g;
	v->fig = calloc(n, sizeof(*v->fig));
	v->active = calloc(n, sizeof(*v->active));
	v->seen = calloc(n, sizeof(*v->seen));
	v->callers = calloc(n, sizeof(*v->callers));
	v->out = calloc(g->n_nodes + 1, sizeof(*v->out));
	v->total_ns = calloc(g->n_nodes + 1, sizeof(*v->total_ns));
	return v->fig && v->active && v->seen && v->callers && v->out && v->total_ns ? 0 : -ENOMEM;
}

static void free_view(struct mem_view *v)
{
	free(v->fig);
	free(v->active);
	free(v->seen);
	free(v->callers);
	free(v->out);
	free(v->total_ns);
}

/* The root has a row of its own in any case, and its count is the operation's. */
static void emit_rows(struct mem_view *v, unsigned int root)
{
	const struct model_known *k = &v->g->known[root];
	size_t at = emit_group(v, &root, 1, SIZE_MAX);
	unsigned int n_below = 0;
	uint64_t count = 0;
	double below_ns = 0;

	for (unsigned int i = 0; i < k->n_children; i++) {
		unsigned int c = k->children[i];
		size_t row = v->n_out;

		if (!v->active[c] || v->seen[c])
			continue;
		emit_below(v, c, at);
		below_ns += v->total_ns[row];
		count += v->out[row].count;
		n_below++;
	}
	if (!v->out[at].count)
		v->out[at].count = count;
	set_errors(&v->out[at], &v->fig[root]);
	if (n_below == 1)
		set_errors(&v->out[at + 1], &v->fig[root]);
	estimate_self(v, at, below_ns, count, n_below, false);
}

static void fill_op(const struct mem_view *v, struct model_op *ret_op)
{
	const struct snap_layer *root = &v->out[0];
	struct snap_op *op = &ret_op->op;

	op->source = SNAP_FROM_MEMORY;
	op->count = root->count;
	op->errors = root->errors;
	op->has_errors = root->has_errors;
	ret_op->total_ns = v->total_ns[0];
	if (root->incl.valid) {
		op->incl = root->incl;
	} else if (root->count && v->total_ns[0] > 0) {
		op->incl.valid = true;
		op->incl.count = root->count;
		op->incl.mean = v->total_ns[0] / (double)root->count;
	}
	for (size_t i = 0; i < v->n_out && v->total_ns[0] > 0; i++) {
		struct snap_layer *l = &v->out[i];

		if (!l->est_self_ns.valid)
			continue;
		l->share_pct.valid = true;
		l->share_pct.v = 100.0 * l->est_self_ns.v * (double)l->count / v->total_ns[0];
	}
}

int model_memory_build(const struct model_tgt *t, unsigned int fop, bool lifetime,
		       struct model_op *ret_op)
{
	const struct model_graph *g = &t->graph;
	struct mem_view v = { 0 };
	uint64_t calls = 0;
	int err = alloc_view(&v, g);

	if (err || !g->n_nodes)
		goto out_free;
	for (size_t k = 0; k < g->n_known; k++)
		v.fig[k] = read_figure(&g->known[k], fop, lifetime);
	find_active(&v, g->map[0]);
	memset(v.seen, 0, g->n_known * sizeof(*v.seen));
	if (model_memory_calls(t, fop, lifetime, &calls))
		v.fig[g->map[0]].count = calls;
	emit_rows(&v, g->map[0]);
	fill_op(&v, ret_op);
	ret_op->op.layers = v.out;
	ret_op->op.n_layers = v.n_out;
	v.out = NULL;
out_free:
	free_view(&v);
	return err;
}
