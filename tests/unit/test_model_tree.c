/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_tree.c: trees reckoned by hand: chains, parallel children, diamonds, copied stacks,
 * tail groups, requests that were not split, background stacks, local operations, and rows that
 * hang nowhere: none may be lost, none shown twice.
 */
#include "model_bed.h"

static const struct snap_op *tick_write(void)
{
	bed_feed();
	bed_tick(10);
	return bed_op("brick", "user", "write");
}

/* Self times and the residue add up to the whole: nothing is lost, nothing counted twice. */
static double shares(const struct snap_op *op)
{
	double sum = 0;

	for (size_t i = 0; i < op->n_layers; i++)
		sum += op->layers[i].share_pct.v;
	return sum;
}

static struct wire_slot *pass_syscall(const char *parent, __u8 sub, __u64 ns)
{
	struct wire_slot_key key = {
		.layer = BED_SYSCALL, .parent = bed_layer(parent), .op = BED_WRITE, .sub = sub
	};

	return bed_pass(key, ns, ns);
}

static struct wire_slot *write_slot(const char *id, const char *parent)
{
	return bed_slot((struct wire_slot_key){ .op = BED_WRITE,
						.root = WIRE_ROOT_BRICK,
						.layer = bed_layer(id),
						.parent = bed_layer(parent) });
}

static void test_chain(void)
{
	const struct snap_op *op;
	const struct snap_layer *l;
	struct wire_slot *root;

	bed_chain("server io-threads locks posix");
	bed_open(WIRE_ROOT_BRICK);
	for (int i = 0; i < 2; i++) {
		root = bed_write("server", "", 1000, 100000);
		root->bytes += 4096;
		bed_write("io-threads", "server", 60000, 99000);
		bed_write("locks", "io-threads", 4000, 39000);
		bed_write("posix", "locks", 5000, 35000)->errors += (__u64)i;
		pass_syscall("posix", 2, 30000);
	}
	write_slot("io-threads", "server")->no_bytes = 1;
	write_slot("locks", "io-threads")->no_errors = 1;
	root->errors = 1;
	op = tick_write();
	is_str(bed_paths(op),
	       "server server/io-threads server/io-threads/locks "
	       "server/io-threads/locks/posix server/io-threads/locks/posix/pwrite64",
	       "a chain, top first");
	is_int((long long)op->count, 2, "two writes");
	is_int((long long)op->bytes, 8192, "their bytes");
	is_int((long long)op->errors, 1, "their errors");
	ok(op->sum_check_pct.valid && bed_near(op->sum_check_pct.v, 100), "both hold");
	ok(op->unattributed_ns.valid && op->unattributed_ns.v == 0, "nothing unattributed");
	ok(!op->coverage_pct.valid, "without the process's own counts there is no coverage");
	l = bed_row(op, "server/io-threads");
	ok(bed_near(l->share_pct.v, 60), "io-threads' share");
	ok(bed_near(l->self.mean, 60000) && bed_near(l->incl.mean, 99000), "self and inclusive");
	is_str(l->type, "t/io-threads", "its type");
	is_str(l->kind, "xlator", "its kind");
	is_int(l->depth, 1, "its depth");
	l = bed_row(op, "server/io-threads/locks/posix/pwrite64");
	is_str(l->kind, "syscall", "a syscall's kind");
	is_str(l->type, "syscall", "and title");
	is_int(l->depth, 4, "and depth");
	is_int((long long)bed_row(op, "server/io-threads/locks/posix")->errors, 1,
	       "a layer's errors");
	ok(bed_row(op, "server")->has_errors && bed_row(op, "server")->has_bytes && l->has_errors &&
		   l->has_bytes && op->has_errors,
	   "bytes and errors of requests and of syscalls are known");
	l = bed_row(op, "server/io-threads");
	ok(l->has_errors && !l->has_bytes,
	   "of an xlator, too; bytes not where one passage's are not");
	l = bed_row(op, "server/io-threads/locks");
	ok(!l->has_errors && l->has_bytes, "nor errors");
	ok(!bed_row(op, "server/io-threads/locks/posix")->has_errors, "nor those below it");
	ok(bed_near(shares(op), 100), "all shares make 100 %%");
	bed_close();
}

