/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_discovery.c: callbacks that no probe is at yet: of stacks that xlators make themselves, and
 * top ones that the search of the code missed. While armed, one probe sees every frame end; that is
 * dear where there is load, so it is armed when requests or stacks are seen to go unaccounted, for
 * a second or two, and less and less often where it finds nothing.
 */
#include "watch_discovery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "watch_modules.h"
#include "watch_priv.h"

#define BACKOFF_NS     4000000000ULL
#define FOP_BACKOFF_NS 1000000000ULL
#define FOPS_IN_MASK   64

/* ---- when to search ---------------------------------------------------- */

void watch_search_begin(struct watch_search *s, const struct watch_search_look *l, uint64_t least)
{
	*s = (struct watch_search){
		.ended = l->ended,
		.met = l->met,
		.least = least,
		.settled_ended = l->ended,
		.backoff_ns = BACKOFF_NS,
		.fop_backoff_ns = FOP_BACKOFF_NS,
	};
}

/* Stacks went by unmet since the last search, and enough of them to make another. */
static bool are_many(const struct watch_search *s, const struct watch_search_look *l)
{
	uint64_t fresh = s->missing > s->settled ? s->missing - s->settled : 0;

	return fresh > WATCH_SEARCH_FEW ||
	       (fresh >= s->least && fresh * WATCH_SEARCH_SHARE >= l->ended - s->settled_ended);
}

/* What comes once a minute is waited for, as long as that costs next to nothing. */
static bool is_over(const struct watch_search *s, const struct watch_search_look *l)
{
	uint64_t hits = l->hits - s->begin_hits, met = l->met - s->begin_met;

	if (l->now_ns < s->until_ns)
		return false;
	return s->has_found || s->missing > s->begin_missing || hits > met + WATCH_SEARCH_HITS ||
	       l->now_ns - s->begin_ns >= WATCH_SEARCH_IDLE_NS;
}

/* Of so many stacks that ended: how many never wound anything, as far as searches have seen. */
static uint64_t count_bare(const struct watch_search_look *l, uint64_t ended)
{
	if (l->ends < WATCH_SEARCH_ENDS)
		return 0;
	return (uint64_t)((double)ended * (double)l->bare_ends / (double)l->ends);
}

enum watch_search_for watch_search_decide(struct watch_search *s, const struct watch_search_look *l)
{
	uint64_t ended = l->ended - s->ended, met = l->met - s->met;
	bool all, fops;

	met += count_bare(l, ended);
	s->missing = ended > met ? ended - met : 0;
	if (s->now != WATCH_SEARCH_NONE && l->found) {
		s->has_found = true;
		s->until_ns = l->now_ns + WATCH_SEARCH_ARMED_NS;
		s->settled = s->missing;
		s->settled_ended = l->ended;
	}
	all = l->now_ns >= s->next_ns && are_many(s, l);
	fops = l->now_ns >= s->next_fop_ns && l->unseen & ~s->wanted;
	switch (s->now) {
	case WATCH_SEARCH_NONE:
		return all ? WATCH_SEARCH_ALL : fops ? WATCH_SEARCH_FOPS : WATCH_SEARCH_NONE;
	case WATCH_SEARCH_FOPS:
		if (all || fops)
			return WATCH_SEARCH_ALL;
		break;
	case WATCH_SEARCH_ALL:
		break;
	}
	return is_over(s, l) ? WATCH_SEARCH_NONE : s->now;
}

/* The search is over: when is the next one of its kind worth while? */
static void put_off(struct watch_search *s, const struct watch_search_look *l)
{
	bool for_fops = s->now == WATCH_SEARCH_FOPS;
	uint64_t *next = for_fops ? &s->next_fop_ns : &s->next_ns;
	uint64_t *backoff = for_fops ? &s->fop_backoff_ns : &s->backoff_ns;

	if (s->has_found) {
		*next = l->now_ns;
		*backoff = for_fops ? FOP_BACKOFF_NS : BACKOFF_NS;
		return;
	}
	*next = l->now_ns + *backoff;
	*backoff = 2 * *backoff < WATCH_SEARCH_MOST_NS ? 2 * *backoff : WATCH_SEARCH_MOST_NS;
}

