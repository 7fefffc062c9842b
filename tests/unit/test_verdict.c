/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verdict.c: from made-up snapshots to causes: each cause by itself, a healthy target, too
 * little data of each kind, two causes near each other, and that whatever is missing takes the
 * confidence away. How real bricks look is tests/e2e/verdict.sh's business.
 */
#include "verdict.h"

#include <math.h>

#include "capture.h"
#include "golden.h"
#include "sink_json.h"
#include "sink_text.h"
#include "verdict_bed.h"

/* ---- each cause -------------------------------------------------------- */

#define IOT   "performance/io-threads"
#define POSIX "storage/posix"

/* A brick's chain with something below posix, and what is to be said of it. */
static const struct {
	const char *want;
	struct row rows[8];
} causes[] = {
	{ "inode-lock xfs lock wait high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "pwrite64", "syscall", 40 },
	    { 4, "xfs lock wait", "xfs", 1900 },
	    END } },
	{ "log xfs log iclog high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "fsync", "syscall", 40 },
	    { 4, "xfs log cil", "xfs", 300 },
	    { 4, "xfs log iclog", "xfs", 1900 },
	    END } },
	{ "throttle throttle high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "pwrite64", "syscall", 40 },
	    { 4, "throttle", "throttle", 4000 },
	    END } },
	{ "writeback writeback wait high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "fsync", "syscall", 40 },
	    { 4, "writeback wait", "writeback", 4000 },
	    END } },
	{ "page-read folio read high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "pread64", "syscall", 40 },
	    { 4, "folio read", "writeback", 4000 },
	    END } },
	{ "block-held block held back high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "pread64", "syscall", 40 },
	    { 4, "block held back", "block", 8000 },
	    { 4, "block device", "block", 200 },
	    END } },
	{ "block-queue block queue high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "pread64", "syscall", 40 },
	    { 4, "block queue", "block", 8000 },
	    { 4, "block device", "block", 900 },
	    END } },
	{ "device block device high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "pread64", "syscall", 40 },
	    { 4, "block device", "block", 7000 },
	    { 4, "block flush", "block", 900 },
	    END } },
	{ "syscall pread64 high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "pread64", "syscall", 8000 },
	    END } },
	{ "xlator locks high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "locks", "features/locks", 5000 },
	    { 3, "posix", POSIX, 30 },
	    { 4, "pread64", "syscall", 90 },
	    END } },
	/* who shares posix's frame by an option may be the one that takes the time */
	{ "xlator delay-gen+posix high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "delay-gen+posix", "debug/delay-gen+storage/posix", 5000 },
	    { 3, "pread64", "syscall", 90 },
	    END } },
	/* who does in every brick does not */
	{ "syscall access-control+posix high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "access-control+posix", "features/access-control+storage/posix", 5000 },
	    { 3, "pread64", "syscall", 90 },
	    END } },
	/* a layer that no row knows is named all the same */
	{ "layer sqlite high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "sqlite", "sqlite", 5000 },
	    { 2, "posix", POSIX, 90 },
	    END } },
	{ "aio aio read high",
	  { { 0, "server", "protocol/server", 20 },
	    { 1, "io-threads", IOT, 60 },
	    { 2, "posix", POSIX, 30 },
	    { 3, "aio read", "aio", 7000 },
	    { 4, "aio submit", "aio", 40 },
	    END } },
};

static void test_each_cause(void)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		struct snapshot *s = start("brick");

		add_op(s, "brick", "write", 4000, causes[i].rows);
		add_pool(s, "io-threads", 8, 0.4, 0.1);
		add_pool(s, "event threads", 2, 0.2, 0.1);
		judge_is(s, 0, causes[i].want, causes[i].want);
		snapshot_free(s);
	}
}

/* Requests of 150 us of sleep each, of which most wait for the one thread. */
static const struct row pool_rows[] = { { 0, "server", "protocol/server", 20 },
					{ 1, "io-threads", IOT, 2700 },
					{ 2, "posix", POSIX, 20 },
					{ 3, "pread64", "syscall", 20 },
					{ 4, "block device", "block", 110 },
					END };

