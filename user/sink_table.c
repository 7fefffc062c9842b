/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_table.c: one operation's layers as a table that still reads at 80 columns: the figures keep
 * their width, names and bars give way. Where not even that fits, a row becomes a paragraph: its
 * name, then each figure with its title.
 */
#include "sink_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX      512 /* deeper rows are drawn as if they were this deep */
#define FIGURE_COLUMNS 51  /* of a walked row, without name and bar */
#define MEMORY_COLUMNS 52  /* of one from the process's memory */
#define LOCAL_COLUMNS  62  /* of one of a process's own operations */
#define NAME_COLUMNS   10  /* what indentation leaves of a name at least */
#define PARAGRAPH_COLUMNS                                                      \
	24 /* what indentation leaves of one at least, where there are as many \
	    */
#define INDENT       2
#define TOP_LAYERS   3
#define TOP_ID_BYTES 40
#define HOT_PCT      30
#define WARM_PCT     10

struct table {
	FILE *out;
	const struct sink_style *st;
	const struct snap_op *op;
	unsigned int *levels; /* of indentation, one per layer */
	unsigned int name_columns, bar_columns;
	bool narrow; /* paragraphs instead of columns */
};

/* A figure of a row: its title in the head, its text, its width. */
struct figure {
	const char *title;
	char text[40];
	unsigned int width;
};

struct snap_num sink_table_per_op(const struct snap_op *op, const struct snap_layer *layer,
				  const struct snap_dist *dist)
{
	uint64_t requests = op->count;
	struct snap_num num = { 0 };

	/* those that were not seen whole are in inclusive times of xlators only */
	if (dist == &layer->self || strcmp(layer->kind, "xlator") != 0)
		requests -= op->uncovered;
	if (!dist->valid || requests == 0 || layer->state == SNAP_OFF)
		return num;
	num.v = dist->mean * (double)dist->count / (double)requests;
	num.valid = isfinite(num.v);
	return num;
}

static unsigned int layer_depth(const struct snap_layer *layer)
{
	return layer->depth < DEPTH_MAX ? layer->depth : DEPTH_MAX - 1;
}

/*
 * Where the tree branches. A layer is drawn deeper than its parent if it has siblings, if the
 * parent lies below a branch already, or if it is of another kind (the syscalls below posix).
 */
static int compute_levels(const struct snap_op *op, unsigned int **ret_levels)
{
	size_t last[DEPTH_MAX], n = op->n_layers;
	unsigned int *levels = calloc(n ? n : 1, sizeof(*levels));
	unsigned int *children = calloc(n ? n : 1, sizeof(*children));
	size_t *parents = calloc(n ? n : 1, sizeof(*parents));
	int err = -ENOMEM;

	if (!levels || !children || !parents)
		goto out_free;
	for (size_t i = 0; i < DEPTH_MAX; i++)
		last[i] = n;
	for (size_t i = 0; i < n; i++) {
		unsigned int depth = layer_depth(&op->layers[i]);

		parents[i] = depth > 0 ? last[depth - 1] : n;
		last[depth] = i;
		if (parents[i] < n)
			children[parents[i]]++;
	}
	for (size_t i = 0; i < n; i++) {
		size_t p = parents[i];

		if (p < n)
			levels[i] =
				levels[p] + (children[p] > 1 || levels[p] > 0 ||
					     strcmp(op->layers[i].kind, op->layers[p].kind) != 0);
	}
	*ret_levels = levels;
	levels = NULL;
	err = 0;
out_free:
	free(levels);
	free(children);
	free(parents);
	return err;
}

static bool is_narrow(const struct sink_style *st, unsigned int figure_columns)
{
	return sink_fmt_columns(st) < NAME_COLUMNS + INDENT + figure_columns;
}

static int table_begin(struct table *t, FILE *out, const struct snap_op *op,
		       const struct sink_style *st, unsigned int figure_columns)
{
	unsigned int columns = sink_fmt_columns(st);

	*t = (struct table){ .out = out, .st = st, .op = op };
	t->bar_columns = columns >= 120 ? 20 : columns >= 100 ? 16 : columns >= 80 ? 6 : 0;
	t->name_columns = NAME_COLUMNS + INDENT;
	if (columns > t->name_columns + FIGURE_COLUMNS + t->bar_columns)
		t->name_columns = columns - FIGURE_COLUMNS - t->bar_columns;
	if (t->name_columns > 48)
		t->name_columns = 48;
	t->narrow = is_narrow(st, figure_columns);
	if (!t->narrow && t->name_columns + figure_columns > columns)
		t->name_columns = columns - figure_columns;
	return compute_levels(op, &t->levels);
}

