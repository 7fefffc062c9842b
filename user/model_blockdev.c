/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_blockdev.c: see model_blockdev.h. Owns a device's rows and their windows. How many requests
 * were timed is what the buckets say, which may be none: a queue that keeps no times.
 */
#include "model_blockdev.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"
#include "text.h"

#define MAX_DEVICES 1024

struct dev_row {
	bool known;
	struct model_counter count, bytes, errors, sequential, partial;
	struct model_side queue, device, size;
};

struct dev {
	struct model_device about;
	bool by_bio;
	/* statistics: last fed, and as of the begin of the window */
	bool has_base;
	uint64_t base_merges[MODEL_DEVICE_GROUPS], base_busy_ms;
	struct dev_row rows[WIRE_DEV_OP_COUNT];
};

struct model_devices {
	bool shown, everybody;
	struct dev **dev;
	size_t n;
};

static const char *const op_names[WIRE_DEV_OP_COUNT] = {
#define OP_NAME(id, text) [WIRE_DEV_##id] = text,
	WIRE_DEV_OPS(OP_NAME)
};

/* ---- feeding ----------------------------------------------------------- */

static struct model_devices *get_devices(struct model *m)
{
	if (!m->devices)
		m->devices = calloc(1, sizeof(*m->devices));
	return m->devices;
}

static struct dev *find_dev(const struct model_devices *ds, __u32 number)
{
	for (size_t i = 0; i < ds->n; i++)
		if (ds->dev[i]->about.dev == number)
			return ds->dev[i];
	return NULL;
}

/* 0, -ENOMEM or -ENOSPC. */
static int make_dev(struct model *m, __u32 number, struct dev **ret_dev)
{
	struct model_devices *ds = get_devices(m);
	struct dev **grown, *d;

	if (!ds)
		return -ENOMEM;
	*ret_dev = find_dev(ds, number);
	if (*ret_dev)
		return 0;
	if (ds->n == MAX_DEVICES)
		return -ENOSPC;
	grown = realloc(ds->dev, (ds->n + 1) * sizeof(struct dev *));
	if (!grown)
		return -ENOMEM;
	ds->dev = grown;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->about.dev = number;
	ds->dev[ds->n++] = d;
	*ret_dev = d;
	return 0;
}

static void fold(struct model_counter *c, uint64_t now)
{
	model_counter_fold(c, now, now < c->last);
}

int model_feed_dev_row(struct model *m, const struct wire_dev_key *key, const struct wire_dev *sum)
{
	struct dev_row *row;
	struct dev *d;
	int err;

	if (key->op >= WIRE_DEV_OP_COUNT)
		return -EINVAL;
	err = make_dev(m, key->dev, &d);
	if (err)
		return err;
	d->by_bio = key->by_bio;
	row = &d->rows[key->op];
	row->known = true;
	fold(&row->count, sum->count);
	fold(&row->bytes, sum->bytes);
	fold(&row->errors, sum->errors);
	fold(&row->sequential, sum->sequential);
	fold(&row->partial, sum->partial);
	err = model_side_fold(&row->queue, sum->queue_sum_ns, sum->queue_max_ns, sum->queue);
	err = err   ?:
		      model_side_fold(&row->device, sum->device_sum_ns, sum->device_max_ns,
				      sum->device);
	return err ?: model_side_fold(&row->size, sum->size_sum, sum->size_max, sum->size);
}

static void rebase(struct dev *d)
{
	d->has_base = d->about.has_stat;
	memcpy(d->base_merges, d->about.merges, sizeof(d->base_merges));
	d->base_busy_ms = d->about.busy_ms;
}

/* A device that was taken away and came back under its number counts anew. */
static bool has_fallen(const struct dev *d)
{
	bool fallen = d->about.busy_ms < d->base_busy_ms;

	for (int i = 0; i < MODEL_DEVICE_GROUPS; i++)
		fallen = fallen || d->about.merges[i] < d->base_merges[i];
	return fallen;
}

int model_feed_device(struct model *m, const struct model_device *device)
{
	struct dev *d;
	int err = make_dev(m, device->dev, &d);

	if (err)
		return err;
	d->about = *device;
	if (d->about.n_stack > SNAP_DEVICE_STACK)
		d->about.n_stack = SNAP_DEVICE_STACK;
	if (device->has_stat && (!d->has_base || has_fallen(d)))
		rebase(d);
	return 0;
}

