/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_memory.c: what the process counts itself: means without a probe, xlators that share a
 * frame, estimates and where there are none, statedumps, and coverage of the walk with requests in
 * flight. All figures are reckoned by hand.
 */
#include <errno.h>

#include "model_bed.h"

static const struct snap_op *tick_memory(bool lifetime, const char *op)
{
	bed_tick_view(10, true, lifetime);
	return bed_op("brick", "user", op);
}

/* The brick's graph as it is: the root has latency but no count, io-stats a count but no latency.
 */
static void feed_brick(uint64_t n, double io_threads_ns, double posix_ns)
{
	bed_stat(0, BED_WRITE, 0, n, (double)n * (io_threads_ns + 1000));
	bed_stat(1, BED_WRITE, n, 0, 0);
	bed_stat(2, BED_WRITE, n, n, (double)n * io_threads_ns);
	bed_stat(3, BED_WRITE, n, 0, 0);
	bed_stat(4, BED_WRITE, 0, 0, 0);
	bed_stat(5, BED_WRITE, n, n, (double)n * posix_ns);
}

static void test_view(void)
{
	const struct snap_op *op;

	bed_chain("server io-stats io-threads access-control delay-gen posix");
	bed_open(WIRE_ROOT_BRICK);
	feed_brick(1000, 50000, 20000);
	model_start_window(bed.m, 1000000000ULL, 0);
	feed_brick(1200, 50000, 20000);
	op = tick_memory(false, "write");
	ok(bed.snap->memory_only && op->source == SNAP_FROM_MEMORY, "a view of the memory alone");
	is_int((long long)op->count, 200, "200 writes in the window");
	ok(op->rate_hz.valid && bed_near(op->rate_hz.v, 20), "20 a second");
	ok(op->incl.valid && !op->incl.has_quantiles && bed_near(op->incl.mean, 51000),
	   "the root's mean, without quantiles");
	ok(!op->has_bytes && !op->sum_check_pct.valid && !op->coverage_pct.valid,
	   "no bytes, sum check or coverage");
	is_str(bed_paths(op),
	       "server server/io-stats server/io-stats/io-threads "
	       "server/io-stats/io-threads/access-control+delay-gen+posix",
	       "xlators that share a frame are one row, io-stats is not one of them");
	ok(!op->layers[1].incl.valid && op->layers[1].reason[0] && op->layers[1].count == 200,
	   "io-stats has a count, no latency, and a reason");
	ok(bed_near(op->layers[2].incl.mean, 50000), "io-threads' mean");
	ok(op->layers[2].est_self_ns.valid && bed_near(op->layers[2].est_self_ns.v, 30000),
	   "and its estimated self time");
	ok(bed_near(op->layers[3].est_self_ns.v, 20000), "a leaf's self time is all of it");
	ok(bed_near(op->layers[0].est_self_ns.v, 1000), "what is unknown stays with the row above");
	ok(!op->layers[2].self.valid, "self time is not measured");
	op = tick_memory(true, "write");
	is_int((long long)op->count, 1200, "from the process's start: 1,200");
	ok(!op->rate_hz.valid, "and no rate");
	bed_close();
}

static void test_statedump(void)
{
	const struct snap_op *op;

	bed_chain("server io-stats io-threads access-control delay-gen posix");
	bed_open(WIRE_ROOT_BRICK);
	feed_brick(1000, 50000, 20000);
	model_start_window(bed.m, 1000000000ULL, 0);
	bed_stat(2, BED_WRITE, 1100, 1100, 1100 * 50000.0);
	bed_stat(2, BED_WRITE, 1150, 40, 40 * 70000.0);
	bed_stat(1, BED_WRITE, 1150, 0, 0);
	op = tick_memory(false, "write");
	is_int((long long)op->count, 150, "a statedump leaves counts as they are");
	ok(bed_near(bed_row(op, "server/io-stats/io-threads")->incl.mean, 70000),
	   "latency is since the statedump");
	bed_stat(2, BED_WRITE, 1200, 90, 30000);
	op = tick_memory(false, "write");
	ok(bed_near(bed_row(op, "server/io-stats/io-threads")->incl.mean, 30000 / 90.0),
	   "one that shows in the total alone is seen too");
	model_start_window(bed.m, 1000000000ULL, 0);
	bed_stat(2, BED_WRITE, 10, 10, 10 * 1000.0);
	bed_stat(1, BED_WRITE, 10, 0, 0);
	op = tick_memory(false, "write");
	is_int((long long)op->count, 10, "a count that falls begins at 0: never huge");
	bed_close();
}

