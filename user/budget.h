/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h: what bricktop may cost, and whether the layers below the xlators can be afforded: an
 * account that the budget is paid into and that what was spent is taken from, tick by tick. Pure:
 * what was spent the caller measures, and what is on the caller switches.
 */
#ifndef BRICKTOP_BUDGET_H
#define BRICKTOP_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
	double share;     /* of the target's CPU time: 0.05 */
	double credit_ns; /* below 0: spent ahead */
	double most_ns;   /* that a tick has allowed of late: what may be owed goes by it */
	double walk;      /* what the walk alone takes, a share as well: a mean of the last ticks */
	bool has_walk;
};

/* Of one tick, of one target. */
struct budget_tick {
	uint64_t target_cpu_ns; /* all that is spent on it lies in there */
	uint64_t walk_ns, layers_ns;
};

void budget_begin(struct budget *b, double limit_pct);

/*
 * Account for a tick; returns whether the layers are to be on in the next one. They are as long as
 * there is credit, so that over some ticks what is spent is what the budget allows, whatever the
 * layers cost: the share of ticks with them follows by itself. What is saved while little is asked
 * of the target is kept for two ticks; what was overspent is remembered for a hundred, busy or not:
 * a target that works in bursts is not let off its debt by each pause.
 */
bool budget_next(struct budget *b, const struct budget_tick *tick);

/* The walk alone takes more than the budget: then the layers stay off. */
bool budget_is_short(const struct budget *b);

#endif
