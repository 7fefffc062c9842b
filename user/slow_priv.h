/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_priv.h: a kept operation, shared by slow.c, which keeps them, and slow_tree.c, which makes
 * the tree of one.
 */
#ifndef BRICKTOP_SLOW_PRIV_H
#define BRICKTOP_SLOW_PRIV_H

#include "slow.h"

/* One allocation; frames and spans lie behind it. Every index in them has been checked. */
struct slow_op {
	struct wire_dump head;
	struct wire_who who;
	uint64_t begin_ns, incl_ns; /* CLOCK_MONOTONIC */
	uint64_t limit_ns;          /* as it was when the operation was kept */
	unsigned int n_frames, n_spans;
	uint64_t more_calls, more_ns; /* spans left out: shorter than all that are here */
	struct wire_dump_frame *frames;
	struct wire_span *spans; /* longest first */
};

/* Fill the figures and rows of *ret. 0 or -ENOMEM. */
int slow_tree_build(const struct slow_op *op, const struct slow_view *view, struct snap_slow *ret);

#endif
