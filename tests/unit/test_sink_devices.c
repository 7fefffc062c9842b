/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sink_devices.c: the table of block devices as text, against golden files, and in the JSON
 * document: which target sees which, and null for what was not measured.
 */
#include "sink_devices.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "golden.h"
#include "model.h"
#include "sink_json_devices.h"

static struct snap_num num(double v)
{
	return (struct snap_num){ v, true };
}

static struct snap_dist dist(uint64_t count, double mean, double p50, double p99, double max)
{
	return (struct snap_dist){ true, true, count, mean, p50, (p50 + p99) / 2, p99, p99, max };
}

static void name_device(struct snap_device *d, const char *dev, const char *name, size_t n_ops)
{
	snprintf(d->dev, sizeof(d->dev), "%s", dev);
	snprintf(d->name, sizeof(d->name), "%s", name);
	d->ops = calloc(n_ops + 1, sizeof(*d->ops));
	d->n_ops = n_ops;
}

/* Freed with the snapshot. */
static void add_sizes(struct snap_device_op *op, const struct snap_size *sizes, size_t n)
{
	op->sizes = calloc(n, sizeof(*sizes));
	memcpy(op->sizes, sizes, n * sizeof(*sizes));
	op->n_sizes = n;
}

/* A busy loop. */
static void fill_loop(struct snap_device *d)
{
	static const struct snap_size sizes[] = { { 512, 1 }, { 65536, 123000 }, { 131072, 455 } };

	name_device(d, "7:3", "loop3", 2);
	snprintf(d->label, sizeof(d->label), "/srv/images/brick \x1b[31m1.img");
	snprintf(d->stack[0], sizeof(d->stack[0]), "dm-0");
	snprintf(d->stack[1], sizeof(d->stack[1]), "vda");
	d->n_stack = 2;
	d->targets = 1;
	d->busy_pct = num(98.7);
	d->reads_now = num(3);
	d->writes_now = num(12);
	d->ops[0] = (struct snap_device_op){
		.op = "write",
		.count = 123456,
		.bytes = 123456ULL * 65536,
		.errors = 2,
		.partial = 1,
		.rate_hz = num(12345.6),
		.in_flight = num(31.5),
		.merges = num(4711),
		.sequential_pct = num(99.4),
		.size = dist(123456, 65536, 65536, 131072, 131072),
		.queue = dist(123456, 800, 640, 19000, 2.1e6),
		.device = dist(123456, 2.4e6, 1.9e6, 31e6, 250e9),
	};
	add_sizes(&d->ops[0], sizes, 3);
	d->ops[1] = (struct snap_device_op){
		.op = "flush-wait",
		.count = 3,
		.rate_hz = num(0.3),
		.in_flight = num(0.01),
		.queue = dist(3, 8e6, 7.9e6, 9e6, 9e6),
	};
}

/* With a disk whose queue keeps no times, a device that takes bios, an idle one. */
static struct snapshot *new_snapshot(void)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct snap_device *d;

	s->window_secs = 10;
	s->has_devices = true;
	s->n_devices = 4;
	s->devices = calloc(s->n_devices, sizeof(*s->devices));
	fill_loop(&s->devices[0]);
	d = &s->devices[1];
	name_device(d, "254:0", "vda", 1);
	d->targets = 3;
	d->ops[0] = (struct snap_device_op){
		.op = "read",
		.count = 10,
		.bytes = 40960,
		.rate_hz = num(1),
		.sequential_pct = num(0),
		.size = dist(10, 4096, 4096, 4096, 4096),
	};
	d = &s->devices[2];
	name_device(d, "253:0", "dm-0", 1);
	d->targets = 2;
	d->by_bio = true;
	d->ops[0] = (struct snap_device_op){
		.op = "discard",
		.count = 1,
		.bytes = 1ULL << 40,
		.rate_hz = num(0.1),
		.in_flight = num(0),
		.sequential_pct = num(0),
		.size = dist(1, 1e12, 1e12, 1e12, 1e12),
		.device = dist(1, 90, 64, 64, 90),
	};
	d = &s->devices[3];
	name_device(d, "8:0", "sda", 0);
	d->targets = 1;
	d->busy_pct = num(0);
	return s;
}

static char *render(const struct snapshot *snap, unsigned int columns)
{
	struct sink_style style = { .columns = columns };
	struct capture c;

	sink_devices_text(capture_begin(&c), snap, &style);
	return capture_end(&c);
}

static void test_text(void)
{
	static const unsigned int widths[] = { 80, 100 };
	struct snapshot *snap = new_snapshot();

	for (size_t i = 0; i < 2; i++) {
		char *text = render(snap, widths[i]), name[64];
		size_t longest = 0;

		snprintf(name, sizeof(name), "text_devices_%u.txt", widths[i]);
		golden_check(name, text);
		for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
			if (strcspn(line, "\n") > longest)
				longest = strcspn(line, "\n");
		ok(longest <= widths[i], "no line is longer than %u columns", widths[i]);
		ok(!strchr(text, '\x1b'), "nothing of a name is obeyed");
		free(text);
	}
	snapshot_free(snap);
}

static void test_nothing(void)
{
	struct snapshot *snap = calloc(1, sizeof(*snap));
	json_t *json;
	char *text = render(snap, 80);

	is_str(text, "", "no table where none was there");
	free(text);
	json = sink_json_devices(snap, 0);
	ok(json_is_null(json), "null where none was there");
	json_decref(json);
	snap->has_devices = true;
	text = render(snap, 80);
	is_str(text, "", "no table of no devices");
	free(text);
	json = sink_json_devices(snap, 0);
	ok(json_is_array(json) && !json_array_size(json), "an empty one where there are none");
	json_decref(json);
	snapshot_free(snap);
}

static void test_json(void)
{
	struct snapshot *snap = new_snapshot();
	json_t *first = sink_json_devices(snap, 0), *second = sink_json_devices(snap, 1);
	json_t *doc = json_pack("[O, O]", first, second);
	char *text = json_dumps(doc, JSON_INDENT(1) | JSON_REAL_PRECISION(15)), *line;

	is_int((long long)json_array_size(first), 3, "the first target sees three devices");
	is_int((long long)json_array_size(second), 2, "the second one two");
	line = malloc(strlen(text) + 2);
	sprintf(line, "%s\n", text);
	golden_check("json_devices.json", line);
	free(line);
	free(text);
	json_decref(doc);
	json_decref(first);
	json_decref(second);
	snapshot_free(snap);
}

int main(void)
{
	test_text();
	test_nothing();
	test_json();
	return tap_done();
}
