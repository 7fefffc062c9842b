/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_rights.c: once everything is in place an investigation only reads, follows processes that
 * come back and switches layers: what else it was allowed to do is given up. The sink's thread,
 * which writes what is open already, keeps nothing.
 */
#include "session_priv.h"

#include <stdio.h>
#include <string.h>

#include "rights.h"

/*
 * Perf uprobes take over from a uprobe-multi link whose filter by process turns out to be broken.
 * That it works is the kernel's property: one process has to show it.
 */
static bool may_need_perf(struct session *s)
{
	size_t i;

	if (!s->source)
		return false;
	if (source_kind(s->source) == UPROBE_PERF)
		return true;
	for (i = 0; i < s->n_procs && !s->multi_proven; i++)
		s->multi_proven = s->procs[i].watch && watch_is_proven(s->procs[i].watch);
	return !s->multi_proven && s->n_procs;
}

void session_drop_rights(struct session *s)
{
	uint64_t set = rights_to_read(s->source != NULL, may_need_perf(s));
	char line[128];
	int ret;

	if (s->has_dropped && set == s->rights)
		return;
	if (s->source)
		source_part_statistics(s->source);
	ret = rights_keep(set);
	if (ret) {
		snprintf(line, sizeof(line), "cannot be given up: %s", strerror(-ret));
		(void)model_feed_off(s->model, "capabilities", line);
	}
	s->has_dropped = true;
	s->rights = set;
}
