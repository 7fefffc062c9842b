/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_ops.c: all operations of a target, in the order they are shown. Owns which slots make one
 * operation, where the process's own figures stand in for the walk, and how coverage is reckoned.
 * Must not know rows' insides.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

struct op_list {
	struct model_op *ops;
	size_t n, cap;
};

static bool is_request(enum wire_root root)
{
	return root == WIRE_ROOT_BRICK || root == WIRE_ROOT_CLIENT;
}

/* Calls that move data: "read", "pwrite64", "aio read"; not "readdir", "readlink". */
static bool moves_bytes(const char *name)
{
	const char *last = strrchr(name, ' ');

	name = last ? last + 1 : name;
	if (!strncmp(name, "readdir", 7) || !strncmp(name, "readlink", 8))
		return false;
	if (!strcmp(name, "copy_file_range"))
		return true;
	if (name[0] == 'p')
		name++;
	return !strncmp(name, "read", 4) || !strncmp(name, "write", 5);
}

static void name_op(const struct model *m, struct model_op *op, unsigned int number,
		    unsigned int layer)
{
	const struct model_layer *l = layer < MODEL_FIXED_LAYERS ? &m->layers[layer] : NULL;
	struct snap_op *o = &op->op;
	const char *name = NULL;

	if (op->root != WIRE_ROOT_LOCAL)
		name = gluster_fop_name(number);
	else if (l && l->subs && number < l->n_subs)
		name = l->subs[number];
	if (name) {
		model_text_set(o->op, sizeof(o->op), name);
	} else {
		model_text_set(o->op, sizeof(o->op),
			       op->root == WIRE_ROOT_LOCAL ? (l && l->title ? l->title : "layer") :
							     "fop");
		model_text_add(o->op, sizeof(o->op), "-");
		model_text_add_number(o->op, sizeof(o->op), number);
	}
	o->has_bytes = moves_bytes(o->op);
}

/* Everything of an operation that does not depend on where its figures come from. */
static void start_op(const struct model *m, struct model_op *op, enum wire_root root,
		     enum wire_origin origin, unsigned int number, unsigned int layer)
{
	bool internal = origin == WIRE_ORIGIN_INTERNAL;

	memset(op, 0, sizeof(*op));
	op->root = root;
	op->fop = root == WIRE_ROOT_LOCAL || number >= GLUSTER_MAX_FOP ? MODEL_NONE : number;
	op->rank = root == WIRE_ROOT_LOCAL ? 3 : root == WIRE_ROOT_BACKGROUND ? 2 : internal;
	model_text_set(op->op.root, sizeof(op->op.root), model_root_name(root));
	model_text_set(op->op.origin, sizeof(op->op.origin), internal ? "internal" : "user");
	name_op(m, op, number, layer);
}

void model_name_op(const struct model *m, const struct wire_slot_key *key, struct snap_op *ret_op)
{
	struct model_op op;

	start_op(m, &op, key->root, key->origin, key->op, model_op_layer(key));
	*ret_op = op.op;
}

static struct model_op *next_op(struct op_list *list)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 16;
		struct model_op *grown = realloc(list->ops, cap * sizeof(*grown));

		if (!grown)
			return NULL;
		list->ops = grown;
		list->cap = cap;
	}
	return &list->ops[list->n];
}

/* ---- from slots -------------------------------------------------------- */

/* Two layers' local operations are never one. */
unsigned int model_op_layer(const struct wire_slot_key *key)
{
	if (key->root != WIRE_ROOT_LOCAL)
		return 0;
	if (key->top)
		return key->top;
	return key->parent ? key->parent : key->layer;
}

static int compare_groups(const struct wire_slot_key *a, const struct wire_slot_key *b)
{
	if (a->root != b->root)
		return (int)a->root - (int)b->root;
	if (a->origin != b->origin)
		return (int)a->origin - (int)b->origin;
	if (model_op_layer(a) != model_op_layer(b))
		return (int)model_op_layer(a) - (int)model_op_layer(b);
	return (int)a->op - (int)b->op;
}

/* By operation; then by key, so that the same counters always make the same picture. */
static int compare_slots(const void *pa, const void *pb)
{
	const struct model_slot *a = *(const struct model_slot *const *)pa;
	const struct model_slot *b = *(const struct model_slot *const *)pb;
	int d = compare_groups(&a->key, &b->key);

	return d ? d : memcmp(&a->key, &b->key, sizeof(a->key));
}

