/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verdict_rows.c: what single rows of the table take for their own, and the evidence that they
 * add: threads that lack a CPU, system calls that compute, sleep or wait for something that a layer
 * knows, the devices below a target, what nobody should wait for even where little is asked. That
 * each cause is named at all is test_verdict.c's business.
 */
#include <math.h>

#include "verdict_bed.h"

#define IOT   "performance/io-threads"
#define POSIX "storage/posix"

static void test_cpu(void)
{
	static const struct row rows[] = { { 0, "server", "protocol/server", 300 },
					   { 1, "io-threads", IOT, 900 },
					   { 2, "posix", POSIX, 400 },
					   { 3, "pwrite64", "syscall", 300 },
					   END };
	struct snapshot *s = start("brick");

	add_op(s, "brick", "write", 8000, rows);
	add_pool(s, "io-threads", 4, 1.4, 16);
	add_pool(s, "event threads", 2, 0.6, 14);
	judge_is(s, 0, "cpu  high", "threads that wait for a CPU");
	ok(has_evidence(s, 0, "waited 30.0 s for a CPU and ran 2.0 s, in 10.0 s"), "for how long");
	snapshot_free(s);

	/* the same without io-threads: the process's threads altogether */
	s = start("brick");
	add_op(s, "brick", "write", 8000,
	       (const struct row[]){
		       { 0, "server", "protocol/server", 300 }, { 1, "posix", POSIX, 900 }, END });
	add_pool(s, "event threads", 2, 2, 16);
	judge_is(s, 0, "cpu  high", "without a pool of io-threads, too");
	snapshot_free(s);
}

/* It writes, syncs, and computes on a host that has no CPU for it. */
static struct snapshot *starved_process(double fsync_us, double preempted_us)
{
	const struct row rows[] = { { 0, "fsync", "syscall", fsync_us },
				    { 1, "block flush", "block", 1900 },
				    { 1, "preempted", "sched", preempted_us },
				    { 1, "wakeup", "sched", preempted_us / 4 },
				    END };
	struct snapshot *s = start("process");

	add_op(s, "local", "fsync", 2000, rows)->coverage_pct.valid = false;
	add_pool(s, "app", 2, 0.3, 9);
	return s;
}

/* What a plain process lacks a CPU for between its calls is no call's time. */
static void test_cpu_of_process(void)
{
	struct snapshot *s = starved_process(100, 400);

	judge_is(s, 0, "device block flush high", "a process that is starved between its calls");
	judge_is(s, 1, "cpu  low", "and a little inside them");
	ok(fabs(s->targets[0].causes[1].share_pct.v - 20) < 0.1, "which is 20 %%");
	ok(has_evidence(s, 1, "inside its calls they waited 1.00 s for a CPU, of 5.00 s"),
	   "it says how long");
	ok(has_evidence(s, 1, "its threads waited 9.0 s for a CPU"), "of how much altogether");
	snapshot_free(s);

	s = starved_process(100, 8000);
	judge_is(s, 0, "cpu  high", "a process that is starved inside its calls");
	snapshot_free(s);

	/* without the layer that times it, there are the kernel's sums alone */
	s = starved_process(4000, 0);
	s->off = calloc(1, sizeof(*s->off));
	SET(s->off[0].what, "sched");
	s->off[0].target = SNAP_ALL_TARGETS;
	s->n_off = 1;
	judge_is(s, 0, "cpu  medium", "where it cannot be told apart it is not sure");
	ok(has_evidence(s, 0, "also between its calls"), "and says why");
	snapshot_free(s);
}

/* Little is asked, and each request is quick, but most of that is one layer's: 300 us or less. */
static const struct {
	const char *id, *type;
	double self_us, runnable;
	const char *would;
} light[] = {
	{ "io-threads", IOT, 210, 0, "would be first: io-threads-queue io-threads, " },
	{ "locks", "features/locks", 210, 2, "would be first: cpu, 67 %" },
	{ "xfs lock wait", "xfs", 210, 0, "would be first: inode-lock xfs lock wait, 70 %" },
	{ "xfs log cil", "xfs", 210, 0, "would be first: log xfs log cil, 70 %" },
	{ "throttle", "throttle", 110, 0, "would be first: throttle throttle, 55 %" },
	{ "block held back", "block", 210, 0, "would be first: block-held block held back, 70 %" },
	{ "block queue", "block", 210, 0, "would be first: block-queue block queue, 70 %" },
	/* under a half, and what requests are for */
	{ "throttle", "throttle", 86, 0, NULL },
	{ "block device", "block", 210, 0, NULL },
	{ "folio read", "writeback", 210, 0, NULL },
	{ "locks", "features/locks", 210, 0, NULL },
};

