/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * raise.bpf.h: the maximum of what several CPUs measure at once, in memory that they share. It
 * knows no map and no row. Included after vmlinux.h.
 */
#ifndef BRICKTOP_RAISE_BPF_H
#define BRICKTOP_RAISE_BPF_H

#include <bpf/bpf_helpers.h>

static __always_inline void raise_max(__u64 *max, __u64 v)
{
	__u64 old = *max;

	/* a lost race is tried once more; after that another CPU's maximum is as good */
	if (v > old && __sync_val_compare_and_swap(max, old, v) != old) {
		old = *max;
		if (v > old)
			__sync_val_compare_and_swap(max, old, v);
	}
}

#endif