static unsigned int row_indent(const struct table *t, size_t i)
{
	unsigned int indent = INDENT + 2 * t->levels[i];

	return indent + NAME_COLUMNS > t->name_columns ? t->name_columns - NAME_COLUMNS : indent;
}

static void put_name(const struct table *t, size_t i)
{
	unsigned int indent = row_indent(t, i);

	fprintf(t->out, "%*s", (int)indent, "");
	sink_fmt_left(t->out, t->st, t->op->layers[i].id, t->name_columns - indent);
}

/* A row without columns; figures that were not measured are left out of it but for the first. */
static void put_paragraph(FILE *out, const struct sink_style *st, unsigned int indent,
			  const char *name, const struct figure *f, size_t n)
{
	unsigned int columns = sink_fmt_columns(st);
	struct sink_flow flow;

	if (indent + PARAGRAPH_COLUMNS > columns)
		indent = columns > PARAGRAPH_COLUMNS + INDENT ? columns - PARAGRAPH_COLUMNS :
								INDENT;
	fprintf(out, "%*s", (int)indent, "");
	sink_fmt_flow_resume(&flow, out, st, indent, indent + 2);
	flow.fresh = true;
	sink_fmt_flow_item(&flow, 0, "%s", name);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || strcmp(f[i].text, "-") != 0)
			sink_fmt_flow_item(&flow, 2, "%s %s", f[i].title, f[i].text);
	sink_fmt_flow_end(&flow);
}

static void put_figures(FILE *out, const struct sink_style *st, const struct figure *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sink_fmt_right(out, st, f[i].text, f[i].width);
}

static void put_titles(FILE *out, const struct figure *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%*s", (int)f[i].width, f[i].title);
	fputc('\n', out);
}

static void put_ns(const struct table *t, bool valid, double ns, unsigned int width)
{
	char buf[32];

	sink_fmt_right(t->out, t->st, sink_fmt_ns(buf, sizeof(buf), valid, ns), width);
}

static void put_share(const struct table *t, struct snap_num pct)
{
	enum sink_colour heat = SINK_PLAIN;
	char buf[32];

	if (pct.valid && pct.v >= HOT_PCT)
		heat = SINK_HOT;
	else if (pct.valid && pct.v >= WARM_PCT)
		heat = SINK_WARM;
	if (heat != SINK_PLAIN)
		sink_fmt_colour(t->out, t->st, heat);
	sink_fmt_right(t->out, t->st, sink_fmt_pct(buf, sizeof(buf), pct), 8);
	fputs("  ", t->out);
	sink_fmt_bar(t->out, t->st, pct, t->bar_columns);
	if (heat != SINK_PLAIN)
		sink_fmt_colour(t->out, t->st, SINK_PLAIN);
}

/* What a row's figures cannot say: why it is off or derived, and what failed in it. */
static void put_notes(const struct table *t, size_t i)
{
	const struct snap_layer *layer = &t->op->layers[i];
	char count[32];
	struct sink_flow flow;
	bool failed = layer->has_errors && layer->errors > 0 && i > 0 &&
		      t->op->source == SNAP_FROM_WALK;

	if (layer->state == SNAP_ON && !failed)
		return;
	sink_fmt_flow_begin(&flow, t->out, t->st, "", row_indent(t, i) + 2);
	if (layer->state != SNAP_ON)
		sink_fmt_flow_item(&flow, 0, "%s: %s", layer->state == SNAP_OFF ? "off" : "derived",
				   layer->reason[0] ? layer->reason : "no reason was given");
	if (failed)
		sink_fmt_flow_item(&flow, 3, "%s failed",
				   sink_fmt_u64(count, sizeof(count), layer->errors));
	sink_fmt_flow_end(&flow);
}

static void put_walk_paragraph(const struct table *t, size_t i, struct snap_num self_op,
			       struct snap_num share, struct snap_num incl_op)
{
	const struct snap_layer *layer = &t->op->layers[i];
	const struct snap_dist *self = &layer->self;
	bool on = self->valid && self->has_quantiles && layer->state != SNAP_OFF;
	struct figure f[] = {
		{ .title = "self/op" }, { .title = "share" }, { .title = "p50" },
		{ .title = "p99" },     { .title = "max" },   { .title = "incl/op" }
	};

