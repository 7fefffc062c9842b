// SPDX-License-Identifier: Apache-2.0
/*
 * test_gluster_layout.c: the rows against values that are known from running processes and
 * releases' headers, what must hold for all rows, and the names of fops.
 */
#include "gluster_layout.h"
#include "tap.h"

#define ABSENT 0xffff

static const struct gluster_layout *find_row(const char *releases)
{
	unsigned int n;
	const struct gluster_layout *rows = gluster_layouts(&n);

	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(rows[i].releases, releases))
			return &rows[i];
	return NULL;
}

/* Seen in running 10.3 bricks and clients. */
static void test_10(void)
{
	const struct gluster_layout *l = find_row("10.2-10.5");

	if (!ok(l != NULL, "there is a row for 10.3"))
		return;
	is_int(l->xlator_size_bytes, 0x1020, "sizeof(xlator_t)");
	is_int(l->ctx_pool, 0x220, "ctx.pool");
	is_int(l->ctx_active, 0x280, "ctx.active");
	is_int(l->xl_ctx, 0xf70, "xlator.ctx");
	is_int(l->frame_begin, 0x20, "frame.begin");
	is_int(l->stack_err_xl, 0x720, "stack.err_xl");
	is_int(l->frame_this, 0x78, "frame.this");
	is_int(l->stat_wound, 0xa8, "calls wound");
	is_int(l->stat_failed, 0xb8, "failed replies");
	is_int(l->stat_stride, 0x40, "slot");
	is_int(l->lat_base + l->lat_total, 0xd8, "latency total");
	is_int(l->api_fops, 0x60, "xlator_api.fops");
	is_int(l->fuse_fd, 0xd8, "fuse_state.fd");
	is_int(l->itable_xl, 0x48, "inode_table.xl");
	is_int(l->lat_type, GLUSTER_LAT_U64_NS, "nanoseconds");
}

static void test_others(void)
{
	const struct gluster_layout *l = find_row("11.0-11.1");

	ok(l && l->xl_ctx == 0xb0 && l->stack_op == 0x2d4 && l->dentry_name_inline &&
		   l->client_uid == 0x128 && l->client_uid_inline &&
		   l->ctx_measure_latency == 0x1e9,
	   "11: almost everything moved");
	l = find_row("10.0-10.1");
	ok(l && l->xlator_size_bytes == 0x1080 && l->stat_wound == 0x100 && l->xl_ctx == 0xfc8 &&
		   l->xl_pass_through == 0x1048,
	   "10.0: statistics on a cache line");
	l = find_row("9.0-9.6");
	ok(l && l->lat_type == GLUSTER_LAT_U64_NS && l->lat_base == 0x460 && l->frame_this == 0x28,
	   "9: integer latencies, old frames");
	l = find_row("8.0-8.6");
	ok(l && l->lat_type == GLUSTER_LAT_DOUBLE_NS && l->itable_active == 0x60, "8: doubles");
	l = find_row("6.0");
	ok(l && l->ctx_active == 0x260 && l->graph_first == 0xa0, "6.0: ctx 8 less than 6.1");
	l = find_row("4.0.0-4.0.2");
	ok(l && l->stat_wound == 0xb0 && l->inode_ia_type == 0x50 && l->xl_pass_through == ABSENT,
	   "4.0: statistics 8 more than 4.1");
	l = find_row("5.0-5.13");
	ok(l && l->xlator_size_bytes == 0xfe0 && l->stat_wound == 0xa8 && l->max_fop == 58, "5");
	l = find_row("3.12.2-3.12.15");
	ok(l && l->stat_wound == ABSENT && l->frame_time_is_wall && l->lat_stride == 0x30 &&
		   l->lat_count == 0x28 && l->max_fop == 55 && l->api_fops == ABSENT,
	   "3.12: latencies only, wall clock");
	l = find_row("3.13.0-3.13.2");
	ok(l && l->ctx_active == 0x240, "3.13: ctx 10 more than 3.12.2");
}

