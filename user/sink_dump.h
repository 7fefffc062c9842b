/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_dump.h: one whole request, every frame and span with its stamps, as one line of JSON
 * ("bricktop-request/1"): the raw material of an independent check that the accounting is right.
 * Records come from a BPF ring: their length and every index in them are checked before use.
 */
#ifndef BRICKTOP_SINK_DUMP_H
#define BRICKTOP_SINK_DUMP_H

#include <linux/types.h>
#include <stddef.h>
#include <stdio.h>

#include "../bpf/wire.h"

/*
 * What the numbers in a record are called. Each may return NULL (the number is printed). Called on
 * the thread that renders: what arg points to must not change while a record that was queued with
 * these names is unwritten.
 */
struct sink_dump_names {
	const char *(*target)(const void *arg, unsigned int target);
	const char *(*layer)(const void *arg, unsigned int target, unsigned int layer);
	const char *(*sub)(const void *arg, unsigned int layer, unsigned int sub);
	const char *(*op)(const void *arg, unsigned int op);
	const void *arg;
};

/* 0; -EBADMSG: not a record (too short for its counts, or an index outside); -errno of the stream.
 */
int sink_dump_write(FILE *out, const void *record, size_t len, const struct sink_dump_names *names);

#endif
