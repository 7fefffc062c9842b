/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sink_dump.c: records of whole requests as JSON lines: a golden line, stamps to the last
 * digit, and records that are cut, too long or point outside themselves.
 */
#include "sink_dump.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "golden.h"

#define N_FRAMES 4
#define N_SPANS  2
#define N_MARKS  1

struct record {
	struct wire_dump head;
	struct wire_who who;
	struct wire_dump_frame frames[N_FRAMES];
	struct wire_span spans[N_SPANS];
	struct wire_dump_marks marks[N_MARKS];
};

static const char *target_name(const void *arg, unsigned int target)
{
	return target == 0 ? arg : NULL;
}

static const char *layer_name(const void *arg, unsigned int target, unsigned int layer)
{
	static const char *const xlators[] = { "server", "io-threads", "posix" };

	(void)arg;
	(void)target;
	if (layer == 1)
		return "syscall";
	if (layer < WIRE_LAYER_XLATOR || layer >= WIRE_LAYER_XLATOR + 3)
		return NULL;
	return xlators[layer - WIRE_LAYER_XLATOR];
}

static const char *sub_name(const void *arg, unsigned int layer, unsigned int sub)
{
	(void)arg;
	return layer == 1 && sub == WIRE_SYS_pwrite64 ? "pwrite64" :
	       layer == 1 && sub == WIRE_SYS_fstat    ? "fstat" :
							NULL;
}

static const char *op_name(const void *arg, unsigned int op)
{
	(void)arg;
	return op == 13 ? "write" : NULL;
}

static const struct sink_dump_names names = { .target = target_name,
					      .layer = layer_name,
					      .sub = sub_name,
					      .op = op_name,
					      .arg = "vol\"\\\n:/b\xff" };

static struct wire_dump_frame make_frame(unsigned int layer, int parent, uint64_t begin,
					 uint64_t end, uint64_t covered, unsigned int flags)
{
	return (struct wire_dump_frame){ .addr = 0x7f0011223344 + layer,
					 .xlator = 0x7f0000000000,
					 .begin_raw = begin - 1,
					 .end_raw = end + 1,
					 .begin = begin,
					 .end = end,
					 .covered = covered,
					 .parent = (uint16_t)parent,
					 .layer = (uint16_t)(WIRE_LAYER_XLATOR + layer),
					 .op = 13,
					 .flags = (uint8_t)flags };
}

/* Ten marks were made: the two newest lie in the first places; one of no known xlator. */
static void make_marks(struct record *r)
{
	r->marks[0] = (struct wire_dump_marks){ .frame = 1, .this_layer = WIRE_LAYER_XLATOR + 2 };
	r->marks[0].entries.n = 10;
	for (unsigned int i = 0; i < 3; i++) {
		r->marks[0].layer[i] = (uint16_t)(i < 2 ? WIRE_LAYER_XLATOR + 1 + i : 0);
		r->marks[0].entries.mark[i] = (struct wire_mark){
			.xlator = 0x7f0000000000,
			.time = 9007199254741493ULL + 1000 * i,
		};
	}
}

