/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_bed.h: what the model's tests share: graphs by a few words, slots that are filled request
 * by request as the BPF side fills them, and looking rows up in a snapshot. Include it once per
 * test program; it must not know any expected figure.
 */
#ifndef BRICKTOP_MODEL_BED_H
#define BRICKTOP_MODEL_BED_H

#include <linux/types.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/gluster_layout.h"
#include "../../user/model.h"
#include "../tap.h"

#define BED_MAX_SLOTS 96
#define BED_MAX_NODES 16
#define BED_SYSCALL   1

enum { BED_WRITE = 13, BED_READ = 12, BED_FSYNC = 16, BED_LOOKUP = 27 };

static const char *const bed_subs[] = { NULL, "pread64", "pwrite64", "fsync" };
static const struct model_layer bed_layers[] = {
	{ BED_SYSCALL, "syscall", "syscall", bed_subs, 4 },
	{ 2, "xfs", "xfs", NULL, 0 },
};

static struct bed {
	struct model *m;
	struct model_node nodes[BED_MAX_NODES];
	size_t n_nodes;
	__u16 layers[BED_MAX_NODES];
	struct wire_slot_key keys[BED_MAX_SLOTS];
	struct wire_slot slots[BED_MAX_SLOTS];
	size_t n_slots;
	struct snapshot *snap;
} bed;

/* "id:type", children by bed_link(). */
__attribute__((unused)) static unsigned int bed_node(const char *id, const char *type)
{
	struct model_node *n = &bed.nodes[bed.n_nodes];

	memset(n, 0, sizeof(*n));
	snprintf(n->id, sizeof(n->id), "%s", id);
	snprintf(n->type, sizeof(n->type), "%s", type);
	return (unsigned int)bed.n_nodes++;
}

__attribute__((unused)) static void bed_link(unsigned int parent, unsigned int child)
{
	struct model_node *p = &bed.nodes[parent];

	p->children[p->n_children++] = child;
}

/* A chain of xlators, top first, their names separated by spaces; each is of type "t/<id>". */
__attribute__((unused)) static void bed_chain(const char *ids)
{
	char buf[256], type[80], *save = NULL;

	bed.n_nodes = 0;
	snprintf(buf, sizeof(buf), "%s", ids);
	for (char *id = strtok_r(buf, " ", &save); id; id = strtok_r(NULL, " ", &save)) {
		snprintf(type, sizeof(type), "t/%s", id);
		bed_node(id, type);
		if (bed.n_nodes > 1)
			bed_link((unsigned int)bed.n_nodes - 2, (unsigned int)bed.n_nodes - 1);
	}
}

__attribute__((unused)) static int bed_set(enum wire_root root, int pid)
{
	struct model_target t = { .kind = "brick",
				  .name = "v:/b",
				  .pid = pid,
				  .root = root,
				  .nodes = bed.nodes,
				  .n_nodes = bed.n_nodes };

	return model_set_target(bed.m, 0, &t, bed.layers);
}

/* A fresh model with the nodes as they stand, and an open window from 1 s on. */
__attribute__((unused)) static void bed_open(enum wire_root root)
{
	bed.n_slots = 0;
	if (model_new(bed_layers, 2, &bed.m) || bed_set(root, 100))
		abort();
	model_start_window(bed.m, 1000000000ULL, 5);
}

__attribute__((unused)) static void bed_close(void)
{
	snapshot_free(bed.snap);
	model_free(bed.m);
	bed.snap = NULL;
	bed.m = NULL;
}

/* The wire layer of an xlator; of what is not one, the number itself (BED_SYSCALL, 0). */
__attribute__((unused)) static __u16 bed_layer(const char *id)
{
	for (size_t i = 0; i < bed.n_nodes; i++)
		if (!strcmp(bed.nodes[i].id, id))
			return bed.layers[i];
	abort();
}

__attribute__((unused)) static struct wire_slot *bed_slot(struct wire_slot_key key)
{
	size_t i = 0;

	while (i < bed.n_slots && memcmp(&bed.keys[i], &key, sizeof(key)) != 0)
		i++;
	if (i == BED_MAX_SLOTS)
		abort();
	if (i == bed.n_slots) {
		memset(&bed.slots[i], 0, sizeof(bed.slots[i]));
		bed.keys[i] = key;
		bed.n_slots++;
	}
	return &bed.slots[i];
}