/* Replicate: two children at once; fixed layers come last, by their number. */
static void test_parallel(void)
{
	const struct snap_op *op;
	unsigned int top, afr, c0, c1;

	bed.n_nodes = 0;
	top = bed_node("fuse", "mount/fuse");
	bed_link(top, afr = bed_node("afr", "cluster/replicate"));
	bed_link(afr, c0 = bed_node("client-0", "protocol/client"));
	bed_link(afr, c1 = bed_node("client-1", "protocol/client"));
	bed_open(WIRE_ROOT_BRICK);
	bed_write("fuse", "", 10000, 100000);
	pass_syscall("afr", 3, 1000);
	pass_syscall("afr", 1, 1000);
	bed_write("client-1", "afr", 75000, 75000);
	bed_write("client-0", "afr", 70000, 70000);
	bed_write("afr", "fuse", 13000, 90000);
	op = tick_write();
	is_str(bed_paths(op),
	       "fuse fuse/afr fuse/afr/client-0 fuse/afr/client-1 fuse/afr/pread64 "
	       "fuse/afr/fsync",
	       "children in graph order, then fixed layers by operation");
	ok(bed_near(shares(op), 10 + 13 + 70 + 75 + 1 + 1), "parallel children: more than 100 %%");
	bed_close();
}

/* One layer called from two: two rows, and what is below it is there once. */
static void test_diamond(void)
{
	const struct snap_op *op;
	unsigned int top, a, b, p;

	bed.n_nodes = 0;
	top = bed_node("server", "s");
	bed_link(top, a = bed_node("a", "a"));
	bed_link(top, b = bed_node("b", "b"));
	p = bed_node("posix", "p");
	bed_link(a, p);
	bed_link(b, p);
	bed_open(WIRE_ROOT_BRICK);
	bed_write("server", "", 10000, 100000);
	bed_write("a", "server", 5000, 45000);
	bed_write("b", "server", 5000, 45000);
	bed_write("posix", "a", 10000, 40000);
	bed_write("posix", "b", 20000, 40000);
	pass_syscall("posix", 2, 50000);
	op = tick_write();
	is_str(bed_paths(op),
	       "server server/a server/a/posix server/a/posix/pwrite64 server/b "
	       "server/b/posix",
	       "a diamond: two rows, one subtree");
	is_str(bed_row(op, "server/b/posix")->reason, "what lies below is shown at its first row",
	       "the second says where the subtree is");
	ok(bed_near(bed_row(op, "server/b/posix")->self.mean, 20000),
	   "each row has its own figures");
	ok(bed_near(shares(op), 100), "nothing counted twice");
	bed_close();
}

/* A write whose replicate also winds inodelk: a copied stack hangs under the xlator that copied. */
static void test_copied_stack(void)
{
	const struct snap_op *op;

	bed_chain("fuse write-behind afr client-0");
	bed_open(WIRE_ROOT_BRICK);
	bed_write("fuse", "", 1000, 100000);
	bed_write("write-behind", "fuse", 2000, 99000);
	bed_write("afr", "write-behind", 7000, 97000);
	for (int i = 0; i < 3; i++)
		bed_write("client-0", "afr", 30000, 30000);
	op = tick_write();
	is_int((long long)bed_row(op, "fuse/write-behind/afr/client-0")->count, 3,
	       "three passages of one layer in one request");
	ok(bed_near(bed_row(op, "fuse/write-behind/afr/client-0")->self.mean, 30000),
	   "a layer's figures are per passage");
	ok(bed_near(shares(op), 100), "shares are of all passages");
	bed_close();
}

static void test_tail_group(void)
{
	const struct snap_op *op;

	bed_chain("server locks access-control delay-gen posix");
	bed_open(WIRE_ROOT_BRICK);
	bed_write("server", "", 1000, 100000);
	bed_write("locks", "server", 1000, 99000);
	bed_write("posix", "locks", 98000, 98000);
	op = tick_write();
	is_str(bed_paths(op), "server server/locks server/locks/access-control+delay-gen+posix",
	       "xlators without a row between parent and layer are its group");
	is_str(op->layers[2].type, "t/access-control+t/delay-gen+t/posix", "types too");
	is_str(op->layers[2].reason, "", "a group needs no reason");
	/* A second kind of frame under the same write winds access-control properly. */
	bed_write("access-control", "locks", 5000, 50000);
	bed_write("posix", "access-control", 45000, 45000);
	op = tick_write();
	is_str(bed_paths(op),
	       "server server/locks server/locks/access-control "
	       "server/locks/access-control/delay-gen+posix "
	       "server/locks/access-control+delay-gen+posix",
	       "its row beside the group's takes it out of no frame of the group");
	bed_close();
}

