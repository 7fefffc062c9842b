/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_blockdev.c: the table of block devices: what a window adds, which devices are shown to
 * whom, what is not known, counters that start again.
 */
#include "model_blockdev.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"

#define LOOP 7U << 20 | 3
#define DISK 254U << 20
#define SEC  1000000000ULL

static struct wire_dev row; /* large: not on the stack */

static struct model *new_model(unsigned int n_targets)
{
	struct model *m = NULL;

	if (model_new(NULL, 0, &m))
		exit(1);
	for (unsigned int i = 0; i < n_targets; i++) {
		/* with a hole: places in a snapshot are not indices */
		struct model_target t = { .kind = "xfs", .name = "/mnt", .root = WIRE_ROOT_LOCAL };

		is_int(model_set_target(m, 2 * i, &t, NULL), 0, "a target");
	}
	return m;
}

static void add_request(__u64 bytes, __u64 queue_ns, __u64 device_ns)
{
	row.count++;
	row.bytes += bytes;
	row.size_sum += bytes;
	row.size[hist_bucket(bytes)]++;
	row.size_max = bytes > row.size_max ? bytes : row.size_max;
	row.queue_sum_ns += queue_ns;
	row.queue[hist_bucket(queue_ns)]++;
	row.queue_max_ns = queue_ns > row.queue_max_ns ? queue_ns : row.queue_max_ns;
	row.device_sum_ns += device_ns;
	row.device[hist_bucket(device_ns)]++;
	row.device_max_ns = device_ns > row.device_max_ns ? device_ns : row.device_max_ns;
}

static void feed(struct model *m, __u32 dev, __u8 op, __u8 by_bio)
{
	struct wire_dev_key key = { .dev = dev, .op = op, .by_bio = by_bio };

	is_int(model_feed_dev_row(m, &key, &row), 0, "a row is taken");
}

static struct model_device about(__u32 dev, uint64_t targets, const char *name)
{
	struct model_device d = { .dev = dev, .targets = targets };

	snprintf(d.name, sizeof(d.name), "%s", name);
	return d;
}

static struct snapshot *look(struct model *m, uint64_t at_ns)
{
	struct model_view view = { 0 };
	struct snapshot *snap = NULL;

	is_int(model_tick(m, at_ns, &view, &snap), 0, "a snapshot");
	return snap;
}

static void test_window(void)
{
	struct model *m = new_model(1);
	struct model_device d = about(LOOP, 1, "loop3");
	struct snapshot *snap;
	const struct snap_device_op *op;

	memset(&row, 0, sizeof(row));
	add_request(1 << 20, 9 * SEC, 9 * SEC); /* before the window */
	feed(m, LOOP, WIRE_DEV_WRITE, 0);
	d.has_stat = d.has_in_flight = true;
	d.merges[1] = 100;
	d.busy_ms = 5000;
	is_int(model_feed_device(m, &d), 0, "the device is described");
	model_show_devices(m, false);
	model_start_window(m, SEC, 0);
	for (int i = 0; i < 99; i++)
		add_request(4096, 1000000, 9000000);
	add_request(512, 1000000, 9000000);
	row.sequential += 25;
	row.errors = 1;
	row.partial = 2;
	feed(m, LOOP, WIRE_DEV_WRITE, 0);
	d.merges[1] = 107;
	d.busy_ms = 5500;
	d.in_flight_writes = 4;
	model_feed_device(m, &d);
	snap = look(m, 3 * SEC);
	ok(snap->has_devices && snap->n_devices == 1, "one device");
	is_str(snap->devices[0].name, "loop3", "by its name");
	is_str(snap->devices[0].dev, "7:3", "and number");
	is_int((long long)snap->devices[0].n_ops, 1, "one operation");
	op = &snap->devices[0].ops[0];
	is_str(op->op, "write", "write");
	ok(op->count == 100 && op->bytes == 99 * 4096 + 512 && op->errors == 1 && op->partial == 2,
	   "what the window added, not what was before");
	ok(op->rate_hz.valid && fabs(op->rate_hz.v - 50) < 1e-9, "rate");
	ok(op->size.p50 == 4096 && op->size.p99 == 4096, "a size is the bucket's lower edge");
	is_int((long long)op->n_sizes, 2, "two sizes");
	ok(op->n_sizes == 2 && op->sizes[0].from_bytes == 512 && op->sizes[0].count == 1 &&
		   op->sizes[1].from_bytes == 4096 && op->sizes[1].count == 99,
	   "each with its requests in the window");
	ok(fabs(op->queue.mean - 1e6) < 1 && fabs(op->device.mean - 9e6) < 1, "times");
	ok(op->device.max < 10e6, "the maximum is the window's");
	ok(op->in_flight.valid && fabs(op->in_flight.v - 0.5) < 1e-9,
	   "in flight: 100 x 10 ms in 2 s");
	ok(op->sequential_pct.valid && op->sequential_pct.v == 25, "sequential share");
	ok(op->merges.valid && op->merges.v == 7, "merges");
	ok(snap->devices[0].busy_pct.valid && snap->devices[0].busy_pct.v == 25, "busy");
	ok(snap->devices[0].writes_now.valid && snap->devices[0].writes_now.v == 4, "now");
	snapshot_free(snap);
	/* the next window: nothing happens, and the device is there all the same */
	model_start_window(m, 3 * SEC, 0);
	snap = look(m, 4 * SEC);
	ok(snap->n_devices == 1 && snap->devices[0].n_ops == 0, "an idle device of a target");
	ok(snap->devices[0].busy_pct.valid && snap->devices[0].busy_pct.v == 0, "is not busy");
	snapshot_free(snap);
	model_free(m);
}

