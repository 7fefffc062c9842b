/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_uses.h: files, directories and applications of a target as a person reads them. Inside of
 * the sinks alone.
 */
#ifndef BRICKTOP_SINK_USES_H
#define BRICKTOP_SINK_USES_H

#include <stdio.h>

#include "sink_fmt.h"
#include "snapshot.h"

/*
 * Items of a line, so many columns behind what is there: a file's path, or what is known instead;
 * "pid 4211 (fio)  uid 1000"; the client that this came through, if it is known.
 */
void sink_uses_file(struct sink_flow *flow, unsigned int gap, const struct snap_file *f);
void sink_uses_app(struct sink_flow *flow, unsigned int gap, const struct snap_app *app);
void sink_uses_client(struct sink_flow *flow, unsigned int gap, const struct snap_app *app);

/* Three short tables; nothing where nothing was looked at. */
void sink_uses_text(FILE *out, const struct snap_target *t, const struct sink_style *st);

#endif