static void test_pool(void)
{
	struct snapshot *s = start("brick");

	/* 60,000 x 150 us = 9 of 10 s; 16.2 requests in the queue */
	add_op(s, "brick", "read", 60000, pool_rows);
	add_pool(s, "io-threads", 1, 2, 0.4);
	judge_is(s, 0, "io-threads-pool io-threads high", "one thread for many requests");
	ok(has_evidence(s, 0, "16.2 requests are queued"), "it says how many wait");
	snapshot_free(s);

	/* the same times where 20 threads are there */
	s = start("brick");
	add_op(s, "brick", "read", 60000, pool_rows);
	add_pool(s, "io-threads", 20, 2, 0.4);
	verdict_judge(s);
	is_str(s->targets[0].causes[0].cause, "io-threads-queue",
	       "with threads to spare it is no lack of threads");
	ok(has_evidence(s, 0, "a larger thread-count changes nothing"), "and no advice to add any");
	snapshot_free(s);

	/* its thread lacks a CPU most of the time */
	s = start("brick");
	add_op(s, "brick", "read", 60000, pool_rows);
	add_pool(s, "io-threads", 1, 1, 8);
	verdict_judge(s);
	is_str(s->targets[0].causes[0].cause, "cpu", "more threads would not run, either");
	snapshot_free(s);
}

/* Three of four writers hold the three threads that there are; the queue is theirs. */
static void test_queue_behind_sleepers(void)
{
	static const struct row rows[] = { { 0, "server", "protocol/server", 20 },
					   { 1, "io-threads", IOT, 1700 },
					   { 2, "slow", "debug/slow", 5000 },
					   { 3, "posix", POSIX, 40 },
					   END };
	struct snapshot *s = start("brick");

	add_op(s, "brick", "write", 5900, rows);
	add_pool(s, "io-threads", 3, 0.3, 0.2);
	judge_is(s, 0, "xlator slow high", "what holds the threads is the cause of the queue");
	ok(fabs(s->targets[0].causes[0].share_pct.v - 98.9) < 0.2, "its share has the queue's");
	ok(has_evidence(s, 0, "for 25 % others wait in io-threads"), "and says so");
	snapshot_free(s);
}

/* Many jobs on a pool of sixteen that all wait for a slow device: the device, not the pool. */
static void test_full_pool_on_slow_device(void)
{
	static const struct row rows[] = { { 0, "server", "protocol/server", 20 },
					   { 1, "io-threads", IOT, 300000 },
					   { 2, "posix", POSIX, 40 },
					   { 3, "pread64", "syscall", 40 },
					   { 4, "block held back", "block", 100000 },
					   END };
	struct snapshot *s = start("brick");

	add_op(s, "brick", "read", 1600, rows);
	add_pool(s, "io-threads", 16, 0.3, 0.2);
	verdict_judge(s);
	is_str(s->targets[0].causes[0].cause, "block-held", "all threads wait for the device");
	is_str(s->targets[0].causes[1].cause, "io-threads-pool", "the pool comes second");
	snapshot_free(s);
}

static void test_remote(void)
{
	static const struct row rows[] = { { 0, "fuse", "mount/fuse", 20 },
					   { 1, "client-0", "protocol/client", 900 },
					   END };
	struct snapshot *s = start("client");

	add_op(s, "client", "read", 9000, rows);
	add_pool(s, "fuse reader", 1, 0.3, 0.1);
	judge_is(s, 0, "remote client-0 high", "a client whose brick takes the time");
	snapshot_free(s);
}

/* A process that serves nobody: its own file operations. */
static void test_process(void)
{
	static const struct row rows[] = { { 0, "fsync", "syscall", 100 },
					   { 1, "block flush", "block", 9000 },
					   END };
	struct snapshot *s = start("process");

	add_op(s, "local", "fsync", 900, rows)->coverage_pct.valid = false;
	add_pool(s, "app", 1, 0.3, 0.1);
	judge_is(s, 0, "device block flush high", "a plain process");
	snapshot_free(s);
}

/* ---- nothing ----------------------------------------------------------- */

/* One xlator has most of it, of next to nothing. */
static const struct row healthy_rows[] = { { 0, "server", "protocol/server", 20 },
					   { 1, "io-stats", "debug/io-stats", 90 },
					   { 2, "posix", POSIX, 20 },
					   END };

