/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model.c: windows over growing counters: means, quantiles and maxima from buckets, counters
 * that wrap or start again, what is lost, and the order of operations. All figures are reckoned by
 * hand.
 */
#include <errno.h>

#include "model_bed.h"

static void test_empty(void)
{
	struct model *m;
	struct model_layer bad = { 64, "x", "x", NULL, 0 };

	is_int(model_new(&bad, 1, &m), -EINVAL, "a fixed layer's number is below 64");
	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	bed_tick(10);
	is_int((long long)bed.snap->n_targets, 1, "nothing fed: the target is there");
	is_int((long long)bed.snap->targets[0].n_ops, 0, "and has no operations");
	ok(!bed.snap->targets[0].sum_check_pct.valid, "and no sum check");
	ok(bed_near(bed.snap->window_secs, 10), "window of 10 s");
	is_int(bed.snap->wall_ns, 5, "that began when it was opened");
	bed_write("server", "", 100, 1000);
	bed_feed();
	model_start_window(bed.m, 11000000000ULL, 6);
	bed_feed();
	bed_tick(20);
	is_int((long long)bed.snap->targets[0].n_ops, 0, "an operation without calls is not shown");
	bed_close();
}

static void test_quantiles(void)
{
	const struct snap_op *op;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	/* 900 of 10 us, 90 of 100 us, 9 of 1 ms, 1 of 9,999,999 ns */
	for (int i = 0; i < 1000; i++)
		bed_write("server", "", 1,
			  i < 900 ? 10000 :
			  i < 990 ? 100000 :
			  i < 999 ? 1000000 :
				    9999999);
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	is_int((long long)op->count, 1000, "1,000 writes");
	ok(op->rate_hz.valid && bed_near(op->rate_hz.v, 100), "100 a second");
	ok(op->incl.has_quantiles, "with quantiles");
	ok(bed_near(op->incl.mean, (900 * 10000.0 + 90 * 100000.0 + 9 * 1e6 + 9999999) / 1000),
	   "the mean is exact");
	ok(bed_near(op->incl.p50, (double)hist_mid_ns(hist_bucket(10000))), "p50: 10 us");
	ok(bed_near(op->incl.p90, (double)hist_mid_ns(hist_bucket(10000))), "p90: the 900th");
	ok(bed_near(op->incl.p99, (double)hist_mid_ns(hist_bucket(100000))), "p99: the 990th");
	ok(bed_near(op->incl.p999, (double)hist_mid_ns(hist_bucket(1000000))), "p999: the 999th");
	ok(bed_near(op->incl.max, 9999999), "the maximum is exact");
	bed_close();
}

/* A maximum only grows, so a later window knows no more than its highest bucket. */
static void test_maxima(void)
{
	const struct snap_op *op;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	bed_write("server", "", 1, 5000000);
	bed_feed();
	model_start_window(bed.m, 1000000000ULL, 0);
	bed_write("server", "", 1, 10000);
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(bed_near(op->incl.max, (double)hist_low_ns(hist_bucket(10000) + 1) - 1),
	   "below an older maximum: the highest bucket's upper edge");
	model_start_window(bed.m, 1000000000ULL, 0);
	bed_write("server", "", 1, 4999999);
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(bed_near(op->incl.max, 5000000), "never above the maximum ever seen");
	ok(op->incl.p50 <= op->incl.max, "and no quantile above it");
	model_start_window(bed.m, 1000000000ULL, 0);
	bed_write("server", "", 1, 5000001);
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(bed_near(op->incl.max, 5000001), "a new maximum is exact");
	ok(op->incl.p50 <= 5000001, "and again no quantile above it");
	bed_close();
}

/* 32-bit buckets wrap; their sum over a long window must not. */
static void test_wrap(void)
{
	struct wire_slot *s;
	const struct snap_op *op;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	s = bed_write("server", "", 0, 10000);
	s->incl[hist_bucket(10000)] = 0xfffffff0U;
	bed_feed();
	model_start_window(bed.m, 1000000000ULL, 0);
	for (int i = 0; i < 0x20; i++)
		bed_write("server", "", 0, 10000);
	for (int i = 0; i < 0x1f; i++)
		bed_write("server", "", 0, 300000);
	is_int(s->incl[hist_bucket(10000)], 0x10, "the bucket has wrapped");
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	is_int((long long)op->count, 0x3f, "a wrapped bucket: all passages counted");
	ok(bed_near(op->incl.p50, (double)hist_mid_ns(hist_bucket(10000))),
	   "the bucket's difference is right: 32 of 63");
	ok(bed_near(op->incl.p90, 300000),
	   "and the other's: its middle, but not above the maximum");
	for (int i = 0; i < 3; i++) {
		s->incl[hist_bucket(10000)] += 0xc0000000U;
		s->incl[hist_bucket(300000)] += 0xc0000000U - 0x100;
		s->count += 2 * 0xc0000000ULL - 0x100;
		bed_feed();
	}
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(bed_near(op->incl.p50, (double)hist_mid_ns(hist_bucket(10000))),
	   "more than 2^32 in one window: the larger bucket still wins");
	ok(op->count > 0xffffffffULL * 2, "counts are 64 bits");
	bed_close();
}

