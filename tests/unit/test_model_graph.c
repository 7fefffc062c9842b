/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_graph.c: layer numbers and statistics over graph switches and restarts, limits of what
 * a graph may be, and names that do not fit.
 */
#include <errno.h>

#include "model_bed.h"

/* `volume set` puts an xlator into a client's graph while it is watched. */
static void test_switch(void)
{
	__u16 write_behind, client;
	const struct snap_op *op;

	bed_chain("fuse write-behind client-0");
	bed_open(WIRE_ROOT_BRICK);
	is_int(bed.layers[0], WIRE_LAYER_XLATOR, "the root is the first layer");
	is_int(bed.layers[2], WIRE_LAYER_XLATOR + 2, "the others follow in graph order");
	write_behind = bed.layers[1];
	client = bed.layers[2];
	bed_write("fuse", "", 1, 1000);
	bed_write("write-behind", "fuse", 1, 900);
	bed_write("client-0", "write-behind", 1, 800);
	bed_feed();
	bed_chain("fuse delay-gen read-ahead client-0");
	is_int(bed_set(WIRE_ROOT_BRICK, 100), 0, "another graph");
	is_int(bed.layers[0], WIRE_LAYER_XLATOR, "the root stays");
	is_int(bed.layers[3], client, "a known xlator keeps its number");
	is_int(bed.layers[1], WIRE_LAYER_XLATOR + 3, "new ones get fresh numbers");
	is_int(bed.layers[2], WIRE_LAYER_XLATOR + 4, "one each");
	bed_write("fuse", "", 1, 1000);
	bed_write("client-0", "fuse", 1, 700);
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	is_str(bed_paths(op),
	       "fuse fuse/delay-gen+read-ahead+client-0 fuse/write-behind "
	       "fuse/write-behind/client-0",
	       "rows of both graphs, the one in use first");
	is_str(bed_row(op, "fuse/write-behind")->reason, "of a graph that is no longer in use",
	       "the other says so");
	bed_chain("fuse write-behind client-0");
	bed_set(WIRE_ROOT_BRICK, 100);
	is_int(bed.layers[1], write_behind, "back again: the old numbers");
	bed_chain("other-root write-behind client-0");
	bed_set(WIRE_ROOT_BRICK, 100);
	is_int(bed.layers[0], WIRE_LAYER_XLATOR, "a root of another name is the root");
	bed_close();
}

/* New xlators begin to count at 0; the same ones, read again, do not. */
static void test_switch_statistics(void)
{
	bed_chain("server io-threads posix");
	bed_open(WIRE_ROOT_BRICK);
	bed_stat(1, BED_WRITE, 1000, 1000, 1e6);
	model_start_window(bed.m, 1000000000ULL, 0);
	bed_stat(1, BED_WRITE, 1010, 1010, 1.01e6);
	bed_set(WIRE_ROOT_BRICK, 100);
	bed_stat(1, BED_WRITE, 1020, 1020, 1.02e6);
	bed_tick_view(10, true, false);
	is_int((long long)bed_op("brick", "user", "write")->count, 20,
	       "the same graph set again: counting goes on");
	bed_chain("server io-threads delay-gen posix");
	bed_set(WIRE_ROOT_BRICK, 100);
	bed_stat(1, BED_WRITE, 5000, 5000, 1e7);
	bed_tick_view(10, true, false);
	is_int((long long)bed_op("brick", "user", "write")->count, 5020,
	       "another graph: its counters begin at 0, also where they are larger");
	bed_close();
}

static void set_root_type(const char *type)
{
	snprintf(bed.nodes[0].type, sizeof(bed.nodes[0].type), "%s", type);
}

static void feed_root(uint64_t failed, uint64_t lat_count, double lat_total_ns)
{
	struct model_stat s = { .failed = failed,
				.lat_count = lat_count,
				.lat_total_ns = lat_total_ns,
				.has_counts = true,
				.has_latency = true };

	if (model_feed_stats(bed.m, 0, 0, BED_WRITE, &s))
		abort();
}

/* What the memory view says of the root's writes after a switch at which it had counted 1,000. */
static void check_root(const char *type, const char *next_type, int pid, long long failed,
		       long long ended, double mean_ns)
{
	const struct snap_layer *root;

	bed_chain("root io-stats client-0");
	set_root_type(type);
	bed_open(WIRE_ROOT_BRICK);
	feed_root(1000, 1000, 1e6);
	bed_stat(1, BED_WRITE, 1000, 1000, 1e6);
	model_start_window(bed.m, 1000000000ULL, 0);
	bed_chain("root io-stats delay-gen client-0");
	set_root_type(next_type);
	bed_set(WIRE_ROOT_BRICK, pid);
	feed_root(1003, 1010, 1.05e6);
	bed_stat(1, BED_WRITE, 10, 10, 5e4);
	bed_tick_view(10, true, false);
	root = bed_op("brick", "user", "write")->layers;
	is_int((long long)root->errors, failed, "%s, then %s of %d: failed", type, next_type, pid);
	is_int((long long)root->incl.count, ended, "and ended, of the window");
	ok(bed_near(root->incl.mean, mean_ns), "and their mean: %g", root->incl.mean);
	bed_close();
}

/* Of a switch the root may know nothing: then its counters go on. */
static void test_switch_root(void)
{
	check_root("mount/fuse", "mount/fuse", 100, 3, 10, 5000);
	check_root("protocol/server", "protocol/server", 100, 3, 10, 5000);
	check_root("mount/fuse", "mount/fuse", 200, 1003, 1010, 1.05e6 / 1010);
	check_root("mount/fuse", "protocol/server", 100, 1003, 1010, 1.05e6 / 1010);
	check_root("cluster/replicate", "cluster/replicate", 100, 1003, 1010, 1.05e6 / 1010);
}

