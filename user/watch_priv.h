/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_priv.h: the inside of struct watch, shared by watch.c (memory) and watch_probe.c (probes).
 */
#ifndef BRICKTOP_WATCH_PRIV_H
#define BRICKTOP_WATCH_PRIV_H

#include "elf.h"
#include "site.h"
#include "watch.h"
#include "watch_discovery.h"
#include "watch_tails.h"

#define WATCH_MAX_SEEN 512

struct watch_target {
	unsigned int idx; /* in the model */
	struct target target;
	uint64_t graph_key; /* graph shown now */
	size_t graph;       /* its place in gp->graphs; SIZE_MAX: gone */
	__u16 *layers;      /* wire layer of each of the graph's xlators */
};

/* Probe sites in one module, being chosen. */
struct watch_sites {
	struct uprobe_site *site;
	uint64_t *func; /* the functions they are in, as virtual addresses of the module */
	size_t n, stepped;
	char path[4200]; /* as this process opens it */
};

/* The search for callbacks that no probe is at yet; watch_discovery.c's alone. */
struct watch_discovery {
	struct watch_search search;
	struct watch_search_look look; /* the last one */
	uint64_t seen[WATCH_MAX_SEEN]; /* callback addresses dealt with */
	size_t n_seen;
	size_t n_unprobed; /* of those, where no probe could be put */
	uint64_t *top;     /* functions of the topmost module that have a probe */
	size_t n_top;
	char top_path[4200];
	uint64_t calls[GLUSTER_MAX_FOP]; /* requests at the last tick, */
	uint64_t base[GLUSTER_MAX_FOP];  /* and when the probes went in */
	bool paused;
};

struct watch {
	pid_t pid;
	struct gluster_proc *gp;
	struct watch_target *targets;
	size_t n_targets;

	struct source_probes probes;
	struct watch_tails tails; /* empty unless tails are to be split */
	bool attached, proven;    /* proven: hits came from more than the main thread */
	bool aio_told;            /* what of asynchronous I/O is not seen */
	uint64_t wound_at_attach;
	struct snap_probes sites; /* how the top callbacks are probed */
	bool graphs_changed;      /* since xlators were told to the programs */
	uint64_t *told;           /* addresses of all xlators then, ascending */
	size_t n_told;

	struct watch_discovery discovery;
};

/* Something that all targets of the process miss. 0 or -errno of model_feed_off_target(). */
int watch_off(const struct watch *w, struct model *m, const char *what, const char *reason);

/* Number of the graph that is shown for a target now, by key or, on a client, by use; SIZE_MAX. */
size_t watch_find_graph(const struct watch *w, const struct watch_target *wt);

/* Tell the programs the addresses of all xlators of all targets. 0 or -errno. */
int watch_tell_nodes(struct watch *w, struct source *src);

/* Requests that completed, by the process's own count, since it started (all targets). */
uint64_t watch_completed(struct watch *w);

/* Requests by fop that came in, by the process's own count as it was last fed to the model. */
void watch_requests(const struct watch *w, const struct model *m,
		    uint64_t ret_calls[GLUSTER_MAX_FOP]);

enum watch_threads { WATCH_THREADS_UNKNOWN, WATCH_THREADS_ALL, WATCH_THREADS_ONE };

/*
 * Do probes see all threads of a process? A multi link whose pid matches one thread only (Linux 6.6
 * to 6.9) shows no hits, or those of the main thread alone, while the process counts requests:
 * completed, since the probes are in. Pure.
 */
enum watch_threads watch_judge_threads(pid_t pid, const struct wire_proc *proc, uint64_t completed);

/*
 * Choose a callback's cheapest instruction and append it; s->site must have room. 0 or -errno of
 * site_choose().
 */
int watch_add_site(struct watch_sites *s, const struct elf_file *elf, const struct elf_range *func,
		   enum wire_site what, struct site *ret_site);

/* One more top callback is probed, there. */
void watch_count_site(struct watch *w, const struct site *site);

/* The topmost module's sites that are probed: takes s->func over. */
void watch_discovery_top(struct watch_discovery *d, struct watch_sites *s);

/* The probes are in: from now on it is looked for what they do not meet. */
void watch_discovery_start(struct watch *w, struct source *src, const struct model *m,
			   uint64_t now_ns);

/*
 * Look what goes unaccounted and what was seen, probe it, arm and disarm. What cannot be had is
 * told. Does nothing before WATCH_SEARCH_LOOK_NS have passed. 0 or -errno. The tick comes after
 * the process's counts were fed to the model, and looks at its fops, too.
 */
int watch_discovery_look(struct watch *w, struct source *src, struct model *m, uint64_t now_ns);
int watch_discovery_tick(struct watch *w, struct source *src, struct model *m, uint64_t now_ns);
void watch_discovery_free(struct watch_discovery *d);

#endif
