// SPDX-License-Identifier: Apache-2.0
/*
 * meter.c: measures bricktop itself: CPU clocks, the kernel's run time statistics, and what they
 * come to at the prices that meter_calibrate.c has found.
 */
#include "meter.h"

#include "clock.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static int read_clock(clockid_t clock, uint64_t *ret_ns)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return -errno;
	*ret_ns = (uint64_t)ts.tv_sec * CLOCK_NS_PER_SEC + (uint64_t)ts.tv_nsec;
	return 0;
}

/* Never below 0: of what costs next to nothing noise could make less than nothing. */
static double above_zero(double ns)
{
	return ns > 0 ? ns : 0;
}

int meter_enable_stats(void)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	return fd < 0 ? -errno : fd;
}

int meter_read_prog(int prog_fd, struct meter_prog *ret_prog)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len))
		return -errno;
	ret_prog->run_ns = info.run_time_ns;
	ret_prog->hits = info.run_cnt;
	ret_prog->missed = info.recursion_misses;
	return 0;
}

int meter_own_cpu_ns(uint64_t *ret_ns)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID, ret_ns);
}

/* A process's CPU clock is exact to the ns and keeps what ended threads used; /proc has 10 ms
 * ticks. */
int meter_target_cpu_ns(pid_t pid, uint64_t *ret_ns)
{
	clockid_t clock;
	int code = clock_getcpuclockid(pid, &clock);

	return code ? -code : read_clock(clock, ret_ns);
}

void meter_target_since(struct meter_target *now, const struct meter_target *before)
{
	now->emulated_hits -= before->emulated_hits;
	now->stepped_hits -= before->stepped_hits;
	now->tracepoint_hits -= before->tracepoint_hits;
	now->tracepoint_work_ns -= before->tracepoint_work_ns;
	now->timed_hits -= before->timed_hits;
}

static double hits_ns(const struct meter_calibration *cal, uint64_t emulated, uint64_t stepped,
		      uint64_t tracepoint)
{
	return cal->emulated_ns * (double)emulated + cal->stepped_ns * (double)stepped +
	       cal->tracepoint_ns * (double)tracepoint;
}

/* A run time of so many hits, less what measuring added to each: 0 where that is not known. */
static double own_run_ns(uint64_t run_ns, uint64_t hits, double added_ns)
{
	return above_zero((double)run_ns - (double)hits * added_ns);
}

static double uprobes_run_ns(const struct meter_calibration *cal, const struct meter_interval *in)
{
	return own_run_ns(in->uprobe_run_ns, in->emulated_hits + in->stepped_hits, cal->empty_ns);
}

static double target_paid_ns(const struct meter_calibration *cal, const struct meter_interval *in)
{
	const struct meter_target *t = &in->target;
	uint64_t all = in->emulated_hits + in->stepped_hits;
	uint64_t own = t->emulated_hits + t->stepped_hits;
	double ns = hits_ns(cal, t->emulated_hits, t->stepped_hits, t->tracepoint_hits);

	/* the two counts are not read at once: own may be a few ahead */
	if (all)
		ns += uprobes_run_ns(cal, in) * (own < all ? (double)own / (double)all : 1);
	return ns + cal->count_ns * (double)t->tracepoint_hits +
	       own_run_ns(t->tracepoint_work_ns, t->timed_hits, cal->clock_ns);
}

/* What was hit has a calibrated price. */
static bool has_prices(const struct meter_calibration *cal, uint64_t emulated, uint64_t stepped,
		       uint64_t tracepoint)
{
	return (cal->has_emulated || !emulated) && (cal->has_stepped || !stepped) &&
	       (cal->has_tracepoint || !tracepoint);
}

void meter_compute(const struct meter_calibration *cal, const struct meter_interval *interval,
		   struct meter_cost *ret_cost)
{
	struct meter_cost cost = { 0 };
	const struct meter_target *t = &interval->target;
	bool known = !interval->not_counted &&
		     interval->uprobe_hits <= interval->emulated_hits + interval->stepped_hits &&
		     has_prices(cal, interval->emulated_hits, interval->stepped_hits,
				interval->tracepoint_hits);
	bool known_target =
		known && has_prices(cal, t->emulated_hits, t->stepped_hits, t->tracepoint_hits) &&
		(t->has_tracepoints || !interval->tracepoint_hits);

	cost.trap_ns = (uint64_t)hits_ns(cal, interval->emulated_hits, interval->stepped_hits,
					 interval->tracepoint_hits);
	cost.bpf_ns = (uint64_t)(uprobes_run_ns(cal, interval) +
				 own_run_ns(interval->tracepoint_run_ns, interval->tracepoint_hits,
					    cal->empty_ns));
	cost.own_ns = interval->own_cpu_ns;
	cost.target_ns = (uint64_t)target_paid_ns(cal, interval);
	if (interval->wall_ns) {
		cost.has_own = true;
		cost.own_pct = 100 * (double)cost.own_ns / (double)interval->wall_ns;
	}
	if (interval->has_target && cost.target_ns > interval->target_cpu_ns)
		cost.target_ns = interval->target_cpu_ns;
	if (known && interval->wall_ns) {
		cost.has_core = true;
		cost.core_pct = 100 * (double)(cost.trap_ns + cost.bpf_ns + cost.own_ns) /
				(double)interval->wall_ns;
	}
	if (known_target && interval->has_target && interval->target_cpu_ns) {
		cost.has_target = true;
		cost.target_pct = 100 * (double)cost.target_ns / (double)interval->target_cpu_ns;
	}
	*ret_cost = cost;
}
