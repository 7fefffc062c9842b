/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h: the second thread. It alone writes reports and dumps, so that a slow terminal or a full,
 * sick disk never holds up collection. Items are immutable once pushed and belong to the queue from
 * then on (also where pushing fails). The queue is bounded; what it has to drop is counted.
 */
#ifndef BRICKTOP_SINK_H
#define BRICKTOP_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sink_dump.h"
#include "sink_fmt.h"
#include "snapshot.h"

struct sink;

struct sink_config {
	int out_fd;              /* reports; the caller's, open until sink_close() returned */
	int dump_fd;             /* request dumps; -1: none */
	bool json, json_lines;   /* reports as JSON; one line each */
	const char *version;     /* for JSON; outlives the sink */
	struct sink_style style; /* for text */
	size_t max_reports;      /* waiting to be written; 0: 16 */
	size_t max_dump_bytes;   /* of requests' records, waiting; 0: 8 MiB */
};

/* Counters of the sink's life; errors are -errno of the first write that failed, 0 where none did.
 */
struct sink_status {
	int out_error, dump_error;
	uint64_t written;         /* items */
	uint64_t dropped_reports; /* the queue was full: older ones make room for newer ones */
	uint64_t dropped_dumps;   /* the queue was full */
	uint64_t discarded;       /* after the output had failed */
	uint64_t bad_dumps;       /* records that were none */
	bool timed_out;           /* at sink_close(): the rest was not written */
};

/* Start the thread. Every signal is blocked in it. 0 or -errno. */
int sink_open(const struct sink_config *config, struct sink **ret_sink);

/*
 * Hand over an item; never blocks on output. 0; -ENOBUFS: something was dropped for lack of room;
 * -EPIPE: the output failed before (see sink_error()), the item was discarded. text is written to
 * the reports' output as it is. names outlive the sink.
 */
int sink_push_snapshot(struct sink *s, struct snapshot *snap);
int sink_push_text(struct sink *s, char *text);
int sink_push_dump(struct sink *s, void *record, size_t len, const struct sink_dump_names *names);

/* The first error of the reports' output so far: -errno, or 0. */
int sink_error(struct sink *s);

/* Wait until all that was pushed has been written or discarded. 0 or -ETIMEDOUT. */
int sink_drain(struct sink *s, uint64_t timeout_ns);

/*
 * Write what is queued, for at most timeout_ns, and end the thread. A write that hangs in the
 * kernel (a sick disk) is left behind with its memory. Returns the first output error, -ETIMEDOUT,
 * or 0; details in ret_status (may be NULL). NULL is a no-op.
 */
int sink_close(struct sink *s, uint64_t timeout_ns, struct sink_status *ret_status);

#endif