static void test_light(void)
{
	for (size_t i = 0; i < sizeof(light) / sizeof(light[0]); i++) {
		const struct row rows[] = { { 0, "server", "protocol/server", 30 },
					    { 1, light[i].id, light[i].type, light[i].self_us },
					    { 2, "posix", POSIX, 60 },
					    END };
		struct snapshot *s = start("brick");

		add_op(s, "brick", "write", 10000, rows); /* 0.3 in flight */
		add_pool(s, "io-threads", 4, 0.5, light[i].runnable);
		judge_is(s, 0,
			 light[i].would ? "nothing-stands-out  medium" : "nothing-stands-out  high",
			 light[i].id);
		ok(has_evidence(s, 0, light[i].would ? light[i].would : "first of all causes: "),
		   "%s is said", light[i].id);
		snapshot_free(s);
	}
}

/* System calls that compute are no wait. */
static void test_busy_is_no_wait(void)
{
	static const struct row rows[] = { { 0, "server", "protocol/server", 20 },
					   { 1, "io-threads", IOT, 30 },
					   { 2, "posix", POSIX, 20 },
					   { 3, "pread64", "syscall", 90 },
					   END };
	struct snapshot *s = start("brick");

	add_op(s, "brick", "read", 80000, rows); /* 8.8 s below io-threads */
	add_pool(s, "io-threads", 2, 8.5, 0.2);
	judge_is(s, 0, "nothing-stands-out  high", "reads from the page cache");
	snapshot_free(s);
}

/*
 * Creates in one directory: one waits for the log, all others for the directory, in no layer that
 * was looked at.
 */
static void test_unexplained(void)
{
	static const struct row rows[] = { { 0, "openat", "syscall", 2200 },
					   { 1, "xfs log grant", "xfs", 150 },
					   END };
	struct snapshot *s = start("process");

	add_op(s, "local", "openat", 11000, rows)->coverage_pct.valid = false;
	add_pool(s, "app", 11, 0.3, 0.1);
	judge_is(s, 0, "syscall openat medium", "where, but not why");
	ok(has_evidence(s, 0, "in no layer that was looked at"), "which it says");
	snapshot_free(s);
}

/* Half of the time one has the lock and copies, as much of it as it gets a CPU. */
static void test_waits_are_not_syscalls(void)
{
	static const struct row rows[] = { { 0, "pwrite64", "syscall", 30 },
					   { 1, "xfs", "xfs", 1000 },
					   { 1, "xfs lock wait", "xfs", 1000 },
					   END };
	struct snapshot *s = start("process");

	add_op(s, "local", "pwrite64", 4000, rows)->coverage_pct.valid = false;
	add_pool(s, "app", 2, 4, 0.1);
	judge_is(s, 0, "inode-lock xfs lock wait medium", "the lock");
	is_int(s->targets[0].n_causes, 1, "and what has it sleeps in no system call");
	snapshot_free(s);
}

/* What the device's own table says of it. */
static void test_device(void)
{
	static const struct row rows[] = { { 0, "server", "protocol/server", 20 },
					   { 1, "io-threads", IOT, 60 },
					   { 2, "posix", POSIX, 30 },
					   { 3, "pwrite64", "syscall", 40 },
					   { 4, "block device", "block", 7000 },
					   END };
	struct snapshot *s = start("brick");

	add_op(s, "brick", "write", 4000, rows);
	add_pool(s, "io-threads", 8, 0.4, 0.1);
	s->n_devices = 3;
	s->devices = calloc(3, sizeof(*s->devices));
	SET(s->devices[0].name, "sda");
	s->devices[0].busy_pct = num(99); /* somebody else's */
	SET(s->devices[1].name, "md0");
	s->devices[1].busy_pct = num(93);
	s->devices[1].targets = 1;
	SET(s->devices[2].name, "loop7");
	SET(s->devices[2].stack[0], "md0");
	s->devices[2].n_stack = 1;
	s->devices[2].busy_pct = num(61);
	s->devices[2].targets = 1;
	s->devices[2].ops = calloc(1, sizeof(*s->devices[2].ops));
	s->devices[2].n_ops = 1;
	SET(s->devices[2].ops[0].op, "write");
	s->devices[2].ops[0].rate_hz = num(400);
	s->devices[2].ops[0].device = dist(4000, 7 * MS, 6 * MS, 20 * MS, 90 * MS);
	s->devices[2].ops[0].queue = dist(4000, 80 * US, 70 * US, 90 * US, 90 * US);
	verdict_judge(s);
	ok(has_evidence(s, 0, "loop7 is busy in 61 %"), "how busy the target's device is");
	ok(has_evidence(s, 0, "write 400 a second, each 80us in its queue and 7.0ms in it"),
	   "how long it takes");
	ok(has_evidence(s, 0, "md0 is busy in 93 %"), "a busier one below it");
	snapshot_free(s);
}

int main(void)
{
	test_cpu();
	test_cpu_of_process();
	test_light();
	test_busy_is_no_wait();
	test_unexplained();
	test_waits_are_not_syscalls();
	test_device();
	return tap_done();
}
