/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_meter.c: hits and run times of the live source's programs. How often a target's threads
 * were hit the programs count themselves. What only the kernel's statistics tell, run times and
 * the hits of the host's other processes, is sampled: while they are on, each hit of any program
 * reads the clock twice more, which on a busy host costs as much as a small program.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "clock.h"
#include "source_priv.h"

#define SAMPLE_NS   (CLOCK_NS_PER_SEC / 10) /* a sample takes so long at least ... */
#define PERIOD_NS   CLOCK_NS_PER_SEC        /* ... and begins so long after the last one */
#define SAMPLE_HITS 1000                    /* fewer cost nothing: the statistics stay on */

static bool is_uprobe(const char *name)
{
	return strstr(name, "__multi") || strstr(name, "__perf");
}

/* Uprobe programs run in targets only, the others in every process of the host. */
static void read_programs(const struct source *src, struct meter_prog *ret_uprobes,
			  struct meter_prog *ret_tracepoints)
{
	struct meter_prog prog, *sum;
	const char *name;
	size_t i;
	int fd;

	*ret_uprobes = *ret_tracepoints = (struct meter_prog){ 0 };
	for (i = 0; (fd = attach_prog_nth(src->attach, i, &name)) >= 0; i++) {
		if (meter_read_prog(fd, &prog))
			continue;
		sum = is_uprobe(name) ? ret_uprobes : ret_tracepoints;
		sum->run_ns += prog.run_ns;
		sum->hits += prog.hits;
		sum->missed += prog.missed;
	}
}

/* Add what was counted since the sample began, or since this was called last. */
static void take_sample(struct source_sample *s, const struct source *src, uint64_t now_ns)
{
	struct meter_prog uprobes, tracepoints, *price;

	read_programs(src, &uprobes, &tracepoints);
	price = s->idle ? &s->idle_uprobes : &s->uprobes;
	price->hits += uprobes.hits - s->last_uprobes.hits;
	price->run_ns += uprobes.run_ns - s->last_uprobes.run_ns;
	s->tracepoints.hits += tracepoints.hits - s->last_tracepoints.hits;
	s->tracepoints.run_ns += tracepoints.run_ns - s->last_tracepoints.run_ns;
	s->wall_ns += now_ns - s->last_ns;
	s->last_ns = now_ns;
	s->last_uprobes = uprobes;
	s->last_tracepoints = tracepoints;
}

static void begin_sample(struct source *src, uint64_t now_ns)
{
	struct source_sample *s = &src->sample;

	src->stats_fd = src->stats_parted ? meter_stats_enable(&src->stats) : meter_enable_stats();
	s->error = src->stats_fd < 0 ? src->stats_fd : 0;
	s->begin_ns = s->last_ns = now_ns;
	s->begin_hits = s->uprobes.hits + s->tracepoints.hits;
	read_programs(src, &s->last_uprobes, &s->last_tracepoints);
}

void source_part_statistics(struct source *src)
{
	if (!src->stats_parted)
		(void)meter_stats_start(&src->stats);
	src->stats_parted = true;
}

void source_meter_look(struct source *src, uint64_t now_ns)
{
	struct source_sample *s = &src->sample;

	if (src->stats_fd < 0) {
		if (!s->begin_ns || now_ns - s->begin_ns >= PERIOD_NS)
			begin_sample(src, now_ns);
		return;
	}
	if (now_ns - s->begin_ns < SAMPLE_NS)
		return;
	take_sample(s, src, now_ns);
	if ((!s->uprobes.hits && source_uprobe_hits(src)) ||
	    s->uprobes.hits + s->tracepoints.hits - s->begin_hits < SAMPLE_HITS)
		return;
	close(src->stats_fd);
	src->stats_fd = -1;
}

/* Of all uprobe hits so far those while the walk was off. */
static uint64_t idle_hits(const struct source_sample *s, uint64_t hits)
{
	return s->idle_hits + (s->idle ? hits - s->idle_from : 0);
}