static void test_all(void)
{
	unsigned int n;
	const struct gluster_layout *rows = gluster_layouts(&n);

	is_int(n, 14, "all groups of releases");
	for (unsigned int i = 0; i < n; i++) {
		const struct gluster_layout *l = &rows[i];
		unsigned int last =
			l->lat_base + (l->max_fop - 1U) * l->lat_stride + l->lat_count + 8;

		ok(last <= l->xlator_size_bytes, "%s: statistics lie inside of xlator_t",
		   l->releases);
		ok(l->xl_ctx + 8U <= l->xlator_size_bytes && l->xl_graph == l->xl_ctx + 8 &&
			   l->xl_itable == l->xl_ctx + 16,
		   "%s: ctx, graph and itable are neighbours", l->releases);
		ok(l->ctx_root == l->ctx_active + 8 && l->ctx_active == l->ctx_graphs + 16,
		   "%s: graphs, active and root are neighbours", l->releases);
		ok(l->frame_end == l->frame_begin + 16 && l->frame_size >= l->frame_wind_to + 8,
		   "%s: a frame's stamps", l->releases);
		ok(l->stack_err_xl > l->stack_op &&
			   (l->stack_ctime == ABSENT || l->stack_err_xl + 16 == l->stack_ctime),
		   "%s: a stack's error lies between op and ctime", l->releases);
		ok(l->fuse_fd == (l->max_fop < 59 ? 0xc8 : 0xd8),
		   "%s: offsets of copy_file_range lie before a request's fd", l->releases);
		ok(l->itable_active - l->itable_xl ==
			   (l->max_fop == 59 && l->dentry_name_inline ? 0x18 : 0x20),
		   "%s: a table's xlator lies before its lists", l->releases);
		ok((l->gfid_hash == GLUSTER_HASH_64K) == (l->itable_xl == 0x40),
		   "%s: a table has a size for inodes where its hash needs it", l->releases);
		ok(l->max_fop < GLUSTER_MAX_FOP, "%s: fops fit", l->releases);
	}
}

static void test_by_size(void)
{
	const struct gluster_layout *rows[16];

	is_int(gluster_layouts_by_size(0x1030, rows, 16), 5, "6.0 to 9 have one size");
	ok(rows[5] == NULL && !strcmp(rows[0]->releases, "6.0"), "in order, ended by NULL");
	is_int(gluster_layouts_by_size(0x1030, rows, 2), 2, "no more than there is room for");
	is_int(gluster_layouts_by_size(0x1020, rows, 16), 1, "10.3 has its own");
	is_int(gluster_layouts_by_size(0x1021, rows, 16), 0, "no release has this");
	is_int(gluster_layouts_by_size(0, rows, 16), 0, "nor none");
}

static void test_fops(void)
{
	is_str(gluster_fop_name(13), "write", "13");
	is_str(gluster_fop_name(12), "read", "12");
	is_str(gluster_fop_name(27), "lookup", "27");
	is_str(gluster_fop_name(58), "copy_file_range", "58");
	ok(!gluster_fop_name(0) && !gluster_fop_name(59) && !gluster_fop_name(UINT32_MAX),
	   "others have no name");
	is_int(gluster_fop_by_name("writev"), 13, "writev");
	is_int(gluster_fop_by_name("read"), 12, "read");
	is_int(gluster_fop_by_name("fsync"), 16, "fsync");
	is_int(gluster_fop_by_name(""), -1, "none");
	for (unsigned int fop = 1; fop < 59; fop++)
		if (gluster_fop_by_name(gluster_fop_name(fop)) != (int)fop)
			ok(false, "fop %u by its name", fop);
}

int main(void)
{
	test_10();
	test_others();
	test_all();
	test_by_size();
	test_fops();
	return tap_done();
}
