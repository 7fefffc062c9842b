/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_cost.c: what the investigation costs: its own CPU time, the hits of all programs on the
 * host, and those of each target's threads, from the begin of the window. Prices and arithmetic are
 * meter.c's.
 */
#include "session_priv.h"

#include <string.h>

#include "clock.h"

/* The window of one process's cost begins now. */
void session_start_cost(const struct session *s, struct session_proc *p)
{
	p->stepped_hits = 0;
	if (meter_target_cpu_ns(p->pid, &p->cpu_ns))
		p->cpu_ns = 0;
	if (!s->source || source_meter_target(s->source, p->pid, &p->paid))
		memset(&p->paid, 0, sizeof(p->paid));
	p->seen_cpu_ns = p->cpu_ns;
	p->seen_paid = p->paid;
	p->tick_cpu_ns = p->cpu_ns;
	p->tick_paid = p->paid;
}

void session_rewind_cost(struct session *s)
{
	size_t i;

	s->begin_ns = s->collected_ns;
	s->own_cpu_ns = s->seen_own_cpu_ns;
	memset(&s->meter, 0, sizeof(s->meter));
	session_rewind_duty(s);
	for (i = 0; i < s->n_procs; i++) {
		s->procs[i].cpu_ns = s->procs[i].seen_cpu_ns;
		s->procs[i].paid = s->procs[i].seen_paid;
		s->procs[i].stepped_hits = 0;
	}
}

/* What one process used and hit since the window began; false where it is gone or not known. */
static bool read_target(const struct session *s, struct session_proc *p,
			struct meter_interval *interval)
{
	struct meter_target now = { .has_tracepoints = true }, *t = &interval->target;
	uint64_t cpu_ns;

	if (p->gone || meter_target_cpu_ns(p->pid, &cpu_ns) || cpu_ns < p->cpu_ns)
		return false;
	if (s->source && source_meter_target(s->source, p->pid, &now))
		return false;
	p->seen_cpu_ns = cpu_ns;
	p->seen_paid = now;
	interval->target_cpu_ns = cpu_ns - p->cpu_ns;
	*t = now;
	meter_target_since(t, &p->paid);
	p->stepped_hits = t->stepped_hits;
	return true;
}

struct duty {
	struct snap_num walk, layers; /* in %, of the window */
};

static void read_duty(struct session *s, uint64_t now_ns, struct duty *ret)
{
	ret->walk = (struct snap_num){ session_duty_pct(&s->budget.walk, now_ns), true };
	ret->layers = (struct snap_num){ session_duty_pct(&s->budget.layers, now_ns),
					 source_has_shed(s->source) };
}

/* Cost of one process's targets. */
static void feed_cost(struct session *s, struct session_proc *p, const struct duty *duty)
{
	struct meter_interval interval = s->meter;
	struct snap_cost snap = {
		.uprobe_hits = interval.uprobe_hits,
		.tracepoint_hits = interval.tracepoint_hits,
		.is_uncounted = interval.not_counted,
		.duty_pct = duty->layers,
		.walk_duty_pct = duty->walk,
		.budget_pct = { s->budget.limit_pct, s->budget.limit_pct > 0 },
	};
	struct meter_cost cost;
	size_t i;

	interval.has_target = read_target(s, p, &interval);
	meter_compute(&s->cal, &interval, &cost);
	snap.probe_hits = snap.uprobe_hits + snap.tracepoint_hits;
	snap.core_pct = (struct snap_num){ cost.core_pct, cost.has_core };
	snap.target_pct = (struct snap_num){ cost.target_pct, cost.has_target };
	snap.own_pct = (struct snap_num){ cost.own_pct, cost.has_own };
	snap.hit_ns = s->cal.has_emulated ? s->cal.emulated_ns : 0;
	snap.tracepoint_hit_ns = s->cal.has_tracepoint ? s->cal.tracepoint_ns : 0;
	for (i = p->first; i < p->first + p->n_targets; i++)
		model_feed_cost(s->model, (unsigned int)i, &snap);
}

/* Which of the uprobe hits were dear ones only the targets' own counts tell. */
static void sort_hits(struct session *s)
{
	uint64_t all = s->meter.emulated_hits + s->meter.stepped_hits, stepped = 0;
	size_t i;

	for (i = 0; i < s->n_procs; i++)
		stepped += s->procs[i].stepped_hits;
	if (stepped > all)
		stepped = all;
	s->meter.stepped_hits = stepped;
	s->meter.emulated_hits = all - stepped;
}

void session_collect_cost(struct session *s)
{
	struct session_proc nobody = { .gone = true, .n_targets = s->n_host };
	struct meter_interval tick = { 0 };
	uint64_t own_ns, now_ns = clock_mono_ns();
	struct duty duty = { .walk.valid = false };
	size_t i;

	if (s->source)
		source_meter(s->source, now_ns, &tick);
	s->meter.uprobe_run_ns += tick.uprobe_run_ns;
	s->meter.tracepoint_run_ns += tick.tracepoint_run_ns;
	s->meter.emulated_hits += tick.emulated_hits;
	s->meter.uprobe_hits += tick.uprobe_hits;
	s->meter.tracepoint_hits += tick.tracepoint_hits;
	s->meter.not_counted = s->meter.not_counted || tick.not_counted;
	s->meter.wall_ns = now_ns - s->begin_ns;
	if (s->source)
		read_duty(s, now_ns, &duty);
	if (!meter_own_cpu_ns(&own_ns)) {
		s->meter.own_cpu_ns = own_ns - s->own_cpu_ns;
		s->seen_own_cpu_ns = own_ns;
	}
	for (i = 0; i < s->n_procs; i++)
		read_target(s, &s->procs[i], &tick);
	sort_hits(s);
	for (i = 0; i < s->n_procs; i++)
		feed_cost(s, &s->procs[i], &duty);
	if (s->n_host)
		feed_cost(s, &nobody, &duty);
}
