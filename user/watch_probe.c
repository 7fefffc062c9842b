/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_probe.c: the probe side of a watched process: finds callbacks in stripped modules, chooses
 * the cheapest instruction of each and attaches. What no probe accounts yet is watch_discovery.c's.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "elf.h"
#include "gluster_site.h"
#include "site.h"
#include "text.h"
#include "watch_priv.h"

#define ENOUGH_REQUESTS 100 /* to conclude something from hits that are missing */

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
		if (!strcmp(g->xl[i].type, "storage/posix"))
			node.flags |= WIRE_NODE_AIO;
		watch_tails_tell(&w->tails, g->xl[i].addr, &node);
		ret = source_set_node(src, w->pid, g->xl[i].addr, &node);
	}
	return ret;
}

/* Bricks of the same process that are not looked at: their requests are no loss of anybody's. */
static int tell_others(struct watch *w, struct source *src)
{
	/* a layer, whichever: frames without one are of xlators that nobody knows */
	const struct wire_node node = { .target = WIRE_MAX_TARGETS, .layer = WIRE_LAYER_XLATOR };
	size_t i, k;
	int ret = 0;

	for (i = 0; i < w->gp->n_graphs; i++) {
		const struct gluster_graph *g = &w->gp->graphs[i];

		for (k = 0; k < w->n_targets && w->targets[k].graph != i; k++)
			;
		if (k < w->n_targets || !g->is_brick)
			continue;
		/* the root is everybody's */
		for (k = 1; k < g->n && !ret; k++)
			ret = source_set_node(src, w->pid, g->xl[k].addr, &node);
	}
	return ret;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The graphs changed: xlators of those that are gone leave the map, or it fills up over time. */
static int forget_former(struct watch *w, struct source *src)
{
	uint64_t *now;
	size_t n = 0, i, k;

	for (i = 0; i < w->gp->n_graphs; i++)
		n += w->gp->graphs[i].n;
	now = calloc(n + 1, sizeof(*now));
	if (!now)
		return -ENOMEM;
	for (i = n = 0; i < w->gp->n_graphs; i++) {
		for (k = 0; k < w->gp->graphs[i].n; k++)
			now[n++] = w->gp->graphs[i].xl[k].addr;
	}
	qsort(now, n, sizeof(*now), by_address);
	for (i = 0; i < w->n_told; i++) {
		if (!bsearch(&w->told[i], now, n, sizeof(*now), by_address))
			source_forget_node(src, w->pid, w->told[i]);
	}
	free(w->told);
	w->told = now;
	w->n_told = n;
	w->graphs_changed = false;
	return 0;
}

int watch_tell_nodes(struct watch *w, struct source *src)
{
	size_t i;
	int ret = w->graphs_changed ? forget_former(w, src) : 0;

	ret = ret ?: tell_others(w, src);
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
		.stack_err_xl = l->stack_err_xl,
		.fuse_fd = l->fuse_fd,
		.fd_inode = l->fd_inode,
		.itable_xl = l->itable_xl,
	};
	struct wire_proc proc = {
		.root = w->gp->root_xl_addr ? WIRE_ROOT_CLIENT : WIRE_ROOT_BRICK,
		.local_target = (__u16)w->targets[0].idx,
	};

	/* and a place for the set of fops that were walked */
	return source_set_proc(src, w->pid, &proc, &wire) ?: source_set_wanted(src, w->pid, 0);
}

/* ---- sites ------------------------------------------------------------- */

/* Frame, op_ret and op_errno (arguments 1, 4 and 5) have to be live where a callback is probed. */
int watch_add_site(struct watch_sites *s, const struct elf_file *elf, const struct elf_range *func,
		   enum wire_site what, struct site *ret_site)
{
	int ret = site_choose(elf, func->start, func->end, SITE_ARG0 | SITE_ARG3 | SITE_ARG4, false,
			      ret_site);

	if (ret)
		return ret;
	s->site[s->n++] = (struct uprobe_site){
		.path = s->path,
		.offset = ret_site->offset,
		.cookie = what | (ret_site->class == SITE_STEPPED ? WIRE_SITE_STEPPED : 0u),
	};
	s->stepped += ret_site->class == SITE_STEPPED;
	return 0;
}

void watch_count_site(struct watch *w, const struct site *site)
{
	struct snap_probes *p = &w->sites;

	p->callbacks++;
	p->stepped += site->class == SITE_STEPPED;
	if (p->insn[0])
		return;
	snprintf(p->insn, sizeof(p->insn), "%s", site->insn);
	p->insn_stepped = site->class == SITE_STEPPED;
}

