/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c: see doctor.h. The rows of a report: what was tried, capabilities, hooks, and layers,
 * which stand or fall with the others.
 */
#include "doctor_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the walk cannot be without; it can do with either kind of uprobe. */
static const enum doctor_thing walk_needs[] = {
	DOCTOR_READING, DOCTOR_BPF_LOOP, DOCTOR_COOKIES,
	DOCTOR_RING,    DOCTOR_STORAGE,  DOCTOR_MMAP_ARRAYS
};

/* ---- rows -------------------------------------------------------------- */

/* Room for one more was made by doctor_judge(). */
static struct doctor_row *add_row(struct doctor_report *report, enum doctor_section section,
				  const char *name)
{
	struct doctor_row *row = &report->rows[report->n++];

	row->section = section;
	snprintf(row->name, sizeof(row->name), "%s", name);
	return row;
}

static void set_lost(struct doctor_row *row, const char *lost)
{
	if (row->state != DOCTOR_WORKS && lost)
		snprintf(row->lost, sizeof(row->lost), "%s", lost);
}

static void add_things(const struct doctor_facts *f, enum doctor_section section,
		       struct doctor_report *report)
{
	struct doctor_row *row;
	size_t i;

	for (i = 0; i < DOCTOR_THINGS; i++) {
		if (doctor_thing_get(i)->section != section)
			continue;
		row = add_row(report, section, doctor_thing_get(i)->name);
		row->optional = doctor_thing_get(i)->optional;
		row->state = doctor_judge_thing(&f->env, doctor_thing_get(i), &f->things[i],
						row->reason, sizeof(row->reason));
		set_lost(row, doctor_thing_get(i)->lost);
	}
}

static void add_capabilities(const struct doctor_facts *f, struct doctor_report *report)
{
	struct doctor_row *row;
	uint64_t missing;
	size_t i;

	for (i = 0; i < DOCTOR_CAPABILITIES; i++) {
		row = add_row(report, DOCTOR_SECTION_CAPABILITIES, doctor_capability_get(i)->name);
		missing =
			doctor_missing_caps(&f->env, DOCTOR_BIT(doctor_capability_get(i)->number));
		row->optional = doctor_capability_get(i)->optional;
		row->state = missing ? DOCTOR_OFF : DOCTOR_WORKS;
		if (missing)
			doctor_tell_caps(&f->env, missing, row->reason, sizeof(row->reason));
		set_lost(row, doctor_capability_get(i)->lost);
	}
}

/* ---- hooks ------------------------------------------------------------- */

/* What kind of program a section stands for; DOCTOR_THINGS: none that we know. */
static enum doctor_thing thing_of(const char *section)
{
	static const struct {
		const char *prefix;
		enum doctor_thing thing;
	} kinds[] = {
		{ "tp_btf/", DOCTOR_TP_BTF },
		{ "raw_tp/", DOCTOR_RAW_TP },
		{ "uprobe-multi", DOCTOR_UPROBE_MULTI },
		{ "uprobe", DOCTOR_UPROBE_PERF },
		{ "fentry/", DOCTOR_FENTRY },
		{ "fexit/", DOCTOR_FENTRY },
		{ "kprobe/", DOCTOR_KPROBE },
		{ "kretprobe/", DOCTOR_KPROBE },
		{ "iter/task", DOCTOR_ITER_TASK },
		{ "tp/", DOCTOR_TP },
		{ "tracepoint/", DOCTOR_TP },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strncmp(section, kinds[i].prefix, strlen(kinds[i].prefix)))
			return kinds[i].thing;
	}
	return DOCTOR_THINGS;
}

static enum doctor_state judge_hook(const struct doctor_facts *f, const struct doctor_hook *h,
				    char *buf, size_t size)
{
	enum doctor_thing thing = thing_of(h->section);

	buf[0] = '\0';
	if (h->found == 0) {
		doctor_tell(buf, size, "neither this kernel nor one of its loaded modules has it");
		return DOCTOR_OFF;
	}
	if (thing == DOCTOR_THINGS) {
		doctor_tell(buf, size, "not tried");
		return DOCTOR_UNKNOWN;
	}
	return doctor_judge_thing(&f->env, doctor_thing_get(thing), &f->things[thing], buf, size);
}

