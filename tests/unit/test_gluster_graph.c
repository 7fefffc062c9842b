// SPDX-License-Identifier: Apache-2.0
/*
 * test_gluster_graph.c: every layout row opened on a brick and a client laid out by it, in an
 * image, in another process and through a library that exports the anchor; bricks that come and go,
 * and a client that switches its graph.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "gluster_stuck.h"
#include "tap.h"
#include "unit/gluster_image.h"

static struct image im;

static void check_stats(struct gluster_proc *gp, const struct gluster_xlator *xl)
{
	struct gluster_stat stats[GLUSTER_MAX_FOP];
	const struct gluster_stat *s = &stats[IMAGE_FOP];
	const char *releases = gp->layout->releases;
	uint64_t ended = 0;
	int err = gluster_stats_read(gp, xl, stats);

	ok(!err && s->lat_count == IMAGE_LAT_COUNT && s->has_latency && s->has_min &&
		   s->lat_total_ns == IMAGE_LAT_TOTAL_NS && s->lat_min_ns == IMAGE_LAT_MIN_NS &&
		   s->lat_max_ns == IMAGE_LAT_MAX_NS,
	   "%s: latencies in nanoseconds", releases);
	ok(gp->layout->stat_wound == GLUSTER_ABSENT ?
		   !s->has_counts :
		   s->has_counts && s->wound == IMAGE_WOUND && s->failed == IMAGE_FAILED,
	   "%s: counts, where there are any", releases);
	ok(!stats[12].has_min && stats[12].lat_count == 0, "%s: an unset minimum is none",
	   releases);
	err = gluster_pool_ended(gp, &ended);
	ok(gp->layout->pool_total_count == GLUSTER_ABSENT ? err == -ENOTSUP :
							    !err && ended == IMAGE_CREATED - 1,
	   "%s: stacks that have ended", releases);
}

static void check_stuck(struct gluster_proc *gp, const char *xlator)
{
	struct gluster_request *list = NULL;
	const char *releases = gp->layout->releases;
	bool truncated = true;
	size_t n = 0;
	int err = gluster_stuck_read(gp, 10, true, &list, &n, &truncated);

	if (!ok(!err && n == 1 && !truncated, "%s: one request in flight", releases))
		return;
	ok(list->has_age && list->age_ns >= IMAGE_AGE_NS &&
		   list->age_ns < IMAGE_AGE_NS + 60000000000,
	   "%s: its age", releases);
	ok(list->fop == IMAGE_FOP && list->app_pid == 4242 && list->uid == 1000 &&
		   !list->background,
	   "%s: its fop, process and user", releases);
	is_str(list->xlator, xlator, "%s: the xlator it sits in", releases);
	is_str(list->wind, "pl_writev", "%s: by whom it was wound", releases);
	is_str(list->file, "/dir/held", "%s: its file", releases);
	is_str(list->gfid, "00000000-0000-0000-0000-000000000003", "%s: its gfid", releases);
	is_str(list->client, gp->root_xl_addr ? "" : "CTX_ID:a?[31m", "%s: its client, harmless",
	       releases);
	is_str(list->volume, "vol", "%s: its volume", releases);
	free(list);
}

static void test_row(const struct gluster_layout *l, int client)
{
	static const char *const ids[2][5] = {
		{ "server", "io-stats", "io-threads", "posix", NULL },
		{ "fuse", "io-stats", "replicate-0", "client-0", "client-1" },
	};
	const struct gluster_graph *g;
	struct procmem_segment seg;
	struct gluster_proc *gp;
	char err[512] = "";
	unsigned int same = 0;

	image_make(&im, l, client);
	if (!is_int(image_open(&im, &seg, &gp, err, sizeof(err)), 0, "%s %s opens", l->releases,
		    client ? "client" : "brick")) {
		diag("%s", err);
		return;
	}
	is_str(gp->layout->releases, l->releases, "its own row is chosen");
	g = gp->graphs;
	ok(gp->n_graphs == 1 && g->n == (client ? 5 : 4) && g->is_brick == !client &&
		   g->is_active && g->id == 3,
	   "one graph of the right kind");
	is_str(g->volume, "vol", "volume");
	is_str(g->brick_path, client ? "" : "/bricks/b1", "brick path");
	for (size_t i = 0; i < g->n; i++)
		same += !strcmp(g->xl[i].id, ids[client][i]);
	is_int(same, (long long)g->n, "ids, depth first in children order");
	is_int(g->xl[client ? 2 : 1].n_children, client ? 2 : 1, "children");
	ok(g->key == im.xl[client ? 0 : 1], "key is the top below");
	check_stats(gp, &g->xl[1]);
	check_stuck(gp, client ? "client-0" : "posix");
	is_int(gluster_proc_refresh(gp, err, sizeof(err)), 0, "nothing changed");
	gluster_proc_close(gp);
}

/* A brick's path is its owner's: whatever it holds, the brick is measured, and shown harmless. */
static void test_strange_path(const struct gluster_layout *l)
{
	struct procmem_segment seg;
	struct gluster_proc *gp;
	char err[512] = "";

	image_make(&im, l, 0);
	image_put64(im.xl[1] + GLUSTER_XL_NAME, image_str(&im, "/bricks/\033[2J\n\xff"));
	if (!is_int(image_open(&im, &seg, &gp, err, sizeof(err)), 0, "%s: a strange path opens",
		    l->releases)) {
		diag("%s", err);
		return;
	}
	is_str(gp->graphs[0].brick_path, "/bricks/?[2J??", "and is made harmless");
	is_str(gp->graphs[0].xl[1].name, "/bricks/?[2J??", "as is the xlator's name");
	gluster_proc_close(gp);
}

