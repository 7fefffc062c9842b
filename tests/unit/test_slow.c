/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_slow.c: the keeper of slow operations: which ones stay, that memory and lists are bounded,
 * that every one is counted, limits by time and by share, the tree of one, and records that are
 * none.
 */
#include "slow.h"

#include <errno.h>

#include "model_bed.h"

#define MS         1000000ULL
#define N_FRAMES   3
#define MANY_SPANS 40
#define BEGIN      (5000 * MS)

static struct wire_slow shared[2];
static struct slow *slow;

/* A request of a brick: server > io-threads > posix > system calls. */
static struct record {
	struct wire_dump head;
	struct wire_who who;
	struct wire_dump_frame frames[N_FRAMES];
	struct wire_span spans[MANY_SPANS];
} record;

static struct wire_dump_frame make_frame(unsigned int layer, unsigned int parent, uint64_t begin,
					 uint64_t end, uint64_t covered)
{
	return (struct wire_dump_frame){ .begin = BEGIN + begin,
					 .end = BEGIN + end,
					 .covered = covered,
					 .parent = (uint16_t)parent,
					 .layer = (uint16_t)(WIRE_LAYER_XLATOR + layer),
					 .flags = WIRE_FRAME_COUNTED };
}

static struct wire_span make_span(unsigned int frame, uint64_t begin, uint64_t ns)
{
	struct wire_span s = { .begin = BEGIN + begin,
			       .end = BEGIN + begin + ns,
			       .frame = (uint16_t)frame,
			       .claimed = 1,
			       .n_parts = 1 };

	s.part[0] = (struct wire_span_part){ .layer = BED_SYSCALL,
					     .sub = 2, /* pwrite64 */
					     .parent_part = 0xff,
					     .calls = 1,
					     .self_ns = ns,
					     .incl_ns = ns };
	return s;
}

/* One that took so long: 1 us in each xlator, the rest in its call, half of it in xfs. */
static size_t make_record(uint64_t incl)
{
	uint64_t call = incl - 3000;

	memset(&record, 0, sizeof(record));
	record.head = (struct wire_dump){ .tid = 4219,
					  .op = BED_WRITE,
					  .wanted = WIRE_DUMP_SLOW,
					  .result = 4096,
					  .n_frames = N_FRAMES,
					  .n_spans = 1 };
	record.who = (struct wire_who){ .file = { 0xfe, 1 },
					.client = 0xc11e47,
					.pid = 17,
					.uid = 3,
					.kind = WIRE_FILE_GFID,
					.has_app = 1 };
	record.frames[0] = make_frame(0, 0xffff, 0, incl, incl - 1000);
	record.frames[1] = make_frame(1, 0, 500, incl - 500, incl - 2000);
	record.frames[2] = make_frame(2, 1, 1000, incl - 1000, call);
	record.frames[2].flags |= WIRE_FRAME_ON_THREAD;
	record.spans[0] = make_span(2, 1500, call);
	record.spans[0].file = 131;
	record.spans[0].n_parts = 2;
	record.spans[0].part[0].self_ns = call - call / 2;
	record.spans[0].part[1] = (struct wire_span_part){ .layer = 2,
							   .sub = 1,
							   .parent_part = 0,
							   .calls = 3,
							   .self_ns = call / 2,
							   .incl_ns = call / 2 };
	return offsetof(struct record, spans) + sizeof(record.spans[0]);
}

static int take(uint64_t incl)
{
	size_t len = make_record(incl);

	return slow_take(slow, &record, len);
}

static void begin(const struct slow_config *config)
{
	memset(shared, 0, sizeof(shared));
	bed_chain("server io-threads posix");
	bed_open(WIRE_ROOT_BRICK);
	is_int(slow_new(config, shared, &slow), 0, "a keeper: %s", config->wanted);
	slow_start_window(slow);
}

static void end(void)
{
	slow_free(slow);
	bed_close();
}

static const struct snap_slows *report(void)
{
	struct slow_view view = { .model = bed.m, .wall_ns = 1700000000000000000LL };

	bed_feed();
	bed_tick(10);
	is_int(slow_report(slow, &view, bed.snap), 0, "reported");
	return &bed.snap->targets[0].slow;
}

/* ---- the list ----------------------------------------------------------- */

