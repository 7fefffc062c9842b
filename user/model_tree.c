/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_tree.c: the slots of one operation become its rows in tree order. Owns how layers hang
 * under each other, what a row is called, and that no slot is lost: what hangs nowhere goes under
 * the root and says why. Must not know histograms' insides or the process's own statistics.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

/*
 * A row has up to two slots: of the requests that were seen whole, and of those in which layers
 * were off for a time. Of the latter all is true but the self time.
 */
struct tree_row {
	const struct wire_slot_key *key;
	const struct model_slot *slot, *uncovered; /* either may be missing */
	unsigned int order;                        /* among siblings */
	bool live; /* passed in this window, or above something that was */
	bool done; /* has its row */
};

struct tree {
	const struct model *m;
	const struct model_tgt *t;
	struct tree_row *rows;
	size_t n;
	unsigned int *prev, *queue; /* for model_graph_path() */
	struct snap_layer *out;
	size_t n_out;
	double root_incl_ns; /* of the requests that were seen whole */
};

static const struct model_slot no_slot;

static bool is_top(const struct wire_slot_key *key)
{
	if (key->parent != WIRE_LAYER_UNATTRIBUTED || key->layer == WIRE_LAYER_UNATTRIBUTED)
		return false;
	switch (key->root) {
	case WIRE_ROOT_BRICK:
	case WIRE_ROOT_CLIENT:
		return key->layer == WIRE_LAYER_XLATOR;
	case WIRE_ROOT_APP:
		return key->layer < WIRE_LAYER_XLATOR;
	default:
		return true;
	}
}

bool model_is_root(const struct wire_slot_key *key)
{
	return is_top(key) ||
	       (key->layer == WIRE_LAYER_UNATTRIBUTED && key->parent == WIRE_LAYER_UNATTRIBUTED);
}

bool model_is_uncovered(const struct wire_slot_key *key)
{
	return key->sub == WIRE_SUB_UNCOVERED &&
	       (key->layer >= WIRE_LAYER_XLATOR || key->layer == WIRE_LAYER_UNATTRIBUTED);
}

static bool hangs_under(const struct wire_slot_key *below, const struct wire_slot_key *above)
{
	return !is_top(below) && below->parent == above->layer &&
	       (above->layer >= WIRE_LAYER_XLATOR || below->parent_sub == above->sub);
}

/* Xlators in the order of their graph, those of former graphs after them, fixed layers last. */
static unsigned int sibling_order(const struct model_tgt *t, const struct wire_slot_key *key)
{
	const struct model_known *k = model_graph_layer(&t->graph, key->layer);

	if (key->layer < WIRE_LAYER_XLATOR)
		return 0x20000U + key->layer;
	return k && k->current ? k->order : 0x10000U + key->layer - WIRE_LAYER_XLATOR;
}

static int compare_rows(const void *pa, const void *pb)
{
	const struct tree_row *a = pa, *b = pb;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	if (a->key->sub != b->key->sub)
		return a->key->sub < b->key->sub ? -1 : 1;
	if (a->key->parent != b->key->parent)
		return a->key->parent < b->key->parent ? -1 : 1;
	return (int)a->key->parent_sub - (int)b->key->parent_sub;
}

/* A slot without passages still has a row where something below it has: it holds the tree together.
 */
static void mark_live(struct tree *tr)
{
	bool changed = true;

	for (size_t i = 0; i < tr->n; i++)
		tr->rows[i].live = tr->rows[i].slot->count.win + tr->rows[i].uncovered->count.win >
				   0;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < tr->n; i++) {
			struct tree_row *above = NULL;

			for (size_t j = 0; tr->rows[i].live && j < tr->n; j++) {
				if (!hangs_under(tr->rows[i].key, tr->rows[j].key))
					continue;
				if (!above || tr->rows[j].live)
					above = &tr->rows[j];
				if (above->live)
					break;
			}
			if (above && !above->live)
				changed = above->live = true;
		}
	}
}

/* ---- names ------------------------------------------------------------- */

static void name_fixed(const struct tree *tr, const struct wire_slot_key *key,
		       struct snap_layer *out)
{
	const struct model_layer *l = &tr->m->layers[key->layer];

	if (!l->title) {
		model_text_set(out->id, sizeof(out->id), "layer-");
		model_text_add_number(out->id, sizeof(out->id), key->layer);
		return;
	}
	model_text_set(out->kind, sizeof(out->kind), l->kind ? l->kind : "");
	model_text_set(out->type, sizeof(out->type), l->title);
	model_text_set(out->id, sizeof(out->id), l->title);
	if (key->sub && key->sub < l->n_subs && l->subs && l->subs[key->sub])
		model_text_set(out->id, sizeof(out->id), l->subs[key->sub]);
}