	sink_fmt_ns(f[0].text, sizeof(f[0].text), self_op.valid, self_op.v);
	sink_fmt_pct(f[1].text, sizeof(f[1].text), share);
	sink_fmt_ns(f[2].text, sizeof(f[2].text), on, self->p50);
	sink_fmt_ns(f[3].text, sizeof(f[3].text), on, self->p99);
	sink_fmt_ns(f[4].text, sizeof(f[4].text), on, self->max);
	sink_fmt_ns(f[5].text, sizeof(f[5].text), incl_op.valid, incl_op.v);
	put_paragraph(t->out, t->st, INDENT + 2 * t->levels[i], layer->id, f, 6);
	put_notes(t, i);
}

static void put_walk_row(const struct table *t, size_t i)
{
	const struct snap_layer *layer = &t->op->layers[i];
	const struct snap_dist *self = &layer->self;
	struct snap_num self_op = sink_table_per_op(t->op, layer, self);
	struct snap_num incl_op = sink_table_per_op(t->op, layer, &layer->incl);
	bool on = self->valid && self->has_quantiles && layer->state != SNAP_OFF;
	struct snap_num share = layer->share_pct;

	share.valid = share.valid && layer->state != SNAP_OFF;
	if (t->narrow) {
		put_walk_paragraph(t, i, self_op, share, incl_op);
		return;
	}
	put_name(t, i);
	put_ns(t, self_op.valid, self_op.v, 8);
	put_share(t, share);
	put_ns(t, on, self->p50, 8);
	put_ns(t, on, self->p99, 8);
	put_ns(t, on, self->max, 8);
	put_ns(t, incl_op.valid, incl_op.v, 9);
	fputc('\n', t->out);
	put_notes(t, i);
}

/* What no layer claims is a row of its own: it must be seen to be believed small. */
static void put_unattributed(const struct table *t)
{
	const struct snap_op *op = t->op;
	double mean_ns = snapshot_covered_mean_ns(op);
	struct snap_num share = { 0 };

	if (!op->unattributed_ns.valid)
		return;
	share.valid = mean_ns > 0;
	if (share.valid)
		share.v = 100 * op->unattributed_ns.v / mean_ns;
	if (t->narrow) {
		struct figure f[] = { { .title = "self/op" }, { .title = "share" } };

		sink_fmt_ns(f[0].text, sizeof(f[0].text), true, op->unattributed_ns.v);
		sink_fmt_pct(f[1].text, sizeof(f[1].text), share);
		put_paragraph(t->out, t->st, INDENT, "unattributed", f, 2);
		return;
	}
	fprintf(t->out, "%*s", INDENT, "");
	sink_fmt_left(t->out, t->st, "unattributed", t->name_columns - INDENT);
	put_ns(t, true, op->unattributed_ns.v, 8);
	put_share(t, share);
	for (int i = 0; i < 3; i++)
		put_ns(t, false, 0, 8);
	put_ns(t, false, 0, 9);
	fputc('\n', t->out);
}

static void put_share_sum(const struct table *t)
{
	double mean_ns = snapshot_covered_mean_ns(t->op);
	double sum = t->op->unattributed_ns.valid && mean_ns > 0 ?
			     100 * t->op->unattributed_ns.v / mean_ns :
			     0;

	for (size_t i = 0; i < t->op->n_layers; i++)
		if (t->op->layers[i].share_pct.valid && t->op->layers[i].state != SNAP_OFF)
			sum += t->op->layers[i].share_pct.v;
	if (sum > 100.5)
		fprintf(t->out, "  shares add up to %.0f %%: layers run in parallel here\n", sum);
}

int sink_table_walk(FILE *out, const struct snap_op *op, const struct sink_style *st)
{
	struct table t;
	int err = table_begin(&t, out, op, st, FIGURE_COLUMNS);

	if (err)
		return err;
	if (!t.narrow) {
		sink_fmt_left(out, st, "  layer", t.name_columns);
		fprintf(out, "%8s%8s  %*s%8s%8s%8s%9s\n", "self/op", "share", (int)t.bar_columns,
			"", "p50", "p99", "max", "incl/op");
	}
	for (size_t i = 0; i < op->n_layers; i++)
		put_walk_row(&t, i);
	put_unattributed(&t);
	put_share_sum(&t);
	free(t.levels);
	return 0;
}

enum { LOCAL_FIGURES = 7, MEMORY_FIGURES = 5 };

