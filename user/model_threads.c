/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_threads.c: the threads of a target's process over the window, and the pools they form. Owns
 * what counts as a thread's part of the window where threads come and go. Must not know where the
 * figures were read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

/* ---- feeding ----------------------------------------------------------- */

static int compare_thread(const struct model_thr *a, const struct model_thread *b)
{
	if (a->last.tid != b->tid)
		return a->last.tid < b->tid ? -1 : 1;
	return (a->last.start_ticks > b->start_ticks) - (a->last.start_ticks < b->start_ticks);
}

/* A thread that appears within the window did in it all that it ever did. */
static struct model_thr new_thread(const struct model *m, const struct model_thread *now,
				   uint64_t mono_ns, bool first)
{
	struct model_thr t = { .last = *now, .alive = true, .seen_ns = mono_ns };
	bool born_here = m->window_open && !first && now->born_ns >= m->start_mono_ns;

	t.from_ns = born_here ? now->born_ns : mono_ns;
	t.has_base = born_here || now->has_times;
	if (!born_here) {
		t.base_oncpu_ns = now->oncpu_ns;
		t.base_runnable_ns = now->runnable_ns;
	}
	return t;
}

/* Counters that fall are no counters of this thread: it starts again. */
static void update_thread(struct model_thr *t, const struct model_thread *now, uint64_t mono_ns)
{
	bool fell = now->oncpu_ns < t->last.oncpu_ns || now->runnable_ns < t->last.runnable_ns;

	if (now->has_times && (fell || !t->has_base)) {
		t->base_oncpu_ns = now->oncpu_ns;
		t->base_runnable_ns = now->runnable_ns;
		t->from_ns = mono_ns;
		t->has_base = true;
	}
	t->last = *now;
	t->seen_ns = mono_ns;
	t->alive = true;
}

int model_feed_threads(struct model *m, unsigned int target, uint64_t mono_ns,
		       const struct model_thread *threads, size_t n)
{
	struct model_tgt *tgt = target < WIRE_MAX_TARGETS ? m->targets[target] : NULL;
	struct model_threads *old = tgt ? &tgt->threads : NULL;
	struct model_thr *rows;
	size_t i = 0, k = 0, n_rows = 0;

	if (!tgt)
		return -ENOENT;
	rows = calloc(old->n + n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	while ((i < old->n || k < n) && n_rows < MODEL_MAX_THREADS) {
		int d = i == old->n ? 1 : k == n ? -1 : compare_thread(&old->rows[i], &threads[k]);

		if (d > 0) {
			rows[n_rows++] = new_thread(m, &threads[k++], mono_ns, !old->rows);
			continue;
		}
		rows[n_rows] = old->rows[i++];
		if (!d)
			update_thread(&rows[n_rows], &threads[k++], mono_ns);
		else
			rows[n_rows].alive = false;
		n_rows++;
	}
	free(old->rows);
	old->rows = rows;
	old->n = n_rows;
	return k < n ? -ENOSPC : 0;
}

void model_threads_start(struct model_threads *t, uint64_t mono_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct model_thr *row = &t->rows[i];

		if (!row->alive)
			continue;
		row->base_oncpu_ns = row->last.oncpu_ns;
		row->base_runnable_ns = row->last.runnable_ns;
		row->has_base = row->last.has_times;
		row->from_ns = mono_ns;
		t->rows[kept++] = *row;
	}
	t->n = kept;
}

void model_threads_gone(struct model_threads *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->rows[i].alive = false;
}

/* ---- the picture ------------------------------------------------------- */

/* What one thread, or several together, did: sums. */
struct times {
	double oncpu_ns, runnable_ns, present_ns;
	bool valid;
};

static struct times thread_times(const struct model_thr *row, uint64_t start_ns)
{
	uint64_t from = row->from_ns > start_ns ? row->from_ns : start_ns;
	struct times t = {
		.oncpu_ns = (double)(row->last.oncpu_ns - row->base_oncpu_ns),
		.runnable_ns = (double)(row->last.runnable_ns - row->base_runnable_ns),
		.present_ns = row->seen_ns > from ? (double)(row->seen_ns - from) : 0,
		.valid = row->has_base && row->last.has_times,
	};

