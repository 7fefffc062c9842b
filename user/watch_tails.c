/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_tails.c: see watch_tails.h. Functions are taken from the tables that the process itself
 * uses: they hold libglusterfs's default_* where an xlator has none of its own, and those wind by
 * tail too.
 */
#include "watch_tails.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "site.h"
#include "watch_modules.h"
#include "watch_priv.h"

#define MAX_CHAIN          16 /* xlators that one frame is handed on to */
#define SOME_CALLS         64 /* differences below may be requests in flight, or lost updates */
#define FOPS_IN_SLOT_ORDER 55 /* GF_FOP_MAXVALUE up to which tables have an order of their own */

/* ---- who shares -------------------------------------------------------- */

typedef const struct gluster_stat (*stat_rows)[GLUSTER_MAX_FOP];

/* Clearly more, whatever is in flight. */
static bool is_more(uint64_t a, uint64_t b)
{
	return a > b && a - b > SOME_CALLS + a / 16;
}

/* Frames that began at xlator a end at c, below it. */
static bool hands_on(const struct gluster_graph *g, stat_rows stats, unsigned int a, unsigned int c,
		     unsigned int fop)
{
	const struct gluster_stat *above = &stats[a][fop], *below = &stats[c][fop];
	bool is_leaf = !g->xl[c].n_children;

	if (!above->lat_count)
		return is_leaf || !below->wound || is_more(below->lat_count, below->wound);
	/* one that hands on some frames and keeps others */
	return is_more(below->lat_count, above->lat_count) &&
	       (is_leaf || is_more(below->lat_count, below->wound));
}

/* Follow frames that began at xlator a, and have come to `at`, down to where they end. */
static bool follow(const struct gluster_graph *g, stat_rows stats, unsigned int a, unsigned int at,
		   unsigned int fop, unsigned int depth, uint64_t *members)
{
	const struct gluster_xlator *xl = &g->xl[at];
	bool found = false;
	unsigned int i;

	for (i = 0; i < xl->n_children && depth < MAX_CHAIN; i++) {
		unsigned int c = xl->children[i];

		if (stats[c][fop].lat_count ? !hands_on(g, stats, a, c, fop) :
					      !follow(g, stats, a, c, fop, depth + 1, members))
			continue;
		members[c] |= 1ULL << fop;
		found = true;
	}
	return found;
}

void watch_tails_find(const struct gluster_graph *g,
		      const struct gluster_stat (*stats)[GLUSTER_MAX_FOP], uint64_t *members)
{
	unsigned int a, fop;

	memset(members, 0, g->n * sizeof(*members));
	/* server and fuse, the first, wind properly */
	for (a = 1; a < g->n; a++) {
		for (fop = 1; fop < GLUSTER_MAX_FOP; fop++) {
			const struct gluster_stat *s = &stats[a][fop];

			if (!s->has_counts || !s->has_latency ||
			    (!s->wound && !g->xl[a].pass_through))
				continue;
			if (follow(g, stats, a, a, fop, 0, members))
				members[a] |= 1ULL << fop;
		}
	}
}

/* ---- where to probe ---------------------------------------------------- */

struct plan {
	struct watch *w;
	struct watch_modules modules;
	struct uprobe_site *site;
	size_t n;
};

/*
 * Plan a probe at the entry of the function at an address of the process. -ENOENT: it has no cheap
 * instruction, and a dear one would add more time than it tells apart.
 */