void watch_search_set(struct watch_search *s, const struct watch_search_look *l,
		      enum watch_search_for what)
{
	if (what == WATCH_SEARCH_NONE) {
		put_off(s, l);
		s->settled = s->missing;
		s->settled_ended = l->ended;
		s->wanted = 0;
	} else {
		s->wanted = what == WATCH_SEARCH_FOPS ? l->unseen : 0;
		s->has_found = false;
		s->begin_ns = l->now_ns;
		s->until_ns = l->now_ns + WATCH_SEARCH_ARMED_NS;
		s->begin_missing = s->missing;
		s->begin_hits = l->hits;
		s->begin_met = l->met;
	}
	s->now = what;
}

void watch_search_skip(struct watch_search *s, const struct watch_search_look *from,
		       const struct watch_search_look *to)
{
	s->ended += to->ended - from->ended;
	s->settled_ended += to->ended - from->ended;
	s->met += to->met - from->met;
}

uint64_t watch_search_unseen(uint64_t base[GLUSTER_MAX_FOP], uint64_t last[GLUSTER_MAX_FOP],
			     const uint64_t calls[GLUSTER_MAX_FOP], uint64_t walked)
{
	uint64_t unseen = 0;
	unsigned int fop;

	for (fop = 1; fop < GLUSTER_MAX_FOP && fop < FOPS_IN_MASK; fop++) {
		if (calls[fop] < base[fop])
			base[fop] = last[fop] = 0; /* another graph, which counts from 0 */
		if (last[fop] > base[fop] && !(walked >> fop & 1))
			unseen |= 1ULL << fop;
		last[fop] = calls[fop];
	}
	return unseen;
}

/* ---- the topmost module ------------------------------------------------ */

void watch_discovery_free(struct watch_discovery *d)
{
	free(d->top);
	d->top = NULL;
	d->n_top = 0;
}

void watch_discovery_top(struct watch_discovery *d, struct watch_sites *s)
{
	free(d->top);
	d->top = s->func;
	d->n_top = s->n;
	s->func = NULL;
	memcpy(d->top_path, s->path, sizeof(d->top_path));
}

/* ---- one callback ------------------------------------------------------ */

/* One file may have several names here: every mapping of a deleted one has its own. */
static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_probed_top(const struct watch_discovery *d, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < d->n_top; i++) {
		if (d->top[i] == vaddr)
			return true;
	}
	return false;
}

struct seen {
	struct watch *w;
	struct source *src;
	struct watch_modules modules; /* as they were at the first callback of this look */
	int found, error;             /* error: the last one */
	char err[256];
};

/* Probe one callback that was seen. 0, -EEXIST where the search of the code had it, -errno. */
static int probe_seen(struct seen *seen, uint64_t addr)
{
	enum wire_site what = WIRE_SITE_BACKGROUND;
	struct watch *w = seen->w;
	const struct watch_module *m;
	struct uprobe_site one;
	struct watch_sites s = { .site = &one };
	struct elf_range func;
	struct site site;
	int ret = seen->modules.pid ? 0 : watch_modules_load(&seen->modules, w->pid);

	ret = ret ?: watch_modules_find(&seen->modules, addr, &m, &func.start);
	if (ret)
		return ret;
	/* requests end in the topmost module; what other modules call back ends stacks of theirs */
	if (is_same_file(m->path, w->discovery.top_path)) {
		what = WIRE_SITE_TOP;
		if (is_probed_top(&w->discovery, func.start))
			return -EEXIST;
	}
	func.end = watch_module_end(m, func.start);
	snprintf(s.path, sizeof(s.path), "%s", m->path);
	ret = watch_add_site(&s, m->elf, &func, what, &site);
	ret = ret   ?:
		      source_probe_callbacks(seen->src, w->pid, s.site, 1, &w->probes, seen->err,
					     sizeof(seen->err));
	if (!ret && what == WIRE_SITE_TOP)
		watch_count_site(w, &site);
	return ret;
}

static int on_seen(void *arg, const struct wire_callback_key *key)
{
	struct seen *seen = arg;
	struct watch_discovery *d = &seen->w->discovery;
	size_t i;
	int ret;

	if (key->tgid != (__u32)seen->w->pid)
		return 0;
	for (i = 0; i < d->n_seen; i++) {
		if (d->seen[i] == key->addr)
			return 0;
	}
	if (d->n_seen == WATCH_MAX_SEEN) {
		seen->error = -ENOSPC;
		return 1;
	}
	d->seen[d->n_seen++] = key->addr;
	ret = probe_seen(seen, key->addr);
	if (!ret)
		seen->found++;
	else if (ret != -EEXIST) {
		seen->error = ret;
		d->n_unprobed++;
	}
	return 0;
}

