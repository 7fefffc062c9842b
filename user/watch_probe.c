/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_probe.c: the probe side of a watched process: finds callbacks in stripped modules, chooses
 * the cheapest instruction of each, attaches, and keeps looking for stacks that no probe accounts
 * yet.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "elf.h"
#include "gluster_site.h"
#include "site.h"
#include "watch_priv.h"

#define NS_PER_SEC        1000000000ULL
#define DISCOVERY_NS      (NS_PER_SEC + NS_PER_SEC / 2)
#define DISCOVERY_BACKOFF (4 * NS_PER_SEC)
#define NOT_A_ROUND       16 /* stacks between two ticks that are not worth a look */

/* ---- what the programs are told ---------------------------------------- */

static int tell_graph(struct watch *w, struct source *src, const struct watch_target *wt)
{
	const struct gluster_graph *g = &w->gp->graphs[wt->graph];
	size_t i;
	int ret = 0;

	for (i = 0; i < g->n && !ret; i++) {
		struct wire_node node = { .target = (__u16)wt->idx, .layer = wt->layers[i] };

		if (i == 0)
			node.flags |= WIRE_NODE_ROOT;
		if (!strcmp(g->xl[i].type, "performance/io-threads"))
			node.flags |= WIRE_NODE_HOP;
		ret = source_set_node(src, w->pid, g->xl[i].addr, &node);
	}
	return ret;
}

int watch_tell_nodes(struct watch *w, struct source *src)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < w->n_targets && !ret; i++) {
		if (w->targets[i].graph != SIZE_MAX)
			ret = tell_graph(w, src, &w->targets[i]);
	}
	return ret;
}

static int tell_proc(struct watch *w, struct source *src)
{
	const struct gluster_layout *l = w->gp->layout;
	struct wire_layout wire = {
		.stack_myframes = l->stack_myframes,
		.stack_op = l->stack_op,
		.frame_begin = l->frame_begin,
		.frame_end = l->frame_end,
		.frame_this = l->frame_this,
		.frame_ret = l->frame_ret,
		.frame_op = l->frame_op,
	};
	struct wire_proc proc = {
		.root = w->gp->root_xl_addr ? WIRE_ROOT_CLIENT : WIRE_ROOT_BRICK,
		.local_target = (__u16)w->targets[0].idx,
	};

	return source_set_proc(src, w->pid, &proc, &wire);
}

/* ---- sites ------------------------------------------------------------- */

struct sites {
	struct uprobe_site *site;
	size_t n, stepped;
	char path[4200]; /* as this process opens it */
};

/* End of the function that starts at vaddr, 0 where unknown. */
static uint64_t function_end(const struct elf_range *funcs, size_t n, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (funcs[i].start == vaddr)
			return funcs[i].end;
	}
	return 0;
}

/* The frame (first argument) and op_ret (fourth) have to be live where a callback is probed. */
static int add_site(struct sites *s, const struct elf_file *elf, const struct elf_range *func,
		    enum wire_site what, struct site *ret_site)
{
	int ret = site_choose(elf, func->start, func->end, SITE_ARG0 | SITE_ARG3, false, ret_site);

	if (ret)
		return ret;
	s->site[s->n++] = (struct uprobe_site){
		.path = s->path,
		.offset = ret_site->offset,
		.cookie = what,
	};
	s->stepped += ret_site->class == SITE_STEPPED;
	return 0;
}

static int choose_top_sites(struct watch *w, const struct elf_file *elf, struct sites *s)
{
	struct gluster_callbacks cbs = { 0 };
	struct site site = { 0 };
	char text[128] = "";
	size_t i;
	int ret = gluster_site_callbacks(elf, w->gp->layout, &cbs);

	if (ret)
		return ret;
	s->site = calloc(cbs.n + 1, sizeof(*s->site));
	if (!s->site)
		ret = -ENOMEM;
	for (i = 0; i < cbs.n && !ret; i++) {
		if (!add_site(s, elf, &cbs.funcs[i], WIRE_SITE_TOP, &site) && !text[0])
			site_text(&site, text, sizeof(text));
	}
	snprintf(w->sites_text, sizeof(w->sites_text),
		 "%zu callbacks, %zu of them single-stepped, the first at %s", s->n, s->stepped,
		 text);
	gluster_site_free(&cbs);
	return ret ?: s->n ? 0 : -ENOENT;
}

/* Attach to every function of the topmost xlator's module that can be a callback. */
static int probe_top(struct watch *w, struct source *src, char *err, size_t err_size)
{
	const struct gluster_graph *g = &w->gp->graphs[w->targets[0].graph];
	struct sites s = { 0 };
	struct elf_file *elf;
	int ret;

	if (!g->xl[0].so_path) {
		snprintf(err, err_size, "cannot find the module of xlator '%s' in process %d",
			 g->xl[0].id, (int)w->pid);
		return -ENOENT;
	}
	ret = procmem_host_path(w->pid, g->xl[0].so_path, s.path, sizeof(s.path));
	ret = ret ?: elf_open(s.path, &elf);
	if (ret) {
		snprintf(err, err_size, "cannot read '%s': %s", g->xl[0].so_path, strerror(-ret));
		return ret;
	}
	ret = choose_top_sites(w, elf, &s);
	if (ret)
		snprintf(err, err_size, "no callbacks to probe found in '%s': %s", g->xl[0].so_path,
			 strerror(-ret));
	else
		ret = source_probe_callbacks(src, w->pid, s.site, s.n, &w->probes, err, err_size);
	free(s.site);
	elf_close(elf);
	return ret;
}