static int plan_site(struct plan *p, uint64_t code)
{
	const struct watch_module *m;
	struct uprobe_site *grown;
	struct site site;
	uint64_t vaddr;
	int ret = watch_modules_find(&p->modules, code, &m, &vaddr);

	if (!ret)
		ret = site_choose(m->elf, vaddr, watch_module_end(m, vaddr), SITE_ARG0 | SITE_ARG1,
				  true, &site);
	if (ret)
		return ret;
	grown = realloc(p->site, (p->n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->site = grown;
	grown[p->n++] = (struct uprobe_site){ .path = m->path, .offset = site.offset };
	return 0;
}

/* The function that a wind of this fop to this xlator calls; slots are fop numbers less one. */
static int find_fop(const struct watch *w, const struct gluster_xlator *xl, unsigned int fop,
		    uint64_t *ret_code)
{
	const struct gluster_layout *l = w->gp->layout;
	uint64_t table = xl->fops_addr;

	if (l->max_fop <= FOPS_IN_SLOT_ORDER)
		return -ENOTSUP;
	/* pass_through_fops, a pointer, lies right behind the flag in every release that has it */
	if (xl->pass_through &&
	    procmem_read_u64(w->gp->pm, xl->addr + ((l->xl_pass_through + 8U) & ~7U), &table))
		return -EFAULT;
	return procmem_read_u64(w->gp->pm, table + 8 * (fop - 1U), ret_code);
}

/* ---- probing ----------------------------------------------------------- */

/* The function's entry, planned now if it was not met before; NULL: out of memory. */
static const struct watch_code *get_code(struct plan *p, uint64_t addr)
{
	struct watch_tails *t = &p->w->tails;
	struct watch_code *grown;
	size_t i;
	int ret;

	for (i = 0; i < t->n_code; i++) {
		if (t->code[i].addr == addr)
			return &t->code[i];
	}
	grown = realloc(t->code, (t->n_code + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	t->code = grown;
	ret = plan_site(p, addr);
	if (ret == -ENOMEM)
		return NULL;
	t->n_dear += ret == -ENOENT;
	grown[t->n_code] = (struct watch_code){ .addr = addr, .probed = !ret };
	return &grown[t->n_code++];
}

static struct watch_tail *find_tail(struct watch_tails *t, uint64_t xlator)
{
	struct watch_tail *grown;
	size_t i;

	for (i = 0; i < t->n; i++) {
		if (t->tail[i].xlator == xlator)
			return &t->tail[i];
	}
	grown = realloc(t->tail, (t->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	t->tail = grown;
	grown[t->n] = (struct watch_tail){ .xlator = xlator, .since_ns = ~0ULL };
	return &grown[t->n++];
}

/* Plan what is new of one xlator. -ENOMEM, else 0: a fop that cannot be probed stays as it is. */
static int plan_xlator(struct plan *p, const struct gluster_xlator *xl, uint64_t fops)
{
	struct watch_tails *t = &p->w->tails;
	struct watch_tail *tail = fops ? find_tail(t, xl->addr) : NULL;
	const struct watch_code *code;
	unsigned int fop;
	uint64_t addr;

	if (!fops)
		return 0;
	if (!tail)
		return -ENOMEM;
	fops &= ~tail->fops;
	for (fop = 1; fop < GLUSTER_MAX_FOP; fop++) {
		if (!(fops >> fop & 1) || find_fop(p->w, xl, fop, &addr))
			continue;
		code = get_code(p, addr);
		if (!code)
			return -ENOMEM;
		if (!code->probed)
			continue;
		tail->since_ns = ~0ULL; /* until the new probes are in */
		tail->fops |= 1ULL << fop;
	}
	return 0;
}

static int plan_graph(struct plan *p, const struct gluster_graph *g)
{
	struct gluster_stat(*stats)[GLUSTER_MAX_FOP] = calloc(g->n, sizeof(*stats));
	uint64_t *members = calloc(g->n, sizeof(*members));
	int ret = stats && members ? 0 : -ENOMEM;
	size_t i;

	for (i = 0; i < g->n && !ret; i++)
		ret = gluster_stats_read(p->w->gp, &g->xl[i], stats[i]);
	if (!ret)
		watch_tails_find(g, stats, members);
	for (i = 0; i < g->n && !ret; i++)
		ret = plan_xlator(p, &g->xl[i], members[i]);
	free(members);
	free(stats);
	return ret;
}

int watch_tails_update(struct watch *w, struct source *src, char *err, size_t err_size)
{
	struct watch_tails *t = &w->tails;
	size_t i, dear = t->n_dear;
	struct plan p = { .w = w };
	int ret;

	if (t->failed)
		return 0;
	ret = watch_modules_load(&p.modules, w->pid);
	for (i = 0; i < w->n_targets && !ret; i++) {
		if (w->targets[i].graph != SIZE_MAX)
			ret = plan_graph(&p, &w->gp->graphs[w->targets[i].graph]);
	}
	if (ret)
		snprintf(err, err_size, "cannot find entries to probe: %s", strerror(-ret));
	else if (p.n)
		ret = source_probe_entries(src, w->pid, p.site, p.n, &w->probes, err, err_size);
	if (ret) {
		watch_tails_reset(t);
		t->failed = true;
	}
	for (i = 0; i < t->n && !ret; i++) {
		if (t->tail[i].since_ns == ~0ULL)
			t->tail[i].since_ns = clock_mono_ns();
	}
	if (!ret && t->n_dear > dear) {
		snprintf(err, err_size,
			 "%zu entries have no cheap instruction to probe: they stay grouped",
			 t->n_dear);
		ret = -ENOENT;
	}
	watch_modules_free(&p.modules);
	free(p.site);
	return ret;
}

void watch_tails_tell(const struct watch_tails *t, uint64_t xlator, struct wire_node *node)
{
	size_t i;

	for (i = 0; i < t->n; i++) {
		if (t->tail[i].xlator != xlator)
			continue;
		node->marked = t->tail[i].fops;
		node->since_ns = t->tail[i].since_ns;
	}
}

void watch_tails_reset(struct watch_tails *t)
{
	free(t->tail);
	free(t->code);
	*t = (struct watch_tails){ 0 };
}