/* Requests and stacks that end in a callback without a probe are in no row: that has to be said. */
static int tell_unprobed(const struct seen *seen, struct model *m)
{
	const struct watch_discovery *d = &seen->w->discovery;
	char line[256];

	if (!seen->error || seen->error == -ESRCH) /* gone: that is told elsewhere */
		return 0;
	if (seen->error == -ENOSPC && d->n_seen == WATCH_MAX_SEEN)
		snprintf(line, sizeof(line),
			 "more than %d were seen: what ends in others is in no row",
			 WATCH_MAX_SEEN);
	else
		snprintf(
			line, sizeof(line),
			"%zu that were seen cannot be probed, what ends there is in no row: %.150s",
			d->n_unprobed, seen->err[0] ? seen->err : strerror(-seen->error));
	return watch_off(seen->w, m, "callbacks", line);
}

/*
 * What ended where no probe is, is in no row. Of the process's own stacks nothing else would tell;
 * that of requests shows in their coverage, too.
 */
static int tell_missing(const struct watch *w, struct model *m, const struct watch_search_look *l)
{
	const struct watch_search *s = &w->discovery.search;
	uint64_t ended = l->ended - s->ended;
	char line[256];

	if (!s->missing || (!s->has_found && (s->missing <= WATCH_SEARCH_FEW ||
					      s->missing * WATCH_SEARCH_SHARE < ended)))
		return 0;
	snprintf(line, sizeof(line), "%llu of %llu that ended are in no row: %s",
		 (unsigned long long)s->missing, (unsigned long long)ended,
		 s->has_found ? "they did before their callbacks were found" :
				"no callback of theirs was found");
	return watch_off(w, m, "call stacks", line);
}

/* ---- arming ------------------------------------------------------------ */

/* Where gf_frame_latency_update() (9 and later; gf_update_latency() before) can be probed. */
static int find_frame_end(const struct watch *w, char *path, size_t size, struct site *ret_site)
{
	static const char *const names[] = { "gf_frame_latency_update", "gf_update_latency" };
	struct procmaps maps = { 0 };
	struct elf_symbol sym;
	struct elf_file *elf;
	size_t i, k;
	int ret = procmaps_load(w->pid, &maps);

	if (ret)
		return ret;
	ret = -ENOENT;
	for (i = 0; i < maps.n && ret; i++) {
		if (!maps.maps[i].exec || !strstr(maps.maps[i].path, "/libglusterfs.so"))
			continue;
		if (procmem_map_path(w->pid, &maps.maps[i], path, size) || elf_open(path, &elf))
			continue;
		for (k = 0; k < 2 && ret; k++) {
			ret = elf_find_symbol(elf, names[k], &sym);
			ret = ret   ?:
				      site_choose(elf, sym.vaddr, sym.vaddr + sym.size_bytes,
						  SITE_ARG0, true, ret_site);
		}
		elf_close(elf);
	}
	procmaps_free(&maps);
	return ret;
}

/* Have frame ends watched, for the fops of a set, 0: for all. */
static int arm(struct watch *w, struct source *src, uint64_t wanted, char *err, size_t err_size)
{
	struct uprobe_site probe;
	struct site site;
	char path[4200];
	int ret = find_frame_end(w, path, sizeof(path), &site);

	if (ret) {
		snprintf(err, err_size, "no cheap place to watch frames end: %s", strerror(-ret));
		return ret;
	}
	ret = source_set_wanted(src, w->pid, wanted);
	if (ret) {
		snprintf(err, err_size, "cannot fill the BPF maps: %s",
			 ret == -E2BIG ? "they are full" : strerror(-ret));
		return ret;
	}
	probe = (struct uprobe_site){ .path = path, .offset = site.offset };
	return source_arm_discovery(src, w->pid, &probe, &w->probes, err, err_size);
}

/* Counts that say what goes unaccounted; a count that cannot be had stays as it was. */
static void read_met(struct watch *w, struct source *src, struct watch_search_look *l)
{
	struct wire_proc proc;

	if (source_get_proc(src, w->pid, &proc))
		return;
	l->met = proc.stacks;
	l->hits = proc.probe_hits;
	l->ends = proc.ends;
	l->bare_ends = proc.bare_ends;
}