void source_meter_idle(struct source *src, bool idle)
{
	struct source_sample *s = &src->sample;
	uint64_t hits = source_uprobe_hits(src);

	if (src->stats_fd >= 0)
		take_sample(s, src, clock_mono_ns());
	s->idle_hits = idle_hits(s, hits);
	s->idle_from = hits;
	s->idle = idle;
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

/* Run time of a hit while the walk is off; until that is sampled it counts as any other. */
static double idle_run_ns(const struct source_sample *s)
{
	const struct meter_prog *p = s->idle_uprobes.hits ? &s->idle_uprobes : &s->uprobes;

	return ratio(p->run_ns, p->hits);
}

void source_meter(struct source *src, uint64_t now_ns, struct meter_interval *interval)
{
	struct source_sample *s = &src->sample;
	uint64_t all = source_uprobe_hits(src), hits = all, idle = idle_hits(s, all), wall_ns;
	double share;

	if (src->stats_fd >= 0)
		take_sample(s, src, now_ns);
	/* before the first hit in a sample its price is not known: told later */
	if (!s->uprobes.hits && !s->error) {
		hits = s->told_hits;
		idle = s->told_idle;
	}
	interval->not_counted = s->error != 0;
	/* of the same look as those with a price, or a hit in between would have none */
	interval->uprobe_hits = all - s->counted_hits;
	s->counted_hits = all;
	interval->emulated_hits = hits - s->told_hits;
	idle -= s->told_idle;
	s->told_idle += idle;
	interval->uprobe_run_ns = (uint64_t)((double)(interval->emulated_hits - idle) *
						     ratio(s->uprobes.run_ns, s->uprobes.hits) +
					     (double)idle * idle_run_ns(s));
	wall_ns = s->wall_ns - s->told_wall_ns;
	if (wall_ns) {
		s->hit_rate = ratio(s->tracepoints.hits - s->told_tracepoints.hits, wall_ns);
		s->run_rate = ratio(s->tracepoints.run_ns - s->told_tracepoints.run_ns, wall_ns);
	}
	share = (double)(now_ns - s->told_ns);
	interval->tracepoint_hits = (uint64_t)(s->hit_rate * share);
	interval->tracepoint_run_ns = (uint64_t)(s->run_rate * share);
	s->told_ns = now_ns;
	s->told_hits = hits;
	s->told_wall_ns = s->wall_ns;
	s->told_tracepoints = s->tracepoints;
}

void source_meter_start(struct source *src, uint64_t now_ns)
{
	struct meter_interval before;

	source_meter(src, now_ns, &before);
	src->sample.told_hits = src->sample.counted_hits;
	src->sample.told_idle = idle_hits(&src->sample, src->sample.counted_hits);
}

double source_uprobe_run_ns(const struct source *src)
{
	const struct source_sample *s = &src->sample;

	return s->idle ? idle_run_ns(s) : ratio(s->uprobes.run_ns, s->uprobes.hits);
}

int source_meter_target(struct source *src, pid_t tgid, struct meter_target *ret_paid)
{
	struct meter_target paid = { 0 };
	struct wire_traced_hits hits;
	struct wire_proc proc;

	if (source_get_proc(src, tgid, &proc))
		return -ENOENT;
	paid.stepped_hits = proc.stepped_hits;
	/* the two are not read at once */
	if (proc.probe_hits > proc.stepped_hits)
		paid.emulated_hits = proc.probe_hits - proc.stepped_hits;
	if (!source_traced_hits(src, tgid, &hits)) {
		paid.has_tracepoints = true;
		paid.tracepoint_hits = 2 * hits.calls + hits.hits;
		paid.tracepoint_work_ns = hits.timed_ns;
		paid.timed_hits = hits.timed;
	}
	*ret_paid = paid;
	return 0;
}

uint64_t source_recursion_misses(struct source *src)
{
	struct meter_prog uprobes, tracepoints;

	read_programs(src, &uprobes, &tracepoints);
	return uprobes.missed + tracepoints.missed;
}
