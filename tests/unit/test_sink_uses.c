/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sink_uses.c: files, directories and applications as text and as JSON: a golden screen, long
 * and hostile names, more rows than are shown, what is not known, nothing at all.
 */
#include "sink_uses.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "golden.h"
#include "sink_json_uses.h"
#include "snapshots.h"
#include "tap.h"

static struct snap_use use(uint64_t count, double mean_us, double pct, uint64_t bytes)
{
	return (struct snap_use){ .count = count,
				  .reads = count / 2,
				  .writes = count / 4,
				  .bytes = bytes,
				  .total_ns = mean_us * US * (double)count,
				  .max_ns = num(9 * mean_us * US),
				  .share_pct = num(pct) };
}

static struct snap_file *add_file(struct snap_target *t, enum snap_file_kind kind, const char *path,
				  struct snap_use u)
{
	struct snap_file *f = &t->files[t->n_files++];

	f->kind = kind;
	f->use = u;
	SET(f->path, path);
	f->id[0] = 0xc3;
	f->id[15] = (uint8_t)t->n_files;
	f->last = (struct snap_app){ .pid = 4211, .uid = 107 };
	return f;
}

static void fill_files(struct snap_target *t)
{
	uint64_t inode[2] = { 131, 7U << 20 | 3 };
	struct snap_file *f;

	f = add_file(t, SNAP_FILE_GFID, "/vm/disk.img", use(21570, 160, 61.3, 101000000));
	f->slowdown = num(4.2);
	f->use.errors = 3;
	SET(f->last.comm, "qemu");
	add_file(t, SNAP_FILE_ENTRY, "/mail", use(900, 80, 12, 0))->use.max_ns.valid = false;
	add_file(t, SNAP_FILE_GFID, "", use(10, 80, 0.02, 4096));
	add_file(t, SNAP_FILE_ENTRY, "", use(3, 80, 0.01, 0));
	add_file(t, SNAP_FILE_GFID, "half/known", use(1, 80, 0.01, 0));
	f = add_file(t, SNAP_FILE_INODE, "", use(2, 80, 0.01, 4096));
	memcpy(f->id, inode, sizeof(inode));
	f = add_file(t, SNAP_FILE_GFID, "/a/\x1b[31mname\n\xff", use(1, 80, 0.01, 0));
	f = add_file(t, SNAP_FILE_GFID, "/", use(1, 80, 0.01, 0));
	memset(f->path, 'x', 300);
	f->path[0] = '/';
	for (unsigned int i = 0; i < 60; i++)
		add_file(t, SNAP_FILE_GFID, "/many", use(1, 80, 0.01, 0));
}

static void fill_apps(struct snap_target *t)
{
	struct snap_app *app = &t->apps[t->n_apps++];

	*app = (struct snap_app){ .pid = 4211, .uid = 107, .client_pid = 812 };
	app->use = use(21570, 160, 61.3, 101000000);
	SET(app->comm, "qemu");
	SET(app->client, "CTX_ID:1-GRAPH_ID:0-PID:812-HOST:node1-PC_NAME:v-client-0-RECON_NO:-0");
	SET(app->client_host, "node1");
	app = &t->apps[t->n_apps++];
	*app = (struct snap_app){ .pid = -6, .use = use(40, 900, 3, 0) };
	SET(app->client, "no such form");
}

static struct snapshot *new_uses(void)
{
	struct snapshot *s = new_snapshot(1);
	struct snap_target *t = &s->targets[0];

	t->has_files = true;
	t->files = calloc(80, sizeof(*t->files));
	t->dirs = calloc(2, sizeof(*t->dirs));
	t->apps = calloc(2, sizeof(*t->apps));
	fill_files(t);
	fill_apps(t);
	t->dirs[0] = (struct snap_dir){ .use = use(21571, 160, 61.3, 101000000), .n_files = 1 };
	SET(t->dirs[0].path, "/vm");
	t->dirs[1] = (struct snap_dir){ .use = use(900, 80, 12, 0), .n_files = 0 };
	SET(t->dirs[1].path, "/mail");
	t->n_dirs = 2;
	t->n_all_files = 900;
	t->n_all_apps = 2;
	t->files_pct = num(98.7);
	t->dirs_pct = num(73.3);
	t->apps_pct = num(99);
	t->files_pushed = 1234;
	t->names_late = 2;
	return s;
}

static char *render(const struct snap_target *t, unsigned int columns)
{
	struct sink_style style = { .columns = columns, .utf8 = true };
	struct capture c;

	sink_uses_text(capture_begin(&c), t, &style);
	return capture_end(&c);
}

static void test_text(void)
{
	struct snapshot *s = new_uses();
	struct snap_target none = { 0 };
	char *text = render(&s->targets[0], 80);

	golden_check("text_uses_80.txt", text);
	ok(!strchr(text, 0x1b) && !strchr(text, (char)0xff), "nothing of a name reaches the "
							     "terminal as it is");
	ok(strstr(text, "98.7 % of the requests' time   890 more") &&
		   strstr(text, "1,234 pushed out"),
	   "what the table does not show is said");
	free(text);
	text = render(&none, 80);
	is_str(text, "", "nothing was looked at");
	free(text);
	snapshot_free(s);
}

static const char *text_at(const json_t *array, size_t i, const char *key)
{
	return json_string_value(json_object_get(json_array_get(array, i), key));
}

static void test_json(void)
{
	struct snapshot *s = new_uses();
	struct snap_target none = { 0 };
	json_t *files = sink_json_files(&s->targets[0]), *apps = sink_json_apps(&s->targets[0]);
	json_t *dirs = sink_json_dirs(&s->targets[0]), *seen = sink_json_uses(&s->targets[0]),
	       *null;

	is_int((long long)json_array_size(files), 50, "fifty files at most");
	is_str(text_at(files, 0, "path"), "/vm/disk.img", "a path");
	is_int(json_integer_value(json_object_get(json_array_get(files, 0), "count")), 21570,
	       "its requests");
	ok(json_is_null(json_object_get(json_array_get(files, 2), "path")), "none is null");
	is_str(text_at(files, 2, "gfid"), "c3000000-0000-0000-0000-000000000003", "a gfid");
	ok(json_is_true(json_object_get(json_array_get(files, 3), "entries")), "names");
	ok(json_is_null(json_object_get(json_array_get(files, 5), "gfid")), "an inode has none");
	is_str(text_at(files, 5, "dev"), "7:3", "but a device");
	ok(json_is_null(json_object_get(json_array_get(files, 1), "max_us")),
	   "a maximum that is not known");
	is_str(text_at(dirs, 1, "path"), "/mail", "a directory");
	is_str(text_at(apps, 0, "comm"), "qemu", "an application");
	ok(json_is_null(json_object_get(json_array_get(apps, 1), "comm")), "one without a name");
	is_int(json_integer_value(json_object_get(seen, "files_pushed_out")), 1234, "pushed out");
	is_int(json_integer_value(json_object_get(seen, "names_late")), 2, "names that are late");
	json_decref(files);
	json_decref(dirs);
	json_decref(apps);
	json_decref(seen);
	null = sink_json_files(&none);
	ok(json_is_null(null), "nothing was looked at: null");
	json_decref(null);
	snapshot_free(s);
}

int main(void)
{
	test_text();
	test_json();
	return tap_done();
}
