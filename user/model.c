/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c: the model's life and everything that is fed to it. Owns the table of slots, the targets'
 * scalars and where a window begins. Pure: no I/O, no clock, no globals. Must not know how rows are
 * made of what is kept here (model_tree.c, model_memory.c, model_ops.c).
 */
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"
#include "text.h"

#define FIRST_SLOT_CAP 256

int model_new(const struct model_layer *layers, size_t n_layers, struct model **ret_m)
{
	struct model *m;

	for (size_t i = 0; i < n_layers; i++)
		if (!layers[i].layer || layers[i].layer >= MODEL_FIXED_LAYERS || !layers[i].title)
			return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->slots = calloc(FIRST_SLOT_CAP, sizeof(struct model_slot *));
	if (!m->slots) {
		free(m);
		return -ENOMEM;
	}
	m->slot_cap = FIRST_SLOT_CAP;
	for (size_t i = 0; i < n_layers; i++)
		m->layers[layers[i].layer] = layers[i];
	*ret_m = m;
	return 0;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->slot_cap; i++)
		model_slot_free(m->slots[i]);
	free(m->slots);
	model_devices_free(m->devices);
	for (unsigned int i = 0; i < 2; i++)
		model_uses_free(m->uses[i]);
	for (unsigned int i = 0; i < WIRE_MAX_TARGETS; i++) {
		if (!m->targets[i])
			continue;
		model_graph_free(&m->targets[i]->graph);
		free(m->targets[i]->threads.rows);
		free(m->targets[i]);
	}
	free(m);
}

static struct model_tgt *find_target(struct model *m, unsigned int target)
{
	return target < WIRE_MAX_TARGETS ? m->targets[target] : NULL;
}

/* The requests of a process that is gone will not complete: they are in no later count. */
static void drop_in_flight(struct model_tgt *t)
{
	for (unsigned int fop = 0; fop < GLUSTER_MAX_FOP; fop++) {
		t->in_flight[fop].at_start -= t->in_flight[fop].now;
		t->in_flight[fop].now = 0;
		t->in_flight[fop].oldest_ns = 0;
	}
}

int model_set_target(struct model *m, unsigned int idx, const struct model_target *t,
		     __u16 *ret_layers)
{
	struct model_tgt *old, *tgt;
	bool new_process;
	int err;

	if (idx >= WIRE_MAX_TARGETS)
		return -EINVAL;
	old = m->targets[idx];
	tgt = old ? old : calloc(1, sizeof(*tgt));
	if (!tgt)
		return -ENOMEM;
	new_process = old && old->pid != t->pid;
	err = model_graph_set(&tgt->graph, t->nodes, t->n_nodes, new_process, ret_layers);
	if (err) {
		if (!old)
			free(tgt);
		return err;
	}
	if (new_process)
		drop_in_flight(tgt);
	model_text_set(tgt->kind, sizeof(tgt->kind), t->kind);
	model_text_set(tgt->name, sizeof(tgt->name), t->name);
	model_text_set(tgt->device, sizeof(tgt->device), t->device);
	model_text_set(tgt->fstype, sizeof(tgt->fstype), t->fstype);
	model_text_set(tgt->version, sizeof(tgt->version), t->version);
	model_text_set(tgt->layout, sizeof(tgt->layout), t->layout);
	tgt->pid = t->pid;
	tgt->n_procs = t->n_procs;
	tgt->root = t->root;
	m->targets[idx] = tgt;
	return 0;
}

size_t model_hash(const void *key, size_t size)
{
	const unsigned char *p = key;
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * 16777619U;
	return h;
}

/* The place of a key: its slot, or the hole where it belongs. The table is never full. */
static struct model_slot **find_slot(struct model_slot **slots, size_t cap,
				     const struct wire_slot_key *key)
{
	size_t at = model_hash(key, sizeof(*key)) & (cap - 1);

	while (slots[at] && memcmp(&slots[at]->key, key, sizeof(*key)) != 0)
		at = (at + 1) & (cap - 1);
	return &slots[at];
}

static int grow_slots(struct model *m)
{
	size_t cap = m->slot_cap * 2;
	struct model_slot **grown = calloc(cap, sizeof(struct model_slot *));

	if (!grown)
		return -ENOMEM;
	for (size_t i = 0; i < m->slot_cap; i++)
		if (m->slots[i])
			*find_slot(grown, cap, &m->slots[i]->key) = m->slots[i];
	free(m->slots);
	m->slots = grown;
	m->slot_cap = cap;
	return 0;
}