/* ---- a process that plays one -------------------------------------------------- */

static void test_process(const struct gluster_layout *l)
{
	struct gluster_anchor anchor;
	struct procmem *pm = NULL;
	struct gluster_proc *gp = NULL;
	char err[512] = "";
	pid_t pid;
	int rc;

	image_make(&im, l, 0);
	anchor = image_anchor(&im);
	pid = child_start();
	if (procmem_open(pid, &pm)) {
		skip("another process", "its memory may not be read");
		child_end(pid);
		return;
	}
	memset(im.mem, 0xff, IMAGE_BYTES); /* ours is not what is read */
	rc = gluster_proc_open_at(pm, &anchor, NULL, &gp, err, sizeof(err));
	if (!is_int(rc, 0, "%s: opened in another process", l->releases))
		diag("%s", err);
	if (rc) {
		procmem_close(pm);
		child_end(pid);
		return;
	}
	check_stuck(gp, "posix");
	child_end(pid);
	ok(gluster_proc_refresh(gp, err, sizeof(err)) == -ESRCH, "%s: and told when it is gone",
	   l->releases);
	gluster_proc_close(gp);
}

/* A library of the right name that exports an anchor of the row's size. */
static void *load_library(const struct gluster_layout *l, char *dir, size_t size)
{
	char command[512], path[300];
	void *handle;

	snprintf(dir, size, "/tmp/bricktop-unit.XXXXXX");
	if (!mkdtemp(dir))
		return NULL;
	snprintf(path, sizeof(path), "%s/libglusterfs.so.0", dir);
	snprintf(command, sizeof(command),
		 "echo 'char global_xlator[%u] = { 1 };%s' | "
		 "cc -shared -fPIC -x c -o %s - 2>/dev/null",
		 l->xlator_size_bytes,
		 l->lat_type == GLUSTER_LAT_U64_NS ? "void gf_frame_latency_update(void) {}" : "",
		 path);
	handle = system(command) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path); /* as after an upgrade: still mapped, no longer there */
	rmdir(dir);
	return handle;
}

static void make_cycle(void)
{
	image_adopt(&im, im.xl[3], im.xl[1]);
}

static void test_library(const struct gluster_layout *l, void (*damage)(void), const char *want)
{
	char dir[64], err[512] = "";
	struct gluster_proc *gp = NULL;
	void *handle = load_library(l, dir, sizeof(dir));
	pid_t pid;
	int rc;

	if (!handle) {
		skip("a library that exports the anchor", "no C compiler here");
		return;
	}
	im.global_at = (uint64_t)(uintptr_t)dlsym(handle, "global_xlator");
	memset((void *)(uintptr_t)im.global_at, 0, l->xlator_size_bytes);
	image_make(&im, l, 0);
	if (damage)
		damage();
	pid = child_start();
	rc = gluster_proc_open(pid, &gp, err, sizeof(err));
	if (rc == -EACCES || rc == -EPERM)
		skip("a library that exports the anchor", "other processes may not be read");
	else if (!ok(want ? rc == -ENOTSUP && strstr(err, want) : rc == 0, "%s: %s by its library",
		     l->releases, want ? "refused" : "found"))
		diag("%d: %s", rc, err);
	if (!rc)
		gluster_proc_close(gp);
	child_end(pid);
	im.global_at = 0;
	dlclose(handle);
}

static void test_no_gluster(void)
{
	struct gluster_proc *gp;
	char err[256] = "";
	pid_t pid = child_start();
	int rc = gluster_proc_open(pid, &gp, err, sizeof(err));

	ok(rc == -ENOENT || rc == -EACCES, "a process without GlusterFS is none: %s", err);
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	is_int(gluster_proc_open(pid, &gp, err, sizeof(err)), -ESRCH, "a zombie is gone");
	waitpid(pid, NULL, 0);
	is_int(gluster_proc_open(pid, &gp, err, sizeof(err)), -ESRCH, "who is gone is gone");
}

