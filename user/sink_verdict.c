/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_verdict.c: pools of threads as a small table, and the verdict as sentences with their
 * evidence. Owns their wording and columns; computes nothing.
 */
#include "sink_verdict.h"

#include <string.h>

#define LABEL_COLUMNS  9 /* as of the lines below the tables: "verdict  ..." */
#define POOL_COLUMNS   18
#define NUMBER_COLUMNS 10
#define IDLE_PCT       0.05 /* prints as 0.0 % */
#define MAX_POOLS      16   /* shown by name: a process may give each thread one of its own */

/* ---- threads ----------------------------------------------------------- */

/* Pools that are not shown by name. */
struct rest {
	unsigned int idle, others; /* threads */
	double oncpu_ns;           /* of the others */
};

/* A pool whose figures are not known is not known to be idle. */
static bool is_idle(const struct snap_pool *p)
{
	return p->oncpu_pct.valid && p->oncpu_pct.v + p->runnable_pct.v < IDLE_PCT;
}

static void put_pct(FILE *out, struct snap_num pct, const struct sink_style *st)
{
	char buf[32];

	sink_fmt_right(out, st, sink_fmt_pct(buf, sizeof(buf), pct), NUMBER_COLUMNS);
}

static void put_pool(FILE *out, const struct snap_pool *p, const struct sink_style *st)
{
	char buf[32];

	fputs("  ", out);
	sink_fmt_left(out, st, p->name, POOL_COLUMNS - 2);
	sink_fmt_right(out, st, sink_fmt_u64(buf, sizeof(buf), p->n), 5);
	put_pct(out, p->oncpu_pct, st);
	put_pct(out, p->runnable_pct, st);
	put_pct(out, p->blocked_pct, st);
	if (p->n > 1 && p->busiest->oncpu_pct.valid)
		fprintf(out, "   %s on CPU", sink_fmt_pct(buf, sizeof(buf), p->busiest->oncpu_pct));
	fputc('\n', out);
}

static void put_rest(FILE *out, const struct rest *rest)
{
	char buf[32];

	if (rest->others)
		fprintf(out, "  and %u in other pools, on CPU for %s together\n", rest->others,
			sink_fmt_ns(buf, sizeof(buf), true, rest->oncpu_ns));
	if (rest->idle)
		fprintf(out, "  and %u idle\n", rest->idle);
}

void sink_verdict_threads(FILE *out, const struct snap_target *t, const struct sink_style *st)
{
	struct rest rest = {};
	unsigned int shown = 0;

	if (!t->n_pools)
		return;
	fputc('\n', out);
	sink_fmt_left(out, st, "threads", POOL_COLUMNS);
	sink_fmt_right(out, st, "n", 5);
	sink_fmt_right(out, st, "on CPU", NUMBER_COLUMNS);
	sink_fmt_right(out, st, "runnable", NUMBER_COLUMNS);
	sink_fmt_right(out, st, "blocked", NUMBER_COLUMNS);
	fputs("   busiest\n", out);
	for (size_t i = 0; i < t->n_pools; i++) {
		const struct snap_pool *p = &t->pools[i];

		if (is_idle(p)) {
			rest.idle += p->n;
		} else if (shown++ < MAX_POOLS) {
			put_pool(out, p, st);
		} else {
			rest.others += p->n;
			rest.oncpu_ns += p->oncpu_ns.valid ? p->oncpu_ns.v : 0;
		}
	}
	put_rest(out, &rest);
}

/* ---- the verdict ------------------------------------------------------- */

static const char *confidence_name(enum snap_confidence confidence)
{
	static const char *const names[] = {
		[SNAP_LOW] = "low",
		[SNAP_MEDIUM] = "medium",
		[SNAP_HIGH] = "high",
	};

	return names[confidence];
}

static void put_line(FILE *out, const char *lead, const char *text, const struct sink_style *st)
{
	struct sink_flow flow;

	sink_fmt_flow_begin(&flow, out, st, lead, LABEL_COLUMNS + 2);
	sink_fmt_flow_words(&flow, text);
	sink_fmt_flow_end(&flow);
}

static void put_cause(FILE *out, const struct snap_cause *cause, const char *lead,
		      const struct sink_style *st)
{
	struct sink_flow flow;
	char buf[32];

	sink_fmt_colour(out, st, SINK_BOLD);
	sink_fmt_flow_begin(&flow, out, st, lead, LABEL_COLUMNS);
	if (cause->tail)
		sink_fmt_flow_words(&flow, "of the slowest requests:");
	sink_fmt_flow_words(&flow, cause->summary);
	sink_fmt_colour(out, st, SINK_PLAIN);
	if (cause->share_pct.valid)
		sink_fmt_flow_item(&flow, 3, "%s",
				   sink_fmt_pct(buf, sizeof(buf), cause->share_pct));
	sink_fmt_flow_item(&flow, 3, "confidence %s", confidence_name(cause->confidence));
	sink_fmt_flow_end(&flow);
	for (unsigned int i = 0; i < cause->n_evidence; i++)
		put_line(out, "", cause->evidence[i], st);
	if (cause->next[0])
		put_line(out, "  next:", cause->next, st);
}

void sink_verdict_causes(FILE *out, const struct snap_target *t, const struct sink_style *st)
{
	if (!t->n_causes)
		return;
	fputc('\n', out);
	for (unsigned int i = 0; i < t->n_causes; i++)
		put_cause(out, &t->causes[i], i ? "then" : "verdict", st);
}
