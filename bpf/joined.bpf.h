/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * joined.bpf.h: operations that ended on another thread than the one that asked for them, and that
 * a request waits for: kept by the address of the frame that their control block names, from when
 * the process fetched the result until the walk of the request takes them. Knows neither frames nor
 * how the operations are seen.
 */
#ifndef BRICKTOP_JOINED_BPF_H
#define BRICKTOP_JOINED_BPF_H

#include "ledger.bpf.h"

struct joined {
	struct span span; /* from the submission to the completion */
	struct span_detail detail;
	__u64 reaped;   /* when the process fetched the result, not before the span's end */
	__u32 tid, pad; /* who submitted it */
};

struct joined_key {
	__u64 frame;
	__u32 tgid, pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct joined_key);
	__type(value, struct joined);
} joins SEC(".maps");

/* No request takes this one any more: it was the process's own. */
static __always_inline void joined_drop(struct joined *j, __u32 target)
{
	span_enter_local(&j->span, &j->detail, j->tid, target);
}

#endif