static bool is_same_step(const char *program, const char *other)
{
	const char *variant = strstr(program, "__");

	return variant ? !strncmp(program, other, (size_t)(variant - program) + 2) :
			 !strcmp(program, other);
}

/* A hook of the layer for whose step there is no variant that works; NULL: none. */
static const struct doctor_hook *find_missing(const struct doctor_facts *f, unsigned int layer)
{
	const struct doctor_hook *h, *other;
	char reason[384];
	size_t i, k;

	for (i = 0; i < f->n_hooks; i++) {
		bool any = false;

		h = &f->hooks[i];
		for (k = 0; k < f->n_hooks && h->layer == layer && !any; k++) {
			other = &f->hooks[k];
			any = other->layer == layer && is_same_step(h->program, other->program) &&
			      judge_hook(f, other, reason, sizeof(reason)) == DOCTOR_WORKS;
		}
		if (h->layer == layer && !any)
			return h;
	}
	return NULL;
}

static bool is_first_of_name(const struct doctor_facts *f, size_t at)
{
	size_t i;

	for (i = 0; i < at; i++) {
		if (f->hooks[i].layer == f->hooks[at].layer &&
		    !strcmp(f->hooks[i].section, f->hooks[at].section))
			return false;
	}
	return true;
}

static void add_hooks(const struct doctor_facts *f, struct doctor_report *report)
{
	const struct doctor_layer *layer;
	struct doctor_row *row;
	char lost[96];
	size_t i;

	for (i = 0; i < f->n_hooks; i++) {
		if (!is_first_of_name(f, i) || f->hooks[i].layer >= f->n_layers)
			continue;
		layer = &f->layers[f->hooks[i].layer];
		row = add_row(report, DOCTOR_SECTION_HOOKS, f->hooks[i].section);
		snprintf(row->used_by, sizeof(row->used_by), "%s", layer->title);
		row->state = judge_hook(f, &f->hooks[i], row->reason, sizeof(row->reason));
		/* another variant of its step has taken its place */
		row->optional = layer->result.tried && !layer->result.error;
		snprintf(lost, sizeof(lost), "the layer %s", layer->title);
		set_lost(row, row->optional ? "nothing: its step has another variant" : lost);
	}
}

/* ---- layers ------------------------------------------------------------ */

/* Who cannot read a process cannot hang anything on it; tables of the host stand alone. */
static bool works(const struct doctor_facts *f, size_t number)
{
	const struct doctor_layer *l = &f->layers[number];

	if (number >= DOCTOR_FIRST_ROW && !l->is_host && !works(f, DOCTOR_WALK))
		return false;
	if (number == DOCTOR_WALK && !works(f, DOCTOR_MEMORY))
		return false;
	return l->result.tried && !l->result.error;
}

/* The needs that are not met, with their reasons. */
static void tell_needs(const struct doctor_facts *f, const enum doctor_thing *needs, size_t n,
		       char *buf, size_t size)
{
	char reason[384], line[256];
	size_t i;

	for (i = 0; i < n; i++) {
		const struct doctor_thing_row *t = doctor_thing_get(needs[i]);

		if (doctor_judge_thing(&f->env, t, &f->things[needs[i]], reason, sizeof(reason)) ==
		    DOCTOR_WORKS)
			continue;
		snprintf(line, sizeof(line), "%s: %.200s", t->name, reason);
		doctor_tell(buf, size, "%s", line);
	}
}

static void tell_memory(const struct doctor_facts *f, char *buf, size_t size)
{
	const struct doctor_env *env = &f->env;
	uint64_t missing = doctor_missing_caps(env, DOCTOR_BIT(DOCTOR_CAP_SYS_PTRACE));

	doctor_tell_proc(env, buf, size);
	if (env->ptrace_scope == 3)
		doctor_tell(buf, size,
			    "kernel.yama.ptrace_scope is 3: no process may read another");
	if (missing)
		doctor_tell_caps(env, missing, buf, size);
}

