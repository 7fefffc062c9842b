// SPDX-License-Identifier: Apache-2.0
/*
 * test_watch_discovery.c: when frame ends are watched, and for how long: never on a process that
 * loses nothing, soon where stacks end unmet, patiently where they are rare, more and more rarely
 * where nothing is found. Time and counts are made up; the search itself is for end-to-end tests.
 */
#include "watch_discovery.h"

#include <string.h>

#include "../tap.h"

#define LOOK WATCH_SEARCH_LOOK_NS
#define SEC  1000000000ULL

static struct bed {
	struct watch_search s;
	struct watch_search_look l;
	unsigned int begun; /* searches */
} bed;

/* A process that has run for long: its counts are not 0 when the probes go in. */
static void begin(void)
{
	memset(&bed, 0, sizeof(bed));
	bed.l = (struct watch_search_look){ .now_ns = 50 * SEC, .ended = 70000, .met = 9 };
	watch_search_begin(&bed.s, &bed.l, 1);
}

/* One look later: so many stacks have ended, of which so many were not met. */
static enum watch_search_for look(uint64_t ended, uint64_t unmet)
{
	enum watch_search_for what;

	bed.l.now_ns += LOOK;
	bed.l.ended += ended;
	bed.l.met += ended - unmet;
	bed.l.hits += ended - unmet + (bed.s.now != WATCH_SEARCH_NONE ? 6 * ended : 0);
	what = watch_search_decide(&bed.s, &bed.l);
	bed.begun += bed.s.now == WATCH_SEARCH_NONE && what != WATCH_SEARCH_NONE;
	if (what != bed.s.now)
		watch_search_set(&bed.s, &bed.l, what);
	bed.l.found = 0;
	return what;
}

/* Looks for that long, each of ended stacks, unmet of them not met; the number of those armed. */
static unsigned int look_for(uint64_t ns, uint64_t ended, uint64_t unmet)
{
	unsigned int armed = 0;
	uint64_t until = bed.l.now_ns + ns;

	while (bed.l.now_ns < until)
		armed += look(ended, unmet) != WATCH_SEARCH_NONE;
	return armed;
}

static void test_never(void)
{
	begin();
	is_int(look_for(3600 * SEC, 4000, 0), 0, "an hour under load, all met: never armed");
	begin();
	is_int(look_for(3600 * SEC, 0, 0), 0, "an hour of nothing: never armed");
	begin();
	look(4000, 9);
	is_int(look_for(600 * SEC, 4000, 0), 0, "a few strays among many: never armed");
	begin();
	bed.s.least = 5;
	look(4, 4);
	is_int(look_for(60 * SEC, 0, 0), 0, "fewer than are worth it: never armed");
	begin();
	bed.l.met += 30; /* walked before the stacks are gone */
	look(0, 0);
	is_int(look_for(60 * SEC, 100, 0), 0, "more met than ended: never armed");
	is_int((long long)bed.s.missing, 0, "and nothing is missing");
}

static void test_soon(void)
{
	begin();
	is_int(look(1000, 200), WATCH_SEARCH_ALL, "many unmet: armed at the first look");
	bed.l.found = 1;
	look(1000, 200);
	is_int((long long)bed.s.missing, 400, "what is missing is counted");
	is_int(look_for(WATCH_SEARCH_ARMED_NS - LOOK, 1000, 0), WATCH_SEARCH_ARMED_NS / LOOK,
	       "found: it stays armed for more of them");
	is_int(look(1000, 0), WATCH_SEARCH_NONE, "but not for long");
	is_int(look_for(600 * SEC, 1000, 0), 0, "and not again");
	is_int((long long)bed.s.missing, 400, "what was missed before stays counted");
	is_int(look(1000, 200), WATCH_SEARCH_ALL, "unmet ones after that: armed at once");
}

static void test_in_vain(void)
{
	uint64_t at[12], k;
	unsigned int n = 0;

	begin();
	for (k = 0; k < 5 * 3600 * SEC / LOOK && n < 12; k++) {
		unsigned int was = bed.begun;

		look(100, 50);
		if (bed.begun > was)
			at[n++] = bed.l.now_ns;
	}
	if (!is_int(n, 12, "searched again and again"))
		return;
	for (k = 1; k < n && k < 7; k++)
		ok(at[k] - at[k - 1] >= (4ULL << (k - 1)) * SEC,
		   "wait %llu is twice the one before", (unsigned long long)k);
	ok(at[11] - at[10] <= WATCH_SEARCH_MOST_NS + 2 * WATCH_SEARCH_ARMED_NS,
	   "but the longest wait has an end");
	look_for(2 * SEC, 100, 50);
	is_int(bed.s.now, WATCH_SEARCH_NONE, "this one ends as well;");
	bed.l.now_ns += WATCH_SEARCH_MOST_NS;
	is_int(look(100, 50), WATCH_SEARCH_ALL, "armed once more,");
	bed.l.found = 1;
	look_for(2 * SEC, 100, 0);
	is_int(bed.s.now, WATCH_SEARCH_NONE, "and with success:");
	is_int(look(100, 50), WATCH_SEARCH_ALL, "then the wait is over for the next ones");
}

