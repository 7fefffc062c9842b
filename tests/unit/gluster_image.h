/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_image.h: a made-up GlusterFS process: the memory of a brick or a client as one layout row
 * says it lies, small but whole: context, graph, xlators with statistics, a call pool with a
 * request in flight, inodes with names. Addresses are real ones of this process, so that the same
 * memory serves as an image and, after a fork, as another process's. Included once per test
 * program.
 */
#ifndef BRICKTOP_GLUSTER_IMAGE_H
#define BRICKTOP_GLUSTER_IMAGE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gluster_frames.h"
#include "gluster_walk.h"

#define IMAGE_BYTES        (256 << 10)
#define IMAGE_MAX_XLATORS  8
#define IMAGE_FOP          13 /* write */
#define IMAGE_WOUND        1000
#define IMAGE_FAILED       7
#define IMAGE_LAT_COUNT    900
#define IMAGE_LAT_MIN_NS   50000.0
#define IMAGE_LAT_MAX_NS   2000000.0
#define IMAGE_LAT_TOTAL_NS (IMAGE_LAT_COUNT * 300000.0)
#define IMAGE_AGE_NS       30000000000ULL
#define IMAGE_CREATED      4711

struct image {
	const struct gluster_layout *l;
	uint8_t *mem;
	size_t used;
	uint64_t global, ctx, pool, graph, root, itable, inode, stack, frames[3];
	uint64_t xl[IMAGE_MAX_XLATORS];
	uint64_t global_at; /* where global_xlator stands; 0: in the image */
	unsigned int n_xl;
};

static inline uint64_t image_alloc(struct image *im, size_t len)
{
	size_t at = (im->used + 15) & ~(size_t)15;

	if (at + len > IMAGE_BYTES)
		abort();
	im->used = at + len;
	return (uint64_t)(uintptr_t)(im->mem + at);
}

static inline void image_put(uint64_t addr, const void *bytes, size_t len)
{
	memcpy((void *)(uintptr_t)addr, bytes, len);
}

static inline void image_put64(uint64_t addr, uint64_t value)
{
	image_put(addr, &value, 8);
}

static inline void image_put32(uint64_t addr, uint32_t value)
{
	image_put(addr, &value, 4);
}

static inline uint64_t image_get64(uint64_t addr)
{
	uint64_t value;

	memcpy(&value, (const void *)(uintptr_t)addr, 8);
	return value;
}

static inline uint64_t image_str(struct image *im, const char *text)
{
	uint64_t addr = image_alloc(im, strlen(text) + 1);

	image_put(addr, text, strlen(text) + 1);
	return addr;
}

/* A list head that is alone, and a node behind the last. */
static inline void image_list_init(uint64_t head)
{
	image_put64(head, head);
	image_put64(head + 8, head);
}

static inline void image_list_append(uint64_t head, uint64_t node)
{
	uint64_t last = image_get64(head + 8);

	image_put64(node, head);
	image_put64(node + 8, last);
	image_put64(last, node);
	image_put64(head + 8, node);
}

static inline uint64_t image_double(double value)
{
	uint64_t word;

	memcpy(&word, &value, 8);
	return word;
}

/* A latency figure as this release stores it. */
static inline uint64_t image_latency(const struct gluster_layout *l, double ns, int is_total)
{
	switch (l->lat_type) {
	case GLUSTER_LAT_DOUBLE_US:
		return is_total ? image_double(ns / 1e3) : (uint64_t)(ns / 1e3);
	case GLUSTER_LAT_DOUBLE_NS:
		return image_double(ns);
	default:
		return (uint64_t)ns;
	}
}

static inline uint64_t image_unset_min(const struct gluster_layout *l)
{
	return l->lat_type == GLUSTER_LAT_U64_NS    ? UINT64_MAX :
	       l->lat_type == GLUSTER_LAT_DOUBLE_NS ? image_double((double)UINT32_MAX) :
						      UINT32_MAX;
}