static void fill_local(const struct snap_op *op, struct figure f[LOCAL_FIGURES])
{
	const struct snap_dist *d = &op->incl;
	bool q = d->valid && d->has_quantiles;

	memcpy(f,
	       (const struct figure[LOCAL_FIGURES]){ { .title = "calls", .width = 11 },
						     { .title = "calls/s", .width = 9 },
						     { .title = "errors", .width = 10 },
						     { .title = "mean", .width = 8 },
						     { .title = "p50", .width = 8 },
						     { .title = "p99", .width = 8 },
						     { .title = "max", .width = 8 } },
	       LOCAL_FIGURES * sizeof(*f));
	sink_fmt_u64(f[0].text, sizeof(f[0].text), op->count);
	sink_fmt_count(f[1].text, sizeof(f[1].text), op->rate_hz.valid, op->rate_hz.v);
	sink_fmt_known(f[2].text, sizeof(f[2].text), op->has_errors, op->errors);
	sink_fmt_ns(f[3].text, sizeof(f[3].text), d->valid, d->mean);
	sink_fmt_ns(f[4].text, sizeof(f[4].text), q, d->p50);
	sink_fmt_ns(f[5].text, sizeof(f[5].text), q, d->p99);
	sink_fmt_ns(f[6].text, sizeof(f[6].text), q, d->max);
}

void sink_table_local(FILE *out, const struct snap_op *ops, size_t n,
		      bool (*is_row)(const struct snap_op *op), const struct sink_style *st)
{
	unsigned int name_columns = sink_fmt_columns(st) < 100 ? 17 : 24;
	bool narrow = is_narrow(st, LOCAL_COLUMNS + 5), titled = false;
	struct figure f[LOCAL_FIGURES];

	for (size_t i = 0; i < n; i++) {
		if (!is_row(&ops[i]))
			continue;
		fill_local(&ops[i], f);
		if (narrow) {
			put_paragraph(out, st, INDENT, ops[i].op, f, LOCAL_FIGURES);
			continue;
		}
		if (!titled) {
			sink_fmt_left(out, st, "  operation", name_columns);
			put_titles(out, f, LOCAL_FIGURES);
		}
		titled = true;
		fprintf(out, "%*s", INDENT, "");
		sink_fmt_left(out, st, ops[i].op, name_columns - INDENT);
		put_figures(out, st, f, LOCAL_FIGURES);
		fputc('\n', out);
	}
}

static void fill_memory(const struct snap_op *op, const struct snap_layer *layer,
			struct figure f[MEMORY_FIGURES])
{
	bool rate = op->rate_hz.valid && op->count > 0;
	double rate_hz = rate ? op->rate_hz.v * (double)layer->count / (double)op->count : 0;
	char self[32];

	memcpy(f,
	       (const struct figure[MEMORY_FIGURES]){ { .title = "calls", .width = 15 },
						      { .title = "calls/s", .width = 9 },
						      { .title = "incl mean", .width = 10 },
						      { .title = "~self", .width = 9 },
						      { .title = "errors", .width = 9 } },
	       MEMORY_FIGURES * sizeof(*f));
	sink_fmt_u64(f[0].text, sizeof(f[0].text), layer->count);
	sink_fmt_count(f[1].text, sizeof(f[1].text), rate, rate_hz);
	sink_fmt_ns(f[2].text, sizeof(f[2].text), layer->incl.valid, layer->incl.mean);
	sink_fmt_ns(self, sizeof(self), layer->est_self_ns.valid, layer->est_self_ns.v);
	snprintf(f[3].text, sizeof(f[3].text), "%s%s", layer->est_self_ns.valid ? "~" : "", self);
	sink_fmt_known(f[4].text, sizeof(f[4].text), layer->has_errors, layer->errors);
}

int sink_table_memory(FILE *out, const struct snap_op *op, const struct sink_style *st)
{
	struct figure f[MEMORY_FIGURES];
	struct table t;
	int err = table_begin(&t, out, op, st, MEMORY_COLUMNS);

	if (err)
		return err;
	for (size_t i = 0; i < op->n_layers; i++) {
		const struct snap_layer *layer = &op->layers[i];

		fill_memory(op, layer, f);
		if (t.narrow) {
			put_paragraph(out, st, INDENT + 2 * t.levels[i], layer->id, f,
				      MEMORY_FIGURES);
		} else {
			if (i == 0) {
				sink_fmt_left(out, st, "  layer", t.name_columns);
				put_titles(out, f, MEMORY_FIGURES);
			}
			put_name(&t, i);
			put_figures(out, st, f, MEMORY_FIGURES);
			fputc('\n', out);
		}
		put_notes(&t, i);
	}
	free(t.levels);
	return 0;
}