static int add_slot(struct model *m, struct model_tgt *t, const struct wire_slot_key *key,
		    const struct wire_slot *sum)
{
	struct model_slot *s;
	int err = 0;

	if (t->n_slots >= MODEL_MAX_TARGET_SLOTS)
		return -ENOSPC;
	if ((m->n_slots + 1) * 4 > m->slot_cap * 3)
		err = grow_slots(m);
	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->key = *key;
	err = model_slot_fold(s, sum);
	if (err) {
		model_slot_free(s);
		return err;
	}
	*find_slot(m->slots, m->slot_cap, key) = s;
	m->n_slots++;
	t->n_slots++;
	return 0;
}

int model_feed_slot(struct model *m, const struct wire_slot_key *key, const struct wire_slot *sum)
{
	struct model_tgt *t = find_target(m, key->target);
	struct model_slot *s;

	if (!t)
		return -ENOENT;
	if (key->root >= WIRE_ROOTS || key->origin > WIRE_ORIGIN_INTERNAL)
		return -EINVAL;
	s = *find_slot(m->slots, m->slot_cap, key);
	return s ? model_slot_fold(s, sum) : add_slot(m, t, key, sum);
}

int model_feed_stats(struct model *m, unsigned int target, unsigned int node, unsigned int fop,
		     const struct model_stat *stat)
{
	struct model_tgt *t = find_target(m, target);

	return t ? model_graph_feed(&t->graph, node, fop, stat) : -ENOENT;
}

bool model_requests(const struct model *m, unsigned int target, unsigned int fop,
		    uint64_t *ret_calls)
{
	const struct model_tgt *t = target < WIRE_MAX_TARGETS ? m->targets[target] : NULL;

	return t && model_memory_calls(t, fop, true, ret_calls);
}

bool model_requests_node(const struct model *m, unsigned int target, unsigned int *ret_node)
{
	const struct model_tgt *t = target < WIRE_MAX_TARGETS ? m->targets[target] : NULL;
	const struct model_known *k = t ? model_memory_first(&t->graph) : NULL;

	if (k)
		*ret_node = k->order;
	return k != NULL;
}

void model_feed_in_flight(struct model *m, unsigned int target, unsigned int fop, unsigned int n,
			  uint64_t oldest_ns)
{
	struct model_tgt *t = find_target(m, target);
	struct model_in_flight *f;

	if (!t || fop >= GLUSTER_MAX_FOP)
		return;
	f = &t->in_flight[fop];
	if (!f->fed)
		f->at_start = m->window_open ? 0 : n;
	f->fed = true;
	f->unknown = false;
	t->late_calls[fop] = 0;
	f->now = n;
	f->oldest_ns = n ? oldest_ns : 0;
	f->sum += n;
	f->samples++;
}

void model_feed_in_flight_unknown(struct model *m, unsigned int target)
{
	struct model_tgt *t = find_target(m, target);

	for (unsigned int fop = 0; t && fop < GLUSTER_MAX_FOP; fop++)
		t->in_flight[fop].unknown = true;
}

void model_feed_readable(struct model *m, unsigned int target, bool readable)
{
	struct model_tgt *t = find_target(m, target);

	if (!t)
		return;
	t->unreadable = !readable;
	if (readable)
		return;
	model_feed_in_flight_unknown(m, target);
	t->oldest.valid = false;
}

void model_feed_late(struct model *m, unsigned int target, unsigned int fop, uint64_t calls)
{
	struct model_tgt *t = find_target(m, target);
	uint64_t before = 0;

	if (!t || fop >= GLUSTER_MAX_FOP)
		return;
	/* a reset in between: nothing can be said of it */
	if (!model_memory_calls(t, fop, true, &before) || calls < before)
		calls = before;
	t->late_calls[fop] = calls - before;
}

void model_feed_oldest(struct model *m, unsigned int target, const struct snap_oldest *oldest)
{
	struct model_tgt *t = find_target(m, target);

	if (t)
		t->oldest = *oldest;
}

void model_feed_probes(struct model *m, unsigned int target, const struct snap_probes *probes)
{
	struct model_tgt *t = find_target(m, target);

	if (t)
		t->probes = *probes;
}

static void fold_growing(struct model_counter *c, uint64_t now)
{
	model_counter_fold(c, now, now < c->last);
}

void model_feed_checks(struct model *m, unsigned int target, const __u64 checks[WIRE_CHECKS])
{
	struct model_tgt *t = find_target(m, target);

	for (unsigned int i = 0; t && i < WIRE_CHECKS; i++)
		fold_growing(&t->checks[i], checks[i]);
}

