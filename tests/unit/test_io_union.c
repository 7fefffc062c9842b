/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_union.c: what part of a time requests were in flight, from the very text that the BPF
 * programs compile: random requests, many of them overlapping (fixed seed), against a look at each
 * nanosecond of the time; and cases by hand.
 */
#include <linux/types.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/io_union.h"
#include "../tap.h"

#define RANDOM_TIMES 200000
#define LONGEST      200
#define EPOCH        1000 /* no stamp is 0 but one that was not taken */

/* What each nanosecond is of: the furthest stage of any request. */
enum stage { NONE, QUEUED, ANYWHERE, FLUSHED, AT_DEVICE };

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
	return (next_random(state) >> 11) % limit;
}

static struct io_sums unite(struct io_notes *notes, uint64_t from, uint64_t until)
{
	struct io_union u = { .notes = notes, .from = from, .until = until };

	for (__u32 i = 0; i < IO_NOTES && !union_note(i, &u); i++)
		;
	return u.sums;
}

static enum stage stage_at(const struct io_note *n, uint64_t t)
{
	if (t < n->start || t >= n->done)
		return NONE;
	if (n->flags & IO_NOTE_FLUSH)
		return n->start ? FLUSHED : ANYWHERE;
	if (n->issue && t >= n->issue)
		return AT_DEVICE;
	return n->start && n->issue ? QUEUED : ANYWHERE;
}

static struct io_sums look(const struct io_notes *notes, uint64_t from, uint64_t until)
{
	uint64_t i, first = notes->n > IO_NOTES ? notes->n - IO_NOTES : 0;
	struct io_sums sums = { 0 };

	for (i = first; i < notes->n; i++) {
		const struct io_note *n = &notes->note[i % IO_NOTES];

		if (n->done >= from)
			sums.last_done = n->done < until ? n->done : until;
	}
	for (uint64_t t = from; t < until; t++) {
		enum stage furthest = NONE, stage;

		for (i = first; i < notes->n; i++) {
			stage = stage_at(&notes->note[i % IO_NOTES], t);
			furthest = stage > furthest ? stage : furthest;
		}
		sums.any_ns += furthest >= QUEUED;
		sums.past_ns += furthest >= ANYWHERE;
		sums.issued_ns += furthest >= FLUSHED;
		sums.device_ns += furthest >= AT_DEVICE;
	}
	return sums;
}

static int by_done(const void *a, const void *b)
{
	const struct io_note *x = a, *y = b;

	return x->done < y->done ? -1 : x->done > y->done;
}

static struct io_note draw_note(uint64_t *state)
{
	struct io_note n = { .start = EPOCH + below(state, LONGEST) };

	n.issue = n.start + below(state, LONGEST / 4);
	n.done = n.issue + below(state, LONGEST / 2);
	if (below(state, 8) == 0)
		n.issue = n.start - below(state, 3); /* read from another CPU's clock */
	n.flags = below(state, 4) ? 0 : IO_NOTE_FLUSH;
	if (below(state, 8) == 0)
		n.start = 0;
	if (below(state, 8) == 0)
		n.issue = 0;
	return n;
}

/* So many requests as they complete; more than there is room for, in one of four. */
static void draw_notes(uint64_t *state, struct io_notes *notes)
{
	struct io_note all[2 * IO_NOTES];
	uint64_t n = below(state, below(state, 4) ? IO_NOTES : 2 * IO_NOTES) + 1;

	memset(notes, 0, sizeof(*notes));
	for (uint64_t i = 0; i < n; i++)
		all[i] = draw_note(state);
	qsort(all, n, sizeof(all[0]), by_done);
	while (notes->n < n) {
		notes->note[notes->n % IO_NOTES] = all[notes->n];
		notes->n++;
	}
}