static inline void image_stats(const struct image *im, uint64_t xl)
{
	const struct gluster_layout *l = im->l;
	uint64_t slot;

	for (unsigned int fop = 0; fop < l->max_fop; fop++)
		image_put64(xl + l->lat_base + fop * l->lat_stride + l->lat_min,
			    image_unset_min(l));
	if (l->stat_wound != GLUSTER_ABSENT) {
		image_put64(xl + l->stat_wound + IMAGE_FOP * l->stat_stride, IMAGE_WOUND);
		image_put64(xl + l->stat_failed + IMAGE_FOP * l->stat_stride, IMAGE_FAILED);
	}
	slot = xl + l->lat_base + IMAGE_FOP * l->lat_stride;
	image_put64(slot + l->lat_min, image_latency(l, IMAGE_LAT_MIN_NS, 0));
	image_put64(slot + l->lat_max, image_latency(l, IMAGE_LAT_MAX_NS, 0));
	image_put64(slot + l->lat_total, image_latency(l, IMAGE_LAT_TOTAL_NS, 1));
	image_put64(slot + l->lat_count, IMAGE_LAT_COUNT);
}

static inline uint64_t image_xlator(struct image *im, const char *name, const char *type)
{
	uint64_t xl = image_alloc(im, im->l->xlator_size_bytes);

	image_put64(xl + GLUSTER_XL_NAME, image_str(im, name));
	image_put64(xl + GLUSTER_XL_TYPE, image_str(im, type));
	image_put64(xl + im->l->xl_ctx, im->ctx);
	image_stats(im, xl);
	return xl;
}

/* Prepend to a parents or children list. */
static inline void image_link(struct image *im, uint64_t head_at, uint64_t xl)
{
	uint64_t entry = image_alloc(im, 16);

	image_put64(entry, xl);
	image_put64(entry + 8, image_get64(head_at));
	image_put64(head_at, entry);
}

static inline void image_adopt(struct image *im, uint64_t parent, uint64_t child)
{
	image_link(im, parent + GLUSTER_XL_CHILDREN, child);
	image_link(im, child + GLUSTER_XL_PARENTS, parent);
}

/* Appended to the graph's chain. */
static inline uint64_t image_chained(struct image *im, const char *name, const char *type)
{
	uint64_t xl = image_xlator(im, name, type);

	image_put64(xl + im->l->xl_graph, im->graph);
	if (im->n_xl) {
		image_put64(im->xl[im->n_xl - 1] + GLUSTER_XL_NEXT, xl);
		image_put64(xl + GLUSTER_XL_PREV, im->xl[im->n_xl - 1]);
	}
	im->xl[im->n_xl++] = xl;
	return xl;
}

static inline void image_base(struct image *im)
{
	const struct gluster_layout *l = im->l;

	im->ctx = image_alloc(im, 0x400);
	im->pool = image_alloc(im, 0x40);
	im->graph = image_alloc(im, 0x200);
	im->global = im->global_at ? im->global_at : image_alloc(im, l->xlator_size_bytes);
	image_put64(im->global + GLUSTER_XL_NAME, image_str(im, "glusterfs"));
	image_put64(im->global + GLUSTER_XL_TYPE, image_str(im, "global"));
	image_put64(im->global + l->xl_ctx, im->ctx);
	image_list_init(im->ctx + l->ctx_graphs);
	image_list_append(im->ctx + l->ctx_graphs, im->graph);
	image_put64(im->ctx + l->ctx_active, im->graph);
	image_put64(im->ctx + l->ctx_pool, im->pool);
	image_put((im->ctx + l->ctx_measure_latency), "\1", 1);
	image_list_init(im->pool);
	if (l->pool_total_count != GLUSTER_ABSENT)
		image_put64(im->pool + l->pool_total_count, IMAGE_CREATED);
}

static inline void image_finish_graph(struct image *im)
{
	const struct gluster_layout *l = im->l;

	image_put64(im->graph + l->graph_first, im->xl[0]);
	image_put64(im->graph + l->graph_top, im->xl[0]);
	image_put32(im->graph + l->graph_xl_count, im->n_xl);
	image_put32(im->graph + l->graph_id, 3);
}

