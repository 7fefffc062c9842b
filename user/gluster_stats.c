// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_stats.c: the statistics that GlusterFS keeps of itself in each xlator: one read for all
 * fops of an xlator, decoded by the layout row. Latencies are updated without locks in there, and a
 * statedump resets them: a single figure may be torn or small, and only total counts are monotonic.
 */
#include "gluster_walk.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MAX_COUNT      (1ULL << 48)
#define POOL_CNT       0x10 /* of call_pool: stacks that are there; the same in all releases */
#define POOL_BYTES     0x20
#define MAX_LATENCY_NS 7.2e16 /* two years; a double read as an integer is above 2^60 */

static double to_double(uint64_t word)
{
	double value;

	memcpy(&value, &word, sizeof(value));
	return value;
}

void gluster_stats_span(const struct gluster_layout *l, unsigned int *ret_offset,
			unsigned int *ret_bytes)
{
	unsigned int first = l->lat_base, last = l->lat_base + l->max_fop * l->lat_stride;

	if (l->stat_wound != GLUSTER_ABSENT) {
		unsigned int end = l->stat_failed + l->max_fop * l->stat_stride;

		first = l->stat_wound < first ? l->stat_wound : first;
		last = end > last ? end : last;
	}
	if (last > l->xlator_size_bytes)
		last = l->xlator_size_bytes; /* the last slot's tail, beyond its last field */
	*ret_offset = first;
	*ret_bytes = last - first;
}

/* As a minimum starts: all ones, or UINT32_MAX as a double; 0 for ever after a statedump. */
static bool min_is_unset(const struct gluster_layout *l, uint64_t word)
{
	switch (l->lat_type) {
	case GLUSTER_LAT_U64_NS:
		return !word || word == UINT64_MAX;
	case GLUSTER_LAT_DOUBLE_NS:
		return !word || to_double(word) == (double)UINT32_MAX;
	case GLUSTER_LAT_DOUBLE_US:
		return !word || word >= UINT32_MAX;
	case GLUSTER_LAT_NONE:
		break;
	}
	return true;
}

static void decode_latency(const struct gluster_layout *l, const uint8_t *entry,
			   struct gluster_stat *stat)
{
	uint64_t min = gluster_word(entry, l->lat_min), max = gluster_word(entry, l->lat_max);
	uint64_t total = gluster_word(entry, l->lat_total);

	stat->lat_count = gluster_word(entry, l->lat_count);
	stat->has_min = stat->lat_count && !min_is_unset(l, min);
	switch (l->lat_type) {
	case GLUSTER_LAT_DOUBLE_US: /* its minimum and maximum are whole microseconds */
		stat->lat_total_ns = to_double(total) * 1e3;
		stat->lat_min_ns = (double)min * 1e3;
		stat->lat_max_ns = (double)max * 1e3;
		break;
	case GLUSTER_LAT_DOUBLE_NS:
		stat->lat_total_ns = to_double(total);
		stat->lat_min_ns = to_double(min);
		stat->lat_max_ns = to_double(max);
		break;
	case GLUSTER_LAT_U64_NS:
		stat->lat_total_ns = (double)total;
		stat->lat_min_ns = (double)min;
		stat->lat_max_ns = (double)max;
		break;
	case GLUSTER_LAT_NONE:
		return;
	}
	stat->has_latency = stat->lat_count < MAX_COUNT && isfinite(stat->lat_total_ns) &&
			    stat->lat_total_ns >= 0 && isfinite(stat->lat_max_ns) &&
			    stat->lat_total_ns <= MAX_LATENCY_NS * (double)(stat->lat_count + 1);
	if (!stat->has_min || !isfinite(stat->lat_min_ns)) {
		stat->has_min = false;
		stat->lat_min_ns = 0;
	}
}

void gluster_stats_decode(const struct gluster_layout *l, const uint8_t *raw,
			  struct gluster_stat stats[GLUSTER_MAX_FOP])
{
	unsigned int first, bytes;

