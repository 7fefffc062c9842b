// SPDX-License-Identifier: Apache-2.0
/*
 * test_source_bpf.c: the live source against a child process that plays GlusterFS: call stacks of
 * known stamps are laid out in its memory and a callback is entered, so that what the programs
 * count can be said beforehand to the nanosecond. Also what they do where memory cannot be read,
 * names nobody known, or a map is too small. Needs root.
 */
#include "source_bpf.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "procmem.h"
#include "tap.h"

enum { SERVER = 0x10000, IO_STATS = 0x20000, POSIX = 0x30000, STRANGER = 0x40000 };
enum { FOP_READ = 12 };

/* Some layout: fields where GlusterFS 10.2 has them (sizes: bytes read at once in frames.bpf.h). */
static const struct wire_layout layout = {
	.stack_myframes = 0x6f8,
	.stack_op = 0x708,
	.frame_begin = 0x20,
	.frame_end = 0x30,
	.frame_this = 0x78,
	.frame_ret = 0x80,
	.frame_op = 0x88,
	.stack_err_xl = 0x720,
};

/* What the child is told: one request. */
struct order {
	uint64_t base_ns; /* begin of the root; of others base + begin */
	uint64_t bottom;  /* xlator of the bottom frame */
	int broken;       /* the list of frames leads to nowhere */
	int result, op_errno;
	uint64_t raiser; /* of the error that the stack keeps */
	int stack_error;
};

/* ---- the child --------------------------------------------------------- */

static unsigned char stack_mem[0x800], frame_mem[3][0x100];

__attribute__((noinline, noclone)) static void
played_callback(void *frame, void *cookie, void *this, long result, long op_errno)
{
	__asm__ volatile(""
			 :
			 : "r"(frame), "r"(cookie), "r"(this), "r"(result), "r"(op_errno)
			 : "memory");
}

static void put(unsigned char *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void put_time(unsigned char *at, uint64_t ns)
{
	put(at, ns / 1000000000);
	put(at + 8, ns % 1000000000);
}

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* server (open still) -> io-stats 1,000 .. 9,000 -> posix 2,000 .. 7,000 ns. */
static void play(const struct order *o)
{
	static const uint64_t begin[] = { 0, 1000, 2000 }, end[] = { 0, 9000, 7000 };
	const uint64_t this[] = { SERVER, IO_STATS, o->bottom };
	int i;

	put(stack_mem + 0x10, addr(frame_mem)); /* pool: any */
	put(stack_mem + 0x50, 1);               /* state: a request of the server's */
	put(stack_mem + layout.stack_op, FOP_READ);
	put(stack_mem + layout.stack_err_xl, o->raiser);
	put(stack_mem + layout.stack_err_xl + 8, (uint32_t)o->stack_error);
	put(stack_mem + layout.stack_myframes + 8, addr(frame_mem[0] + 0x10));
	for (i = 0; i < 3; i++) {
		unsigned char *f = frame_mem[i];
		void *newer = i < 2 ? frame_mem[i + 1] + 0x10 : stack_mem + layout.stack_myframes;

		put(f, addr(stack_mem));
		put(f + 8, i ? addr(frame_mem[i - 1]) : 0);
		put(f + 0x18, o->broken && i == 1 ? 0xdead0000 : addr(newer));
		put(f + layout.frame_this, this[i]);
		put(f + layout.frame_op, FOP_READ);
		put_time(f + layout.frame_begin, o->base_ns + begin[i]);
		put_time(f + layout.frame_end, end[i] ? o->base_ns + end[i] : 0);
	}
	played_callback(frame_mem[0], NULL, NULL, o->result, o->op_errno);
}

struct child {
	pid_t pid;
	int orders, done;
};

static void start_child(struct child *c)
{
	int orders[2], done[2];
	struct order o;

	if (pipe(orders) || pipe(done))
		exit(1);
	c->pid = fork();
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(orders[0], &o, sizeof(o)) == (ssize_t)sizeof(o)) {
			play(&o);
			if (write(done[1], "", 1) != 1)
				break;
		}
		_exit(0);
	}
	c->orders = orders[1];
	c->done = done[0];
}

