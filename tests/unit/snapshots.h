/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots.h: fixed snapshots that the tests of the sinks share: a brick's chain, parallel
 * replicas, memory only, unsplit requests, hostile names, nothing at all. Figures are made up, but
 * add up.
 */
#ifndef BRICKTOP_TEST_SNAPSHOTS_H
#define BRICKTOP_TEST_SNAPSHOTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "snapshot.h"

#define US 1000.0
#define MS 1000000.0

static struct snap_num num(double v)
{
	return (struct snap_num){ v, true };
}

static struct snap_dist dist(uint64_t count, double mean, double p50, double p99, double max)
{
	return (struct snap_dist){ .valid = true,
				   .has_quantiles = true,
				   .count = count,
				   .mean = mean,
				   .p50 = p50,
				   .p90 = (p50 + p99) / 2,
				   .p99 = p99,
				   .p999 = (p99 + max) / 2,
				   .max = max };
}

static struct snap_dist mean_only(uint64_t count, double mean)
{
	return (struct snap_dist){ .valid = true, .count = count, .mean = mean };
}

static void set_text(char *dst, size_t size, const char *src)
{
	snprintf(dst, size, "%s", src);
}

#define SET(field, text) set_text(field, sizeof(field), text)

static struct snapshot *new_snapshot(size_t n_targets)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	s->targets = calloc(n_targets ? n_targets : 1, sizeof(*s->targets));
	s->n_targets = n_targets;
	s->mono_ns = 1000000000000ULL;
	s->wall_ns = 1700000000123456789LL;
	s->window_secs = 10;
	SET(s->kernel, "6.1.0-18-amd64");
	return s;
}

static void fill_target(struct snap_target *t, const char *kind, const char *name, size_t n_ops)
{
	SET(t->kind, kind);
	SET(t->name, name);
	SET(t->version, "10.3");
	SET(t->layout, "10.2-10.5");
	t->pid = 4211;
	t->ops = calloc(n_ops ? n_ops : 1, sizeof(*t->ops));
	t->n_ops = n_ops;
}

static struct snap_op *fill_op(struct snap_op *op, const char *root, const char *origin,
			       const char *name, uint64_t count, size_t n_layers)
{
	SET(op->root, root);
	SET(op->origin, origin);
	SET(op->op, name);
	op->count = count;
	op->rate_hz = num((double)count / 10);
	op->has_errors = true;
	op->layers = calloc(n_layers ? n_layers : 1, sizeof(*op->layers));
	op->n_layers = n_layers;
	return op;
}

/* A layer measured; share of the operation's mean as accounting defines it. */
static struct snap_layer *fill_layer(struct snap_op *op, size_t i, unsigned int depth,
				     const char *id, double self, double incl, uint64_t count)
{
	struct snap_layer *l = &op->layers[i];

	SET(l->id, id);
	snprintf(l->path, sizeof(l->path), "%s%s", depth ? "server/" : "", id);
	SET(l->kind, "xlator");
	l->has_errors = l->has_bytes = depth == 0;
	snprintf(l->type, sizeof(l->type), "features/%s", id);
	l->depth = depth;
	l->count = count;
	l->self = dist(count, self, self * 0.8, self * 6, self * 40);
	l->incl = dist(count, incl, incl * 0.9, incl * 4, incl * 30);
	if (op->incl.valid)
		l->share_pct =
			num(100 * self * (double)count / (op->incl.mean * (double)op->count));
	return l;
}

static void fill_write(struct snap_op *op)
{
	struct snap_layer *l;

	fill_op(op, "brick", "user", "write", 21510, 8);
	op->has_bytes = true;
	op->bytes = 2819358720;
	op->in_flight = num(3.1);
	op->in_flight_oldest_ns = num(900 * US);
	op->coverage_pct = num(100);
	op->sum_check_pct = num(99.97);
	op->incl = dist(21510, 455 * US, 402 * US, 1.9 * MS, 31 * MS);
	op->unattributed_ns = num(2 * US);
	fill_layer(op, 0, 0, "server", 14 * US, 455 * US, 21510);
	fill_layer(op, 1, 1, "io-stats", 6 * US, 439 * US, 21510);
	fill_layer(op, 2, 2, "io-threads", 91 * US, 433 * US, 21510);
	fill_layer(op, 3, 3, "changetimerecorder", 12 * US, 342 * US, 21510);
	fill_layer(op, 4, 4, "locks", 9 * US, 330 * US, 21510);
	l = fill_layer(op, 5, 5, "posix", 26.8 * US, 321 * US, 21510);
	SET(l->type, "storage/posix");
	l = fill_layer(op, 6, 6, "pwrite64", 288 * US, 288 * US, 21510);
	SET(l->kind, "syscall");
	l->bytes = 2819358720;
	l->errors = 3;
	l->has_errors = l->has_bytes = true;
	l = fill_layer(op, 7, 6, "fstat", 3.1 * US, 3.1 * US, 43020);
	SET(l->kind, "syscall");
}

