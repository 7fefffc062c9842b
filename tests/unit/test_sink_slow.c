/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sink_slow.c: slow operations as text and as JSON, against golden files: a request through
 * its layers, one that failed and could not be split, a call of a process's own; limits by share of
 * which some are not known yet; nothing slow at all.
 */
#include "sink_slow.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "golden.h"
#include "sink_json_slow.h"

#define US 1000.0

static struct snap_slow_row rows[] = {
	{ "server", "xlator", 0, { 0, true }, 12345 * US, { 2.1 * US, true }, 1, .failed = true },
	{ "io-threads",
	  "xlator",
	  1,
	  { 1 * US, true },
	  12342.9 * US,
	  { 22 * US, true },
	  .calls = 1 },
	{ "access-control+posix",
	  "xlator",
	  2,
	  { 23.5 * US, true },
	  12320.9 * US,
	  { 120.9 * US, true },
	  .calls = 1,
	  .tid = 4219,
	  .failed = true },
	{ "fsync",
	  "syscall",
	  3,
	  { 40 * US, true },
	  12200 * US,
	  { 200 * US, true },
	  .calls = 1,
	  .tid = 4219,
	  .failed = true },
	{ "xfs log force", "xfs", 4, { 0, false }, 2000 * US, { 2000 * US, true }, 2, .tid = 4219 },
	{ "block device",
	  "block",
	  4,
	  { 0, false },
	  10000 * US,
	  { 10000 * US, true },
	  12,
	  .tid = 4219,
	  .longest = true },
	{ "index\x1b[31m",
	  "xlator",
	  2,
	  { 12344.1 * US, true },
	  5 * US,
	  { 0, false },
	  .calls = 1,
	  .open = true },
};

static struct snap_slow_row call[] = {
	{ "openat",
	  "syscall",
	  0,
	  { 0, true },
	  3e9,
	  { 3e9, true },
	  .calls = 1,
	  .tid = 77,
	  .longest = true },
};

static struct snap_slow ops[] = {
	{ .root = "brick",
	  .origin = "user",
	  .op = "fsync",
	  .wall_ns = 1700000000123456789LL,
	  .incl_ns = 12345 * US,
	  .limit_ns = 5000 * US,
	  .failed = true,
	  .error = 5,
	  .file = { .kind = SNAP_FILE_ENTRY,
		    .id = { 0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
		    .last = { .pid = 4711, .uid = 4294967294U } },
	  .has_app = true,
	  .ino = 131,
	  .tid = 4219,
	  .comm = "glfs_iotwr003",
	  .more_calls = 3120,
	  .more_ns = 5 * US,
	  .rows = rows,
	  .n_rows = sizeof(rows) / sizeof(rows[0]) },
	{ .root = "background",
	  .origin = "user",
	  .op = "write",
	  .wall_ns = 1700000001000000000LL,
	  .incl_ns = 9000 * US,
	  .limit_ns = 5000 * US,
	  .unsplit = "ledger",
	  .uncovered = true,
	  .bytes = 131072,
	  .has_bytes = true,
	  .rows = &rows[6],
	  .n_rows = 1 },
	{ .root = "local",
	  .origin = "user",
	  .op = "openat",
	  .wall_ns = 1700000002000000000LL,
	  .incl_ns = 3e9,
	  .limit_ns = 5000 * US,
	  .failed = true,
	  .tid = 77,
	  .rows = call,
	  .n_rows = 1 },
	{ .root = "brick",
	  .origin = "user",
	  .op = "read",
	  .wall_ns = 1700000001500000000LL,
	  .incl_ns = 8000 * US,
	  .limit_ns = 5000 * US,
	  .uncovered = true,
	  .file = { .kind = SNAP_FILE_GFID,
		    .id = { 0xab },
		    .path = "/mail/evil\x1b[31m\xff",
		    .last = { .pid = 4712,
			      .uid = 1000,
			      .comm = "fio\x07",
			      .client = "CTX_ID:1-PID:99-HOST:n2\xff-PC_NAME:v-client-0",
			      .client_host = "n2\xff",
			      .client_pid = 99 } },
	  .has_app = true,
	  .rows = &rows[6],
	  .n_rows = 1 },
};

static struct snap_slow_limit limits[] = {
	{ "brick", "user", "write", { 5123 * US, true }, 21510, 21 },
	{ "brick", "user", "lookup", { 0, false }, 312, 0 },
	{ "brick", "internal", "xattrop", { 900 * US, true }, 5000, 4 },
	{ "local", "user", "openat", { 5000 * US, true }, 1234, 3 },
};

static struct snap_slows by_time(void)
{
	struct snap_slows s = { .wanted = "5ms",
				.slow = 1031,
				.lost = 2,
				.limits = limits,
				.n_limits = 1,
				.ops = ops,
				.n_ops = sizeof(ops) / sizeof(ops[0]) };

	return s;
}

static struct snap_slows by_share(void)
{
	struct snap_slows s = { .wanted = "p99.9",
				.enough = 1000,
				.slow = 1,
				.limits = limits,
				.n_limits = sizeof(limits) / sizeof(limits[0]),
				.ops = &ops[2],
				.n_ops = 1 };

	return s;
}

static void check_text(const char *name, const struct snap_slows *slow, unsigned int columns)
{
	const struct sink_style st = { .columns = columns };
	struct capture c;
	char *text;

	sink_slow_text(capture_begin(&c), slow, &st);
	text = capture_end(&c);
	golden_check(name, text);
	free(text);
}

static void check_json(const char *name, const struct snap_slows *slow)
{
	json_t *whole = json_pack("{s:o, s:o}", "slow", sink_json_slow(slow), "slow_limits",
				  sink_json_slow_limits(slow));
	char *text = json_dumps(whole, JSON_INDENT(1) | JSON_REAL_PRECISION(15));

	if (ok(text != NULL, "a document"))
		golden_check(name, text);
	free(text);
	json_decref(whole);
}

int main(void)
{
	struct snap_slows time = by_time(), share = by_share();
	struct snap_slows none = { .wanted = "5ms" }, off = { .wanted = "" };
	const struct sink_style st = { .columns = 80 };
	struct capture c;
	char *text;

	check_text("text_slow_100.txt", &time, 100);
	check_text("text_slow_80.txt", &time, 80);
	check_text("text_slow_share_80.txt", &share, 80);
	check_text("text_slow_none_80.txt", &none, 80);
	check_json("json_slow.json", &time);
	check_json("json_slow_share.json", &share);
	sink_slow_text(capture_begin(&c), &off, &st);
	text = capture_end(&c);
	is_str(text, "", "not asked for: nothing is said");
	free(text);
	return tap_done();
}
