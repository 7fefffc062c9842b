/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_layout.h: where GlusterFS keeps things, release by release: one row of byte offsets per
 * layout group, and the rules by which a running process proves that a row is its own.
 *
 * Offsets come from offsetof() programs compiled against each release's headers (x86-64; structures
 * hold no architecture-dependent members, so arm64 is the same). A row is only ever proposed; the
 * self-checks decide, and where one fails the row is refused.
 */
#ifndef BRICKTOP_GLUSTER_LAYOUT_H
#define BRICKTOP_GLUSTER_LAYOUT_H

#include <stdint.h>

#define GLUSTER_MAX_FOP 60 /* GF_FOP_MAXVALUE is 59 from 6.0 on */

enum gluster_lat_type {
	GLUSTER_LAT_NONE,      /* this release keeps no latency statistics that can be read */
	GLUSTER_LAT_DOUBLE_US, /* 3.12 */
	GLUSTER_LAT_DOUBLE_NS, /* 4.0 to 8 (its headers say microseconds, its code stores ns) */
	GLUSTER_LAT_U64_NS,    /* 9 and later */
};

/* Which bucket of an inode table a gfid is in (hash_gfid() and its callers in inode.c). */
enum gluster_gfid_hash {
	GLUSTER_HASH_64K,  /* to 8: its last two bytes, of 65536 */
	GLUSTER_HASH_LAST, /* 9 and 10: its last two bytes, modulo the table's size */
	GLUSTER_HASH_WORD, /* 11: its first four bytes as a number, masked by the size */
};

/* Byte offsets; 0xffff where the release has no such field. */
struct gluster_layout {
	const char *releases;       /* "10.2-10.5" */
	uint32_t xlator_size_bytes; /* sizeof(xlator_t) == st_size of global_xlator */
	uint16_t ctx_volfile_id, ctx_brick_name, ctx_process_uuid, ctx_pool, ctx_graphs, ctx_active;
	uint16_t ctx_root, ctx_measure_latency, ctx_cmdlinestr;
	uint16_t graph_first, graph_top, graph_xl_count, graph_id, graph_used, graph_volume_id;
	uint16_t xl_ctx, xl_graph, xl_itable, xl_private, xl_volfile_id, xl_identifier;
	uint16_t xl_pass_through;
	uint16_t pool_total_count;
	uint16_t stack_ctx, stack_myframes, stack_op, stack_type, stack_ctime;
	uint16_t stack_err_xl; /* xlator that raised the last error; the error (int) lies behind */
	uint16_t frame_begin, frame_end, frame_local, frame_this, frame_ret, frame_cookie, frame_op;
	uint16_t frame_complete, frame_wind_from, frame_wind_to, frame_size;
	uint16_t fd_inode, inode_ia_type, inode_dentry_list, dentry_name, dentry_parent;
	uint8_t dentry_name_inline; /* 1: the name is a char array at dentry_name (11) */
	uint8_t frame_time_is_wall; /* 1: struct timeval of gettimeofday (3.12) */
	uint16_t itable_active;     /* inode table: list head of active inodes, */
	uint16_t itable_xl;         /* and the xlator that it is of */
	enum gluster_gfid_hash gfid_hash;
	uint16_t fuse_fd; /* fuse_state_t: open file of a request */
	uint16_t rpcsvc_xid, client_bound_xl, client_uid;
	uint8_t client_uid_inline;
	/* statistics: address of wound(fop) = xl + stat_wound + fop * stat_stride, and so on */
	uint16_t stat_wound, stat_failed, stat_stride;
	uint16_t lat_base, lat_stride, lat_min, lat_max, lat_total, lat_count;
	enum gluster_lat_type lat_type;
	uint16_t api_fops; /* xlator_api: offset of the fops pointer; 0xffff: "fops" is exported */
	uint8_t max_fop;   /* GF_FOP_MAXVALUE */
};

/* Fields that are the same in every release. */
enum {
	GLUSTER_XL_NAME = 0x00,
	GLUSTER_XL_TYPE = 0x08,
	GLUSTER_XL_NEXT = 0x18,
	GLUSTER_XL_PREV = 0x20,
	GLUSTER_XL_PARENTS = 0x28,
	GLUSTER_XL_CHILDREN = 0x30,
	GLUSTER_XL_FOPS = 0x48,
	GLUSTER_FRAME_ROOT = 0x00,
	GLUSTER_FRAME_PARENT = 0x08,
	GLUSTER_FRAME_LINK = 0x10,
	GLUSTER_STACK_NEXT = 0x00,
	GLUSTER_STACK_POOL = 0x10,
	GLUSTER_STACK_CLIENT = 0x40,
	GLUSTER_STACK_UNIQUE = 0x48,
	GLUSTER_STACK_STATE = 0x50,
	GLUSTER_STACK_UID = 0x58,
	GLUSTER_STACK_PID = 0x60,
};

/* All rows, newest release last. */
const struct gluster_layout *gluster_layouts(unsigned int *ret_n);

/* Rows whose xlator_t has this size, in order; NULL ends the list of at most max pointers. */
unsigned int gluster_layouts_by_size(uint64_t xlator_size_bytes, const struct gluster_layout **rows,
				     unsigned int max);

/* Fop number <-> name ("writev" is shown as "write", "readv" as "read"); NULL / -1 where unknown.
 */
const char *gluster_fop_name(unsigned int fop);
int gluster_fop_by_name(const char *name);

#endif