/*
 * Xlators between the parent and this one wound by tail: they ran in the frame that ends as this
 * xlator's, so the row carries all their names. That some have rows of their own there as well
 * changes nothing: those are other frames, which they kept, or which were split.
 */
static void name_group(const struct tree *tr, const struct wire_slot_key *key,
		       struct snap_layer *out)
{
	const struct model_graph *g = &tr->t->graph;
	unsigned int from = key->parent - WIRE_LAYER_XLATOR, to = key->layer - WIRE_LAYER_XLATOR;
	unsigned int n = 0;

	if (!model_graph_path(g, from, to, tr->prev, tr->queue)) {
		model_text_set(out->reason, sizeof(out->reason), "the graph has no way down from ");
		model_text_add(out->reason, sizeof(out->reason), g->known[from].id);
		return;
	}
	for (unsigned int k = tr->prev[to]; from != to && k != from; k = tr->prev[k])
		tr->queue[n++] = k;
	if (!n)
		return;
	out->id[0] = out->type[0] = '\0';
	while (n > 0) {
		const struct model_known *k = &g->known[tr->queue[--n]];

		model_text_add(out->id, sizeof(out->id), k->id);
		model_text_add(out->id, sizeof(out->id), "+");
		model_text_add(out->type, sizeof(out->type), k->type);
		model_text_add(out->type, sizeof(out->type), "+");
	}
	model_text_add(out->id, sizeof(out->id), g->known[to].id);
	model_text_add(out->type, sizeof(out->type), g->known[to].type);
}

static void name_xlator(const struct tree *tr, const struct wire_slot_key *key,
			struct snap_layer *out)
{
	const struct model_known *k = model_graph_layer(&tr->t->graph, key->layer);

	model_text_set(out->kind, sizeof(out->kind), "xlator");
	if (!k) {
		model_text_set(out->id, sizeof(out->id), "xlator-");
		model_text_add_number(out->id, sizeof(out->id), key->layer);
		model_text_set(out->reason, sizeof(out->reason), "in no graph that was read");
		return;
	}
	model_text_set(out->id, sizeof(out->id), k->id);
	model_text_set(out->type, sizeof(out->type), k->type);
	if (!k->current)
		model_text_set(out->reason, sizeof(out->reason),
			       "of a graph that is no longer in use");
	else if (model_graph_layer(&tr->t->graph, key->parent))
		name_group(tr, key, out);
}

static void name_row(const struct tree *tr, const struct wire_slot_key *key, struct snap_layer *out)
{
	if (key->layer >= WIRE_LAYER_XLATOR)
		name_xlator(tr, key, out);
	else
		name_fixed(tr, key, out);
}

/* ---- rows -------------------------------------------------------------- */

/*
 * Of a request as a whole, and of a span, the programs know both. Below a request's root an error
 * is known by who raised it, which a stack that nobody waits for need not have told; bytes by the
 * calls that moved them, which a client's threads do not make. What was not known of one passage is
 * not known of the sum; and below what may have failed, others may have.
 */
static void set_effects(const struct tree_row *row, const struct snap_layer *above,
			struct snap_layer *out)
{
	const struct model_slot *s = row->slot, *u = row->uncovered;
	const struct wire_slot_key *key = row->key;
	const char *op = gluster_fop_name(key->op);
	bool whole = key->layer < WIRE_LAYER_XLATOR || is_top(key);
	bool request = key->root == WIRE_ROOT_BRICK || key->root == WIRE_ROOT_CLIENT;
	bool data = op && (!strcmp(op, "read") || !strcmp(op, "write"));

	out->errors = s->errors.win + u->errors.win;
	out->bytes = s->bytes.win + u->bytes.win;
	out->has_errors = whole || (request && !s->no_errors.win && !u->no_errors.win && above &&
				    above->has_errors);
	out->has_bytes = whole || (data && key->root == WIRE_ROOT_BRICK && !s->no_bytes.win &&
				   !u->no_bytes.win);
}

