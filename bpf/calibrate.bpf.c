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

/* Run by hand: nothing, so that its run time is what the kernel's statistics add to any program's.
 */
SEC("raw_tp")
int on_nothing(void *ctx)
{
	return 0;
}

/* The same of a hit that is timed as traced.bpf.h does: between two readings lies the clock's. */
SEC("raw_tp")
int on_clock(void *ctx)
{
	__u64 begin = bpf_ktime_get_ns();

	return (int)(bpf_ktime_get_ns() - begin);
}

/*
 * What syscall.bpf.c does before it begins to time itself: in a process that is not traced one look
 * at an empty row; in one that is, it counts there and decides whether to read the clock, as it
 * does twice in one hit of sixteen.
 */
#define ROWS        1024
#define TIMED_SHIFT 4

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROWS);
	__type(key, __u32);
	__type(value, __u64); /* tgid; 0: nobody */
} rows SEC(".maps");

struct row_hits {
	__u64 hits, timed_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ROWS);
	__type(key, __u32);
	__type(value, struct row_hits);
} row_hits SEC(".maps");

static __always_inline int look_up(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, at = tgid % ROWS, n;
	__u64 *row = bpf_map_lookup_elem(&rows, &at), begin;
	struct row_hits *count;

	if (!row || *row != tgid)
		return 0;
	count = bpf_map_lookup_elem(&row_hits, &at);
	if (!count)
		return 0;
	n = (__u32)++count->hits * 2654435769U;
	if (n >> (32 - TIMED_SHIFT))
		return 0;
	begin = bpf_ktime_get_ns();
	count->timed_ns += bpf_ktime_get_ns() - begin;
	return 0;
}

/* Run by hand: whether the process that does so is traced changes. */
SEC("raw_tp")
int on_trace(void *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, at = tgid % ROWS;
	__u64 *row = bpf_map_lookup_elem(&rows, &at);

	if (row)
		*row = *row ? 0 : tgid;
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
