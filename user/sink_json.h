/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_json.h: the JSON contract ("bricktop/1"): what other programs read. Fields may be added,
 * never renamed. Figures that were not measured are null, never 0; durations are microseconds with
 * three decimals; strings are valid UTF-8. Pure but for the stream.
 */
#ifndef BRICKTOP_SINK_JSON_H
#define BRICKTOP_SINK_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sink_text.h" /* struct sink_stuck */
#include "snapshot.h"
#include "target.h"

/*
 * One document per target of the window. lines: one line each (JSON Lines), else indented. version:
 * bricktop's own. 0, -errno of the stream, or -ENOMEM (nothing of that document is written then).
 */
int sink_json_report(FILE *out, const struct snapshot *snap, const char *version, bool lines);

/* { "schema": "bricktop-list/1", "targets": [ ... ] } */
int sink_json_list(FILE *out, const struct target_list *list, const char *version);

/* { "schema": "bricktop-stuck/1", "processes": [ { ..., "requests": [ ... ] } ] } */
int sink_json_stuck(FILE *out, const struct sink_stuck *stuck, size_t n_stuck, const char *version);

#endif
