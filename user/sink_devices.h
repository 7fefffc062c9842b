/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_devices.h: the table of the host's block devices, as text. Owns its columns. Knows devices
 * and operations only; what is not measured prints '-'.
 */
#ifndef BRICKTOP_SINK_DEVICES_H
#define BRICKTOP_SINK_DEVICES_H

#include <stdio.h>

#include "sink_fmt.h"
#include "snapshot.h"

/* All devices of the snapshot, begun by an empty line; nothing where none was looked at. */
void sink_devices_text(FILE *out, const struct snapshot *snap, const struct sink_style *st);

#endif
