/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * io_union.h: what part of a time requests to the block device were in flight, in all and at each
 * stage: those that were noted, parallel ones once.
 *
 * Owns the notes and that arithmetic. The same text is compiled into the BPF programs and the unit
 * tests; it must not know maps, the kernel's requests, or whose time it is. Include it after a
 * header that defines the __u types and __always_inline.
 */
#ifndef BRICKTOP_IO_UNION_H
#define BRICKTOP_IO_UNION_H

#define IO_NOTES      16
#define IO_NOTE_FLUSH 1 /* of the device's cache, no data */

/*
 * A request that completed. The kernel takes no start where the queue keeps no statistics, and no
 * issue where nobody asks for that; 0 then.
 */
struct io_note {
	__u64 start, issue, done;
	__u32 flags, pad;
};

/* Whose I/O: the last requests of his that completed, in that order. */
struct io_notes {
	__u64 n; /* ever noted; the next goes to note[n % IO_NOTES] */
	struct io_note note[IO_NOTES];
};

/*
 * The requests are looked at from the one that ended last: whatever of an earlier one lies above
 * the lowest begin so far is covered already, so each union needs one running mark.
 */
struct io_union {
	struct io_notes *notes;
	__u64 from, until; /* of the sleep, or of an operation */
	__u64 any_low, past_low, issued_low, device_low;
	struct io_sums {
		__u64 last_done; /* 0: no request ended in it */
		__u64 any_ns;
		__u64 past_ns;   /* in no queue, or nobody knows */
		__u64 issued_ns; /* at the device, data or flush */
		__u64 device_ns;
	} sums;
};
/* 6.1 counts the stacks of all callers together, each in steps of 32 */
_Static_assert(sizeof(struct io_union) <= 96, "io_union");

static __always_inline void union_add(__u64 begin, __u64 end, __u64 from, __u64 *low, __u64 *sum)
{
	if (begin < from)
		begin = from;
	if (end > *low)
		end = *low;
	if (begin >= end)
		return;
	*sum += end - begin;
	*low = begin;
}

/* The note before the last i; 1: there is none. As bpf_loop() calls it, IO_NOTES times. */
static inline long union_note(__u32 i, struct io_union *u)
{
	struct io_sums *sums = &u->sums;
	struct io_note n;
	__u64 n_notes, done, any, past, issued, device;

	/* one that is noted meanwhile only makes it look at another one twice */
	n_notes = u->notes->n;
	if (i >= n_notes)
		return 1;
	/* its place may be taken by another CPU's meanwhile */
	n = u->notes->note[(n_notes - 1 - i) % IO_NOTES];
	done = n.done;
	if (done < u->from)
		return 0;
	if (done > u->until)
		done = u->until;
	if (!sums->last_done)
		sums->last_done = u->any_low = u->past_low = u->issued_low = u->device_low = done;
	/* without a stamp it may have been there all the time, or not */
	any = past = n.start;
	issued = device = n.issue > n.start ? n.issue : n.start;
	if (n.start && !(n.flags & IO_NOTE_FLUSH))
		past = issued;
	if (!n.issue)
		issued = device = done;
	if (n.flags & IO_NOTE_FLUSH) {
		issued = n.start ?: done;
		device = done;
	}
	union_add(any, done, u->from, &u->any_low, &sums->any_ns);
	union_add(past, done, u->from, &u->past_low, &sums->past_ns);
	union_add(issued, done, u->from, &u->issued_low, &sums->issued_ns);
	union_add(device, done, u->from, &u->device_low, &sums->device_ns);
	return 0;
}

/* Each stage lies inside the one before, and all in so much: unless a note was half another one's.
 */
static __always_inline void union_nest(struct io_sums *sums, __u64 most_ns)
{
	if (sums->any_ns > most_ns)
		sums->any_ns = most_ns;
	if (sums->past_ns > sums->any_ns)
		sums->past_ns = sums->any_ns;
	if (sums->issued_ns > sums->past_ns)
		sums->issued_ns = sums->past_ns;
	if (sums->device_ns > sums->issued_ns)
		sums->device_ns = sums->issued_ns;
}

#endif
