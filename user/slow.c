/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow.c: see slow.h. A list of a kind that is full raises its floor: the programs no longer write
 * what would not be kept, so that even where everything is slow little is written.
 */
#include "slow.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"
#include "slow_priv.h"

struct kept {
	struct slow_op **op; /* slowest first */
	unsigned int n;
};

struct counts {
	uint64_t taken; /* records of the window */
	uint64_t passed_base, dropped_base;
};

struct target {
	struct kept kept[WIRE_SLOW_KINDS];
	struct counts row[WIRE_SLOW_ROWS];
	uint64_t bad; /* records that could not be kept */
};

struct slow {
	struct slow_config config;
	struct wire_slow *shared; /* the programs' */
	struct target *targets;
};

/* The programs read and count meanwhile. */
static uint64_t load(const volatile __u64 *word)
{
	return *word;
}

static void store(volatile __u64 *word, uint64_t value)
{
	*word = value;
}

/* ---- life --------------------------------------------------------------- */

int slow_new(const struct slow_config *config, struct wire_slow *shared, struct slow **ret_slow)
{
	struct slow *s = calloc(1, sizeof(*s));
	unsigned int t, i;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	if (!s->config.keep)
		s->config.keep = SLOW_KEEP;
	s->shared = shared;
	s->targets = calloc(config->n_targets + 1, sizeof(*s->targets));
	if (!s->targets)
		goto out_free;
	for (t = 0; t < config->n_targets; t++) {
		for (i = 0; i < WIRE_SLOW_KINDS; i++) {
			struct kept *k = &s->targets[t].kept[i];

			k->op = calloc(s->config.keep, sizeof(struct slow_op *));
			if (!k->op)
				goto out_free;
		}
		for (i = 0; i < WIRE_SLOW_ROWS; i++)
			store(&shared[t].row[i].limit_ns, config->ppm ? ~0ULL : config->limit_ns);
	}
	*ret_slow = s;
	return 0;

out_free:
	slow_free(s);
	return -ENOMEM;
}

static void forget(struct kept *k)
{
	while (k->n > 0)
		free(k->op[--k->n]);
}

void slow_free(struct slow *s)
{
	unsigned int t, kind;

	if (!s)
		return;
	for (t = 0; s->targets && t < s->config.n_targets; t++) {
		for (kind = 0; kind < WIRE_SLOW_KINDS; kind++) {
			forget(&s->targets[t].kept[kind]);
			free(s->targets[t].kept[kind].op);
		}
	}
	free(s->targets);
	free(s);
}

void slow_start_window(struct slow *s)
{
	unsigned int t, i;

	for (t = 0; t < s->config.n_targets; t++) {
		struct target *target = &s->targets[t];

		target->bad = 0;
		for (i = 0; i < WIRE_SLOW_KINDS; i++) {
			forget(&target->kept[i]);
			store(&s->shared[t].floor_ns[i], 0);
		}
		for (i = 0; i < WIRE_SLOW_ROWS; i++) {
			target->row[i] = (struct counts){
				.passed_base = load(&s->shared[t].row[i].passed),
				.dropped_base = load(&s->shared[t].row[i].dropped),
			};
		}
	}
}

/* ---- a record ----------------------------------------------------------- */

/* Parents come before their children, so that there is no cycle. */
static bool is_frame_sound(const struct wire_dump_frame *f, unsigned int i)
{
	return f->parent == REQUEST_NO_FRAME || f->parent < i;
}

static bool is_span_sound(const struct wire_span *span, const struct wire_dump *head)
{
	unsigned int i;

	if (!span->n_parts || span->n_parts > WIRE_SPAN_PARTS || span->end < span->begin ||
	    (span->frame != REQUEST_NO_FRAME && span->frame >= head->n_frames))
		return false;
	for (i = 1; i < span->n_parts; i++) {
		if (span->part[i].parent_part >= i)
			return false;
	}
	return true;
}

static uint64_t span_ns(const struct wire_span *span)
{
	return span->end - span->begin;
}

/* Among the longest, or else one of those that are only counted. */
static void keep_span(struct slow_op *op, const struct wire_span *span)
{
	unsigned int at;

	if (op->n_spans == SLOW_SPANS) {
		const struct wire_span *last = &op->spans[SLOW_SPANS - 1];
		bool is_longer = span_ns(span) > span_ns(last);

		op->more_calls++;
		op->more_ns += span_ns(is_longer ? last : span);
		if (!is_longer)
			return;
		op->n_spans--;
	}
	for (at = op->n_spans; at > 0 && span_ns(&op->spans[at - 1]) < span_ns(span); at--)
		op->spans[at] = op->spans[at - 1];
	op->spans[at] = *span;
	op->n_spans++;
}

