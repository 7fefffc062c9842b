/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_threads.c: threads over a window: those that were there, that come, that go, whose
 * number is used again, whose times are not known; and the pools they form.
 */
#include "model.h"

#include <errno.h>

#include "model_bed.h"

#define SEC 1000000000ULL

static struct model_thread thread(int tid, const char *pool, uint64_t oncpu_ms,
				  uint64_t runnable_ms)
{
	struct model_thread t = { .tid = tid,
				  .start_ticks = 50,
				  .has_times = true,
				  .oncpu_ns = oncpu_ms * 1000000,
				  .runnable_ns = runnable_ms * 1000000 };

	snprintf(t.comm, sizeof(t.comm), "%s%d", pool, tid);
	snprintf(t.pool, sizeof(t.pool), "%s", pool);
	return t;
}

static void feed(uint64_t at_ns, const struct model_thread *threads, size_t n)
{
	is_int(model_feed_threads(bed.m, 0, at_ns, threads, n), 0, "%zu threads are fed", n);
}

/* A window that begins at 1 s, with what is fed before. */
static void open_with(const struct model_thread *threads, size_t n)
{
	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	feed(SEC, threads, n);
	model_start_window(bed.m, SEC, 5);
}

static const struct snap_thread *find(int tid)
{
	static const struct snap_thread none;
	const struct snap_target *t = bed.snap->targets;

	for (size_t i = 0; i < t->n_threads; i++)
		if (t->threads[i].tid == tid)
			return &t->threads[i];
	diag("no thread %d", tid);
	return &none;
}

static void shares_are(int tid, double oncpu, double runnable, double secs, const char *what)
{
	const struct snap_thread *t = find(tid);

	ok(t->oncpu_pct.valid && bed_near(t->oncpu_pct.v, oncpu) &&
		   bed_near(t->runnable_pct.v, runnable) &&
		   bed_near(t->blocked_pct.v, 100 - oncpu - runnable),
	   "%s: shares", what);
	ok(bed_near(t->secs, secs), "%s: for how long", what);
}

static void test_window(void)
{
	struct model_thread t[2] = { thread(7, "iot", 5000, 900), thread(8, "epoll", 100, 0) };

	open_with(t, 2);
	t[0].oncpu_ns += SEC / 2;
	t[0].runnable_ns += SEC / 4;
	t[1].oncpu_ns += SEC;
	feed(3 * SEC, t, 2);
	bed_tick(2);
	shares_are(7, 25, 12.5, 2, "what was before the window does not count");
	shares_are(8, 50, 0, 2, "another one");
	is_int(bed.snap->targets[0].threads[0].tid, 8, "the busiest comes first");
	/* the next window begins where this one ended */
	model_start_window(bed.m, 3 * SEC, 7);
	t[0].oncpu_ns += SEC;
	feed(4 * SEC, t, 2);
	bed_tick(3);
	shares_are(7, 100, 0, 1, "in the next window");
	shares_are(8, 0, 0, 1, "an idle one");
	bed_tick_view(3, false, true);
	is_int((long long)bed.snap->targets[0].n_threads, 0, "a whole life is no window");
	bed_close();
}

static void test_come_and_go(void)
{
	struct model_thread t[3] = { thread(7, "iot", 100, 0), thread(8, "iot", 100, 0),
				     thread(9, "iot", 400, 100) };

	open_with(t, 2);
	t[0].oncpu_ns += SEC / 2;
	feed(2 * SEC, t, 1); /* 8 is gone */
	t[2].born_ns = 3 * SEC;
	t[1] = t[2];
	feed(5 * SEC, t, 2); /* 9 was born at 3 s */
	bed_tick(4);
	shares_are(7, 12.5, 0, 4, "one that stays");
	shares_are(9, 20, 5, 2, "one that comes counts from its birth");
	is_int((long long)bed.snap->targets[0].n_threads, 2,
	       "one that goes before it is seen again has no part of the window");
	model_start_window(bed.m, 5 * SEC, 9);
	t[0].oncpu_ns += SEC / 2;
	feed(6 * SEC, t, 1); /* 9 is gone */
	feed(9 * SEC, t, 1);
	bed_tick(8);
	is_int((long long)bed.snap->targets[0].n_threads, 1, "who was gone by then is forgotten");
	bed_close();
}