/* Sums of means say nothing where children run in parallel or serve others. */
static void test_estimates(void)
{
	unsigned int top, afr, c0, c1;
	const struct snap_op *op;

	bed.n_nodes = 0;
	top = bed_node("fuse", "mount/fuse");
	bed_link(top, afr = bed_node("afr", "cluster/replicate"));
	bed_link(afr, c0 = bed_node("client-0", "protocol/client"));
	bed_link(afr, c1 = bed_node("client-1", "protocol/client"));
	bed_open(WIRE_ROOT_BRICK);
	for (unsigned int i = 0; i < 4; i++)
		for (unsigned int fop = BED_READ; fop <= BED_WRITE; fop++)
			bed_stat(i, fop, 0, 0, 0);
	bed_stat(afr, BED_WRITE, 10, 10, 10 * 100.0);
	bed_stat(c0, BED_WRITE, 10, 10, 10 * 20.0);
	bed_stat(c1, BED_WRITE, 10, 10, 10 * 30.0);
	bed_stat(afr, BED_READ, 10, 10, 10 * 100.0);
	bed_stat(c0, BED_READ, 6, 6, 6 * 20.0);
	bed_stat(c1, BED_READ, 4, 4, 4 * 30.0);
	op = tick_memory(false, "write");
	ok(!bed_row(op, "fuse/afr")->est_self_ns.valid, "written to both: no estimate");
	ok(bed_row(op, "fuse/afr/client-1")->est_self_ns.valid, "but for the leaves");
	ok(bed_near(op->incl.mean, 100), "a root without latency: its child's mean");
	op = tick_memory(false, "read");
	ok(bed_near(bed_row(op, "fuse/afr")->est_self_ns.v, 100 - 12 - 12),
	   "read from one each: an estimate");
	bed_stat(c0, BED_READ, 6, 6, 6 * 20000.0);
	op = tick_memory(false, "read");
	ok(!bed_row(op, "fuse/afr")->est_self_ns.valid, "never below 0");
	bed_close();
}

static void test_shared_child(void)
{
	unsigned int top, a, b, c, p;
	const struct snap_op *op;

	bed.n_nodes = 0;
	top = bed_node("server", "s");
	bed_link(top, a = bed_node("a", "a"));
	bed_link(a, b = bed_node("b", "b"));
	bed_link(a, c = bed_node("c", "c"));
	bed_link(b, p = bed_node("p", "p"));
	bed_link(c, p);
	bed_link(p, a);
	bed_open(WIRE_ROOT_BRICK);
	for (unsigned int i = 0; i < 5; i++)
		bed_stat(i, BED_READ, 0, 0, 0);
	for (unsigned int i = 1; i < 5; i++)
		bed_stat(i, BED_READ, 10, 10, 1000.0 / i);
	op = tick_memory(false, "read");
	is_str(bed_paths(op), "server server/a server/a/b server/a/b/p server/a/c",
	       "a graph with a cycle: every xlator once");
	ok(!bed_row(op, "server/a/b")->est_self_ns.valid &&
		   !bed_row(op, "server/a/c")->est_self_ns.valid,
	   "callers of one child: no estimates");
	bed_close();
}

static void test_errors(void)
{
	struct model_stat s = { .wound = 5,
				.failed = 3,
				.lat_count = 5,
				.lat_total_ns = 5000,
				.has_counts = true,
				.has_latency = true };
	const struct snap_op *op;

	bed_chain("server io-threads posix");
	bed_open(WIRE_ROOT_BRICK);
	for (unsigned int i = 0; i < 3; i++)
		bed_stat(i, BED_LOOKUP, 0, 0, 0);
	model_feed_stats(bed.m, 0, 1, BED_LOOKUP, &s);
	s.failed = 4;
	s.wound = 0;
	model_feed_stats(bed.m, 0, 0, BED_LOOKUP, &s);
	bed_stat(2, BED_LOOKUP, 5, 5, 500);
	op = tick_memory(false, "lookup");
	is_int((long long)op->errors, 4, "failed replies that the root received");
	is_int((long long)bed_row(op, "server/io-threads")->errors, 4, "came from the one below");
	is_int((long long)bed_row(op, "server/io-threads/posix")->errors, 3, "and so on down");
	ok(op->has_errors && bed_row(op, "server/io-threads")->has_errors &&
		   !bed_row(op, "server/io-threads")->has_bytes,
	   "they were counted, bytes never are");
	is_int(model_feed_stats(bed.m, 0, 3, BED_LOOKUP, &s), -EINVAL, "no such xlator");
	is_int(model_feed_stats(bed.m, 0, 0, GLUSTER_MAX_FOP, &s), -EINVAL, "no such fop");
	is_int(model_feed_stats(bed.m, 1, 0, 1, &s), -ENOENT, "no such target");
	bed_close();
}

