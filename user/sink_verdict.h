/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_verdict.h: the end of a target's report, as text: what its threads did, and the verdict.
 * Both print nothing where there is nothing, else an empty line first. Pure but for the stream.
 */
#ifndef BRICKTOP_SINK_VERDICT_H
#define BRICKTOP_SINK_VERDICT_H

#include <stdio.h>

#include "sink_fmt.h"
#include "snapshot.h"

/* One row for each pool that did anything; the idle ones are counted. */
void sink_verdict_threads(FILE *out, const struct snap_target *t, const struct sink_style *st);

void sink_verdict_causes(FILE *out, const struct snap_target *t, const struct sink_style *st);

#endif
