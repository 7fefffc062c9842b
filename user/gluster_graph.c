// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_graph.c: a GlusterFS process opened: tries the layout rows that its xlator_t's size
 * allows until one passes every self-check, and keeps the graphs up to date. A row is never trusted
 * for a version string's sake: that only decides which row's failure is told.
 */
#include "gluster_graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gluster_walk.h"

#define MAX_ROWS 16
#define TRIES    3 /* lists change under the reader: a check must fail each time to count */

struct proc {
	struct gluster_proc pub; /* first: what callers see */
	struct gluster_anchor anchor;
	uint64_t signature;
};

static void wait_a_little(int tries)
{
	struct timespec pause = { .tv_nsec = 1000000L * (tries + 1) };

	nanosleep(&pause, NULL);
}

static void init_probe(struct gluster_probe *p, struct procmem *pm, const struct gluster_layout *l,
		       const struct procmaps *maps)
{
	memset(p, 0, sizeof(*p));
	p->pm = pm;
	p->layout = l;
	p->maps = maps;
}

/* Context, graphs and signature as of one moment: the list must be the same after the walk. */
static int read_graphs(struct gluster_probe *p, const struct gluster_anchor *anchor,
		       struct gluster_graph **ret_graphs, size_t *ret_n, uint64_t *ret_signature)
{
	struct gluster_graph *graphs = NULL;
	uint64_t before, after;
	size_t n = 0;
	int err = gluster_probe_context(p, anchor);

	if (!err)
		err = gluster_signature(p, &before);
	if (!err)
		err = gluster_build_graphs(p, &graphs, &n);
	if (err)
		return err;
	err = gluster_signature(p, &after);
	if (!err && before != after)
		err = gluster_fail(p, "the graphs changed while they were read");
	if (err) {
		gluster_graphs_free(graphs, n);
		return err;
	}
	*ret_graphs = graphs;
	*ret_n = n;
	*ret_signature = after;
	return 0;
}

static int try_row(struct gluster_probe *p, struct proc *proc)
{
	struct gluster_graph *graphs = NULL;
	uint64_t signature;
	size_t n = 0;
	int err = read_graphs(p, &proc->anchor, &graphs, &n, &signature);

	if (err)
		return err;
	err = gluster_check_pool(p);
	if (!err)
		err = gluster_check_stats(p, graphs, n);
	if (err) {
		gluster_graphs_free(graphs, n);
		return err;
	}
	proc->signature = signature;
	proc->pub.layout = p->layout;
	proc->pub.ctx_addr = p->ctx_addr;
	proc->pub.pool_addr = p->pool_addr;
	proc->pub.root_xl_addr = p->root_addr;
	proc->pub.measures_latency = p->measures_latency;
	proc->pub.graphs = graphs;
	proc->pub.n_graphs = n;
	return 0;
}

/* The row that came furthest is the one whose failure explains most. */
static int try_rows(struct proc *proc, const struct procmaps *maps, char *err_text, size_t err_size)
{
	const struct gluster_layout *rows[MAX_ROWS];
	unsigned int n, best_passed = 0;
	int err = -ENOTSUP;

	n = gluster_layouts_by_size(proc->anchor.xlator_size_bytes, rows, MAX_ROWS);
	snprintf(err_text, err_size,
		 "no known release has an xlator_t of %" PRIu64
		 " bytes (version %s): this release of "
		 "glusterfs is not supported",
		 proc->anchor.xlator_size_bytes, proc->anchor.version);
	for (unsigned int i = 0; i < n; i++) {
		struct gluster_probe p;

		for (int tries = 0; tries < TRIES; tries++) {
			init_probe(&p, proc->pub.pm, rows[i], maps);
			err = try_row(&p, proc);
			if (err != -EBADMSG)
				return err;
			if (!procmem_pid(proc->pub.pm))
				break; /* an image does not change by itself */
			if (tries + 1 < TRIES)
				wait_a_little(tries);
		}
		if (p.n_passed >= best_passed) {
			best_passed = p.n_passed;
			snprintf(err_text, err_size,
				 "layout of %s does not fit (version %s): check '%s' failed: %s",
				 rows[i]->releases, proc->anchor.version, p.check, p.why);
		}
	}
	return -ENOTSUP;
}

int gluster_proc_open_at(struct procmem *pm, const struct gluster_anchor *anchor,
			 const struct procmaps *maps, struct gluster_proc **ret_gp, char *err_text,
			 size_t err_size)
{
	struct proc *proc = calloc(1, sizeof(*proc));
	int err;

	if (!proc)
		return -ENOMEM;
	proc->pub.pm = pm;
	proc->anchor = *anchor;
	snprintf(proc->pub.version, sizeof(proc->pub.version), "%s", anchor->version);
	err = try_rows(proc, maps, err_text, err_size);
	if (err) {
		if (err != -ENOTSUP)
			snprintf(err_text, err_size, "cannot read the process: %s", strerror(-err));
		free(proc);
		return err;
	}
	*ret_gp = &proc->pub;
	return 0;
}

