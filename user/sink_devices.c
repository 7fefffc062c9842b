/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_devices.c: see sink_devices.h. A device's facts stand above its operations, so that the
 * figures have the width of 80 columns; wider terminals get more of them.
 */
#include "sink_devices.h"

#include <string.h>

#include "text.h"

#define NAME_COLUMNS  13
#define WIDE_COLUMNS  100 /* from here on all columns are shown */
#define LABEL_COLUMNS 4

struct row {
	FILE *out;
	const struct sink_style *st;
	bool wide;
};

static void put_cell(const struct row *r, const char *text, unsigned int width)
{
	fputc(' ', r->out);
	sink_fmt_right(r->out, r->st, text, width - 1);
}

static void put_ns(const struct row *r, bool valid, double ns, unsigned int width)
{
	char buf[32];

	put_cell(r, sink_fmt_ns(buf, sizeof(buf), valid, ns), width);
}

static void put_bytes(const struct row *r, bool valid, double bytes, unsigned int width)
{
	char buf[32];

	put_cell(r, valid ? text_bytes(buf, sizeof(buf), bytes) : "-", width);
}

static void put_count(const struct row *r, struct snap_num num, unsigned int width)
{
	char buf[32];

	put_cell(r, sink_fmt_count(buf, sizeof(buf), num.valid, num.v), width);
}

static void put_head(const struct row *r)
{
	fputs("  ", r->out);
	sink_fmt_left(r->out, r->st, "op", NAME_COLUMNS - 2);
	put_cell(r, "op/s", 8);
	put_cell(r, "bytes/s", 9);
	put_cell(r, "size", 8);
	put_cell(r, "queue", 8);
	if (r->wide)
		put_cell(r, "p99", 8);
	put_cell(r, "device", 8);
	put_cell(r, "p99", 8);
	if (r->wide)
		put_cell(r, "max", 8);
	put_cell(r, "in fl", 6);
	put_cell(r, "seq", 7);
	fputc('\n', r->out);
}

/* A request that moves nothing has neither a size nor a place. */
static void put_op(const struct row *r, const struct snap_device_op *op)
{
	bool queue = op->queue.valid && op->queue.has_quantiles;
	bool device = op->device.valid && op->device.has_quantiles;
	char buf[32];

	fputs("  ", r->out);
	sink_fmt_left(r->out, r->st, op->op, NAME_COLUMNS - 2);
	put_count(r, op->rate_hz, 8);
	put_bytes(r, op->rate_hz.valid && op->size.valid && op->count,
		  op->count ? op->rate_hz.v * (double)op->bytes / (double)op->count : 0, 9);
	put_bytes(r, op->size.valid && op->size.has_quantiles, op->size.p50, 8);
	put_ns(r, queue, op->queue.p50, 8);
	if (r->wide)
		put_ns(r, queue, op->queue.p99, 8);
	put_ns(r, device, op->device.p50, 8);
	put_ns(r, device, op->device.p99, 8);
	if (r->wide)
		put_ns(r, device, op->device.max, 8);
	put_count(r, op->in_flight, 6);
	put_cell(r, sink_fmt_pct(buf, sizeof(buf), op->sequential_pct), 7);
	fputc('\n', r->out);
}

/* What few have: merged, failed, done in parts. */
static void put_notes(const struct row *r, const struct snap_device *d)
{
	struct sink_flow flow;
	char buf[32];
	bool any = false;

	for (size_t i = 0; i < d->n_ops; i++) {
		const struct snap_device_op *op = &d->ops[i];
		const struct {
			uint64_t n;
			const char *what;
		} notes[] = {
			{ op->merges.valid ? (uint64_t)op->merges.v : 0, "merged into others" },
			{ op->errors, "failed" },
			{ op->partial, "ended in part first" },
		};

		for (size_t j = 0; j < sizeof(notes) / sizeof(notes[0]); j++) {
			if (!notes[j].n)
				continue;
			if (!any)
				sink_fmt_flow_begin(&flow, r->out, r->st, "", LABEL_COLUMNS);
			sink_fmt_flow_item(&flow, any ? 3 : 0, "%s: %s %s", op->op,
					   sink_fmt_u64(buf, sizeof(buf), notes[j].n),
					   notes[j].what);
			any = true;
		}
	}
	if (any)
		sink_fmt_flow_end(&flow);
}

static void put_device(const struct row *r, const struct snap_device *d)
{
	struct sink_flow flow;
	char buf[32];

	sink_fmt_colour(r->out, r->st, SINK_BOLD);
	sink_fmt_flow_resume(&flow, r->out, r->st, 0, LABEL_COLUMNS);
	sink_fmt_flow_item(&flow, 0, "%s", d->name);
	sink_fmt_colour(r->out, r->st, SINK_PLAIN);
	if (d->label[0])
		sink_fmt_flow_item(&flow, 1, "(%s)", d->label);
	for (unsigned int i = 0; i < d->n_stack; i++)
		sink_fmt_flow_item(&flow, i ? 1 : 2, "%s %s", i ? ">" : "on", d->stack[i]);
	if (d->by_bio)
		sink_fmt_flow_item(&flow, 3, "takes bios, without a queue");
	sink_fmt_flow_item(&flow, 3, "busy %s", sink_fmt_pct(buf, sizeof(buf), d->busy_pct));
	if (d->reads_now.valid && d->writes_now.valid)
		sink_fmt_flow_item(&flow, 3, "now with the device %.0f + %.0f", d->reads_now.v,
				   d->writes_now.v);
	sink_fmt_flow_end(&flow);
	if (!d->n_ops) {
		fputs("  no request ended in this window\n", r->out);
		return;
	}
	put_head(r);
	for (size_t i = 0; i < d->n_ops; i++)
		put_op(r, &d->ops[i]);
	put_notes(r, d);
}

void sink_devices_text(FILE *out, const struct snapshot *snap, const struct sink_style *st)
{
	struct row r = { .out = out, .st = st, .wide = sink_fmt_columns(st) >= WIDE_COLUMNS };

	if (!snap->has_devices || !snap->n_devices)
		return;
	fputc('\n', out);
	sink_fmt_colour(out, st, SINK_BOLD);
	sink_fmt_text(out, st, "devices");
	sink_fmt_colour(out, st, SINK_PLAIN);
	sink_fmt_text(out, st, "  all requests of this host; without p99 or max: the median");
	fputs("\n\n", out);
	for (size_t i = 0; i < snap->n_devices; i++) {
		if (i)
			fputc('\n', out);
		put_device(&r, &snap->devices[i]);
	}
}