	/* births are known to a clock tick only; what was counted did happen */
	if (t.present_ns < t.oncpu_ns + t.runnable_ns)
		t.present_ns = t.oncpu_ns + t.runnable_ns;
	return t;
}

static void set_shares(const struct times *t, struct snap_num *oncpu, struct snap_num *runnable,
		       struct snap_num *blocked)
{
	if (!t->valid || !(t->present_ns > 0))
		return;
	*oncpu = (struct snap_num){ 100 * t->oncpu_ns / t->present_ns, true };
	*runnable = (struct snap_num){ 100 * t->runnable_ns / t->present_ns, true };
	*blocked = (struct snap_num){ 100 - oncpu->v - runnable->v, true };
}

/* A thread as it is sorted: by what it used, then by number. */
struct thread_row {
	struct snap_thread snap;
	struct times times;
};

static int compare_rows(const void *pa, const void *pb)
{
	const struct thread_row *a = pa, *b = pb;

	if (a->times.oncpu_ns < b->times.oncpu_ns || a->times.oncpu_ns > b->times.oncpu_ns)
		return a->times.oncpu_ns > b->times.oncpu_ns ? -1 : 1;
	return (a->snap.tid > b->snap.tid) - (a->snap.tid < b->snap.tid);
}

static size_t make_rows(const struct model_threads *t, uint64_t start_ns, struct thread_row *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct model_thr *row = &t->rows[i];
		struct thread_row *r = &rows[n];

		r->times = thread_times(row, start_ns);
		if (!(r->times.present_ns > 0)) /* seen once, at one moment */
			continue;
		model_text_set(r->snap.comm, sizeof(r->snap.comm), row->last.comm);
		model_text_set(r->snap.pool, sizeof(r->snap.pool), row->last.pool);
		r->snap.tid = row->last.tid;
		r->snap.secs = r->times.present_ns / 1e9;
		set_shares(&r->times, &r->snap.oncpu_pct, &r->snap.runnable_pct,
			   &r->snap.blocked_pct);
		n++;
	}
	qsort(rows, n, sizeof(*rows), compare_rows);
	return n;
}

/* Rows are sorted, so the first of a pool is its busiest, and pools come in their order. */
static void make_pools(const struct thread_row *rows, double secs, struct snap_target *st)
{
	for (size_t i = 0; i < st->n_threads; i++) {
		const struct snap_thread *thread = &st->threads[i];
		struct times sum = { .valid = true };
		struct snap_pool *pool;
		size_t k = 0;

		while (k < st->n_pools && strcmp(st->pools[k].name, thread->pool) != 0)
			k++;
		if (k < st->n_pools)
			continue;
		pool = &st->pools[st->n_pools++];
		model_text_set(pool->name, sizeof(pool->name), thread->pool);
		pool->busiest = thread;
		for (k = i; k < st->n_threads; k++) {
			if (strcmp(st->threads[k].pool, pool->name) != 0)
				continue;
			pool->n++;
			sum.oncpu_ns += rows[k].times.oncpu_ns;
			sum.runnable_ns += rows[k].times.runnable_ns;
			sum.present_ns += rows[k].times.present_ns;
			sum.valid = sum.valid && rows[k].times.valid;
		}
		pool->mean_n = (struct snap_num){ sum.present_ns / 1e9 / secs, true };
		pool->oncpu_ns = (struct snap_num){ sum.oncpu_ns, sum.valid };
		pool->runnable_ns = (struct snap_num){ sum.runnable_ns, sum.valid };
		set_shares(&sum, &pool->oncpu_pct, &pool->runnable_pct, &pool->blocked_pct);
	}
}

int model_threads_build(const struct model_threads *t, uint64_t start_ns, double secs,
			struct snap_target *st)
{
	struct thread_row *rows = calloc(t->n + 1, sizeof(*rows));

	st->threads = calloc(t->n + 1, sizeof(*st->threads));
	st->pools = calloc(t->n + 1, sizeof(*st->pools));
	if (!rows || !st->threads || !st->pools) {
		free(rows);
		return -ENOMEM;
	}
	st->n_threads = make_rows(t, start_ns, rows);
	for (size_t i = 0; i < st->n_threads; i++)
		st->threads[i] = rows[i].snap;
	make_pools(rows, secs, st);
	free(rows);
	return 0;
}
