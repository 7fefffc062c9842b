/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_watch_tails.c: which xlators share frames, told from counts as GlusterFS keeps them: who is
 * called, who ends frames, and what must not be taken for sharing.
 */
#include "watch_tails.h"

#include <string.h>

#include "../tap.h"

#define MAX 8

enum { FOP = 12, OTHER = 13 };

static struct bed {
	struct gluster_graph g;
	struct gluster_xlator xl[MAX];
	unsigned int child[MAX][MAX];
	struct gluster_stat stats[MAX][GLUSTER_MAX_FOP];
	uint64_t members[MAX];
} bed;

/* A chain of n xlators; all of them keep counts, which are 0. */
static void chain(unsigned int n)
{
	unsigned int i, fop;

	memset(&bed, 0, sizeof(bed));
	bed.g.xl = bed.xl;
	bed.g.n = n;
	for (i = 0; i < n; i++) {
		bed.xl[i].children = bed.child[i];
		bed.xl[i].n_children = i + 1 < n;
		bed.child[i][0] = i + 1;
		for (fop = 0; fop < GLUSTER_MAX_FOP; fop++)
			bed.stats[i][fop].has_counts = bed.stats[i][fop].has_latency = true;
	}
}

static void count(unsigned int xl, uint64_t wound, uint64_t ended)
{
	bed.stats[xl][FOP].wound = wound;
	bed.stats[xl][FOP].lat_count = ended;
}

/* The members as a word: bit i is xlator i. Other fops must have none. */
static unsigned int find(void)
{
	unsigned int found = 0;
	size_t i;

	watch_tails_find(&bed.g, (const struct gluster_stat(*)[GLUSTER_MAX_FOP])bed.stats,
			 bed.members);
	for (i = 0; i < bed.g.n; i++) {
		if (bed.members[i] & ~(1ULL << FOP))
			return ~0U;
		found |= !!bed.members[i] << i;
	}
	return found;
}

/* server, io-threads, access-control, posix */
static void test_chain(void)
{
	chain(4);
	is_int(find(), 0, "without calls nobody is known to share");
	count(0, 0, 100);
	count(1, 100, 100);
	count(2, 100, 100);
	count(3, 100, 100);
	is_int(find(), 0, "who ends what it is called for keeps its frames");
	count(2, 100, 0);
	is_int(find(), 1 << 2 | 1 << 3, "called, but ends none: shares with the leaf below");
	count(1, 100, 0);
	is_int(find(), 1 << 1 | 1 << 2 | 1 << 3, "so may the next one above");
	count(2, 100, 100);
	is_int(find(), 0, "ends none, but winds properly to the next (io-stats keeps no latency)");
	count(3, 0, 0);
	is_int(find(), 0, "and its frames may end anywhere below that");
}

/* A group of three whose middle one is never called by a wind; the last has children. */
static void test_middle(void)
{
	chain(5);
	count(1, 100, 0);
	count(2, 0, 0);
	count(3, 0, 100);
	count(4, 100, 100);
	is_int(find(), 1 << 1 | 1 << 2 | 1 << 3, "handed on through one that counts nothing");
	count(1, 0, 0);
	is_int(find(), 0, "nobody called the first of them");
	bed.xl[1].pass_through = true;
	is_int(find(), 1 << 1 | 1 << 2 | 1 << 3, "pass_through counts no calls, and always shares");
	count(3, 0, 0);
	count(4, 0, 0);
	is_int(find(), 0, "no frame ended yet: nothing is known");
}

/* One that keeps some of its frames. */
static void test_mixed(void)
{
	chain(3);
	count(1, 10000, 10000);
	count(2, 10000, 10000);
	count(1, 10000, 9950);
	is_int(find(), 0, "a few less may be in flight, or lost updates");
	count(1, 10000, 5000);
	is_int(find(), 1 << 1 | 1 << 2, "half of them ended elsewhere: below");
	chain(4);
	count(1, 10000, 5000);
	count(2, 5000, 10000);
	count(3, 10000, 10000);
	is_int(find(), 1 << 1 | 1 << 2, "below ends more than was wound to it");
	count(2, 10000, 10000);
	is_int(find(), 0,
	       "below was wound to for all of them: latencies were reset at other times");
}

/* Only the child in use. */
static void test_children(void)
{
	chain(4);
	bed.xl[1].n_children = 2;
	bed.child[1][1] = 3;
	bed.xl[2].n_children = 0;
	count(1, 100, 0);
	count(3, 100, 100);
	is_int(find(), 1 << 1 | 1 << 3, "of two children the one that ends frames");
	count(2, 100, 100);
	is_int(find(), 1 << 1 | 1 << 2 | 1 << 3, "or both");
	/* a loop, as a damaged graph may have one */
	bed.xl[3].n_children = 1;
	bed.child[3][0] = 1;
	count(2, 0, 0);
	count(3, 0, 0);
	is_int(find(), 0, "a loop ends");
}

static void test_unknown(void)
{
	chain(3);
	count(1, 100, 0);
	count(2, 100, 100);
	bed.stats[1][FOP].has_latency = false;
	is_int(find(), 0, "latencies not known are not zero");
	bed.stats[1][FOP].has_latency = true;
	bed.stats[1][FOP].has_counts = false;
	is_int(find(), 0, "nor are counts");
}

static void test_tell(void)
{
	struct watch_tail tail[] = { { .xlator = 0x10, .fops = 6, .since_ns = 5 } };
	struct watch_tails t = { .tail = tail, .n = 1 };
	struct wire_node node = { .layer = 64 };

	watch_tails_tell(&t, 0x20, &node);
	ok(!node.marked && !node.since_ns, "one that is not probed");
	watch_tails_tell(&t, 0x10, &node);
	ok(node.marked == 6 && node.since_ns == 5 && node.layer == 64, "one that is");
}

int main(void)
{
	test_chain();
	test_middle();
	test_mixed();
	test_children();
	test_unknown();
	test_tell();
	return tap_done();
}