static void fill_small_ops(struct snap_op *ops)
{
	struct snap_op *op = fill_op(&ops[0], "brick", "user", "fsync", 12, 3);

	op->errors = 1;
	op->in_flight = num(0);
	op->coverage_pct = num(91.7);
	op->sum_check_pct = num(100);
	op->incl = dist(12, 40 * MS, 35 * MS, 90 * MS, 250e9);
	fill_layer(op, 0, 0, "server", 20 * US, 40 * MS, 12);
	fill_layer(op, 1, 1, "posix", 1 * MS, 39.98 * MS, 12);
	SET(fill_layer(op, 2, 2, "fsync", 38.98 * MS, 38.98 * MS, 12)->kind, "syscall");
	op = fill_op(&ops[1], "brick", "internal", "lookup", 7, 1);
	op->incl = dist(7, 120 * US, 100 * US, 300 * US, 310 * US);
	fill_layer(op, 0, 0, "server", 120 * US, 120 * US, 7);
	op = fill_op(&ops[2], "background", "user", "xattrop", 3, 1);
	op->incl = dist(3, 80 * US, 80 * US, 90 * US, 90 * US);
	fill_layer(op, 0, 0, "index", 80 * US, 80 * US, 3);
	op = fill_op(&ops[3], "local", "user", "openat", 2, 1);
	op->incl = dist(2, 15 * US, 15 * US, 16 * US, 16 * US);
	SET(fill_layer(op, 0, 0, "openat", 15 * US, 15 * US, 2)->kind, "syscall");
}

/* A brick: a chain that ends in two syscalls, every section, and everything the foot can say. */
__attribute__((unused)) static struct snapshot *snapshot_chain(void)
{
	struct snapshot *s = new_snapshot(1);
	struct snap_target *t = &s->targets[0];

	fill_target(t, "brick", "perfvol:/bricks/b1", 5);
	SET(t->device, "loop0");
	SET(t->fstype, "xfs");
	t->sum_check_pct = num(99.4);
	t->checks = (struct snap_checks){
		.walked = 21534, .holds = 21405, .outside = 2, .unsplit = 127, .open = 4
	};
	t->cost = (struct snap_cost){ .core_pct = num(0.42),
				      .target_pct = num(0.6),
				      .duty_pct = num(100),
				      .walk_duty_pct = num(100),
				      .own_pct = num(0.1),
				      .probe_hits = 21534,
				      .uprobe_hits = 2150,
				      .tracepoint_hits = 19384,
				      .hit_ns = 480,
				      .tracepoint_hit_ns = 52 };
	t->lost = (struct snap_lost){ .total = 131, .ledger = 127, .uprobe_missed = 4 };
	t->lost.has_recursion = t->lost.has_uprobe_missed = true;
	t->probes = (struct snap_probes){ .valid = true, .callbacks = 102, .stepped = 1 };
	SET(t->probes.module, "server.so");
	SET(t->probes.insn, "push r15");
	SET(t->probes.kind, "uprobe-multi");
	t->oldest = (struct snap_oldest){ .valid = true, .age_ns = 30.2e9, .app_pid = 7710 };
	SET(t->oldest.op, "write");
	SET(t->oldest.xlator, "delay-gen");
	SET(t->oldest.file, "/data/a/very/deep/folder/file.bin");
	fill_write(&t->ops[0]);
	fill_small_ops(&t->ops[1]);
	s->off = calloc(2, sizeof(*s->off));
	s->n_off = 2;
	s->off[0].target = SNAP_ALL_TARGETS;
	s->off[1].target = 0;
	SET(s->off[1].what, "split tails");
	SET(s->off[1].reason, "2 entries have no cheap instruction to probe: they stay grouped");
	SET(s->off[0].what, "syscall readlink");
	SET(s->off[0].reason, "tracepoint 'sys_enter_readlink' is not in this kernel (ENOENT)");
	return s;
}

