/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_doctor.c: see sink_doctor.h.
 */
#include "sink_doctor.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "text.h"

#define NAME_COLUMNS  22
#define STATE_COLUMNS 9
#define INDENT        (2 + NAME_COLUMNS + STATE_COLUMNS)

/* ---- text --------------------------------------------------------------- */

static void put_name(FILE *out, const char *name, const struct sink_style *st)
{
	fputs("  ", out);
	if (sink_fmt_width(st, name) < NAME_COLUMNS) {
		sink_fmt_left(out, st, name, NAME_COLUMNS);
		return;
	}
	sink_fmt_text(out, st, name); /* never cut: a line of its own */
	fprintf(out, "\n%*s", 2 + NAME_COLUMNS, "");
}

static void put_row(FILE *out, const struct doctor_row *row, const struct sink_style *st)
{
	struct sink_flow flow;
	bool bad = row->state != DOCTOR_WORKS && !row->optional;

	put_name(out, row->name, st);
	if (row->state == DOCTOR_WORKS) {
		fprintf(out, "%s\n", doctor_state_name(row->state));
		return;
	}
	sink_fmt_colour(out, st, bad ? SINK_HOT : SINK_PLAIN);
	sink_fmt_left(out, st, doctor_state_name(row->state), STATE_COLUMNS);
	sink_fmt_colour(out, st, SINK_PLAIN);
	sink_fmt_flow_resume(&flow, out, st, INDENT, INDENT);
	sink_fmt_flow_words(&flow, row->reason);
	sink_fmt_flow_end(&flow);
	/* of what is not known nothing is known to be lost */
	if (row->state == DOCTOR_UNKNOWN || !row->lost[0])
		return;
	fprintf(out, "%*s", INDENT, "");
	sink_fmt_flow_resume(&flow, out, st, INDENT, INDENT);
	sink_fmt_flow_item(&flow, 0, "lost:");
	sink_fmt_flow_words(&flow, row->lost);
	sink_fmt_flow_end(&flow);
}

static void put_setting(struct sink_flow *flow, const char *name, int value)
{
	if (value == DOCTOR_NOT_KNOWN)
		sink_fmt_flow_item(flow, 3, "%s -", name);
	else
		sink_fmt_flow_item(flow, 3, "%s %d", name, value);
}

static void put_env(FILE *out, const struct doctor_env *env, const struct sink_style *st)
{
	struct sink_flow flow;

	sink_fmt_flow_begin(&flow, out, st, "", 2);
	sink_fmt_flow_item(&flow, 0, "kernel %s %s", env->kernel, env->machine);
	sink_fmt_flow_item(&flow, 3, "BTF %s", env->has_btf ? "yes" : "no");
	sink_fmt_flow_item(&flow, 3, "lockdown %s", env->lockdown[0] ? env->lockdown : "-");
	sink_fmt_flow_item(&flow, 3, "configuration %s",
			   env->config_path[0] ? env->config_path : "-");
	put_setting(&flow, "kernel.unprivileged_bpf_disabled", env->unprivileged_bpf_disabled);
	put_setting(&flow, "kernel.perf_event_paranoid", env->perf_event_paranoid);
	put_setting(&flow, "kernel.yama.ptrace_scope", env->ptrace_scope);
	sink_fmt_flow_end(&flow);
}

static void put_heading(FILE *out, const struct sink_style *st, const char *text)
{
	fputc('\n', out);
	sink_fmt_colour(out, st, SINK_BOLD);
	fputs(text, out);
	sink_fmt_colour(out, st, SINK_PLAIN);
	fputc('\n', out);
}

static void put_section(FILE *out, const struct doctor_report *r, enum doctor_section section,
			const char *heading, const struct sink_style *st)
{
	size_t i;

	put_heading(out, st, heading);
	for (i = 0; i < r->n; i++) {
		if (r->rows[i].section == section)
			put_row(out, &r->rows[i], st);
	}
}

/* Those of a layer that are in that state, on few lines. */
static void put_hooks_of(FILE *out, const struct doctor_report *r, const char *layer,
			 enum doctor_state state, const struct sink_style *st)
{
	struct sink_flow flow;
	size_t i, n = 0;

	for (i = 0; i < r->n; i++) {
		const struct doctor_row *row = &r->rows[i];

		if (row->section != DOCTOR_SECTION_HOOKS || row->state != state ||
		    strcmp(row->used_by, layer) != 0)
			continue;
		if (!n++) {
			put_name(out, layer, st);
			sink_fmt_left(out, st, doctor_state_name(state), STATE_COLUMNS);
			sink_fmt_flow_resume(&flow, out, st, INDENT, INDENT);
		}
		sink_fmt_flow_item(&flow, n > 1 ? 2 : 0, "%s", row->name);
	}
	if (n)
		sink_fmt_flow_end(&flow);
}

