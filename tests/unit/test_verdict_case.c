/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verdict_case.c: a window in which layers took turns off: what is known of the requests that
 * were seen whole stands for all, as sure as these are many, and like the others.
 */
#include "verdict.h"

#include <string.h>

#include "verdict_bed.h"

#define REQUESTS 4000

static const struct row rows[] = {
	{ 0, "server", "protocol/server", 20 }, { 1, "io-threads", "performance/io-threads", 60 },
	{ 2, "posix", "storage/posix", 30 },    { 3, "pread64", "syscall", 90 },
	{ 4, "block device", "block", 4000 },   END
};

/* Of the requests so many were seen whole; the others took `slower` times as long. */
static struct snapshot *sampled(uint64_t covered, double slower)
{
	struct snapshot *s = start("brick");
	struct snap_op *op = add_op(s, "brick", "read", REQUESTS, rows);
	double mean = op->incl.mean;

	add_pool(s, "io-threads", 4, 2, 0.1);
	op->uncovered = REQUESTS - covered;
	op->uncovered_ns = mean * slower * (double)op->uncovered;
	op->incl.mean = (mean * (double)covered + op->uncovered_ns) / REQUESTS;
	for (size_t i = 0; i < op->n_layers; i++)
		op->layers[i].self.count = covered;
	s->targets[0].lost.skipped = s->targets[0].lost.total = op->uncovered;
	verdict_judge(s);
	return s;
}

static void judged(uint64_t covered, double slower, const char *want, const char *what)
{
	struct snapshot *s = sampled(covered, slower);
	const struct snap_cause *cause = &s->targets[0].causes[0];
	char name[128];

	is_str(name_of(cause, name, sizeof(name)), want, "%s", what);
	if (strcmp(cause->cause, "device") == 0)
		ok(cause->share_pct.v > 95 && cause->share_pct.v <= 100, "its share: %.1f %%",
		   cause->share_pct.v);
	snapshot_free(s);
}

int main(void)
{
	struct snapshot *s;

	judged(REQUESTS, 1, "device block device high", "all were seen whole");
	judged(400, 1, "device block device high", "a tenth, which is enough");
	judged(250, 1, "device block device medium", "too few to be sure");
	judged(400, 1.2, "device block device high", "the others took hardly longer");
	judged(400, 3, "device block device medium", "the others took three times as long");
	s = sampled(60, 1);
	is_str(s->targets[0].causes[0].cause, "not-enough-data", "too few to say anything");
	ok(has_evidence(s, 0, "60 of 4000 requests ended while all layers were on (--budget)"),
	   "and why");
	snapshot_free(s);
	s = sampled(0, 1);
	is_str(s->targets[0].causes[0].cause, "not-enough-data", "none");
	snapshot_free(s);
	return tap_done();
}
