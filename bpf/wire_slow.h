/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * wire_slow.h: the part of the contract between the BPF programs and the collector that is about
 * slow operations: from how long on one is slow, and how many were. What is written of them is a
 * struct wire_dump.
 */
#ifndef BRICKTOP_WIRE_SLOW_H
#define BRICKTOP_WIRE_SLOW_H

#include "wire.h"

/*
 * Kinds of slow operations, which are not weighed against each other: users' requests, what no user
 * waits for (GlusterFS's own requests, background stacks), and processes' own file operations.
 */
enum wire_slow_kind {
	WIRE_SLOW_USERS,
	WIRE_SLOW_OTHERS,
	WIRE_SLOW_LOCAL,
	WIRE_SLOW_KINDS,
};

/* Rows of a target: 64 fops of users, 64 of others, and from there on subs of local spans. */
#define WIRE_SLOW_FOPS     64
#define WIRE_SLOW_SYSCALLS 112
#define WIRE_SLOW_ROWS     256
_Static_assert(WIRE_SYSCALL_COUNT <= WIRE_SLOW_SYSCALLS, "a row for each system call");

/* An operation's row; top: of a local span, its outermost layer. */
static inline __u32 wire_slow_row(__u32 root, __u32 origin, __u32 op, __u32 top)
{
	if (root == WIRE_ROOT_LOCAL && top == WIRE_LAYER_SYSCALL)
		return 2 * WIRE_SLOW_FOPS + op % WIRE_SLOW_SYSCALLS;
	if (root == WIRE_ROOT_LOCAL)
		return 2 * WIRE_SLOW_FOPS + WIRE_SLOW_SYSCALLS + top % 16;
	if (root == WIRE_ROOT_BACKGROUND || origin == WIRE_ORIGIN_INTERNAL)
		return WIRE_SLOW_FOPS + op % WIRE_SLOW_FOPS;
	return op % WIRE_SLOW_FOPS;
}

/* Which of enum wire_slow_kind a row is of. */
static inline __u32 wire_slow_kind(__u32 row)
{
	return row < WIRE_SLOW_FOPS     ? WIRE_SLOW_USERS :
	       row < 2 * WIRE_SLOW_FOPS ? WIRE_SLOW_OTHERS :
					  WIRE_SLOW_LOCAL;
}

/* What the programs are told, and count: the first two by the collector, the others only grow. */
struct wire_slow_row {
	__u64 limit_ns; /* slow is what takes so long or longer; ~0: nothing */
	__u64 pad;
	__u64 passed, dropped; /* slow but below the floor, or without room: not written */
};

/* Map "slow", one entry a target. */
struct wire_slow {
	__u64 floor_ns[WIRE_SLOW_KINDS]; /* there are enough of a kind that are slower */
	__u64 pad[5];
	struct wire_slow_row row[WIRE_SLOW_ROWS];
};
_Static_assert(sizeof(struct wire_slow) == 64 + 32 * WIRE_SLOW_ROWS, "wire_slow");

#endif