/* A client: replicate winds to three bricks at once, so the shares add up to more than 100 %. */
__attribute__((unused)) static struct snapshot *snapshot_parallel(void)
{
	struct snapshot *s = new_snapshot(1);
	struct snap_target *t = &s->targets[0];
	struct snap_op *op;
	struct snap_layer *l;

	fill_target(t, "client", "perfvol on /mnt/perf", 1);
	t->sum_check_pct = num(100);
	t->checks = (struct snap_checks){ .walked = 4000, .holds = 4000 };
	t->cost = (struct snap_cost){ .core_pct = num(1.9),
				      .target_pct = num(4.8),
				      .duty_pct = num(62.5),
				      .walk_duty_pct = num(100),
				      .own_pct = num(0.2),
				      .probe_hits = 4000,
				      .uprobe_hits = 4000,
				      .hit_ns = 510,
				      .budget_pct = num(5) };
	op = fill_op(&t->ops[0], "client", "user", "write", 4000, 9);
	op->has_bytes = true;
	op->bytes = 16384000;
	op->uncovered = 1500;
	op->uncovered_ns = 1500 * 950 * US;
	op->coverage_pct = num(62.5);
	op->sum_check_pct = num(100);
	op->incl = dist(4000, 1.5 * MS, 1.4 * MS, 3 * MS, 8 * MS);
	fill_layer(op, 0, 0, "fuse", 30 * US, 1.5 * MS, 4000);
	fill_layer(op, 1, 1, "dht", 10 * US, 1.47 * MS, 4000);
	fill_layer(op, 2, 2, "replicate-0", 60 * US, 1.46 * MS, 4000);
	fill_layer(op, 3, 3, "client-0", 0.7 * MS, 0.7 * MS, 8000);
	fill_layer(op, 4, 3, "client-1", 0.7 * MS, 0.7 * MS, 8000);
	l = fill_layer(op, 5, 3, "delay-gen+client-2", 1.1 * MS, 1.1 * MS, 4000);
	l->state = SNAP_DERIVED;
	SET(l->reason, "these xlators share a frame; --split-tails tells them apart");
	fill_layer(op, 6, 3, "read-ahead-of-a-quite-long-name", 20 * US, 80 * US, 400);
	fill_layer(op, 7, 4, "quick-read", 60 * US, 60 * US, 400);
	l = fill_layer(op, 8, 1, "rpc.wire", 0, 0, 0);
	l->state = SNAP_OFF;
	SET(l->reason, "needs a kernel with tracepoint 'sock_send_length'");
	for (size_t i = 0; i < op->n_layers; i++)
		op->layers[i].self.count = op->layers[i].self.count * 5 / 8;
	return s;
}

__attribute__((unused)) static struct snapshot *snapshot_memory(void)
{
	static const struct {
		const char *id;
		double incl, self;
	} rows[] = { { "server", 0, -1 },
		     { "io-stats", 439, 6 },
		     { "io-threads", 433, 91 },
		     { "posix", 342, 342 } };
	struct snapshot *s = new_snapshot(1);
	struct snap_target *t = &s->targets[0];
	struct snap_op *op;

	s->memory_only = true;
	s->window_secs = 0;
	fill_target(t, "brick", "perfvol:/bricks/b1", 1);
	op = fill_op(&t->ops[0], "brick", "user", "write", 1234567, 4);
	op->source = SNAP_FROM_MEMORY;
	op->rate_hz.valid = false;
	op->in_flight = num(2);
	op->incl = mean_only(1234567, 439 * US);
	for (size_t i = 0; i < 4; i++) {
		struct snap_layer *l =
			fill_layer(op, i, (unsigned int)i, rows[i].id, 0, 0, 1234567);

		l->self.valid = false;
		l->share_pct.valid = false;
		l->incl = mean_only(1234567, rows[i].incl * US);
		l->incl.valid = i > 0;
		l->est_self_ns = num(rows[i].self * US);
		l->est_self_ns.valid = i > 0;
		l->errors = i == 3 ? 17 : 0;
		l->has_errors = i != 2; /* several rows below it would have told */
		l->has_bytes = false;
	}
	return s;
}

/* Half of the reads could not be split; stat has no known top callback. */
__attribute__((unused)) static struct snapshot *snapshot_unsplit(void)
{
	struct snapshot *s = new_snapshot(1);
	struct snap_target *t = &s->targets[0];
	struct snap_op *op;

	fill_target(t, "brick", "perfvol:/bricks/b2", 2);
	t->gone = true;
	t->gone_after_secs = num(3.25);
	t->restarts = 1;
	t->sum_check_pct = num(50);
	t->checks = (struct snap_checks){ .walked = 200, .holds = 100, .unsplit = 100 };
	t->lost = (struct snap_lost){ .total = 103, .frames = 99, .order = 1, .unreadable = 3 };
	op = fill_op(&t->ops[0], "brick", "user", "read", 200, 2);
	op->coverage_pct = num(48.3);
	op->sum_check_pct = num(50);
	op->incl = dist(200, 300 * US, 290 * US, 900 * US, 2 * MS);
	op->unattributed_ns = num(150 * US);
	fill_layer(op, 0, 0, "server", 50 * US, 300 * US, 200);
	fill_layer(op, 1, 1, "posix", 200 * US, 200 * US, 100);
	op = fill_op(&t->ops[1], "brick", "user", "stat", 40, 1);
	op->source = SNAP_FROM_MEMORY;
	op->incl = mean_only(40, 21 * US);
	fill_layer(op, 0, 0, "io-stats", 0, 0, 40);
	op->layers[0].self.valid = false;
	op->layers[0].share_pct.valid = false;
	op->layers[0].incl = mean_only(40, 21 * US);
	return s;
}

