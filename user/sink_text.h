/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_text.h: what a person reads: the report of a window, the table from memory, the list of
 * targets, the requests in flight. Owns the order in which things are said: what costs most comes
 * first, and what was not measured prints '-'. Pure but for the stream; keeps nothing. All return 0
 * or -errno of the stream, or -ENOMEM.
 */
#ifndef BRICKTOP_SINK_TEXT_H
#define BRICKTOP_SINK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "gluster_stuck.h"
#include "sink_fmt.h"
#include "snapshot.h"
#include "target.h"

/* A window, or (snap->memory_only) what sink_text_memory() prints. */
int sink_text_report(FILE *out, const struct snapshot *snap, const struct sink_style *st);

/*
 * What the processes' own statistics say, before any probe is in: inclusive means, and self times
 * estimated by subtracting them, which is marked and explained.
 */
int sink_text_memory(FILE *out, const struct snapshot *snap, const struct sink_style *st);

int sink_text_list(FILE *out, const struct target_list *list, const struct sink_style *st);

/* The requests in flight of one process, oldest first, as gluster_stuck_read() gave them. */
struct sink_stuck {
	const char *target; /* name as in the reports */
	int pid;
	const struct gluster_request *req;
	size_t n;
	bool truncated;      /* there are more than these */
	const char *problem; /* why nothing could be read; NULL where it could */
};

int sink_text_stuck(FILE *out, const struct sink_stuck *stuck, size_t n_stuck,
		    const struct sink_style *st);

#endif
