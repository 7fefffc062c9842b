// SPDX-License-Identifier: Apache-2.0
/*
 * test_meter.c: the arithmetic of the cost, the CPU clocks, and a calibration on this machine.
 * Times are compared only with each other: a step costs more than a trap, a trap more than nothing.
 */
#include "meter.h"

#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ULL

/* The function that calibration probes: its first byte must be its own again afterwards. */
extern void meter_emulated_site(void);

static bool near(double got, double want)
{
	return got > want - 1e-6 && got < want + 1e-6;
}

static const struct meter_calibration all_known = {
	.has_emulated = true,
	.emulated_ns = 1000,
	.has_stepped = true,
	.stepped_ns = 20000,
	.has_tracepoint = true,
	.tracepoint_ns = 100,
	.filter_ns = 40,
	.count_ns = 50,
};
static const struct meter_calibration half_known = { .has_emulated = true, .emulated_ns = 1000 };

static const struct meter_interval busy_second = {
	.wall_ns = 1000 * MS,
	.own_cpu_ns = 2 * MS,
	.uprobe_run_ns = 1 * MS,
	.tracepoint_run_ns = 2 * MS,
	.emulated_hits = 1000,
	.stepped_hits = 100,
	.tracepoint_hits = 20000,
	.has_target = true,
	.target_cpu_ns = 100 * MS,
	.target = { .emulated_hits = 550,
		    .stepped_hits = 0,
		    .has_tracepoints = true,
		    .tracepoint_hits = 2000,
		    .tracepoint_work_ns = MS / 2 },
};

static void test_core(void)
{
	struct meter_interval in = busy_second;
	struct meter_cost cost;

	meter_compute(&all_known, &in, &cost);
	/* 1 ms + 2 ms + 2 ms of traps, 3 ms of BPF, 2 ms of its own */
	is_int((long long)cost.trap_ns, 5 * MS, "hits times their price");
	ok(cost.bpf_ns == 3 * MS && cost.own_ns == 2 * MS, "the other parts");
	ok(cost.has_core && near(cost.core_pct, 1.0), "of a core: %g %%", cost.core_pct);
	ok(cost.has_own && near(cost.own_pct, 0.2), "of it its own CPU time: %g %%", cost.own_pct);

	meter_compute(&half_known, &in, &cost);
	ok(!cost.has_core && !cost.has_target, "hits without a price: not known");
	in.stepped_hits = in.tracepoint_hits = 0;
	meter_compute(&half_known, &in, &cost);
	ok(cost.has_core && near(cost.core_pct, 0.6), "a price without hits is not needed");
	in.wall_ns = 0;
	meter_compute(&all_known, &in, &cost);
	ok(!cost.has_core, "an interval without length has no share");
}

static void test_target(void)
{
	struct meter_interval in = busy_second;
	struct meter_cost cost;

	meter_compute(&all_known, &in, &cost);
	/* 0.55 ms of traps, half of 1 ms run time, 2000 x (100 + 50) ns, 0.5 ms of work */
	is_int((long long)cost.target_ns, 1850000, "only what its own threads hit");
	ok(cost.has_target && near(cost.target_pct, 1.85), "of the target: %g %%", cost.target_pct);

	in.target.emulated_hits = in.target.tracepoint_hits = in.target.tracepoint_work_ns = 0;
	in.target_cpu_ns = 1;
	meter_compute(&all_known, &in, &cost);
	ok(cost.has_target && near(cost.target_pct, 0),
	   "a target that hit nothing paid nothing, whatever the host did: %g %%", cost.target_pct);

	in = busy_second;
	in.uprobe_hits = in.emulated_hits + in.stepped_hits + 1;
	meter_compute(&all_known, &in, &cost);
	ok(!cost.has_core && !cost.has_target && cost.has_own,
	   "a hit whose run time is not known: only bricktop's own cost is");
	in.uprobe_hits = 0;
	in.target.emulated_hits = 2000;
	in.tracepoint_hits = in.target.tracepoint_hits = in.target.tracepoint_work_ns = 0;
	meter_compute(&all_known, &in, &cost);
	is_int((long long)cost.target_ns, 3 * MS, "never more than all of the uprobes' run time");

	in = busy_second;
	in.target_cpu_ns = MS;
	meter_compute(&all_known, &in, &cost);
	ok(near(cost.target_pct, 100), "nor than the target used: %g %%", cost.target_pct);

	in = busy_second;
	in.target.has_tracepoints = false;
	meter_compute(&all_known, &in, &cost);
	ok(cost.has_core && !cost.has_target, "calls that were not counted: not known");
	in.tracepoint_hits = in.target.tracepoint_hits = 0;
	meter_compute(&all_known, &in, &cost);
	ok(cost.has_target, "nor needed where no tracepoint is in");
	in.target_cpu_ns = 0;
	meter_compute(&all_known, &in, &cost);
	ok(cost.has_core && !cost.has_target, "an idle target has no share");
	in = busy_second;
	in.not_counted = true;
	meter_compute(&all_known, &in, &cost);
	ok(!cost.has_core && !cost.has_target && cost.has_own,
	   "hits that nobody counted: only the own CPU time is known");
	in = busy_second;
	in.stepped_hits = 0;
	in.target.stepped_hits = 1;
	meter_compute(&(struct meter_calibration){ .has_emulated = true, .has_tracepoint = true },
		      &in, &cost);
	ok(cost.has_core && !cost.has_target, "a hit of the target's that has no price");
	in.has_target = false;
	in.target_cpu_ns = 5;
	meter_compute(&all_known, &in, &cost);
	ok(!cost.has_target, "nor has none");
}

