/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_foot.h: the lines below a target's tables as a person reads them: the oldest request, what
 * was lost, what adds up, what it cost, where its probes are, and what is off. Inside of the sinks
 * alone.
 */
#ifndef BRICKTOP_SINK_FOOT_H
#define BRICKTOP_SINK_FOOT_H

#include <stdbool.h>
#include <stdio.h>

#include "sink_fmt.h"
#include "snapshot.h"

/* Layers below the xlators took turns, so that what they tell is of a share of the window. */
bool sink_foot_layers_were_off(const struct snap_cost *c);

/* Of one target of the snapshot, by its place; with an empty line before, if there is any. */
void sink_foot_target(FILE *out, const struct snapshot *snap, int target,
		      const struct sink_style *st);

/* What is off, and was lost, for all of them or nobody knows whom. */
void sink_foot_all(FILE *out, const struct snapshot *snap, const struct sink_style *st);

#endif