/* Frames that were split by their entries: a chain of rows, each under the one that wound to it. */
static void test_split_tail(void)
{
	const struct snap_op *op;
	const struct snap_layer *l;

	bed_chain("server locks access-control delay-gen posix");
	bed_open(WIRE_ROOT_BRICK);
	for (int i = 0; i < 2; i++) {
		bed_write("server", "", 1000, 100000);
		bed_write("locks", "server", 1000, 99000);
	}
	bed_write("access-control", "locks", 2000, 98000);
	bed_write("delay-gen", "access-control", 50000, 96000);
	bed_write("posix", "delay-gen", 6000, 46000);
	pass_syscall("posix", 2, 40000);
	/* the other one began before the entries were probed */
	bed_write("posix", "locks", 58000, 98000);
	pass_syscall("posix", 2, 40000);
	op = tick_write();
	is_str(bed_paths(op),
	       "server server/locks server/locks/access-control "
	       "server/locks/access-control/delay-gen server/locks/access-control/delay-gen/posix "
	       "server/locks/access-control/delay-gen/posix/pwrite64 "
	       "server/locks/access-control+delay-gen+posix",
	       "split frames have rows of their own, whole ones the group's");
	l = bed_row(op, "server/locks/access-control/delay-gen/posix");
	is_str(l->id, "posix", "the last part is named alone");
	is_int((long long)l->count, 1, "and counts the split frame only");
	ok(bed_near(bed_row(op, "server/locks/access-control/delay-gen")->self.mean, 50000),
	   "a part has its own figures");
	ok(bed_near(shares(op), 100), "nothing lost, nothing counted twice");
	bed_close();
	/* only the lower two could be told apart */
	bed_open(WIRE_ROOT_BRICK);
	bed_write("server", "", 1000, 100000);
	bed_write("locks", "server", 1000, 99000);
	bed_write("delay-gen", "locks", 52000, 98000);
	bed_write("posix", "delay-gen", 46000, 46000);
	op = tick_write();
	is_str(bed_paths(op),
	       "server server/locks server/locks/access-control+delay-gen "
	       "server/locks/access-control+delay-gen/posix",
	       "what stayed together keeps both names");
	bed_close();
}

static void test_shortest_path(void)
{
	const struct snap_op *op;
	unsigned int top, a, b, c, p;

	bed.n_nodes = 0;
	top = bed_node("server", "s");
	bed_link(top, a = bed_node("a", "a"));
	bed_link(a, b = bed_node("b", "b"));
	p = bed_node("posix", "p");
	bed_link(b, p);
	bed_link(top, c = bed_node("c", "c"));
	bed_link(c, p);
	bed_open(WIRE_ROOT_BRICK);
	bed_write("server", "", 1000, 100000);
	bed_write("posix", "server", 99000, 99000);
	bed_write("a", "c", 10, 10);
	op = tick_write();
	is_str(op->layers[1].id, "c+posix", "of several ways the shortest names the group");
	ok(strstr(op->layers[2].reason, "caller c has no row"), "a missing caller is named");
	bed_write("c", "server", 10, 20);
	op = tick_write();
	is_str(bed_row(op, "server/c/a")->reason, "the graph has no way down from c",
	       "no way in the graph: the reason says so");
	bed_close();
}

