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

/* Three short tables; nothing where nothing was looked at. */
void sink_uses_text(FILE *out, const struct snap_target *t, const struct sink_style *st);

#endif
