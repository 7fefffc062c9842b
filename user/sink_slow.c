/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_slow.c: see sink_slow.h. Figures stand left of the tree, so that they are in columns however
 * deep it is.
 */
#include "sink_slow.h"

#include <string.h>

#include "sink_uses.h"
#include "text.h"

#define LABEL_COLUMNS  9
#define FIGURE_COLUMNS 9
#define FIGURES        3

/* "write", "background write", "local fsync": whose it is, unless it is a user's request. */
static const char *whose(const char *root, const char *origin)
{
	if (!strcmp(root, "background") || !strcmp(root, "local"))
		return root;
	return !strcmp(origin, "internal") ? origin : "";
}

/* How many of each kind were slow, and of a share, from how long on. */
static void put_limits(FILE *out, const struct snap_slows *slow, const struct sink_style *st)
{
	struct sink_flow flow;
	char ended[32], n[32], from[64];
	bool any = false;

	for (size_t i = 0; i < slow->n_limits; i++) {
		const struct snap_slow_limit *l = &slow->limits[i];
		const char *of = whose(l->root, l->origin);

		if (!l->limit_ns.valid)
			continue;
		if (!any)
			sink_fmt_flow_begin(&flow, out, st, "", LABEL_COLUMNS);
		any = true;
		snprintf(from, sizeof(from), " from %s",
			 sink_fmt_ns(n, sizeof(n), true, l->limit_ns.v));
		sink_fmt_flow_item(&flow, 3, "%s%s%s %s of %s%s", of, *of ? " " : "", l->op,
				   sink_fmt_u64(n, sizeof(n), l->slow),
				   sink_fmt_u64(ended, sizeof(ended), l->ended),
				   slow->enough ? from : "");
	}
	if (any)
		sink_fmt_flow_end(&flow);
}

/* Of which so few have ended that no limit can be told: nothing of them is slow. */
static void put_too_few(FILE *out, const struct snap_slows *slow, const struct sink_style *st)
{
	struct sink_flow flow;
	bool any = false;
	char n[32];

	for (size_t i = 0; i < slow->n_limits; i++) {
		const struct snap_slow_limit *l = &slow->limits[i];
		const char *of = whose(l->root, l->origin);

		if (l->limit_ns.valid)
			continue;
		if (!any) {
			sink_fmt_flow_begin(&flow, out, st, "", LABEL_COLUMNS);
			sink_fmt_flow_item(&flow, 0, "too few to tell, %s are needed:",
					   sink_fmt_u64(n, sizeof(n), slow->enough));
		}
		sink_fmt_flow_item(&flow, any ? 3 : 1, "%s%s%s %s", of, *of ? " " : "", l->op,
				   sink_fmt_u64(n, sizeof(n), l->ended));
		any = true;
	}
	if (any)
		sink_fmt_flow_end(&flow);
}

static void put_summary(FILE *out, const struct snap_slows *slow, const struct sink_style *st)
{
	struct sink_flow flow;
	char n[32];

	sink_fmt_flow_begin(&flow, out, st, "slow", LABEL_COLUMNS);
	sink_fmt_flow_item(&flow, 0, "%s slower than %s%s",
			   slow->slow ? sink_fmt_u64(n, sizeof(n), slow->slow) : "none",
			   slow->wanted, slow->enough ? " of their like" : "");
	if (slow->n_ops < slow->slow)
		sink_fmt_flow_item(&flow, 3, "the %zu slowest shown", slow->n_ops);
	if (slow->lost)
		sink_fmt_flow_item(&flow, 3, "%s lost for want of room",
				   sink_fmt_u64(n, sizeof(n), slow->lost));
	sink_fmt_flow_end(&flow);
	put_limits(out, slow, st);
	put_too_few(out, slow, st);
}

static void put_facts(struct sink_flow *flow, const struct snap_slow *op)
{
	char buf[32];

	if (op->has_bytes)
		sink_fmt_flow_item(flow, 3, "%s", text_bytes(buf, sizeof(buf), (double)op->bytes));
	if (op->failed && op->error)
		sink_fmt_flow_item(flow, 3, "failed: %s", strerror(op->error));
	else if (op->failed)
		sink_fmt_flow_item(flow, 3, "failed");
	if (op->file.kind == SNAP_FILE_ENTRY)
		sink_fmt_flow_item(flow, 3, "a name in");
	if (op->file.kind != SNAP_FILE_UNKNOWN)
		sink_uses_file(flow, op->file.kind == SNAP_FILE_ENTRY ? 1 : 3, &op->file);
	if (op->ino)
		sink_fmt_flow_item(flow, 3, "inode %llu", (unsigned long long)op->ino);
	if (op->has_app) {
		sink_fmt_flow_item(flow, 3, "for");
		sink_uses_app(flow, 1, &op->file.last);
		sink_uses_client(flow, 2, &op->file.last);
	}
	if (op->tid)
		sink_fmt_flow_item(flow, 3, "thread %d", op->tid);
	if (op->tid && op->comm[0])
		sink_fmt_flow_item(flow, 1, "%s", op->comm);
}

