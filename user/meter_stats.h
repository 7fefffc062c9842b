/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter_stats.h: the kernel's BPF run time statistics for a process that has given up the right to
 * switch them on. A child process keeps that right, and does nothing else with it than to hand out
 * descriptors that keep the statistics on, one at a time, to its parent.
 */
#ifndef BRICKTOP_METER_STATS_H
#define BRICKTOP_METER_STATS_H

#include <sys/types.h>

struct meter_stats {
	int sock; /* to the child; -1: there is none */
	pid_t child;
};

/*
 * Start the child, before the right is given up; it ends with its parent. 0 or -errno; where it
 * cannot be started, or nobody has the right, meter_stats_enable() fails.
 */
int meter_stats_start(struct meter_stats *ms);
void meter_stats_end(struct meter_stats *ms);

/*
 * As meter_enable_stats(): the statistics are on as long as the descriptor is open. The fd, -errno.
 * A child that does not answer within a second is ended: none is had from there on.
 */
int meter_stats_enable(struct meter_stats *ms);

#endif
