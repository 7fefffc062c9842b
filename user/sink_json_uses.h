/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_json_uses.h: the keys "files", "directories", "apps" and "seen" of a report. For the JSON
 * sinks alone.
 */
#ifndef BRICKTOP_SINK_JSON_USES_H
#define BRICKTOP_SINK_JSON_USES_H

#include <jansson.h>

#include "snapshot.h"

/* A text that may not be known: null, or valid UTF-8 whatever it is. */
json_t *sink_json_text(const char *s);

/* An array each, null where nothing was looked at. NULL: out of memory. */
json_t *sink_json_files(const struct snap_target *t);
json_t *sink_json_dirs(const struct snap_target *t);
json_t *sink_json_apps(const struct snap_target *t);

/* What the tables cover: shares of the requests' time, rows in all, rows pushed out. */
json_t *sink_json_uses(const struct snap_target *t);

#endif