	gluster_stats_span(l, &first, &bytes);
	memset(stats, 0, GLUSTER_MAX_FOP * sizeof(*stats));
	for (unsigned int fop = 0; fop < l->max_fop; fop++) {
		struct gluster_stat *stat = &stats[fop];

		if (l->stat_wound != GLUSTER_ABSENT) {
			unsigned int slot = fop * l->stat_stride - first;

			stat->wound = gluster_word(raw, l->stat_wound + slot);
			stat->failed = gluster_word(raw, l->stat_failed + slot);
			stat->has_counts = stat->wound < MAX_COUNT && stat->failed < MAX_COUNT;
		}
		decode_latency(l, raw + (l->lat_base + fop * l->lat_stride - first), stat);
	}
}

int gluster_stats_read(struct gluster_proc *gp, const struct gluster_xlator *xl,
		       struct gluster_stat stats[GLUSTER_MAX_FOP])
{
	uint8_t raw[GLUSTER_XLATOR_BYTES];
	unsigned int offset, bytes;
	int err;

	gluster_stats_span(gp->layout, &offset, &bytes);
	err = procmem_read(gp->pm, xl->addr + offset, raw, bytes);
	if (err)
		return err;
	gluster_stats_decode(gp->layout, raw, stats);
	for (unsigned int fop = 0; fop < GLUSTER_MAX_FOP; fop++)
		if (!gp->measures_latency && !stats[fop].lat_count)
			stats[fop].has_latency = false; /* not measured is not zero */
	return 0;
}

int gluster_pool_ended(struct gluster_proc *gp, uint64_t *ret_ended)
{
	const unsigned int total = gp->layout->pool_total_count;
	uint8_t raw[POOL_BYTES];
	uint64_t created, there;
	int ret;

	if (total == GLUSTER_ABSENT)
		return -ENOTSUP;
	ret = procmem_read(gp->pm, gp->pool_addr, raw, sizeof(raw));
	if (ret)
		return ret;
	created = gluster_word(raw, total);
	/* a new stack is there a moment before it counts as created */
	there = gluster_word(raw, POOL_CNT);
	*ret_ended = created > there ? created - there : 0;
	return 0;
}

/* What a right layout cannot show. Only what is impossible counts, not what is unusual. */
static int check_slot(struct gluster_probe *p, const uint8_t *entry,
		      const struct gluster_stat *stat, unsigned int fop)
{
	const struct gluster_layout *l = p->layout;
	uint64_t min = gluster_word(entry, l->lat_min);
	double mean;

	if (l->stat_wound != GLUSTER_ABSENT && !stat->has_counts)
		return gluster_fail(p, "the counts of fop %u are no counts", fop);
	if (!stat->has_latency)
		return gluster_fail(p, "the latencies of fop %u are no latencies", fop);
	if (!stat->lat_count) {
		if (l->lat_type != GLUSTER_LAT_DOUBLE_US && !min_is_unset(l, min))
			return gluster_fail(p, "fop %u has a minimum and no calls", fop);
		return 0;
	}
	/* A read amid an update, and updates lost to races, move a mean a little. */
	mean = stat->lat_total_ns / (double)stat->lat_count;
	if (mean * 1.05 + 1000 < stat->lat_min_ns || mean * 0.95 - 1000 > stat->lat_max_ns)
		return gluster_fail(p, "the mean of fop %u is not between its minimum and maximum",
				    fop);
	if (l->lat_type == GLUSTER_LAT_DOUBLE_NS && stat->lat_total_ns < 1)
		return gluster_fail(p, "fop %u took no time", fop);
	return 0;
}

static int check_xlator(struct gluster_probe *p, uint64_t addr)
{
	struct gluster_stat stats[GLUSTER_MAX_FOP];
	const struct gluster_layout *l = p->layout;
	uint8_t raw[GLUSTER_XLATOR_BYTES];
	unsigned int offset, bytes;
	int err;

	gluster_stats_span(l, &offset, &bytes);
	err = gluster_read(p, addr + offset, raw, bytes);
	if (err)
		return err;
	gluster_stats_decode(l, raw, stats);
	for (unsigned int fop = 0; !err && fop < l->max_fop; fop++)
		err = check_slot(p, raw + (l->lat_base + fop * l->lat_stride - offset), &stats[fop],
				 fop);
	return err;
}

int gluster_check_stats(struct gluster_probe *p, const struct gluster_graph *graphs, size_t n)
{
	int err = 0;

	gluster_begin_check(p, "statistics");
	for (size_t g = 0; !err && g < n; g++)
		for (size_t i = 0; !err && i < graphs[g].n; i++)
			err = check_xlator(p, graphs[g].xl[i].addr);
	return err;
}