static void explain_open(pid_t pid, int err, char *err_text, size_t err_size)
{
	if (err == -EACCES || err == -EPERM)
		snprintf(err_text, err_size, "process %d may not be read: %s", (int)pid,
			 geteuid() ? "run as root" : "this needs CAP_SYS_PTRACE over it");
	else if (err == -ESRCH)
		snprintf(err_text, err_size, "process %d is gone", (int)pid);
	else if (err == -ENOENT)
		snprintf(err_text, err_size,
			 "process %d is no glusterfs process: it maps no libglusterfs", (int)pid);
	else if (err == -ENOEXEC)
		snprintf(err_text, err_size,
			 "process %d: its libglusterfs exports no global_xlator", (int)pid);
	else
		snprintf(err_text, err_size, "process %d cannot be read: %s", (int)pid,
			 strerror(-err));
}

/* The memory may be read by then, but not what is mapped there. */
static void explain_anchor(pid_t pid, int err, char *err_text, size_t err_size)
{
	if (err == -EACCES || err == -EPERM)
		snprintf(err_text, err_size, "process %d: its libglusterfs may not be opened: %s",
			 (int)pid,
			 geteuid()     ? "run as root" :
			 err == -EPERM ? "this needs CAP_CHECKPOINT_RESTORE" :
					 "this needs CAP_DAC_READ_SEARCH");
	else
		explain_open(pid, err, err_text, err_size);
}

int gluster_proc_open(pid_t pid, struct gluster_proc **ret_gp, char *err_text, size_t err_size)
{
	struct procmaps maps = { 0 };
	struct gluster_anchor anchor;
	struct procmem *pm = NULL;
	int err = procmem_open(pid, &pm);

	if (!err)
		err = procmaps_load(pid, &maps);
	if (!err && !maps.n)
		err = -ESRCH; /* a zombie or a kernel thread */
	if (err) {
		explain_open(pid, err, err_text, err_size);
		goto out_close;
	}
	err = gluster_anchor_find(pm, &maps, &anchor);
	if (err)
		explain_anchor(pid, err, err_text, err_size);
	else
		err = gluster_proc_open_at(pm, &anchor, &maps, ret_gp, err_text, err_size);
out_close:
	procmaps_free(&maps);
	if (err)
		procmem_close(pm);
	return err;
}

void gluster_proc_close(struct gluster_proc *gp)
{
	if (!gp)
		return;
	gluster_graphs_free(gp->graphs, gp->n_graphs);
	procmem_close(gp->pm);
	free(gp);
}

static int refresh_once(struct proc *proc, struct gluster_probe *p)
{
	struct gluster_graph *graphs = NULL;
	struct procmaps maps = { 0 };
	uint64_t signature;
	size_t n = 0;
	int err = gluster_probe_context(p, &proc->anchor);

	if (!err)
		err = gluster_signature(p, &signature);
	if (err)
		return err;
	proc->pub.measures_latency = p->measures_latency;
	if (signature == proc->signature)
		return 0;
	/* New graphs bring new modules: only now are the mappings worth reading. */
	if (procmem_pid(p->pm) && !procmaps_load(procmem_pid(p->pm), &maps))
		p->maps = &maps;
	err = read_graphs(p, &proc->anchor, &graphs, &n, &signature);
	procmaps_free(&maps);
	p->maps = NULL;
	if (err)
		return err;
	gluster_graphs_free(proc->pub.graphs, proc->pub.n_graphs);
	proc->pub.graphs = graphs;
	proc->pub.n_graphs = n;
	proc->pub.root_xl_addr = p->root_addr;
	proc->signature = signature;
	return 1;
}

int gluster_proc_refresh(struct gluster_proc *gp, char *err_text, size_t err_size)
{
	struct proc *proc = (struct proc *)gp;
	struct gluster_probe p;
	int err = -EBADMSG;

	for (int tries = 0; tries < TRIES && err == -EBADMSG; tries++) {
		if (tries)
			wait_a_little(tries);
		init_probe(&p, gp->pm, gp->layout, NULL);
		err = refresh_once(proc, &p);
	}
	if (err == -EBADMSG)
		snprintf(err_text, err_size, "graphs cannot be read again: check '%s' failed: %s",
			 p.check, p.why);
	else if (err < 0)
		explain_open(procmem_pid(gp->pm), err, err_text, err_size);
	return err;
}

bool gluster_proc_switched(struct gluster_proc *gp)
{
	uint64_t active;
	size_t i;

	if (!gp->root_xl_addr ||
	    procmem_read_u64(gp->pm, gp->ctx_addr + gp->layout->ctx_active, &active) || !active)
		return false;
	for (i = 0; i < gp->n_graphs; i++) {
		if (gp->graphs[i].addr == active)
			return !gp->graphs[i].is_active;
	}
	return true;
}