/* A second brick attached to a running process, and the first one's detach. */
static void test_multiplexing(const struct gluster_layout *l)
{
	uint64_t second, posix, graph, entry;
	struct procmem_segment seg;
	struct gluster_proc *gp;
	char err[512] = "";

	image_make(&im, l, 0);
	if (!is_int(image_open(&im, &seg, &gp, err, sizeof(err)), 0, "multiplexed brick opens"))
		return;
	graph = image_alloc(&im, 0x200);
	second = image_xlator(&im, "/bricks/b2", "debug/io-stats");
	posix = image_xlator(&im, "other-posix", "storage/posix");
	image_put64(second + l->xl_graph, graph);
	image_put64(posix + l->xl_graph, graph);
	image_adopt(&im, second, posix);
	image_adopt(&im, im.xl[0], second);
	is_int(gluster_proc_refresh(gp, err, sizeof(err)), 1, "an attached brick is noticed");
	is_int((long long)gp->n_graphs, 2, "two bricks");
	is_str(gp->graphs[0].volume, "other", "the attached brick's volume is its own");
	is_str(gp->graphs[0].brick_path, "/bricks/b2", "and its path");
	is_str(gp->graphs[0].xl[0].id, "server", "under the shared server");
	is_str(gp->graphs[1].volume, "vol", "the first one keeps its volume");
	/* the first is detached: the chain leads into memory that is no longer its own */
	entry = image_get64(im.xl[0] + GLUSTER_XL_CHILDREN);
	image_put64(entry + 8, 0);
	image_put64(im.xl[0] + GLUSTER_XL_NEXT, 0x5555);
	is_int(gluster_proc_refresh(gp, err, sizeof(err)), 1, "a detached brick is noticed");
	is_int((long long)gp->n_graphs, 1, "one brick is left");
	is_str(gp->graphs[0].brick_path, "/bricks/b2", "the right one");
	gluster_proc_close(gp);
}

/* A client's graph is in use until the next request, whatever ctx.active says. */
static void test_switch(const struct gluster_layout *l)
{
	struct procmem_segment seg;
	struct gluster_proc *gp;
	uint64_t graph, top, private;
	char err[512] = "";

	image_make(&im, l, 1);
	if (!is_int(image_open(&im, &seg, &gp, err, sizeof(err)), 0, "client opens"))
		return;
	graph = image_alloc(&im, 0x200);
	top = image_xlator(&im, "vol", "debug/io-stats");
	image_put64(top + l->xl_graph, graph);
	image_put64(graph + l->graph_first, top);
	image_put64(graph + l->graph_top, top);
	image_put32(graph + l->graph_xl_count, 1);
	image_list_append(im.ctx + l->ctx_graphs, graph);
	image_put64(im.ctx + l->ctx_active, graph);
	is_int(gluster_proc_refresh(gp, err, sizeof(err)), 1, "a new graph is noticed");
	ok(gp->n_graphs == 2 && gp->graphs[0].is_active && !gp->graphs[1].is_active,
	   "the old one is still in use");
	private = image_get64(im.root + l->xl_private);
	image_put64(private + 0x108, top);
	is_int(gluster_proc_refresh(gp, err, sizeof(err)), 1, "the switch is noticed");
	ok(gp->n_graphs == 2 && !gp->graphs[0].is_active && gp->graphs[1].is_active,
	   "the new one is in use");
	image_put64(im.xl[2], 0x99);
	image_put64(graph + l->graph_id, 9);
	image_put64(top + l->xl_private, 0x1234);
	is_int(gluster_proc_refresh(gp, err, sizeof(err)), 1, "an old graph that is torn down");
	is_int((long long)gp->n_graphs, 1, "is left out");
	gluster_proc_close(gp);
}

int main(void)
{
	unsigned int n_rows;
	const struct gluster_layout *rows = gluster_layouts(&n_rows);

	for (unsigned int i = 0; i < n_rows; i++) {
		test_row(&rows[i], 0);
		test_row(&rows[i], 1);
		test_strange_path(&rows[i]);
		test_process(&rows[i]);
	}
	test_library(&rows[n_rows - 2], NULL, NULL);
	test_library(&rows[9], NULL, NULL);
	test_library(&rows[n_rows - 2], make_cycle, "check 'parents and children'");
	test_no_gluster();
	test_multiplexing(&rows[n_rows - 2]);
	test_switch(&rows[n_rows - 1]);
	free(im.mem);
	return tap_done();
}