static void test_bounded(void)
{
	const struct slow_config config = {
		.wanted = "5ms", .limit_ns = 5 * MS, .n_targets = 1, .keep = 3
	};
	const struct snap_slows *s;

	begin(&config);
	ok(shared[0].row[BED_WRITE].limit_ns == 5 * MS && shared[0].row[255].limit_ns == 5 * MS,
	   "the programs are told the limit");
	ok(!shared[1].row[0].limit_ns, "of targets that there are");
	ok(!take(7 * MS) && !take(9 * MS), "two are taken");
	ok(!shared[0].floor_ns[WIRE_SLOW_USERS], "as long as there is room all are wanted");
	ok(!take(6 * MS) && shared[0].floor_ns[WIRE_SLOW_USERS] == 6 * MS,
	   "the list is full: quicker ones are not wanted");
	ok(!shared[0].floor_ns[WIRE_SLOW_OTHERS] && !shared[0].floor_ns[WIRE_SLOW_LOCAL],
	   "other kinds have lists of their own");
	ok(!take(8 * MS) && shared[0].floor_ns[WIRE_SLOW_USERS] == 7 * MS, "a slower one");
	ok(!take(5 * MS), "one that was on its way");
	shared[0].row[BED_WRITE].passed = 20; /* what the programs count */
	shared[0].row[BED_WRITE].dropped = 2;
	bed_write("server", "", 1000, 9 * MS);
	s = report();
	is_int((long long)s->slow, 27, "all are counted: taken, below the floor, dropped");
	is_int((long long)s->lost, 2, "and how many had no room");
	is_int((long long)s->n_ops, 3, "the slowest are shown");
	ok(s->ops[0].incl_ns == 9 * MS && s->ops[1].incl_ns == 8 * MS &&
		   s->ops[2].incl_ns == 7 * MS,
	   "slowest first");
	is_str(s->wanted, "5ms", "as it was asked for");
	ok(s->n_limits == 1 && s->limits[0].slow == 27 && s->limits[0].ended == 1,
	   "of that operation");
	slow_start_window(slow);
	ok(!shared[0].floor_ns[WIRE_SLOW_USERS], "the next window: all are wanted again");
	s = report();
	ok(!s->slow && !s->lost && !s->n_ops, "and nothing has been slow yet");
	end();
}

static void test_kinds(void)
{
	const struct slow_config config = { .wanted = "0", .n_targets = 1, .keep = 1 };
	const struct snap_slows *s;
	size_t len;

	begin(&config);
	is_int(take(6 * MS), 0, "a user's");
	len = make_record(900 * MS);
	record.head.root = WIRE_ROOT_BACKGROUND;
	is_int(slow_take(slow, &record, len), 0, "a background stack");
	len = make_record(800 * MS);
	record.head.origin = WIRE_ORIGIN_INTERNAL;
	is_int(slow_take(slow, &record, len), 0, "a heal's, quicker than that");
	record.head =
		(struct wire_dump){ .tid = 7, .root = WIRE_ROOT_LOCAL, .op = 3, .n_spans = 1 };
	*(struct wire_span *)record.frames = make_span(0xffff, 0, 4 * MS);
	is_int(slow_take(slow, &record, sizeof(record)), 0, "a process's own");
	s = report();
	is_int((long long)s->n_ops, 3, "one of each kind");
	is_int((long long)s->slow, 4, "of four");
	is_str(s->ops[0].root, "brick", "users' requests first");
	is_str(s->ops[1].root, "background", "then what no user waits for");
	is_str(s->ops[2].root, "local", "then local");
	ok(s->ops[2].n_rows == 1 && s->ops[2].incl_ns == 4 * MS && s->ops[2].tid == 7,
	   "which is one call");
	is_str(s->ops[2].op, "fsync", "named as such");
	end();
}

/* ---- the tree ----------------------------------------------------------- */

