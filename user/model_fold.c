/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_fold.c: from the growing words of a slot to what one window added, and from buckets to
 * quantiles. Owns the handling of wrapped 32-bit buckets and of counters that start again. Must not
 * know targets, trees or names.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

void model_counter_fold(struct model_counter *c, uint64_t now, bool fresh)
{
	c->win += fresh ? now : now - c->last;
	c->last = now;
}

/* Make cells for every non-empty bucket. Whole powers of two at a time, so that this is rare. */
static int cover_buckets(struct model_hist *h, const __u32 *buckets)
{
	unsigned int low = 0, end = HIST_BUCKETS;
	struct model_cell *cells;

	while (low < end && !buckets[low])
		low++;
	if (low == end)
		return 0;
	while (!buckets[end - 1])
		end--;
	low -= low % HIST_SUBS;
	end += (HIST_SUBS - end % HIST_SUBS) % HIST_SUBS;
	if (h->n) {
		low = low < h->low ? low : h->low;
		end = end > h->low + h->n ? end : h->low + h->n;
		if (low == h->low && end == h->low + h->n)
			return 0;
	}
	cells = calloc(end - low, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	if (h->n)
		memcpy(cells + (h->low - low), h->cells, h->n * sizeof(*cells));
	free(h->cells);
	h->cells = cells;
	h->low = low;
	h->n = end - low;
	return 0;
}

static void fold_covered(struct model_side *side, uint64_t sum_ns, uint64_t max_ns,
			 const __u32 *buckets, bool fresh)
{
	struct model_hist *h = &side->hist;

	model_counter_fold(&side->sum, sum_ns, fresh);
	for (unsigned int i = 0; i < h->n; i++) {
		struct model_cell *c = &h->cells[i];
		uint32_t now = buckets[h->low + i];

		c->win += fresh ? now : (uint32_t)(now - c->last);
		c->last = now;
	}
	/* The maximum only grows: where it grew, it is this window's, to the nanosecond. */
	if ((fresh || max_ns > side->max_last) && max_ns > side->max_win)
		side->max_win = max_ns;
	side->max_last = max_ns;
}

int model_side_fold(struct model_side *side, uint64_t sum, uint64_t max, const __u32 *buckets)
{
	int err = cover_buckets(&side->hist, buckets);

	if (!err)
		fold_covered(side, sum, max, buckets, sum < side->sum.last);
	return err;
}

int model_slot_fold(struct model_slot *s, const struct wire_slot *sum)
{
	/* 64-bit words never wrap: one that fell belongs to a map that was made anew. */
	bool fresh = sum->count < s->count.last || sum->self_sum_ns < s->self.sum.last ||
		     sum->incl_sum_ns < s->incl.sum.last;
	int err = cover_buckets(&s->self.hist, sum->self);

	if (!err)
		err = cover_buckets(&s->incl.hist, sum->incl);
	if (err)
		return err;
	model_counter_fold(&s->count, sum->count, fresh);
	model_counter_fold(&s->errors, sum->errors, fresh || sum->errors < s->errors.last);
	model_counter_fold(&s->bytes, sum->bytes, fresh || sum->bytes < s->bytes.last);
	model_counter_fold(&s->more, (uint64_t)sum->more, fresh);
	model_counter_fold(&s->no_errors, sum->no_errors,
			   fresh || sum->no_errors < s->no_errors.last);
	model_counter_fold(&s->no_bytes, sum->no_bytes, fresh || sum->no_bytes < s->no_bytes.last);
	fold_covered(&s->self, sum->self_sum_ns, sum->self_max_ns, sum->self, fresh);
	fold_covered(&s->incl, sum->incl_sum_ns, sum->incl_max_ns, sum->incl, fresh);
	return 0;
}

void model_side_start(struct model_side *side)
{
	side->sum.win = 0;
	side->max_win = 0;
	for (unsigned int i = 0; i < side->hist.n; i++)
		side->hist.cells[i].win = 0;
}

void model_slot_start(struct model_slot *s)
{
	s->count.win = s->errors.win = s->bytes.win = s->more.win = 0;
	s->no_errors.win = s->no_bytes.win = 0;
	model_side_start(&s->self);
	model_side_start(&s->incl);
}

uint64_t model_slot_met(const struct model_slot *s)
{
	uint64_t met = s->count.win + s->more.win;

	return (int64_t)met < 0 ? 0 : met;
}

void model_slot_free(struct model_slot *s)
{
	if (!s)
		return;
	free(s->self.hist.cells);
	free(s->incl.hist.cells);
	free(s);
}

/*
 * The window's maximum. Exact where the window raised the counter's maximum; otherwise all that is
 * known is the highest bucket that grew: its upper edge, which the maximum ever seen may undercut.
 */
static uint64_t side_max_ns(const struct model_side *side)
{
	const struct model_hist *h = &side->hist;
	unsigned int i = h->n, high;
	uint64_t edge_ns;

	while (i > 0 && !h->cells[i - 1].win)
		i--;
	if (i == 0)
		return side->max_win;
	high = h->low + i - 1;
	if (side->max_win && hist_bucket(side->max_win) >= high)
		return side->max_win;
	edge_ns = hist_low_ns(high + 1) - 1;
	if (hist_bucket(side->max_last) < high)
		return edge_ns;
	/* The last bucket has no upper edge. */
	if (high == HIST_BUCKETS - 1 || side->max_last < edge_ns)
		return side->max_last;
	return edge_ns;
}

void model_sum_add(struct model_sum *sum, const struct model_side *side, uint64_t count)
{
	uint64_t max_ns = side_max_ns(side);

	sum->count += count;
	sum->sum_ns += side->sum.win;
	if (max_ns > sum->max_ns)
		sum->max_ns = max_ns;
	for (unsigned int i = 0; i < side->hist.n; i++)
		sum->buckets[side->hist.low + i] += side->hist.cells[i].win;
}

#define MILLION 1000000U

double model_sum_quantile(const struct model_sum *sum, uint64_t n, unsigned int ppm)
{
	/* ceil(n * ppm / MILLION) without overflow */
	uint64_t rank = n / MILLION * ppm + (n % MILLION * ppm + MILLION - 1) / MILLION;
	uint64_t seen = 0, ns;
	unsigned int b = 0;

	for (; b < HIST_BUCKETS - 1; b++) {
		seen += sum->buckets[b];
		if (seen >= rank)
			break;
	}
	ns = hist_mid_ns(b);
	return (double)(ns < sum->max_ns ? ns : sum->max_ns);
}

uint64_t model_sum_entered(const struct model_sum *sum)
{
	uint64_t n = 0;

	for (unsigned int b = 0; b < HIST_BUCKETS; b++)
		n += sum->buckets[b];
	return n;
}

void model_sum_dist(const struct model_sum *sum, struct snap_dist *ret_dist)
{
	uint64_t n;

	memset(ret_dist, 0, sizeof(*ret_dist));
	if (!sum->count)
		return;
	ret_dist->valid = true;
	ret_dist->count = sum->count;
	ret_dist->mean = (double)sum->sum_ns / (double)sum->count;
	n = model_sum_entered(sum);
	if (!n)
		return;
	ret_dist->has_quantiles = true;
	ret_dist->p50 = model_sum_quantile(sum, n, 500000);
	ret_dist->p90 = model_sum_quantile(sum, n, 900000);
	ret_dist->p99 = model_sum_quantile(sum, n, 990000);
	ret_dist->p999 = model_sum_quantile(sum, n, 999000);
	ret_dist->max = (double)sum->max_ns;
}

void model_side_dist(const struct model_side *side, uint64_t count, struct snap_dist *ret_dist)
{
	struct model_sum sum = { 0 };

	model_sum_add(&sum, side, count);
	model_sum_dist(&sum, ret_dist);
}