static void give_order(const struct child *c, const struct order *o)
{
	char byte;

	if (write(c->orders, o, sizeof(*o)) != (ssize_t)sizeof(*o) || read(c->done, &byte, 1) != 1)
		exit(1);
}

static void end_child(const struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->orders);
	close(c->done);
}

/* ---- the source and its model ------------------------------------------ */

struct bed {
	struct source *src;
	struct model *m;
	struct source_probes probes;
	struct child child;
	uint64_t base_ns;
};

static const struct model_node nodes[] = {
	{ .id = "server", .type = "protocol/server", .children = { 1 }, .n_children = 1 },
	{ .id = "io-stats", .type = "debug/io-stats", .children = { 2 }, .n_children = 1 },
	{ .id = "posix", .type = "storage/posix" },
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* Where the callback lies in this program's file, which is the child's, too. */
static int probe_child(struct bed *b, char *err, size_t err_size)
{
	struct uprobe_site site = { .path = "/proc/self/exe", .cookie = WIRE_SITE_TOP };
	uint64_t at = (uint64_t)(uintptr_t)played_callback;
	struct procmaps maps = { 0 };
	const struct procmap *map;

	if (procmaps_load(getpid(), &maps))
		return -EIO;
	map = procmaps_find(&maps, at);
	site.offset = map ? at - map->start + map->offset : 0;
	procmaps_free(&maps);
	return source_probe_callbacks(b->src, b->child.pid, &site, 1, &b->probes, err, err_size);
}

static void open_bed(struct bed *b, unsigned int slots, bool perf_only)
{
	static const uint64_t xlators[] = { SERVER, IO_STATS, POSIX };
	struct source_config config = {
		.slots = slots, .n_targets = 1, .layers_off = ~0ULL, .perf_only = perf_only
	};
	struct wire_proc proc = { .root = WIRE_ROOT_BRICK };
	struct model_target t = { .kind = "brick",
				  .name = "v:/b",
				  .root = WIRE_ROOT_BRICK,
				  .nodes = nodes,
				  .n_nodes = 3 };
	__u16 layers[3];
	char err[256] = "";
	unsigned int i;

	memset(b, 0, sizeof(*b));
	if (source_open(&config, &b->src, err, sizeof(err)) || model_new(NULL, 0, &b->m) ||
	    model_set_target(b->m, 0, &t, layers)) {
		diag("%s", err);
		exit(1);
	}
	start_child(&b->child);
	t.pid = b->child.pid;
	source_set_proc(b->src, b->child.pid, &proc, &layout);
	for (i = 0; i < 3; i++) {
		struct wire_node node = { .layer = layers[i], .flags = i ? 0 : WIRE_NODE_ROOT };

		source_set_node(b->src, b->child.pid, xlators[i], &node);
	}
	is_int(probe_child(b, err, sizeof(err)), 0, "a callback of the child is probed");
	if (err[0])
		diag("%s", err);
	b->base_ns = now_ns() - 1000000000;
	model_start_window(b->m, b->base_ns, 0);
}

static void close_bed(struct bed *b)
{
	source_probes_close(&b->probes);
	end_child(&b->child);
	source_close(b->src);
	model_free(b->m);
}

static struct order request(const struct bed *b, unsigned int nth)
{
	return (struct order){ .base_ns = b->base_ns + nth * 20000, .bottom = POSIX };
}

static struct snapshot *look(struct bed *b)
{
	struct model_view view = { 0 };
	struct snapshot *snap;

	if (source_feed(b->src, b->m, 1) || model_tick(b->m, now_ns(), &view, &snap))
		exit(1);
	return snap;
}

static const struct snap_op *find_read(const struct snapshot *snap)
{
	size_t i;

	for (i = 0; i < snap->targets[0].n_ops; i++) {
		const struct snap_op *op = &snap->targets[0].ops[i];

		if (!strcmp(op->op, "read") && op->source == SNAP_FROM_WALK)
			return op;
	}
	return NULL;
}

static void is_layer(const struct snap_op *op, const char *id, double incl, double self)
{
	size_t i;

	for (i = 0; i < op->n_layers && strcmp(op->layers[i].id, id) != 0; i++)
		;
	if (!ok(i < op->n_layers, "%s has a row", id))
		return;
	is_int((long long)op->layers[i].incl.mean, (long long)incl, "%s: inclusive time", id);
	is_int((long long)op->layers[i].self.mean, (long long)self, "%s: self time", id);
}

/* ---- tests ------------------------------------------------------------- */

static void test_walk(bool perf_only)
{
	__u64 checks[WIRE_CHECKS];
	const struct snap_op *op;
	struct wire_proc proc;
	struct snapshot *snap;
	struct order o;
	struct bed b;
	unsigned int i;

	open_bed(&b, 0, perf_only);
	for (i = 0; i < 100; i++) {
		o = request(&b, i);
		give_order(&b.child, &o);
	}
	give_order(&b.child, &o);
	snap = look(&b);
	op = find_read(snap);
	if (ok(op, "reads are seen")) {
		is_int((long long)op->count, 100, "each once, though the last replied twice");
		is_layer(op, "server", 9000, 1000);
		is_layer(op, "io-stats", 8000, 3000);
		is_layer(op, "posix", 5000, 5000);
	}
	is_int((long long)snap->targets[0].lost.total, 0, "nothing is lost");
	source_read_checks(b.src, 0, checks);
	is_int((long long)checks[WIRE_CHECK_WALKED], 100, "all were walked");
	is_int((long long)checks[WIRE_CHECK_FAILED], 0, "and their sums hold");
	is_int(source_get_proc(b.src, b.child.pid, &proc), 0, "the process is known");
	is_int(proc.first_tid, b.child.pid, "by the thread that replied");
	is_int(proc.other_tid, 0, "the only one");
	source_forget_proc(b.src, b.child.pid);
	is_int(source_get_proc(b.src, b.child.pid, &proc), -ENOENT, "until it is forgotten");
	o = request(&b, 200);
	give_order(&b.child, &o);
	source_read_checks(b.src, 0, checks);
	is_int((long long)checks[WIRE_CHECK_WALKED], 100, "then nothing more is walked");
	snapshot_free(snap);
	close_bed(&b);
}

static void fail_reads(const struct bed *b, unsigned int first, unsigned int n, int op_errno,
		       uint64_t raiser)
{
	for (unsigned int i = 0; i < n; i++) {
		struct order o = request(b, first + i);

		o.result = -1;
		o.op_errno = op_errno;
		o.raiser = raiser;
		o.stack_error = raiser ? EIO : 0;
		give_order(&b->child, &o);
	}
}

static const struct snap_layer *find_layer(const struct snap_op *op, const char *id)
{
	static const struct snap_layer none;

	for (size_t i = 0; op && i < op->n_layers; i++)
		if (!strcmp(op->layers[i].id, id))
			return &op->layers[i];
	return &none;
}

static void has_errors(const struct snap_op *op, const char *id, unsigned int n)
{
	const struct snap_layer *l = find_layer(op, id);

	ok(l->has_errors, "%s: its errors are known", id);
	is_int((long long)l->errors, n, "%s: which came through it", id);
}

/* Below who raised an error, something else may have failed. */
static void test_raiser(int op_errno, uint64_t raiser, const char *what)
{
	struct snapshot *snap;
	struct bed b;

	open_bed(&b, 0, false);
	fail_reads(&b, 0, 3, op_errno, raiser);
	snap = look(&b);
	has_errors(find_read(snap), "server", 3);
	ok(!find_layer(find_read(snap), "posix")->has_errors, "%s: posix may have failed, too",
	   what);
	snapshot_free(snap);
	close_bed(&b);
}

/* An error passes through the frames from who raised it on up. */
static void test_errors(void)
{
	const struct snap_op *op;
	struct snapshot *snap;
	struct order o;
	struct bed b;

	open_bed(&b, 0, false);
	fail_reads(&b, 0, 10, EIO, POSIX);
	snap = look(&b);
	op = find_read(snap);
	has_errors(op, "posix", 10);
	has_errors(op, "io-stats", 10);
	has_errors(op, "server", 10);
	snapshot_free(snap);
	fail_reads(&b, 18, 1, EIO, STRANGER);
	o = request(&b, 19);
	o.result = 4096;
	give_order(&b.child, &o);
	snap = look(&b);
	op = find_read(snap);
	has_errors(op, "server", 11);
	ok(!find_layer(op, "posix")->has_errors, "raised by nobody known: below, nothing is known");
	is_int((long long)find_layer(op, "server")->bytes, 4096, "bytes of the reply");
	ok(!find_layer(op, "posix")->has_bytes, "which no call of this thread has moved");
	snapshot_free(snap);
	close_bed(&b);
}

/* Of a request whose first xlator is unknown nobody knows the target: unless there is only one. */
static void test_unassigned(void)
{
	struct model_view view = { 0 };
	unsigned int n;

	for (n = 1; n <= 2; n++) {
		struct snapshot *snap;
		struct order o;
		struct bed b;

		open_bed(&b, 0, false);
		source_forget_node(b.src, b.child.pid, IO_STATS);
		o = request(&b, 0);
		give_order(&b.child, &o);
		if (source_feed(b.src, b.m, n) || model_tick(b.m, now_ns(), &view, &snap))
			exit(1);
		is_int((long long)snap->targets[0].lost.unknown_xlator, n == 1,
		       "%u targets: the first one's losses", n);
		is_int((long long)snap->lost_unassigned.unknown_xlator, n > 1,
		       "%u targets: nobody's", n);
		is_int(snap->targets[0].lost.has_recursion, n == 1,
		       "%u targets: whose recursion it is", n);
		snapshot_free(snap);
		close_bed(&b);
	}
}

static void test_foreign_memory(void)
{
	__u64 losses[WIRE_LOSSES];
	struct order o;
	struct bed b;

	open_bed(&b, 0, false);
	o = request(&b, 0);
	o.broken = 1;
	give_order(&b.child, &o);
	source_read_losses(b.src, 0, losses);
	is_int((long long)losses[WIRE_LOST_UNREADABLE], 1, "a list into nowhere is a loss");
	o = request(&b, 1);
	o.bottom = STRANGER;
	give_order(&b.child, &o);
	source_read_losses(b.src, 0, losses);
	is_int((long long)losses[WIRE_LOST_UNKNOWN], 1, "so is an xlator of no graph");
	o = request(&b, 2);
	give_order(&b.child, &o);
	source_read_losses(b.src, 0, losses);
	is_int((long long)(losses[WIRE_LOST_UNREADABLE] + losses[WIRE_LOST_UNKNOWN]), 2,
	       "the next good request is none");
	close_bed(&b);
}

/* Three rows are needed, two there are. */
static void test_tiny(void)
{
	const struct snap_op *op;
	struct snapshot *snap;
	struct order o;
	struct bed b;
	unsigned int i;

	open_bed(&b, 2, false);
	for (i = 0; i < 10; i++) {
		o = request(&b, i);
		give_order(&b.child, &o);
	}
	snap = look(&b);
	op = find_read(snap);
	ok(snap->targets[0].lost.map_full >= 10, "what has no slot is counted as lost: %llu",
	   (unsigned long long)snap->targets[0].lost.map_full);
	ok(!op || op->count <= 10, "and invents nothing");
	snapshot_free(snap);
	close_bed(&b);
}

/* Slots that have not moved are not read; one that moves again is. */
static void test_still(void)
{
	struct snapshot *snap;
	struct order o;
	struct bed b;
	unsigned int i;

	open_bed(&b, 0, false);
	for (i = 0; i < 3; i++) {
		o = request(&b, i);
		give_order(&b.child, &o);
		snapshot_free(look(&b));
		snapshot_free(look(&b));
		snapshot_free(look(&b));
		snap = look(&b);
		is_int((long long)find_read(snap)->count, i + 1, "request %u after a still while",
		       i + 1);
		snapshot_free(snap);
	}
	close_bed(&b);
}

/* An xlator that the programs met, and that was gone before anybody could tell whose it was. */
static void test_nameless(void)
{
	struct wire_node unknown = { .layer = WIRE_LAYER_ADOPTED + 7 };
	struct wire_node known = { .layer = WIRE_LAYER_XLATOR + 2 };
	const struct snap_op *op;
	struct snapshot *snap;
	struct order o;
	struct bed b;

	open_bed(&b, 0, false);
	source_set_node(b.src, b.child.pid, STRANGER, &unknown);
	o = request(&b, 0);
	o.bottom = STRANGER;
	give_order(&b.child, &o);
	snap = look(&b);
	op = find_read(snap);
	is_int(op ? (long long)op->n_layers : 0, 2, "not shown as long as it may be told of");
	snapshot_free(snap);
	source_flush_spans(b.src);
	snap = look(&b);
	op = find_read(snap);
	if (ok(op, "in the end"))
		is_layer(op, "xlator-32775", 5000, 5000);
	is_int((long long)snap->n_off, 1, "and it is said why");
	snapshot_free(snap);
	source_set_node(b.src, b.child.pid, STRANGER, &known);
	o = request(&b, 1);
	give_order(&b.child, &o);
	snap = look(&b);
	op = find_read(snap);
	if (ok(op, "told of after all"))
		is_layer(op, "posix", 5000, 5000);
	snapshot_free(snap);
	close_bed(&b);
}

/* A place that cannot be probed is no reason to do without uprobe-multi. */
static void test_bad_site(void)
{
	struct uprobe_site site = { .path = "/proc/self/exe", .offset = 1ULL << 40 };
	struct source_probes probes = { 0 };
	char err[256] = "";
	struct bed b;

	open_bed(&b, 0, false);
	if (source_kind(b.src) == UPROBE_PERF) {
		skip("a place that cannot be probed", "no uprobe-multi here");
	} else {
		is_int(b.probes.kind, UPROBE_MULTI, "the kind of its links is known");
		ok(source_probe_callbacks(b.src, b.child.pid, &site, 1, &probes, err, sizeof(err)) <
				   0 &&
			   err[0],
		   "a place that cannot be probed: %s", err);
		is_int(source_kind(b.src), UPROBE_MULTI, "uprobe-multi stays in use");
	}
	source_probes_close(&probes);
	close_bed(&b);
}

static void test_layouts(void)
{
	struct source_config config = { .n_targets = 1, .layers_off = ~0ULL };
	struct wire_layout other = layout;
	struct wire_proc proc = { 0 };
	struct source *src = NULL;
	char err[256] = "";
	int i, ret = 0;

	is_int(source_open(&config, &src, err, sizeof(err)), 0, "opened");
	source_set_proc(src, 1, &proc, &layout);
	source_set_proc(src, 2, &proc, &layout);
	source_get_proc(src, 2, &proc);
	is_int(proc.layout, 0, "equal layouts share a row");
	for (i = 0; i < 100 && !ret; i++) {
		other.frame_op++;
		ret = source_set_proc(src, 3, &proc, &other);
	}
	is_int(ret, -ENOSPC, "more layouts than there is room for are refused");
	ok(i > 8, "but not a few: %d", i);
	source_close(src);
	source_close(NULL);
}

int main(void)
{
	if (geteuid()) {
		skip("the live source", "loading programs needs root");
		return tap_done();
	}
	test_walk(false);
	test_walk(true);
	test_errors();
	test_raiser(EIO, IO_STATS, "raised by io-stats");
	test_raiser(ESTALE, POSIX, "another error than posix raised");
	test_raiser(0, 0, "an error without a number");
	test_foreign_memory();
	test_unassigned();
	test_tiny();
	test_still();
	test_nameless();
	test_bad_site();
	test_layouts();
	return tap_done();
}