static void test_tree(void)
{
	const struct slow_config config = { .wanted = "1ms", .limit_ns = MS, .n_targets = 1 };
	const struct snap_slow *op;

	begin(&config);
	is_int(take(8003000), 0, "taken");
	op = report()->ops;
	is_str(op->op, "write", "operation");
	ok(op->wall_ns == 1700000000000000000LL + (int64_t)BEGIN, "when it began");
	ok(op->incl_ns == 8003000 && op->limit_ns == 1e6, "how long it took, and the limit then");
	ok(op->has_bytes && op->bytes == 4096 && !op->failed, "what it moved");
	ok(op->ino == 131 && op->tid == 4219, "which file, which thread");
	ok(op->file.kind == SNAP_FILE_GFID && op->file.id[0] == 0xfe && op->file.id[1] == 1,
	   "which file to GlusterFS");
	ok(op->has_app && op->file.last.pid == 17 && op->file.last.uid == 3 &&
		   op->file.last.client_addr == 0xc11e47,
	   "for whom");
	ok(!op->uncovered, "all layers were on");
	is_int((long long)op->n_rows, 5, "rows");
	is_str(op->rows[2].id, "posix", "frames in order");
	ok(op->rows[2].depth == 2 && op->rows[2].at_ns.v == 1000, "below each other, from then on");
	ok(!op->rows[1].tid && op->rows[2].tid == 4219, "threads as far as they are known");
	is_str(op->rows[3].id, "pwrite64", "a call");
	ok(op->rows[3].depth == 3 && op->rows[3].self_ns.v == 4e6, "below its frame");
	ok(op->rows[4].depth == 4 && !op->rows[4].at_ns.valid && op->rows[4].calls == 3,
	   "its part");
	ok(op->rows[3].longest + op->rows[4].longest == 1 && !op->rows[0].longest,
	   "one row is marked");
	ok(op->rows[0].self_ns.v + op->rows[1].self_ns.v + op->rows[2].self_ns.v +
			   op->rows[3].self_ns.v + op->rows[4].self_ns.v ==
		   op->incl_ns,
	   "it adds up");
	end();
}

static void test_odd_trees(void)
{
	const struct slow_config config = { .wanted = "1ms", .limit_ns = MS, .n_targets = 1 };
	const struct snap_slows *s;
	size_t len;

	begin(&config);
	len = make_record(9 * MS);
	record.head.unsplit = WIRE_LOST_LEDGER + 1;
	record.head.result = -1;
	record.head.op_errno = 5;
	record.head.uncovered = 1;
	is_int(slow_take(slow, &record, len), 0, "one that could not be split");
	len = make_record(8 * MS);
	record.frames[1].flags = 0;
	record.frames[2].covered = 9 * MS;
	is_int(slow_take(slow, &record, len), 0, "one with a frame that does not count");
	len = make_record(7 * MS);
	record.head.n_spans = MANY_SPANS;
	for (unsigned int i = 0; i < MANY_SPANS; i++)
		record.spans[i] = make_span(i == 1 ? 0xffff : 2, 1000 * i, 100 + i);
	is_int(slow_take(slow, &record, sizeof(record)), 0, "one with many calls");
	(void)len;
	s = report();
	is_str(s->ops[0].unsplit, "ledger", "why it is in one piece");
	ok(s->ops[0].uncovered && !s->ops[1].uncovered, "which one the layers were off for");
	ok(!s->ops[0].rows[0].self_ns.valid && s->ops[0].failed && s->ops[0].error == 5,
	   "has no self times, and has failed");
	is_int((long long)s->ops[1].n_rows, 4, "what does not count has no row");
	ok(s->ops[1].rows[1].depth == 1 && !s->ops[1].rows[1].self_ns.valid,
	   "what is below it hangs higher; more covered than long: no self time");
	is_int((long long)s->ops[2].n_rows, N_FRAMES + SLOW_SPANS, "the longest calls have rows");
	ok(s->ops[2].more_calls == 7 &&
		   s->ops[2].more_ns == 100 + 102 + 103 + 104 + 105 + 106 + 107,
	   "the others are summed up; another request's is not among them");
	ok(s->ops[2].rows[3].at_ns.v < s->ops[2].rows[4].at_ns.v, "in order of their begin");
	end();
}

/* ---- records that are none ---------------------------------------------- */

static void refuse(size_t len, const char *what)
{
	is_int(slow_take(slow, &record, len), -EBADMSG, "%s", what);
}

