/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sink_text.c: the reports against golden files, at several widths, in ASCII and UTF-8; and
 * what must hold for any of them: lines inside the width, no control characters, "-" where nothing
 * was measured.
 */
#include "sink_text.h"
#include "sink_verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "golden.h"
#include "snapshots.h"

static char *render(const struct snapshot *snap, const struct sink_style *st)
{
	struct capture c;

	is_int(sink_text_report(capture_begin(&c), snap, st), 0, "the report is written");
	return capture_end(&c);
}

static bool has_controls(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < 0x20 && *text != '\n') || *text == 0x7f)
			return true;
	return false;
}

static bool has_trailing_blanks(const char *text)
{
	return strstr(text, " \n") != NULL;
}

static unsigned int widest_line(const char *text, const struct sink_style *st)
{
	unsigned int widest = 0;
	char *copy = strdup(text), *rest = NULL;

	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned int width = sink_fmt_width(st, line);

		widest = width > widest ? width : widest;
	}
	free(copy);
	return widest;
}

static void test_golden(struct snapshot *snap, const char *name, unsigned int columns, bool utf8)
{
	struct sink_style st = { .columns = columns, .utf8 = utf8 };
	char file[64], *text = render(snap, &st);

	snprintf(file, sizeof(file), "text_%s_%u%s.txt", name, columns, utf8 ? "_utf8" : "");
	golden_check(file, text);
	ok(!has_controls(text), "%s has no control characters", file);
	ok(!has_trailing_blanks(text), "%s has no blanks at ends of lines", file);
	ok(widest_line(text, &st) <= columns, "%s stays within %u columns", file, columns);
	free(text);
}

static void test_reports(void)
{
	static const struct {
		const char *name;
		struct snapshot *(*make)(void);
	} cases[] = {
		{ "chain", snapshot_chain },     { "parallel", snapshot_parallel },
		{ "memory", snapshot_memory },   { "unsplit", snapshot_unsplit },
		{ "hostile", snapshot_hostile }, { "invalid", snapshot_invalid },
		{ "process", snapshot_process }, { "empty", snapshot_empty },
		{ "calls", snapshot_calls },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct snapshot *snap = cases[i].make();

		test_golden(snap, cases[i].name, 100, false);
		if (i < 2 || strcmp(cases[i].name, "hostile") == 0) {
			test_golden(snap, cases[i].name, 80, false);
			test_golden(snap, cases[i].name, 132, true);
		}
		snapshot_free(snap);
	}
}

static bool is_table(const char *line)
{
	return strstr(line, "calls/s") || strstr(line, "self/op") || strstr(line, "incl/op") ||
	       strstr(line, "p50");
}

