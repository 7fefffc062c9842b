// SPDX-License-Identifier: Apache-2.0
/*
 * test_load.c: every program of every BPF object, in each of its variants: the kernel takes those
 * whose hooks and types of programs doctor says are there. Needs root;
 * runs on whatever kernel there is, also on those of the matrix. Runs in the project's root folder.
 */
#include "attach.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "doctor_probe.h"
#include "layers.h"
#include "tap.h"

#define WALK "gluster"

#define MAX_PROGRAMS 64

struct program {
	char section[96], name[64];
	int error;
};

struct load {
	const struct doctor_report *report;
	const char *object;
	struct program program[MAX_PROGRAMS]; /* of that object */
	size_t n, total, loaded;
};

/* The object's layer, the walk, or none (objects of bricktop's own use): its title. */
static const char *layer_of(const struct load *l)
{
	unsigned int i;

	for (i = LAYER_NONE + 1; i < LAYER_COUNT; i++) {
		if (!strcmp(layer_get(i)->object, l->object))
			return layer_get(i)->title;
	}
	return !strcmp(l->object, WALK) ? "walk" : NULL;
}

/* A hook of a layer has a row; the others' hooks are everywhere, if their kind is. */
static const struct doctor_row *find_row(const struct load *l, const char *section)
{
	const char *layer = layer_of(l), *slash = strchr(section, '/');
	size_t i, kind = slash ? (size_t)(slash - section) : strlen(section);

	if (!strncmp(section, "iter/", 5))
		kind = strlen(section); /* iter/task is a kind */
	for (i = 0; i < l->report->n; i++) {
		const struct doctor_row *row = &l->report->rows[i];

		if (layer && row->section == DOCTOR_SECTION_HOOKS && !strcmp(row->used_by, layer) &&
		    !strcmp(row->name, section))
			return row;
		if (!layer && row->section == DOCTOR_SECTION_PROGRAMS &&
		    strlen(row->name) == kind && !strncmp(row->name, section, kind))
			return row;
	}
	return NULL;
}

static int load(const struct load *l, const char *prog)
{
	const struct attach_config config = { .cfg = { .slots = 16,
						       .shards = 1,
						       .dev_rows = WIRE_DEV_ROWS,
						       .dump = 1,
						       .slow = 1,
						       .split_tails = 1 } };
	struct attach *a;
	int ret = attach_new(&config, &a);

	if (ret)
		return ret;
	ret = attach_load_one(a, l->object, prog, NULL);
	attach_free(a);
	return ret;
}

static bool is_same_step(const char *prog, const char *other)
{
	const char *variant = strstr(prog, "__");

	return variant && !strncmp(prog, other, (size_t)(variant - prog) + 2);
}

/* Where an event's arguments changed, the step has a variant for each: one of them must do. */
static bool has_stand_in(const struct load *l, const struct program *p)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		if (!l->program[i].error && is_same_step(p->name, l->program[i].name) &&
		    !strcmp(p->section, l->program[i].section))
			return true;
	}
	return false;
}

static void check_program(struct load *l, const struct program *p)
{
	const struct doctor_row *row = find_row(l, p->section);

	if (!ok(row != NULL, "doctor knows %s of %s", p->section, l->object))
		return;
	l->total++;
	l->loaded += !p->error;
	if (row->state != DOCTOR_WORKS)
		ok(row->reason[0], "%s/%s is off: %s", l->object, p->name, row->reason);
	else if (p->error && has_stand_in(l, p))
		ok(true, "%s/%s has a stand-in", l->object, p->name);
	else
		is_int(p->error, 0, "%s/%s loads", l->object, p->name);
	if (p->error)
		diag("not loaded: %s/%s (%s)", l->object, p->name, p->section);
}

static int add_program(void *arg, const char *section, const char *prog)
{
	bool multi = !strcmp(section, "uprobe") && strstr(prog, "__multi");
	struct load *l = arg;
	struct program *p = &l->program[l->n];

	if (l->n == MAX_PROGRAMS)
		return -1;
	snprintf(p->section, sizeof(p->section), "%s%s", section, multi ? "-multi" : "");
	snprintf(p->name, sizeof(p->name), "%s", prog);
	l->n++;
	return 0;
}

/* All at once, which is quickest; what stands in the way of that is found one by one. */
static void load_object(struct load *l)
{
	bool at_once;
	size_t i;

	l->n = 0;
	is_int(attach_each_program(l->object, add_program, l), 0, "object %s", l->object);
	at_once = !load(l, NULL);
	for (i = 0; i < l->n; i++)
		l->program[i].error = at_once ? 0 : load(l, l->program[i].name);
	for (i = 0; i < l->n; i++)
		check_program(l, &l->program[i]);
}

static void load_all(const struct doctor_report *report)
{
	struct load l = { .report = report };
	char name[64];
	glob_t found;
	size_t i;

	if (glob("bpf/*.bpf.c", 0, NULL, &found))
		exit(1);
	for (i = 0; i < found.gl_pathc; i++) {
		snprintf(name, sizeof(name), "%s", found.gl_pathv[i] + strlen("bpf/"));
		name[strcspn(name, ".")] = '\0';
		l.object = name;
		load_object(&l);
	}
	globfree(&found);
	ok(l.loaded > 10, "enough of them");
	diag("loaded %zu of %zu programs", l.loaded, l.total);
}

int main(void)
{
	struct doctor_report report = { 0 };
	struct doctor_facts facts = { 0 };

	if (geteuid()) {
		skip("BPF programs", "loading them needs root");
		return tap_done();
	}
	if (is_int(doctor_probe(false, &facts), 0, "this kernel was examined") &&
	    is_int(doctor_judge(&facts, &report), 0, "and judged"))
		load_all(&report);
	doctor_report_free(&report);
	doctor_facts_free(&facts);
	return tap_done();
}
