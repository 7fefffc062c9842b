/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_resolver.h: paths of gfids from a brick's file system, by a child process. That file
 * system may not answer, and who asks is then in uninterruptible sleep: a thread of ours there
 * would keep the process from ending and its probes in the kernel. The child holds nothing; one
 * that cannot end is left behind.
 */
#ifndef BRICKTOP_GLUSTER_RESOLVER_H
#define BRICKTOP_GLUSTER_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* gluster_path_find(). Runs in the child of a process with threads: system calls and no more. */
typedef int (*gluster_resolver_fn)(const char *brick, const uint8_t gfid[16], char *path,
				   size_t size, bool *ret_is_dir);

/* Before the first gluster_resolver_begin(): all zero but for find. */
struct gluster_resolver {
	gluster_resolver_fn find;
	uint64_t left_ns; /* for what is asked yet */
	size_t n_late;    /* since it began: asked, and not answered */
	pid_t child;      /* 0: none. It may be one of before, which could not end yet */
	int sock;         /* to the child; valid while is_open */
	bool is_open;
};

/* A report begins: what is asked until the end may take so long altogether. */
void gluster_resolver_begin(struct gluster_resolver *r, uint64_t patience_ns);

/*
 * As find(), in the child, which is started at the first question. Besides -ETIMEDOUT: no answer
 * came, and none will to what is asked after it.
 */
int gluster_resolver_ask(struct gluster_resolver *r, const char *brick, const uint8_t gfid[16],
			 char *path, size_t size, bool *ret_is_dir);

/* The child ends, if it can: nothing is to be freed after that. */
void gluster_resolver_end(struct gluster_resolver *r);

#endif
