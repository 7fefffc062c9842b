/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_uses.c: see sink_uses.h. The figures come first and keep their width; names, which may be
 * long, stand last in a line and are never cut: they wrap.
 */
#include "sink_uses.h"

#include <inttypes.h>
#include <string.h>

#include "text.h"

#define MAX_ROWS    10
#define NAME_INDENT 6
#define SLOW        2 /* a file is said to be slower than the others from here on */

struct table {
	FILE *out;
	const struct sink_style *st;
};

static void put_cell(const struct table *t, const char *text, unsigned int width)
{
	fputc(' ', t->out);
	sink_fmt_right(t->out, t->st, text, width - 1);
}

static void put_title(const struct table *t, const char *title, struct snap_num pct, uint64_t n_all,
		      uint64_t n_shown, uint64_t pushed, uint64_t late)
{
	struct sink_flow flow;
	char buf[32];

	fputc('\n', t->out);
	sink_fmt_colour(t->out, t->st, SINK_BOLD);
	sink_fmt_flow_resume(&flow, t->out, t->st, 0, 2);
	sink_fmt_flow_item(&flow, 0, "%s", title);
	sink_fmt_colour(t->out, t->st, SINK_PLAIN);
	sink_fmt_flow_item(&flow, 2, "%s of the requests' time",
			   sink_fmt_pct(buf, sizeof(buf), pct));
	if (n_all > n_shown)
		sink_fmt_flow_item(&flow, 3, "%s more",
				   sink_fmt_u64(buf, sizeof(buf), n_all - n_shown));
	if (pushed)
		sink_fmt_flow_item(&flow, 3, "%s pushed out of a full table",
				   sink_fmt_u64(buf, sizeof(buf), pushed));
	if (late)
		sink_fmt_flow_item(&flow, 3,
				   "%s without a name: their file system did not answer in time",
				   sink_fmt_u64(buf, sizeof(buf), late));
	sink_fmt_flow_end(&flow);
	put_cell(t, "share", 8);
	put_cell(t, "ops", 10);
	put_cell(t, "mean", 8);
	put_cell(t, "max", 8);
	put_cell(t, "bytes", 8);
	fputc('\n', t->out);
}

static void put_figures(const struct table *t, const struct snap_use *use)
{
	char buf[32];

	put_cell(t, sink_fmt_pct(buf, sizeof(buf), use->share_pct), 8);
	put_cell(t, sink_fmt_u64(buf, sizeof(buf), use->count), 10);
	put_cell(t,
		 sink_fmt_ns(buf, sizeof(buf), use->count > 0,
			     use->count ? use->total_ns / (double)use->count : 0),
		 8);
	put_cell(t, sink_fmt_ns(buf, sizeof(buf), use->max_ns.valid, use->max_ns.v), 8);
	put_cell(t, text_bytes(buf, sizeof(buf), (double)use->bytes), 8);
}

static void begin_name(const struct table *t, struct sink_flow *flow)
{
	sink_fmt_flow_resume(flow, t->out, t->st, 8 + 10 + 8 + 8 + 8, NAME_INDENT);
}

static void put_errors(struct sink_flow *flow, const struct snap_use *use)
{
	char buf[32];

	if (use->errors)
		sink_fmt_flow_item(flow, 2, "%s failed",
				   sink_fmt_u64(buf, sizeof(buf), use->errors));
}

void sink_uses_app(struct sink_flow *flow, unsigned int gap, const struct snap_app *app)
{
	if (app->pid < 0)
		sink_fmt_flow_item(flow, gap, "GlusterFS itself (%" PRId64 ")", app->pid);
	else if (app->comm[0])
		sink_fmt_flow_item(flow, gap, "pid %" PRId64 " (%s)", app->pid, app->comm);
	else
		sink_fmt_flow_item(flow, gap, "pid %" PRId64, app->pid);
	sink_fmt_flow_item(flow, 2, "uid %u", app->uid);
}