static inline uint64_t image_frame(struct image *im, uint64_t parent, uint64_t xl, uint64_t age_ns)
{
	const struct gluster_layout *l = im->l;
	uint64_t frame = image_alloc(im, l->frame_size);
	uint64_t begin_ns = gluster_frame_clock_ns(l) - age_ns;
	uint64_t head = im->stack + l->stack_myframes, newest = image_get64(head);

	image_put64(frame + GLUSTER_FRAME_ROOT, im->stack);
	image_put64(frame + GLUSTER_FRAME_PARENT, parent);
	image_put64(frame + l->frame_this, xl);
	image_put64(frame + l->frame_wind_from, image_str(im, "pl_writev"));
	image_put64(frame + l->frame_begin, begin_ns / 1000000000);
	image_put64(frame + l->frame_begin + 8,
		    begin_ns % 1000000000 / (l->frame_time_is_wall ? 1000 : 1));
	/* newest first */
	image_put64(frame + GLUSTER_FRAME_LINK, newest);
	image_put64(frame + GLUSTER_FRAME_LINK + 8, head);
	image_put64(newest + 8, frame + GLUSTER_FRAME_LINK);
	image_put64(head, frame + GLUSTER_FRAME_LINK);
	return frame;
}

/* "/dir/held": the file that the request in flight writes to. Returns an fd_t. */
static inline uint64_t image_file(struct image *im)
{
	const struct gluster_layout *l = im->l;
	uint64_t inodes[3], fd = image_alloc(im, 0x80);

	im->itable = image_alloc(im, 0x100);
	for (unsigned int i = 0; i < 3; i++) {
		inodes[i] = image_alloc(im, 0x100);
		image_put64(inodes[i], im->itable);
		image_put((inodes[i] + 8 + 15), &(uint8_t){ (uint8_t)(i + 1) }, 1);
		image_list_init(inodes[i] + l->inode_dentry_list);
	}
	for (unsigned int i = 1; i < 3; i++) {
		uint64_t dentry = image_alloc(im, 0x80);
		const char *name = i == 1 ? "dir" : "held";

		image_list_append(inodes[i] + l->inode_dentry_list, dentry);
		image_put64(dentry + 0x20, inodes[i]);
		image_put64(dentry + l->dentry_parent, inodes[i - 1]);
		if (l->dentry_name_inline)
			image_put(dentry + l->dentry_name, name, strlen(name) + 1);
		else
			image_put64(dentry + l->dentry_name, image_str(im, name));
	}
	image_put64(fd + l->fd_inode, inodes[2]);
	im->inode = inodes[2];
	return fd;
}

/* One write in flight: top -> ... -> the xlator it sits in. */
static inline void image_request(struct image *im, uint64_t top, uint64_t middle, uint64_t deepest)
{
	const struct gluster_layout *l = im->l;
	uint64_t state = image_alloc(im, 0x400), fd = image_file(im);
	uint64_t client = image_alloc(im, 0x200);

	im->stack = image_alloc(im, 0x800);
	image_list_append(im->pool, im->stack);
	image_put64(im->pool + 0x10, 1);
	image_put64(im->stack + GLUSTER_STACK_POOL, im->pool);
	image_put64(im->stack + l->stack_ctx, im->ctx);
	image_put64(im->stack + GLUSTER_STACK_UNIQUE, 77);
	image_put64(im->stack + GLUSTER_STACK_CLIENT, client);
	image_put64(im->stack + GLUSTER_STACK_STATE, state);
	image_put32(im->stack + GLUSTER_STACK_UID, 1000);
	image_put32(im->stack + GLUSTER_STACK_PID, 4242);
	image_put32(im->stack + l->stack_op, IMAGE_FOP);
	image_put(im->stack + l->stack_type, "\1", 1);
	image_list_init(im->stack + l->stack_myframes);
	image_put64(state + 0x2e0, fd);
	image_put64(client + l->client_bound_xl, im->xl[1]);
	if (l->client_uid_inline)
		image_put(client + l->client_uid, "CTX_ID:a\033[31m", 14);
	else
		image_put64(client + l->client_uid, image_str(im, "CTX_ID:a\033[31m"));
	im->frames[0] = image_frame(im, 0, top, IMAGE_AGE_NS);
	im->frames[1] = image_frame(im, im->frames[0], middle, IMAGE_AGE_NS - 1000000);
	im->frames[2] = image_frame(im, im->frames[1], deepest, IMAGE_AGE_NS - 2000000);
	for (unsigned int i = 0; i < im->n_xl; i++)
		image_put64(im->xl[i] + l->xl_itable, i == 1 ? im->itable : 0);
}

