/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verdict_tail.c: what the mean does not show: one request in a hundred with another cause,
 * and a single one that took seconds among many quick ones.
 */
#include "verdict_bed.h"

#define IOT   "performance/io-threads"
#define POSIX "storage/posix"

/* ---- one in a hundred -------------------------------------------------- */

static struct snapshot *slow_brick(uint64_t count)
{
	static const struct row rows[] = {
		{ 0, "server", "protocol/server", 20 }, { 1, "io-threads", IOT, 60 },
		{ 2, "locks", "features/locks", 5000 }, { 3, "posix", POSIX, 30 },
		{ 4, "pread64", "syscall", 90 },        END
	};
	struct snapshot *s = start("brick");

	add_op(s, "brick", "read", count, rows);
	add_pool(s, "io-threads", 8, 0.4, 0.1);
	return s;
}

static void test_slowest(void)
{
	struct snapshot *s = slow_brick(4000);
	struct snap_op *op = &s->targets[0].ops[0];

	op->incl.p50 = 5 * MS;
	op->incl.p99 = 80 * MS;
	op->layers[2].self.p99 = 6 * MS; /* locks: always the same */
	op->layers[4].self.p99 = 75 * MS;
	judge_is(s, 0, "xlator locks high", "the mean's cause");
	judge_is(s, 1, "syscall pread64 slowest low", "the slowest have another");
	ok(has_evidence(s, 1, "read: p50 5.0ms, but p99 80ms; p99 of pread64 itself 75ms"),
	   "which is said");
	op->layers[4].self.p99 = 30 * MS;
	judge_is(s, 1, "none", "not where it is less than half of it");
	snapshot_free(s);
}

/* Requests that wait longest in the queue do so for others' sake. */
static void test_queue_is_no_tail(void)
{
	struct snapshot *s = slow_brick(4000);
	struct snap_op *op = &s->targets[0].ops[0];

	op->incl.p50 = 5 * MS;
	op->incl.p99 = 80 * MS;
	op->layers[1].self.p99 = 79 * MS;
	judge_is(s, 1, "none", "the queue is no cause of the slowest");
	snapshot_free(s);
}

/* ---- a single one ------------------------------------------------------ */

/* Ten thousand writes of 50 us, and next to nothing else: a write, or a read, took max_ns, and the
 * layer that at is the number of self_ns of that. */
static const struct row quick_rows[] = { { 0, "server", "protocol/server", 5 },
					 { 1, "io-threads", IOT, 5 },
					 { 2, "locks", "features/locks", 5 },
					 { 3, "posix", POSIX, 5 },
					 { 4, "pwrite64", "syscall", 5 },
					 { 5, "folio read", "writeback", 1 },
					 { 5, "block device", "block", 20 },
					 { 5, "block flush", "block", 4 },
					 END };

static const struct {
	const char *what, *op; /* the one that took so long */
	double max_ns;
	unsigned int at;
	double self_ns;
	const char *first, *then; /* what is said */
} outliers[] = {
	{ "a device", "write", 4e9, 6, 3.9e9, "nothing-stands-out  medium",
	  "device block device slowest low" },
	{ "a flush", "write", 4e9, 7, 3.9e9, "nothing-stands-out  medium",
	  "device block flush slowest low" },
	{ "a page", "write", 4e9, 5, 3.9e9, "nothing-stands-out  medium",
	  "page-read folio read slowest low" },
	{ "a system call", "write", 4e9, 4, 3.9e9, "nothing-stands-out  medium",
	  "syscall pwrite64 slowest low" },
	{ "an xlator", "write", 4e9, 2, 3.9e9, "nothing-stands-out  medium",
	  "xlator locks slowest low" },
	{ "a device, of which few are asked", "read", 4e9, 6, 3.9e9, "nothing-stands-out  medium",
	  "device block device slowest low" },
	{ "several, none of them for half of it", "write", 4e9, 6, 1.9e9,
	  "nothing-stands-out  medium", "none" },
	{ "the queue", "write", 4e9, 1, 3.9e9, "nothing-stands-out  medium", "none" },
	{ "just long enough", "write", 1e9, 6, 0.9e9, "nothing-stands-out  medium",
	  "device block device slowest low" },
	{ "just not", "write", 0.999e9, 6, 0.9e9, "nothing-stands-out  high", "none" },
	{ "a lock, by right", "inodelk", 4e9, 2, 3.9e9, "nothing-stands-out  high", "none" },
};

static struct snapshot *quick_brick(const char *other)
{
	struct snapshot *s = start("brick");

	add_op(s, "brick", "write", 10000, quick_rows);
	add_op(s, "brick", other, 40, quick_rows);
	add_pool(s, "io-threads", 8, 0.4, 0.1);
	return s;
}

static void test_single(void)
{
	for (size_t i = 0; i < sizeof(outliers) / sizeof(outliers[0]); i++) {
		bool other = strcmp(outliers[i].op, "write") != 0;
		struct snapshot *s = quick_brick(other ? outliers[i].op : "read");
		struct snap_op *op = &s->targets[0].ops[other];

		op->incl.max = outliers[i].max_ns;
		op->layers[outliers[i].at].self.max = outliers[i].self_ns;
		judge_is(s, 0, outliers[i].first, outliers[i].what);
		judge_is(s, 1, outliers[i].then, outliers[i].what);
		snapshot_free(s);
	}
}

static void test_single_evidence(void)
{
	struct snapshot *s = quick_brick("read");
	struct snap_op *ops = s->targets[0].ops;

	ops[0].incl.max = 2e9;
	ops[1].incl.max = 4e9;
	/* a read that few of them do; most of all the time is its */
	ops[1].layers[5].self = dist(1, 3.9e9, 3.9e9, 3.9e9, 3.9e9);
	ops[1].incl.mean = 3.9e9 / 40 + 50 * US;
	judge_is(s, 1, "page-read folio read slowest low", "one that few requests meet");
	ok(has_evidence(s, 0, "the slowest read took 4.0s: --slow 1s shows such ones whole"),
	   "it says what to do");
	ok(has_evidence(s, 1, "the slowest 4.0s; the slowest of folio read itself 3.9s"),
	   "and of the cause how long");
	/* what was in no request by a user */
	SET(ops[0].origin, "internal");
	SET(ops[1].origin, "internal");
	add_op(s, "brick", "writev", 10000, quick_rows);
	judge_is(s, 0, "nothing-stands-out  high", "a heal may take long");
	snapshot_free(s);
}

/* Where requests take that long anyway, the slowest of them are no others. */
static void test_all_slow(void)
{
	struct snapshot *s = slow_brick(900);
	struct snap_op *op = &s->targets[0].ops[0];

	op->incl.p50 = 0.3e9;
	op->incl.max = 1.4e9;
	op->layers[4].self.max = 1.3e9;
	judge_is(s, 1, "none", "the slowest took less than five times the median");
	op->incl.max = 1.6e9;
	judge_is(s, 1, "syscall pread64 slowest low", "or more");
	op->layers[2].self.max = 1.5e9;
	judge_is(s, 1, "none", "what is the mean's cause is named once");
	snapshot_free(s);
}

int main(void)
{
	test_slowest();
	test_queue_is_no_tail();
	test_single();
	test_single_evidence();
	test_all_slow();
	return tap_done();
}