/* What one passage adds to its slot. */
__attribute__((unused)) static struct wire_slot *bed_pass(struct wire_slot_key key, __u64 self_ns,
							  __u64 incl_ns)
{
	struct wire_slot *s = bed_slot(key);

	s->count++;
	s->self_sum_ns += self_ns;
	s->incl_sum_ns += incl_ns;
	s->self_max_ns = self_ns > s->self_max_ns ? self_ns : s->self_max_ns;
	s->incl_max_ns = incl_ns > s->incl_max_ns ? incl_ns : s->incl_max_ns;
	s->self[hist_bucket(self_ns)]++;
	s->incl[hist_bucket(incl_ns)]++;
	return s;
}

/* A brick's user write through layer, called from parent ("": it is the root). */
__attribute__((unused)) static struct wire_slot *bed_write(const char *layer, const char *parent,
							   __u64 self_ns, __u64 incl_ns)
{
	struct wire_slot_key key = { .op = BED_WRITE, .root = WIRE_ROOT_BRICK };

	key.layer = bed_layer(layer);
	key.parent = *parent ? bed_layer(parent) : 0;
	return bed_pass(key, self_ns, incl_ns);
}

__attribute__((unused)) static void bed_feed(void)
{
	for (size_t i = 0; i < bed.n_slots; i++)
		if (model_feed_slot(bed.m, &bed.keys[i], &bed.slots[i]))
			abort();
}

__attribute__((unused)) static void bed_tick_view(uint64_t secs, bool memory_only, bool lifetime)
{
	struct model_view view = { memory_only, lifetime };

	snapshot_free(bed.snap);
	bed.snap = NULL;
	if (model_tick(bed.m, (1 + secs) * 1000000000ULL, &view, &bed.snap))
		abort();
}

__attribute__((unused)) static void bed_tick(uint64_t secs)
{
	bed_tick_view(secs, false, false);
}

__attribute__((unused)) static void bed_stat(unsigned int node, unsigned int fop, uint64_t wound,
					     uint64_t lat_count, double lat_total_ns)
{
	struct model_stat s = { .wound = wound,
				.lat_count = lat_count,
				.lat_total_ns = lat_total_ns,
				.has_counts = true,
				.has_latency = true };

	if (model_feed_stats(bed.m, 0, node, fop, &s))
		abort();
}

/* An operation of target 0; an empty one where there is none, so that checks fail, not crash. */
__attribute__((unused)) static const struct snap_op *bed_op(const char *root, const char *origin,
							    const char *op)
{
	static const struct snap_op none;
	const struct snap_target *t = bed.snap->targets;

	for (size_t i = 0; bed.snap->n_targets && i < t->n_ops; i++)
		if (!strcmp(t->ops[i].root, root) && !strcmp(t->ops[i].origin, origin) &&
		    !strcmp(t->ops[i].op, op))
			return &t->ops[i];
	diag("no operation %s %s %s", root, origin, op);
	return &none;
}

__attribute__((unused)) static const struct snap_layer *bed_row(const struct snap_op *op,
								const char *path)
{
	static const struct snap_layer none;

	for (size_t i = 0; i < op->n_layers; i++)
		if (!strcmp(op->layers[i].path, path))
			return &op->layers[i];
	diag("no row %s", path);
	return &none;
}

/* The paths of an operation's rows in order, separated by spaces. */
__attribute__((unused)) static const char *bed_paths(const struct snap_op *op)
{
	static char buf[4096];

	buf[0] = '\0';
	for (size_t i = 0; i < op->n_layers; i++) {
		size_t used = strlen(buf);

		snprintf(buf + used, sizeof(buf) - used, "%s%s", i ? " " : "", op->layers[i].path);
	}
	return buf;
}

__attribute__((unused)) static bool bed_near(double got, double want)
{
	if (fabs(got - want) <= 1e-9 * fabs(want))
		return true;
	diag("got %.9g, want %.9g", got, want);
	return false;
}

#endif
