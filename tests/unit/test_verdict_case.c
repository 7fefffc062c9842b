/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verdict_case.c: a window in which layers took turns off: what is known of the requests that
 * were seen whole stands for all, as sure as these are many, and like the others. And a process of
 * asynchronous operations: their time counts once, although calls wait for them.
 */
#include "verdict.h"

#include <math.h>
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

static struct snapshot *async_process(const char *op, const char *call, uint64_t count,
				      const struct row *op_rows, const struct row *call_rows)
{
	struct snapshot *s = start("process");

	if (op_rows)
		add_op(s, "local", op, count, op_rows)->coverage_pct.valid = false;
	add_op(s, "local", call, count, call_rows)->coverage_pct.valid = false;
	add_pool(s, "app", 1, 0.5, 0.1);
	return s;
}

/* One operation at a time: the call that waits for it is as long as the operation. */
static void test_uring(void)
{
	static const struct row read[] = { { 0, "io_uring read", "aio", 60 },
					   { 1, "io_uring submit", "aio", 40 },
					   { 1, "block held back", "block", 6600 },
					   { 1, "block device", "block", 300 },
					   END };
	static const struct row enter[] = { { 0, "io_uring_enter", "syscall", 200 },
					    { 1, "block wait", "block", 6800 },
					    END };
	struct snapshot *s = async_process("io_uring read", "io_uring_enter", 1400, read, enter);

	judge_is(s, 0, "block-held block held back high", "what io_uring's reads wait for");
	is_int(s->targets[0].n_causes, 1, "which the wait for them is no second cause beside");
	ok(fabs(s->targets[0].causes[0].share_pct.v - 100 * 6600.0 / 7000) < 0.1,
	   "its share is of the operations' time: %.1f %%", s->targets[0].causes[0].share_pct.v);
	snapshot_free(s);

	s = async_process(NULL, "io_uring_enter", 1400, NULL, enter);
	judge_is(s, 0, "device block wait high", "without operations of files it is all there is");
	snapshot_free(s);
}

/* A worker is held back with one write, and the others of the file wait for it. */
static void test_workers(void)
{
	static const struct row write[] = { { 0, "io_uring write", "aio", 6000 },
					    { 1, "io_uring submit", "aio", 20 },
					    { 1, "throttle", "throttle", 800 },
					    END };
	static const struct row enter[] = { { 0, "io_uring_enter", "syscall", 200 }, END };
	struct snapshot *s = async_process("io_uring write", "io_uring_enter", 10000, write, enter);

	judge_is(s, 0, "aio io_uring write medium", "what waits for workers");
	ok(has_evidence(s, 0, "dirty pages (throttle) for 80 % of the window"),
	   "and what those wait for");
	snapshot_free(s);
}

/* What submitting waits for is told apart in the call only. */
static void test_libaio(void)
{
	static const struct row write[] = { { 0, "aio write", "aio", 30 },
					    { 1, "aio submit", "aio", 2000 },
					    END };
	static const struct row submit[] = { { 0, "io_submit", "syscall", 40 },
					     { 1, "throttle", "throttle", 1960 },
					     END };
	struct snapshot *s = async_process("aio write", "io_submit", 4000, write, submit);

	judge_is(s, 0, "throttle throttle high", "what libaio's writes wait for");
	is_int(s->targets[0].n_causes, 1, "which their submission is no second cause beside");
	snapshot_free(s);
}

/* Of which no layer knows more: never sure where other operations' I/O is seen. */
static void test_unknown_below(void)
{
	static const struct row sync[] = { { 0, "aio fsync", "aio", 6000 },
					   { 1, "aio submit", "aio", 20 },
					   { 1, "block device", "block", 400 },
					   END };
	static const struct row submit[] = { { 0, "io_submit", "syscall", 30 }, END };
	struct snapshot *s = async_process("aio fsync", "io_submit", 1500, sync, submit);

	judge_is(s, 0, "aio aio fsync medium", "operations in flight that nothing is known of");
	ok(has_evidence(s, 0, "in no request to a block device that is known"), "which it says");
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
	test_uring();
	test_workers();
	test_libaio();
	test_unknown_below();
	return tap_done();
}