/* Fops that xlators call among themselves. */
static void test_internal_fops(void)
{
	bed_chain("fuse afr client-0");
	bed_open(WIRE_ROOT_BRICK);
	bed_stat(1, BED_WRITE, 0, 0, 0);
	bed_stat(2, 29, 0, 0, 0);
	bed_stat(1, BED_WRITE, 5, 5, 500);
	bed_stat(2, 29, 5, 5, 500);
	bed_tick_view(10, true, false);
	is_int((long long)bed_op("brick", "internal", "inodelk")->count, 5,
	       "never called by the root: internal");
	bed_tick(10);
	is_int((long long)bed.snap->targets[0].n_ops, 1,
	       "beside the walk they are under the request that caused them");
	bed_close();
}

static void feed_calls(uint64_t n)
{
	bed_stat(1, BED_WRITE, 0, 0, 0);
	bed_stat(2, BED_WRITE, n, n, (double)n * 1000);
	bed_stat(3, BED_WRITE, n / 2, n / 2, (double)n * 400);
}

static void test_coverage(void)
{
	struct wire_slot_key key = { .layer = WIRE_LAYER_XLATOR,
				     .op = BED_WRITE,
				     .origin = WIRE_ORIGIN_INTERNAL };
	const struct snap_op *op;
	uint64_t calls = 0;

	/* dht passes through: it counts nothing, the xlator below it does. */
	bed_chain("server dht io-threads posix");
	bed_open(WIRE_ROOT_BRICK);
	feed_calls(1000);
	model_feed_in_flight(bed.m, 0, BED_WRITE, 4, 100);
	model_start_window(bed.m, 1000000000ULL, 0);
	feed_calls(1100);
	model_feed_in_flight(bed.m, 0, BED_WRITE, 2, 100);
	model_feed_in_flight(bed.m, 0, BED_WRITE, 6, 7000);
	for (int i = 0; i < 90; i++)
		bed_write("server", "", 1, 1000);
	for (int i = 0; i < 8; i++)
		bed_pass(key, 1, 1000);
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(op->source == SNAP_FROM_WALK, "walked");
	/* 100 called + 4 in flight before - 6 in flight now = 98 completed; 90 + 8 accounted */
	ok(op->coverage_pct.valid && bed_near(op->coverage_pct.v, 100), "98 of 98: 100 %%");
	ok(op->in_flight.valid && bed_near(op->in_flight.v, 4), "in flight: mean of the samples");
	ok(bed_near(op->in_flight_oldest_ns.v, 7000), "and the oldest now");
	op = bed_op("brick", "internal", "write");
	ok(op->coverage_pct.valid && bed_near(op->coverage_pct.v, 100),
	   "the same for internal ones");
	ok(!op->in_flight.valid, "which are not shown in flight twice");
	feed_calls(1198);
	ok(model_requests(bed.m, 0, BED_WRITE, &calls) && calls == 1198,
	   "requests since the process counts, by the first xlator that does");
	ok(!model_requests(bed.m, 1, BED_WRITE, &calls), "of no other target");
	bed_tick(10);
	ok(bed_near(bed_op("brick", "user", "write")->coverage_pct.v, 50), "98 of 196: 50 %%");
	model_feed_in_flight_unknown(bed.m, 0);
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(!op->in_flight.valid && !op->in_flight_oldest_ns.valid && !op->coverage_pct.valid,
	   "who is in flight cannot be told: nor can coverage");
	model_feed_in_flight(bed.m, 0, BED_WRITE, 6, 7000);
	bed_tick(10);
	ok(bed_op("brick", "user", "write")->coverage_pct.valid, "until it can again");
	bed_close();
}

/* Counts are read one after the other: what falls in between is no error, what exceeds it is. */
static void test_double_counts(void)
{
	static const struct {
		unsigned int in_flight, late, walked;
		double pct;
		const char *name;
	} cases[] = {
		{ 0, 0, 100, 100, "as many as were called" },
		{ 0, 0, 102, 102, "two more than were ever called" },
		{ 2, 0, 100, 100, "two that were in flight at the first look" },
		{ 2, 0, 101, 100 + 100.0 / 100, "one more than that" },
		{ 0, 3, 103, 100, "three that came in between the looks" },
		{ 0, 3, 105, 100 * 105.0 / 103, "and two more" },
		{ 2, 3, 100, 100, "in flight and late" },
		{ 2, 3, 90, 100 * 90.0 / 98, "what lacks is not made up" },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		bed_chain("server dht io-threads posix");
		bed_open(WIRE_ROOT_BRICK);
		feed_calls(1000);
		model_feed_in_flight(bed.m, 0, BED_WRITE, 0, 0);
		model_start_window(bed.m, 1000000000ULL, 0);
		feed_calls(1100);
		model_feed_in_flight(bed.m, 0, BED_WRITE, cases[c].in_flight, 100);
		for (unsigned int i = 0; i < cases[c].walked; i++)
			bed_write("server", "", 1, 1000);
		bed_feed();
		model_feed_late(bed.m, 0, BED_WRITE, 1100 + cases[c].late);
		bed_tick(10);
		ok(bed_near(bed_op("brick", "user", "write")->coverage_pct.v, cases[c].pct),
		   "coverage: %s", cases[c].name);
		bed_close();
	}
}

