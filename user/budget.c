/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c: see budget.h.
 */
#include "budget.h"

#define SAVED_TICKS 2
#define OWED_TICKS  100
#define WEIGHT      0.25 /* of a tick in a mean */
#define LONGEST     119  /* ticks without the walk */

void budget_begin(struct budget *b, double limit_pct)
{
	*b = (struct budget){ .share = limit_pct / 100 };
}

static void learn(double *mean, bool *has_any, double now)
{
	*mean = *has_any ? *mean + WEIGHT * (now - *mean) : now;
	*has_any = true;
}

/* Of a tick in which the target hardly ran a share says nothing. */
static void learn_shares(struct budget *b, const struct budget_tick *tick)
{
	double now;

	if (!tick->target_cpu_ns)
		return;
	now = (double)tick->walk_ns / (double)tick->target_cpu_ns;
	if (tick->walked)
		learn(&b->walk, &b->has_walk, now);
	else
		learn(&b->probes, &b->has_probes, now);
}

enum budget_level budget_next(struct budget *b, const struct budget_tick *tick)
{
	double allowed_ns = b->share * (double)tick->target_cpu_ns;
	bool has_credit;

	learn_shares(b, tick);
	b->most_ns -= b->most_ns / OWED_TICKS;
	if (allowed_ns > b->most_ns)
		b->most_ns = allowed_ns;
	b->credit_ns += allowed_ns - (double)tick->walk_ns - (double)tick->layers_ns;
	if (b->credit_ns > SAVED_TICKS * allowed_ns)
		b->credit_ns = SAVED_TICKS * allowed_ns;
	if (b->credit_ns < -OWED_TICKS * b->most_ns)
		b->credit_ns = -OWED_TICKS * b->most_ns;
	has_credit = b->credit_ns >= 0;
	b->unwalked = tick->walked ? 0 : b->unwalked + 1;
	if (budget_is_short(b)) {
		if (b->unwalked >= LONGEST && !budget_is_broken(b))
			return BUDGET_WALK;
		return has_credit ? BUDGET_WALK : BUDGET_NOTHING;
	}
	return has_credit ? BUDGET_LAYERS : BUDGET_WALK;
}

bool budget_is_short(const struct budget *b)
{
	return b->has_walk && b->walk > b->share;
}

bool budget_is_broken(const struct budget *b)
{
	return budget_is_short(b) && b->has_probes && b->probes > b->share;
}
