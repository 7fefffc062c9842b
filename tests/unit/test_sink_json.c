/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sink_json.c: the JSON contract: golden documents, every key of the contract where it
 * belongs, null for what was not measured, and that what is printed parses back to the same
 * figures.
 */
#include "sink_json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "golden.h"
#include "snapshots.h"

static char *render(const struct snapshot *snap, bool lines)
{
	struct capture c;

	is_int(sink_json_report(capture_begin(&c), snap, "1.0-test", lines), 0,
	       "the report is written");
	return capture_end(&c);
}

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	ok(doc != NULL, "the document parses");
	if (!doc)
		diag("%s at %d", error.text, error.position);
	return doc;
}

static void has_keys(const json_t *object, const char *what, const char *keys)
{
	char *copy = strdup(keys), *rest = NULL;

	ok(json_is_object(object), "%s is an object", what);
	for (char *key = strtok_r(copy, " ", &rest); key; key = strtok_r(NULL, " ", &rest))
		ok(json_object_get(object, key) != NULL, "%s has \"%s\"", what, key);
	free(copy);
}

static double real_at(const json_t *object, const char *dist, const char *key)
{
	const json_t *inner = dist ? json_object_get(object, dist) : object;
	const json_t *value = json_object_get(inner, key);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static const json_t *op_at(const json_t *doc, size_t i)
{
	return json_array_get(json_object_get(doc, "ops"), i);
}

/* The kernel keeps its statistics: what was not counted is null, the programs' own count is not. */
static void test_uncounted(void)
{
	struct snapshot *snap = snapshot_chain();
	const json_t *cost;
	char *text;
	json_t *doc;

	snap->targets[0].cost.is_uncounted = true;
	text = render(snap, false);
	doc = parse(text);
	cost = json_object_get(doc, "cost");
	ok(json_is_null(json_object_get(cost, "tracepoint_hits")), "hits nobody counted are null");
	ok(json_is_null(json_object_get(cost, "probe_hits")), "so is their sum");
	ok(json_is_integer(json_object_get(cost, "uprobe_hits")), "uprobes' are counted");
	json_decref(doc);
	free(text);
	snapshot_free(snap);
}

static void test_contract(void)
{
	struct snapshot *snap = snapshot_chain();
	char *text = render(snap, false);
	json_t *doc = parse(text);
	const json_t *op = op_at(doc, 0);
	const json_t *layer = json_array_get(json_object_get(op, "layers"), 2);

	has_keys(doc, "document", "schema version kernel target window cost lost ops");
	has_keys(json_object_get(doc, "target"), "target", "kind name pid version");
	has_keys(json_object_get(doc, "window"), "window", "start secs");
	has_keys(json_object_get(doc, "cost"), "cost", "core_pct target_pct probe_hits duty_pct");
	has_keys(json_object_get(doc, "lost"), "lost",
		 "total map_full ring_full unpaired evicted unreadable absurd ledger skipped "
		 "recursion uprobe_missed storage_busy wakes");
	has_keys(json_object_get(doc, "lost_unassigned"), "lost_unassigned", "total storage_busy");
	has_keys(json_object_get(doc, "lost_devices"), "lost_devices", "total map_full");
	has_keys(json_object_get(doc, "target"), "target", "gone gone_after_secs restarts");
	has_keys(op, "op",
		 "root origin op count rate_hz bytes errors in_flight in_flight_oldest_us "
		 "coverage_pct incl_us unattributed_us sum_check_pct layers");
	has_keys(json_object_get(op, "incl_us"), "incl_us", "mean p50 p90 p99 p999 max");
	has_keys(layer, "layer", "id path kind type state reason count self_us incl_us share_pct");
	has_keys(json_object_get(layer, "self_us"), "self_us", "mean p50 p90 p99 p999 max");
	ok(json_is_null(json_object_get(doc, "threads")) &&
		   json_is_null(json_object_get(doc, "verdict")),
	   "threads that were not read, and what nobody judged, are null");
	is_str(json_string_value(json_object_get(doc, "schema")), "bricktop/1", "the schema");
	is_str(json_string_value(json_object_get(json_object_get(doc, "window"), "start")),
	       "2023-11-14T22:13:20.123Z", "the window's start is RFC 3339");
	is_int(json_integer_value(json_object_get(op, "bytes")), 2819358720LL, "bytes");
	ok(real_at(op, "incl_us", "mean") == 455, "us, not ns");
	ok(real_at(json_array_get(json_object_get(op, "layers"), 5), "self_us", "mean") == 26.8,
	   "decimals come back as they were");
	json_decref(doc);
	free(text);
	snapshot_free(snap);
}

static void test_golden(void)
{
	struct snapshot *snap = snapshot_chain();
	char *text = render(snap, false);

	golden_check("json_chain.json", text);
	free(text);
	snapshot_free(snap);
	snap = snapshot_memory();
	text = render(snap, true);
	golden_check("json_memory.jsonl", text);
	free(text);
	snapshot_free(snap);
	snap = snapshot_hostile();
	text = render(snap, true);
	golden_check("json_hostile.jsonl", text);
	free(text);
	snapshot_free(snap);
}

static void test_missing_is_null(void)
{
	struct snapshot *snap = snapshot_invalid();
	struct snap_op *op = &snap->targets[0].ops[0];
	const json_t *o, *layer;
	char *text;
	json_t *doc;

	op->coverage_pct = num(NAN); /* valid but no number: must not become one */
	op->sum_check_pct = num(INFINITY);
	text = render(snap, true);
	doc = parse(text);
	o = op_at(doc, 0);
	layer = json_array_get(json_object_get(o, "layers"), 0);
	ok(json_is_null(json_object_get(o, "rate_hz")), "a rate that is not known is null");
	ok(json_is_null(json_object_get(o, "bytes")), "bytes of an op without are null");
	ok(json_is_null(json_object_get(o, "errors")), "errors that nobody counted are null");
	ok(json_is_null(json_object_get(layer, "errors")) &&
		   json_is_null(json_object_get(layer, "bytes")),
	   "a layer's too");
	ok(json_is_null(json_object_get(json_object_get(doc, "lost"), "evicted")) &&
		   json_is_null(json_object_get(json_object_get(doc, "lost"), "recursion")) &&
		   json_is_null(json_object_get(json_object_get(doc, "lost"), "uprobe_missed")),
	   "and losses that nobody counts");
	ok(json_is_null(json_object_get(doc, "probes")), "no probe was in");
	ok(json_is_null(json_object_get(o, "coverage_pct")), "NaN is null");
	ok(json_is_null(json_object_get(o, "sum_check_pct")), "infinity is null");
	ok(json_is_null(json_object_get(json_object_get(layer, "self_us"), "mean")),
	   "a mean that was not measured is null, its object is there");
	json_decref(doc);
	free(text);
	snapshot_free(snap);
}

/* How many processes are behind it is a mount's, also where there is none. */
static void test_mount(void)
{
	struct snapshot *snap = snapshot_chain();
	char *text = render(snap, true);

	ok(!strstr(text, "\"processes\""), "a brick has no processes behind it");
	free(text);
	SET(snap->targets[0].kind, "xfs");
	text = render(snap, true);
	ok(strstr(text, "\"processes\":0,"), "a mount may have none");
	free(text);
	snap->targets[0].n_procs = 3;
	text = render(snap, true);
	ok(strstr(text, "\"processes\":3,"), "or some");
	free(text);
	snapshot_free(snap);
}

static void test_memory_has_no_quantiles(void)
{
	struct snapshot *snap = snapshot_memory();
	char *text = render(snap, true);
	json_t *doc = parse(text);
	const json_t *layer = json_array_get(json_object_get(op_at(doc, 0), "layers"), 2);

	ok(real_at(layer, "incl_us", "mean") == 433, "a mean from memory");
	ok(json_is_null(json_object_get(json_object_get(layer, "incl_us"), "p99")),
	   "but no percentile");
	ok(real_at(layer, NULL, "est_self_us") == 91, "an estimate has its own key");
	ok(json_is_null(json_object_get(json_object_get(layer, "self_us"), "mean")),
	   "and is no self time");
	json_decref(doc);
	free(text);
	snapshot_free(snap);
}

/* Two targets: two lines, each a document; whatever the names hold. */
static void test_lines(void)
{
	struct snapshot *snap = snapshot_hostile();
	char *text = render(snap, true), *rest = NULL;
	unsigned int n = 0;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *doc = parse(line);

		if (n++ == 0)
			is_str(json_string_value(
				       json_object_get(json_object_get(doc, "target"), "name")),
			       "v?[31mol:/b?\"x\\?", "bytes that are not UTF-8 are replaced");
		is_int(json_integer_value(json_object_get(json_object_get(doc, "lost"), "total")),
		       0, "a target's own losses");
		is_int(json_integer_value(
			       json_object_get(json_object_get(doc, "lost_unassigned"), "total")),
		       5, "those of nobody knows which target are apart");
		is_int(json_integer_value(
			       json_object_get(json_object_get(doc, "lost_devices"), "total")),
		       4711, "so are those of the host's devices");
		json_decref(doc);
	}
	is_int(n, 2, "one line per target");
	free(text);
	snapshot_free(snap);
}

