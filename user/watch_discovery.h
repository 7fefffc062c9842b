/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_discovery.h: when a process is searched for callbacks that no probe is at. A search is one
 * probe that sees every frame end, dear where there is load: it is worth while when call stacks end
 * that no probe has met, or fops are called that are never walked. The rules are pure; the search
 * itself is for watch*.c alone.
 */
#ifndef BRICKTOP_WATCH_DISCOVERY_H
#define BRICKTOP_WATCH_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gluster_graph.h"

#define WATCH_SEARCH_LOOK_NS  200000000ULL    /* between two looks */
#define WATCH_SEARCH_ARMED_NS 1500000000ULL   /* a search takes so long at least */
#define WATCH_SEARCH_IDLE_NS  150000000000ULL /* and at most, where it costs nothing */
#define WATCH_SEARCH_HITS     4096            /* so many probe hits cost something */
#define WATCH_SEARCH_FEW      16              /* stacks unmet: of less their share decides, */
#define WATCH_SEARCH_SHARE    16              /* 1 in so many of those that ended */
#define WATCH_SEARCH_ENDS     64              /* seen to end: the share of bare ones is known */
#define WATCH_SEARCH_MOST_NS  600000000000ULL /* the longest wait after a search in vain */

/* What one look shows; all but now_ns and found are counts since the process started. */
struct watch_search_look {
	uint64_t now_ns; /* CLOCK_MONOTONIC */
	uint64_t ended;  /* call stacks, by the process's own count */
	uint64_t met;    /* call stacks that our probes have met */
	uint64_t hits;   /* uprobe hits of the process */
	/*
	 * While searches were on: stacks that ended, and those of them that had never wound
	 * anything. Such have no callback, and no time in any layer.
	 */
	uint64_t ends, bare_ends;
	uint64_t unseen; /* set (1 << fop) of fops that were called and never walked */
	size_t found;    /* callbacks that the search has found since the last look */
};

enum watch_search_for { WATCH_SEARCH_NONE, WATCH_SEARCH_FOPS, WATCH_SEARCH_ALL };

struct watch_search {
	uint64_t ended, met; /* when the probes went in */
	uint64_t least;      /* unmet stacks that make a search; not 0 */
	uint64_t missing;    /* stacks that ended since then, not bare, that no probe has met */
	uint64_t settled;    /* of these, the ones that a search has already been made for */
	uint64_t settled_ended;
	enum watch_search_for now; /* the search that is on */
	uint64_t wanted;           /* for these fops; 0: all */
	bool has_found;
	uint64_t begin_ns, until_ns, begin_missing, begin_hits, begin_met;
	uint64_t next_ns, backoff_ns;         /* of the search for all */
	uint64_t next_fop_ns, fop_backoff_ns; /* of that for fops */
};

/*
 * The probes are in; *l: the counts at this moment, met read before ended. least: stacks unmet that
 * make a search, from 1 on; fewer make none, whatever their share.
 */
void watch_search_begin(struct watch_search *s, const struct watch_search_look *l, uint64_t least);

/*
 * One look: what should be searched for from now on; s->now is what it was before, and the caller
 * sets it by watch_search_set(). l->ended has been read before l->met, so that a stack that ends
 * just now is not missing.
 */
enum watch_search_for watch_search_decide(struct watch_search *s,
					  const struct watch_search_look *l);

/* A search begins, changes or ends (WATCH_SEARCH_NONE; also where it could not begin). */
void watch_search_set(struct watch_search *s, const struct watch_search_look *l,
		      enum watch_search_for what);

/* What was counted between these two looks, while no search was on, is nothing to go by. */
void watch_search_skip(struct watch_search *s, const struct watch_search_look *from,
		       const struct watch_search_look *to);

/*
 * Fops that were called before the last look, since the probes are in, and that were not walked to
 * this day. One that hangs in its first request looks the same, and costs a search in vain. base,
 * last: calls when the probes went in, and at the last look; updated.
 */
uint64_t watch_search_unseen(uint64_t base[GLUSTER_MAX_FOP], uint64_t last[GLUSTER_MAX_FOP],
			     const uint64_t calls[GLUSTER_MAX_FOP], uint64_t walked);

#endif