bool model_device_nth(const struct model *m, size_t i, __u32 *ret_dev)
{
	if (!m->devices || i >= m->devices->n)
		return false;
	*ret_dev = m->devices->dev[i]->about.dev;
	return true;
}

void model_show_devices(struct model *m, bool everybody)
{
	struct model_devices *ds = get_devices(m);

	if (!ds)
		return;
	ds->shown = true;
	ds->everybody = everybody;
}

void model_devices_start(struct model_devices *ds)
{
	for (size_t i = 0; ds && i < ds->n; i++) {
		struct dev *d = ds->dev[i];

		rebase(d);
		for (int op = 0; op < WIRE_DEV_OP_COUNT; op++) {
			struct dev_row *row = &d->rows[op];

			row->count.win = row->bytes.win = row->errors.win = 0;
			row->sequential.win = row->partial.win = 0;
			model_side_start(&row->queue);
			model_side_start(&row->device);
			model_side_start(&row->size);
		}
	}
}

static void free_dev(struct dev *d)
{
	for (int op = 0; op < WIRE_DEV_OP_COUNT; op++) {
		free(d->rows[op].queue.hist.cells);
		free(d->rows[op].device.hist.cells);
		free(d->rows[op].size.hist.cells);
	}
	free(d);
}

void model_devices_free(struct model_devices *ds)
{
	if (!ds)
		return;
	for (size_t i = 0; i < ds->n; i++)
		free_dev(ds->dev[i]);
	free(ds->dev);
	free(ds);
}

/* ---- the table --------------------------------------------------------- */

static uint64_t side_count(const struct model_side *side)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < side->hist.n; i++)
		n += side->hist.cells[i].win;
	return n;
}

static void fill_dist(const struct model_side *side, struct snap_dist *ret_dist)
{
	model_side_dist(side, side_count(side), ret_dist);
}

/* Sizes are whole sectors: what lies in a bucket is its lower edge far more often than its middle.
 */
