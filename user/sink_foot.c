/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_foot.c: see sink_foot.h. A line has a label and wraps below it; what there is nothing to say
 * of has no line.
 */
#include "sink_foot.h"

#include <inttypes.h>

#define LABEL_COLUMNS 9 /* "lost     ..." */

bool sink_foot_layers_were_off(const struct snap_cost *c)
{
	return c->duty_pct.valid && c->duty_pct.v < 100;
}

static void put_oldest(FILE *out, const struct snap_oldest *o, const struct sink_style *st)
{
	struct sink_flow flow;
	char buf[32];

	if (!o->valid)
		return;
	sink_fmt_flow_begin(&flow, out, st, "oldest", LABEL_COLUMNS);
	sink_fmt_flow_item(&flow, 0, "request in flight: %s, %s", o->op,
			   sink_fmt_ns(buf, sizeof(buf), true, o->age_ns));
	sink_fmt_flow_item(&flow, 1, "in %s", o->xlator);
	if (o->file[0])
		sink_fmt_flow_item(&flow, 2, "file %s", o->file);
	if (o->app_pid < 0)
		sink_fmt_flow_item(&flow, 2, "internal");
	else if (o->app_pid > 0)
		sink_fmt_flow_item(&flow, 2, "application pid %" PRId64, o->app_pid);
	sink_fmt_flow_end(&flow);
}

static void put_lost(FILE *out, const struct snap_lost *l, const char *whose,
		     const struct sink_style *st)
{
	const struct {
		uint64_t n;
		const char *what;
	} causes[] = {
		{ l->map_full, "samples for which no histogram was free" },
		{ l->ring_full, "whole requests for which the ring had no room" },
		{ l->unpaired, "spans without a begin or an end" },
		{ l->unreadable, "failed reads of process memory" },
		{ l->absurd, "negative or impossible durations" },
		{ l->ledger, "requests unsplit: more spans than a thread remembers" },
		{ l->frames, "requests unsplit: more frames than a walk takes" },
		{ l->order, "requests unsplit: intervals out of order" },
		{ l->unknown_xlator, "frames of an xlator in no known graph" },
		{ l->marks, "shared frames not split (their entries were not all seen)" },
		{ l->wakes, "sleeps whose end was not seen" },
		{ l->skipped, "requests skipped by duty cycle or limits" },
		{ l->recursion, "probes that hit while one was running" },
		{ l->uprobe_missed, "uprobe hits missed by the kernel" },
		{ l->storage_busy, "hits that found task storage busy or full" },
		{ l->begun_before, "asynchronous operations begun before it looked: no loss" },
	};
	struct sink_flow flow;
	char buf[32];

	if (l->total == 0 && l->begun_before == 0)
		return;
	sink_fmt_flow_begin(&flow, out, st, "lost", LABEL_COLUMNS);
	if (whose)
		sink_fmt_flow_item(&flow, 0, "%s", whose);
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (causes[i].n > 0)
			sink_fmt_flow_item(&flow, 3, "%s %s",
					   sink_fmt_u64(buf, sizeof(buf), causes[i].n),
					   causes[i].what);
	sink_fmt_flow_end(&flow);
}

static void put_checks(FILE *out, const struct snap_checks *c, const struct sink_style *st)
{
	const struct {
		uint64_t n;
		const char *what;
	} kinds[] = {
		{ c->outside, "with a child outside its parent" },
		{ c->negative, "with a negative self time" },
		{ c->unsplit, "unsplit" },
		{ c->orphan, "with a frame whose parent is missing" },
		{ c->open, "with a child still open at the reply (clipped)" },
	};
	struct sink_flow flow;
	char buf[32];

	if (c->walked == 0)
		return;
	sink_fmt_flow_begin(&flow, out, st, "checks", LABEL_COLUMNS);
	sink_fmt_flow_item(&flow, 0, "%s requests walked",
			   sink_fmt_u64(buf, sizeof(buf), c->walked));
	sink_fmt_flow_item(&flow, 3, "%s add up in every layer",
			   sink_fmt_u64(buf, sizeof(buf), c->holds));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].n > 0)
			sink_fmt_flow_item(&flow, 3, "%s %s",
					   sink_fmt_u64(buf, sizeof(buf), kinds[i].n),
					   kinds[i].what);
	sink_fmt_flow_end(&flow);
}

static bool has_cost(const struct snap_cost *c)
{
	return c->core_pct.valid || c->target_pct.valid || c->probe_hits > 0;
}

static void put_hits(struct sink_flow *flow, const char *what, uint64_t hits, double each_ns)
{
	char buf[32];

	if (!hits)
		return;
	sink_fmt_flow_item(flow, 3, "%s %s", sink_fmt_u64(buf, sizeof(buf), hits), what);
	if (each_ns > 0)
		sink_fmt_flow_item(flow, 1, "(%s each as calibrated)",
				   sink_fmt_ns(buf, sizeof(buf), true, each_ns));
}