static void test_healthy(void)
{
	struct snapshot *s = start("brick");

	add_op(s, "brick", "read", 1000, healthy_rows);
	add_pool(s, "io-threads", 2, 0.1, 0.05);
	judge_is(s, 0, "nothing-stands-out  high", "a brick of which little is asked");
	is_int(s->targets[0].n_causes, 1, "nobody is blamed");
	ok(!s->targets[0].causes[0].share_pct.valid, "nothing has no share");
	/* not high where one of them has not come back for long */
	s->targets[0].oldest = (struct snap_oldest){ .valid = true, .age_ns = 3e9 };
	SET(s->targets[0].oldest.op, "read");
	SET(s->targets[0].oldest.xlator, "posix");
	judge_is(s, 0, "nothing-stands-out  medium", "one is in flight for 3 s");
	ok(has_evidence(s, 0, "read, in flight for 3.0s, in posix"), "which it says");
	snapshot_free(s);

	/* nor where that cannot be known: all its other calls may hang */
	s = start("process");
	add_op(s, "local", "openat", 600,
	       (const struct row[]){ { 0, "openat", "syscall", 9 }, END })
		->coverage_pct.valid = false;
	add_pool(s, "app", 10, 0.1, 0.05);
	judge_is(s, 0, "nothing-stands-out  medium", "a process that does little");
	ok(has_evidence(s, 0, "did not end in the window"), "it says what it cannot know");
	snapshot_free(s);

	/* little is asked, but what is takes long */
	s = start("brick");
	add_op(s, "brick", "read", 150, causes[9].rows); /* locks, 5 ms */
	add_pool(s, "io-threads", 2, 0.1, 0.05);
	judge_is(s, 0, "xlator locks medium", "seldom, but slow; too few to be sure");
	snapshot_free(s);
}

/* Several causes of a fifth each. */
static void test_nobody_leads(void)
{
	static const struct row rows[] = {
		{ 0, "server", "protocol/server", 900 }, { 1, "io-stats", "debug/io-stats", 800 },
		{ 2, "locks", "features/locks", 850 },   { 3, "index", "features/index", 900 },
		{ 4, "marker", "features/marker", 900 }, END
	};
	struct snapshot *s = start("brick");

	add_op(s, "brick", "write", 9000, rows);
	add_pool(s, "event threads", 2, 0.5, 0.1);
	judge_is(s, 0, "nothing-stands-out  high", "five layers of a fifth each");
	snapshot_free(s);
}

/* ---- not enough data --------------------------------------------------- */

static struct snapshot *slow_brick(uint64_t count)
{
	struct snapshot *s = start("brick");

	add_op(s, "brick", "read", count, causes[9].rows);
	add_pool(s, "io-threads", 8, 0.4, 0.1);
	return s;
}

static void missing_is(struct snapshot *s, const char *evidence)
{
	judge_is(s, 0, "not-enough-data  low", evidence);
	ok(has_evidence(s, 0, evidence), "it says: %s", evidence);
	is_int(s->targets[0].n_causes, 1, "and names nobody");
	snapshot_free(s);
}

static void test_not_enough(void)
{
	struct snapshot *s = slow_brick(99);

	missing_is(s, "99 requests ended: 100 are needed");
	missing_is(start("brick"), "0 requests ended");
	s = slow_brick(4000);
	s->window_secs = 0.4;
	missing_is(s, "0.4 s were measured");
	s = slow_brick(4000);
	s->targets[0].ops[0].coverage_pct = num(80);
	missing_is(s, "80.0 % of the requests were seen");
	s = slow_brick(4000);
	s->targets[0].checks.unsplit = 1000;
	missing_is(s, "25 % of the requests could not be split");
	s = slow_brick(4000);
	s->targets[0].lost.total = 900;
	missing_is(s, "900 losses");
	s = slow_brick(4000);
	s->targets[0].ops[0].incl.mean *= 2;
	missing_is(s, "the layers' own times are 50 % of the requests' time");
	s = slow_brick(4000);
	add_op(s, "brick", "write", 4000, causes[9].rows)->source = SNAP_FROM_MEMORY;
	missing_is(s, "for 50 % of the time only means are known");
	s = slow_brick(4000);
	s->memory_only = true;
	missing_is(s, "no probe was in");
	s = slow_brick(4000);
	s->window_secs = 0;
	verdict_judge(s);
	is_int(s->targets[0].n_causes, 0, "a process's whole life is not judged");
	snapshot_free(s);
}

/* ---- how sure ---------------------------------------------------------- */

static void confidence_is(struct snapshot *s, enum snap_confidence want, const char *what)
{
	verdict_judge(s);
	is_str(s->targets[0].causes[0].cause, "xlator", "%s: the cause stays", what);
	is_int(s->targets[0].causes[0].confidence, want, "%s: how sure", what);
	snapshot_free(s);
}