/* The programs were loaded anew: counters begin at 0, the window keeps what it has. */
static void test_fresh_map(void)
{
	const struct snap_op *op;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	for (int i = 0; i < 10; i++)
		bed_write("server", "", 10, 20000)->bytes += 4096;
	bed_feed();
	bed.n_slots = 0;
	for (int i = 0; i < 4; i++)
		bed_write("server", "", 10, 20000)->bytes += 4096;
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	is_int((long long)op->count, 14, "counters that fell: before and after are added");
	is_int((long long)op->bytes, 14 * 4096, "bytes too");
	ok(op->has_bytes, "a write has bytes");
	ok(bed_near(op->incl.mean, 20000), "the mean is not disturbed");
	bed_close();
}

static void test_scalars(void)
{
	__u64 losses[WIRE_LOSSES] = { 0 }, checks[WIRE_CHECKS] = { 0 };
	struct snap_cost cost = { .core_pct = { 0.5, true }, .probe_hits = 7 };
	struct snap_oldest oldest = { .valid = true, .op = "write", .age_ns = 3e9 };
	const struct snap_target *t;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	checks[WIRE_CHECK_WALKED] = 100;
	losses[WIRE_LOST_LEDGER] = 5;
	model_feed_checks(bed.m, 0, checks);
	model_feed_lost(bed.m, 0, losses, 1, 2);
	model_start_window(bed.m, 1000000000ULL, 0);
	checks[WIRE_CHECK_WALKED] = 300;
	checks[WIRE_CHECK_FAILED] = 50;
	checks[WIRE_CHECK_ORPHAN] = 3;
	for (int i = 0; i < WIRE_LOSSES; i++)
		losses[i] += (__u64)1 << i;
	model_feed_checks(bed.m, 0, checks);
	model_feed_lost(bed.m, 0, losses, 11, 102);
	model_feed_cost(bed.m, 0, &cost);
	model_feed_oldest(bed.m, 0, &oldest);
	is_int(model_feed_off(bed.m, "xfs", "first"), 0, "a layer is off");
	is_int(model_feed_off(bed.m, "xfs", "no tracepoint"), 0, "with a better reason");
	is_int(model_feed_off_target(bed.m, 0, "xfs", "its own"), 0, "and for one target");
	model_feed_probes(bed.m, 0, &(struct snap_probes){ .valid = true, .callbacks = 102 });
	bed_tick(10);
	t = bed.snap->targets;
	ok(t->oldest.valid && !t->gone, "oldest request");
	is_int((long long)t->probes.callbacks, 102, "where its probes are");
	ok(t->lost.has_uprobe_missed, "missed hits were counted");
	model_feed_lost(bed.m, 0, losses, 11, MODEL_NOT_COUNTED);
	model_feed_gone(bed.m, 0, 3500000000ULL, 2);
	bed_tick(10);
	t = bed.snap->targets;
	ok(t->gone_after_secs.valid && bed_near(t->gone_after_secs.v, 2.5), "gone after 2.5 s");
	ok(!t->lost.has_uprobe_missed, "by nobody now");
	ok(t->sum_check_pct.valid && bed_near(t->sum_check_pct.v, 75), "150 of 200 hold: 75 %%");
	is_int((long long)t->checks.orphan, 3, "orphans of this window");
	is_int((long long)t->lost.ledger, 1 << WIRE_LOST_LEDGER, "ledger losses of this window");
	is_int((long long)t->lost.storage_busy, 1 << WIRE_LOST_STORAGE, "storage busy");
	is_int((long long)t->lost.wakes, 1 << WIRE_LOST_WAKES, "ends of sleeps that were not seen");
	is_int((long long)t->lost.begun_before, 1 << WIRE_LOST_BEFORE, "begun before the window");
	is_int((long long)t->lost.total,
	       (1 << WIRE_LOSSES) - 1 - (1 << WIRE_LOST_BEFORE) + 10 + 100,
	       "total of all causes; what was begun before is not lost");
	is_int((long long)t->cost.probe_hits, 7, "cost is passed on");
	ok(!t->oldest.valid && t->gone && t->restarts == 2, "gone, its requests too, and restarts");
	is_int((long long)bed.snap->n_off, 2, "one layer off, for all and for one");
	is_int(bed.snap->off[0].target, SNAP_ALL_TARGETS, "all");
	is_int(bed.snap->off[1].target, 0, "one");
	is_str(bed.snap->off[0].reason, "no tracepoint", "the last reason counts");
	model_clear_off(bed.m, 0, "memory");
	model_clear_off(bed.m, SNAP_ALL_TARGETS, "xfs");
	bed_tick(10);
	is_int((long long)bed.snap->n_off, 1, "that of all is on again");
	is_int(bed.snap->off[0].target, 0, "that of one is not");
	bed_close();
}