static void read_ended(struct watch *w, struct watch_search_look *l)
{
	uint64_t ended;

	/* a stack that is being made just now may be taken for one that has not ended */
	if (!gluster_pool_ended(w->gp, &ended) && ended > l->ended)
		l->ended = ended;
}

void watch_discovery_start(struct watch *w, struct source *src, const struct model *m,
			   uint64_t now_ns)
{
	struct watch_discovery *d = &w->discovery;

	d->n_seen = d->n_unprobed = 0;
	d->look = (struct watch_search_look){ .now_ns = now_ns };
	read_met(w, src, &d->look);
	read_ended(w, &d->look);
	/* of a brick's own stacks one or two that are never wound are made where clients come */
	watch_search_begin(&d->search, &d->look, w->gp->root_xl_addr ? 1 : WATCH_SEARCH_FEW);
	watch_requests(w, m, d->base);
	memcpy(d->calls, d->base, sizeof(d->calls));
}

/* Probe what was seen while armed. */
static int look_at_seen(struct watch *w, struct source *src, struct model *m)
{
	struct seen seen = { .w = w, .src = src };

	w->discovery.look.found = 0;
	if (!w->probes.discovery.n)
		return 0;
	source_each_callback(src, on_seen, &seen);
	watch_modules_free(&seen.modules);
	w->discovery.look.found = (size_t)seen.found;
	return tell_unprobed(&seen, m);
}

/* Begin, change or end the search. One that cannot begin is over in vain. */
static int change_search(struct watch *w, struct source *src, struct model *m,
			 enum watch_search_for what)
{
	struct watch_discovery *d = &w->discovery;
	char err[256] = "";
	int ret;

	if (what == WATCH_SEARCH_NONE) {
		ret = tell_missing(w, m, &d->look);
		source_disarm_discovery(&w->probes);
		watch_search_set(&d->search, &d->look, what);
		return ret;
	}
	watch_search_set(&d->search, &d->look, what);
	ret = arm(w, src, d->search.wanted, err, sizeof(err));
	if (!ret)
		return 0;
	watch_search_set(&d->search, &d->look, WATCH_SEARCH_NONE);
	return ret == -ESRCH ? 0 : watch_off(w, m, "background stacks", err);
}

void watch_pause(struct watch *w, struct source *src, struct model *m)
{
	struct watch_discovery *d = &w->discovery;

	if (!w->attached || d->paused)
		return;
	d->paused = true;
	read_ended(w, &d->look);
	read_met(w, src, &d->look);
	if (d->search.now != WATCH_SEARCH_NONE)
		(void)change_search(w, src, m, WATCH_SEARCH_NONE);
}

void watch_resume(struct watch *w, struct source *src, struct model *m)
{
	struct watch_discovery *d = &w->discovery;
	struct watch_search_look was = d->look;

	if (!d->paused)
		return;
	d->paused = false;
	read_met(w, src, &d->look);
	read_ended(w, &d->look);
	watch_search_skip(&d->search, &was, &d->look);
	watch_requests(w, m, d->base);
	memcpy(d->calls, d->base, sizeof(d->calls));
}

int watch_discovery_look(struct watch *w, struct source *src, struct model *m, uint64_t now_ns)
{
	struct watch_discovery *d = &w->discovery;
	enum watch_search_for what;
	int ret;

	if (d->paused || now_ns < d->look.now_ns + WATCH_SEARCH_LOOK_NS)
		return 0;
	d->look.now_ns = now_ns;
	read_ended(w, &d->look);
	read_met(w, src, &d->look);
	ret = look_at_seen(w, src, m);
	what = watch_search_decide(&d->search, &d->look);
	if (what != d->search.now)
		ret = change_search(w, src, m, what) ?: ret;
	return ret;
}

int watch_discovery_tick(struct watch *w, struct source *src, struct model *m, uint64_t now_ns)
{
	struct watch_discovery *d = &w->discovery;
	uint64_t calls[GLUSTER_MAX_FOP];

	if (d->paused)
		return 0;
	watch_requests(w, m, calls);
	d->look.unseen =
		watch_search_unseen(d->base, d->calls, calls, source_walked_fops(src, w->pid));
	return watch_discovery_look(w, src, m, now_ns);
}
