// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_frames.c: one call stack, its frames, and the self-check of both: the call pool's list
 * and the frames of whatever is in flight. Under load every list here moves; a layout is refused
 * only where no try ever fitted.
 */
#include "gluster_frames.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "gluster_walk.h"

#define STACK_BYTES  0x740 /* holds every field of every row */
#define FRAME_BYTES  0xb8
#define CHECK_STACKS 64
#define CHECK_TRIES  20
#define NS_PER_SEC   1000000000ULL

static unsigned int stack_bytes(const struct gluster_layout *l)
{
	unsigned int end = l->stack_myframes + 16;

	if (l->stack_ctx + 8U > end)
		end = l->stack_ctx + 8U;
	if (l->stack_op + 4U > end)
		end = l->stack_op + 4U;
	if (l->stack_type + 1U > end)
		end = l->stack_type + 1U;
	return end < STACK_BYTES ? end : STACK_BYTES;
}

static uint32_t half_word(const uint8_t *raw, unsigned int offset)
{
	uint32_t value;

	memcpy(&value, raw + offset, sizeof(value));
	return value;
}

int gluster_read_stack(struct procmem *pm, const struct gluster_layout *l, uint64_t addr,
		       struct gluster_stack *ret_stack)
{
	uint8_t raw[STACK_BYTES];
	int err = procmem_read(pm, addr, raw, stack_bytes(l));

	if (err)
		return err;
	*ret_stack = (struct gluster_stack){
		.addr = addr,
		.next = gluster_word(raw, GLUSTER_STACK_NEXT),
		.prev = gluster_word(raw, GLUSTER_STACK_NEXT + 8),
		.pool = gluster_word(raw, GLUSTER_STACK_POOL),
		.client = gluster_word(raw, GLUSTER_STACK_CLIENT),
		.unique = gluster_word(raw, GLUSTER_STACK_UNIQUE),
		.state = gluster_word(raw, GLUSTER_STACK_STATE),
		.ctx = gluster_word(raw, l->stack_ctx),
		.newest_link = gluster_word(raw, l->stack_myframes),
		.uid = half_word(raw, GLUSTER_STACK_UID),
		.pid = (int32_t)half_word(raw, GLUSTER_STACK_PID),
		.op = half_word(raw, l->stack_op),
		.type = raw[l->stack_type],
	};
	return 0;
}

/* struct timespec, or struct timeval in 3.12. False where it is neither. */
static bool decode_time(const struct gluster_layout *l, const uint8_t *raw, uint64_t *ret_ns)
{
	uint64_t secs = gluster_word(raw, 0), part = gluster_word(raw, 8);
	uint64_t parts_per_sec = l->frame_time_is_wall ? 1000000 : NS_PER_SEC;

	*ret_ns = 0;
	if (part >= parts_per_sec || secs > UINT64_MAX / NS_PER_SEC / 2)
		return false;
	*ret_ns = secs * NS_PER_SEC + part * (NS_PER_SEC / parts_per_sec);
	return true;
}

static int read_frame(struct procmem *pm, const struct gluster_layout *l, uint64_t addr,
		      struct gluster_frame *ret_frame, uint64_t *ret_older_link)
{
	uint8_t raw[FRAME_BYTES];
	int err = procmem_read(pm, addr, raw, l->frame_size);

	if (err)
		return err;
	*ret_frame = (struct gluster_frame){
		.addr = addr,
		.root = gluster_word(raw, GLUSTER_FRAME_ROOT),
		.parent = gluster_word(raw, GLUSTER_FRAME_PARENT),
		.local = gluster_word(raw, l->frame_local),
		.xlator = gluster_word(raw, l->frame_this),
		.wind_from = gluster_word(raw, l->frame_wind_from),
		.op = half_word(raw, l->frame_op),
		.complete = raw[l->frame_complete] != 0, /* bool or int, little-endian */
	};
	ret_frame->stamps_valid = decode_time(l, raw + l->frame_begin, &ret_frame->begin_ns);
	ret_frame->stamps_valid &= decode_time(l, raw + l->frame_end, &ret_frame->end_ns);
	*ret_older_link = gluster_word(raw, GLUSTER_FRAME_LINK);
	return 0;
}