/* Self time per root, measured or (memory) estimated: what the top line ranks by. */
static struct snap_num rank_value(const struct snap_op *op, const struct snap_layer *layer)
{
	struct snap_num v = layer->est_self_ns;

	if (op->source == SNAP_FROM_WALK)
		return sink_table_per_op(op, layer, &layer->self);
	v.valid = v.valid && op->count > 0 && isfinite(v.v);
	if (v.valid)
		v.v *= (double)layer->count / (double)op->count;
	return v;
}

/* The dearest layer after the one (value limit, index after) already named; n_layers where none. */
static size_t next_dearest(const struct snap_op *op, double limit, size_t after)
{
	size_t best = op->n_layers;
	double best_v = 0;

	for (size_t i = 0; i < op->n_layers; i++) {
		struct snap_num v = rank_value(op, &op->layers[i]);

		if (!v.valid || v.v <= 0 || v.v > limit || (v.v == limit && i <= after))
			continue;
		if (best == op->n_layers || v.v > best_v) {
			best = i;
			best_v = v.v;
		}
	}
	return best;
}

/* The row that a row is called by; n_layers where none. */
static size_t parent_of(const struct snap_op *op, size_t i)
{
	unsigned int depth = layer_depth(&op->layers[i]);

	while (i > 0)
		if (layer_depth(&op->layers[--i]) < depth)
			return i;
	return op->n_layers;
}

/* How many names of two rows are the same, upwards from their own; 0 if all, which tells nothing.
 */
static unsigned int same_names(const struct snap_op *op, size_t a, size_t b)
{
	unsigned int n = 0;

	while (a < op->n_layers && b < op->n_layers) {
		if (strcmp(op->layers[a].id, op->layers[b].id) != 0)
			return n;
		n++;
		a = parent_of(op, a);
		b = parent_of(op, b);
	}
	return a < op->n_layers || b < op->n_layers ? n : 0;
}

/* Of rows with the same name each is told by the rows above it, as many as it takes. */
static unsigned int names_needed(const struct snap_op *op, const size_t *top, size_t n,
				 size_t which)
{
	unsigned int names = 0;

	for (size_t k = 0; k < n; k++) {
		unsigned int same = k == which ? 0 : same_names(op, top[which], top[k]);

		names = same > names ? same : names;
	}
	return names;
}

static void put_top(struct sink_flow *flow, const struct snap_op *op, const size_t *top, size_t n,
		    size_t which)
{
	const struct snap_layer *layer = &op->layers[top[which]];
	const char *mark = op->source == SNAP_FROM_MEMORY ? "~" : "", *in = "";
	unsigned int names = names_needed(op, top, n, which), gap = which ? 3 : 1;
	char ns[32], pct[32], share[40] = "";
	size_t i = top[which], up;

	for (; names-- && (up = parent_of(op, i)) < op->n_layers; i = up) {
		sink_fmt_flow_item(flow, gap, "%s%.*s", in, TOP_ID_BYTES, op->layers[i].id);
		in = "in ";
		gap = 1;
	}
	if (layer->share_pct.valid)
		snprintf(share, sizeof(share), " (%s)",
			 sink_fmt_pct(pct, sizeof(pct), layer->share_pct));
	sink_fmt_flow_item(flow, gap, "%s%.*s %s%s%s", in, TOP_ID_BYTES, op->layers[i].id, mark,
			   sink_fmt_ns(ns, sizeof(ns), true, rank_value(op, layer).v), share);
}

void sink_table_top(FILE *out, const struct snap_op *op, const struct sink_style *st)
{
	size_t top[TOP_LAYERS], n = 0, i = next_dearest(op, INFINITY, 0);
	struct sink_flow flow;

	while (n < TOP_LAYERS && i < op->n_layers) {
		top[n++] = i;
		i = next_dearest(op, rank_value(op, &op->layers[i]).v, i);
	}
	if (!n)
		return;
	sink_fmt_flow_begin(&flow, out, st, "  most time itself:", 4);
	flow.fresh = false;
	for (size_t k = 0; k < n; k++)
		put_top(&flow, op, top, n, k);
	sink_fmt_flow_end(&flow);
}
