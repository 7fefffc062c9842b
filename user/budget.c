/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c: see budget.h.
 */
#include "budget.h"

#define SAVED_TICKS 2
#define OWED_TICKS  100
#define WALK_WEIGHT 0.25 /* of a tick in the mean */

void budget_begin(struct budget *b, double limit_pct)
{
	*b = (struct budget){ .share = limit_pct / 100 };
}

/* Of a tick in which the target hardly ran a share says nothing. */
static void learn_walk(struct budget *b, const struct budget_tick *tick)
{
	double now;

	if (!tick->target_cpu_ns)
		return;
	now = (double)tick->walk_ns / (double)tick->target_cpu_ns;
	b->walk = b->has_walk ? b->walk + WALK_WEIGHT * (now - b->walk) : now;
	b->has_walk = true;
}

bool budget_next(struct budget *b, const struct budget_tick *tick)
{
	double allowed_ns = b->share * (double)tick->target_cpu_ns;

	learn_walk(b, tick);
	if (budget_is_short(b))
		return false; /* the walk is not paid from what the layers save */
	b->most_ns -= b->most_ns / OWED_TICKS;
	if (allowed_ns > b->most_ns)
		b->most_ns = allowed_ns;
	b->credit_ns += allowed_ns - (double)tick->walk_ns - (double)tick->layers_ns;
	if (b->credit_ns > SAVED_TICKS * allowed_ns)
		b->credit_ns = SAVED_TICKS * allowed_ns;
	if (b->credit_ns < -OWED_TICKS * b->most_ns)
		b->credit_ns = -OWED_TICKS * b->most_ns;
	return b->credit_ns >= 0;
}

bool budget_is_short(const struct budget *b)
{
	return b->has_walk && b->walk > b->share;
}