int gluster_read_frames(struct procmem *pm, const struct gluster_layout *l,
			const struct gluster_stack *stack, struct gluster_frame *frames,
			unsigned int max, unsigned int *ret_n)
{
	uint64_t head = stack->addr + l->stack_myframes, link = stack->newest_link;
	unsigned int n = 0;

	for (; link != head && n < max; n++) {
		int err = read_frame(pm, l, link - GLUSTER_FRAME_LINK, &frames[n], &link);

		if (err)
			return err == -ESRCH ? err : -EAGAIN;
		if (frames[n].root != stack->addr)
			return -EAGAIN;
	}
	if (!n || link != head)
		return -EAGAIN;
	*ret_n = n;
	return 0;
}

uint64_t gluster_frame_clock_ns(const struct gluster_layout *l)
{
	struct timespec now;

	clock_gettime(l->frame_time_is_wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

static int check_frames(struct gluster_probe *p, const struct gluster_stack *stack)
{
	struct gluster_frame frames[GLUSTER_MAX_FRAMES];
	uint64_t now_ns = gluster_frame_clock_ns(p->layout) + NS_PER_SEC;
	unsigned int n = 0;
	int err = gluster_read_frames(p->pm, p->layout, stack, frames, GLUSTER_MAX_FRAMES, &n);

	if (err == -EAGAIN)
		return gluster_fail(p, "frames of stack %#" PRIx64 " do not hold together",
				    stack->addr);
	for (unsigned int i = 0; !err && i < n; i++) {
		uint64_t ctx = 0;

		if (!frames[i].stamps_valid || frames[i].begin_ns > now_ns)
			return gluster_fail(p, "a frame does not begin in the past");
		err = gluster_read_ptr(p, frames[i].xlator + p->layout->xl_ctx, &ctx);
		if (!err && ctx != p->ctx_addr)
			return gluster_fail(p, "a frame's xlator is no xlator");
	}
	return err;
}

/* The list once around, as far as CHECK_STACKS; the oldest stack, which moves least, with its
 * frames. */
static int check_pool_once(struct gluster_probe *p)
{
	struct gluster_stack stack;
	uint64_t head[3], node; /* next, prev, count */
	uint64_t from = p->pool_addr;
	int64_t n = 0;
	int err = gluster_read(p, p->pool_addr, head, sizeof(head));

	for (node = head[1]; !err && node != p->pool_addr && n < CHECK_STACKS; n++) {
		if (gluster_read_stack(p->pm, p->layout, node, &stack))
			return gluster_fail(p, "stack %#" PRIx64 " cannot be read", node);
		if (stack.pool != p->pool_addr || stack.ctx != p->ctx_addr || stack.next != from)
			return gluster_fail(p, "stack %#" PRIx64 " is not of this pool", node);
		if (!n)
			err = check_frames(p, &stack);
		from = node;
		node = stack.prev;
	}
	if (!err && node == p->pool_addr && (n > (int64_t)head[2] + 2 || n + 2 < (int64_t)head[2]))
		return gluster_fail(p, "%" PRId64 " stacks are listed, %" PRId64 " are counted", n,
				    (int64_t)head[2]);
	return err;
}

int gluster_check_pool(struct gluster_probe *p)
{
	int err = -EBADMSG;

	gluster_begin_check(p, "call pool");
	for (int i = 0; i < CHECK_TRIES && err == -EBADMSG; i++) {
		static const struct timespec pause = { .tv_nsec = 200000 };

		err = check_pool_once(p);
		if (!procmem_pid(p->pm))
			break; /* an image does not change by itself */
		if (err == -EBADMSG)
			nanosleep(&pause, NULL);
	}
	return err;
}