/* Where columns do not fit a row is a paragraph; nothing of it is lost. */
static void test_narrow(void)
{
	static struct snapshot *(*const makes[])(void) = { snapshot_chain, snapshot_parallel,
							   snapshot_memory };
	static const unsigned int columns[] = { 79, 78, 63, 62, 40, 20 };

	for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]) * 6; i++) {
		struct sink_style st = { .columns = columns[i % 6] };
		struct snapshot *snap = makes[i / 6]();
		char *text = render(snap, &st), *rest = NULL;
		unsigned int too_wide = 0;

		ok(!has_trailing_blanks(text), "%u columns: no blanks at ends of lines",
		   st.columns);
		if (i / 6 == 0)
			ok(strstr(text, "openat") && strstr(text, "15us") && strstr(text, "16us"),
			   "%u columns: a local operation and its figures", st.columns);
		for (char *line = strtok_r(text, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			if (is_table(line) && sink_fmt_width(&st, line) > st.columns) {
				diag("%s", line);
				too_wide++;
			}
		is_int(too_wide, 0, "%u columns: tables stay inside", st.columns);
		free(text);
		snapshot_free(snap);
	}
}

static void test_no_ops(void)
{
	struct sink_style st = { .columns = 100 };
	struct snapshot *snap = snapshot_process();
	char *text = render(snap, &st);

	ok(strstr(text, "process dd  pid 4211 ") != NULL, "a plain process: %.60s", text);
	ok(strstr(text, "it made no file operation in this window") != NULL, "that was idle");
	free(text);
	snap->off = calloc(1, sizeof(*snap->off));
	snap->n_off = 1;
	snap->off[0].target = -1;
	snprintf(snap->off[0].what, sizeof(snap->off[0].what), "syscall");
	text = render(snap, &st);
	ok(strstr(text, "were not looked at: syscall is off") != NULL, "or was not looked at");
	free(text);
	snprintf(snap->off[0].reason, sizeof(snap->off[0].reason),
		 "cannot load BPF object 'gluster': this kernel has no BTF "
		 "(/sys/kernel/btf/vmlinux) or lacks what it needs");
	text = render(snap, &st);
	ok(widest_line(text, &st) <= 100 && strstr(text, "cannot load BPF object"),
	   "a long reason wraps");
	free(text);
	snap->memory_only = true;
	text = render(snap, &st);
	ok(strstr(text, "nothing is known without probes") != NULL, "or has no probes");
	free(text);
	snapshot_free(snap);
}

/* A mount's head says how many processes it has; one without has nothing to say. */
static void test_mount(void)
{
	struct sink_style st = { .columns = 100 };
	struct snapshot *snap = snapshot_process();
	struct snap_target *t = &snap->targets[0];
	static const char *const words[] = { "", "  1 process with", "  2 processes with" };

	SET(t->kind, "xfs");
	SET(t->name, "/bricks");
	t->pid = 0;
	t->n_ops = 0;
	for (t->n_procs = 0; t->n_procs < 3; t->n_procs++) {
		char *text = render(snap, &st);

		ok(strstr(text, words[t->n_procs]), "a mount with %u processes", t->n_procs);
		ok(!t->n_procs == !strstr(text, "open files"), "says so");
		free(text);
	}
	snapshot_free(snap);
}

static void test_missing_is_a_dash(void)
{
	struct sink_style st = { .columns = 100 };
	struct snapshot *snap = snapshot_invalid();
	char *text = render(snap, &st);

	ok(strstr(text, "0us") == NULL && strstr(text, "0.0us") == NULL &&
		   strstr(text, "nan") == NULL,
	   "what was not measured is never 0");
	ok(strstr(text, "p50 -") != NULL, "what was not measured is '-'");
	free(text);
	snapshot_free(snap);
}

/* The tree survives a chain, a branch and a change of kind. */
static void test_indentation(void)
{
	struct sink_style st = { .columns = 132 };
	struct snapshot *snap = snapshot_chain();
	char *text = render(snap, &st);

	ok(strstr(text, "\n  io-threads ") != NULL, "a chain stays at the left edge");
	ok(strstr(text, "\n    pwrite64 ") != NULL, "syscalls are indented below posix");
	free(text);
	snapshot_free(snap);
	snap = snapshot_parallel();
	text = render(snap, &st);
	ok(strstr(text, "\n        client-1 ") != NULL, "parallel children are indented");
	ok(strstr(text, "\n          quick-read ") != NULL, "below a branch every level is");
	ok(strstr(text, "shares add up to") != NULL, "shares beyond 100 %% are explained");
	free(text);
	snapshot_free(snap);
}

/* The line of the dearest layers, of a tree with two rows of one name, below these two. */
static void top_is(const char *above, const char *other, const char *want, const char *what)
{
	struct sink_style st = { .columns = 132 };
	struct snapshot *snap = snapshot_process();
	struct snap_op *op = fill_op(snap->targets[0].ops, "local", "user", "fsync", 120, 7);
	char *text;

	snap->targets[0].n_ops = 1;
	fill_layer(op, 0, 0, "fsync", 50 * US, 2 * MS, 120);
	fill_layer(op, 1, 1, above, 10 * US, 1.4 * MS, 120);
	fill_layer(op, 2, 2, "xfs log force", 0, 1.4 * MS, 120);
	fill_layer(op, 3, 3, "block flush", 1.4 * MS, 1.4 * MS, 120);
	fill_layer(op, 4, 1, other, 10 * US, 498 * US, 120);
	fill_layer(op, 5, 2, "xfs log force", 0, 498 * US, 120);
	fill_layer(op, 6, 3, "block flush", 498 * US, 498 * US, 120);
	text = render(snap, &st);
	ok(strstr(text, want) != NULL, "%s", what);
	free(text);
	snapshot_free(snap);
}

static void test_top(void)
{
	top_is("xfs", "openat",
	       "  most time itself: block flush in xfs log force in xfs 1.4ms   "
	       "block flush in xfs log force in openat 498us   fsync 50us\n",
	       "rows of one name are told by those above, as many as it takes");
	top_is("xfs", "xfs",
	       "  most time itself: block flush 1.4ms   block flush 498us   fsync 50us\n",
	       "where nothing above tells them apart there is no use in it");
}

static void test_colour(void)
{
	struct sink_style plain = { .columns = 100 }, colour = { .columns = 100, .colour = true };
	struct snapshot *snap = snapshot_chain();
	char *a = render(snap, &plain), *b = render(snap, &colour), *out = b;

	ok(strstr(b, "\033[1;31m") != NULL, "a large share is hot");
	for (char *in = b; *in; in++) {
		if (*in == '\033')
			while (*in && *in != 'm')
				in++;
		else
			*out++ = *in;
	}
	*out = '\0';
	is_str(b, a, "colour adds nothing but colour");
	free(a);
	free(b);
	snapshot_free(snap);
}

static struct target_list make_list(struct target *t)
{
	t[0].kind = TARGET_BRICK;
	t[0].pid = 4211;
	SET(t[0].volume, "perfvol");
	SET(t[0].path, "/bricks/b1");
	SET(t[0].device, "/dev/loop0");
	SET(t[0].fstype, "xfs");
	SET(t[0].version, "10.3");
	SET(t[0].xlators,
	    "server > io-stats > quota > index > barrier > marker > selinux > io-threads "
	    "> locks > access-control > changelog > bitrot-stub > posix");
	t[1].kind = TARGET_CLIENT;
	t[1].pid = 4300;
	SET(t[1].volume, "a-volume-with-a-rather-long-name");
	SET(t[1].path, "/mnt/deep/down/in/a/tree\033[2J/of/folders");
	SET(t[1].version, "-");
	SET(t[1].problem, "no layout fits this release: check 'xlator names' failed");
	t[2].kind = TARGET_XFS;
	SET(t[2].volume, "-");
	SET(t[2].path, "/bricks");
	SET(t[2].device, "/dev/loop0");
	return (struct target_list){ t, 3 };
}

static void test_list(void)
{
	struct target *t = calloc(3, sizeof(*t));
	struct target_list list = make_list(t), none = { NULL, 0 };
	struct sink_style st = { .columns = 80 };
	struct capture c;
	FILE *out = capture_begin(&c);
	char *text;

	is_int(sink_text_list(out, &list, &st), 0, "the list is written");
	is_int(sink_text_list(out, &none, &st), 0, "so is an empty one");
	text = capture_end(&c);
	golden_check("text_list_80.txt", text);
	ok(!has_controls(text), "the list has no control characters");
	free(text);
	free(t);
}

static void test_stuck(void)
{
	struct gluster_request *r = calloc(3, sizeof(*r));
	struct sink_stuck stuck[3] = {
		{ .target = "brick perfvol:/bricks/b1",
		  .pid = 4211,
		  .req = r,
		  .n = 3,
		  .truncated = true },
		{ .target = "brick perfvol:/bricks/b2", .pid = 4212 },
		{ .target = "process 99", .pid = 99, .problem = "not a GlusterFS process" },
	};
	struct sink_style st = { .columns = 100 };
	struct capture c;
	char *text;

	r[0] = (struct gluster_request){ .has_age = true,
					 .age_ns = 30100000000ULL,
					 .fop = 13,
					 .has_frame_age = true,
					 .frame_age_ns = 30099000000ULL,
					 .app_pid = 7710,
					 .uid = 1000 };
	SET(r[0].xlator, "delay-gen");
	SET(r[0].wind, "pl_writev");
	SET(r[0].file, "/data/f\u00fcnf\n.bin");
	SET(r[0].gfid, "01234567-89ab-cdef-0123-456789abcdef");
	SET(r[0].client, "CTX_ID:3c2f-GRAPH_ID:0-PID:7700-HOST:c1-PC_NAME:perfvol-client-0");
	r[1] = (struct gluster_request){
		.has_age = true, .age_ns = 1200000, .fop = 12, .app_pid = -6
	};
	SET(r[1].xlator, "posix");
	r[2] = (struct gluster_request){ .fop = 59, .background = true };
	is_int(sink_text_stuck(capture_begin(&c), stuck, 3, &st), 0,
	       "requests in flight are written");
	text = capture_end(&c);
	golden_check("text_stuck_100.txt", text);
	ok(!has_controls(text), "they have no control characters");
	free(text);
	free(r);
}

/* A process may name each of its threads: the table does not grow with them. */
static void test_many_pools(void)
{
	struct snap_pool pools[19] = {};
	struct snap_target t = { .pools = pools, .n_pools = 19 };
	struct sink_style st = { .columns = 100 };
	struct capture c;
	char *text;

	for (int i = 0; i < 19; i++) {
		snprintf(pools[i].name, sizeof(pools[i].name), "worker-%d", i);
		pools[i].n = 1;
		pools[i].oncpu_pct = pools[i].runnable_pct = (struct snap_num){ i < 18, true };
		pools[i].oncpu_ns = (struct snap_num){ i < 18 ? 2e6 : 0, true };
	}
	sink_verdict_threads(capture_begin(&c), &t, &st);
	text = capture_end(&c);
	ok(strstr(text, "worker-15") && !strstr(text, "worker-16"), "sixteen pools have a row");
	ok(strstr(text, "\n  and 2 in other pools, on CPU for 4.0ms together\n  and 1 idle\n"),
	   "the others and the idle are told in sum");
	free(text);
}

static void test_full_disk(void)
{
	struct sink_style st = { .columns = 100 };
	struct snapshot *snap = snapshot_chain();
	FILE *full = fopen("/dev/full", "we");

	if (full) {
		is_int(sink_text_report(full, snap, &st), -ENOSPC, "a full disk is reported");
		fclose(full);
	} else {
		skip("a full disk is reported", "no /dev/full");
	}
	snapshot_free(snap);
}

int main(void)
{
	test_reports();
	test_narrow();
	test_no_ops();
	test_mount();
	test_missing_is_a_dash();
	test_indentation();
	test_top();
	test_colour();
	test_list();
	test_stuck();
	test_many_pools();
	test_full_disk();
	return tap_done();
}
