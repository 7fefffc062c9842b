/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_alloc.c: the model without memory: each allocation of a whole life is made to fail,
 * one at a time. Whatever fails says -ENOMEM, leaks nothing, and works when tried again. The
 * model's sources are compiled into this program with allocators that can refuse.
 */
#include <errno.h>
#include <linux/types.h>
#include <stdlib.h>
#include <string.h>

static long alloc_left = -1; /* allocations until one fails; negative: none does */
static long alloc_live;      /* allocated and not yet freed */

static int alloc_refused(void)
{
	if (alloc_left < 0)
		return 0;
	return alloc_left-- == 0;
}

static void *test_calloc(size_t n, size_t size)
{
	void *p = alloc_refused() ? NULL : calloc(n, size);

	alloc_live += p != NULL;
	return p;
}

static void *test_realloc(void *old, size_t size)
{
	void *p = alloc_refused() ? NULL : realloc(old, size);

	alloc_live += p && !old;
	return p;
}

static void test_free(void *p)
{
	alloc_live -= p != NULL;
	free(p);
}

#define calloc  test_calloc
#define realloc test_realloc
#define free    test_free
#include "../../user/model.c"
#include "../../user/model_fold.c"
#include "../../user/model_graph.c"
#include "../../user/model_memory.c"
#include "../../user/model_ops.c"
#include "../../user/model_text.c"
#include "../../user/model_tick.c"
#include "../../user/model_tree.c"
#undef calloc
#undef realloc
#undef free

#include "../tap.h"

#define N_SLOTS   200  /* so many that their table has to grow */
#define MAX_STEPS 5000 /* more than a life has allocations */

static struct model_node nodes[4] = {
	{ .id = "server", .type = "s", .children = { 1 }, .n_children = 1 },
	{ .id = "locks", .type = "l", .children = { 2 }, .n_children = 1 },
	{ .id = "posix", .type = "p" },
};

/* Call until it succeeds; anything but 0 and -ENOMEM is an error of its own. */
#define RETRY(call)                        \
	do {                               \
		int rc_ = (call);          \
		if (rc_ == -ENOMEM) {      \
			(*ret_failures)++; \
			rc_ = (call);      \
		}                          \
		if (rc_)                   \
			return rc_;        \
	} while (0)

static int feed_slots(struct model *m, __u64 count, unsigned int *ret_failures)
{
	static struct wire_slot sum;

	for (__u16 i = 0; i < N_SLOTS; i++) {
		struct wire_slot_key key = { .layer = i < 3 ? 64 + i : 1,
					     .op = (__u8)(i % 40),
					     .parent = i < 3 ? (i ? 63 + i : 0) : 66,
					     .sub = (__u8)(i % 200) };

		memset(&sum, 0, sizeof(sum));
		sum.count = count;
		sum.incl[(i * 7) % HIST_BUCKETS] = (__u32)count;
		sum.self[(i * 3 + (unsigned int)count) % HIST_BUCKETS] = (__u32)count;
		RETRY(model_feed_slot(m, &key, &sum));
	}
	return 0;
}

static int live(unsigned int *ret_failures, uint64_t *ret_passages)
{
	struct model_layer layer = { 1, "syscall", "syscall", NULL, 0 };
	struct model_target t = { .kind = "brick", .nodes = nodes, .n_nodes = 3 };
	struct model_stat stat = { .wound = 5, .has_counts = true };
	struct model_view walk = { false, false };
	struct snapshot *snap = NULL;
	struct model *m = NULL;

	*ret_passages = 0;
	RETRY(model_new(&layer, 1, &m));
	RETRY(model_set_target(m, 0, &t, NULL));
	RETRY(model_feed_stats(m, 0, 1, 59, &stat));
	RETRY(feed_slots(m, 1, ret_failures));
	t.n_nodes = 4;
	RETRY(model_set_target(m, 0, &t, NULL));
	RETRY(feed_slots(m, 3, ret_failures));
	stat.wound = 9;
	RETRY(model_feed_stats(m, 0, 1, 59, &stat));
	RETRY(model_feed_stats(m, 0, 2, 58, &stat));
	RETRY(model_tick(m, 1, &walk, &snap));
	for (size_t i = 0; i < snap->targets[0].n_ops; i++)
		for (size_t j = 0; j < snap->targets[0].ops[i].n_layers; j++)
			*ret_passages += snap->targets[0].ops[i].layers[j].count;
	snapshot_free(snap);
	model_free(m);
	return 0;
}

int main(void)
{
	unsigned int failures = 0, wrong = 0, leaks = 0;
	uint64_t want, passages;
	long steps = 0;

	is_int(live(&failures, &want), 0, "a life with memory enough");
	is_int(failures, 0, "no failure");
	ok(want > 0, "a picture with rows");
	is_int(alloc_live, 0, "and everything is freed");
	do {
		failures = 0;
		alloc_left = steps;
		wrong += live(&failures, &passages) != 0 || passages != want;
		leaks += alloc_live != 0;
		steps += failures == 1;
	} while (failures == 1 && steps < MAX_STEPS);
	is_int(failures, 0, "each of %ld allocations failed once, and was reported", steps);
	ok(steps > 400, "there are hundreds of them");
	is_int(wrong, 0, "the same call then works, and the picture is the same");
	is_int(leaks, 0, "nothing is lost on the way");
	return tap_done();
}