static void test_bad(void)
{
	const struct slow_config config = { .wanted = "1ms", .limit_ns = MS, .n_targets = 1 };
	size_t len;

	begin(&config);
	len = make_record(9 * MS);
	refuse(0, "nothing");
	refuse(len - 1, "cut off");
	record.head.target = 1;
	refuse(len, "of no target");
	make_record(9 * MS);
	record.frames[1].parent = 1;
	refuse(len, "a frame that is its own parent");
	make_record(9 * MS);
	record.spans[0].part[1].parent_part = 1;
	refuse(len, "a part that is its own parent");
	make_record(9 * MS);
	record.spans[0].frame = N_FRAMES;
	refuse(len, "a call of no frame");
	make_record(9 * MS);
	record.spans[0].n_parts = WIRE_SPAN_PARTS + 1;
	refuse(len, "a call of too many parts");
	make_record(9 * MS);
	record.frames[0].end = record.frames[0].begin - 1;
	refuse(len, "an end before the begin");
	make_record(9 * MS);
	record.head.n_frames = 0;
	refuse(len, "no frames");
	record.head.root = WIRE_ROOT_LOCAL;
	record.head.n_spans = 0;
	refuse(len, "a local one without its call");
	is_int((long long)report()->lost, 7, "they are counted as lost");
	is_int((long long)report()->n_ops, 0, "and not shown");
	end();
}

/* ---- limits by share ---------------------------------------------------- */

static void test_shares(void)
{
	const struct slow_config config = { .wanted = "p90", .ppm = 900000, .n_targets = 1 };
	const __u64 *limit = &shared[0].row[BED_WRITE].limit_ns;
	const struct snap_slows *s;
	__u64 was;

	begin(&config);
	ok(*limit == ~0ULL, "at first nothing is slow");
	for (unsigned int i = 1; i < 100; i++)
		bed_write("server", "", 1000, i * MS);
	bed_feed();
	is_int(slow_tick(slow, bed.m), 0, "a tick");
	ok(*limit == ~0ULL, "99 are too few");
	s = report();
	ok(s->n_limits == 1 && !s->limits[0].limit_ns.valid && s->enough == 100,
	   "which the report says");
	bed_write("server", "", 1000, 100 * MS);
	bed_feed();
	is_int(slow_tick(slow, bed.m), 0, "another tick");
	ok(*limit > 87 * MS && *limit < 93 * MS, "100 are enough: the 90th of them");
	diag("limit %llu", (unsigned long long)*limit);
	ok(shared[0].row[BED_READ].limit_ns == ~0ULL, "of another operation nothing is known");
	is_int(take(95 * MS), 0, "one that was slow");
	s = report();
	ok(s->n_ops == 1 && s->ops[0].limit_ns == (double)*limit, "is shown, and its limit");
	ok(s->limits[0].limit_ns.v == (double)*limit && s->limits[0].slow == 1, "so is the row's");
	was = *limit;
	slow_start_window(slow);
	model_start_window(bed.m, 20000000000ULL, 6);
	is_int(slow_tick(slow, bed.m), 0, "a new window");
	ok(*limit == was, "keeps the limit until it knows a better one");
	end();
}

static void test_odd_share(void)
{
	const struct slow_config config = { .wanted = "p99.99", .ppm = 999900, .n_targets = 1 };

	begin(&config);
	is_int((long long)report()->enough, 10000, "so many that one can lie beyond the share");
	ok(shared[0].row[0].limit_ns == ~0ULL, "and until then nothing is slow");
	end();
}

/* Layers were off for a part of it: what is missing below its last frame nobody knows. */
static void test_uncovered(void)
{
	const struct slow_config config = { .wanted = "1ms", .limit_ns = MS, .n_targets = 1 };
	const struct snap_slow *op;
	size_t len;

	begin(&config);
	len = make_record(9 * MS);
	record.head.uncovered = 1;
	is_int(slow_take(slow, &record, len), 0, "one that was not seen whole");
	op = &report()->ops[0];
	ok(op->uncovered && !op->unsplit[0], "is said to be that");
	ok(op->rows[0].self_ns.valid && op->rows[1].self_ns.valid, "above its thread all is known");
	ok(!op->rows[2].self_ns.valid, "who made the calls has no self time");
	for (size_t i = 0; i < op->n_rows; i++)
		ok(!op->rows[i].longest, "row %zu is not said to be the longest", i);
	end();
}

int main(void)
{
	test_bounded();
	test_kinds();
	test_tree();
	test_odd_trees();
	test_uncovered();
	test_bad();
	test_shares();
	test_odd_share();
	return tap_done();
}
