// SPDX-License-Identifier: Apache-2.0
/*
 * test_gluster_check.c: the self-checks. A made-up process's memory is damaged in every way that a
 * check is there for: it must be refused by that check's name. Then at random, where it only must
 * come back; and each row is tried on the memory of all others.
 */
#include <errno.h>

#include "gluster_stuck.h"
#include "tap.h"
#include "unit/gluster_image.h"

static struct image im;

typedef void (*damage_fn)(void);

static uint64_t text_of(const char *s)
{
	return image_str(&im, s);
}

static void d_global_name(void)
{
	image_put64(im.global, text_of("glusterd"));
}
static void d_global_wild(void)
{
	image_put64(im.global, 0x123456789);
}
static void d_ctx_null(void)
{
	image_put64(im.global + im.l->xl_ctx, 0);
}
static void d_ctx_wild(void)
{
	image_put64(im.global + im.l->xl_ctx, 0xdeadbeef000);
}
static void d_list_prev(void)
{
	image_put64(im.graph + 8, im.graph);
}
static void d_list_loop(void)
{
	image_put64(im.graph, im.graph);
}
static void d_list_wild(void)
{
	image_put64(im.graph, 0x4141414141414141);
}
static void d_list_empty(void)
{
	image_list_init(im.ctx + im.l->ctx_graphs);
}
static void d_active(void)
{
	image_put64(im.ctx + im.l->ctx_active, im.ctx);
}
static void d_measure(void)
{
	image_put(im.ctx + im.l->ctx_measure_latency, "\7", 1);
}
static void d_count_huge(void)
{
	image_put32(im.graph + im.l->graph_xl_count, UINT32_MAX);
}
static void d_count_small(void)
{
	image_put32(im.graph + im.l->graph_xl_count, 1);
}
static void d_chain_loop(void)
{
	image_put64(im.xl[3] + GLUSTER_XL_NEXT, im.xl[0]);
}
static void d_chain_self(void)
{
	image_put64(im.xl[3] + GLUSTER_XL_NEXT, im.xl[3]);
}
static void d_chain_prev(void)
{
	image_put64(im.xl[2] + GLUSTER_XL_PREV, im.xl[3]);
}
static void d_chain_wild(void)
{
	image_put64(im.xl[2] + GLUSTER_XL_NEXT, 8);
}
static void d_name_wild(void)
{
	image_put64(im.xl[2], UINT64_MAX - 3);
}
static void d_name_binary(void)
{
	image_put64(im.xl[2], text_of("vol-\001\033[2J"));
}
static void d_name_empty(void)
{
	image_put64(im.xl[2], text_of(""));
}
static void d_type_binary(void)
{
	image_put64(im.xl[2] + 8, text_of("a/\xff\xfe"));
}
static void d_xl_ctx(void)
{
	image_put64(im.xl[2] + im.l->xl_ctx, im.graph);
}
static void d_xl_graph(void)
{
	image_put64(im.xl[2] + im.l->xl_graph, im.ctx);
}
static void d_cycle(void)
{
	image_adopt(&im, im.xl[3], im.xl[1]);
}
static void d_self_child(void)
{
	image_adopt(&im, im.xl[3], im.xl[3]);
}
static void d_no_parent(void)
{
	image_put64(im.xl[3] + GLUSTER_XL_PARENTS, 0);
}
static void d_child_wild(void)
{
	image_link(&im, im.xl[3] + GLUSTER_XL_CHILDREN, 0x77);
}

static void d_children_loop(void)
{
	uint64_t entry = image_get64(im.xl[2] + GLUSTER_XL_CHILDREN);

	image_put64(entry + 8, entry);
}

static void d_parents_loop(void)
{
	uint64_t entry = image_get64(im.xl[3] + GLUSTER_XL_PARENTS);

	image_put64(entry, im.ctx);
	image_put64(entry + 8, entry);
}