/* What one target misses is told with it alone. */
static void test_off(void)
{
	struct snapshot *snap = snapshot_hostile();
	char *text, *rest = NULL;

	snap->off = calloc(2, sizeof(*snap->off));
	snap->n_off = 2;
	snap->off[0].target = SNAP_ALL_TARGETS;
	snap->off[1].target = 1;
	SET(snap->off[1].what, "walk");
	text = render(snap, true);
	for (char *line = strtok_r(text, "\n", &rest), n = 0; line;
	     line = strtok_r(NULL, "\n", &rest), n++) {
		json_t *doc = parse(line);
		const json_t *off = json_object_get(doc, "off");

		is_int((long long)json_array_size(off), n + 1, "target %d misses %d", n, n + 1);
		json_decref(doc);
	}
	free(text);
	snapshot_free(snap);
}

static void test_list_and_stuck(void)
{
	struct target *t = calloc(1, sizeof(*t));
	struct target_list list = { t, 1 };
	struct gluster_request *r = calloc(1, sizeof(*r));
	struct sink_stuck stuck = { .target = "b", .pid = 7, .req = r, .n = 1 };
	struct capture c;
	char *text;
	json_t *doc;

	t->kind = TARGET_BRICK;
	SET(t->volume, "v\xc3");
	SET(t->xlators, "server > io-stats > posix");
	is_int(sink_json_list(capture_begin(&c), &list, "1.0"), 0, "the list is written");
	text = capture_end(&c);
	doc = parse(text);
	t->xlators[0] = '\0';
	is_int((long long)json_array_size(json_object_get(
		       json_array_get(json_object_get(doc, "targets"), 0), "xlators")),
	       3, "the graph is an array");
	json_decref(doc);
	free(text);
	r->fop = 13;
	r->app_pid = -1;
	is_int(sink_json_stuck(capture_begin(&c), &stuck, 1, "1.0"), 0,
	       "requests in flight are written");
	text = capture_end(&c);
	doc = parse(text);
	r->fop = 0;
	ok(json_is_null(json_object_get(
		   json_array_get(
			   json_object_get(json_array_get(json_object_get(doc, "processes"), 0),
					   "requests"),
			   0),
		   "age_us")),
	   "an age that is not known is null");
	json_decref(doc);
	free(text);
	free(r);
	free(t);
}

static void test_full_disk(void)
{
	struct snapshot *snap = snapshot_chain();
	FILE *full = fopen("/dev/full", "we");

	if (full) {
		is_int(sink_json_report(full, snap, "1.0", true), -ENOSPC,
		       "a full disk is reported");
		fclose(full);
	} else {
		skip("a full disk is reported", "no /dev/full");
	}
	snapshot_free(snap);
}

int main(void)
{
	test_uncounted();
	test_contract();
	test_golden();
	test_missing_is_null();
	test_mount();
	test_memory_has_no_quantiles();
	test_lines();
	test_off();
	test_list_and_stuck();
	test_full_disk();
	return tap_done();
}