static void test_after_end(void)
{
	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	model_start_window(bed.m, 1000000000ULL, 0);
	model_feed_gone(bed.m, 0, 3500000000ULL, 2);
	model_start_window(bed.m, 4000000000ULL, 0);
	bed_tick(10);
	ok(bed.snap->targets->gone && !bed.snap->targets->gone_after_secs.valid,
	   "it had ended before the next window");
	is_int(model_feed_slot(bed.m, &(struct wire_slot_key){ .target = 9 }, bed.slots), -ENOENT,
	       "slots of a target that was never set are refused");
	bed_close();
}

/* What nobody knows the target of is told once, beside all of them. */
static void test_unassigned(void)
{
	__u64 losses[WIRE_LOSSES] = { 0 };

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	losses[WIRE_LOST_STORAGE] = 5;
	model_feed_lost(bed.m, 0, losses, MODEL_NOT_COUNTED, MODEL_NOT_COUNTED);
	losses[WIRE_LOST_STORAGE] = 7;
	model_feed_lost(bed.m, MODEL_UNASSIGNED, losses, 2, MODEL_NOT_COUNTED);
	losses[WIRE_LOST_STORAGE] = 11;
	model_feed_lost(bed.m, MODEL_DEVICES, losses, MODEL_NOT_COUNTED, MODEL_NOT_COUNTED);
	model_feed_lost(bed.m, MODEL_DEVICES + 1, losses, 2, MODEL_NOT_COUNTED);
	bed_tick(10);
	is_int((long long)bed.snap->targets->lost.total, 5, "a target's own");
	ok(!bed.snap->targets->lost.has_recursion, "whose recursion it was is not known");
	is_int((long long)bed.snap->lost_unassigned.storage_busy, 7, "nobody's");
	is_int((long long)bed.snap->lost_unassigned.total, 9, "in all");
	ok(bed.snap->lost_unassigned.has_recursion, "recursion is counted there");
	is_int((long long)bed.snap->lost_devices.total, 11, "the devices' are in neither");
	model_start_window(bed.m, 2000000000ULL, 0);
	bed_tick(10);
	is_int((long long)bed.snap->lost_unassigned.total, 0, "of this window none");
	is_int((long long)bed.snap->lost_devices.total, 0, "and none of the devices'");
	bed_close();
}

static void pass_op(__u8 root, __u8 origin, __u8 op, __u64 incl_ns)
{
	struct wire_slot_key key = {
		.layer = WIRE_LAYER_XLATOR, .op = op, .root = root, .origin = origin
	};

	bed_pass(key, 10, incl_ns);
}

static void test_order(void)
{
	struct wire_slot_key local = {
		.layer = BED_SYSCALL, .op = 1, .sub = 1, .root = WIRE_ROOT_LOCAL
	};
	static const char *const want[] = { "user read", "user write", "internal lookup",
					    "background write", "local pread64" };
	char got[64];

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	bed_pass(local, 900000000, 900000000);
	pass_op(WIRE_ROOT_BACKGROUND, WIRE_ORIGIN_USER, BED_WRITE, 800000000);
	pass_op(WIRE_ROOT_BRICK, WIRE_ORIGIN_INTERNAL, BED_LOOKUP, 700000000);
	pass_op(WIRE_ROOT_BRICK, WIRE_ORIGIN_USER, BED_WRITE, 5000);
	pass_op(WIRE_ROOT_BRICK, WIRE_ORIGIN_USER, BED_WRITE, 5000);
	pass_op(WIRE_ROOT_BRICK, WIRE_ORIGIN_USER, BED_READ, 60000);
	bed_feed();
	bed_tick(10);
	is_int((long long)bed.snap->targets[0].n_ops, 5, "five operations");
	for (size_t i = 0; i < 5 && i < bed.snap->targets[0].n_ops; i++) {
		const struct snap_op *op = &bed.snap->targets[0].ops[i];
		bool request = !strcmp(op->root, "brick");

		snprintf(got, sizeof(got), "%s %s", request ? op->origin : op->root, op->op);
		is_str(got, want[i], "operation %zu", i);
	}
	is_str(bed_paths(bed_op("local", "user", "pread64")), "pread64",
	       "a local operation has one row");
	ok(bed_op("local", "user", "pread64")->has_bytes, "pread64 moves bytes");
	ok(!bed_op("local", "user", "pread64")->sum_check_pct.valid &&
		   !bed_op("local", "user", "pread64")->unattributed_ns.valid,
	   "and has no sum check, nor anything unattributed");
	ok(!bed_op("brick", "internal", "lookup")->has_bytes, "a lookup moves none");
	bed_close();
}

int main(void)
{
	test_empty();
	test_quantiles();
	test_maxima();
	test_wrap();
	test_fresh_map();
	test_scalars();
	test_after_end();
	test_unassigned();
	test_order();
	return tap_done();
}
