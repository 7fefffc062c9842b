/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_json_slow.c: see sink_json_slow.h. Owns the names of the keys; a value that cannot be made
 * makes the whole NULL, which json_pack() sees to.
 */
#include "sink_json_slow.h"

#include <math.h>

#include "sink_fmt.h"
#include "sink_json_uses.h"
#include "text.h"

static json_t *us(bool valid, double ns)
{
	double rounded = round(ns) / 1000;

	return valid && isfinite(rounded) ? json_real(rounded + 0.0) : json_null();
}

/* Of a string that came from elsewhere: jansson refuses what is not UTF-8. */
static json_t *name(const char *s)
{
	char clean[256];

	return json_string(text_sanitize(clean, sizeof(clean), s));
}

static json_t *known(bool valid, uint64_t v)
{
	return valid ? json_integer((json_int_t)v) : json_null();
}

/* Takes the item; false where there is none, or no memory. */
static bool append(json_t *array, json_t *item)
{
	return item && !json_array_append_new(array, item);
}

static json_t *row_json(const struct snap_slow_row *row)
{
	return json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:o, s:b, s:b, s:b}", "id",
			 name(row->id), "kind", name(row->kind), "depth", (json_int_t)row->depth,
			 "at_us", us(row->at_ns.valid, row->at_ns.v), "incl_us",
			 us(true, row->incl_ns), "self_us", us(row->self_ns.valid, row->self_ns.v),
			 "calls", (json_int_t)row->calls, "tid",
			 known(row->tid > 0, (uint64_t)row->tid), "open", row->open, "failed",
			 row->failed, "longest", row->longest);
}

static json_t *rows_json(const struct snap_slow *op)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < op->n_rows; i++) {
		if (append(rows, row_json(&op->rows[i])))
			continue;
		json_decref(rows);
		return NULL;
	}
	return rows;
}

static json_t *file_json(const struct snap_slow *op)
{
	char gfid[TEXT_GFID];

	if (op->file.kind == SNAP_FILE_UNKNOWN)
		return json_null();
	return json_pack("{s:o, s:o, s:b}", "path", sink_json_text(op->file.path), "gfid",
			 op->file.kind == SNAP_FILE_INODE ?
				 json_null() :
				 json_string(text_gfid(gfid, op->file.id)),
			 "entry", op->file.kind == SNAP_FILE_ENTRY);
}

static json_t *app_json(const struct snap_slow *op)
{
	const struct snap_app *app = &op->file.last;

	if (!op->has_app)
		return json_null();
	return json_pack("{s:I, s:o, s:I, s:o}", "pid", (json_int_t)app->pid, "comm",
			 sink_json_text(app->comm), "uid", (json_int_t)app->uid, "client",
			 sink_json_text(app->client));
}

static json_t *thread_json(const struct snap_slow *op)
{
	if (!op->tid)
		return json_null();
	return json_pack("{s:i, s:o}", "tid", op->tid, "comm", name(op->comm));
}

static json_t *op_json(const struct snap_slow *op)
{
	char start[48];

	bool unsplit = op->unsplit[0];

	return json_pack(
		"{s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:b, s:{s:I, s:o}, s:o}",
		"start", name(sink_fmt_time(start, sizeof(start), op->wall_ns)), "start_unix_us",
		(json_int_t)(op->wall_ns / 1000), "root", name(op->root), "origin",
		name(op->origin), "op", name(op->op), "incl_us", us(true, op->incl_ns), "limit_us",
		us(true, op->limit_ns), "unattributed_us", us(true, unsplit ? op->incl_ns : 0),
		"bytes", known(op->has_bytes, op->bytes), "failed", op->failed, "errno",
		known(op->error != 0, (uint64_t)op->error), "unsplit", name(op->unsplit), "file",
		file_json(op), "ino", known(op->ino != 0, op->ino), "application", app_json(op),
		"thread", thread_json(op), "covered", !op->uncovered, "more", "calls",
		(json_int_t)op->more_calls, "self_us", us(true, op->more_ns), "layers",
		rows_json(op));
}

json_t *sink_json_slow(const struct snap_slows *slow)
{
	json_t *ops = json_array();

	for (size_t i = 0; i < slow->n_ops; i++) {
		if (append(ops, op_json(&slow->ops[i])))
			continue;
		json_decref(ops);
		return NULL;
	}
	return ops;
}

static json_t *limit_json(const struct snap_slow_limit *limit)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "root", name(limit->root), "origin",
			 name(limit->origin), "op", name(limit->op), "limit_us",
			 us(limit->limit_ns.valid, limit->limit_ns.v), "ended",
			 (json_int_t)limit->ended, "slow", (json_int_t)limit->slow);
}

json_t *sink_json_slow_limits(const struct snap_slows *slow)
{
	json_t *limits = json_array();

	for (size_t i = 0; i < slow->n_limits; i++) {
		if (append(limits, limit_json(&slow->limits[i])))
			continue;
		json_decref(limits);
		return NULL;
	}
	return json_pack("{s:o, s:I, s:I, s:I, s:o, s:o}", "wanted", name(slow->wanted), "slow",
			 (json_int_t)slow->slow, "shown", (json_int_t)slow->n_ops, "lost",
			 (json_int_t)slow->lost, "enough", known(slow->enough > 0, slow->enough),
			 "ops", limits);
}
