/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_budget.c: keeps an investigation within its budget: what the walk and the layers below
 * the xlators took of the targets' CPU time is reckoned twice a second, and they are switched off
 * and on. When to do so is budget.c's business, how long they were on is told from here.
 */
#include "session_priv.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"

#define TICK_NS (CLOCK_NS_PER_SEC / 2)

/* How long it has been on, up to a time not before the last switch. */
static uint64_t on_until(const struct session_duty *d, uint64_t now_ns)
{
	return d->on_ns + (d->is_off ? 0 : now_ns - d->switched_ns);
}

/* Switched at begin_ns; being switched on took until end_ns. */
static void note_switch(struct session_duty *d, bool on, uint64_t begin_ns, uint64_t end_ns)
{
	if (!on)
		d->on_ns += begin_ns - d->switched_ns;
	d->switched_ns = on ? end_ns : begin_ns;
	d->is_off = !on;
}

void session_limit(struct session *s, double limit_pct, enum session_turns turns)
{
	s->budget.turns = turns;
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
		.walked = source_walks(s->source),
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

	if (on == !sb->layers.is_off || sb->failed || !source_has_shed(s->source))
		return;
	if (source_switch_layers(s->source, on, err, sizeof(err))) {
		sb->failed = true;
		(void)model_feed_off(s->model, "layers", err);
		return;
	}
	note_switch(&sb->layers, on, now_ns, clock_mono_ns());
}

/* The search for callbacks must not take for unmet what nobody walks: before, and after. */
static void switch_walk(struct session *s, bool on)
{
	uint64_t now_ns = clock_mono_ns();
	size_t i;

	if (on == !s->budget.walk.is_off)
		return;
	for (i = 0; !on && i < s->n_procs; i++) {
		if (s->procs[i].watch)
			watch_pause(s->procs[i].watch, s->source, s->model);
	}
	if (!source_switch_walk(s->source, on))
		note_switch(&s->budget.walk, on, now_ns, clock_mono_ns());
	for (i = 0; !s->budget.walk.is_off && i < s->n_procs; i++) {
		if (s->procs[i].watch)
			watch_resume(s->procs[i].watch, s->source, s->model);
	}
}

/*
 * The layers are off for a tick before the walk is, and on after it: what they note of a request
 * only its walk can claim.
 */
static void set_level(struct session *s, enum budget_level level)
{
	bool layers_were_on = source_has_shed(s->source) && !s->budget.layers.is_off;

	if (level < BUDGET_LAYERS)
		switch_layers(s, false);
	switch_walk(s, level >= BUDGET_WALK || layers_were_on);
	if (level == BUDGET_LAYERS)
		switch_layers(s, true);
}

/* What follows the next tick of a test. */
static enum budget_level take_turn(struct session_budget *sb)
{
	if (sb->turns == SESSION_TURNS_LAYERS)
		return sb->layers.is_off ? BUDGET_LAYERS : BUDGET_WALK;
	switch (++sb->tick % 4) {
	case 0:
		return BUDGET_LAYERS;
	case 1:
		return BUDGET_WALK;
	default:
		return BUDGET_NOTHING;
	}
}

/* Not even the walk's probes are within the budget: nothing is left to be saved. */
static void tell_broken(struct session *s)
{
	char line[128];

	if (budget_is_broken(&s->budget.account)) {
		snprintf(line, sizeof(line),
			 "the probes alone, while nothing is walked, take %.1f %% of the target's "
			 "CPU time, more than %g %%",
			 100 * s->budget.account.probes, s->budget.limit_pct);
		(void)model_feed_off(s->model, "budget", line);
	} else {
		model_clear_off(s->model, SNAP_ALL_TARGETS, "budget");
	}
}

void session_keep_budget(struct session *s)
{
	struct session_budget *sb = &s->budget;
	uint64_t now_ns = clock_mono_ns();
	enum budget_level level;
	struct budget_tick tick;

	if (!sb->limit_pct || now_ns < sb->next_tick_ns)
		return;
	sb->next_tick_ns = now_ns + TICK_NS;
	if (!read_tick(s, &tick))
		return;
	level = budget_next(&sb->account, &tick);
	set_level(s, sb->turns ? take_turn(sb) : level);
	if (!sb->turns)
		tell_broken(s);
}

static void start_duty(struct session_duty *d, uint64_t now_ns)
{
	if (!d->switched_ns)
		d->switched_ns = now_ns;
	d->begin_ns = now_ns;
	d->begin_on_ns = on_until(d, now_ns);
}

static void rewind_duty(struct session_duty *d)
{
	d->begin_ns = d->seen_ns;
	d->begin_on_ns = d->seen_on_ns;
}

void session_start_duty(struct session *s)
{
	uint64_t now_ns = clock_mono_ns();

	start_duty(&s->budget.layers, now_ns);
	start_duty(&s->budget.walk, now_ns);
	s->budget.next_tick_ns = s->begin_ns + TICK_NS;
}

void session_rewind_duty(struct session *s)
{
	rewind_duty(&s->budget.layers);
	rewind_duty(&s->budget.walk);
}

double session_duty_pct(struct session_duty *d, uint64_t now_ns)
{
	d->seen_ns = now_ns;
	d->seen_on_ns = on_until(d, now_ns);
	if (now_ns <= d->begin_ns)
		return d->is_off ? 0 : 100;
	return 100 * (double)(d->seen_on_ns - d->begin_on_ns) / (double)(now_ns - d->begin_ns);
}
