/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wait.bpf.h: what a thread waits for inside a span. Layers announce a wait at their own events;
 * the next sleep is charged to it (sched.bpf.c). For a sleep that I/O ends, the requests that
 * completed meanwhile are noted by whose they are (block.bpf.c), and tell what it was spent on.
 * Owns the announcing and the notes; which events announce what is the layers' business.
 */
#ifndef BRICKTOP_WAIT_BPF_H
#define BRICKTOP_WAIT_BPF_H

#include "compat.bpf.h"
#include "traced.bpf.h"

#include "io_union.h"

/* ledger_wait.mode: how the call accesses its file, which tells whose I/O it waits for. */
enum wait_mode {
	WAIT_MODE_NONE,
	WAIT_MODE_BUFFERED_READ, /* folios of the file's mapping */
	WAIT_MODE_BUFFERED_WRITE,
	WAIT_MODE_DIRECT_READ, /* bios of its own */
	WAIT_MODE_DIRECT_WRITE,
	WAIT_MODE_SYNC, /* one bio at a time, by submit_bio_wait(): a flush */
};

/* ledger_wait.as: why a thread is off its CPU. */
enum wait_as {
	WAIT_AS_OTHER,    /* for what is not known: stays in the self time of who sleeps */
	WAIT_AS_RUNNABLE, /* it is not waiting but for a CPU */
	WAIT_AS_NEXT,     /* for what was announced */
	WAIT_AS_BASE,
	WAIT_AS_IO,
	WAIT_AS_LOCK,
};

/* ---- requests that completed while somebody waited for them ------------ */

/*
 * Made by who goes to sleep, so that requests of nobody who is looked at find nothing here. Keys
 * are kernel addresses, which never mean two things at once: a task (its own direct I/O), a
 * mapping (folios of a file), a task's stack (submit_bio_wait), an xfs_buf, an iclog.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2048);
	__type(key, __u64);
	__type(value, struct io_notes);
} io_waited SEC(".maps");

/* A value with nothing noted: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct io_notes);
} io_nothing SEC(".maps");

/* A request has completed. The kernel keeps the other stamps in the request itself. */
static __always_inline void io_note_request(struct io_notes *notes, const struct request *rq)
{
	struct io_note *note = &notes->note[__sync_fetch_and_add(&notes->n, 1) % IO_NOTES];

	note->start = compat_request_start(rq);
	note->issue = rq->io_start_time_ns;
	note->flags = (rq->cmd_flags & REQ_OP_MASK) == REQ_OP_FLUSH || !rq->__data_len ?
			      IO_NOTE_FLUSH :
			      0;
	note->done = bpf_ktime_get_ns();
}

/*
 * Of a time, what requests were in flight. A global function: verified by itself, so that nothing
 * behind it depends on what the loop made of each field. (Without, 6.12 and 6.18.15 look at a
 * million instructions and are not through; 6.18.44 needs 36,000.)
 */
__noinline int io_unite(struct io_sums *ret_sums, struct io_notes *notes, __u64 from, __u64 until)
{
	struct io_union u = { .notes = notes, .from = from, .until = until };

	if (!ret_sums || !notes)
		return 0;
	bpf_loop(IO_NOTES, union_note, &u, 0);
	*ret_sums = u.sums;
	return 0;
}

/* ---- announcing -------------------------------------------------------- */

/* The open spans of this thread, if it is traced and in a call that is watched; h as filled. */
static __always_inline struct ledger *wait_ledger(struct hit *h)
{
	struct ledger *l;

	if (!traced_find_current(h))
		return NULL;
	traced_count(h);
	l = ledger_find();
	if (l)
		ledger_renew(l);
	if (l && l->depth)
		return l;
	traced_end(h);
	return NULL;
}

/* The next sleep is for this, and key's I/O (0: none that is known) is behind it. */
static __always_inline void wait_expect(struct ledger *l, __u32 layer, __u32 sub, __u64 key)
{
	l->wait.next = part_meet(l, layer, sub);
	l->wait.key = key;
}

#endif