static size_t emit_row(struct tree *tr, struct tree_row *row, size_t above, const char *reason)
{
	const struct model_slot *s = row->slot, *u = row->uncovered;
	struct snap_layer *out = &tr->out[tr->n_out];
	struct model_sum incl = { 0 };

	row->done = true;
	name_row(tr, row->key, out);
	if (reason)
		model_text_set(out->reason, sizeof(out->reason), reason);
	if (above != SIZE_MAX) {
		out->depth = tr->out[above].depth + 1;
		model_text_set(out->path, sizeof(out->path), tr->out[above].path);
		model_text_add(out->path, sizeof(out->path), "/");
	}
	model_text_add(out->path, sizeof(out->path), out->id);
	out->count = s->count.win + u->count.win;
	set_effects(row, above == SIZE_MAX ? NULL : &tr->out[above], out);
	out->calls = model_slot_met(s);
	out->has_calls = row->key->layer < WIRE_LAYER_XLATOR && !is_top(row->key);
	model_side_dist(&s->self, s->count.win, &out->self);
	model_sum_add(&incl, &s->incl, s->count.win);
	model_sum_add(&incl, &u->incl, u->count.win);
	model_sum_dist(&incl, &out->incl);
	if (tr->root_incl_ns > 0) {
		out->share_pct.v = 100.0 * (double)s->self.sum.win / tr->root_incl_ns;
		out->share_pct.valid = true;
	}
	return tr->n_out++;
}

/*
 * A row and everything below it. Each slot has one row: where a layer is reached by two ways, what
 * lies below it is not known apart and is shown at the first. That also ends every cycle.
 */
static void emit_tree(struct tree *tr, struct tree_row *row, size_t above, const char *reason)
{
	size_t at = emit_row(tr, row, above, reason);
	bool elsewhere = false;

	for (size_t i = 0; i < tr->n; i++) {
		struct tree_row *below = &tr->rows[i];

		if (!below->live || !hangs_under(below->key, row->key))
			continue;
		if (below->done)
			elsewhere = true;
		else
			emit_tree(tr, below, at, NULL);
	}
	if (elsewhere && tr->n_out == at + 1 && !tr->out[at].reason[0])
		model_text_set(tr->out[at].reason, sizeof(tr->out[at].reason),
			       "what lies below is shown at its first row");
}

static bool parent_has_row(const struct tree *tr, const struct tree_row *row)
{
	for (size_t i = 0; i < tr->n; i++)
		if (tr->rows[i].live && hangs_under(row->key, tr->rows[i].key))
			return true;
	return false;
}

static void emit_orphan(struct tree *tr, struct tree_row *row, size_t root)
{
	struct wire_slot_key parent = { .layer = row->key->parent, .sub = row->key->parent_sub };
	struct snap_layer named = { .id = "" };
	char reason[sizeof(named.reason)];

	if (parent.layer == WIRE_LAYER_UNATTRIBUTED) {
		model_text_set(reason, sizeof(reason), "seen without a caller");
	} else {
		name_row(tr, &parent, &named);
		model_text_set(reason, sizeof(reason), "its caller ");
		model_text_add(reason, sizeof(reason), named.id);
		model_text_add(reason, sizeof(reason), " has no row");
	}
	emit_tree(tr, row, root, reason);
}

/* No request of this operation was seen whole, yet parts of some were: they need a root to hang at.
 */
static size_t emit_missing_root(struct tree *tr, enum wire_root root)
{
	struct wire_slot_key key = { .layer = WIRE_LAYER_XLATOR };
	struct snap_layer *out = &tr->out[tr->n_out];

	if ((root == WIRE_ROOT_BRICK || root == WIRE_ROOT_CLIENT) && tr->t->graph.n_known) {
		name_row(tr, &key, out);
	} else {
		model_text_set(out->id, sizeof(out->id), model_root_name(root));
		model_text_set(out->kind, sizeof(out->kind), "xlator");
	}
	model_text_set(out->path, sizeof(out->path), out->id);
	out->state = SNAP_DERIVED;
	model_text_set(out->reason, sizeof(out->reason),
		       "no request of this operation was seen whole");
	return tr->n_out++;
}

static void emit_all(struct tree *tr, enum wire_root root)
{
	size_t at = SIZE_MAX;

	for (size_t i = 0; i < tr->n; i++) {
		if (!tr->rows[i].live || tr->rows[i].done || !is_top(tr->rows[i].key))
			continue;
		at = tr->n_out;
		emit_tree(tr, &tr->rows[i], SIZE_MAX, NULL);
	}
	/* First those whose caller is missing, then what is left: loops that nothing leads to. */
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < tr->n; i++) {
			struct tree_row *row = &tr->rows[i];

			if (!row->live || row->done || (pass == 0 && parent_has_row(tr, row)))
				continue;
			if (at == SIZE_MAX)
				at = emit_missing_root(tr, root);
			if (pass == 0)
				emit_orphan(tr, row, at);
			else
				emit_tree(tr, row, at, "its callers form a loop");
		}
	}
}

static void free_tree(struct tree *tr)
{
	free(tr->rows);
	free(tr->prev);
	free(tr->queue);
	free(tr->out);
}

