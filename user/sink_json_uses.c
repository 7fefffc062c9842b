/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_json_uses.c: see sink_json_uses.h. Owns the names of the keys; a value that cannot be made
 * makes the whole NULL, which json_pack() sees to.
 */
#include "sink_json_uses.h"

#include <math.h>
#include <string.h>

#include "text.h"

#define MAX_ROWS 50

static json_t *number(bool valid, double v)
{
	double rounded = round(v * 1000) / 1000;

	return valid && isfinite(rounded) ? json_real(rounded + 0.0) : json_null();
}

json_t *sink_json_text(const char *s)
{
	char clean[sizeof(((struct snap_file *)NULL)->path)];

	return s[0] ? json_string(text_sanitize(clean, sizeof(clean), s)) : json_null();
}

static size_t rows(size_t n)
{
	return n < MAX_ROWS ? n : MAX_ROWS;
}

/* Add what all three have in common; NULL stays NULL. */
static json_t *with_use(json_t *row, const struct snap_use *use)
{
	json_t *figures = json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "count",
		(json_int_t)use->count, "reads", (json_int_t)use->reads, "writes",
		(json_int_t)use->writes, "syncs", (json_int_t)use->syncs, "bytes",
		(json_int_t)use->bytes, "errors", (json_int_t)use->errors, "total_us",
		number(true, use->total_ns / 1000), "mean_us",
		number(use->count > 0, use->count ? use->total_ns / 1000 / (double)use->count : 0),
		"max_us", number(use->max_ns.valid, use->max_ns.v / 1000), "share_pct",
		number(use->share_pct.valid, use->share_pct.v));

	if (row && (!figures || json_object_update(row, figures))) {
		json_decref(row);
		row = NULL;
	}
	json_decref(figures);
	return row;
}

/* Takes the row; NULL where there is no memory for it. */
static json_t *appended(json_t *array, json_t *row)
{
	if (array && row && !json_array_append_new(array, row))
		return array;
	json_decref(array);
	return NULL;
}

static json_t *file_json(const struct snap_file *f)
{
	bool is_inode = f->kind == SNAP_FILE_INODE;
	char gfid[TEXT_GFID], dev[32];
	uint64_t id[2];

	memcpy(id, f->id, sizeof(id));
	snprintf(dev, sizeof(dev), "%u:%u", (unsigned int)(id[1] >> 20),
		 (unsigned int)(id[1] & 0xfffff));
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:I, s:I, s:o}", "path",
			 sink_json_text(f->path), "gfid",
			 is_inode ? json_null() : json_string(text_gfid(gfid, f->id)), "dev",
			 is_inode ? json_string(dev) : json_null(), "inode",
			 is_inode ? json_integer((json_int_t)id[0]) : json_null(), "entries",
			 f->kind == SNAP_FILE_ENTRY, "slowdown",
			 number(f->slowdown.valid, f->slowdown.v), "app_pid",
			 (json_int_t)f->last.pid, "uid", (json_int_t)f->last.uid, "comm",
			 sink_json_text(f->last.comm));
}

json_t *sink_json_files(const struct snap_target *t)
{
	json_t *array = t->has_files ? json_array() : json_null();

	for (size_t i = 0; i < rows(t->n_files) && array; i++)
		array = appended(array, with_use(file_json(&t->files[i]), &t->files[i].use));
	return array;
}

json_t *sink_json_dirs(const struct snap_target *t)
{
	json_t *array = t->has_files ? json_array() : json_null();

	for (size_t i = 0; i < rows(t->n_dirs) && array; i++)
		array = appended(array, with_use(json_pack("{s:o, s:I}", "path",
							   sink_json_text(t->dirs[i].path), "files",
							   (json_int_t)t->dirs[i].n_files),
						 &t->dirs[i].use));
	return array;
}

json_t *sink_json_apps(const struct snap_target *t)
{
	json_t *array = t->has_files ? json_array() : json_null();

	for (size_t i = 0; i < rows(t->n_apps) && array; i++) {
		const struct snap_app *a = &t->apps[i];

		array = appended(array,
				 with_use(json_pack("{s:I, s:I, s:o, s:o}", "app_pid",
						    (json_int_t)a->pid, "uid", (json_int_t)a->uid,
						    "comm", sink_json_text(a->comm), "client",
						    sink_json_text(a->client)),
					  &a->use));
	}
	return array;
}

json_t *sink_json_uses(const struct snap_target *t)
{
	if (!t->has_files)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "files_pct",
			 number(t->files_pct.valid, t->files_pct.v), "directories_pct",
			 number(t->dirs_pct.valid, t->dirs_pct.v), "apps_pct",
			 number(t->apps_pct.valid, t->apps_pct.v), "files",
			 (json_int_t)t->n_all_files, "apps", (json_int_t)t->n_all_apps,
			 "files_pushed_out", (json_int_t)t->files_pushed, "apps_pushed_out",
			 (json_int_t)t->apps_pushed, "names_late", (json_int_t)t->names_late);
}
