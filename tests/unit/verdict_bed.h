/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_bed.h: snapshots of a brick under load in a few lines, for the tests of the verdict: an
 * operation by the self times of its layers, pools of threads by what they did. It must not know
 * any expected verdict.
 */
#ifndef BRICKTOP_TEST_VERDICT_BED_H
#define BRICKTOP_TEST_VERDICT_BED_H

#include "snapshots.h"
#include "tap.h"
#include "verdict.h"

/* A row of an operation's tree. Times are means of self time per request. */
struct row {
	unsigned int depth;
	const char *id, *type; /* a type with a '/' is an xlator's, else a kind */
	double self_us;
};

#define END                      \
	{                        \
		0, NULL, NULL, 0 \
	}

__attribute__((unused)) static struct snapshot *start(const char *kind)
{
	struct snapshot *s = new_snapshot(1);

	fill_target(&s->targets[0], kind, "v:/b", 4);
	s->targets[0].n_ops = 0;
	s->targets[0].pools = calloc(8, sizeof(*s->targets[0].pools));
	s->targets[0].threads = calloc(8, sizeof(*s->targets[0].threads));
	return s;
}

static void add_rows(struct snap_op *op, const struct row *rows, uint64_t count)
{
	for (size_t i = 0; rows[i].id; i++) {
		bool xlator = strchr(rows[i].type, '/');
		struct snap_layer *l = fill_layer(op, i, rows[i].depth, rows[i].id,
						  rows[i].self_us * US, rows[i].self_us * US,
						  count);

		SET(l->type, rows[i].type);
		SET(l->kind, xlator ? "xlator" : rows[i].type);
	}
}

/* An operation whose mean is the sum of its rows'. */
__attribute__((unused)) static struct snap_op *add_op(struct snapshot *s, const char *root,
						      const char *name, uint64_t count,
						      const struct row *rows)
{
	struct snap_target *t = &s->targets[0];
	struct snap_op *op = &t->ops[t->n_ops++];
	double mean = 0;
	size_t n = 0;

	for (; rows[n].id; n++)
		mean += rows[n].self_us * US;
	fill_op(op, root, "user", name, count, n);
	op->incl = dist(count, mean, mean * 0.9, mean * 3, mean * 9);
	op->coverage_pct = num(100);
	op->sum_check_pct = num(100);
	add_rows(op, rows, count);
	t->checks.walked += count;
	t->checks.holds += count;
	return op;
}

/* n threads through all of the window, with sums in seconds. */
__attribute__((unused)) static void add_pool(struct snapshot *s, const char *name, unsigned int n,
					     double oncpu, double runnable)
{
	struct snap_target *t = &s->targets[0];
	struct snap_pool *p = &t->pools[t->n_pools];
	double all = n * s->window_secs;

	SET(p->name, name);
	p->n = n;
	p->mean_n = num(n);
	p->oncpu_ns = num(oncpu * 1e9);
	p->runnable_ns = num(runnable * 1e9);
	p->oncpu_pct = num(100 * oncpu / all);
	p->runnable_pct = num(100 * runnable / all);
	p->blocked_pct = num(100 - p->oncpu_pct.v - p->runnable_pct.v);
	p->busiest = &t->threads[t->n_pools++];
	t->n_threads = t->n_pools;
	SET(t->threads[t->n_pools - 1].comm, name);
	SET(t->threads[t->n_pools - 1].pool, name);
	t->threads[t->n_pools - 1].tid = (int)t->n_pools;
	t->threads[t->n_pools - 1].secs = s->window_secs;
	t->threads[t->n_pools - 1].oncpu_pct = p->oncpu_pct;
	t->threads[t->n_pools - 1].runnable_pct = p->runnable_pct;
	t->threads[t->n_pools - 1].blocked_pct = p->blocked_pct;
}

/* "CAUSE SUBJECT [slowest ]CONFIDENCE" */
__attribute__((unused)) static const char *name_of(const struct snap_cause *cause, char *buf,
						   size_t size)
{
	static const char *const names[] = { "low", "medium", "high" };

	snprintf(buf, size, "%s %s %s%s", cause->cause, cause->subject,
		 cause->tail ? "slowest " : "", names[cause->confidence]);
	return buf;
}

__attribute__((unused)) static bool has_evidence(const struct snapshot *s, unsigned int place,
						 const char *text)
{
	const struct snap_cause *c = &s->targets[0].causes[place];

	for (unsigned int i = 0; i < c->n_evidence; i++)
		if (strstr(c->evidence[i], text))
			return true;
	for (unsigned int i = 0; i < c->n_evidence; i++)
		diag("evidence: %s", c->evidence[i]);
	return false;
}

/* What the verdict names at that place, and that nothing is named without evidence. */
__attribute__((unused)) static void judge_is(struct snapshot *s, unsigned int place,
					     const char *want, const char *what)
{
	const struct snap_target *t = &s->targets[0];
	char got[200];

	verdict_judge(s);
	is_str(place < t->n_causes ? name_of(&t->causes[place], got, sizeof(got)) : "none", want,
	       "%s", what);
	for (unsigned int i = 0; i < t->n_causes; i++)
		if (!t->causes[i].n_evidence)
			ok(false, "%s: %s has evidence", what, t->causes[i].cause);
}

#endif