static void test_random(void)
{
	uint64_t state = 88172645463325252ULL;
	unsigned int bad = 0, unnested = 0, parallel = 0, unknown = 0;

	for (unsigned int i = 0; i < RANDOM_TIMES; i++) {
		uint64_t from = EPOCH + below(&state, LONGEST);
		uint64_t until = from + below(&state, LONGEST);
		struct io_notes notes;
		struct io_sums sums, nested, want;

		draw_notes(&state, &notes);
		nested = sums = unite(&notes, from, until);
		want = look(&notes, from, until);
		bad += memcmp(&sums, &want, sizeof(sums)) != 0;
		union_nest(&nested, until - from);
		unnested += memcmp(&sums, &nested, sizeof(sums)) != 0;
		parallel += sums.any_ns > sums.past_ns && sums.past_ns > sums.issued_ns &&
			    sums.issued_ns > sums.device_ns && sums.device_ns > 0;
		unknown += sums.last_done == 0;
	}
	is_int(bad, 0, "%d random times: as each nanosecond looked at", RANDOM_TIMES);
	is_int(unnested, 0, "and each stage lies inside the one before");
	ok(parallel > RANDOM_TIMES / 500, "%u of them have all stages", parallel);
	ok(unknown > RANDOM_TIMES / 100, "in %u of them no request ended", unknown);
}

static void is_sums(struct io_sums sums, struct io_sums want, const char *what)
{
	ok(memcmp(&sums, &want, sizeof(sums)) == 0, "%s", what);
}

static void test_cases(void)
{
	const struct io_sums nothing = { 0 };
	struct io_notes notes = { 0 };

	is_sums(unite(&notes, 100, 200), nothing, "no request: nothing is known");
	notes = (struct io_notes){ .n = 1, .note[0] = { .start = 10, .issue = 20, .done = 90 } };
	is_sums(unite(&notes, 100, 200), nothing, "nor of one that ended before");
	notes.note[0] = (struct io_note){ .start = 120, .issue = 130, .done = 180 };
	is_sums(unite(&notes, 100, 200), (struct io_sums){ 180, 60, 50, 50, 50 },
		"one in its queue and at the device");
	notes.note[0].flags = IO_NOTE_FLUSH;
	is_sums(unite(&notes, 100, 200), (struct io_sums){ 180, 60, 60, 60, 0 },
		"a flush has no queue");
	notes.note[0] = (struct io_note){ .start = 50, .issue = 60, .done = 300 };
	is_sums(unite(&notes, 100, 200), (struct io_sums){ 200, 100, 100, 100, 100 },
		"one that is longer than the time");
}

/* A stamp that was not taken is not a time at which something began. */
static void test_unstamped(void)
{
	struct io_notes notes = { .n = 1 };

	notes.note[0] = (struct io_note){ .issue = 130, .done = 180 };
	is_sums(unite(&notes, 100, 200), (struct io_sums){ 180, 80, 80, 50, 50 },
		"no start: held back or in its queue, until it is issued");
	notes.note[0] = (struct io_note){ .start = 120, .done = 180 };
	is_sums(unite(&notes, 100, 200), (struct io_sums){ 180, 60, 60, 0, 0 },
		"no issue: in flight, nobody knows where");
	notes.note[0].flags = IO_NOTE_FLUSH;
	is_sums(unite(&notes, 100, 200), (struct io_sums){ 180, 60, 60, 60, 0 },
		"but a flush is a flush");
	notes.note[0] = (struct io_note){ .done = 180 };
	is_sums(unite(&notes, 100, 200), (struct io_sums){ 180, 80, 80, 0, 0 },
		"neither: its end is known");
	notes.n = 2;
	notes.note[1] = (struct io_note){ .start = 120, .issue = 130, .done = 190 };
	is_sums(unite(&notes, 100, 200), (struct io_sums){ 190, 90, 90, 60, 60 },
		"what is known of others counts");
}

/* Words of two requests in one note: no sum is larger than what it lies in. */
static void test_torn(void)
{
	struct io_sums sums = { .any_ns = 90, .past_ns = 91, .issued_ns = 95, .device_ns = 99 };

	union_nest(&sums, 80);
	is_sums(sums, (struct io_sums){ 0, 80, 80, 80, 80 }, "all fit the time");
	sums = (struct io_sums){ .any_ns = 70, .past_ns = 60, .issued_ns = 61, .device_ns = 65 };
	union_nest(&sums, 80);
	is_sums(sums, (struct io_sums){ 0, 70, 60, 60, 60 }, "and each the one before");
}

int main(void)
{
	test_cases();
	test_unstamped();
	test_random();
	test_torn();
	return tap_done();
}
