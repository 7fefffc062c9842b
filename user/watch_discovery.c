/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_discovery.c: callbacks that no probe is at yet: of stacks that xlators make themselves, and
 * top ones that the search of the code missed. While armed, one probe sees every frame end; that is
 * dear, so it is armed for a second or two, when requests or stacks are seen to go unaccounted,
 * and less and less often where it finds nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "watch_modules.h"
#include "watch_priv.h"

#define NS_PER_SEC   1000000000ULL
#define ARMED_NS     (NS_PER_SEC + NS_PER_SEC / 2)
#define BACKOFF_NS   (4 * NS_PER_SEC)
#define FOP_BACKOFF  NS_PER_SEC
#define NOT_A_ROUND  16 /* stacks between two looks that are not worth a search */
#define FOPS_IN_MASK 64

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

/* ---- what goes unaccounted --------------------------------------------- */

/* Stacks made since the last look that no probe has accounted for. */
static uint64_t count_missing(struct watch *w, struct source *src)
{
	struct watch_discovery *d = &w->discovery;
	uint64_t created, walked = 0, made, seen;
	__u64 checks[WIRE_CHECKS];
	size_t i;

	if (gluster_pool_created(w->gp, &created))
		return 0;
	for (i = 0; i < w->n_targets; i++) {
		source_read_checks(src, w->targets[i].idx, checks);
		walked += checks[WIRE_CHECK_WALKED] + checks[WIRE_CHECK_COPIES];
	}
	made = created - d->created;
	seen = walked - d->walked;
	d->created = created;
	d->walked = walked;
	return made > seen ? made - seen : 0;
}

/*
 * Fops that were called before the last look and of which no request was walked to this day. One
 * that hangs in its first request looks the same, and costs a search in vain.
 */
static uint64_t find_unseen(struct watch *w, struct source *src, const struct model *m)
{
	struct watch_discovery *d = &w->discovery;
	uint64_t calls[GLUSTER_MAX_FOP], walked = source_walked_fops(src, w->pid), unseen = 0;
	unsigned int fop;

	watch_requests(w, m, calls);
	for (fop = 1; fop < GLUSTER_MAX_FOP && fop < FOPS_IN_MASK; fop++) {
		if (calls[fop] < d->base[fop])
			d->base[fop] = 0; /* another graph, which counts from 0 */
		if (d->calls[fop] > d->base[fop] && !(walked >> fop & 1))
			unseen |= 1ULL << fop;
	}
	memcpy(d->calls, calls, sizeof(d->calls));
	return unseen;
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

/* Arm for the fops of a set, 0: for all. */
static int arm(struct watch *w, struct source *src, uint64_t wanted, uint64_t now_ns, char *err,
	       size_t err_size)
{
	struct watch_discovery *d = &w->discovery;
	struct uprobe_site probe;
	struct site site;
	char path[4200];
	int ret = find_frame_end(w, path, sizeof(path), &site);

	d->for_fops = wanted != 0;
	if (ret) {
		snprintf(err, err_size, "no cheap place to watch frames end: %s", strerror(-ret));
		return ret;
	}
	ret = source_set_wanted(src, w->pid, wanted);
	if (ret) {
		snprintf(err, err_size, "cannot fill the BPF maps: %s", strerror(-ret));
		return ret;
	}
	probe = (struct uprobe_site){ .path = path, .offset = site.offset };
	ret = source_arm_discovery(src, w->pid, &probe, &w->probes, err, err_size);
	if (ret)
		return ret;
	d->armed_until_ns = now_ns + ARMED_NS;
	return 0;
}

/* The search is over, or could not begin: when is the next one of its kind worth while? */
static void put_off_search(struct watch_discovery *d, uint64_t now_ns)
{
	uint64_t *next = d->for_fops ? &d->next_fop_ns : &d->next_ns;
	uint64_t *backoff = d->for_fops ? &d->fop_backoff_ns : &d->backoff_ns;

	*next = now_ns + *backoff;
	*backoff *= 2;
}

int watch_discovery_start(struct watch *w, struct source *src, const struct model *m,
			  uint64_t now_ns, char *err, size_t err_size)
{
	struct watch_discovery *d = &w->discovery;
	int ret;

	d->backoff_ns = BACKOFF_NS;
	d->fop_backoff_ns = FOP_BACKOFF;
	d->next_ns = d->next_fop_ns = 0;
	d->n_seen = d->n_unprobed = 0;
	count_missing(w, src);
	watch_requests(w, m, d->base);
	memcpy(d->calls, d->base, sizeof(d->calls));
	ret = arm(w, src, 0, now_ns, err, err_size);
	if (ret)
		put_off_search(d, now_ns);
	return ret;
}

/* Armed: probe what was seen meanwhile. */
static int look_at_seen(struct watch *w, struct source *src, struct model *m, uint64_t now_ns)
{
	struct watch_discovery *d = &w->discovery;
	struct seen seen = { .w = w, .src = src };
	int ret;

	source_each_callback(src, on_seen, &seen);
	watch_modules_free(&seen.modules);
	ret = tell_unprobed(&seen, m);
	if (seen.found) {
		d->fop_backoff_ns = FOP_BACKOFF;
	} else if (now_ns >= d->armed_until_ns) {
		source_disarm_discovery(&w->probes);
		put_off_search(d, now_ns);
	}
	return ret;
}

int watch_discovery_tick(struct watch *w, struct source *src, struct model *m, uint64_t now_ns)
{
	struct watch_discovery *d = &w->discovery;
	uint64_t missing = count_missing(w, src), unseen = find_unseen(w, src, m);
	char err[256] = "";
	int ret;

	if (w->probes.discovery.n)
		return look_at_seen(w, src, m, now_ns);
	if (unseen && now_ns >= d->next_fop_ns)
		ret = arm(w, src, unseen, now_ns, err, sizeof(err));
	else if (missing > NOT_A_ROUND && now_ns >= d->next_ns)
		ret = arm(w, src, 0, now_ns, err, sizeof(err));
	else
		return 0;
	if (!ret || ret == -ESRCH)
		return 0;
	put_off_search(d, now_ns);
	return watch_off(w, m, "background stacks", err);
}
