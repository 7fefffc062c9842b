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

/* CPU time of one hit in ns, without the BPF program's run time. A figure that is not known: has_x
 * 0. */
struct meter_calibration {
	bool has_emulated, has_stepped, has_tracepoint;
	double emulated_ns;   /* uprobe on an emulated instruction (SITE_EMULATED) */
	double stepped_ns;    /* uprobe on any other instruction (SITE_STEPPED) */
	double tracepoint_ns; /* one syscall tracepoint: half of enter and exit */
	/*
	 * What every other system call of the host pays while any syscall tracepoint is attached:
	 * they all take the kernel's slow path then. Belongs to has_tracepoint.
	 */
	double bystander_ns;
};

/*
 * Measure on this thread, with bpf/calibrate.bpf.c's programs and functions of bricktop's own: 30
 * to 60 ms of CPU time besides loading. kind: how probes are attached here. What cannot be measured
 * stays unknown, and err names the last reason; -errno if nothing could be, 0 otherwise (err may be
 * set).
 */
int meter_calibrate(enum uprobe_kind kind, struct meter_calibration *ret_cal, char *err,
		    size_t err_size);

/* Make the kernel count BPF run times as long as the descriptor is open. The fd, or -errno. */
int meter_enable_stats(void);

/* Totals since the program was loaded, while the statistics were enabled. */
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

/* Differences over one interval: of all programs together, host-wide, wanted hits or not. */
struct meter_interval {
	uint64_t wall_ns;
	uint64_t own_cpu_ns;
	uint64_t bpf_run_ns;
	uint64_t emulated_hits, stepped_hits, tracepoint_hits;
	bool has_target;
	uint64_t target_cpu_ns; /* traps and BPF run time inside the target are part of it */
};

struct meter_cost {
	bool has_core, has_target; /* 0: not known, e.g. hits of a class that is not calibrated */
	double core_pct;           /* of one core */
	double target_pct;         /* of the CPU time that the target used */
	uint64_t trap_ns, bpf_ns, own_ns; /* what it is made of */
};

/* Pure: cost = hits x calibrated trap + BPF run time + own CPU time. */
void meter_compute(const struct meter_calibration *cal, const struct meter_interval *interval,
		   struct meter_cost *ret_cost);

#endif
