/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_inode.h: which file a request is about, by the inode tables in a GlusterFS process's
 * memory. An inode is believed only where it points back to a known table. Inside of the gluster
 * modules alone.
 */
#ifndef BRICKTOP_GLUSTER_INODE_H
#define BRICKTOP_GLUSTER_INODE_H

#include "gluster_graph.h"
#include "text.h"

#define GLUSTER_MAX_TABLES 256

struct gluster_tables {
	uint64_t addr[GLUSTER_MAX_TABLES];
	unsigned int n;
};

/* The inode tables of all graphs. */
void gluster_tables_find(struct gluster_proc *gp, struct gluster_tables *ret_tables);

/* Those of one graph. */
void gluster_tables_of(struct gluster_proc *gp, size_t graph, struct gluster_tables *ret_tables);

/*
 * The path of a gfid, as far up as it is in memory: with a leading slash from the volume's root, or
 * without. As it is, not sanitized. false: no such inode, or it has no name (any more).
 */
bool gluster_inode_path(struct gluster_proc *gp, const struct gluster_tables *tables,
			const uint8_t gfid[16], char *path, size_t size, bool *ret_is_dir);

/*
 * The first inode or open file that a block of memory points to: a request's state or an xlator's
 * local data. False where there is none. gfid and file are "" where unknown, and sanitized.
 */
bool gluster_inode_in(struct gluster_proc *gp, const struct gluster_tables *tables, uint64_t block,
		      char gfid[TEXT_GFID], char *file, size_t file_size);

#endif