static void test_restart(void)
{
	const struct snap_op *op;

	bed_chain("server io-threads posix");
	bed_open(WIRE_ROOT_BRICK);
	bed_stat(1, BED_WRITE, 1000, 1000, 1e6);
	model_feed_in_flight(bed.m, 0, BED_WRITE, 0, 0);
	model_start_window(bed.m, 1000000000ULL, 0);
	bed_stat(1, BED_WRITE, 1010, 1007, 1.007e6);
	model_feed_in_flight(bed.m, 0, BED_WRITE, 3, 50);
	bed_set(WIRE_ROOT_BRICK, 200);
	bed_stat(1, BED_WRITE, 2000, 1999, 4e6);
	model_feed_in_flight(bed.m, 0, BED_WRITE, 1, 50);
	for (int i = 0; i < 1003; i++)
		bed_write("server", "", 1, 1000);
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	/* 10 - 3 that died with the process + 2000 - 1 = 2006 */
	ok(bed_near(op->coverage_pct.v, 50), "a new pid: requests that died are not missed");
	is_int(bed.snap->targets[0].pid, 200, "the new pid is shown");
	bed_close();
}

static void test_twins(void)
{
	const struct snap_op *op;
	unsigned int top, a, b;

	/* Two xlators of one name and type: still two layers, over every switch. */
	bed.n_nodes = 0;
	top = bed_node("server", "s");
	bed_link(top, a = bed_node("twin", "t"));
	bed_link(top, b = bed_node("twin", "t"));
	bed_open(WIRE_ROOT_BRICK);
	bed_set(WIRE_ROOT_BRICK, 100);
	ok(bed.layers[a] != bed.layers[b], "twins have numbers of their own");
	bed_write("server", "", 1, 1000);
	bed_pass((struct wire_slot_key){ .layer = bed.layers[b],
					 .parent = bed.layers[top],
					 .op = BED_WRITE },
		 5, 5);
	bed_pass((struct wire_slot_key){ .layer = bed.layers[a],
					 .parent = bed.layers[top],
					 .op = BED_WRITE },
		 4, 4);
	bed_feed();
	bed_tick(10);
	op = bed_op("brick", "user", "write");
	ok(op->n_layers == 3 && op->layers[1].self.mean < op->layers[2].self.mean,
	   "and rows of their own, in graph order");
	bed_close();
}

static void test_limits(void)
{
	static struct model_node many[1025];
	struct model_target t = { .kind = "brick", .nodes = many, .n_nodes = 1025 };
	unsigned int stored = 0;
	int err = 0;

	bed_chain("server posix");
	bed_open(WIRE_ROOT_BRICK);
	is_int(model_set_target(bed.m, 1, &t, NULL), -EINVAL, "too many xlators are refused");
	is_int(model_set_target(bed.m, WIRE_MAX_TARGETS, &t, NULL), -EINVAL, "so is a 65th target");
	bed.nodes[1].children[0] = 2;
	bed.nodes[1].n_children = 1;
	is_int(bed_set(WIRE_ROOT_BRICK, 100), -EINVAL, "a link out of the graph");
	bed.nodes[1].n_children = 65;
	is_int(bed_set(WIRE_ROOT_BRICK, 100), -EINVAL, "more links than there is room for");
	bed_write("server", "", 1, 1000);
	bed_feed();
	for (unsigned int i = 0; i < 6000 && !err; i++) {
		struct wire_slot_key key = { .layer = (__u16)i, .op = BED_WRITE, .parent = 64 };

		err = model_feed_slot(bed.m, &key, &bed.slots[0]);
		stored += !err;
	}
	is_int(err, -ENOSPC, "slots without end are refused");
	is_int(stored, 4095, "after 4,096 of a target");
	bed_tick(10);
	is_int((long long)bed.snap->targets[0].n_ops, 1, "those stored make one operation");
	is_int(model_feed_slot(bed.m, &(struct wire_slot_key){ .root = WIRE_ROOTS }, bed.slots),
	       -EINVAL, "an unknown kind of root is refused");
	bed_close();
}

/* Group names grow beyond their field: cut between characters, always terminated. */
static void test_long_names(void)
{
	static const char euro[] = "\xe2\x82\xac";
	const struct snap_layer *l;
	char id[64] = "x.";

	bed.n_nodes = 0;
	for (int i = 0; i < 13; i++)
		strcat(id, euro);
	bed_node("server", "s");
	for (unsigned int i = 1; i < 12; i++) {
		id[0] = (char)('a' + i);
		bed_node(id, id);
		bed_link(i - 1, i);
	}
	bed_open(WIRE_ROOT_BRICK);
	bed_write("server", "", 1, 1000);
	for (unsigned int i = 2; i < 12; i += 2)
		bed_pass((struct wire_slot_key){ .layer = bed.layers[i],
						 .op = BED_WRITE,
						 .parent = bed.layers[i - 2] },
			 1, 900);
	bed_feed();
	bed_tick(10);
	is_int((long long)bed_op("brick", "user", "write")->n_layers, 6, "long names lose no row");
	l = &bed_op("brick", "user", "write")->layers[1];
	/* 41 bytes and "+", then 2 and 6 characters of 3 bytes; the 63rd byte would split one */
	is_int((long long)strlen(l->id), 62, "an id that is too long is cut between characters");
	is_str(l->id + 59, euro, "and ends with a whole one");
	l = &bed_op("brick", "user", "write")->layers[5];
	ok(strlen(l->path) > 300 && strlen(l->path) < sizeof(l->path), "paths are longer");
	bed_close();
}

int main(void)
{
	test_switch();
	test_switch_statistics();
	test_switch_root();
	test_restart();
	test_twins();
	test_limits();
	test_long_names();
	return tap_done();
}