/* The tree could not be made: these are requests all the same. */
static void test_unsplit(void)
{
	struct wire_slot_key key = { .op = BED_WRITE };
	const struct snap_op *op;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	for (int i = 0; i < 3; i++)
		bed_write("server", "", 10000, 100000);
	for (int i = 0; i < 3; i++)
		bed_write("posix", "server", 90000, 90000);
	bed_pass(key, 300000, 300000)->bytes = 512;
	bed_slot(key)->more = -1;
	op = tick_write();
	is_int((long long)op->count, 4, "an unsplit request counts");
	is_int((long long)op->bytes, 512, "and so do its bytes");
	ok(bed_near(op->incl.mean, 150000), "it is in the mean");
	ok(bed_near(op->incl.max, 300000), "and in the distribution");
	ok(bed_near(op->unattributed_ns.v, 75000), "all of its time is unattributed");
	ok(bed_near(op->sum_check_pct.v, 75), "and its sum check does not hold");
	is_int((long long)op->n_layers, 2, "it has no row of its own");
	is_int((long long)op->layers[0].count, 3, "rows count split requests");
	ok(bed_near(shares(op) + 100 * 4 * op->unattributed_ns.v / 600000, 100),
	   "shares and residue make 100 %%");
	bed_close();
}

static void test_unsplit_only(void)
{
	struct wire_slot_key key = { .op = BED_WRITE };
	const struct snap_op *op;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	bed_pass(key, 300000, 300000);
	op = tick_write();
	is_int((long long)op->count, 1, "only unsplit requests: the operation is there");
	is_int((long long)op->n_layers, 0, "without rows");
	bed_write("posix", "server", 10, 10);
	op = tick_write();
	is_str(bed_paths(op), "server server/posix", "parts without a whole get a root");
	ok(op->layers[0].state == SNAP_DERIVED && op->layers[0].reason[0] && !op->layers[0].count,
	   "which says that it is derived");
	bed_close();
}

static void test_orphans_and_loops(void)
{
	const struct snap_op *op;

	bed_chain("server a b c d posix");
	bed_open(WIRE_ROOT_BRICK);
	bed_write("server", "", 1000, 100000);
	bed_write("a", "server", 1000, 1000);
	bed_write("server", "a", 500, 500);
	bed_write("posix", "d", 3000, 3000);
	pass_syscall("posix", 1, 2000);
	bed_write("b", "c", 10, 10);
	bed_write("c", "b", 20, 20);
	bed_pass((struct wire_slot_key){ .layer = BED_SYSCALL, .op = BED_WRITE, .sub = 3 }, 70, 70);
	bed_pass((struct wire_slot_key){ .layer = 77, .parent = bed_layer("a"), .op = BED_WRITE },
		 5, 5);
	op = tick_write();
	is_str(bed_paths(op),
	       "server server/a server/a/server server/a/xlator-77 server/posix "
	       "server/posix/pread64 server/fsync server/b server/b/c",
	       "a cycle ends, an orphan and a loop hang under the root");
	is_int((long long)op->count, 1, "a root seen below itself is no request");
	is_str(bed_row(op, "server/posix")->reason, "its caller d has no row",
	       "the orphan says so");
	is_str(bed_row(op, "server/fsync")->reason, "seen without a caller", "so does a span");
	is_str(bed_row(op, "server/b")->reason, "its callers form a loop", "the loop says so");
	is_str(bed_row(op, "server/a/xlator-77")->reason, "in no graph that was read",
	       "and an xlator that nobody knows");
	bed_close();
}

/* Work that no request waits for starts at the xlator that owns the stack. */
static void test_background(void)
{
	struct wire_slot_key key = { .op = BED_WRITE, .root = WIRE_ROOT_BACKGROUND };
	const struct snap_op *op;

	bed_chain("fuse write-behind afr client-0");
	bed_open(WIRE_ROOT_CLIENT);
	key.layer = bed_layer("write-behind");
	bed_pass(key, 10000, 50000);
	key.parent = bed_layer("write-behind");
	key.layer = bed_layer("client-0");
	bed_pass(key, 40000, 40000);
	key.layer = bed_layer("afr");
	key.parent = 0;
	bed_pass(key, 20000, 50000);
	key.parent = key.layer;
	key.layer = bed_layer("client-0");
	bed_pass(key, 30000, 30000);
	bed_feed();
	bed_tick(10);
	op = bed_op("background", "user", "write");
	is_str(bed_paths(op), "write-behind write-behind/afr+client-0 afr afr/client-0",
	       "background: each owner is a root");
	is_int((long long)op->count, 2, "and their stacks are counted together");
	ok(bed_near(shares(op), 100), "their shares make 100 %%");
	ok(!op->in_flight.valid && !op->coverage_pct.valid, "neither in flight nor coverage");
	bed_close();
}

