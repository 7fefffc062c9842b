/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_tree.c: a kept operation as a tree of rows: frames under the frame that wound them, system
 * calls under the frame that made them, their parts below; siblings in order of their begin.
 * Nothing is measured here, only subtracted: self = inclusive - what the walk has found covered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"
#include "slow_priv.h"

struct tree {
	const struct slow_op *op;
	const struct slow_view *view;
	struct snap_slow *out;
	bool frame_done[WIRE_MAX_FRAMES], span_done[SLOW_SPANS];
};

static bool is_counted(const struct wire_dump_frame *f)
{
	return f->flags & WIRE_FRAME_COUNTED;
}

/* The nearest counted frame from a frame upwards; the root where there is none. */
static unsigned int counted_from(const struct slow_op *op, unsigned int i)
{
	while (i != REQUEST_NO_FRAME && i && !is_counted(&op->frames[i]))
		i = op->frames[i].parent;
	return i == REQUEST_NO_FRAME ? 0 : i;
}

static __u16 real_layer(const struct slow_view *view, __u16 layer)
{
	__u16 real = view->real_layer ? view->real_layer(view->arg, layer) : layer;

	return real ?: layer;
}

/* Another row, named; NULL where there is no memory. */
static struct snap_slow_row *add_row(struct tree *tr, const struct wire_slot_key *key,
				     unsigned int depth)
{
	struct snap_slow_row *row = &tr->out->rows[tr->out->n_rows];
	struct snap_layer named = { .id = "" };

	if (model_name_layer(tr->view->model, tr->op->head.target, key, &named) == -ENOMEM)
		return NULL;
	memcpy(row->id, named.id, sizeof(row->id));
	memcpy(row->kind, named.kind, sizeof(row->kind));
	row->depth = depth;
	row->calls = 1;
	tr->out->n_rows++;
	return row;
}

static struct snap_num since_begin(const struct tree *tr, uint64_t ns)
{
	/* a client's clock is the same; what was clipped cannot begin earlier */
	return (struct snap_num){ (double)(int64_t)(ns - tr->op->begin_ns), true };
}

/* ---- system calls ------------------------------------------------------- */

static int emit_part(struct tree *tr, const struct wire_span *span, unsigned int at,
		     unsigned int depth)
{
	const struct wire_span_part *part = &span->part[at];
	struct wire_slot_key key = { .layer = part->layer, .sub = part->sub };
	struct snap_slow_row *row = add_row(tr, &key, depth);
	int ret = row ? 0 : -ENOMEM;

	if (ret)
		return ret;
	if (!at)
		row->at_ns = since_begin(tr, span->begin);
	row->incl_ns = (double)part->incl_ns;
	row->self_ns = (struct snap_num){ (double)part->self_ns, true };
	row->calls = part->calls;
	row->tid = (int)tr->op->head.tid;
	row->failed = !at && span->failed;
	for (unsigned int i = at + 1; i < span->n_parts && !ret; i++) {
		if (span->part[i].parent_part == at)
			ret = emit_part(tr, span, i, depth + 1);
	}
	return ret;
}

/* ---- frames ------------------------------------------------------------- */

#define NOTHING (~0U)

/* The earliest frame right below this one that has no row yet, or NOTHING. */
static unsigned int next_frame(const struct tree *tr, unsigned int above)
{
	const struct slow_op *op = tr->op;
	unsigned int best = NOTHING;

	for (unsigned int i = 1; i < op->n_frames; i++) {
		const struct wire_dump_frame *f = &op->frames[i];

		if (tr->frame_done[i] || !is_counted(f) || counted_from(op, f->parent) != above)
			continue;
		if (best == NOTHING || f->begin < op->frames[best].begin)
			best = i;
	}
	return best;
}

static unsigned int next_span(const struct tree *tr, unsigned int above)
{
	const struct slow_op *op = tr->op;
	unsigned int best = NOTHING;

	for (unsigned int i = 0; i < op->n_spans; i++) {
		if (tr->span_done[i] || counted_from(op, op->spans[i].frame) != above)
			continue;
		if (best == NOTHING || op->spans[i].begin < op->spans[best].begin)
			best = i;
	}
	return best;
}

static void fill_frame(const struct tree *tr, const struct wire_dump_frame *f,
		       struct snap_slow_row *row)
{
	uint64_t incl = f->end - f->begin;

	row->at_ns = since_begin(tr, f->begin);
	row->incl_ns = (double)incl;
	/*
	 * What could not be split has no self times; nor has a frame that went wrong, nor one whose
	 * calls were not all seen.
	 */
	row->self_ns.valid = !tr->op->head.unsplit && f->covered <= incl &&
			     !(tr->op->head.uncovered && f->flags & WIRE_FRAME_ON_THREAD);
	if (row->self_ns.valid)
		row->self_ns.v = (double)(incl - f->covered);
	if (f->flags & WIRE_FRAME_ON_THREAD)
		row->tid = (int)tr->op->head.tid;
	row->open = f->flags & WIRE_FRAME_OPEN;
	row->failed = f->failed;
}

