/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_walk.h: inside of the gluster modules alone: finding the anchor of a process, reading
 * xlators and lists with one layout row, and saying which self-check failed. Everything goes
 * through procmem, so a memory image serves as well as a process. Every loop has a bound.
 */
#ifndef BRICKTOP_GLUSTER_WALK_H
#define BRICKTOP_GLUSTER_WALK_H

#include "gluster_graph.h"

#define GLUSTER_MAX_GRAPHS   64
#define GLUSTER_MAX_BRICKS   1024   /* of one multiplexed process */
#define GLUSTER_MAX_EDGES    4096   /* of one graph */
#define GLUSTER_XLATOR_BYTES 0x1080 /* the largest sizeof(xlator_t) of all rows */
#define GLUSTER_ABSENT       0xffff

/* Where a process's GlusterFS begins, known without any layout. */
struct gluster_anchor {
	uint64_t global_xlator;     /* address in the process */
	uint64_t xlator_size_bytes; /* st_size of that symbol */
	uint64_t glusterfsd_ctx;    /* address of the pointer that the daemon exports; 0: none */
	int latency_is_u64; /* 1: gf_frame_latency_update is exported (9 and later); -1 unknown */
	char version[32];   /* "10.3"; "-" */
};

/* 0; -ENOENT: maps no libglusterfs; -ENOEXEC: it exports no anchor; -errno. */
int gluster_anchor_find(struct procmem *pm, const struct procmaps *maps,
			struct gluster_anchor *ret_anchor);

/* One try of one row. check names what is being checked; why says what was wrong. */
struct gluster_probe {
	struct procmem *pm;
	const struct gluster_layout *layout;
	const struct procmaps *maps; /* NULL: modules' files stay unknown */
	uint64_t global_addr, ctx_addr, pool_addr, root_addr, active_addr;
	uint64_t subvol_addr; /* client: top of the graph that mount/fuse uses; 0 before any request
			       */
	bool measures_latency;
	uint64_t graphs[GLUSTER_MAX_GRAPHS];
	unsigned int n_graphs;
	const char *check;
	unsigned int n_passed;
	char why[192];
};

/* Start the named check; gluster_fail() and failing reads are charged to it. */
void gluster_begin_check(struct gluster_probe *p, const char *check);
/* -EBADMSG, with the reason in p->why. */
__attribute__((format(printf, 2, 3))) int gluster_fail(struct gluster_probe *p, const char *fmt,
						       ...);

/* As procmem's, but unreadable memory is a failed check: 0, -EBADMSG or -ESRCH. */
int gluster_read(struct gluster_probe *p, uint64_t addr, void *buf, size_t len);
int gluster_read_ptr(struct gluster_probe *p, uint64_t addr, uint64_t *ret_value);

struct gluster_raw_xlator {
	uint64_t addr;
	uint8_t bytes[GLUSTER_XLATOR_BYTES];
};

int gluster_read_xlator(struct gluster_probe *p, uint64_t addr, struct gluster_raw_xlator *ret_xl);
uint64_t gluster_word(const void *bytes, unsigned int offset);
/*
 * An xlator's name (printable, or a path of any bytes) and type ("class/kind", or "meta"; ASCII);
 * malloc'ed, raw.
 */
int gluster_read_name(struct gluster_probe *p, uint64_t ptr_addr, char **ret_name);
int gluster_read_type(struct gluster_probe *p, uint64_t ptr_addr, char **ret_type);
/* The xlators of a parents or children list: at most max. */
int gluster_read_links(struct gluster_probe *p, uint64_t list_addr, uint64_t *addrs,
		       unsigned int max, unsigned int *ret_n);

/* Context and list of graphs: the checks 'global xlator' to 'active graph'. */
int gluster_probe_context(struct gluster_probe *p, const struct gluster_anchor *anchor);
/* The graph's `next` chain against its own count. */
int gluster_check_chain(struct gluster_probe *p, uint64_t graph_addr);
/* The call pool, and the frames of whatever request is in flight. */
int gluster_check_pool(struct gluster_probe *p);
int gluster_check_stats(struct gluster_probe *p, const struct gluster_graph *graphs, size_t n);

/* All graphs of the process. *ret_graphs is for gluster_graphs_free(). */
int gluster_build_graphs(struct gluster_probe *p, struct gluster_graph **ret_graphs, size_t *ret_n);
/* The tree below root_addr. top_addr is hung under it as its only child where it is not 0. */
int gluster_build_tree(struct gluster_probe *p, uint64_t root_addr, uint64_t top_addr,
		       uint64_t graph_addr, struct gluster_graph *graph);
void gluster_graphs_free(struct gluster_graph *graphs, size_t n);

/* Volume, brick path and xlator ids from the raw names; volfile_id and brick_name may be "". 0 or
 * -ENOMEM. Pure. */
int gluster_name_graph(struct gluster_graph *graph, const char *volfile_id, const char *brick_name);

/* A number that differs where any graph of the process was added, removed, switched or changed. */
int gluster_signature(struct gluster_probe *p, uint64_t *ret_signature);

/*
 * gluster_proc_open() behind the anchor: for a process or an image. Takes pm where it succeeds.
 * maps may be NULL.
 */
int gluster_proc_open_at(struct procmem *pm, const struct gluster_anchor *anchor,
			 const struct procmaps *maps, struct gluster_proc **ret_gp, char *err,
			 size_t err_size);

/* Statistics of one slot block, decoded; raw begins at gluster_stats_span()'s offset. Pure. */
void gluster_stats_span(const struct gluster_layout *layout, unsigned int *ret_offset,
			unsigned int *ret_bytes);
void gluster_stats_decode(const struct gluster_layout *layout, const uint8_t *raw,
			  struct gluster_stat stats[GLUSTER_MAX_FOP]);

#endif
