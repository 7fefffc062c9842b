/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_device.c: what the host's table of block devices says beside a cause: the device on which
 * a target's I/O ends, as all of the host uses it, and the busiest one of its stack. Evidence only:
 * it names no cause and has no share.
 */
#include <string.h>

#include "text.h"
#include "verdict_priv.h"

static bool is_in_stack(const struct snap_device *top, const struct snap_device *d)
{
	for (unsigned int i = 0; i < top->n_stack; i++)
		if (!strcmp(top->stack[i], d->name))
			return true;
	return false;
}

/* The operation with which a device is most of the time; NULL: none. */
static const struct snap_device_op *main_op(const struct snap_device *d)
{
	const struct snap_device_op *most = NULL;

	for (size_t i = 0; i < d->n_ops; i++) {
		const struct snap_device_op *o = &d->ops[i];

		if (!o->device.valid || !o->rate_hz.valid)
			continue;
		if (!most ||
		    o->device.mean * (double)o->count > most->device.mean * (double)most->count)
			most = o;
	}
	return most;
}

static void say_device(struct snap_cause *cause, const struct snap_device *d)
{
	const struct snap_device_op *o = main_op(d);
	char queue[16], mean[16], p99[16];

	verdict_say(cause, "%s is busy in %.0f %% of the window, whoever uses it", d->name,
		    d->busy_pct.v);
	if (o)
		verdict_say(cause,
			    "%s: %s %.0f a second, each %s in its queue and %s in it, p99 %s",
			    d->name, o->op, o->rate_hz.v,
			    text_duration(queue, sizeof(queue), o->queue.valid ? o->queue.mean : 0),
			    text_duration(mean, sizeof(mean), o->device.mean),
			    text_duration(p99, sizeof(p99), o->device.p99));
}

void verdict_explain_device(const struct verdict_case *c, const struct verdict_finding *f,
			    struct snap_cause *cause)
{
	size_t place = (size_t)(c->t - c->snap->targets);
	const struct snap_device *top = NULL, *below = NULL;

	(void)f;
	for (size_t i = 0; i < c->snap->n_devices && place < 64; i++) {
		const struct snap_device *d = &c->snap->devices[i];

		if (!(d->targets >> place & 1) || !d->busy_pct.valid)
			continue;
		if (!top || is_in_stack(d, top))
			top = d;
	}
	for (size_t i = 0; top && i < c->snap->n_devices; i++) {
		const struct snap_device *d = &c->snap->devices[i];

		if (is_in_stack(top, d) && d->busy_pct.valid && d->busy_pct.v > top->busy_pct.v &&
		    (!below || d->busy_pct.v > below->busy_pct.v))
			below = d;
	}
	if (top)
		say_device(cause, top);
	if (below)
		say_device(cause, below);
}