/* ---- discovery --------------------------------------------------------- */

/* Host path and file offset of the code at an address of the process. */
static int find_code(const struct watch *w, uint64_t addr, char *path, size_t size,
		     uint64_t *ret_offset)
{
	struct procmaps maps = { 0 };
	const struct procmap *map;
	int ret = procmaps_load(w->pid, &maps);

	if (ret)
		return ret;
	map = procmaps_find(&maps, addr);
	ret = map && map->path[0] == '/' ? procmem_host_path(w->pid, map->path, path, size) :
					   -ENOENT;
	if (!ret)
		*ret_offset = addr - map->start + map->offset;
	procmaps_free(&maps);
	return ret;
}

/* Where gf_frame_latency_update() (9 and later; gf_update_latency() before) can be probed. */
static int find_frame_end(const struct watch *w, struct sites *s, struct uprobe_site *ret_site)
{
	static const char *const names[] = { "gf_frame_latency_update", "gf_update_latency" };
	struct procmaps maps = { 0 };
	struct elf_symbol sym;
	struct elf_file *elf;
	struct site site;
	size_t i, k;
	int ret = procmaps_load(w->pid, &maps);

	if (ret)
		return ret;
	ret = -ENOENT;
	for (i = 0; i < maps.n && ret; i++) {
		if (!maps.maps[i].exec || !strstr(maps.maps[i].path, "/libglusterfs.so"))
			continue;
		if (procmem_host_path(w->pid, maps.maps[i].path, s->path, sizeof(s->path)) ||
		    elf_open(s->path, &elf))
			continue;
		for (k = 0; k < 2 && ret; k++) {
			ret = elf_find_symbol(elf, names[k], &sym);
			ret = ret   ?:
				      site_choose(elf, sym.vaddr, sym.vaddr + sym.size_bytes,
						  SITE_ARG0, true, &site);
		}
		elf_close(elf);
	}
	procmaps_free(&maps);
	if (!ret)
		*ret_site = (struct uprobe_site){ .path = s->path, .offset = site.offset };
	return ret;
}

static int arm(struct watch *w, struct source *src, uint64_t now_ns, char *err, size_t err_size)
{
	struct uprobe_site site;
	struct sites s = { 0 };
	int ret = find_frame_end(w, &s, &site);

	if (ret) {
		snprintf(err, err_size, "no cheap place to watch frames end: %s", strerror(-ret));
		return ret;
	}
	ret = source_arm_discovery(src, w->pid, &site, &w->probes, err, err_size);
	if (!ret)
		w->armed_until_ns = now_ns + DISCOVERY_NS;
	return ret;
}

static bool is_probed(const struct watch *w, uint64_t addr)
{
	size_t i;

	for (i = 0; i < w->n_background; i++) {
		if (w->background[i] == addr)
			return true;
	}
	return false;
}

static bool is_root_xlator(const struct watch *w, uint64_t xlator)
{
	size_t i;

	for (i = 0; i < w->gp->n_graphs; i++) {
		if (w->gp->graphs[i].n && w->gp->graphs[i].xl[0].addr == xlator)
			return true;
	}
	return false;
}

/* Probe one callback that was seen: of an xlator that makes stacks of its own, or a top one missed.
 */
static int probe_seen(struct watch *w, struct source *src, uint64_t addr, enum wire_site what)
{
	struct elf_range *funcs = NULL, func;
	struct uprobe_site one;
	struct sites s = { .site = &one };
	struct elf_file *elf;
	struct site site;
	uint64_t offset;
	char err[256];
	size_t n = 0;
	int ret = find_code(w, addr, s.path, sizeof(s.path), &offset);

	ret = ret ?: elf_open(s.path, &elf);
	if (ret)
		return ret;
	ret = elf_offset_to_vaddr(elf, offset, &func.start);
	if (!ret) {
		if (elf_functions(elf, &funcs, &n))
			n = 0;
		func.end = function_end(funcs, n, func.start);
		free(funcs);
		ret = add_site(&s, elf, &func, what, &site);
	}
	elf_close(elf);
	if (!ret)
		ret = source_probe_callbacks(src, w->pid, s.site, 1, &w->probes, err, sizeof(err));
	return ret;
}

struct seen {
	struct watch *w;
	struct source *src;
	int found;
};