/* A request's calls are those that its frames have claimed; others' may be among them. */
static int keep_spans(struct slow_op *op, const struct request *r)
{
	struct wire_span span;
	unsigned int i;

	for (i = 0; i < r->head.n_spans; i++) {
		request_span(r, i, &span);
		if (!is_span_sound(&span, &r->head))
			return -EBADMSG;
		if (span.frame != REQUEST_NO_FRAME || r->head.root == WIRE_ROOT_LOCAL)
			keep_span(op, &span);
	}
	return 0;
}

static int keep_frames(struct slow_op *op, const struct request *r)
{
	unsigned int i;

	for (i = 0; i < r->head.n_frames; i++) {
		request_frame(r, i, &op->frames[i]);
		if (!is_frame_sound(&op->frames[i], i))
			return -EBADMSG;
	}
	op->n_frames = r->head.n_frames;
	return 0;
}

/* When it began, and how long it took; false: a record of nothing. */
static bool read_times(const struct request *r, uint64_t *ret_begin, uint64_t *ret_incl)
{
	struct wire_dump_frame root;
	struct wire_span span;

	if (r->head.root == WIRE_ROOT_LOCAL) {
		if (!r->head.n_spans)
			return false;
		request_span(r, 0, &span);
		*ret_begin = span.begin;
		*ret_incl = span.end - span.begin;
		return span.end >= span.begin;
	}
	if (!r->head.n_frames)
		return false;
	request_frame(r, 0, &root);
	*ret_begin = root.begin;
	*ret_incl = root.end - root.begin;
	return root.end >= root.begin;
}

/* The operation of a record: the caller's. */
static int make_op(const struct request *r, uint64_t begin, uint64_t incl, struct slow_op **ret_op)
{
	unsigned int spans = r->head.n_spans < SLOW_SPANS ? r->head.n_spans : SLOW_SPANS;
	size_t frames_bytes = r->head.n_frames * sizeof(struct wire_dump_frame);
	struct slow_op *op = calloc(1, sizeof(*op) + frames_bytes + spans * sizeof(*op->spans));
	int ret;

	if (!op)
		return -ENOMEM;
	op->head = r->head;
	op->who = r->who;
	op->begin_ns = begin;
	op->incl_ns = incl;
	op->frames = (struct wire_dump_frame *)(op + 1);
	op->spans = (struct wire_span *)((char *)op->frames + frames_bytes);
	ret = keep_frames(op, r);
	ret = ret ?: keep_spans(op, r);
	if (ret)
		free(op);
	else
		*ret_op = op;
	return ret;
}

/* Put it where it belongs; the quickest one makes room where there is none. */
static void insert(struct slow *s, struct kept *k, struct slow_op *op)
{
	unsigned int at;

	if (k->n == s->config.keep)
		free(k->op[--k->n]);
	for (at = k->n; at > 0 && k->op[at - 1]->incl_ns < op->incl_ns; at--)
		k->op[at] = k->op[at - 1];
	k->op[at] = op;
	k->n++;
}

static unsigned int row_of(const struct request *r)
{
	struct wire_span span = { .n_parts = 0 };

	if (r->head.root == WIRE_ROOT_LOCAL && r->head.n_spans)
		request_span(r, 0, &span);
	return wire_slow_row(r->head.root, r->head.origin, r->head.op, span.part[0].layer);
}

static int take(struct slow *s, struct target *target, const struct request *r)
{
	unsigned int row = row_of(r), kind = wire_slow_kind(row);
	struct wire_slow *shared = &s->shared[r->head.target];
	struct kept *k = &target->kept[kind];
	uint64_t begin, incl;
	struct slow_op *op;
	int ret;

	if (!read_times(r, &begin, &incl))
		return -EBADMSG;
	if (k->n < s->config.keep || incl > k->op[k->n - 1]->incl_ns) {
		ret = make_op(r, begin, incl, &op);
		if (ret)
			return ret;
		op->limit_ns = load(&shared->row[row].limit_ns);
		insert(s, k, op);
	}
	target->row[row].taken++;
	if (k->n == s->config.keep)
		store(&shared->floor_ns[kind], k->op[k->n - 1]->incl_ns);
	return 0;
}

int slow_take(struct slow *s, const void *record, size_t len)
{
	struct request r;
	int ret = request_open(record, len, &r);

	if (ret || r.head.target >= s->config.n_targets)
		return -EBADMSG;
	ret = take(s, &s->targets[r.head.target], &r);
	if (ret)
		s->targets[r.head.target].bad++;
	return ret;
}

/* ---- limits ------------------------------------------------------------- */

/* So many are needed for one of them to be beyond the share. */
static uint64_t enough(const struct slow *s)
{
	uint64_t one_beyond = s->config.ppm ? 1000000 / (1000000 - s->config.ppm) : 0;

	return one_beyond > SLOW_LEAST ? one_beyond : SLOW_LEAST;
}