static void test_unreadable(void)
{
	struct snap_oldest oldest = { .valid = true, .op = "write" };
	const struct snap_op *op;
	unsigned int node = 0;

	bed_chain("server dht io-threads posix");
	bed_open(WIRE_ROOT_BRICK);
	ok(!model_requests_node(bed.m, 0, &node), "nothing is counted yet");
	feed_calls(1000);
	ok(model_requests_node(bed.m, 0, &node) && node == 2, "the first xlator that counts");
	model_feed_in_flight(bed.m, 0, BED_WRITE, 0, 0);
	model_start_window(bed.m, 1000000000ULL, 0);
	feed_calls(1100);
	model_feed_in_flight(bed.m, 0, BED_WRITE, 0, 0);
	model_feed_oldest(bed.m, 0, &oldest);
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(op->rate_hz.valid && op->coverage_pct.valid && op->in_flight.valid, "readable");
	model_feed_readable(bed.m, 0, false);
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(op->count == 100 && !op->rate_hz.valid && !op->coverage_pct.valid &&
		   !op->in_flight.valid && !bed.snap->targets[0].oldest.valid,
	   "unreadable: what was counted before, and no more");
	model_start_window(bed.m, 2000000000ULL, 0);
	model_feed_readable(bed.m, 0, true);
	feed_calls(1200);
	model_feed_in_flight(bed.m, 0, BED_WRITE, 0, 0);
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(op->in_flight.valid && !op->rate_hz.valid && !op->coverage_pct.valid,
	   "readable again: what needs the window's begin is not known");
	model_start_window(bed.m, 3000000000ULL, 0);
	feed_calls(1300);
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(op->rate_hz.valid && op->coverage_pct.valid, "in the next window all is as before");
	bed_close();
}

static void test_means_only(void)
{
	const struct snap_op *op;

	bed_chain("server dht io-threads posix");
	bed_open(WIRE_ROOT_BRICK);
	feed_calls(0);
	model_feed_in_flight(bed.m, 0, BED_FSYNC, 0, 0);
	bed_stat(2, BED_FSYNC, 0, 0, 0);
	model_start_window(bed.m, 1000000000ULL, 0);
	feed_calls(40);
	bed_stat(2, BED_FSYNC, 1, 0, 0);
	model_feed_in_flight(bed.m, 0, BED_FSYNC, 1, 30000000000ULL);
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(op->source == SNAP_FROM_MEMORY && op->count == 40, "called, never walked: means only");
	ok(op->coverage_pct.valid && op->coverage_pct.v == 0, "coverage 0 %%");
	is_str(bed_paths(op), "server server/dht+io-threads server/dht+io-threads/posix",
	       "its rows are the process's");
	ok(bed_near(bed_row(op, "server/dht+io-threads")->incl.mean, 1000), "with their means");
	ok(strstr(op->layers[0].reason, "no walk of this operation was recorded"), "and why");
	op = bed_op("brick", "user", "fsync");
	ok(op->in_flight.valid && bed_near(op->in_flight_oldest_ns.v, 30e9),
	   "one that hangs is there though it never ended");
	ok(!op->coverage_pct.valid && !op->incl.valid, "without coverage or mean");
	bed_close();
}

/* GlusterFS 3.12 keeps latency alone; what is not known stays unknown. */
static void test_no_counts(void)
{
	struct model_stat s = { .lat_count = 10, .lat_total_ns = 1000, .has_latency = true };
	const struct snap_op *op;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	for (int i = 0; i < 3; i++) {
		model_feed_stats(bed.m, 0, 0, BED_READ, &s);
		model_feed_stats(bed.m, 0, 1, BED_READ, &s);
		s.lat_count += 10;
		s.lat_total_ns += 3000;
	}
	op = tick_memory(false, "read");
	is_int((long long)op->count, 20, "without counts: the frames that ended");
	ok(bed_near(op->incl.mean, 300), "their mean");
	bed_tick(10);
	op = bed_op("brick", "user", "read");
	ok(op->count == 20 && !op->coverage_pct.valid, "beside the walk too, without coverage");
	s.lat_total_ns = NAN;
	model_feed_stats(bed.m, 0, 0, BED_READ, &s);
	op = tick_memory(false, "read");
	ok(!op->layers[0].incl.valid, "nonsense is not shown");
	bed_close();
}

int main(void)
{
	test_view();
	test_statedump();
	test_estimates();
	test_shared_child();
	test_errors();
	test_internal_fops();
	test_coverage();
	test_double_counts();
	test_unreadable();
	test_means_only();
	test_no_counts();
	return tap_done();
}
