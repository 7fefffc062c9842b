/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_json_devices.c: see sink_json_devices.h. Owns the names of the keys; a value that cannot be
 * made makes the whole NULL, which json_pack() sees to.
 */
#include "sink_json_devices.h"

#include <math.h>

static json_t *number(bool valid, double v)
{
	double rounded = round(v * 1000) / 1000;

	return valid && isfinite(rounded) ? json_real(rounded + 0.0) : json_null();
}

static json_t *num(struct snap_num n)
{
	return number(n.valid, n.v);
}

/* A count that nobody may have counted. */
static json_t *count(struct snap_num n)
{
	return n.valid ? json_integer((json_int_t)n.v) : json_null();
}

static json_t *dist(const struct snap_dist *d, double unit)
{
	bool q = d->valid && d->has_quantiles;

	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "count", (json_int_t)d->count,
			 "mean", number(d->valid, d->mean / unit), "p50", number(q, d->p50 / unit),
			 "p90", number(q, d->p90 / unit), "p99", number(q, d->p99 / unit), "p999",
			 number(q, d->p999 / unit), "max", number(q, d->max / unit));
}

/* Takes the item; false where there is none, or no memory. */
static bool append(json_t *array, json_t *item)
{
	return item && !json_array_append_new(array, item);
}

/* null where no size is known. */
static json_t *size_buckets(const struct snap_device_op *op)
{
	json_t *array = op->size.valid ? json_array() : json_null();
	bool whole = array != NULL;

	for (size_t i = 0; op->size.valid && i < op->n_sizes && whole; i++)
		whole = append(array, json_pack("[I, I]", (json_int_t)op->sizes[i].from_bytes,
						(json_int_t)op->sizes[i].count));
	if (whole)
		return array;
	json_decref(array);
	return NULL;
}

static json_t *op_json(const struct snap_device_op *op)
{
	return json_pack("{s:s, s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "op",
			 op->op, "count", (json_int_t)op->count, "rate_hz", num(op->rate_hz),
			 "bytes", (json_int_t)op->bytes, "errors", (json_int_t)op->errors,
			 "partial", (json_int_t)op->partial, "size_bytes", dist(&op->size, 1),
			 "size_buckets", size_buckets(op), "queue_us", dist(&op->queue, 1000),
			 "device_us", dist(&op->device, 1000), "merges", count(op->merges),
			 "sequential_pct", num(op->sequential_pct), "in_flight",
			 num(op->in_flight));
}

static json_t *device_json(const struct snap_device *d)
{
	json_t *ops = json_array(), *stack = json_array();
	bool whole = ops && stack;

	for (size_t i = 0; i < d->n_ops && whole; i++)
		whole = append(ops, op_json(&d->ops[i]));
	for (unsigned int i = 0; i < d->n_stack && whole; i++)
		whole = append(stack, json_string(d->stack[i]));
	if (!whole) {
		json_decref(ops);
		json_decref(stack);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:{s:o, s:o}, s:o}", "dev", d->dev, "name",
			 d->name, "label", d->label, "stack", stack, "by",
			 d->by_bio ? "bios" : "requests", "busy_pct", num(d->busy_pct),
			 "in_flight_now", "reads", count(d->reads_now), "writes",
			 count(d->writes_now), "ops", ops);
}

json_t *sink_json_devices(const struct snapshot *snap, size_t target)
{
	json_t *devices;
	bool whole = true;

	if (!snap->has_devices)
		return json_null();
	devices = json_array();
	for (size_t i = 0; i < snap->n_devices && whole && devices; i++) {
		if (snap->devices[i].targets & 1ULL << target)
			whole = append(devices, device_json(&snap->devices[i]));
	}
	if (whole)
		return devices;
	json_decref(devices);
	return NULL;
}
