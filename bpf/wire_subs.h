/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * wire_subs.h: a part of the contract of wire.h: what the layers below the system calls tell apart,
 * by number and as it is shown. Knows of no structure.
 */
#ifndef BRICKTOP_WIRE_SUBS_H
#define BRICKTOP_WIRE_SUBS_H

/*
 * Subs of the layers below the syscall, as they are shown. A wait that the kernel announces by an
 * event is met at the event and lasts as long as the thread then sleeps, be it not at all.
 */
#define WIRE_XFS(X)                \
	X(SELF, "xfs")             \
	X(LOCK, "xfs lock wait")   \
	X(GRANT, "xfs log grant")  \
	X(ICLOG, "xfs log iclog")  \
	X(CIL, "xfs log cil")      \
	X(FORCE, "xfs log force")  \
	X(ALLOC, "xfs allocation") \
	X(META, "xfs metadata read")

#define WIRE_THROTTLE(X)     \
	X(WRITE, "throttle") \
	X(FAULT, "throttle in a page fault")

#define WIRE_WRITEBACK(X)         \
	X(WAIT, "writeback wait") \
	X(READ, "folio read")

/* As the waiting thread felt it; what was in flight for it at several stages counts at the last. */
#define WIRE_BLK(X)                                                                       \
	X(HELD, "block held back") /* before there is a request: cgroup limits, no tag */ \
	X(QUEUE, "block queue")    /* of a request, until the driver has it */            \
	X(DEVICE, "block device")                                                         \
	X(FLUSH, "block flush") /* of the device's cache */                               \
	X(ANY, "block wait")    /* for I/O of which nothing else is known */

#define WIRE_SCHED(X)             \
	X(PREEMPTED, "preempted") \
	X(WAKEUP, "wakeup") /* from the end of the I/O that it slept for until it ran */

/*
 * Asynchronous operations, each from the call that submits it to its completion. SUBMIT lies inside
 * one: the submitting thread was in that call, and nothing was in flight. REAP is behind one that a
 * request waits for: until the process has fetched the result.
 */
#define WIRE_AIO(X)             \
	X(READ, "aio read")     \
	X(WRITE, "aio write")   \
	X(FSYNC, "aio fsync")   \
	X(SUBMIT, "aio submit") \
	X(REAP, "aio reap")

#define WIRE_URING(X)              \
	X(READ, "io_uring read")   \
	X(WRITE, "io_uring write") \
	X(FSYNC, "io_uring fsync") \
	X(SUBMIT, "io_uring submit")

#define WIRE_XFS_ENUM(name, text)       WIRE_XFS_##name,
#define WIRE_THROTTLE_ENUM(name, text)  WIRE_THROTTLE_##name,
#define WIRE_WRITEBACK_ENUM(name, text) WIRE_WRITEBACK_##name,
#define WIRE_BLK_ENUM(name, text)       WIRE_BLK_##name,
#define WIRE_SCHED_ENUM(name, text)     WIRE_SCHED_##name,
#define WIRE_AIO_ENUM(name, text)       WIRE_AIO_##name,
#define WIRE_URING_ENUM(name, text)     WIRE_URING_##name,
enum wire_xfs { WIRE_XFS_NONE, WIRE_XFS(WIRE_XFS_ENUM) WIRE_XFS_COUNT };
enum wire_throttle { WIRE_THROTTLE_NONE, WIRE_THROTTLE(WIRE_THROTTLE_ENUM) WIRE_THROTTLE_COUNT };
enum wire_writeback {
	WIRE_WRITEBACK_NONE,
	WIRE_WRITEBACK(WIRE_WRITEBACK_ENUM) WIRE_WRITEBACK_COUNT
};
enum wire_blk { WIRE_BLK_NONE, WIRE_BLK(WIRE_BLK_ENUM) WIRE_BLK_COUNT };
enum wire_sched { WIRE_SCHED_NONE, WIRE_SCHED(WIRE_SCHED_ENUM) WIRE_SCHED_COUNT };
enum wire_aio { WIRE_AIO_NONE, WIRE_AIO(WIRE_AIO_ENUM) WIRE_AIO_COUNT };
enum wire_uring { WIRE_URING_NONE, WIRE_URING(WIRE_URING_ENUM) WIRE_URING_COUNT };

#endif