static void tell_walk(const struct doctor_facts *f, char *buf, size_t size)
{
	static const enum doctor_thing uprobes[] = { DOCTOR_UPROBE_MULTI, DOCTOR_UPROBE_PERF };
	uint64_t missing = doctor_missing_caps(&f->env, DOCTOR_PROBE_CAPS);
	const struct doctor_thing_row *loop =
		doctor_thing_get(DOCTOR_BPF_LOOP); /* needs what all of them need */
	const struct doctor_try *tries = f->things;

	if (f->layers[DOCTOR_MEMORY].result.error)
		doctor_tell(buf, size, "memory is off");
	if (missing) {
		doctor_tell_static(&f->env, loop, buf, size);
		doctor_tell_caps(&f->env, missing, buf, size);
		return;
	}
	tell_needs(f, walk_needs, sizeof(walk_needs) / sizeof(walk_needs[0]), buf, size);
	if (tries[DOCTOR_UPROBE_MULTI].error && tries[DOCTOR_UPROBE_PERF].error)
		tell_needs(f, uprobes, 2, buf, size);
}

/* A row of layers.def: it has to do with one kind of program, and hooks of its own. */
static void tell_row(const struct doctor_facts *f, unsigned int number, char *buf, size_t size)
{
	const struct doctor_hook *h = find_missing(f, number);
	char reason[384], line[256];

	if (!f->layers[number].is_host && !works(f, DOCTOR_WALK))
		doctor_tell(buf, size, "the walk is off");
	if (!h)
		return;
	judge_hook(f, h, reason, sizeof(reason));
	snprintf(line, sizeof(line), "%.90s: %.150s", h->section, reason);
	doctor_tell(buf, size, "%s", line);
}

static void set_layer_lost(struct doctor_row *row, const struct doctor_layer *l, size_t number)
{
	char lost[256];

	if (number == DOCTOR_MEMORY)
		set_lost(row, "everything: what is to be measured is in other processes' memory");
	else if (number == DOCTOR_WALK)
		set_lost(row, "self times and percentiles: only the means of the processes' own "
			      "statistics remain");
	else if (l->is_host)
		set_lost(row, "its table");
	else {
		snprintf(lost, sizeof(lost), "its row: its time stays in %s",
			 l->parent && strcmp(l->parent, "root") != 0 ? l->parent :
								       "the layer above it");
		set_lost(row, lost);
	}
}

static void add_layers(const struct doctor_facts *f, struct doctor_report *report)
{
	struct doctor_row *row;
	size_t i;

	for (i = 0; i < f->n_layers; i++) {
		const struct doctor_layer *l = &f->layers[i];

		row = add_row(report, DOCTOR_SECTION_LAYERS, l->title);
		row->optional = !l->on;
		row->state = works(f, i) ? DOCTOR_WORKS : DOCTOR_OFF;
		report->n_on += l->on;
		report->n_working += l->on && row->state == DOCTOR_WORKS;
		if (row->state == DOCTOR_WORKS)
			continue;
		if (i == DOCTOR_MEMORY)
			tell_memory(f, row->reason, sizeof(row->reason));
		else if (i == DOCTOR_WALK)
			tell_walk(f, row->reason, sizeof(row->reason));
		else
			tell_row(f, (unsigned int)i, row->reason, sizeof(row->reason));
		if (!row->reason[0])
			doctor_tell(row->reason, sizeof(row->reason), "%s",
				    l->text[0] ? l->text : "it cannot be attached");
		set_layer_lost(row, l, i);
	}
}

int doctor_judge(const struct doctor_facts *facts, struct doctor_report *ret_report)
{
	size_t max = facts->n_layers + DOCTOR_THINGS + DOCTOR_CAPABILITIES + facts->n_hooks;
	struct doctor_report report = { .env = facts->env };

	report.rows = calloc(max, sizeof(*report.rows));
	if (!report.rows)
		return -ENOMEM;
	add_layers(facts, &report);
	add_things(facts, DOCTOR_SECTION_PROGRAMS, &report);
	add_things(facts, DOCTOR_SECTION_FEATURES, &report);
	add_capabilities(facts, &report);
	add_hooks(facts, &report);
	report.verdict = report.n_working == report.n_on ? DOCTOR_ALL :
			 report.n_working                ? DOCTOR_SOME :
							   DOCTOR_NOTHING;
	*ret_report = report;
	return 0;
}

void doctor_report_free(struct doctor_report *report)
{
	free(report->rows);
	*report = (struct doctor_report){ 0 };
}