/* server > io-stats (named by the path) > io-threads > posix */
static inline void image_brick(struct image *im)
{
	const char *const names[][2] = { { "vol-server", "protocol/server" },
					 { "/bricks/b1", "debug/io-stats" },
					 { "vol-io-threads", "performance/io-threads" },
					 { "vol-posix", "storage/posix" } };

	image_base(im);
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t xl = image_chained(im, names[i][0], names[i][1]);

		if (i)
			image_adopt(im, im->xl[i - 1], xl);
	}
	image_finish_graph(im);
	image_request(im, im->xl[0], im->xl[2], im->xl[3]);
}

/* fuse > io-stats (named by the volume) > replicate > two clients */
static inline void image_client(struct image *im)
{
	uint64_t private;

	image_base(im);
	image_chained(im, "vol", "debug/io-stats");
	image_chained(im, "vol-replicate-0", "cluster/replicate");
	image_chained(im, "vol-client-1", "protocol/client");
	image_chained(im, "vol-client-0", "protocol/client");
	image_adopt(im, im->xl[0], im->xl[1]);
	image_adopt(im, im->xl[1], im->xl[2]);
	image_adopt(im, im->xl[1], im->xl[3]);
	image_finish_graph(im);
	im->root = image_xlator(im, "fuse", "mount/fuse");
	private = image_alloc(im, 0x400);
	image_put64(private + 0x108, im->xl[0]);
	image_put64(im->root + im->l->xl_private, private);
	image_put64(im->ctx + im->l->ctx_root, im->root);
	image_request(im, im->root, im->xl[1], im->xl[3]);
	image_put64(im->stack + GLUSTER_STACK_CLIENT, 0);
}

/* A row's brick (or client) in fresh memory. */
static inline void image_make(struct image *im, const struct gluster_layout *l, int client)
{
	uint8_t *mem = im->mem ? im->mem : malloc(IMAGE_BYTES);
	uint64_t global_at = im->global_at;

	if (!mem)
		abort();
	memset(mem, 0, IMAGE_BYTES);
	memset(im, 0, sizeof(*im));
	im->l = l;
	im->mem = mem;
	im->global_at = global_at;
	if (client)
		image_client(im);
	else
		image_brick(im);
}

static inline struct gluster_anchor image_anchor(const struct image *im)
{
	return (struct gluster_anchor){ .global_xlator = im->global,
					.xlator_size_bytes = im->l->xlator_size_bytes,
					.latency_is_u64 = -1,
					.version = "-" };
}

/* Open the image as if it were a process. seg must live as long as the result. */
static inline int image_open(const struct image *im, struct procmem_segment *seg,
			     struct gluster_proc **ret_gp, char *err, size_t err_size)
{
	struct gluster_anchor anchor = image_anchor(im);
	struct procmem *pm;
	int rc;

	*seg = (struct procmem_segment){ (uint64_t)(uintptr_t)im->mem, im->mem, IMAGE_BYTES };
	rc = procmem_open_image(seg, 1, &pm);
	if (rc)
		return rc;
	rc = gluster_proc_open_at(pm, &anchor, NULL, ret_gp, err, err_size);
	if (rc)
		procmem_close(pm);
	return rc;
}

#endif