static void put_cost(FILE *out, const struct snap_cost *c, const struct sink_style *st)
{
	struct sink_flow flow;
	char buf[32], other[32];

	if (!has_cost(c))
		return;
	sink_fmt_flow_begin(&flow, out, st, "cost", LABEL_COLUMNS);
	sink_fmt_flow_item(&flow, 0, "%s of a core", sink_fmt_pct(buf, sizeof(buf), c->core_pct));
	sink_fmt_flow_item(&flow, 3, "%s of the target's CPU time",
			   sink_fmt_pct(buf, sizeof(buf), c->target_pct));
	put_hits(&flow, "uprobe hits", c->uprobe_hits, c->hit_ns);
	put_hits(&flow, "tracepoint hits host-wide, by sample", c->tracepoint_hits,
		 c->tracepoint_hit_ns);
	if (c->is_uncounted)
		sink_fmt_flow_item(&flow, 3, "- tracepoint hits: the kernel does not tell them");
	if (c->budget_pct.valid)
		sink_fmt_flow_item(&flow, 3, "budget %.1f %%", c->budget_pct.v);
	if (sink_foot_layers_were_off(c) || (c->walk_duty_pct.valid && c->walk_duty_pct.v < 100))
		sink_fmt_flow_item(&flow, 3, "the walk on %s%s%s of the time",
				   sink_fmt_pct(buf, sizeof(buf), c->walk_duty_pct),
				   c->duty_pct.valid ? ", layers below the xlators " : "",
				   c->duty_pct.valid ? sink_fmt_pct(other, 32, c->duty_pct) : "");
	sink_fmt_flow_end(&flow);
}

/* Where the probes are: the instruction decides what a hit costs. */
static void put_probes(FILE *out, const struct snap_probes *p, const struct sink_style *st)
{
	struct sink_flow flow;
	char buf[32];

	if (!p->valid)
		return;
	sink_fmt_flow_begin(&flow, out, st, "probes", LABEL_COLUMNS);
	sink_fmt_flow_item(&flow, 0, "%s callbacks of %s",
			   sink_fmt_u64(buf, sizeof(buf), p->callbacks), p->module);
	if (p->insn[0])
		sink_fmt_flow_item(&flow, 1, "(%s, %s)", p->insn,
				   p->insn_stepped ? "single-stepped" : "emulated");
	if (p->kind[0])
		sink_fmt_flow_item(&flow, 3, "%s", p->kind);
	if (p->stepped)
		sink_fmt_flow_item(&flow, 3, "%s of them single-stepped",
				   sink_fmt_u64(buf, sizeof(buf), p->stepped));
	if (!p->callbacks)
		sink_fmt_flow_item(&flow, 3, "none found in the code: each once it was seen");
	sink_fmt_flow_end(&flow);
}

/* What one target misses, or (target < 0) all. */
static void put_off(FILE *out, const struct snapshot *snap, int target, const struct sink_style *st)
{
	for (size_t i = 0; i < snap->n_off; i++) {
		struct sink_flow flow;

		if (snap->off[i].target != target)
			continue;
		sink_fmt_flow_begin(&flow, out, st, "off", LABEL_COLUMNS);
		sink_fmt_flow_item(&flow, 0, "%s:", snap->off[i].what);
		sink_fmt_flow_words(&flow, snap->off[i].reason);
		sink_fmt_flow_end(&flow);
	}
}

static size_t count_off(const struct snapshot *snap, int target)
{
	size_t n = 0;

	for (size_t i = 0; i < snap->n_off; i++)
		n += snap->off[i].target == target;
	return n;
}

void sink_foot_target(FILE *out, const struct snapshot *snap, int target,
		      const struct sink_style *st)
{
	const struct snap_target *t = &snap->targets[target];

	if (t->oldest.valid || has_cost(&t->cost) || t->probes.valid || count_off(snap, target) ||
	    (!snap->memory_only && (t->lost.total > 0 || t->checks.walked > 0)))
		fputc('\n', out);
	put_oldest(out, &t->oldest, st);
	if (!snap->memory_only) {
		put_lost(out, &t->lost, NULL, st);
		put_checks(out, &t->checks, st);
	}
	put_cost(out, &t->cost, st);
	put_probes(out, &t->probes, st);
	put_off(out, snap, target, st);
}

void sink_foot_all(FILE *out, const struct snapshot *snap, const struct sink_style *st)
{
	if (count_off(snap, SNAP_ALL_TARGETS) || snap->lost_unassigned.total > 0 ||
	    snap->lost_devices.total > 0)
		fputc('\n', out);
	put_lost(out, &snap->lost_unassigned, "of some target, it is not known which:", st);
	put_lost(out, &snap->lost_devices, "among the devices, of the whole host:", st);
	put_off(out, snap, SNAP_ALL_TARGETS, st);
}