void model_feed_lost(struct model *m, unsigned int target, const __u64 losses[WIRE_LOSSES],
		     uint64_t recursion, uint64_t uprobe_missed)
{
	struct model_tgt *t = find_target(m, target);
	struct model_losses *l = t                          ? &t->lost :
				 target == MODEL_UNASSIGNED ? &m->unassigned :
				 target == MODEL_DEVICES    ? &m->device_losses :
							      NULL;

	if (!l)
		return;
	for (unsigned int i = 0; i < WIRE_LOSSES; i++)
		fold_growing(&l->losses[i], losses[i]);
	l->has_recursion = recursion != MODEL_NOT_COUNTED;
	if (l->has_recursion)
		fold_growing(&l->recursion, recursion);
	l->has_uprobe_missed = uprobe_missed != MODEL_NOT_COUNTED;
	if (l->has_uprobe_missed)
		fold_growing(&l->uprobe_missed, uprobe_missed);
}

void model_feed_cost(struct model *m, unsigned int target, const struct snap_cost *cost)
{
	struct model_tgt *t = find_target(m, target);

	if (t)
		t->cost = *cost;
}

void model_feed_gone(struct model *m, unsigned int target, uint64_t gone_ns, unsigned int restarts)
{
	struct model_tgt *t = find_target(m, target);

	if (!t)
		return;
	t->gone = gone_ns != 0;
	t->gone_ns = gone_ns;
	t->restarts = restarts;
	if (!gone_ns)
		return;
	/* its requests went with it */
	drop_in_flight(t);
	model_threads_gone(&t->threads);
	t->oldest = (struct snap_oldest){ .valid = false };
}

static bool is_same_off(const struct snap_off *a, const struct snap_off *b)
{
	return a->target == b->target && !strcmp(a->what, b->what);
}

int model_feed_off_target(struct model *m, int target, const char *what, const char *reason)
{
	struct snap_off off = { .target = target };
	size_t i = 0;

	/* paths and xlators' names of other processes may be in it */
	text_sanitize(off.what, sizeof(off.what), what);
	text_sanitize(off.reason, sizeof(off.reason), reason);
	while (i < m->n_off && !is_same_off(&m->off[i], &off))
		i++;
	if (i == MODEL_MAX_OFF)
		return -ENOSPC;
	m->off[i] = off;
	if (i == m->n_off)
		m->n_off++;
	return 0;
}

int model_feed_off(struct model *m, const char *what, const char *reason)
{
	return model_feed_off_target(m, SNAP_ALL_TARGETS, what, reason);
}

void model_clear_off(struct model *m, int target, const char *what)
{
	struct snap_off off = { .target = target };
	size_t i = 0;

	text_sanitize(off.what, sizeof(off.what), what);
	while (i < m->n_off && !is_same_off(&m->off[i], &off))
		i++;
	if (i == m->n_off)
		return;
	memmove(&m->off[i], &m->off[i + 1], (m->n_off - i - 1) * sizeof(off));
	m->n_off--;
}

static void start_losses(struct model_losses *l)
{
	for (unsigned int i = 0; i < WIRE_LOSSES; i++)
		l->losses[i].win = 0;
	l->recursion.win = l->uprobe_missed.win = 0;
}

static void start_target(struct model_tgt *t)
{
	model_graph_start(&t->graph);
	for (unsigned int i = 0; i < WIRE_CHECKS; i++)
		t->checks[i].win = 0;
	start_losses(&t->lost);
	t->start_unreadable = t->unreadable;
	for (unsigned int fop = 0; fop < GLUSTER_MAX_FOP; fop++) {
		t->in_flight[fop].at_start = t->in_flight[fop].now;
		t->in_flight[fop].start_unknown = t->in_flight[fop].unknown;
		t->in_flight[fop].sum = t->in_flight[fop].samples = 0;
	}
}

void model_start_window(struct model *m, uint64_t mono_ns, int64_t wall_ns)
{
	m->window_open = true;
	m->start_mono_ns = mono_ns;
	m->start_wall_ns = wall_ns;
	start_losses(&m->unassigned);
	start_losses(&m->device_losses);
	model_devices_start(m->devices);
	for (unsigned int i = 0; i < 2; i++)
		model_uses_start(m->uses[i]);
	for (size_t i = 0; i < m->slot_cap; i++)
		if (m->slots[i])
			model_slot_start(m->slots[i]);
	for (unsigned int i = 0; i < WIRE_MAX_TARGETS; i++)
		if (m->targets[i]) {
			start_target(m->targets[i]);
			model_threads_start(&m->targets[i]->threads, mono_ns);
		}
}
