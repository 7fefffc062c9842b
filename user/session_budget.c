/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_budget.c: keeps an investigation within its budget: what the walk and the layers below
 * the xlators took of the targets' CPU time is reckoned twice a second, and the layers are switched
 * off and on. When to do so is budget.c's business, how long they were on is told from here.
 */
#include "session_priv.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"

#define TICK_NS (CLOCK_NS_PER_SEC / 2)

/* How long the layers have been on, up to a time not before the last switch. */
static uint64_t on_until(const struct session_budget *sb, uint64_t now_ns)
{
	return sb->on_ns + (sb->is_off ? 0 : now_ns - sb->switched_ns);
}

void session_limit(struct session *s, double limit_pct, bool in_turns)
{
	s->budget.in_turns = in_turns;
	s->budget.limit_pct = limit_pct;
	budget_begin(&s->budget.account, limit_pct);
}

/* What one process has used, and hit, since it was last looked at. */
static bool read_process(struct session *s, struct session_proc *p, struct meter_interval *ret)
{
	struct meter_target now, *t = &ret->target;
	uint64_t cpu_ns;

	*ret = (struct meter_interval){ .has_target = true };
	if (p->gone || meter_target_cpu_ns(p->pid, &cpu_ns) ||
	    source_meter_target(s->source, p->pid, &now) || cpu_ns < p->tick_cpu_ns ||
	    now.emulated_hits < p->tick_paid.emulated_hits)
		return false;
	*t = now;
	meter_target_since(t, &p->tick_paid);
	ret->target_cpu_ns = cpu_ns - p->tick_cpu_ns;
	ret->emulated_hits = t->emulated_hits;
	ret->stepped_hits = t->stepped_hits;
	ret->uprobe_run_ns = (uint64_t)(source_uprobe_run_ns(s->source) *
					(double)(t->emulated_hits + t->stepped_hits));
	p->tick_cpu_ns = cpu_ns;
	p->tick_paid = now;
	return true;
}

/* What that comes to, the walk and the layers apart. */
static struct budget_tick price(const struct session *s, const struct meter_interval *in)
{
	struct meter_interval walk = *in;
	struct meter_cost all, part;

	walk.target.tracepoint_hits = walk.target.tracepoint_work_ns = walk.target.timed_hits = 0;
	meter_compute(&s->cal, in, &all);
	meter_compute(&s->cal, &walk, &part);
	return (struct budget_tick){
		.target_cpu_ns = in->target_cpu_ns,
		.walk_ns = part.target_ns,
		.layers_ns = all.target_ns - part.target_ns,
	};
}

static double excess_ns(const struct session *s, const struct budget_tick *tick)
{
	return (double)(tick->walk_ns + tick->layers_ns) -
	       s->budget.account.share * (double)tick->target_cpu_ns;
}

/* The process that pays most beyond the budget, or is the nearest to it. */
static bool read_tick(struct session *s, struct budget_tick *ret_tick)
{
	struct meter_interval in;
	struct budget_tick tick;
	bool any = false;
	size_t i;

	for (i = 0; i < s->n_procs; i++) {
		if (!read_process(s, &s->procs[i], &in))
			continue;
		tick = price(s, &in);
		if (!any || excess_ns(s, &tick) > excess_ns(s, ret_tick))
			*ret_tick = tick;
		any = true;
	}
	return any;
}

/* Attaching takes a while, and only then all of them are on; detaching begins with their end. */
static void switch_layers(struct session *s, bool on)
{
	struct session_budget *sb = &s->budget;
	uint64_t now_ns = clock_mono_ns();
	char err[256] = "";

	if (on == !sb->is_off || sb->failed)
		return;
	if (source_switch_layers(s->source, on, err, sizeof(err))) {
		sb->failed = true;
		(void)model_feed_off(s->model, "layers", err);
		return;
	}
	if (!on)
		sb->on_ns += now_ns - sb->switched_ns;
	sb->switched_ns = on ? clock_mono_ns() : now_ns;
	sb->is_off = !on;
}

/* Where the walk alone is beyond the budget, nothing is left to be saved. */
static void tell_short(struct session *s)
{
	char line[128];

	if (budget_is_short(&s->budget.account)) {
		snprintf(line, sizeof(line),
			 "the walk of requests alone takes %.1f %% of the target's CPU time, more "
			 "than %g %%",
			 100 * s->budget.account.walk, s->budget.limit_pct);
		(void)model_feed_off(s->model, "budget", line);
	} else {
		model_clear_off(s->model, SNAP_ALL_TARGETS, "budget");
	}
}

void session_keep_budget(struct session *s)
{
	struct session_budget *sb = &s->budget;
	uint64_t now_ns = clock_mono_ns();
	struct budget_tick tick;
	bool on;

	if (!sb->limit_pct || now_ns < sb->next_tick_ns)
		return;
	sb->next_tick_ns = now_ns + TICK_NS;
	if (!source_has_shed(s->source) || !read_tick(s, &tick))
		return;
	on = budget_next(&sb->account, &tick);
	switch_layers(s, sb->in_turns ? sb->is_off : on);
	if (!sb->in_turns)
		tell_short(s);
}

void session_start_duty(struct session *s)
{
	struct session_budget *sb = &s->budget;

	if (!sb->switched_ns)
		sb->switched_ns = s->begin_ns;
	sb->begin_on_ns = on_until(sb, clock_mono_ns());
	sb->next_tick_ns = s->begin_ns + TICK_NS;
}

void session_rewind_duty(struct session *s)
{
	s->budget.begin_on_ns = s->budget.seen_on_ns;
}

double session_duty_pct(struct session *s, uint64_t now_ns)
{
	struct session_budget *sb = &s->budget;
	uint64_t wall_ns = now_ns - s->begin_ns;

	if (!sb->limit_pct || !source_has_shed(s->source) || now_ns <= s->begin_ns)
		return 100;
	sb->seen_on_ns = on_until(sb, now_ns);
	return 100 * (double)(sb->seen_on_ns - sb->begin_on_ns) / (double)wall_ns;
}
