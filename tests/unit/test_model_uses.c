/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_uses.c: files and applications: what a window adds, rows that were pushed out and come
 * back, what the tables cover, how much slower than the others a file is, more rows than there is
 * room for, and directories.
 */
#include "model_uses.h"

#include <errno.h>

#include "model_bed.h"

#define US 1000ULL

static struct wire_use_key key_of(unsigned int number, enum wire_file kind)
{
	struct wire_use_key key = { .kind = (__u8)kind };

	memcpy(key.id, &number, sizeof(number));
	return key;
}

/* A row that has counted so many reads of a duration each since it was made. */
static struct wire_use reads(uint64_t born_ns, uint64_t n, uint64_t each_ns)
{
	struct wire_use use = { .born_ns = born_ns, .max_ns = each_ns, .bytes = 4096 * n };

	use.count[WIRE_USE_READ] = n;
	use.sum_ns[WIRE_USE_READ] = n * each_ns;
	return use;
}

/* How many rows the programs have made. */
static uint64_t made[MODEL_USE_TABLES][WIRE_MAX_TARGETS];

static void feed(enum model_use_table table, unsigned int number, enum wire_file kind,
		 struct wire_use use)
{
	struct wire_use_key key = key_of(number, kind);

	if (model_feed_use(bed.m, table, &key, &use))
		ok(false, "row %u is taken", number);
}

static void feed_file(unsigned int number, struct wire_use use)
{
	feed(MODEL_FILES, number, WIRE_FILE_GFID, use);
}

/* n requests of that length in the slots: what the tables' shares are of. */
static void feed_requests(uint64_t n, uint64_t each_ns)
{
	struct wire_slot_key key = { .layer = WIRE_LAYER_XLATOR, .op = BED_READ };
	struct wire_slot *s = bed_slot(key);

	s->count += n;
	s->incl_sum_ns += n * each_ns;
	s->self_sum_ns += n * each_ns;
	s->incl[hist_bucket(each_ns)] += (__u32)n;
	s->self[hist_bucket(each_ns)] += (__u32)n;
	is_int(model_feed_slot(bed.m, &key, s), 0, "a slot");
}

static const struct snap_target *look(void)
{
	struct model_view view = { false, false };

	snapshot_free(bed.snap);
	bed.snap = NULL;
	model_feed_uses_end(bed.m, MODEL_FILES, made[MODEL_FILES]);
	model_feed_uses_end(bed.m, MODEL_APPS, made[MODEL_APPS]);
	if (model_tick(bed.m, 2000000000ULL, &view, &bed.snap))
		abort();
	return &bed.snap->targets[0];
}

static void open_bed(void)
{
	memset(made, 0, sizeof(made));
	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
}

static void test_window(void)
{
	const struct snap_target *t;

	open_bed();
	feed_file(1, reads(5, 100, 10 * US));
	feed_file(2, reads(6, 7, 10 * US));
	look();
	model_start_window(bed.m, 1500000000ULL, 6);
	feed_requests(50, 20 * US);
	feed_file(1, reads(5, 150, 10 * US));
	feed_file(2, reads(6, 7, 10 * US));
	feed_file(3, reads(7, 10, 50 * US));
	t = look();
	is_int((long long)t->n_files, 2, "only what was used in the window");
	is_int((long long)t->files[0].use.count, 50, "a row counts on from where the window began");
	is_int((long long)t->files[0].use.reads, 50, "reads");
	is_int((long long)t->files[0].use.bytes, 50 * 4096, "bytes");
	ok(!t->files[0].use.max_ns.valid, "a maximum of before is none of the window's");
	ok(fabs(t->files[0].use.share_pct.v - 50) < 0.01, "half of the requests' time");
	ok(t->files[1].use.max_ns.valid && fabs(t->files[1].use.max_ns.v - 50e3) < 1,
	   "one that the window raised");
	ok(fabs(t->files_pct.v - 100) < 0.01, "and nothing is missing");
	is_int((long long)t->files_pushed, 0, "nothing was pushed out");
	bed_close();
}