/* A name that is created, by a process of GlusterFS's own. */
static const struct wire_who some_who = {
	.file = { 0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	.client = 0x7f0033445566,
	.pid = -6,
	.uid = 4294967295U,
	.kind = WIRE_FILE_ENTRY,
	.has_app = 1,
};

static void make_record(struct record *r)
{
	memset(r, 0, sizeof(*r));
	make_marks(r);
	r->head = (struct wire_dump){ .tgid = 4211,
				      .tid = 4219,
				      .op = 13,
				      .result = -28,
				      .watermark = 18446744073709551615ULL,
				      .n_frames = N_FRAMES,
				      .n_spans = N_SPANS,
				      .n_marks = N_MARKS,
				      .op_errno = 28,
				      .stack_error = 28,
				      .raiser = WIRE_LAYER_XLATOR + 2,
				      .raiser_known = 1 };
	r->who = some_who;
	r->frames[0] = make_frame(0, 0xffff, 9007199254740993ULL, 9007199254745993ULL, 4000,
				  WIRE_FRAME_COUNTED);
	r->frames[1] = make_frame(1, 0, 9007199254741493ULL, 9007199254745493ULL, 3000,
				  WIRE_FRAME_COUNTED);
	r->frames[2] = make_frame(2, 1, 9007199254742493ULL, 9007199254745493ULL, 2500,
				  WIRE_FRAME_COUNTED | WIRE_FRAME_ON_THREAD | WIRE_FRAME_DERIVED |
					  WIRE_FRAME_TAIL);
	r->frames[1].bytes = r->frames[2].bytes = 4096;
	r->frames[2].failed = 1;
	/* Begins after it ends: shown as it is, negative. */
	r->frames[3] = make_frame(7, 2, 1000, 400, 100, WIRE_FRAME_COPY_ROOT | WIRE_FRAME_OPEN);
	r->frames[3].stack = 1;
	r->frames[3].op = 99;
	r->spans[0] = (struct wire_span){ .begin = 9007199254742500ULL,
					  .end = 9007199254745000ULL,
					  .bytes = 4096,
					  .file = 131,
					  .frame = 2,
					  .claimed = 1,
					  .n_parts = 2 };
	r->spans[0].part[0] = (struct wire_span_part){ .layer = 1,
						       .sub = WIRE_SYS_pwrite64,
						       .parent_part = 0xff,
						       .calls = 1,
						       .self_ns = 2000,
						       .incl_ns = 2500 };
	r->spans[0].part[1] = (struct wire_span_part){
		.layer = 2, .sub = 9, .calls = 3, .self_ns = 500, .incl_ns = 500
	};
	r->spans[1] = (struct wire_span){
		.begin = 5, .end = 9, .frame = 0xffff, .failed = 1, .n_parts = 1
	};
	r->spans[1].part[0] = (struct wire_span_part){ .layer = 1,
						       .sub = WIRE_SYS_fstat,
						       .parent_part = 0xff,
						       .calls = 1,
						       .self_ns = 4,
						       .incl_ns = 4 };
}

/* The line, or NULL and the error. */
static char *render(const void *record, size_t len, int *ret_err)
{
	struct capture c;

	*ret_err = sink_dump_write(capture_begin(&c), record, len, &names);
	return capture_end(&c);
}

static json_t *frame_at(const json_t *doc, size_t i)
{
	return json_array_get(json_object_get(doc, "frames"), i);
}

static long long int_at(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void test_line(void)
{
	struct record r;
	json_error_t error;
	const json_t *span;
	json_t *doc;
	char *text;
	int err;

	make_record(&r);
	text = render(&r, sizeof(r), &err);
	is_int(err, 0, "a record is written");
	golden_check("dump_request.jsonl", text);
	/* A watermark may use all 64 bits: jansson reads it as a real. */
	doc = json_loads(text, JSON_DECODE_INT_AS_REAL, &error);
	ok(doc != NULL, "it is JSON, 64-bit stamps included");
	json_decref(doc);
	free(text);
	r.head.watermark = 1;
	text = render(&r, sizeof(r), &err);
	doc = json_loads(text, 0, &error);
	ok(int_at(frame_at(doc, 0), "begin") == 9007199254740993LL,
	   "a stamp beyond 2^53 keeps its last digit");
	is_int(int_at(frame_at(doc, 1), "self"), 1000, "self = end - begin - covered");
	is_int(int_at(frame_at(doc, 3), "self"), -700, "a negative self time stays negative");
	is_int(int_at(frame_at(doc, 0), "parent"), -1, "a root has no parent");
	is_str(json_string_value(json_object_get(doc, "target")), "vol\"\\?:/b?",
	       "names are escaped and sanitized");
	span = json_array_get(json_object_get(doc, "spans"), 1);
	is_int(int_at(span, "frame"), -1, "a span that no frame claims");
	is_str(json_string_value(json_object_get(span, "sub")), "fstat", "has its name");
	is_str(json_string_value(
		       json_object_get(json_array_get(json_object_get(doc, "marks"), 0), "this")),
	       "posix", "marks say where the frame ended");
	is_str(json_string_value(json_object_get(doc, "gfid")),
	       "fe010203-0405-0607-0809-0a0b0c0d0e0f", "the gfid");
	ok(json_is_true(json_object_get(doc, "entry")), "which is the directory's");
	is_int(int_at(doc, "app_pid"), -6, "a pid of GlusterFS's own");
	is_int(int_at(doc, "uid"), 4294967295LL, "and a large uid");
	json_decref(doc);
	free(text);
	r.who = (struct wire_who){ 0 };
	text = render(&r, sizeof(r), &err);
	ok(strstr(text, "\"gfid\":null,\"entry\":null,\"app_pid\":null,\"uid\":null"),
	   "what is not known is null");
	free(text);
}

static void test_unsplit_names(void)
{
	static const char *const want[] = { "map_full",       "ring_full",   "unpaired",
					    "unreadable",     "absurd",      "ledger",
					    "frames",         "order",       "storage_busy",
					    "unknown_xlator", "skipped",     "marks",
					    "wakes",          "begun_before" };
	struct {
		struct wire_dump head;
		struct wire_who who;
	} r = { .head.tid = 1 };

	for (unsigned int i = 0; i <= WIRE_LOSSES; i++) {
		char expect[64], *text;
		int err;

		r.head.unsplit = (uint8_t)i;
		text = render(&r, sizeof(r), &err);
		snprintf(expect, sizeof(expect), "\"unsplit\":\"%s\"", i ? want[i - 1] : "");
		ok(err == 0 && strstr(text, expect) != NULL, "unsplit %u is %s", i, expect);
		free(text);
	}
}

static void refused(const struct record *r, size_t len, const char *why)
{
	int err;
	char *text = render(r, len, &err);

	is_int(err, -EBADMSG, "refused: %s", why);
	is_str(text, "", "and nothing of it is written");
	free(text);
}

static void test_bad_records(void)
{
	struct record r;
	size_t accepted = 0;

	make_record(&r);
	for (size_t len = 0; len < sizeof(r); len++) {
		char *cut = malloc(len ? len : 1); /* its own block: sanitizers see a read beyond */
		char *text;
		int err;

		memcpy(cut, &r, len);
		text = render(cut, len, &err);
		accepted += err != -EBADMSG || *text;
		free(text);
		free(cut);
	}
	is_int((long long)accepted, 0, "a record cut anywhere is refused");
	r.head.n_frames = 0xffffffff;
	refused(&r, sizeof(r), "more frames than a walk has");
	make_record(&r);
	r.head.n_spans = WIRE_LEDGER + WIRE_OVERFLOW + 1;
	refused(&r, sizeof(r), "more spans than a ledger has");
	make_record(&r);
	r.head.n_marks = N_FRAMES + 1;
	refused(&r, sizeof(r), "more marks than frames");
	make_record(&r);
	r.marks[0].frame = N_FRAMES;
	refused(&r, sizeof(r), "marks of a frame outside");
	make_record(&r);
	r.frames[1].parent = N_FRAMES;
	refused(&r, sizeof(r), "a parent outside");
	make_record(&r);
	r.spans[0].frame = N_FRAMES;
	refused(&r, sizeof(r), "a span of a frame outside");
	make_record(&r);
	r.spans[1].n_parts = WIRE_SPAN_PARTS + 1;
	refused(&r, sizeof(r), "more parts than a span has");
	make_record(&r);
	r.spans[1].n_parts = 0;
	refused(&r, sizeof(r), "a span without parts");
	make_record(&r);
	r.spans[0].part[1].parent_part = 2;
	refused(&r, sizeof(r), "a part inside a part outside");
}

static void test_longer_and_unaligned(void)
{
	struct record r;
	char *block = malloc(sizeof(r) + 65), *text;
	int err;

	make_record(&r);
	memset(block, 0xee, sizeof(r) + 65);
	memcpy(block + 1, &r, sizeof(r));
	text = render(block + 1, sizeof(r) + 64, &err);
	ok(err == 0 && strlen(text) > 100, "a longer, unaligned record is read all the same");
	free(text);
	free(block);
}

int main(void)
{
	test_line();
	test_unsplit_names();
	test_bad_records();
	test_longer_and_unaligned();
	return tap_done();
}
