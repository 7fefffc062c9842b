/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_query.c: what the commands that only read print: the list of targets, the requests in
 * flight. See sink_text.h.
 */
#include "sink_text.h"

#include <inttypes.h>
#include <string.h>

#include "text.h"

/* ---- the list of targets ----------------------------------------------- */

static const char *list_name(const struct target *t, char *buf, size_t size)
{
	bool volume = t->volume[0] && strcmp(t->volume, "-") != 0;

	if (t->kind == TARGET_BRICK)
		snprintf(buf, size, "%s:%s", t->volume, t->path);
	else if (t->kind == TARGET_CLIENT)
		snprintf(buf, size, "%s%s%s", t->volume, t->path[0] ? " on " : "", t->path);
	else if (t->kind == TARGET_DEVICE)
		snprintf(buf, size, "%s", t->device);
	else
		snprintf(buf, size, "%s", t->path[0] ? t->path : volume ? t->volume : t->comm);
	return buf;
}

static void put_list_row(FILE *out, const struct target *t, unsigned int name_columns,
			 const struct sink_style *st)
{
	char name[sizeof(t->volume) + sizeof(t->path) + 8], buf[32];
	struct sink_flow flow;

	list_name(t, name, sizeof(name));
	sink_fmt_left(out, st, target_kind_name(t->kind), 9);
	if (sink_fmt_width(st, name) > name_columns) {
		/* A name is what is typed after "attach": never cut, rather a line of its own. */
		sink_fmt_text(out, st, name);
		fprintf(out, "\n%*s", 9 + (int)name_columns, "");
	} else {
		sink_fmt_left(out, st, name, name_columns);
	}
	snprintf(buf, sizeof(buf), "%d", (int)t->pid);
	sink_fmt_right(out, st, t->pid > 0 ? buf : "-", 9);
	fputs("  ", out);
	sink_fmt_left(out, st, t->version[0] ? t->version : "-", 9);
	sink_fmt_text(out, st, t->device[0] ? t->device : "-");
	if (t->fstype[0]) {
		fputs(" ", out);
		sink_fmt_text(out, st, t->fstype);
	}
	fputc('\n', out);
	if (t->xlators[0]) {
		char chain[sizeof(t->xlators)], *rest = NULL;

		snprintf(chain, sizeof(chain), "%s", t->xlators);
		sink_fmt_flow_begin(&flow, out, st, "", 9);
		for (char *word = strtok_r(chain, " ", &rest); word;
		     word = strtok_r(NULL, " ", &rest))
			sink_fmt_flow_item(&flow, 1, "%s", word);
		sink_fmt_flow_end(&flow);
	}
	if (t->problem[0]) {
		sink_fmt_flow_begin(&flow, out, st, "", 9);
		sink_fmt_flow_item(&flow, 0, "cannot be attached to: %s", t->problem);
		sink_fmt_flow_end(&flow);
	}
}

int sink_text_list(FILE *out, const struct target_list *list, const struct sink_style *st)
{
	unsigned int columns = sink_fmt_columns(st);
	unsigned int name_columns = columns > 80 ? columns - 50 : 30;

	if (list->n == 0) {
		fputs("nothing to attach to: no GlusterFS process and no XFS mount was found\n",
		      out);
		return sink_fmt_status(out);
	}
	sink_fmt_colour(out, st, SINK_BOLD);
	sink_fmt_left(out, st, "kind", 9);
	sink_fmt_left(out, st, "target", name_columns);
	fputs("      pid  version  device\n", out);
	sink_fmt_colour(out, st, SINK_PLAIN);
	for (size_t i = 0; i < list->n; i++)
		put_list_row(out, &list->t[i], name_columns, st);
	return sink_fmt_status(out);
}

/* ---- requests in flight ------------------------------------------------ */

static void put_request(FILE *out, const struct gluster_request *r, const struct sink_style *st)
{
	const char *fop = gluster_fop_name(r->fop);
	char age[32], number[32];
	struct sink_flow flow;

	sink_fmt_right(out, st, sink_fmt_ns(age, sizeof(age), r->has_age, (double)r->age_ns), 8);
	fputs("  ", out);
	snprintf(number, sizeof(number), "fop %u", r->fop);
	sink_fmt_left(out, st, fop ? fop : number, 11);
	sink_fmt_flow_resume(&flow, out, st, 21, 10);
	sink_fmt_flow_item(&flow, 1, "in %s", r->xlator[0] ? r->xlator : "-");
	if (r->has_frame_age)
		sink_fmt_flow_item(&flow, 1, "for %s",
				   sink_fmt_ns(age, sizeof(age), true, (double)r->frame_age_ns));
	if (r->wind[0])
		sink_fmt_flow_item(&flow, 1, "(wound by %s)", r->wind);
	if (r->background)
		sink_fmt_flow_item(&flow, 3, "background");
	else if (r->app_pid < 0)
		sink_fmt_flow_item(&flow, 3, "internal");
	else
		sink_fmt_flow_item(&flow, 3, "application pid %" PRId64 " uid %u", r->app_pid,
				   (unsigned int)r->uid);
	if (r->file[0])
		sink_fmt_flow_item(&flow, 3, "file %s", r->file);
	if (r->gfid[0])
		sink_fmt_flow_item(&flow, 3, "gfid %s", r->gfid);
	if (r->client[0])
		sink_fmt_flow_item(&flow, 3, "client %s", r->client);
	if (r->volume[0] && strcmp(r->volume, "-") != 0)
		sink_fmt_flow_item(&flow, 3, "volume %s", r->volume);
	sink_fmt_flow_end(&flow);
}

int sink_text_stuck(FILE *out, const struct sink_stuck *stuck, size_t n_stuck,
		    const struct sink_style *st)
{
	for (size_t i = 0; i < n_stuck; i++) {
		const struct sink_stuck *s = &stuck[i];
		char buf[32];

		sink_fmt_colour(out, st, SINK_BOLD);
		sink_fmt_text(out, st, s->target);
		sink_fmt_colour(out, st, SINK_PLAIN);
		fprintf(out, "  pid %d   ", s->pid);
		if (s->problem) {
			fputs("cannot be read: ", out);
			sink_fmt_text(out, st, s->problem);
			fputc('\n', out);
			continue;
		}
		fprintf(out, "%s%s request%s in flight%s\n", sink_fmt_u64(buf, sizeof(buf), s->n),
			s->truncated ? " or more" : "", s->n == 1 ? "" : "s",
			s->n ? ", oldest first" : "");
		for (size_t j = 0; j < s->n; j++)
			put_request(out, &s->req[j], st);
		if (s->truncated)
			fputs("  not the whole list: it changed while it was read, or is longer\n",
			      out);
	}
	if (n_stuck == 0)
		fputs("no GlusterFS process was found\n", out);
	return sink_fmt_status(out);
}