static int emit_frame(struct tree *tr, unsigned int at, unsigned int depth)
{
	const struct slow_op *op = tr->op;
	const struct wire_dump_frame *f = &op->frames[at];
	struct wire_slot_key key = { .layer = real_layer(tr->view, f->layer) };
	struct snap_slow_row *row;
	unsigned int frame, span;
	int ret = 0;

	tr->frame_done[at] = true;
	if (at)
		key.parent = real_layer(tr->view, op->frames[counted_from(op, f->parent)].layer);
	row = add_row(tr, &key, depth);
	if (!row)
		return -ENOMEM;
	fill_frame(tr, f, row);
	while (!ret) {
		frame = next_frame(tr, at);
		span = next_span(tr, at);
		if (frame == NOTHING && span == NOTHING)
			break;
		if (span == NOTHING ||
		    (frame != NOTHING && op->frames[frame].begin <= op->spans[span].begin)) {
			ret = emit_frame(tr, frame, depth + 1);
		} else {
			tr->span_done[span] = true;
			ret = emit_part(tr, &op->spans[span], 0, depth + 1);
		}
	}
	return ret;
}

/* ---- the operation ------------------------------------------------------ */

static void fill_head(const struct slow_op *op, const struct slow_view *view, struct snap_slow *out)
{
	const struct wire_dump *head = &op->head;
	struct wire_slot_key key = {
		.op = (__u8)head->op,
		.root = head->root,
		.origin = head->origin,
		.top = (__u8)(op->n_spans ? op->spans[0].part[0].layer : 0),
	};
	const char *unsplit = request_unsplit(head);
	struct snap_op named;

	model_name_op(view->model, &key, &named);
	memcpy(out->root, named.root, sizeof(out->root));
	memcpy(out->origin, named.origin, sizeof(out->origin));
	memcpy(out->op, named.op, sizeof(out->op));
	out->wall_ns = view->wall_ns + (int64_t)op->begin_ns;
	out->incl_ns = (double)op->incl_ns;
	out->limit_ns = (double)op->limit_ns;
	strncpy(out->unsplit, unsplit ?: "unknown", sizeof(out->unsplit) - 1);
	out->uncovered = head->uncovered;
	out->more_calls = op->more_calls;
	out->more_ns = (double)op->more_ns;
	out->has_bytes = named.has_bytes && head->result >= 0;
	out->bytes = out->has_bytes ? (uint64_t)head->result : 0;
	out->failed = head->result < 0;
	out->error = out->failed ? head->op_errno : 0;
	if (head->root == WIRE_ROOT_LOCAL) {
		out->bytes = op->spans[0].bytes;
		out->failed = op->spans[0].failed;
	}
	for (unsigned int i = 0; i < op->n_spans && !out->ino; i++)
		out->ino = op->spans[i].file;
}

static void fill_who(const struct wire_who *who, struct snap_slow *out)
{
	out->file.kind = (enum snap_file_kind)who->kind;
	memcpy(out->file.id, who->file, sizeof(out->file.id));
	out->has_app = who->has_app;
	out->file.last.client_addr = who->client;
	out->file.last.pid = who->pid;
	out->file.last.uid = who->uid;
}

/* Where it took the most time, if all of it is known. */
static void mark_longest(struct snap_slow *out)
{
	struct snap_slow_row *longest = NULL;

	for (size_t i = 0; i < out->n_rows && !out->unsplit[0]; i++) {
		struct snap_slow_row *row = &out->rows[i];

		if (row->tid && !out->tid)
			out->tid = row->tid;
		if (!out->uncovered && row->self_ns.valid &&
		    (!longest || row->self_ns.v > longest->self_ns.v))
			longest = row;
	}
	if (longest)
		longest->longest = true;
}

int slow_tree_build(const struct slow_op *op, const struct slow_view *view, struct snap_slow *ret)
{
	struct tree tr = { .op = op, .view = view, .out = ret };
	size_t n = op->n_frames;
	int err;

	for (unsigned int i = 0; i < op->n_spans; i++)
		n += op->spans[i].n_parts;
	memset(ret, 0, sizeof(*ret));
	ret->rows = calloc(n + 1, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	fill_head(op, view, ret);
	fill_who(&op->who, ret);
	if (op->n_frames)
		err = emit_frame(&tr, 0, 0);
	else
		err = emit_part(&tr, &op->spans[0], 0, 0);
	if (err) {
		free(ret->rows);
		ret->rows = NULL;
		return err;
	}
	mark_longest(ret);
	return 0;
}