void sink_uses_client(struct sink_flow *flow, unsigned int gap, const struct snap_app *app)
{
	if (app->client_host[0])
		sink_fmt_flow_item(flow, gap, "client %s, pid %d", app->client_host,
				   app->client_pid);
	else if (app->client[0])
		sink_fmt_flow_item(flow, gap, "client %s", app->client);
}

void sink_uses_file(struct sink_flow *flow, unsigned int gap, const struct snap_file *f)
{
	char gfid[TEXT_GFID];
	uint64_t id[2];

	if (f->path[0]) {
		sink_fmt_flow_item(flow, gap, "%s%s", f->path[0] == '/' ? "" : ".../", f->path);
	} else if (f->kind == SNAP_FILE_INODE) {
		memcpy(id, f->id, sizeof(id));
		sink_fmt_flow_item(flow, gap, "inode %" PRIu64 " on %u:%u", id[0],
				   (unsigned int)(id[1] >> 20), (unsigned int)(id[1] & 0xfffff));
	} else {
		sink_fmt_flow_item(flow, gap, "gfid %s", text_gfid(gfid, f->id));
	}
}

static size_t rows(size_t n)
{
	return n < MAX_ROWS ? n : MAX_ROWS;
}

static void put_files(const struct table *t, const struct snap_target *st)
{
	struct sink_flow flow;
	char buf[32];

	put_title(t, "files", st->files_pct, st->n_all_files, rows(st->n_files), st->files_pushed,
		  st->names_late);
	for (size_t i = 0; i < rows(st->n_files); i++) {
		const struct snap_file *f = &st->files[i];

		put_figures(t, &f->use);
		begin_name(t, &flow);
		if (f->kind == SNAP_FILE_ENTRY)
			sink_fmt_flow_item(&flow, 2, "names looked up or made in");
		sink_uses_file(&flow, f->kind == SNAP_FILE_ENTRY ? 1 : 2, f);
		put_errors(&flow, &f->use);
		if (f->slowdown.valid && f->slowdown.v >= SLOW)
			sink_fmt_flow_item(&flow, 2, "%s times as slow as the others",
					   sink_fmt_count(buf, sizeof(buf), true, f->slowdown.v));
		sink_fmt_flow_end(&flow);
	}
}

static void put_dirs(const struct table *t, const struct snap_target *st)
{
	struct sink_flow flow;
	char buf[32];

	put_title(t, "directories", st->dirs_pct, st->n_dirs, rows(st->n_dirs), 0, 0);
	for (size_t i = 0; i < rows(st->n_dirs); i++) {
		const struct snap_dir *d = &st->dirs[i];

		put_figures(t, &d->use);
		begin_name(t, &flow);
		sink_fmt_flow_item(&flow, 2, "%s", d->path);
		sink_fmt_flow_item(&flow, 2, "%s file%s",
				   sink_fmt_u64(buf, sizeof(buf), d->n_files),
				   d->n_files == 1 ? "" : "s");
		sink_fmt_flow_end(&flow);
	}
}

static void put_apps(const struct table *t, const struct snap_target *st)
{
	struct sink_flow flow;

	put_title(t, "applications", st->apps_pct, st->n_all_apps, rows(st->n_apps),
		  st->apps_pushed, 0);
	for (size_t i = 0; i < rows(st->n_apps); i++) {
		const struct snap_app *app = &st->apps[i];

		put_figures(t, &app->use);
		begin_name(t, &flow);
		sink_uses_app(&flow, 2, app);
		put_errors(&flow, &app->use);
		sink_uses_client(&flow, 2, app);
		sink_fmt_flow_end(&flow);
	}
}

void sink_uses_text(FILE *out, const struct snap_target *t, const struct sink_style *st)
{
	struct table table = { .out = out, .st = st };

	if (t->n_files)
		put_files(&table, t);
	if (t->n_dirs)
		put_dirs(&table, t);
	if (t->n_apps)
		put_apps(&table, t);
}
