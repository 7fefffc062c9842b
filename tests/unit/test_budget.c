/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_budget.c: the account that keeps bricktop within its budget, against a target of which is
 * known what the walk and the layers cost: how much is spent in the end, how soon, and what is said
 * where the walk alone is too dear.
 */
#include "budget.h"

#include <math.h>

#include "tap.h"

#define MS 1000000ULL

/* A target that uses 500 ms of CPU a tick; shares of that in percent. */
struct play {
	struct budget b;
	double walk_pct, layers_pct;
	double probes_pct; /* of the walk's probes while it is off */
	enum budget_level level;
	unsigned int ticks, ticks_on; /* with layers */
	unsigned int ticks_walked, switches;
	double spent_ms;
};

static void begin(struct play *p, double limit_pct, double walk_pct, double layers_pct)
{
	*p = (struct play){ .walk_pct = walk_pct,
			    .layers_pct = layers_pct,
			    .level = BUDGET_LAYERS };
	budget_begin(&p->b, limit_pct);
}

static void run(struct play *p, unsigned int ticks, double cpu_ms)
{
	for (unsigned int i = 0; i < ticks; i++) {
		bool on = p->level == BUDGET_LAYERS, walked = p->level >= BUDGET_WALK;
		double walk_ms = cpu_ms * (walked ? p->walk_pct : p->probes_pct) / 100;
		double layers_ms = on ? cpu_ms * p->layers_pct / 100 : 0;
		struct budget_tick tick = {
			.target_cpu_ns = (uint64_t)(cpu_ms * MS),
			.walk_ns = (uint64_t)(walk_ms * MS),
			.layers_ns = (uint64_t)(layers_ms * MS),
			.walked = walked,
		};

		p->ticks++;
		p->ticks_on += on;
		p->ticks_walked += walked;
		p->spent_ms += walk_ms + layers_ms;
		p->level = budget_next(&p->b, &tick);
		p->switches += (p->level >= BUDGET_WALK) != walked;
	}
}

static double spent_pct(const struct play *p, double cpu_ms)
{
	return 100 * p->spent_ms / (cpu_ms * p->ticks);
}

static void test_enough(void)
{
	struct play p;

	begin(&p, 20, 5, 10);
	run(&p, 100, 500);
	is_int(p.ticks_on, 100, "what fits the budget stays on");
	ok(!budget_is_short(&p.b), "and nothing is short");
	begin(&p, 15, 5, 10);
	run(&p, 100, 500);
	is_int(p.ticks_on, 100, "to the last bit of it");
}

static void test_share(void)
{
	static const struct {
		double limit, walk, layers;
	} plays[] = { { 10, 5, 15 }, { 8, 5, 9 }, { 5.5, 5, 15 }, { 1, 0.2, 30 }, { 50, 0, 51 } };
	double want;
	struct play p;

	for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
		begin(&p, plays[i].limit, plays[i].walk, plays[i].layers);
		run(&p, 20, 500);
		ok(spent_pct(&p, 500) <= plays[i].limit + plays[i].layers / 20 + 1e-6,
		   "budget %g, walk %g, layers %g: kept within 20 ticks, but for one with layers: "
		   "%.2f",
		   plays[i].limit, plays[i].walk, plays[i].layers, spent_pct(&p, 500));
		run(&p, 1980, 500);
		want = (plays[i].limit - plays[i].walk) / plays[i].layers;
		ok(fabs(p.ticks_on / 2000.0 - want) < 0.002, "share of ticks with layers: %.4f",
		   p.ticks_on / 2000.0);
		ok(fabs(spent_pct(&p, 500) - plays[i].limit) < 0.05, "what is spent: %.2f",
		   spent_pct(&p, 500));
	}
}

/* In any window of ten ticks the share is what it is in all: no long waves. */
static void test_even(void)
{
	unsigned int before, least = 10, most = 0;
	struct play p;

	begin(&p, 9.5, 5, 15);
	run(&p, 10, 500);
	for (int i = 0; i < 50; i++) {
		before = p.ticks_on;
		run(&p, 10, 500);
		least = p.ticks_on - before < least ? p.ticks_on - before : least;
		most = p.ticks_on - before > most ? p.ticks_on - before : most;
	}
	is_int(least, 3, "of ten ticks at least three are on");
	is_int(most, 3, "and at most three");
}