static void d_pool_wild(void)
{
	image_put64(im.ctx + im.l->ctx_pool, 0x1000);
}
static void d_pool_loop(void)
{
	image_put64(im.stack + 8, im.stack);
}
static void d_pool_count(void)
{
	image_put64(im.pool + 0x10, 1000);
}
static void d_stack_pool(void)
{
	image_put64(im.stack + GLUSTER_STACK_POOL, im.ctx);
}
static void d_stack_ctx(void)
{
	image_put64(im.stack + im.l->stack_ctx, im.pool);
}
static void d_frame_root(void)
{
	image_put64(im.frames[2], im.ctx);
}
static void d_frame_this(void)
{
	image_put64(im.frames[1] + im.l->frame_this, im.ctx);
}
static void d_frame_future(void)
{
	image_put64(im.frames[2] + im.l->frame_begin, 9000000000);
}
static void d_frame_nsec(void)
{
	image_put64(im.frames[2] + im.l->frame_begin + 8, UINT64_MAX);
}

static void d_frames_loop(void)
{
	uint64_t link = im.frames[0] + GLUSTER_FRAME_LINK;

	image_put64(link, link);
}

static void d_lat_count(void)
{
	image_put64(im.xl[1] + im.l->lat_base + 5 * im.l->lat_stride + im.l->lat_count, 1ULL << 60);
}

static void d_lat_mean(void)
{
	image_put64(im.xl[1] + im.l->lat_base + IMAGE_FOP * im.l->lat_stride + im.l->lat_max,
		    image_latency(im.l, 60000, 0));
}

static const struct {
	const char *name, *check;
	damage_fn damage;
} damages[] = {
	{ "global xlator of another name", "global xlator", d_global_name },
	{ "global xlator's name wild", "global xlator", d_global_wild },
	{ "no context", "context", d_ctx_null },
	{ "context wild", "list of graphs", d_ctx_wild },
	{ "graphs' prev wrong", "list of graphs", d_list_prev },
	{ "graphs in a loop", "list of graphs", d_list_loop },
	{ "graphs wild", "list of graphs", d_list_wild },
	{ "no graphs", "list of graphs", d_list_empty },
	{ "active graph elsewhere", "active graph", d_active },
	{ "measure_latency no boolean", "measure_latency", d_measure },
	{ "count huge", "chain of xlators", d_count_huge },
	{ "count too small", "chain of xlators", d_count_small },
	{ "chain in a loop", "chain of xlators", d_chain_loop },
	{ "chain to itself", "chain of xlators", d_chain_self },
	{ "chain's prev wrong", "chain of xlators", d_chain_prev },
	{ "chain wild", "chain of xlators", d_chain_wild },
	{ "name wild", "xlators", d_name_wild },
	{ "name not printable", "xlators", d_name_binary },
	{ "name empty", "xlators", d_name_empty },
	{ "type not printable", "xlators", d_type_binary },
	{ "xlator of another context", "xlators", d_xl_ctx },
	{ "xlator of another graph", "xlators", d_xl_graph },
	{ "cycle of xlators", "parents and children", d_cycle },
	{ "xlator its own child", "parents and children", d_self_child },
	{ "child without parent", "parents and children", d_no_parent },
	{ "child wild", "xlators", d_child_wild },
	{ "children in a loop", "xlators", d_children_loop },
	{ "parents in a loop", "parents and children", d_parents_loop },
	{ "pool wild", "call pool", d_pool_wild },
	{ "pool in a loop", "call pool", d_pool_loop },
	{ "pool's count wrong", "call pool", d_pool_count },
	{ "stack of another pool", "call pool", d_stack_pool },
	{ "stack of another context", "call pool", d_stack_ctx },
	{ "frame of another stack", "call pool", d_frame_root },
	{ "frame's xlator no xlator", "call pool", d_frame_this },
	{ "frame of the future", "call pool", d_frame_future },
	{ "frame's nanoseconds no such", "call pool", d_frame_nsec },
	{ "frames in a loop", "call pool", d_frames_loop },
	{ "latency count impossible", "statistics", d_lat_count },
	{ "mean above maximum", "statistics", d_lat_mean },
};

