/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verdict_file.c: the row of the table that is about no layer: one file beside the layers'
 * causes, how sure that is, and what it is called.
 */
#include "verdict_bed.h"

static const struct row locks_rows[] = { { 0, "server", "protocol/server", 20 },
					 { 1, "locks", "features/locks", 5000 },
					 { 2, "posix", "storage/posix", 120 },
					 END };

/* ---- one file ---------------------------------------------------------- */

/* A brick whose xlators share the time, and whose requests are of n files: the first has that share
 * of the time and is so much slower than the others; the second has all the rest but gap. */
static struct snapshot *brick_of_files(unsigned int n, double pct, double slowdown, double gap)
{
	static const struct row rows[] = {
		{ 0, "server", "protocol/server", 900 }, { 1, "io-stats", "debug/io-stats", 800 },
		{ 2, "locks", "features/locks", 850 },   { 3, "index", "features/index", 900 },
		{ 4, "marker", "features/marker", 900 }, END
	};
	struct snapshot *s = start("brick");
	struct snap_target *t = &s->targets[0];

	add_op(s, "brick", "write", 9000, rows);
	add_pool(s, "event threads", 2, 0.5, 0.1);
	t->has_files = true;
	t->files = calloc(2, sizeof(*t->files));
	t->n_files = n > 1 ? 2 : 1;
	t->n_all_files = n;
	t->files_pct = num(100 - gap);
	for (size_t i = 0; i < t->n_files; i++) {
		struct snap_file *f = &t->files[i];

		f->kind = SNAP_FILE_GFID;
		f->use.share_pct = num(i ? 100 - gap - pct : pct);
		f->use.count = i ? 8000 : 1000;
		f->use.total_ns = 9000 * 4350 * US * f->use.share_pct.v / 100;
	}
	SET(t->files[0].path, "/vm/disk.img");
	t->files[0].slowdown = num(slowdown);
	t->files[0].last.pid = 4211;
	t->files[0].last.uid = 107;
	SET(t->files[0].last.comm, "qemu");
	return s;
}

static void file_is(struct snapshot *s, const char *want, const char *what)
{
	judge_is(s, 0, want, what);
	snapshot_free(s);
}

static void test_file(void)
{
	struct snapshot *s = brick_of_files(30, 80, 8, 0);

	judge_is(s, 0, "file /vm/disk.img high", "one file has the time, and is slow");
	is_int(s->targets[0].n_causes, 1, "no layer is, and nothing says that nothing stands out");
	ok(has_evidence(s, 0, "80 % of all requests' time in 11 % of the requests, 31ms each"),
	   "its share");
	ok(has_evidence(s, 0, "8.0 times as long as the same requests took of the other 29 files"),
	   "against the others");
	ok(has_evidence(s, 0, "used last by pid 4211 (qemu), uid 107"), "by whom");
	snapshot_free(s);
	file_is(brick_of_files(2, 80, 8, 0), "file /vm/disk.img high", "one of two");
	file_is(brick_of_files(30, 55, 8, 0), "file /vm/disk.img medium", "another one is near");
	file_is(brick_of_files(30, 62, 8, 38), "file /vm/disk.img medium",
		"what is not known may be another one's");
	file_is(brick_of_files(30, 45, 8, 0), "nothing-stands-out  high", "less than half");
	file_is(brick_of_files(19, 80, 2, 0), "nothing-stands-out  high", "not much slower");
	file_is(brick_of_files(20, 80, 2, 0), "file /vm/disk.img low", "but one of many");
	s = brick_of_files(30, 80, 8, 0);
	s->targets[0].files[0].slowdown.valid = false;
	file_is(s, "file /vm/disk.img low", "nothing to compare it with");
	s = brick_of_files(30, 80, 8, 0);
	s->targets[0].files[0].kind = SNAP_FILE_ENTRY;
	file_is(s, "nothing-stands-out  high", "names that were never files");
	s = brick_of_files(30, 80, 8, 0);
	s->targets[0].ops[0].coverage_pct = num(96);
	file_is(s, "file /vm/disk.img medium", "some requests were not seen");
}

/* Too long a path keeps its end; none is a gfid. And layers' causes come first. */
static void test_file_names(void)
{
	struct snapshot *s = brick_of_files(30, 80, 8, 0);
	char *path = s->targets[0].files[0].path;

	/* the cut goes through a character */
	memset(path, 'x', 100);
	memcpy(path + 35, "\xc3\xa4", 2);
	strcpy(path + 90, "/disk.img");
	judge_is(s, 0, "file xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/disk.img high",
		 "the end of a long path");
	path[0] = '\0';
	s->targets[0].files[0].id[15] = 1;
	judge_is(s, 0, "file 00000000-0000-0000-0000-000000000001 high", "a gfid");
	snprintf(path, 64, "/vm/disk.img");
	free(s->targets[0].ops[0].layers);
	s->targets[0].n_ops = 0;
	s->targets[0].checks.walked = 0;
	add_op(s, "brick", "read", 4000, locks_rows);
	judge_is(s, 0, "xlator locks high", "a layer that leads is as sure as without the file");
	judge_is(s, 1, "file /vm/disk.img high", "and the file stands beside it");
	snapshot_free(s);
}

int main(void)
{
	test_file();
	test_file_names();
	return tap_done();
}
