/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_tick.c: the snapshot: window, targets, losses and checks around the operations. Owns a
 * snapshot's memory. Must not know how operations are made.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h"

static void fill_checks(const struct model_tgt *t, struct snap_target *st)
{
	struct snap_checks *c = &st->checks;
	uint64_t failed = t->checks[WIRE_CHECK_FAILED].win;

	c->walked = t->checks[WIRE_CHECK_WALKED].win;
	/* read one after the other: a failure may be seen before its request */
	c->holds = c->walked > failed ? c->walked - failed : 0;
	c->outside = t->checks[WIRE_CHECK_OUTSIDE].win;
	c->negative = t->checks[WIRE_CHECK_NEGATIVE].win;
	c->unsplit = t->checks[WIRE_CHECK_UNSPLIT].win;
	c->open = t->checks[WIRE_CHECK_OPEN].win;
	c->orphan = t->checks[WIRE_CHECK_ORPHAN].win;
	c->copies = t->checks[WIRE_CHECK_COPIES].win;
	if (!c->walked)
		return;
	st->sum_check_pct.v = 100.0 * (double)c->holds / (double)c->walked;
	st->sum_check_pct.valid = true;
}

static void fill_lost(const struct model_losses *from, struct snap_lost *l)
{
	const struct model_counter *n = from->losses;

	l->map_full = n[WIRE_LOST_MAP_FULL].win;
	l->ring_full = n[WIRE_LOST_RING_FULL].win;
	l->unpaired = n[WIRE_LOST_UNPAIRED].win;
	l->unreadable = n[WIRE_LOST_UNREADABLE].win;
	l->absurd = n[WIRE_LOST_ABSURD].win;
	l->ledger = n[WIRE_LOST_LEDGER].win;
	l->skipped = n[WIRE_LOST_SKIPPED].win;
	l->storage_busy = n[WIRE_LOST_STORAGE].win;
	l->frames = n[WIRE_LOST_FRAMES].win;
	l->order = n[WIRE_LOST_ORDER].win;
	l->unknown_xlator = n[WIRE_LOST_UNKNOWN].win;
	l->marks = n[WIRE_LOST_MARKS].win;
	l->wakes = n[WIRE_LOST_WAKES].win;
	l->begun_before = n[WIRE_LOST_BEFORE].win;
	l->recursion = from->recursion.win;
	l->has_recursion = from->has_recursion;
	l->uprobe_missed = from->uprobe_missed.win;
	l->has_uprobe_missed = from->has_uprobe_missed;
	l->total = l->recursion + l->uprobe_missed - l->begun_before;
	for (unsigned int i = 0; i < WIRE_LOSSES; i++)
		l->total += n[i].win;
}

/* When it ended, from the window's begin. */
static struct snap_num gone_after(const struct model *m, const struct model_tgt *t)
{
	struct snap_num secs = { 0 };

	secs.valid = t->gone && m->window_open && t->gone_ns >= m->start_mono_ns;
	if (secs.valid)
		secs.v = (double)(t->gone_ns - m->start_mono_ns) / 1e9;
	return secs;
}

static void fill_target(const struct model *m, const struct model_tgt *t, struct snap_target *st)
{
	model_text_set(st->kind, sizeof(st->kind), t->kind);
	model_text_set(st->name, sizeof(st->name), t->name);
	model_text_set(st->device, sizeof(st->device), t->device);
	model_text_set(st->fstype, sizeof(st->fstype), t->fstype);
	model_text_set(st->version, sizeof(st->version), t->version);
	model_text_set(st->layout, sizeof(st->layout), t->layout);
	st->pid = t->pid;
	st->n_procs = t->n_procs;
	st->gone = t->gone;
	st->gone_after_secs = gone_after(m, t);
	st->restarts = t->restarts;
	st->cost = t->cost;
	st->oldest = t->oldest;
	st->probes = t->probes;
	fill_checks(t, st);
	fill_lost(&t->lost, &st->lost);
}

int model_place(const struct model *m, int target)
{
	int place = 0;

	if (target < 0 || target >= WIRE_MAX_TARGETS || !m->targets[target])
		return SNAP_ALL_TARGETS;
	for (int i = 0; i < target; i++)
		place += m->targets[i] != NULL;
	return place;
}

static int fill_snapshot(const struct model *m, const struct model_view *view,
			 struct snapshot *snap)
{
	size_t n = 0;

	for (unsigned int i = 0; i < WIRE_MAX_TARGETS; i++)
		n += m->targets[i] != NULL;
	snap->targets = calloc(n + 1, sizeof(*snap->targets));
	snap->off = calloc(m->n_off + 1, sizeof(*snap->off));
	if (!snap->targets || !snap->off)
		return -ENOMEM;
	memcpy(snap->off, m->off, m->n_off * sizeof(*snap->off));
	snap->n_off = m->n_off;
	for (size_t i = 0; i < m->n_off; i++)
		snap->off[i].target = model_place(m, m->off[i].target);
	for (unsigned int i = 0; i < WIRE_MAX_TARGETS; i++) {
		struct snap_target *st;
		int err;

		if (!m->targets[i])
			continue;
		/* half-built it is freed with the rest */
		st = &snap->targets[snap->n_targets++];
		fill_target(m, m->targets[i], st);
		st->number = i;
		if (view->memory_only)
			st->probes.valid = false;
		if (view->lifetime)
			st->cost = (struct snap_cost){ 0 }; /* bricktop was not there */
		err = model_ops_build(m, i, view, snap->window_secs, st);
		if (!err && snap->window_secs > 0)
			err = model_threads_build(&m->targets[i]->threads, m->start_mono_ns,
						  snap->window_secs, st);
		if (!err && !view->memory_only)
			err = model_uses_build(m, i, st);
		if (err)
			return err;
	}
	return 0;
}

int model_tick(const struct model *m, uint64_t mono_ns, const struct model_view *view,
	       struct snapshot **ret_snap)
{
	struct snapshot *snap = calloc(1, sizeof(*snap));
	int err;

	if (!snap)
		return -ENOMEM;
	snap->mono_ns = mono_ns;
	snap->wall_ns = m->start_wall_ns;
	snap->memory_only = view->memory_only;
	fill_lost(&m->unassigned, &snap->lost_unassigned);
	fill_lost(&m->device_losses, &snap->lost_devices);
	if (m->window_open && !view->lifetime && mono_ns > m->start_mono_ns)
		snap->window_secs = (double)(mono_ns - m->start_mono_ns) / 1e9;
	err = fill_snapshot(m, view, snap);
	if (!err && !view->memory_only)
		err = model_devices_build(m, snap->window_secs, snap);
	if (err) {
		snapshot_free(snap);
		return err;
	}
	*ret_snap = snap;
	return 0;
}

void snapshot_free(struct snapshot *snap)
{
	if (!snap)
		return;
	for (size_t i = 0; i < snap->n_targets; i++) {
		for (size_t j = 0; j < snap->targets[i].n_ops; j++)
			free(snap->targets[i].ops[j].layers);
		for (size_t j = 0; j < snap->targets[i].slow.n_ops; j++)
			free(snap->targets[i].slow.ops[j].rows);
		free(snap->targets[i].slow.ops);
		free(snap->targets[i].slow.limits);
		free(snap->targets[i].ops);
		free(snap->targets[i].threads);
		free(snap->targets[i].pools);
		model_uses_free_snapshot(&snap->targets[i]);
	}
	model_devices_free_snapshot(snap);
	free(snap->targets);
	free(snap->off);
	free(snap);
}