/* The row whose failure is told may be a neighbour of the same size: then any check may be named.
 */
static void test_damage(const struct gluster_layout *l, unsigned int which)
{
	const struct gluster_layout *rows[16];
	bool alone = gluster_layouts_by_size(l->xlator_size_bytes, rows, 16) == 1;
	struct procmem_segment seg;
	struct gluster_proc *gp = NULL;
	char err[512] = "", want[64];
	int rc;

	image_make(&im, l, 0);
	damages[which].damage();
	rc = image_open(&im, &seg, &gp, err, sizeof(err));
	snprintf(want, sizeof(want), "check '%s'", damages[which].check);
	if (!ok(rc == -ENOTSUP && strstr(err, alone ? want : "check '"),
		"%s: %s is refused by '%s'", l->releases, damages[which].name,
		damages[which].check))
		diag("%d: %s", rc, err);
	if (!rc)
		gluster_proc_close(gp);
}

/* Any word anywhere overwritten: open may do what it likes, but must come back. */
static void test_random_damage(void)
{
	unsigned int n_rows, opened = 0, seed = 20260101;
	const struct gluster_layout *rows = gluster_layouts(&n_rows);

	for (unsigned int i = 0; i < 1200; i++) {
		struct gluster_request *list = NULL;
		struct procmem_segment seg;
		struct gluster_proc *gp;
		bool truncated;
		char err[512];
		size_t n;

		image_make(&im, &rows[i % n_rows], i / n_rows % 2);
		for (unsigned int k = 0; k < 1 + i % 3; k++) {
			size_t at = (size_t)rand_r(&seed) % (im.used / 8) * 8;
			uint64_t value = i % 2 ? (uint64_t)(uintptr_t)im.mem +
							 (uint64_t)rand_r(&seed) % im.used / 8 * 8 :
						 (uint64_t)rand_r(&seed) << 32 |
							 (uint64_t)rand_r(&seed);

			image_put64((uint64_t)(uintptr_t)im.mem + at, value);
		}
		if (image_open(&im, &seg, &gp, err, sizeof(err)))
			continue;
		opened++;
		if (!gluster_stuck_read(gp, 5, true, &list, &n, &truncated))
			free(list);
		gluster_proc_refresh(gp, err, sizeof(err));
		gluster_proc_close(gp);
	}
	ok(opened > 0 && opened < 1200, "1200 random damages: %u opened all the same, none crashed",
	   opened);
}

/* A row tried on memory of another one with the same size must not pass. */
static void test_neighbours(void)
{
	unsigned int n_rows, wrong = 0, tried = 0;
	const struct gluster_layout *rows = gluster_layouts(&n_rows);

	for (unsigned int a = 0; a < n_rows; a++) {
		for (unsigned int b = 0; b < n_rows; b++) {
			struct gluster_layout liar = rows[b];
			struct procmem_segment seg;
			struct gluster_proc *gp;
			char err[512];

			if (a == b)
				continue;
			tried++;
			image_make(&im, &rows[a], 0);
			im.l = &liar;
			if (image_open(&im, &seg, &gp, err, sizeof(err)))
				continue;
			wrong += gp->layout != &rows[a];
			gluster_proc_close(gp);
		}
	}
	is_int(wrong, 0, "%u pairs of rows: none passes for another", tried);
}

int main(void)
{
	unsigned int n_rows, n_damages = sizeof(damages) / sizeof(damages[0]);
	const struct gluster_layout *rows = gluster_layouts(&n_rows);

	test_neighbours();
	for (unsigned int d = 0; d < n_damages; d++) {
		test_damage(&rows[n_rows - 1], d); /* 11 */
		test_damage(&rows[n_rows - 2], d); /* 10.2 */
		test_damage(&rows[d % n_rows], d);
	}
	test_random_damage();
	free(im.mem);
	return tap_done();
}
