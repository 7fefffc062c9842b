/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h: what bricktop may cost, and what of it can be afforded: the layers below the xlators,
 * and where not even the walk alone is within the budget, the walk. An account that the budget is
 * paid into and that what was spent is taken from, tick by tick. Pure: what was spent the caller
 * measures, and what is on the caller switches.
 */
#ifndef BRICKTOP_BUDGET_H
#define BRICKTOP_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* What is on: each with all before it. */
enum budget_level {
	BUDGET_NOTHING, /* but the probes themselves: a hit costs its trap */
	BUDGET_WALK,
	BUDGET_LAYERS,
};

struct budget {
	double share;     /* of the target's CPU time: 0.05 */
	double credit_ns; /* below 0: spent ahead */
	double most_ns;   /* that a tick has allowed of late: what may be owed goes by it */
	double walk;      /* what the walk alone takes, a share as well: a mean of the last ticks */
	double probes;    /* the same of its probes while it is off */
	bool has_walk, has_probes;
	unsigned int unwalked; /* ticks in a row */
};

/* Of one tick, of one target. */
struct budget_tick {
	uint64_t target_cpu_ns; /* all that is spent on it lies in there */
	uint64_t walk_ns, layers_ns;
	bool walked; /* the walk was on */
};

void budget_begin(struct budget *b, double limit_pct);

/*
 * Account for a tick; returns what is to be on in the next one. The layers are as long as there is
 * credit, so that over some ticks what is spent is what the budget allows, whatever the layers
 * cost: the share of ticks with them follows by itself. Where the walk alone takes more, the layers
 * stay off, and the walk has its turns in the same way. What is saved while little is asked of the
 * target is kept for two ticks; what was overspent is remembered, busy or not: a target that works
 * in bursts is not let off its debt by each pause. But one tick in 120 is walked whatever is owed,
 * as long as the probes themselves are within the budget, or a debt from busy times would leave a
 * quiet one unseen for minutes.
 */
enum budget_level budget_next(struct budget *b, const struct budget_tick *tick);

/* The walk alone takes more than the budget: it takes turns, and the layers stay off. */
bool budget_is_short(const struct budget *b);

/* Not even the walk's probes are within the budget: all stays off, and that is too much. */
bool budget_is_broken(const struct budget *b);

#endif