static int on_seen(void *arg, const struct wire_callback_key *key, const struct wire_callback *cb)
{
	struct seen *seen = arg;
	struct watch *w = seen->w;

	if (key->tgid != (__u32)w->pid || is_probed(w, key->addr))
		return 0;
	if (w->n_background == WATCH_MAX_BACKGROUND)
		return 1;
	w->background[w->n_background++] = key->addr;
	/* the static search has the root's callbacks already */
	if (!is_root_xlator(w, cb->xlator) &&
	    !probe_seen(w, seen->src, key->addr, WIRE_SITE_BACKGROUND))
		seen->found++;
	return 0;
}

/* Stacks made since the last look that no probe has accounted for. */
static uint64_t unaccounted(struct watch *w, struct source *src)
{
	__u64 checks[WIRE_CHECKS];
	uint64_t created, walked = 0, made, seen;
	size_t i;

	if (gluster_pool_created(w->gp, &created))
		return 0;
	for (i = 0; i < w->n_targets; i++) {
		source_read_checks(src, w->targets[i].idx, checks);
		walked += checks[WIRE_CHECK_WALKED] + checks[WIRE_CHECK_COPIES];
	}
	made = created - w->created_seen;
	seen = walked - w->walked_seen;
	w->created_seen = created;
	w->walked_seen = walked;
	return made > seen ? made - seen : 0;
}

static void tick_discovery(struct watch *w, struct source *src, uint64_t now_ns)
{
	struct seen seen = { .w = w, .src = src };
	uint64_t missing = unaccounted(w, src);
	char err[256];

	if (w->probes.discovery.n) {
		source_each_callback(src, on_seen, &seen);
		if (now_ns >= w->armed_until_ns && !seen.found) {
			source_disarm_discovery(&w->probes);
			w->next_arm_ns = now_ns + w->backoff_ns;
			w->backoff_ns *= 2;
		}
		return;
	}
	if (missing > NOT_A_ROUND && now_ns >= w->next_arm_ns)
		arm(w, src, now_ns, err, sizeof(err));
}

/* ---- attaching --------------------------------------------------------- */

static uint64_t now_mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static const char *why_no_walk(const struct watch *w)
{
	if (!w->gp->measures_latency)
		return "the process does not stamp its frames (ctx.measure_latency is off)";
	if (w->gp->layout->frame_time_is_wall)
		return "this release stamps frames with the wall clock";
	if (w->targets[0].graph == SIZE_MAX)
		return "the graph is gone";
	return NULL;
}

int watch_attach(struct watch *w, struct source *src, struct model *m, char *err, size_t err_size)
{
	const char *why = why_no_walk(w);
	int ret;

	if (why) {
		snprintf(err, err_size, "%s", why);
		return model_feed_off(m, "walk", why);
	}
	ret = tell_proc(w, src);
	ret = ret ?: watch_tell_nodes(w, src);
	if (ret) {
		snprintf(err, err_size, "cannot fill the BPF maps: %s", strerror(-ret));
		return ret;
	}
	ret = probe_top(w, src, err, err_size);
	if (ret)
		return ret;
	w->attached = true;
	w->attached_ns = now_mono_ns();
	w->wound_at_attach = watch_completed(w);
	w->backoff_ns = DISCOVERY_BACKOFF;
	unaccounted(w, src);
	if (arm(w, src, w->attached_ns, err, err_size))
		return model_feed_off(m, "background stacks", err);
	return 0;
}

/*
 * A multi link whose pid matches one thread only (6.6 to 6.9) shows no hits, or those of the main
 * thread alone, while the process itself counts requests: then perf uprobes take over.
 */
static int check_threads(struct watch *w, struct source *src, struct model *m)
{
	struct wire_proc proc;
	char err[256] = "";
	int ret;

	if (w->proven || source_kind(src) == UPROBE_PERF || source_get_proc(src, w->pid, &proc))
		return 0;
	if (proc.other_tid || (proc.first_tid && proc.first_tid != (__u32)w->pid)) {
		w->proven = true;
		return 0;
	}
	if (watch_completed(w) < w->wound_at_attach + 100)
		return 0;
	ret = source_use_perf(src, err, sizeof(err));
	if (ret)
		return model_feed_off(m, "walk", err);
	source_probes_close(&w->probes);
	w->n_background = 0;
	ret = probe_top(w, src, err, sizeof(err));
	w->proven = true;
	return model_feed_off(m, ret ? "walk" : "uprobe-multi",
			      ret ? err : "its pid filter sees one thread only; perf uprobes used");
}

int watch_tick(struct watch *w, struct source *src, struct model *m, uint64_t now_ns)
{
	int ret;

	if (!w->attached)
		return 0;
	/* addresses of new graphs; telling known ones again changes nothing */
	ret = watch_tell_nodes(w, src);
	if (ret)
		return ret;
	tick_discovery(w, src, now_ns);
	return check_threads(w, src, m);
}

void watch_detach(struct watch *w, struct source *src)
{
	source_probes_close(&w->probes);
	w->attached = false;
	(void)src;
}

const char *watch_sites_text(const struct watch *w)
{
	return w->sites_text;
}