static void test_unknown(void)
{
	struct model *m = new_model(1);
	struct model_device d = about(DISK, 1, "");
	struct snapshot *snap;
	const struct snap_device_op *op;

	memset(&row, 0, sizeof(row));
	model_start_window(m, SEC, 0);
	row.count = 5;
	row.bytes = row.size_sum = 5 * 512;
	row.size[hist_bucket(512)] = 5;
	row.size_max = 512;
	feed(m, DISK, WIRE_DEV_READ, 0);
	memset(&row, 0, sizeof(row));
	row.count = 3;
	feed(m, DISK, WIRE_DEV_FLUSH, 0);
	model_feed_device(m, &d);
	snap = look(m, 2 * SEC);
	ok(!snap->has_devices && !snap->n_devices, "a table that was not there is not shown");
	snapshot_free(snap);
	model_show_devices(m, false);
	snap = look(m, 2 * SEC);
	is_int((long long)snap->devices[0].n_ops, 2, "two operations");
	is_str(snap->devices[0].name, "254:0", "without a name the number");
	op = &snap->devices[0].ops[0];
	ok(op->count == 5 && op->size.valid, "requests without times are counted");
	ok(!op->queue.valid && !op->device.valid && !op->in_flight.valid,
	   "their times are not known");
	ok(!op->merges.valid && !snap->devices[0].busy_pct.valid &&
		   !snap->devices[0].reads_now.valid,
	   "without statistics no merges");
	ok(op->sequential_pct.valid && op->sequential_pct.v == 0, "none was sequential");
	op = &snap->devices[0].ops[1];
	ok(!op->size.valid && !op->sequential_pct.valid && !op->merges.valid,
	   "a flush has neither size nor place");
	snapshot_free(snap);
	model_free(m);
}

static void test_who_sees(void)
{
	struct model *m = new_model(2);
	struct model_device second = about(LOOP, 1 << 2, "loop3"), none = about(DISK, 0, "vda");
	struct snapshot *snap;
	__u32 dev;

	memset(&row, 0, sizeof(row));
	model_start_window(m, SEC, 0);
	add_request(512, 1, 1);
	feed(m, DISK, WIRE_DEV_READ, 1);
	model_feed_device(m, &second);
	model_feed_device(m, &none);
	ok(model_device_nth(m, 0, &dev) && dev == (DISK), "the first that was fed");
	ok(model_device_nth(m, 1, &dev) && dev == (LOOP), "the second");
	ok(!model_device_nth(m, 2, &dev), "no third");
	model_show_devices(m, false);
	snap = look(m, 2 * SEC);
	is_int((long long)snap->n_devices, 1, "one device lies below a target");
	is_int((long long)snap->devices[0].targets, 2, "below the one at the second place");
	snapshot_free(snap);
	model_show_devices(m, true);
	snap = look(m, 2 * SEC);
	is_int((long long)snap->n_devices, 1, "all that did anything, and no other");
	ok(snap->devices[0].targets == UINT64_MAX && snap->devices[0].by_bio, "is shown to all");
	snapshot_free(snap);
	second.has_in_flight = true;
	second.in_flight_writes = 1;
	model_feed_device(m, &second);
	model_start_window(m, 2 * SEC, 0);
	snap = look(m, 3 * SEC);
	is_int((long long)snap->n_devices, 1, "one from which nothing comes back");
	is_str(snap->devices[0].name, "loop3", "is shown");
	snapshot_free(snap);
	model_free(m);
}

static void test_odd(void)
{
	struct wire_dev_key key = { .dev = LOOP, .op = WIRE_DEV_OP_COUNT };
	struct model *m = new_model(1);
	struct model_device d = about(LOOP, 1, "loop\x1b[3");
	struct snapshot *snap;

	memset(&row, 0, sizeof(row));
	is_int(model_feed_dev_row(m, &key, &row), -EINVAL, "no such operation");
	d.n_stack = 1000;
	snprintf(d.stack[0], sizeof(d.stack[0]), "a\nb");
	d.has_stat = true;
	d.merges[0] = 50;
	d.busy_ms = 50;
	model_feed_device(m, &d);
	model_show_devices(m, false);
	model_start_window(m, SEC, 0);
	add_request(512, 1, 1);
	feed(m, LOOP, WIRE_DEV_READ, 0);
	/* it was taken away, and another one got its number */
	d.merges[0] = 3;
	d.busy_ms = 10;
	model_feed_device(m, &d);
	d.merges[0] = 5;
	model_feed_device(m, &d);
	snap = look(m, 2 * SEC);
	ok(snap->devices[0].ops[0].merges.v == 2, "statistics that fell are a new baseline");
	is_int(snap->devices[0].n_stack, SNAP_DEVICE_STACK, "the stack is cut");
	is_str(snap->devices[0].stack[0], "a?b", "names are made harmless");
	is_str(snap->devices[0].name, "loop?[3", "this one too");
	snapshot_free(snap);
	is_int(model_feed_device(m, &(struct model_device){ .dev = 5 }), 0, "another one");
	for (__u32 i = 0; i < 1100; i++) {
		d.dev = 100 + i;
		model_feed_device(m, &d);
	}
	is_int(model_feed_device(m, &d), -ENOSPC, "too many are refused");
	model_free(m);
}

int main(void)
{
	test_window();
	test_unknown();
	test_who_sees();
	test_odd();
	return tap_done();
}