static void put_head(FILE *out, const struct snap_slow *op, const struct sink_style *st)
{
	const char *of = whose(op->root, op->origin);
	struct sink_flow flow;
	char buf[48];

	sink_fmt_flow_resume(&flow, out, st, 0, 4);
	sink_fmt_flow_item(&flow, 0, "%s", sink_fmt_time(buf, sizeof(buf), op->wall_ns));
	sink_fmt_colour(out, st, SINK_BOLD);
	sink_fmt_flow_item(&flow, 2, "%s%s%s", of, *of ? " " : "", op->op);
	sink_fmt_flow_item(&flow, 2, "%s", sink_fmt_ns(buf, sizeof(buf), true, op->incl_ns));
	sink_fmt_colour(out, st, SINK_PLAIN);
	put_facts(&flow, op);
	sink_fmt_flow_end(&flow);
	if (op->unsplit[0]) {
		sink_fmt_flow_begin(&flow, out, st, "", 4);
		sink_fmt_flow_item(&flow, 0, "not split (%s): all of its time is unattributed",
				   op->unsplit);
		sink_fmt_flow_end(&flow);
	}
	if (op->uncovered) {
		sink_fmt_flow_begin(&flow, out, st, "", 4);
		sink_fmt_flow_words(&flow, "the layers below the xlators were off: not looked at");
		sink_fmt_flow_end(&flow);
	}
}

static void put_figure(FILE *out, const struct sink_style *st, struct snap_num ns)
{
	char buf[32];

	sink_fmt_right(out, st, sink_fmt_ns(buf, sizeof(buf), ns.valid, ns.v), FIGURE_COLUMNS);
}

/* A moment: to the microsecond, so that rows near the end of a long operation tell apart. */
static void put_moment(FILE *out, const struct sink_style *st, struct snap_num ns)
{
	char buf[32] = "-";

	if (ns.valid && ns.v < 1e6)
		snprintf(buf, sizeof(buf), "%.0fus", ns.v / 1e3);
	else if (ns.valid && ns.v < 1e9)
		snprintf(buf, sizeof(buf), "%.3fms", ns.v / 1e6);
	else if (ns.valid)
		snprintf(buf, sizeof(buf), "%.3fs", ns.v / 1e9);
	sink_fmt_right(out, st, buf, FIGURE_COLUMNS);
}

/* A deep tree stays on the screen: what is deeper than half of it is not indented further. */
static unsigned int indent_of(const struct snap_slow_row *row, const struct sink_style *st)
{
	unsigned int most = sink_fmt_columns(st) / 2, columns = 2 * row->depth;

	return columns < most ? columns : most;
}

static void put_row(FILE *out, const struct snap_slow_row *row, const struct sink_style *st)
{
	char buf[32];

	if (row->longest)
		sink_fmt_colour(out, st, SINK_HOT);
	put_moment(out, st, row->at_ns);
	put_figure(out, st, (struct snap_num){ row->incl_ns, true });
	put_figure(out, st, row->self_ns);
	fprintf(out, "  %*s", (int)indent_of(row, st), "");
	sink_fmt_text(out, st, row->id);
	if (row->calls != 1)
		fprintf(out, " (%s times)", sink_fmt_u64(buf, sizeof(buf), row->calls));
	if (row->failed)
		fputs(" failed", out);
	if (row->open)
		fputs(" (not over yet at the reply)", out);
	if (row->longest)
		fputs("   <-- most of the time", out);
	if (row->longest)
		sink_fmt_colour(out, st, SINK_PLAIN);
	fputc('\n', out);
}

static void put_op(FILE *out, const struct snap_slow *op, const struct sink_style *st)
{
	static const char *const titles[FIGURES] = { "at", "time", "self" };
	char calls[32], ns[32];

	fputc('\n', out);
	put_head(out, op, st);
	for (int i = 0; i < FIGURES; i++)
		sink_fmt_right(out, st, titles[i], FIGURE_COLUMNS);
	fputs("  layer\n", out);
	for (size_t i = 0; i < op->n_rows; i++)
		put_row(out, &op->rows[i], st);
	if (op->more_calls)
		fprintf(out, "%*s%s  and %s shorter system calls\n", 2 * FIGURE_COLUMNS - 7, "",
			sink_fmt_ns(ns, sizeof(ns), true, op->more_ns),
			sink_fmt_u64(calls, sizeof(calls), op->more_calls));
}

void sink_slow_text(FILE *out, const struct snap_slows *slow, const struct sink_style *st)
{
	if (!slow->wanted[0])
		return;
	fputc('\n', out);
	put_summary(out, slow, st);
	for (size_t i = 0; i < slow->n_ops; i++)
		put_op(out, &slow->ops[i], st);
}
