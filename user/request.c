/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c: see request.h.
 */
#include "request.h"

#include <errno.h>
#include <string.h>

int request_open(const void *record, size_t len, struct request *ret)
{
	const struct wire_dump *head = &ret->head;
	size_t need;

	if (len < sizeof(*head) + sizeof(ret->who))
		return -EBADMSG;
	memcpy(&ret->head, record, sizeof(*head));
	memcpy(&ret->who, (const char *)record + sizeof(*head), sizeof(ret->who));
	if (head->n_frames > WIRE_MAX_FRAMES ||
	    head->n_spans > WIRE_LEDGER + WIRE_OVERFLOW + WIRE_MAX_JOINED ||
	    head->n_marks > head->n_frames)
		return -EBADMSG;
	ret->frames = (const char *)record + sizeof(*head) + sizeof(ret->who);
	ret->spans = ret->frames + head->n_frames * sizeof(struct wire_dump_frame);
	ret->marks = ret->spans + head->n_spans * sizeof(struct wire_span);
	need = (size_t)(ret->marks - (const char *)record) +
	       head->n_marks * sizeof(struct wire_dump_marks);
	return len < need ? -EBADMSG : 0;
}

void request_frame(const struct request *r, unsigned int i, struct wire_dump_frame *ret)
{
	memcpy(ret, r->frames + i * sizeof(*ret), sizeof(*ret));
}

void request_span(const struct request *r, unsigned int i, struct wire_span *ret)
{
	memcpy(ret, r->spans + i * sizeof(*ret), sizeof(*ret));
}

static const char *const loss_names[WIRE_LOSSES] = {
	[WIRE_LOST_MAP_FULL] = "map_full",    [WIRE_LOST_RING_FULL] = "ring_full",
	[WIRE_LOST_UNPAIRED] = "unpaired",    [WIRE_LOST_UNREADABLE] = "unreadable",
	[WIRE_LOST_ABSURD] = "absurd",        [WIRE_LOST_LEDGER] = "ledger",
	[WIRE_LOST_FRAMES] = "frames",        [WIRE_LOST_ORDER] = "order",
	[WIRE_LOST_STORAGE] = "storage_busy", [WIRE_LOST_UNKNOWN] = "unknown_xlator",
	[WIRE_LOST_SKIPPED] = "skipped",      [WIRE_LOST_MARKS] = "marks",
	[WIRE_LOST_WAKES] = "wakes",          [WIRE_LOST_BEFORE] = "begun_before",
};

const char *request_unsplit(const struct wire_dump *head)
{
	if (!head->unsplit)
		return "";
	return head->unsplit <= WIRE_LOSSES ? loss_names[head->unsplit - 1] : NULL;
}