/* There are many, and most work: only those that are off have a row each. */
static void put_hooks(FILE *out, const struct doctor_report *r, const struct sink_style *st)
{
	size_t i;

	put_heading(out, st, "hooks of the layers");
	for (i = 0; i < r->n; i++) {
		if (r->rows[i].section != DOCTOR_SECTION_LAYERS)
			continue;
		put_hooks_of(out, r, r->rows[i].name, DOCTOR_WORKS, st);
		put_hooks_of(out, r, r->rows[i].name, DOCTOR_UNKNOWN, st);
	}
	for (i = 0; i < r->n; i++) {
		if (r->rows[i].section == DOCTOR_SECTION_HOOKS && r->rows[i].state == DOCTOR_OFF)
			put_row(out, &r->rows[i], st);
	}
}

static void put_unknown(FILE *out, const struct doctor_report *r, const struct sink_style *st)
{
	struct sink_flow flow;
	size_t i, n = 0;

	for (i = 0; i < r->n; i++)
		n += r->rows[i].state == DOCTOR_UNKNOWN;
	if (!n)
		return;
	fputc('\n', out);
	sink_fmt_flow_begin(&flow, out, st, "", 0);
	sink_fmt_flow_item(&flow, 0, "%zu check%s", n, n > 1 ? "s" : "");
	sink_fmt_flow_words(&flow,
			    "could not be made for want of a capability: run 'bricktop doctor' as "
			    "root to know");
	sink_fmt_flow_end(&flow);
}

int sink_doctor_text(FILE *out, const struct doctor_report *report, const struct sink_style *st)
{
	char heading[64];

	put_env(out, &report->env, st);
	snprintf(heading, sizeof(heading), "layers: %zu of %zu work", report->n_working,
		 report->n_on);
	put_section(out, report, DOCTOR_SECTION_LAYERS, heading, st);
	put_section(out, report, DOCTOR_SECTION_PROGRAMS, "program types", st);
	put_section(out, report, DOCTOR_SECTION_FEATURES, "features", st);
	put_section(out, report, DOCTOR_SECTION_CAPABILITIES, "capabilities", st);
	put_hooks(out, report, st);
	put_unknown(out, report, st);
	return sink_fmt_status(out);
}

/* ---- JSON --------------------------------------------------------------- */

static json_t *clean_json(const char *s)
{
	char clean[1024];

	return json_string(text_sanitize(clean, sizeof(clean), s));
}

static json_t *known_json(int value)
{
	return value == DOCTOR_NOT_KNOWN ? json_null() : json_integer(value);
}

static json_t *text_or_null(const char *s)
{
	return s[0] ? clean_json(s) : json_null();
}

static json_t *row_json(const struct doctor_row *row)
{
	json_t *o = json_pack("{s:o, s:s, s:b, s:o, s:o}", "id", clean_json(row->name), "state",
			      doctor_state_name(row->state), "optional", row->optional, "reason",
			      clean_json(row->reason), "lost", clean_json(row->lost));

	if (o && row->used_by[0] && json_object_set_new(o, "layer", clean_json(row->used_by))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static int add_section(json_t *root, const struct doctor_report *r, enum doctor_section section)
{
	json_t *rows = json_array();
	size_t i;
	int ret = rows ? 0 : -1;

	for (i = 0; i < r->n && !ret; i++) {
		if (r->rows[i].section == section)
			ret = json_array_append_new(rows, row_json(&r->rows[i]));
	}
	if (ret) {
		json_decref(rows);
		return ret;
	}
	return json_object_set_new(root, doctor_section_name(section), rows);
}

static json_t *report_json(const struct doctor_report *r, const char *version)
{
	static const char *const verdicts[] = { "all", "some", "nothing" };
	const struct doctor_env *env = &r->env;
	json_t *root = json_pack("{s:s, s:s, s:o, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o}",
				 "schema", "bricktop/1", "version", version, "kernel",
				 clean_json(env->kernel), "machine", clean_json(env->machine),
				 "verdict", verdicts[r->verdict], "btf", env->has_btf, "lockdown",
				 text_or_null(env->lockdown), "configuration",
				 text_or_null(env->config_path), "unprivileged_bpf_disabled",
				 known_json(env->unprivileged_bpf_disabled), "perf_event_paranoid",
				 known_json(env->perf_event_paranoid), "ptrace_scope",
				 known_json(env->ptrace_scope));
	enum doctor_section section;
	int ret = root ? 0 : -1;

	for (section = 0; section < DOCTOR_SECTIONS && !ret; section++)
		ret = add_section(root, r, section);
	if (!ret)
		return root;
	json_decref(root);
	return NULL;
}

int sink_doctor_json(FILE *out, const struct doctor_report *report, const char *version)
{
	json_t *root = report_json(report, version);
	int ret;

	if (!root)
		return -ENOMEM;
	ret = json_dumpf(root, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	json_decref(root);
	if (ret)
		return errno ? -errno : -EIO;
	fputc('\n', out);
	return sink_fmt_status(out);
}
