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

/* A request that completed. */
struct io_note {
	__u64 start, issue, done; /* issue 0: not known */
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
	__u64 next;        /* note to look at: one below */
	__u64 any_low, issued_low, device_low;
	struct io_sums {
		__u64 last_done; /* 0: no request ended in it */
		__u64 any_ns;
		__u64 issued_ns; /* at the device, data or flush */
		__u64 device_ns;
	} sums;
};

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

/* Look at one more note, up to IO_NOTES times; 1: there is none. As bpf_loop() calls it. */
static inline long union_note(__u32 i, struct io_union *u)
{
	struct io_sums *sums = &u->sums;
	struct io_note n;
	__u64 done, issue;

	(void)i;
	if (!u->next)
		return 1;
	u->next--;
	/* its place may be taken by another CPU's meanwhile */
	n = u->notes->note[u->next % IO_NOTES];
	done = n.done;
	if (done < u->from)
		return 0;
	if (done > u->until)
		done = u->until;
	if (!sums->last_done)
		sums->last_done = u->any_low = u->issued_low = u->device_low = done;
	issue = n.issue && n.issue > n.start ? n.issue : n.start;
	union_add(n.start, done, u->from, &u->any_low, &sums->any_ns);
	if (n.flags & IO_NOTE_FLUSH) {
		union_add(n.start, done, u->from, &u->issued_low, &sums->issued_ns);
		return 0;
	}
	union_add(issue, done, u->from, &u->issued_low, &sums->issued_ns);
	union_add(issue, done, u->from, &u->device_low, &sums->device_ns);
	return 0;
}

/* Each stage lies inside the one before, and all in so much: unless a note was half another one's.
 */
static __always_inline void union_nest(struct io_sums *sums, __u64 most_ns)
{
	if (sums->any_ns > most_ns)
		sums->any_ns = most_ns;
	if (sums->issued_ns > sums->any_ns)
		sums->issued_ns = sums->any_ns;
	if (sums->device_ns > sums->issued_ns)
		sums->device_ns = sums->issued_ns;
}

#endif