/* A request that ends between two reads of the map: a parent's row without passages stays a row. */
static void test_late_parent(void)
{
	const struct snap_op *op;

	bed_chain("server a posix");
	bed_open(WIRE_ROOT_BRICK);
	bed_write("server", "", 1, 3000);
	bed_write("a", "server", 1, 2000);
	bed_write("posix", "a", 1, 1000);
	bed_feed();
	model_start_window(bed.m, 1000000000ULL, 0);
	bed_write("posix", "a", 1, 1000);
	op = tick_write();
	is_str(bed_paths(op), "server server/a server/a/posix",
	       "parents without passages are kept");
	ok(!op->layers[1].incl.valid && op->layers[2].incl.valid, "they have no figures");
	ok(!op->layers[2].share_pct.valid, "and there is no share of nothing");
	bed_close();
}

static void uncovered_write(const char *layer, const char *parent, __u64 self_ns, __u64 incl_ns)
{
	struct wire_slot_key key = { .op = BED_WRITE,
				     .root = WIRE_ROOT_BRICK,
				     .layer = bed_layer(layer),
				     .sub = WIRE_SUB_UNCOVERED };

	key.parent = *parent ? bed_layer(parent) : 0;
	bed_pass(key, self_ns, incl_ns);
}

/* Layers below were off while some of the requests ran: what these had to themselves is unknown. */
static void test_uncovered(void)
{
	struct wire_slot_key call = {
		.op = BED_WRITE, .root = WIRE_ROOT_BRICK, .layer = BED_SYSCALL, .sub = 2
	};
	const struct snap_layer *l;
	const struct snap_op *op;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	call.parent = bed_layer("posix");
	for (int i = 0; i < 3; i++) {
		bed_write("server", "", 1000, 9000);
		bed_write("posix", "server", 3000, 8000);
		bed_pass(call, 5000, 5000);
	}
	uncovered_write("server", "", 2000, 29000);
	uncovered_write("posix", "server", 27000, 27000);
	op = tick_write();
	is_str(bed_paths(op), "server server/posix server/posix/pwrite64",
	       "each layer has one row");
	is_int((long long)op->count, 4, "all requests count");
	is_int((long long)op->uncovered, 1, "one of them was not seen whole");
	ok(bed_near(op->incl.mean, 14000), "times from begin to end are of all");
	ok(bed_near(snapshot_covered_mean_ns(op), 9000), "and of those seen whole apart");
	l = bed_row(op, "server/posix");
	is_int((long long)l->count, 4, "posix: all passages");
	ok(bed_near(l->incl.mean, (3 * 8000 + 27000) / 4.0), "posix: inclusive time of all");
	is_int((long long)l->self.count, 3, "posix: own time of those seen whole");
	ok(bed_near(l->self.mean, 3000), "posix: which is right");
	ok(bed_near(shares(op), 100), "shares make 100 %%");
	bed_close();
}

/* Not one was seen whole. */
static void test_uncovered_only(void)
{
	const struct snap_op *op;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	uncovered_write("server", "", 1000, 9000);
	uncovered_write("posix", "server", 8000, 8000);
	op = tick_write();
	is_str(bed_paths(op), "server server/posix", "rows all the same");
	is_int((long long)op->count, 1, "the request counts");
	ok(!bed_row(op, "server/posix")->self.valid, "no own time");
	ok(!bed_row(op, "server/posix")->share_pct.valid, "no share");
	ok(!op->unattributed_ns.valid, "what no layer claims is not known");
	ok(bed_near(bed_row(op, "server/posix")->incl.mean, 8000), "but inclusive time is");
	bed_close();
}

int main(void)
{
	test_chain();
	test_parallel();
	test_diamond();
	test_copied_stack();
	test_tail_group();
	test_split_tail();
	test_shortest_path();
	test_unsplit();
	test_unsplit_only();
	test_orphans_and_loops();
	test_background();
	test_late_parent();
	test_uncovered();
	test_uncovered_only();
	return tap_done();
}