static int add_walked_ops(const struct model *m, const struct model_tgt *t,
			  const struct model_slot *const *slots, size_t n, struct op_list *list)
{
	size_t i = 0;

	while (i < n) {
		const struct wire_slot_key *key = &slots[i]->key;
		struct model_op *op = next_op(list);
		size_t end = i + 1;
		int err;

		if (!op)
			return -ENOMEM;
		while (end < n && !compare_groups(key, &slots[end]->key))
			end++;
		start_op(m, op, key->root, key->origin, key->op, model_op_layer(key));
		err = model_tree_build(m, t, slots + i, end - i, op);
		if (err)
			return err;
		if (op->op.count || op->op.n_layers)
			list->n++;
		else
			free(op->op.layers);
		i = end;
	}
	return 0;
}

static int walked_ops(const struct model *m, unsigned int target, struct op_list *list)
{
	const struct model_tgt *t = m->targets[target];
	const struct model_slot **slots = calloc(t->n_slots + 1, sizeof(*slots));
	size_t n = 0;
	int err;

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->slot_cap; i++)
		if (m->slots[i] && m->slots[i]->key.target == target)
			slots[n++] = m->slots[i];
	qsort(slots, n, sizeof(*slots), compare_slots);
	err = add_walked_ops(m, t, slots, n, list);
	free(slots);
	return err;
}

/* ---- from the process's memory ----------------------------------------- */

static bool was_walked(const struct op_list *list, unsigned int fop)
{
	for (size_t i = 0; i < list->n; i++)
		if (is_request(list->ops[i].root) && list->ops[i].fop == fop)
			return true;
	return false;
}

/* Never called from the root, yet called: xlators among themselves. */
static enum wire_origin memory_origin(const struct model_tgt *t, unsigned int fop)
{
	uint64_t ever = 0;

	if (t->in_flight[fop].now || !model_memory_calls(t, fop, true, &ever) || ever)
		return WIRE_ORIGIN_USER;
	return WIRE_ORIGIN_INTERNAL;
}

static void explain_means(struct model_op *op)
{
	struct snap_layer *root = &op->op.layers[0];

	model_text_set(root->reason, sizeof(root->reason),
		       op->op.incl.valid ?
			       "no walk of this operation was recorded; the process's own figures" :
			       "no request of this operation has ended in this window");
}

/*
 * Fops that the walk did not see. Beside the walk only those that the root called or that hang in
 * flight: what xlators call among themselves is there under the request that caused it.
 */
static int memory_ops(const struct model *m, const struct model_tgt *t,
		      const struct model_view *view, struct op_list *list)
{
	bool lifetime = view->memory_only && view->lifetime;

	for (unsigned int fop = 0; fop < GLUSTER_MAX_FOP; fop++) {
		uint64_t calls = 0;
		bool called = model_memory_calls(t, fop, lifetime, &calls) ?
				      calls > 0 :
				      model_memory_active(t, fop, lifetime);
		struct model_op *op;
		int err;

		if (was_walked(list, fop))
			continue;
		if (!called && !t->in_flight[fop].now &&
		    !(view->memory_only && model_memory_active(t, fop, lifetime)))
			continue;
		op = next_op(list);
		if (!op)
			return -ENOMEM;
		start_op(m, op, t->root, memory_origin(t, fop), fop, 0);
		/* The process does not count bytes where we could read them. */
		op->op.has_bytes = false;
		err = model_memory_build(t, fop, lifetime, op);
		if (err)
			return err;
		if (!view->memory_only && op->op.n_layers)
			explain_means(op);
		list->n++;
	}
	return 0;
}

/* ---- finishing --------------------------------------------------------- */

static int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * Requests accounted / requests that the process completed, whoever made them. The process's counts
 * are read first, the slots later, and its calls once more (model_feed_late()): what was in flight
 * at the first look or came in until the last may be accounted already. So many beyond the count
 * are no error; any more were accounted twice, and that is shown.
 */
