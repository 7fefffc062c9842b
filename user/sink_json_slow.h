/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_json_slow.h: the "slow" part of a target's document: the slow operations that were kept,
 * whole, and "slow_limits": from how long on one was slow, and how many were.
 */
#ifndef BRICKTOP_SINK_JSON_SLOW_H
#define BRICKTOP_SINK_JSON_SLOW_H

#include <jansson.h>

#include "snapshot.h"

/* An array, an object; NULL where one could not be built. */
json_t *sink_json_slow(const struct snap_slows *slow);
json_t *sink_json_slow_limits(const struct snap_slows *slow);

#endif