/*
 * What text_sanitize() would have removed, and what it keeps: quotes, wide and right-to-left text.
 * Two targets, and something lost of nobody knows which.
 */
__attribute__((unused)) static struct snapshot *snapshot_hostile(void)
{
	struct snapshot *s = new_snapshot(2);
	struct snap_op *op;

	s->lost_unassigned = (struct snap_lost){ .total = 5, .storage_busy = 3, .recursion = 2 };
	s->lost_unassigned.has_recursion = true;
	s->lost_devices = (struct snap_lost){ .total = 4711, .map_full = 4711 };
	fill_target(&s->targets[0], "brick", "v\033[31mol:/b\n\"x\\\xff", 1);
	SET(s->targets[0].device, "/dev/\u65e5\u672c\u8a9e");
	SET(s->targets[0].fstype, "ext4");
	op = fill_op(&s->targets[0].ops[0], "brick", "user", "wr\x9bite", 1, 4);
	op->incl = dist(1, 1 * US, 1 * US, 1 * US, 1 * US);
	fill_layer(op, 0, 0, "\u65e5\u672c\u8a9e-\u00fcber-xlator", 0.1 * US, 1 * US, 1);
	fill_layer(op, 1, 1, "%s%n%x", 0.2 * US, 0.9 * US, 1);
	fill_layer(op, 2, 2, "\r\ttab\u202eevil", 0.3 * US, 0.7 * US, 1);
	fill_layer(op, 3, 3, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		   0.4 * US, 0.4 * US, 1);
	fill_target(&s->targets[1], "client", "", 0);
	s->targets[1].pid = 0;
	return s;
}

/* Not a single figure is valid. */
__attribute__((unused)) static struct snapshot *snapshot_invalid(void)
{
	struct snapshot *s = new_snapshot(1);
	struct snap_op *op;

	fill_target(&s->targets[0], "brick", "v:/b", 1);
	op = fill_op(&s->targets[0].ops[0], "brick", "user", "write", 0, 1);
	op->rate_hz.valid = false;
	fill_layer(op, 0, 0, "server", 0, 0, 0);
	op->layers[0].self.valid = false;
	op->layers[0].incl.valid = false;
	op->has_errors = op->layers[0].has_errors = op->layers[0].has_bytes = false;
	return s;
}

/* No GlusterFS, and idle. */
__attribute__((unused)) static struct snapshot *snapshot_process(void)
{
	struct snapshot *s = new_snapshot(1);

	fill_target(&s->targets[0], "process", "dd", 0);
	SET(s->targets[0].version, "-");
	return s;
}

/* No GlusterFS, and on XFS: what its calls are made of. */
__attribute__((unused)) static struct snapshot *snapshot_calls(void)
{
	struct snapshot *s = new_snapshot(1);
	struct snap_op *op;

	fill_target(&s->targets[0], "process", "postgres", 2);
	SET(s->targets[0].version, "-");
	op = fill_op(&s->targets[0].ops[0], "local", "user", "fsync", 120, 4);
	op->incl = dist(120, 5 * MS, 4 * MS, 31 * MS, 48 * MS);
	SET(fill_layer(op, 0, 0, "fsync", 250 * US, 5 * MS, 120)->kind, "syscall");
	SET(fill_layer(op, 1, 1, "xfs", 750 * US, 4.75 * MS, 120)->kind, "xfs");
	SET(fill_layer(op, 2, 2, "xfs log iclog", 0, 4 * MS, 100)->kind, "xfs");
	SET(fill_layer(op, 3, 3, "block flush", 4 * MS, 4 * MS, 120)->kind, "block");
	op = fill_op(&s->targets[0].ops[1], "local", "user", "close", 240, 1);
	op->incl = dist(240, 2 * US, 2 * US, 4 * US, 31 * US);
	SET(fill_layer(op, 0, 0, "close", 2 * US, 2 * US, 240)->kind, "syscall");
	return s;
}

__attribute__((unused)) static struct snapshot *snapshot_empty(void)
{
	return new_snapshot(0);
}

#endif
