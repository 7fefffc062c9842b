/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_frames.h: call stacks and their frames as they lie in a GlusterFS process's memory. They
 * come and go while they are read, so each function says -EAGAIN where what it read does not hold
 * together: read again then. Inside of the gluster modules alone.
 */
#ifndef BRICKTOP_GLUSTER_FRAMES_H
#define BRICKTOP_GLUSTER_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "gluster_layout.h"
#include "procmem.h"

#define GLUSTER_MAX_FRAMES 256

struct gluster_stack {
	uint64_t addr, next, prev, pool, client, unique, state, ctx;
	uint64_t newest_link; /* of the newest frame; the list's head where there is none */
	uint32_t uid, op;
	int32_t pid;
	uint8_t type; /* 1: a file operation */
};

struct gluster_frame {
	uint64_t addr, root, parent, local, xlator, wind_from;
	uint64_t begin_ns, end_ns; /* on the clock of the release; 0: not stamped */
	uint32_t op;
	bool complete, stamps_valid;
};

/* 0 or -errno of procmem. */
int gluster_read_stack(struct procmem *pm, const struct gluster_layout *layout, uint64_t addr,
		       struct gluster_stack *ret_stack);

/* Newest first, at most max. 0; -EAGAIN: the list is no list of this stack's frames now; -ESRCH. */
int gluster_read_frames(struct procmem *pm, const struct gluster_layout *layout,
			const struct gluster_stack *stack, struct gluster_frame *frames,
			unsigned int max, unsigned int *ret_n);

/* Now, on the clock of the frames' stamps. */
uint64_t gluster_frame_clock_ns(const struct gluster_layout *layout);

#endif