static void set_coverage(const struct model_tgt *t, struct op_list *list, struct model_op *op)
{
	const struct model_in_flight *f;
	uint64_t calls, accounted = 0;
	int64_t completed;

	/* of a process that is gone, the counts end at the last look before */
	if (t->gone || t->unreadable || !is_request(op->root) || op->fop == MODEL_NONE ||
	    !model_memory_calls(t, op->fop, false, &calls))
		return;
	f = &t->in_flight[op->fop];
	if (f->unknown || f->start_unknown)
		return;
	completed = (int64_t)calls + f->at_start - (int64_t)f->now;
	for (size_t i = 0; i < list->n; i++)
		if (is_request(list->ops[i].root) && list->ops[i].fop == op->fop &&
		    list->ops[i].op.source == SNAP_FROM_WALK)
			accounted += list->ops[i].op.count;
	if ((int64_t)accounted > completed)
		completed += min_i64((int64_t)accounted - completed,
				     (int64_t)(f->now + t->late_calls[op->fop]));
	if (completed <= 0)
		return;
	op->op.coverage_pct.v = 100.0 * (double)accounted / (double)completed;
	op->op.coverage_pct.valid = true;
}

/* A fop's requests in flight are known, their origin is not: shown once, with the users' if any. */
static void set_in_flight(const struct model_tgt *t, const struct op_list *list,
			  struct model_op *op)
{
	const struct model_in_flight *f;

	if (!is_request(op->root) || op->fop == MODEL_NONE || !t->in_flight[op->fop].fed ||
	    t->in_flight[op->fop].unknown)
		return;
	for (const struct model_op *o = list->ops; o < op; o++)
		if (is_request(o->root) && o->fop == op->fop)
			return;
	f = &t->in_flight[op->fop];
	op->op.in_flight.valid = true;
	op->op.in_flight.v = f->samples ? (double)f->sum / (double)f->samples : f->now;
	op->op.in_flight_oldest_ns.valid = f->now > 0;
	op->op.in_flight_oldest_ns.v = (double)f->oldest_ns;
}

static int compare_ops(const void *pa, const void *pb)
{
	const struct model_op *a = pa, *b = pb;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->total_ns < b->total_ns || a->total_ns > b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->op.count != b->op.count)
		return a->op.count > b->op.count ? -1 : 1;
	return strcmp(a->op.op, b->op.op);
}

static int finish_ops(const struct model_tgt *t, const struct model_view *view, double secs,
		      struct op_list *list, struct snap_target *st)
{
	bool lifetime = view->memory_only && view->lifetime;

	st->ops = calloc(list->n + 1, sizeof(*st->ops));
	if (!st->ops)
		return -ENOMEM;
	if (list->n)
		qsort(list->ops, list->n, sizeof(*list->ops), compare_ops);
	for (size_t i = 0; i < list->n; i++) {
		struct model_op *op = &list->ops[i];
		struct snap_num duty_pct = { .valid = false };
		double seen_secs = secs;

		if (!view->memory_only)
			set_coverage(t, list, op);
		set_in_flight(t, list, op);
		/* its own file operations are seen while the layers are on, requests while it is
		 * the walk */
		if (op->op.source == SNAP_FROM_WALK)
			duty_pct = op->root == WIRE_ROOT_LOCAL ? t->cost.duty_pct :
								 t->cost.walk_duty_pct;
		if (duty_pct.valid)
			seen_secs = secs * duty_pct.v / 100;
		/* how old the process is, or how long it lived, is not known here: no rate */
		op->op.rate_hz.valid = seen_secs > 0 && !lifetime && !t->gone &&
				       (op->op.source == SNAP_FROM_WALK ||
					(!t->unreadable && !t->start_unreadable));
		if (op->op.rate_hz.valid)
			op->op.rate_hz.v = (double)op->op.count / seen_secs;
	}
	for (size_t i = 0; i < list->n; i++)
		st->ops[i] = list->ops[i].op;
	st->n_ops = list->n;
	list->n = 0;
	return 0;
}

int model_ops_build(const struct model *m, unsigned int target, const struct model_view *view,
		    double secs, struct snap_target *st)
{
	const struct model_tgt *t = m->targets[target];
	struct op_list list = { 0 };
	int err = 0;

	if (!view->memory_only)
		err = walked_ops(m, target, &list);
	if (!err)
		err = memory_ops(m, t, view, &list);
	if (!err)
		err = finish_ops(t, view, secs, &list, st);
	for (size_t i = 0; i < list.n; i++)
		free(list.ops[i].op.layers);
	free(list.ops);
	return err;
}
