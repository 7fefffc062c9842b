/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.h: what bricktop itself costs. A hit of a probe costs the trap that leads to the program,
 * which is calibrated here, on this machine, and the program's run time, which the kernel counts;
 * bricktop's own threads cost CPU time. Owns the measuring; when to measure and what to show is the
 * caller's.
 */
#ifndef BRICKTOP_METER_H
#define BRICKTOP_METER_H

#include "uprobe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * CPU time of one hit in ns while the kernel's statistics are off, without the BPF program's own
 * run time. A figure that is not known: has_x 0.
 */
struct meter_calibration {
	bool has_emulated, has_stepped, has_tracepoint, has_empty, has_clock;
	double emulated_ns; /* uprobe on an emulated instruction (SITE_EMULATED) */
	double stepped_ns;  /* uprobe on any other instruction (SITE_STEPPED) */
	/*
	 * One of the two hits (sys_enter, sys_exit; BPF's own tracepoints, tp_btf) of a system
	 * call. Every call on the host pays for both, and for the slow way through the kernel that
	 * they force on it: that is in here.
	 */
	double tracepoint_ns;
	/*
	 * Run time of such a hit in a process that is not traced: what a bystander pays besides.
	 * Belongs to has_tracepoint.
	 */
	double filter_ns;
	double count_ns; /* the same in one that is: what counting the hit takes, the filter
			    included */
	/*
	 * Where the statistics are on, what they count for a program that does nothing: their own
	 * two readings of the clock. It is in every run time they tell, and no part of what a hit
	 * costs while they are off, as they are for nearly all of the time.
	 */
	double empty_ns;
	double clock_ns; /* the same of a hit that a program times itself: one reading */
};

/*
 * Measure on this thread, with bpf/calibrate.bpf.c's programs and functions of bricktop's own: some
 * 50 ms of CPU time besides loading. Uprobes are hit between other work that uses the caches, as
 * they are in a busy process: back to back they cost half as much or less. kind: how probes are
 * attached here. To be called before bricktop's own programs hang on the tracepoints, or their
 * price would be missed. What cannot be measured stays unknown, and err names the last reason;
 * -errno if nothing could be, 0 otherwise (err may be set).
 */
int meter_calibrate(enum uprobe_kind kind, struct meter_calibration *ret_cal, char *err,
		    size_t err_size);

/* Make the kernel count BPF run times as long as the descriptor is open. The fd, or -errno. */
int meter_enable_stats(void);

/* Totals since the program was loaded, while the statistics were enabled; run_ns is the kernel's
 * figure, each hit's empty_ns included. */
struct meter_prog {
	uint64_t run_ns, hits;
	uint64_t missed; /* not run because another program was running on that CPU; always counted
			  */
};

int meter_read_prog(int prog_fd, struct meter_prog *ret_prog);

/* CPU time of all threads of this process, or of another one, ended threads included. 0 or -errno.
 */
int meter_own_cpu_ns(uint64_t *ret_ns);
int meter_target_cpu_ns(pid_t pid, uint64_t *ret_ns);

/* Hits of one process's own threads. */
struct meter_target {
	uint64_t emulated_hits, stepped_hits;
	bool has_tracepoints; /* 0: its system calls could not be counted */
	uint64_t tracepoint_hits;
	uint64_t
		tracepoint_work_ns; /* run time behind the filter, estimated from timed hits; ... */
	uint64_t timed_hits; /* ... it is that of so many hits, each with one clock_ns in it */
};

/* What came on top since an earlier reading of the same process. */
void meter_target_since(struct meter_target *now, const struct meter_target *before);

/* Differences over one interval. */
struct meter_interval {
	uint64_t wall_ns;
	uint64_t own_cpu_ns;
	bool not_counted; /* the kernel's statistics are off: hits and run times are not known */
	/* of all programs together, host-wide, wanted hits or not */
	uint64_t uprobe_run_ns, tracepoint_run_ns;
	uint64_t emulated_hits, stepped_hits, tracepoint_hits;
	uint64_t uprobe_hits; /* all, also those whose run time is not known yet: with any of
				 them no cost is known */
	/* of one target */
	bool has_target;
	uint64_t target_cpu_ns; /* traps and BPF run time inside the target are part of it */
	struct meter_target target;
};

struct meter_cost {
	/* 0: not known, e.g. hits of a class that is not calibrated */
	bool has_core, has_own, has_target;
	double core_pct;   /* everything, as share of one core */
	double own_pct;    /* bricktop's own CPU time alone */
	double target_pct; /* what the target's threads paid, of the CPU time they used */
	uint64_t trap_ns, bpf_ns, own_ns; /* what core_pct is made of */
	uint64_t target_ns;               /* what target_pct is made of */
};

/*
 * Pure. Everything = hits x calibrated price + BPF run time + own CPU time. Run times are taken
 * less what measuring them added: empty_ns for each hit of a program, clock_ns for each hit that
 * was timed; never below 0, and as they are where that is not known. What the statistics cost while
 * a sample is taken (a tenth of the time on a busy host) is not reckoned.
 *
 * What a target's threads paid: uprobes are hit in targets only, so the target's part of their run
 * time is its part of their hits. Tracepoints are hit by every process: the target's own hits are
 * counted, each at the calibrated price and the run time of being counted, and the work behind the
 * filter, which only targets reach, is what was timed there. bricktop's own CPU time is not the
 * target's. All of that is part of the CPU time that the target used, so it is never taken for
 * more.
 */
void meter_compute(const struct meter_calibration *cal, const struct meter_interval *interval,
		   struct meter_cost *ret_cost);

#endif