static int choose_top_sites(struct watch *w, const struct elf_file *elf, struct watch_sites *s)
{
	struct gluster_callbacks cbs = { 0 };
	struct site site = { 0 };
	size_t i;
	int ret = gluster_site_callbacks(elf, w->gp->layout, &cbs);

	if (ret)
		return ret;
	s->site = calloc(cbs.n + 1, sizeof(*s->site));
	s->func = calloc(cbs.n + 1, sizeof(*s->func));
	if (!s->site || !s->func)
		ret = -ENOMEM;
	for (i = 0; i < cbs.n && !ret; i++) {
		if (watch_add_site(s, elf, &cbs.funcs[i], WIRE_SITE_TOP, &site))
			continue;
		s->func[s->n - 1] = cbs.funcs[i].start;
		watch_count_site(w, &site);
	}
	gluster_site_free(&cbs);
	return ret;
}

/* Bricks of one process share the topmost xlator: any graph that is left has it. */
static const struct gluster_graph *first_graph(const struct watch *w)
{
	size_t i;

	for (i = 0; i < w->n_targets; i++) {
		if (w->targets[i].graph != SIZE_MAX)
			return &w->gp->graphs[w->targets[i].graph];
	}
	return NULL;
}

/* What is said of the sites begins anew, with the module they are in. */
static void name_module(struct watch *w, const char *so_path)
{
	const char *slash = strrchr(so_path, '/');

	w->sites = (struct snap_probes){ 0 };
	text_sanitize(w->sites.module, sizeof(w->sites.module), slash ? slash + 1 : so_path);
}

/*
 * Attach to every function of the topmost xlator's module that can be a callback. What this misses,
 * even all of them, discovery finds once it is called.
 */
static int probe_top(struct watch *w, struct source *src, char *err, size_t err_size)
{
	const struct gluster_graph *g = first_graph(w);
	struct watch_sites s = { 0 };
	struct elf_file *elf;
	int ret;

	if (!g) {
		snprintf(err, err_size, "process %d has none of its graphs any more", (int)w->pid);
		return -ENOENT;
	}
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
	name_module(w, g->xl[0].so_path);
	ret = source_static_off(src) ? 0 : choose_top_sites(w, elf, &s);
	if (ret)
		snprintf(err, err_size, "cannot search '%s' for callbacks: %s", g->xl[0].so_path,
			 strerror(-ret));
	else if (s.n)
		ret = source_probe_callbacks(src, w->pid, s.site, s.n, &w->probes, err, err_size);
	if (!ret)
		watch_discovery_top(&w->discovery, &s);
	w->sites.valid = !ret;
	free(s.site);
	free(s.func);
	elf_close(elf);
	return ret;
}

static void feed_sites(struct watch *w, struct model *m)
{
	size_t i;

	if (w->probes.callbacks.n)
		snprintf(w->sites.kind, sizeof(w->sites.kind), "%s",
			 w->probes.kind == UPROBE_MULTI ? "uprobe-multi" : "perf");
	for (i = 0; i < w->n_targets; i++)
		model_feed_probes(m, w->targets[i].idx, &w->sites);
}

/* ---- attaching --------------------------------------------------------- */

static const char *why_no_walk(const struct watch *w)
{
	if (!w->gp->measures_latency)
		return "the process does not stamp its frames (ctx.measure_latency is off)";
	if (w->gp->layout->frame_time_is_wall)
		return "this release stamps frames with the wall clock";
	if (!first_graph(w))
		return "the graph is gone";
	return NULL;
}

/* Probe entries of who was seen to share frames. What cannot be split is told, and stays whole. */
static int split_tails(struct watch *w, struct source *src, struct model *m)
{
	char err[256] = "";
	int ret = source_splits_tails(src) ? watch_tails_update(w, src, err, sizeof(err)) : 0;

	if (!ret || ret == -ESRCH) /* gone: that is told elsewhere */
		return 0;
	return watch_off(w, m, "split tails", err);
}

/* storage/posix with linux-aio: completions come on a thread that did not make the call. */
static bool has_aio(pid_t pid)
{
	char path[64], comm[32];
	struct dirent *entry;
	bool found = false;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/comm", (int)pid, entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		found = fgets(comm, sizeof(comm), f) && !strncmp(comm, "glfs_posixaio", 13);
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return found;
}

