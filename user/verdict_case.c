/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_case.c: a target's window as sums: what users' requests took altogether, and how much of
 * it each layer had to itself. Owns the arithmetic that verdict_priv.h states; judges nothing.
 */
#include <math.h>
#include <string.h>

#include "verdict_priv.h"

#define FULL_POOL   0.5 /* held at a time, of a pool's threads; the rest: wake-ups and replies */
#define GROWS_POOL  1.2 /* requests queued per thread: io-threads makes one above 1, at any time */
#define NO_FAULT_NS 1e6 /* see verdict_priv.h; a disk takes longer */

static bool is_server(const struct snap_target *t)
{
	return !strcmp(t->kind, "brick") || !strcmp(t->kind, "client");
}

bool verdict_is_user(const struct snap_target *t, const struct snap_op *op)
{
	/* of a process that serves nobody, its own file operations are all there is */
	if (!is_server(t))
		return !strcmp(op->root, "local");
	return (!strcmp(op->root, "brick") || !strcmp(op->root, "client")) &&
	       !strcmp(op->origin, "user");
}

static bool has_type(const struct snap_layer *l, const char *type)
{
	return !strcmp(l->kind, "xlator") && strstr(l->type, type);
}

static struct verdict_pile *find_pile(struct verdict_case *c, const struct snap_layer *l)
{
	size_t i = 0;

	while (i < c->n_piles && (strcmp(c->piles[i].layer->id, l->id) != 0 ||
				  strcmp(c->piles[i].layer->kind, l->kind) != 0))
		i++;
	if (i == VERDICT_MAX_PILES)
		return NULL;
	if (i == c->n_piles) {
		c->n_piles++;
		c->piles[i] = (struct verdict_pile){ .layer = l };
	}
	return &c->piles[i];
}

static void add_layer(struct verdict_case *c, const struct snap_op *op, const struct snap_layer *l,
		      bool below, double scale)
{
	double self_ns = l->self.mean * (double)l->self.count * scale;
	struct verdict_pile *p = find_pile(c, l);

	c->attributed_ns += self_ns;
	if (has_type(l, "performance/io-threads"))
		c->queue_ns += self_ns;
	if (has_type(l, "protocol/client"))
		c->remote = true;
	if (below)
		c->below_ns += self_ns;
	if (!p) {
		c->left_out_ns += self_ns;
		return;
	}
	p->self_ns += self_ns;
	p->below_ns += below ? self_ns : 0;
	p->count += l->self.count;
	if (self_ns >= p->most_ns) {
		p->most_ns = self_ns;
		p->layer = l;
		p->op = op;
	}
}

static bool is_uring_op(const struct snap_op *op)
{
	return op->n_layers && !strcmp(op->layers[0].kind, "aio") &&
	       !strncmp(op->layers[0].id, "io_uring", strlen("io_uring"));
}

/*
 * A plain process's calls stand beside the asynchronous operations that they submit and wait for,
 * and some of the same time is in both. What submitting waited for is told by the rows of
 * io_submit(); io_uring waits for nothing there, and its call only until operations complete.
 */
static bool is_told_twice(const struct verdict_case *c, const struct snap_op *op,
			  const struct snap_layer *l)
{
	if (strcmp(op->root, "local") != 0)
		return false;
	if (!strcmp(l->id, "aio submit"))
		return true;
	return c->has_uring && !strcmp(op->op, "io_uring_enter") &&
	       (!strcmp(l->kind, "syscall") || !strcmp(l->kind, "block"));
}

/* Of the operation's time as far as its layers are known. */
static double told_twice_ns(const struct verdict_case *c, const struct snap_op *op)
{
	double ns = 0;

	for (size_t i = 0; i < op->n_layers; i++)
		if (op->layers[i].self.valid && is_told_twice(c, op, &op->layers[i]))
			ns += op->layers[i].self.mean * (double)op->layers[i].self.count;
	return ns;
}

/* Rows stand in tree order: what follows io-threads with greater depth is below it. */
static void add_layers(struct verdict_case *c, const struct snap_op *op, double scale)
{
	bool below = false;
	unsigned int depth = 0;

	for (size_t i = 0; i < op->n_layers; i++) {
		const struct snap_layer *l = &op->layers[i];

		if (below && l->depth <= depth)
			below = false;
		if (l->state != SNAP_OFF && l->self.valid && !is_told_twice(c, op, l))
			add_layer(c, op, l, below, scale);
		if (has_type(l, "performance/io-threads")) {
			below = true;
			depth = l->depth;
		}
	}
}

/* -> its part of T */
static double add_op(struct verdict_case *c, const struct snap_op *op)
{
	double all_ns = op->incl.valid ? op->incl.mean * (double)op->count : 0;
	double covered_ns = snapshot_covered_mean_ns(op) * (double)(op->count - op->uncovered);
	/* what is known of the requests that were seen whole stands for all */
	double scale = covered_ns > 0 ? all_ns / covered_ns : 0, twice_ns = told_twice_ns(c, op);

	c->requests += op->count;
	c->total_ns += all_ns - twice_ns * scale;
	c->covered += op->count - op->uncovered;
	c->covered_ns += covered_ns - twice_ns;
	add_layers(c, op, scale);
	return all_ns - twice_ns * scale;
}

