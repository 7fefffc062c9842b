/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_stuck.h: requests in flight in a GlusterFS process, from its call pool: no probe. A list
 * that changes under the reader is read again; what still does not close is reported as such.
 */
#ifndef BRICKTOP_GLUSTER_STUCK_H
#define BRICKTOP_GLUSTER_STUCK_H

#include "gluster_graph.h"

/* What counting needs of a request in flight; gluster_stuck_detail() reads the rest. */
struct gluster_brief {
	uint64_t stack_addr, unique;
	uint64_t copy_addr; /* the copied stack in which it goes on; 0: none */
	uint64_t age_ns;    /* as in struct gluster_request, like all that follows */
	uint64_t graph_key;
	unsigned int fop;
	bool has_age, background;
};

struct gluster_request {
	uint64_t stack_addr, unique;
	uint64_t age_ns;       /* since the root frame began (CLOCK_MONOTONIC); 0 with !has_age */
	uint64_t frame_age_ns; /* since the deepest open frame began */
	bool has_age, has_frame_age;
	bool background;  /* created by the process itself, not by a client's request */
	unsigned int fop; /* root's */
	int64_t app_pid;  /* negative: internal (heal, rebalance) */
	uint32_t uid;
	char xlator[256]; /* where it sits: deepest open frame's this; sanitized */
	char wind[128];   /* "pl_writev" or ""; sanitized */
	char volume[256];
	uint64_t graph_key; /* gluster_graph.key, 0 unknown */
	char gfid[37];      /* "" unknown */
	char file[4096];    /* path or name as far as the inode table knows it; "" unknown */
	char client[1024];  /* brick: the client's uid string; "" */
};

/*
 * Oldest first. *ret_list is malloc'ed and freed by the caller. *ret_truncated: more than max, or
 * the list did not close after retries. 0 or -errno. with_files: also look for the file (dearer).
 */
int gluster_stuck_read(struct gluster_proc *gp, size_t max, bool with_files,
		       struct gluster_request **ret_list, size_t *ret_n, bool *ret_truncated);

/*
 * The same requests, each in brief: no string is read, and one takes a hundredth of a struct
 * gluster_request. *ret_truncated: the list is too long, or did not close after retries.
 */
int gluster_stuck_brief(struct gluster_proc *gp, struct gluster_brief **ret_list, size_t *ret_n,
			bool *ret_truncated);

/*
 * The whole of some of them, in the same order; those that have ended meanwhile are left out.
 * *ret_list and errors as of gluster_stuck_read().
 */
int gluster_stuck_detail(struct gluster_proc *gp, const struct gluster_brief *briefs, size_t n,
			 bool with_files, struct gluster_request **ret_list, size_t *ret_n);

#endif