/* What it did before it ended stays. */
static void test_ended(void)
{
	struct model_thread t[2] = { thread(7, "iot", 100, 0), thread(8, "iot", 100, 0) };

	open_with(t, 2);
	t[1].oncpu_ns += SEC / 4;
	feed(2 * SEC, t, 2);
	feed(3 * SEC, t, 1);
	feed(5 * SEC, t, 1);
	bed_tick(4);
	shares_are(8, 25, 0, 1, "an ended thread, as far as it was seen");
	bed_close();
}

static void test_number_used_again(void)
{
	struct model_thread t = thread(7, "iot", 9000, 100);

	open_with(&t, 1);
	t.oncpu_ns += SEC / 10;
	feed(2 * SEC, &t, 1);
	t = thread(7, "iot", 500, 0);
	t.start_ticks = 300;
	t.born_ns = 3 * SEC;
	feed(4 * SEC, &t, 1);
	bed_tick(3);
	is_int((long long)bed.snap->targets[0].n_threads, 2, "the number is another thread's now");
	ok(bed_near(bed.snap->targets[0].threads[0].oncpu_pct.v, 50),
	   "which counts from its birth");
	ok(bed_near(bed.snap->targets[0].threads[1].oncpu_pct.v, 10), "the first one stays itself");
	bed_close();
}

static void test_not_known(void)
{
	struct model_thread t[2] = { thread(7, "iot", 0, 0), thread(8, "iot", 50, 0) };

	t[0].has_times = false;
	open_with(t, 2);
	feed(3 * SEC, t, 2);
	bed_tick(2);
	ok(!find(7)->oncpu_pct.valid && !find(7)->blocked_pct.valid, "times that are not counted");
	ok(find(8)->oncpu_pct.valid, "are nobody else's matter");
	ok(!bed.snap->targets[0].pools[0].oncpu_pct.valid, "but the pool's");
	/* from then on they are: what was before is not known */
	t[0] = thread(7, "iot", 700, 0);
	feed(4 * SEC, t, 2);
	t[0].oncpu_ns += SEC / 2;
	feed(5 * SEC, t, 2);
	bed_tick(4);
	shares_are(7, 50, 0, 1, "times that begin to be counted");
	/* counters that fall are not subtracted */
	t[0].oncpu_ns = 1000;
	feed(6 * SEC, t, 2);
	bed_tick(5);
	is_int((long long)bed.snap->targets[0].n_threads, 1, "a counter that fell starts again");
	bed_close();
}

static void test_pools(void)
{
	struct model_thread t[4] = { thread(5, "timer", 0, 0), thread(6, "iot", 10, 10),
				     thread(7, "iot", 10, 10), thread(8, "epoll", 10, 10) };
	const struct snap_pool *p;

	open_with(t, 4);
	t[1].oncpu_ns += SEC;
	t[1].runnable_ns += SEC / 2;
	t[2].oncpu_ns += SEC / 2;
	t[3].oncpu_ns += 3 * SEC / 4;
	feed(3 * SEC, t, 4);
	bed_tick(2);
	is_int((long long)bed.snap->targets[0].n_pools, 3, "three pools");
	p = &bed.snap->targets[0].pools[0];
	is_str(p->name, "iot", "that of the busiest thread comes first");
	is_int(p->n, 2, "its threads");
	ok(bed_near(p->mean_n.v, 2), "at a time");
	ok(bed_near(p->oncpu_pct.v, 37.5) && bed_near(p->runnable_pct.v, 12.5) &&
		   bed_near(p->blocked_pct.v, 50),
	   "its shares");
	ok(bed_near(p->oncpu_ns.v, 1.5e9) && bed_near(p->runnable_ns.v, 0.5e9), "its sums");
	is_int(p->busiest->tid, 6, "its busiest");
	bed_close();
}

static void test_limits(void)
{
	struct model_thread *t = calloc(MODEL_MAX_THREADS + 5, sizeof(*t));

	for (int i = 0; i < MODEL_MAX_THREADS + 5; i++)
		t[i] = thread(100 + i, "iot", 1, 1);
	open_with(t, 1);
	is_int(model_feed_threads(bed.m, 0, 2 * SEC, t, MODEL_MAX_THREADS + 5), -ENOSPC,
	       "too many are told");
	is_int(model_feed_threads(bed.m, 1, 2 * SEC, t, 1), -ENOENT, "and a target that is none");
	bed_tick(2);
	ok(bed.snap->targets[0].n_threads <= MODEL_MAX_THREADS, "there are never more");
	model_feed_gone(bed.m, 0, true, 0);
	bed_close();
	free(t);
}

int main(void)
{
	test_window();
	test_come_and_go();
	test_ended();
	test_number_used_again();
	test_not_known();
	test_pools();
	test_limits();
	return tap_done();
}
