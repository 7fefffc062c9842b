/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_slow.h: slow operations as text: how many there were, and the slowest as trees, each layer
 * with the moment it began, its time, and its own time.
 */
#ifndef BRICKTOP_SINK_SLOW_H
#define BRICKTOP_SINK_SLOW_H

#include <stdio.h>

#include "sink_fmt.h"
#include "snapshot.h"

/* Nothing where they were not asked for. */
void sink_slow_text(FILE *out, const struct snap_slows *slow, const struct sink_style *st);

#endif