static void fill_sizes(const struct model_side *side, struct snap_dist *d)
{
	double *const quantiles[] = { &d->p50, &d->p90, &d->p99, &d->p999 };

	fill_dist(side, d);
	for (size_t i = 0; d->has_quantiles && i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		*quantiles[i] = (double)hist_low_ns(hist_bucket((__u64)*quantiles[i]));
}

/* 0 or -ENOMEM. */
static int fill_size_buckets(const struct model_hist *h, struct snap_device_op *so)
{
	so->sizes = calloc(h->n + 1, sizeof(*so->sizes));
	if (!so->sizes)
		return -ENOMEM;
	for (unsigned int i = 0; i < h->n; i++) {
		if (h->cells[i].win)
			so->sizes[so->n_sizes++] =
				(struct snap_size){ hist_low_ns(h->low + i), h->cells[i].win };
	}
	return 0;
}

/* The group of /sys/block/X/stat in which an operation's merges are counted, or -1. */
static int stat_group(unsigned int op)
{
	switch (op) {
	case WIRE_DEV_READ:
		return 0;
	case WIRE_DEV_WRITE:
		return 1;
	case WIRE_DEV_DISCARD:
		return 2;
	default:
		return -1;
	}
}

static struct snap_num count_merges(const struct dev *d, unsigned int op)
{
	int group = stat_group(op);
	struct snap_num num = { 0 };

	if (group < 0 || !d->has_base || !d->about.has_stat)
		return num;
	num.v = (double)(d->about.merges[group] - d->base_merges[group]);
	num.valid = true;
	return num;
}

static int fill_op(const struct dev *d, unsigned int op, double secs, struct snap_device_op *so)
{
	const struct dev_row *row = &d->rows[op];
	double spent_ns = (double)(row->queue.sum.win + row->device.sum.win);

	model_text_set(so->op, sizeof(so->op), op_names[op]);
	so->count = row->count.win;
	so->bytes = row->bytes.win;
	so->errors = row->errors.win;
	so->partial = row->partial.win;
	fill_sizes(&row->size, &so->size);
	fill_dist(&row->queue, &so->queue);
	fill_dist(&row->device, &so->device);
	so->merges = count_merges(d, op);
	if (so->size.valid)
		so->sequential_pct = (struct snap_num){
			100 * (double)row->sequential.win / (double)so->size.count, true
		};
	if (secs > 0)
		so->rate_hz = (struct snap_num){ (double)so->count / secs, true };
	/* Little's law: what all of them took together, over the time in which they did */
	if (secs > 0 && (so->queue.valid || so->device.valid))
		so->in_flight = (struct snap_num){ spent_ns / (secs * 1e9), true };
	return fill_size_buckets(&row->size.hist, so);
}

/* Anything ended, or is stuck in there. */
static bool has_moved(const struct dev *d)
{
	uint64_t n = d->about.has_in_flight ? d->about.in_flight_reads + d->about.in_flight_writes :
					      0;

	for (int op = 0; op < WIRE_DEV_OP_COUNT; op++)
		n += d->rows[op].count.win + d->rows[op].partial.win;
	return n > 0;
}

static int fill_device(const struct dev *d, double secs, struct snap_device *sd)
{
	const struct model_device *about = &d->about;

	snprintf(sd->dev, sizeof(sd->dev), "%u:%u", about->dev >> 20, about->dev & 0xfffff);
	text_sanitize(sd->name, sizeof(sd->name), about->name[0] ? about->name : sd->dev);
	text_sanitize(sd->label, sizeof(sd->label), about->label);
	sd->n_stack = about->n_stack;
	for (unsigned int i = 0; i < about->n_stack; i++)
		text_sanitize(sd->stack[i], sizeof(sd->stack[i]), about->stack[i]);
	sd->by_bio = d->by_bio;
	if (about->has_stat && d->has_base && secs > 0)
		sd->busy_pct =
			(struct snap_num){ (double)(about->busy_ms - d->base_busy_ms) / (secs * 10),
					   true };
	sd->reads_now = (struct snap_num){ about->in_flight_reads, about->has_in_flight };
	sd->writes_now = (struct snap_num){ about->in_flight_writes, about->has_in_flight };
	sd->ops = calloc(WIRE_DEV_OP_COUNT, sizeof(*sd->ops));
	if (!sd->ops)
		return -ENOMEM;
	for (unsigned int op = 0; op < WIRE_DEV_OP_COUNT; op++)
		if ((d->rows[op].count.win || d->rows[op].partial.win) &&
		    fill_op(d, op, secs, &sd->ops[sd->n_ops++]))
			return -ENOMEM;
	return 0;
}

/* The targets of a device, as places in the snapshot: there are no holes there. */
static uint64_t places_of(const struct model *m, uint64_t targets)
{
	uint64_t places = 0, place = 1;

	for (unsigned int i = 0; i < WIRE_MAX_TARGETS; i++) {
		if (!m->targets[i])
			continue;
		if (targets & 1ULL << i)
			places |= place;
		place <<= 1;
	}
	return places;
}

int model_devices_build(const struct model *m, double secs, struct snapshot *snap)
{
	const struct model_devices *ds = m->devices;

	if (!ds || !ds->shown)
		return 0;
	snap->has_devices = true;
	snap->devices = calloc(ds->n + 1, sizeof(*snap->devices));
	if (!snap->devices)
		return -ENOMEM;
	for (size_t i = 0; i < ds->n; i++) {
		const struct dev *d = ds->dev[i];
		struct snap_device *sd = &snap->devices[snap->n_devices];
		uint64_t places = places_of(m, d->about.targets);
		int err;

		if (ds->everybody ? !has_moved(d) : !places)
			continue;
		sd->targets = ds->everybody ? ~0ULL : places;
		snap->n_devices++;
		err = fill_device(d, secs, sd);
		if (err)
			return err;
	}
	return 0;
}

void model_devices_free_snapshot(struct snapshot *snap)
{
	for (size_t i = 0; i < snap->n_devices; i++) {
		for (size_t k = 0; k < snap->devices[i].n_ops; k++)
			free(snap->devices[i].ops[k].sizes);
		free(snap->devices[i].ops);
	}
	free(snap->devices);
}