static void test_pushed_out(void)
{
	const struct snap_target *t;

	open_bed();
	feed_requests(100, 10 * US);
	made[MODEL_FILES][0] = 2;
	feed_file(1, reads(5, 40, 10 * US));
	feed_file(2, reads(6, 20, 10 * US));
	look();
	made[MODEL_FILES][0] = 3;
	feed_file(2, reads(90, 4, 10 * US)); /* pushed out, and made again */
	t = look();
	is_int((long long)t->files[0].use.count, 40, "what has gone stays as it was last read");
	is_int((long long)t->files[1].use.count, 24, "what was made again counts on from 0");
	is_int((long long)t->files_pushed, 2, "both were pushed out");
	ok(fabs(t->files_pct.v - 64) < 0.01, "what is missing is missing");
	feed_file(1, reads(95, 1, 10 * US)); /* made since the programs' count was read */
	feed_file(2, reads(90, 4, 10 * US));
	t = look();
	is_int((long long)t->files_pushed, 2, "a count that is behind takes nothing back");
	made[MODEL_FILES][0] = 4;
	feed_file(1, reads(95, 1, 10 * US));
	feed_file(2, reads(90, 4, 10 * US));
	t = look();
	is_int((long long)t->files[0].use.count, 41, "one that comes back");
	is_int((long long)t->files_pushed, 2, "is not counted twice");
	made[MODEL_FILES][0] = 9;
	feed_file(1, reads(95, 1, 10 * US));
	feed_file(2, reads(90, 4, 10 * US));
	t = look();
	is_int((long long)t->files_pushed, 7, "those that came and went unseen are counted, too");
	bed_close();
}

static void test_unknown(void)
{
	struct wire_use_key nobody = { .target = 1 };
	struct wire_use use = reads(1, 1, US);
	const struct snap_target *t;

	open_bed();
	t = look();
	ok(t->has_files && !t->n_files, "looked at, and nothing was used");
	is_int(model_feed_use(bed.m, MODEL_FILES, &nobody, &use), -ENOENT, "of no target");
	feed_requests(10, 10 * US);
	feed_file(1, reads(5, 6, 10 * US));
	feed(MODEL_FILES, 0, WIRE_FILE_NONE, reads(5, 4, 10 * US));
	t = look();
	is_int((long long)t->n_files, 1, "requests of no known file are no row");
	ok(fabs(t->files_pct.v - 60) < 0.01, "and their time is not covered");
	bed_close();
}

static struct wire_use mixed(uint64_t n_reads, uint64_t read_ns, uint64_t n_syncs, uint64_t sync_ns)
{
	struct wire_use use = reads(5, n_reads, read_ns);

	use.count[WIRE_USE_SYNC] = n_syncs;
	use.sum_ns[WIRE_USE_SYNC] = n_syncs * sync_ns;
	return use;
}

static void test_slowdown(void)
{
	const struct snap_target *t;

	open_bed();
	feed_requests(1000, 100 * US);
	feed_file(1, mixed(100, 200 * US, 10, 10000 * US));
	feed_file(2, mixed(100, 100 * US, 20, 10000 * US));
	feed_file(3, mixed(100, 100 * US, 0, 0));
	t = look();
	is_int(t->files[0].id[0], 2, "most time: the one with most syncs");
	ok(!t->files[0].slowdown.valid, "too few others have synced to compare that with");
	is_int(t->files[1].id[0], 1, "then the one with some");
	ok(t->files[1].slowdown.valid && fabs(t->files[1].slowdown.v - 120.0 / 110) < 1e-6,
	   "syncs are compared with syncs, reads with reads");
	ok(fabs(t->files[2].slowdown.v - 100.0 / 150) < 1e-6, "quicker than the others");
	bed_close();
}

