/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_json_devices.h: the key "devices" of a report. For sink_json.c alone.
 */
#ifndef BRICKTOP_SINK_JSON_DEVICES_H
#define BRICKTOP_SINK_JSON_DEVICES_H

#include <jansson.h>

#include "snapshot.h"

/*
 * The block devices that are shown to a target (its place in the snapshot), null where none was
 * looked at. NULL: out of memory.
 */
json_t *sink_json_devices(const struct snapshot *snap, size_t target);

#endif
