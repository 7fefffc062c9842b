/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_graph.h: the xlator graphs of a running GlusterFS process and the statistics that it
 * keeps of itself, read from its memory without any probe. Owns the proof that the layout fits.
 * Must not know BPF, and never writes to the process.
 */
#ifndef BRICKTOP_GLUSTER_GRAPH_H
#define BRICKTOP_GLUSTER_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gluster_layout.h"
#include "procmem.h"

#define GLUSTER_MAX_XLATORS 512

struct gluster_xlator {
	uint64_t addr; /* xlator_t in the process */
	char *name;    /* "vol-posix", sanitized */
	char *id;      /* name without the volume prefix: "posix"; see gluster_graph_volume() */
	char *type;    /* "storage/posix" */
	char *so_path; /* the module's file, as the process sees it; NULL where unknown */
	uint64_t fops_addr; /* xlator.fops in the process */
	bool pass_through;
	unsigned int *parents, n_parents; /* indices into gluster_graph.xl */
	unsigned int *children, n_children;
};

/* One tree of xlators that serves one brick or one mount. */
struct gluster_graph {
	uint64_t addr;    /* glusterfs_graph_t */
	uint64_t key;     /* identity: address of the top below server, or of the graph's top */
	int id;           /* graph.id; -1 unknown */
	bool is_brick;    /* top is protocol/server */
	bool is_active;   /* requests arriving now use it */
	char volume[256]; /* "perfvol"; "-" where unknown; sanitized */
	char brick_path[4096];     /* the brick's directory; "" on clients; sanitized for display */
	struct gluster_xlator *xl; /* top first, then depth first in children order, each once */
	size_t n;
};

struct gluster_proc {
	struct procmem *pm;
	const struct gluster_layout *layout; /* proven */
	char version[32];                    /* "10.3" or "-" */
	uint64_t ctx_addr, pool_addr;
	bool measures_latency;        /* frames carry stamps */
	struct gluster_graph *graphs; /* one per brick of a (multiplexed) process; clients: the
					 graph in use and older ones still listed */
	size_t n_graphs;
	uint64_t root_xl_addr; /* client: mount/fuse; 0 on a brick */
};

/*
 * Open a running glusterfsd/glusterfs. 0; -ENOENT: not a GlusterFS process; -ENOTSUP: it is one but
 * no layout passes its checks (err says which check, of which release row); -errno of procmem.
 */
int gluster_proc_open(pid_t pid, struct gluster_proc **ret_gp, char *err, size_t err_size);
void gluster_proc_close(struct gluster_proc *gp);

/*
 * Read the graphs anew (bricks attach and detach, clients switch). 1 where something changed (all
 * graph pointers are then new), 0 where not, -errno.
 */
int gluster_proc_refresh(struct gluster_proc *gp, char *err, size_t err_size);

/*
 * One read: whether a client's process has another graph in use than the one known. It takes that
 * into use some milliseconds before requests do.
 */
bool gluster_proc_switched(struct gluster_proc *gp);

/* One xlator's statistics for one fop. Validity: has_* false means "not known", never 0. */
struct gluster_stat {
	uint64_t wound;     /* calls ever wound to it */
	uint64_t failed;    /* replies with op_ret < 0 that it received */
	uint64_t lat_count; /* frames that ended here since the last statedump */
	double lat_total_ns, lat_min_ns, lat_max_ns;
	bool has_counts, has_latency, has_min;
};

/* stats[fop] of a graph's xlator xl_index for fop 0 .. GLUSTER_MAX_FOP - 1. 0 or -errno. */
int gluster_stats_read(struct gluster_proc *gp, const struct gluster_xlator *xl,
		       struct gluster_stat stats[GLUSTER_MAX_FOP]);

/*
 * Call stacks that have ended since the process started: created (pool.total_count) less those that
 * are there (pool.cnt). 0, -ENOTSUP before 4.0, -errno.
 */
int gluster_pool_ended(struct gluster_proc *gp, uint64_t *ret_ended);

#endif