static void add_ops(struct verdict_case *c)
{
	double slowest_ns = 0, covered_ns = 0, covered = 0;
	const struct snap_num walk_pct = c->t->cost.walk_duty_pct;

	for (size_t i = 0; i < c->t->n_ops; i++)
		c->has_uring |= is_uring_op(&c->t->ops[i]);
	for (size_t i = 0; i < c->t->n_ops; i++) {
		const struct snap_op *op = &c->t->ops[i];
		double ns;

		if (!verdict_is_user(c->t, op))
			continue;
		if (op->source != SNAP_FROM_WALK) {
			c->unwalked_ns += op->incl.valid ? op->incl.mean * (double)op->count : 0;
			continue;
		}
		ns = add_op(c, op);
		if (ns > slowest_ns) {
			slowest_ns = ns;
			c->slowest_op = op;
		}
		if (op->coverage_pct.valid) {
			covered_ns += ns;
			covered += ns * (op->coverage_pct.v < 100 ? op->coverage_pct.v : 100);
		}
	}
	if (covered_ns > 0)
		c->coverage_pct = (struct snap_num){ covered / covered_ns, true };
	/* where the walk takes turns its sample is as good as it is of the time it was on */
	c->in_turns = walk_pct.valid && walk_pct.v > 0 && walk_pct.v < 100;
	if (c->in_turns)
		c->coverage_pct.v = fmin(100, 100 * c->coverage_pct.v / walk_pct.v);
}

static void add_threads(struct verdict_case *c)
{
	for (size_t i = 0; i < c->t->n_pools; i++) {
		const struct snap_pool *p = &c->t->pools[i];

		if (!strcmp(p->name, "io-threads") && p->oncpu_ns.valid)
			c->iot = p;
		if (!p->oncpu_ns.valid || !p->runnable_ns.valid)
			continue;
		c->has_threads = true;
		c->oncpu_ns += p->oncpu_ns.v;
		c->runnable_ns += p->runnable_ns.v;
	}
}

void verdict_case_build(const struct snapshot *snap, const struct snap_target *t,
			struct verdict_case *c)
{
	memset(c, 0, sizeof(*c));
	c->snap = snap;
	c->t = t;
	c->window_ns = snap->window_secs * 1e9;
	add_ops(c);
	add_threads(c);
}

double verdict_held(const struct verdict_case *c)
{
	return c->below_ns / c->window_ns;
}

double verdict_queued(const struct verdict_case *c)
{
	return c->queue_ns / c->window_ns;
}

bool verdict_pool_is_short(const struct verdict_case *c)
{
	double threads = c->iot ? c->iot->mean_n.v : 0;

	/* while another process works on a request no thread is held here */
	return threads > 0 && !c->remote && verdict_held(c) >= FULL_POOL * threads &&
	       verdict_queued(c) > GROWS_POOL * threads;
}

double verdict_share(const struct verdict_case *c, double self_ns, double below_ns)
{
	double queued_ns = 0, share;

	if (!(c->total_ns > 0))
		return 0;
	if (c->below_ns > 0 && !c->remote)
		queued_ns = c->queue_ns * below_ns / c->below_ns;
	if (verdict_pool_is_short(c) && below_ns < NO_FAULT_NS * (double)c->requests)
		queued_ns *= below_ns / (NO_FAULT_NS * (double)c->requests);
	share = (self_ns + queued_ns) / c->total_ns;
	return share < 1 ? share : 1;
}

bool verdict_is_plain(const struct verdict_case *c)
{
	return !is_server(c->t);
}

bool verdict_times_lack(const struct verdict_case *c)
{
	int place = (int)(c->t - c->snap->targets);

	for (size_t i = 0; i < c->snap->n_off; i++) {
		const struct snap_off *off = &c->snap->off[i];

		if ((off->target == SNAP_ALL_TARGETS || off->target == place) &&
		    !strcmp(off->what, "sched"))
			return false;
	}
	return verdict_is_plain(c);
}

/* Where requests are worked on by threads of io-threads, theirs is the wait that is in T. */
static double starved_pool(const struct verdict_case *c)
{
	double threads = c->iot->mean_n.v, held = verdict_held(c) / threads, busy_ns;
	double active_ns = c->iot->oncpu_ns.v + c->iot->runnable_ns.v;

	if (verdict_pool_is_short(c)) /* always busy: what counts is their time, not requests' */
		return c->iot->runnable_ns.v / (threads * c->window_ns);
	/* the queue is, where threads are held, waiting for others, else their waking up */
	busy_ns = c->total_ns - c->queue_ns * (held < 1 ? held : 1);
	return c->iot->runnable_ns.v / (busy_ns > active_ns ? busy_ns : active_ns);
}

double verdict_starved(const struct verdict_case *c)
{
	double active_ns = c->oncpu_ns + c->runnable_ns, busy_ns = c->total_ns - c->queue_ns;
	double share;

	if (!c->has_threads || !(active_ns > 0))
		return 0;
	if (c->iot && !c->remote && c->iot->oncpu_ns.v > 0 && c->iot->mean_n.v > 0)
		share = starved_pool(c);
	else
		share = c->runnable_ns / (busy_ns > active_ns ? busy_ns : active_ns);
	return share < 1 ? share : 1;
}

double verdict_asleep(const struct verdict_case *c, double waits_ns)
{
	double active_ns, all_ns = c->below_ns;

	if (!c->has_threads)
		return 1;
	active_ns = c->oncpu_ns + c->runnable_ns;
	if (c->iot)
		active_ns = c->iot->oncpu_ns.v + c->iot->runnable_ns.v;
	else /* no such pool: requests are worked on where they arrive */
		all_ns = c->total_ns - c->queue_ns;
	all_ns -= waits_ns;
	if (!(all_ns > 0) || active_ns >= all_ns)
		return 0;
	return 1 - active_ns / all_ns;
}

bool verdict_sees_below(const struct verdict_case *c)
{
	static const char *const kinds[] = { "xfs", "throttle", "writeback", "block" };

	for (size_t i = 0; i < c->n_piles; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if (!strcmp(c->piles[i].layer->kind, kinds[k]))
				return true;
	return false;
}
