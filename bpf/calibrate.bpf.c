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
#define CPUS        64
#define TIMED_SHIFT 4

struct row {
	__u32 tgid; /* 0: nobody */
	__u32 pad[15];
	struct {
		__u64 hits, timed_ns, pad[6];
	} cpu[CPUS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROWS);
	__type(key, __u32);
	__type(value, struct row);
} rows SEC(".maps");

static __always_inline int look_up(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 at = tgid % ROWS, cpu, n;
	struct row *row = bpf_map_lookup_elem(&rows, &at);
	__u64 begin;

	if (!row || row->tgid != tgid)
		return 0;
	cpu = bpf_get_smp_processor_id() % CPUS;
	__sync_fetch_and_add(&row->cpu[cpu].hits, 1);
	n = (__u32)row->cpu[cpu].hits * 2654435769U;
	if (n >> (32 - TIMED_SHIFT))
		return 0;
	begin = bpf_ktime_get_ns();
	__sync_fetch_and_add(&row->cpu[cpu].timed_ns, bpf_ktime_get_ns() - begin);
	return 0;
}

/* Run by hand: the process that does so is traced from now on. */
SEC("raw_tp")
int on_trace(void *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, at = tgid % ROWS;
	struct row *row = bpf_map_lookup_elem(&rows, &at);

	if (row)
		row->tgid = tgid;
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