static void test_many(void)
{
	const struct snap_target *t;
	unsigned int i, turn;

	open_bed();
	feed_requests(1000000, US);
	/* the programs' table, full, six times over: each time all others are pushed out */
	for (turn = 0; turn < 6; turn++) {
		for (i = 0; i < WIRE_FILES - 1; i++)
			feed_file(2 + turn * WIRE_FILES + i, reads(5, 1, US));
		feed_file(1, reads(5, 1000 * (turn + 1), US));
		made[MODEL_FILES][0] += turn ? WIRE_FILES - 1 : WIRE_FILES;
		t = look();
	}
	is_int(t->files[0].id[0], 1, "who uses most stays");
	is_int((long long)t->files[0].use.count, 6000, "with all that it did");
	is_int((long long)t->n_files, SNAP_MAX_FILES, "a snapshot has only the first of them");
	ok(t->n_all_files >= WIRE_FILES && t->n_all_files <= 3 * WIRE_FILES, "of a bounded table");
	is_int((long long)t->files_pushed, 5 * (WIRE_FILES - 1), "each that had to go is counted");
	bed_close();
}

static void test_apps(void)
{
	struct wire_app app = { .client = 0x7f00, .pid = -6, .uid = 4000000000U };
	struct wire_use_key key = { .kind = 1 };
	struct wire_use use = reads(77, 5, 10 * US);
	const struct snap_target *t;

	open_bed();
	feed_requests(10, 10 * US);
	memcpy(key.id, &app, sizeof(app));
	memcpy(use.last, "a name of no end", 16);
	is_int(model_feed_use(bed.m, MODEL_APPS, &key, &use), 0, "an application");
	t = look();
	is_int((long long)t->n_apps, 1, "is a row");
	is_int((long long)t->apps[0].pid, -6, "its pid");
	is_int((long long)t->apps[0].uid, 4000000000LL, "its uid");
	ok(t->apps[0].client_addr == 0x7f00 && t->apps[0].born_ns == 77, "its client, its first");
	is_str(t->apps[0].thread, "a name of no end", "a name that fills its place");
	ok(fabs(t->apps_pct.v - 50) < 0.01, "its share");
	bed_close();
}

static struct snap_file *put_file(struct snap_target *t, enum snap_file_kind kind, const char *path,
				  double total_ns)
{
	struct snap_file *f = &t->files[t->n_files++];

	f->kind = kind;
	snprintf(f->path, sizeof(f->path), "%s", path);
	f->use.count = 1;
	f->use.total_ns = total_ns;
	f->use.share_pct = (struct snap_num){ total_ns, true };
	return f;
}

static void test_dirs(void)
{
	struct snap_target *t;

	open_bed();
	look();
	t = &bed.snap->targets[0];
	free(t->files);
	t->files = calloc(8, sizeof(*t->files));
	t->files_pct.valid = true;
	put_file(t, SNAP_FILE_GFID, "/a/b/x", 10);
	put_file(t, SNAP_FILE_GFID, "/a/b/y", 20);
	put_file(t, SNAP_FILE_ENTRY, "/a/b", 5);
	put_file(t, SNAP_FILE_GFID, "/a/b", 4)->is_dir = true;
	put_file(t, SNAP_FILE_GFID, "/top", 7);
	put_file(t, SNAP_FILE_GFID, "b/half known", 50);
	put_file(t, SNAP_FILE_GFID, "", 60);
	put_file(t, SNAP_FILE_GFID, "/", 1)->is_dir = true;
	is_int(model_group_dirs(t), 0, "directories");
	is_int((long long)t->n_dirs, 2, "two of them");
	is_str(t->dirs[0].path, "/a/b", "the dearer first");
	is_int((long long)t->dirs[0].use.count, 4, "its files, and itself");
	is_int((long long)t->dirs[0].n_files, 2, "of which two are files");
	ok(fabs(t->dirs[0].use.total_ns - 39) < 1e-9, "all of their time");
	is_str(t->dirs[1].path, "/", "the root");
	ok(fabs(t->dirs_pct.v - 47) < 1e-9, "what is not known is not covered");
	is_int(model_group_dirs(t), 0, "once more");
	is_int((long long)t->n_dirs, 2, "is the same");
	bed_close();
}

int main(void)
{
	test_window();
	test_pushed_out();
	test_unknown();
	test_slowdown();
	test_many();
	test_apps();
	test_dirs();
	return tap_done();
}