int slow_tick(struct slow *s, const struct model *m)
{
	struct model_quantile *q;
	unsigned int t;
	size_t i, n;
	int ret = 0;

	for (t = 0; s->config.ppm && t < s->config.n_targets && ret != -ENOMEM; t++) {
		ret = model_quantiles(m, t, s->config.ppm, &q, &n);
		if (ret)
			continue;
		for (i = 0; i < n; i++) {
			if (q[i].count >= enough(s))
				store(&s->shared[t].row[q[i].row].limit_ns, (uint64_t)q[i].ns + 1);
		}
		free(q);
	}
	return ret == -ENOMEM ? ret : 0;
}

/* ---- the report --------------------------------------------------------- */

/* Slow in the window: taken, quicker than those that are kept, or lost. */
static uint64_t count_slow(const struct slow *s, unsigned int t, unsigned int row)
{
	const struct counts *c = &s->targets[t].row[row];
	const struct wire_slow_row *shared = &s->shared[t].row[row];

	return c->taken + load(&shared->passed) - c->passed_base + load(&shared->dropped) -
	       c->dropped_base;
}

static void fill_counts(const struct slow *s, unsigned int t, struct snap_slows *out)
{
	unsigned int i;

	out->lost = s->targets[t].bad;
	out->slow = s->targets[t].bad;
	for (i = 0; i < WIRE_SLOW_ROWS; i++) {
		out->slow += count_slow(s, t, i);
		out->lost += load(&s->shared[t].row[i].dropped) - s->targets[t].row[i].dropped_base;
	}
}

/* Of operations that were slow; where limits are shares, of all. */
static int fill_limits(const struct slow *s, unsigned int t, const struct model *m,
		       struct snap_slows *out)
{
	struct model_quantile *q;
	size_t i, n;
	int ret = model_quantiles(m, t, s->config.ppm, &q, &n);

	if (ret)
		return ret;
	out->limits = calloc(n + 1, sizeof(*out->limits));
	for (i = 0; out->limits && i < n; i++) {
		struct snap_slow_limit *limit = &out->limits[out->n_limits];
		uint64_t ns = load(&s->shared[t].row[q[i].row].limit_ns);
		struct snap_op named;

		limit->slow = count_slow(s, t, q[i].row);
		if (!limit->slow && !s->config.ppm)
			continue;
		model_name_op(m, &q[i].key, &named);
		memcpy(limit->root, named.root, sizeof(limit->root));
		memcpy(limit->origin, named.origin, sizeof(limit->origin));
		memcpy(limit->op, named.op, sizeof(limit->op));
		limit->ended = q[i].count;
		limit->limit_ns.valid = ns != ~0ULL;
		limit->limit_ns.v = (double)ns;
		out->n_limits++;
	}
	free(q);
	return out->limits ? 0 : -ENOMEM;
}

/* As far as the snapshot knows the thread. */
static void name_thread(const struct snap_target *st, struct snap_slow *op)
{
	size_t i;

	for (i = 0; i < st->n_threads; i++) {
		if (st->threads[i].tid == op->tid)
			memcpy(op->comm, st->threads[i].comm, sizeof(op->comm));
	}
}

static int fill_ops(const struct slow *s, unsigned int t, const struct slow_view *view,
		    struct snap_target *st)
{
	struct snap_slows *out = &st->slow;
	const struct kept *kept = s->targets[t].kept;
	unsigned int kind, i;
	int ret = 0;

	out->ops = calloc((size_t)s->config.keep * WIRE_SLOW_KINDS, sizeof(*out->ops));
	if (!out->ops)
		return -ENOMEM;
	for (kind = 0; kind < WIRE_SLOW_KINDS; kind++) {
		for (i = 0; i < kept[kind].n && !ret; i++) {
			struct snap_slow *op = &out->ops[out->n_ops];

			ret = slow_tree_build(kept[kind].op[i], view, op);
			if (ret)
				continue;
			name_thread(st, op);
			out->n_ops++;
		}
	}
	return ret;
}

int slow_report(const struct slow *s, const struct slow_view *view, struct snapshot *snap)
{
	unsigned int t;
	int ret = 0;

	for (t = 0; t < s->config.n_targets && !ret; t++) {
		int place = model_place(view->model, (int)t);
		struct snap_slows *out;

		if (place < 0 || (size_t)place >= snap->n_targets)
			continue;
		out = &snap->targets[place].slow;
		strncpy(out->wanted, s->config.wanted, sizeof(out->wanted) - 1);
		out->enough = s->config.ppm ? enough(s) : 0;
		fill_counts(s, t, out);
		ret = fill_limits(s, t, view->model, out);
		ret = ret ?: fill_ops(s, t, view, &snap->targets[place]);
	}
	return ret;
}