int watch_attach(struct watch *w, struct source *src, struct model *m, char *err, size_t err_size)
{
	const char *why = why_no_walk(w);
	int ret;

	if (why) {
		snprintf(err, err_size, "%s", why);
		return watch_off(w, m, "walk", why);
	}
	ret = tell_proc(w, src);
	ret = ret ?: watch_tell_nodes(w, src);
	if (ret) {
		snprintf(err, err_size, "cannot fill the BPF maps: %s",
			 ret == -E2BIG ? "they are full" : strerror(-ret));
		return ret;
	}
	ret = probe_top(w, src, err, err_size);
	if (ret)
		return ret;
	ret = split_tails(w, src, m);
	ret = ret ?: watch_tell_nodes(w, src);
	if (ret)
		return ret;
	w->attached = true;
	w->wound_at_attach = watch_completed(w);
	feed_sites(w, m);
	/* what was called before needs no search */
	ret = watch_feed_memory(w, m);
	if (ret) {
		snprintf(err, err_size, "cannot read the memory of process %d: %s", (int)w->pid,
			 strerror(-ret));
		return ret;
	}
	watch_discovery_start(w, src, m, clock_mono_ns());
	if (!source_walks(src))
		watch_pause(w, src, m);
	return 0;
}

enum watch_threads watch_judge_threads(pid_t pid, const struct wire_proc *proc, uint64_t completed)
{
	if (proc->other_tid || (proc->first_tid && proc->first_tid != (__u32)pid))
		return WATCH_THREADS_ALL;
	if (completed < ENOUGH_REQUESTS)
		return WATCH_THREADS_UNKNOWN;
	/* a process may well do with its main thread: then nothing is missing */
	return proc->probe_hits >= completed / 2 ? WATCH_THREADS_UNKNOWN : WATCH_THREADS_ONE;
}

/* Perf uprobes take over from a multi link that sees one thread only. */
static int use_perf(struct watch *w, struct source *src, struct model *m)
{
	char err[256] = "";
	int ret = source_use_perf(src, err, sizeof(err));

	if (ret)
		return watch_off(w, m, "walk", err);
	source_probes_close(&w->probes);
	watch_tails_reset(&w->tails);
	ret = probe_top(w, src, err, sizeof(err));
	watch_discovery_start(w, src, m, clock_mono_ns());
	feed_sites(w, m);
	return watch_off(w, m, ret ? "walk" : "uprobe-multi",
			 ret ? err : "its pid filter sees one thread only; perf uprobes used");
}

static int check_threads(struct watch *w, struct source *src, struct model *m)
{
	uint64_t completed = watch_completed(w);
	struct wire_proc proc;

	if (w->proven || w->probes.kind == UPROBE_PERF || !w->probes.callbacks.n ||
	    source_get_proc(src, w->pid, &proc))
		return 0;
	completed = completed > w->wound_at_attach ? completed - w->wound_at_attach : 0;
	switch (watch_judge_threads(w->pid, &proc, completed)) {
	case WATCH_THREADS_UNKNOWN:
		return 0;
	case WATCH_THREADS_ALL:
		w->proven = true;
		return 0;
	case WATCH_THREADS_ONE:
		break;
	}
	w->proven = true;
	return use_perf(w, src, m);
}

bool watch_is_proven(const struct watch *w)
{
	return w->proven && w->probes.kind == UPROBE_MULTI;
}

/* Once, and not before the layers had their turn. */
static int tell_aio(struct watch *w, const struct source *src, struct model *m)
{
	if (w->aio_told)
		return 0;
	w->aio_told = true;
	if (source_sees_aio(src) || !has_aio(w->pid))
		return 0;
	return watch_off(w, m, "asynchronous I/O",
			 "posix hands reads and writes to the kernel (linux-aio), and the layer "
			 "aio is off: what they take there is in posix's own time");
}

int watch_tick(struct watch *w, struct source *src, struct model *m, uint64_t now_ns)
{
	int ret;

	if (!w->attached)
		return 0;
	ret = tell_aio(w, src, m);
	ret = ret ?: split_tails(w, src, m);
	/* addresses of new graphs; telling known ones again changes nothing */
	ret = ret ?: watch_tell_nodes(w, src);
	if (ret)
		return ret;
	ret = watch_discovery_tick(w, src, m, now_ns);
	feed_sites(w, m);
	return ret ?: check_threads(w, src, m);
}

void watch_detach(struct watch *w)
{
	source_probes_close(&w->probes);
	watch_tails_reset(&w->tails);
	w->attached = false;
}