/* A heal's stack once a minute, in a process that does nothing else, or little. */
static void test_rare(void)
{
	begin();
	is_int(look(1, 1), WATCH_SEARCH_ALL, "one stack, unmet: armed");
	is_int(look_for(60 * SEC - LOOK, 0, 0) * LOOK, 60 * SEC - LOOK,
	       "it stays armed for the next one, a minute later");
	bed.l.found = 1;
	look(1, 1);
	look_for(2 * SEC, 0, 0);
	is_int(bed.s.now, WATCH_SEARCH_NONE, "which it finds: disarmed");
	begin();
	look(1, 1);
	is_int(look_for(600 * SEC, 0, 0) * LOOK, WATCH_SEARCH_IDLE_NS - LOOK,
	       "one that never comes again is not waited for without end");
	begin();
	look(5, 1);
	look_for(3 * SEC, 0, 0);
	is_int(bed.s.now, WATCH_SEARCH_ALL, "armed and idle,");
	ok(look_for(60 * SEC, 2000, 0) <= 1, "load ends it at once");
}

static void test_fops(void)
{
	begin();
	bed.l.unseen = 1ULL << 13;
	is_int(look(0, 0), WATCH_SEARCH_FOPS, "a fop that is never walked: armed");
	ok(bed.s.wanted == 1ULL << 13, "for that one");
	is_int(look(0, 0), WATCH_SEARCH_FOPS, "and it stays so");
	bed.l.unseen |= 1ULL << 12;
	is_int(look(0, 0), WATCH_SEARCH_ALL, "another one as well: for all");
	is_int((long long)bed.s.wanted, 0, "whichever");
	begin();
	bed.l.unseen = 1ULL << 13;
	look(0, 0);
	is_int(look(50, 50), WATCH_SEARCH_ALL, "stacks unmet meanwhile: for all");
	begin();
	bed.l.unseen = 1ULL << 13;
	look(0, 0);
	look_for(2 * SEC, 1000, 1);
	is_int(bed.s.now, WATCH_SEARCH_NONE, "in vain: over");
	ok(bed.s.next_fop_ns > bed.l.now_ns, "and put off");
	is_int((long long)bed.s.next_ns, 0, "the search for all is not");
}

static void test_unseen(void)
{
	uint64_t base[GLUSTER_MAX_FOP] = { [12] = 5, [13] = 7 };
	uint64_t last[GLUSTER_MAX_FOP] = { [12] = 5, [13] = 7 };
	uint64_t calls[GLUSTER_MAX_FOP] = { [12] = 6, [13] = 7 };

	ok(!watch_search_unseen(base, last, calls, 0), "called just now: it may be on its way");
	ok(watch_search_unseen(base, last, calls, 0) == 1ULL << 12, "a look later it is unseen");
	ok(!watch_search_unseen(base, last, calls, 1ULL << 12), "unless it was walked");
	calls[13] = 3;
	ok(!watch_search_unseen(base, last, calls, 1ULL << 12), "another graph counts from 0");
	ok(watch_search_unseen(base, last, calls, 1ULL << 12) == 1ULL << 13,
	   "and its calls are calls");
}

/* Of three stacks that end one never winds anything: the first search learns it, the last one. */
static void test_bare(void)
{
	unsigned int i;

	begin();
	for (i = 0; i < 300; i++) {
		look(300, 100);
		if (bed.s.now != WATCH_SEARCH_NONE) {
			bed.l.ends += 300;
			bed.l.bare_ends += 100;
		}
	}
	is_int(bed.begun, 1, "stacks that wind nothing are searched for once");
	is_int((long long)bed.s.missing, 0, "and are not missing after that");
	look_for(2 * SEC, 300, 150);
	is_int(bed.begun, 2, "others that go unmet beside them make a search");
	ok(bed.s.missing > 0, "and are missing");
}

int main(void)
{
	test_never();
	test_soon();
	test_in_vain();
	test_rare();
	test_fops();
	test_unseen();
	test_bare();
	return tap_done();
}
