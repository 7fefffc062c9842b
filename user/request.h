/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h: a record of a whole request (struct wire_dump and what follows it) as it comes out of
 * the BPF ring, taken apart. Its length is checked against its counts; indices inside it are the
 * reader's to check. Pure.
 */
#ifndef BRICKTOP_REQUEST_H
#define BRICKTOP_REQUEST_H

#include <linux/types.h>
#include <stddef.h>

#include "../bpf/wire.h"

#define REQUEST_NO_FRAME 0xffff
#define REQUEST_NO_PART  0xff

/* Points into the record, whose parts need not be aligned: copy them out. */
struct request {
	struct wire_dump head;
	struct wire_who who;
	const char *frames, *spans, *marks;
};

/* 0, or -EBADMSG: too short for what it says. It may be longer: the ring hands out fixed sizes. */
int request_open(const void *record, size_t len, struct request *ret);

void request_frame(const struct request *r, unsigned int i, struct wire_dump_frame *ret);
void request_span(const struct request *r, unsigned int i, struct wire_span *ret);

/* Why it could not be split, as in the JSON contract's "lost"; "": it was; NULL: no known cause. */
const char *request_unsplit(const struct wire_dump *head);

#endif