static void test_short(void)
{
	struct play p;

	begin(&p, 5, 6, 10);
	run(&p, 50, 500);
	is_int(p.ticks_on, 1,
	       "where the walk is beyond the budget layers are on until that is seen");
	ok(budget_is_short(&p.b), "and that is told");
	p.walk_pct = 2;
	run(&p, 12, 500);
	ok(!budget_is_short(&p.b), "until the walk is cheaper");
	p.ticks = p.ticks_on = 0;
	run(&p, 40, 500);
	ok(p.ticks_on > 5, "what was overspent is not owed for ever");
}

/* Where the walk alone is too dear it takes turns, and what is spent is the budget. */
static void test_walk_share(void)
{
	static const struct {
		double limit, walk, probes;
	} plays[] = { { 5, 6, 1 }, { 2, 6, 1 }, { 1.1, 12, 1 }, { 5, 5.2, 0.5 } };
	double want;
	struct play p;

	for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++) {
		begin(&p, plays[i].limit, plays[i].walk, 20);
		p.probes_pct = plays[i].probes;
		run(&p, 2000, 500);
		want = (plays[i].limit - plays[i].probes) / (plays[i].walk - plays[i].probes);
		is_int(p.ticks_on, 1, "walk %g, budget %g: no layers", plays[i].walk,
		       plays[i].limit);
		ok(fabs(p.ticks_walked / 2000.0 - want) < 0.02,
		   "share of ticks that are walked: %.4f of %.4f", p.ticks_walked / 2000.0, want);
		ok(fabs(spent_pct(&p, 500) - plays[i].limit) < 0.05, "what is spent: %.2f",
		   spent_pct(&p, 500));
		ok(!budget_is_broken(&p.b), "and that can be kept");
	}
	begin(&p, 2, 8, 20);
	p.probes_pct = 1.5;
	run(&p, 240, 500);
	p.ticks_walked = 0;
	run(&p, 120, 5);
	ok(p.ticks_walked >= 1, "after busy times quiet ones are walked within a minute: %u",
	   p.ticks_walked);
	begin(&p, 0.5, 6, 20);
	p.probes_pct = 1;
	run(&p, 100, 500);
	ok(budget_is_broken(&p.b), "probes that are too dear by themselves");
	ok(p.ticks_walked < 5, "leave no room to walk");
	p.walk_pct = 0.4;
	p.probes_pct = 0.1;
	run(&p, 400, 500);
	ok(!budget_is_broken(&p.b) && !budget_is_short(&p.b), "until they are cheaper");
}

static void test_idle(void)
{
	struct play p;

	begin(&p, 5, 1, 20);
	run(&p, 100, 0);
	is_int(p.ticks_on, 100, "a target that does nothing pays nothing");
	ok(!budget_is_short(&p.b), "and says nothing");
	run(&p, 200, 10);
	p.ticks = p.ticks_on = 0;
	p.spent_ms = 0;
	run(&p, 20, 500);
	ok(spent_pct(&p, 500) <= 5 + 20 / 20.0 + 1e-6,
	   "what was saved in idle times is not spent at once later: %.2f", spent_pct(&p, 500));
}

/* Work in bursts: what a burst has overspent is not forgotten in the pause after it. */
static void test_bursts(void)
{
	static const double pauses_ms[] = { 0, 1, 20 };
	struct play p;

	for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
		double cpu_ms = 0;

		begin(&p, 5, 1, 40);
		for (int burst = 0; burst < 500; burst++) {
			run(&p, 2, 500);
			run(&p, 2, pauses_ms[i]);
			cpu_ms += 2 * 500 + 2 * pauses_ms[i];
		}
		ok(100 * p.spent_ms / cpu_ms < 5.1, "pauses with %g ms: spent %.2f %%",
		   pauses_ms[i], 100 * p.spent_ms / cpu_ms);
	}
}

int main(void)
{
	test_enough();
	test_share();
	test_even();
	test_short();
	test_walk_share();
	test_idle();
	test_bursts();
	return tap_done();
}