static void test_confidence(void)
{
	struct snapshot *s = slow_brick(4000);

	confidence_is(s, SNAP_HIGH, "all is known");
	confidence_is(slow_brick(299), SNAP_MEDIUM, "few requests");
	s = slow_brick(4000);
	s->targets[0].ops[0].coverage_pct = num(96);
	confidence_is(s, SNAP_MEDIUM, "some were not seen");
	s = slow_brick(4000);
	s->targets[0].ops[0].coverage_pct.valid = false;
	confidence_is(s, SNAP_MEDIUM, "how many were seen is not known");
	s = slow_brick(4000);
	s->targets[0].checks.unsplit = 300;
	confidence_is(s, SNAP_MEDIUM, "some could not be split");
	s = slow_brick(4000);
	s->targets[0].lost.total = 90;
	confidence_is(s, SNAP_MEDIUM, "some were lost");
	s = slow_brick(4000);
	s->targets[0].gone = true;
	confidence_is(s, SNAP_MEDIUM, "the process ended");
	s = slow_brick(4000);
	s->targets[0].ops[0].incl.mean *= 0.8;
	confidence_is(s, SNAP_MEDIUM, "layers run side by side");
	s = slow_brick(4000);
	s->targets[0].n_pools = 0;
	confidence_is(s, SNAP_HIGH, "an xlator's time needs no threads' times");
	s = start("brick");
	add_op(s, "brick", "read", 4000, causes[8].rows); /* system call */
	verdict_judge(s);
	is_int(s->targets[0].causes[0].confidence, SNAP_MEDIUM,
	       "whether a system call waits or works does");
	snapshot_free(s);
}

static void test_near_each_other(void)
{
	static const struct row rows[] = { { 0, "server", "protocol/server", 20 },
					   { 1, "io-threads", IOT, 60 },
					   { 2, "locks", "features/locks", 2600 },
					   { 3, "posix", POSIX, 30 },
					   { 4, "pread64", "syscall", 40 },
					   { 5, "block device", "block", 2000 },
					   END };
	struct snapshot *s = start("brick");

	add_op(s, "brick", "read", 4000, rows);
	add_pool(s, "io-threads", 8, 0.4, 0.1);
	judge_is(s, 0, "xlator locks medium", "two causes: the larger first, not sure");
	judge_is(s, 1, "device block device low", "the other one is said, too");
	ok(has_evidence(s, 0, "next to it: device block device, 43 %"), "with its share");
	snapshot_free(s);

	/* more than half is not enough where another cause explains nearly as much */
	s = start("brick");
	add_op(s, "brick", "read", 4000,
	       (const struct row[]){ { 0, "server", "protocol/server", 3800 },
				     { 1, "locks", "features/locks", 6200 },
				     END });
	add_pool(s, "event threads", 4, 2, 17);
	judge_is(s, 0, "xlator locks medium", "62 % beside 42 %");
	snapshot_free(s);
}

/* ---- requests that do not end ------------------------------------------ */

static void test_stuck(void)
{
	struct snapshot *s = slow_brick(10);
	struct snap_oldest *o = &s->targets[0].oldest;

	*o = (struct snap_oldest){ .valid = true, .age_ns = 250e9 };
	SET(o->op, "write");
	SET(o->xlator, "delay-gen");
	judge_is(s, 0, "not-enough-data  low", "hardly any request ends");
	judge_is(s, 1, "stuck delay-gen high", "since one hangs");
	SET(o->op, "inodelk");
	verdict_judge(s);
	is_int(s->targets[0].n_causes, 1, "who waits for a lock may");
	SET(o->op, "write");
	o->age_ns = 2e9;
	verdict_judge(s);
	is_int(s->targets[0].n_causes, 1, "so may who is young");
	snapshot_free(s);
}

/* ---- as text and JSON -------------------------------------------------- */

static void test_golden(void)
{
	struct sink_style st = { .columns = 80 };
	struct snapshot *s = start("brick");
	struct capture c;
	char *text;

	add_op(s, "brick", "read", 60000, pool_rows);
	add_pool(s, "io-threads", 1, 2, 0.4);
	add_pool(s, "event threads", 2, 0.6, 0.1);
	add_pool(s, "timer", 1, 0, 0);
	add_pool(s, "odd\033name", 3, 0.6, 0.1);
	s->targets[0].pools[3].oncpu_pct.valid = false;
	verdict_judge(s);
	is_int(sink_text_report(capture_begin(&c), s, &st), 0, "the report is written");
	text = capture_end(&c);
	golden_check("text_verdict_80.txt", text);
	free(text);
	is_int(sink_json_report(capture_begin(&c), s, "1.0-test", false), 0, "and as JSON");
	text = capture_end(&c);
	golden_check("json_verdict.json", text);
	free(text);
	snapshot_free(s);
}

int main(void)
{
	test_each_cause();
	test_pool();
	test_queue_behind_sleepers();
	test_full_pool_on_slow_device();
	test_remote();
	test_process();
	test_healthy();
	test_nobody_leads();
	test_not_enough();
	test_confidence();
	test_near_each_other();
	test_stuck();
	test_golden();
	return tap_done();
}
