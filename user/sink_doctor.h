/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_doctor.h: what "bricktop doctor" prints: what works here, what does not, why, and what is
 * lost by it; as text and as JSON. Pure but for the stream.
 */
#ifndef BRICKTOP_SINK_DOCTOR_H
#define BRICKTOP_SINK_DOCTOR_H

#include <stdio.h>

#include "doctor.h"
#include "sink_fmt.h"

/* 0 or -errno of the stream. */
int sink_doctor_text(FILE *out, const struct doctor_report *report, const struct sink_style *st);

/*
 * { "schema": "bricktop/1", "verdict": "all|some|nothing", "kernel": ..., "layers": [ { "id",
 * "state", "optional", "reason", "lost" } ], "programs": [ ... ], ... }; 0, -errno of the stream,
 * or -ENOMEM.
 */
int sink_doctor_json(FILE *out, const struct doctor_report *report, const char *version);

#endif