static int alloc_tree(struct tree *tr, size_t n_slots)
{
	size_t n_known = tr->t->graph.n_known + 1;

	tr->rows = calloc(n_slots + 1, sizeof(*tr->rows));
	tr->prev = calloc(n_known, sizeof(*tr->prev));
	tr->queue = calloc(n_known, sizeof(*tr->queue));
	return tr->rows && tr->prev && tr->queue ? 0 : -ENOMEM;
}

/* Requests that could not be split have no rows, but they are requests: their root is layer 0. */
static void sum_roots(const struct model_slot *const *slots, size_t n_slots, struct model_sum *incl,
		      struct model_op *op)
{
	uint64_t unattributed_ns = 0, holds = 0, covered;

	for (size_t i = 0; i < n_slots; i++) {
		const struct model_slot *s = slots[i];
		bool uncovered = model_is_uncovered(&s->key);

		if (s->key.layer == WIRE_LAYER_UNATTRIBUTED && !uncovered)
			unattributed_ns += s->self.sum.win;
		if (!model_is_root(&s->key))
			continue;
		model_sum_add(incl, &s->incl, s->count.win);
		if (uncovered) {
			op->op.uncovered += s->count.win;
			op->op.uncovered_ns += (double)s->incl.sum.win;
		}
		op->op.bytes += s->bytes.win;
		op->op.errors += s->errors.win;
		holds += model_slot_met(s);
	}
	op->op.count = incl->count;
	op->total_ns = (double)incl->sum_ns;
	model_sum_dist(incl, &op->op.incl);
	op->op.has_errors = true;
	/* a process's own operation is one span: nothing is left that a layer could claim */
	if (!incl->count || op->root == WIRE_ROOT_LOCAL)
		return;
	covered = incl->count - op->op.uncovered;
	op->op.unattributed_ns.v = covered ? (double)unattributed_ns / (double)covered : 0;
	op->op.unattributed_ns.valid = covered > 0;
	op->op.sum_check_pct.v = 100.0 * (double)holds / (double)incl->count;
	op->op.sum_check_pct.valid = true;
}

/* Sorted by key, the slot of uncovered requests comes right after the other one of its row. */
static void place_slot(struct tree *tr, const struct model_slot *slot)
{
	struct tree_row *last = tr->n ? &tr->rows[tr->n - 1] : NULL, *row = &tr->rows[tr->n];
	bool uncovered = model_is_uncovered(&slot->key);

	if (uncovered && last && last->key->layer == slot->key.layer &&
	    last->key->parent == slot->key.parent) {
		last->uncovered = slot;
		return;
	}
	row->key = &slot->key;
	row->slot = uncovered ? &no_slot : slot;
	row->uncovered = uncovered ? slot : &no_slot;
	row->order = sibling_order(tr->t, &slot->key);
	tr->n++;
}

/* Fills the figures and rows of ret_op; its names, origin and root are the caller's. */
int model_tree_build(const struct model *m, const struct model_tgt *t,
		     const struct model_slot *const *slots, size_t n_slots, struct model_op *ret_op)
{
	struct tree tr = { .m = m, .t = t };
	struct model_sum incl = { 0 };
	size_t n_live = 0;
	int err = alloc_tree(&tr, n_slots);

	if (err)
		goto out_free;
	for (size_t i = 0; i < n_slots; i++)
		if (slots[i]->key.layer != WIRE_LAYER_UNATTRIBUTED)
			place_slot(&tr, slots[i]);
	qsort(tr.rows, tr.n, sizeof(*tr.rows), compare_rows);
	mark_live(&tr);
	for (size_t i = 0; i < tr.n; i++)
		n_live += tr.rows[i].live;
	tr.out = calloc(n_live + 1, sizeof(*tr.out));
	if (!tr.out) {
		err = -ENOMEM;
		goto out_free;
	}
	sum_roots(slots, n_slots, &incl, ret_op);
	tr.root_incl_ns = (double)incl.sum_ns - ret_op->op.uncovered_ns;
	emit_all(&tr, ret_op->root);
	ret_op->op.layers = tr.out;
	ret_op->op.n_layers = tr.n_out;
	tr.out = NULL;
out_free:
	free_tree(&tr);
	return err;
}

int model_name_layer(const struct model *m, unsigned int target, const struct wire_slot_key *key,
		     struct snap_layer *ret_layer)
{
	struct tree tr = { .m = m };
	int err;

	if (target >= WIRE_MAX_TARGETS || !m->targets[target])
		return -ENOENT;
	tr.t = m->targets[target];
	err = alloc_tree(&tr, 0);
	if (!err) {
		memset(ret_layer, 0, sizeof(*ret_layer));
		name_row(&tr, key, ret_layer);
	}
	free_tree(&tr);
	return err;
}
