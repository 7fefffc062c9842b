// SPDX-License-Identifier: GPL-2.0-only
/*
 * calibrate.bpf.c: the smallest programs a hook can run: they count. What a hit costs beyond the
 * program's own run time is measured with them, at start, on bricktop itself. A uprobe hit is
 * counted under the low bits of its attach cookie, so the same programs prove which site was hit
 * how often.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

#define HIT_SLOTS 16

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HIT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} hits SEC(".maps");

static __always_inline int count_hit(void *ctx)
{
	__u32 slot = bpf_get_attach_cookie(ctx) % HIT_SLOTS;
	__u64 *count = bpf_map_lookup_elem(&hits, &slot);

	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

SEC("uprobe")
int on_hit__multi(struct pt_regs *ctx)
{
	return count_hit(ctx);
}

SEC("uprobe")
int on_hit__perf(struct pt_regs *ctx)
{
	return count_hit(ctx);
}

/* What syscall.bpf.c does in a process that is not traced: one look at an empty row. */
#define ROWS 1024

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROWS);
	__type(key, __u32);
	__type(value, __u64);
} rows SEC(".maps");

static __always_inline int look_up(void)
{
	__u32 at = (bpf_get_current_pid_tgid() >> 32) % ROWS;
	__u64 *row = bpf_map_lookup_elem(&rows, &at);

	if (row && *row)
		__sync_fetch_and_add(row, 1);
	return 0;
}

SEC("tp_btf/sys_enter")
int on_enter__btf(void *ctx)
{
	return look_up();
}

SEC("tp_btf/sys_exit")
int on_exit__btf(void *ctx)
{
	return look_up();
}