/* What measuring adds is not what bricktop costs. */
static void test_added(void)
{
	struct meter_calibration cal = all_known;
	struct meter_interval in = busy_second;
	struct meter_cost cost;

	cal.has_empty = cal.has_clock = true;
	cal.empty_ns = 40;
	cal.clock_ns = 30;
	in.target.timed_hits = 1000;
	meter_compute(&cal, &in, &cost);
	/* 1 ms less 1100 x 40 ns, 2 ms less 20000 x 40 ns */
	is_int((long long)cost.bpf_ns, 956000 + 1200000, "of each hit's run time");
	is_int((long long)cost.trap_ns, 5 * MS, "the traps are what they were");
	/* 0.55 ms of traps, half of 0.956 ms, 2000 x 150 ns, 0.5 ms less 1000 x 30 ns */
	is_int((long long)cost.target_ns, 550000 + 478000 + 300000 + 470000, "and in the target");

	cal.empty_ns = cal.clock_ns = 1e6;
	meter_compute(&cal, &in, &cost);
	ok(cost.bpf_ns == 0 && cost.target_ns == 850000, "never less than nothing");
}

static void test_since(void)
{
	struct meter_target now = { .emulated_hits = 10,
				    .stepped_hits = 20,
				    .tracepoint_hits = 30,
				    .tracepoint_work_ns = 40,
				    .timed_hits = 50 };
	const struct meter_target before = { .emulated_hits = 1,
					     .stepped_hits = 2,
					     .tracepoint_hits = 3,
					     .tracepoint_work_ns = 4,
					     .timed_hits = 5 };

	meter_target_since(&now, &before);
	ok(now.emulated_hits == 9 && now.stepped_hits == 18 && now.tracepoint_hits == 27 &&
		   now.tracepoint_work_ns == 36 && now.timed_hits == 45,
	   "each of a target's counts since an earlier reading");
}

static void burn_ms(unsigned int ms)
{
	struct timespec ts;
	uint64_t start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	start = now = (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
	while (now - start < ms * MS) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		now = (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
	}
}

static void *burn_thread(void *arg)
{
	burn_ms(30);
	return arg;
}

/* 20 ms in the main thread and 30 ms in one that has ended. */
static void burn_both(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, burn_thread, NULL))
		pthread_join(thread, NULL);
	burn_ms(20);
}

static void test_cpu_time(void)
{
	uint64_t before = 0, after = 0, ns = 0;
	int pipes[2];
	char byte;
	pid_t pid;

	is_int(meter_own_cpu_ns(&before), 0, "own CPU time");
	burn_both();
	is_int(meter_own_cpu_ns(&after), 0, "and again");
	ok(after - before >= 50 * MS, "it holds what both threads used: %.1f ms",
	   (double)(after - before) / (double)MS);
	if (pipe(pipes)) {
		ok(false, "pipe");
		return;
	}
	pid = fork();
	if (pid == 0) {
		burn_both();
		if (write(pipes[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	is_int(read(pipes[0], &byte, 1), 1, "a child works");
	is_int(meter_target_cpu_ns(pid, &ns), 0, "the CPU time of another process");
	ok(ns >= 50 * MS, "holds its ended thread's too: %.1f ms", (double)ns / (double)MS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	is_int(meter_target_cpu_ns(pid, &ns), -ESRCH, "a process that is gone");
}

static void test_calibration(enum uprobe_kind kind, const char *name)
{
	const volatile unsigned char *code = (const volatile unsigned char *)&meter_emulated_site;
	struct meter_calibration cal = { 0 };
	unsigned char byte = *code;
	char err[256] = "";
	int failed;

	failed = meter_calibrate(kind, &cal, err, sizeof(err));
	if (failed || (kind == UPROBE_MULTI && !cal.has_emulated)) {
		skip(name, err[0] ? err : "nothing can be calibrated here");
		return;
	}
	diag("%s: emulated %.0f ns, stepped %.0f ns, tracepoint %.0f + %.0f ns", name,
	     cal.emulated_ns, cal.stepped_ns, cal.tracepoint_ns, cal.filter_ns);
	diag("%s: counting %.0f ns; in a run time %.0f ns, of a timed hit %.0f ns", name,
	     cal.count_ns, cal.empty_ns, cal.clock_ns);
	ok(cal.has_empty && cal.empty_ns > 0 && cal.has_clock && cal.clock_ns > 0,
	   "%s: so does reading the clock", name);
	ok(cal.count_ns >= cal.filter_ns, "%s: being counted costs no less than not", name);
	ok(cal.has_emulated && cal.emulated_ns > 0, "%s: a trap costs something", name);
	ok(cal.has_stepped && cal.stepped_ns > cal.emulated_ns, "%s: a step costs more", name);
	ok(!cal.has_tracepoint || cal.tracepoint_ns < cal.emulated_ns,
	   "%s: a tracepoint costs less than a trap", name);
	is_int(*code, byte, "%s: the probes are gone", name);
}

static void test_stats(void)
{
	struct meter_prog prog;
	int fd = meter_enable_stats();

	ok(fd >= 0, "BPF statistics can be enabled");
	is_int(meter_read_prog(-1, &prog), -EBADFD, "no program, no totals");
	close(fd);
}

int main(void)
{
	test_core();
	test_target();
	test_added();
	test_since();
	test_cpu_time();
	if (geteuid() != 0) {
		skip("calibration", "needs root");
		return tap_done();
	}
	test_stats();
	test_calibration(UPROBE_MULTI, "multi");
	test_calibration(UPROBE_PERF, "perf");
	return tap_done();
}
