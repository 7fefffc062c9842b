// SPDX-License-Identifier: GPL-2.0-only
/*
 * doctor.bpf.c: one small program for each thing that bricktop's programs are built on, to be
 * loaded alone: what the kernel says to it is what "bricktop doctor" reports. The variants of
 * on_hook are hung where this process hits them at once, and count; those of use_* have only to be
 * taken by the verifier.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

/* One slot a way of getting here; user/doctor_probe.c knows them by the same numbers. */
enum { HIT_BTF, HIT_RAW, HIT_TP, HIT_UPROBE, HIT_FENTRY, HIT_KPROBE, HIT_ITER, HIT_SLOTS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HIT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} tries SEC(".maps");

static __always_inline int count(__u32 slot)
{
	__u64 *hits = bpf_map_lookup_elem(&tries, &slot);

	if (hits)
		__sync_fetch_and_add(hits, 1);
	return 0;
}

SEC("tp_btf/sys_enter")
int on_hook__btf(void *ctx)
{
	return count(HIT_BTF);
}

SEC("raw_tp/sys_enter")
int on_hook__raw(void *ctx)
{
	return count(HIT_RAW);
}

SEC("tp/syscalls/sys_enter_getppid")
int on_hook__tp(void *ctx)
{
	return count(HIT_TP);
}

SEC("fentry/do_filp_open")
int on_hook__fentry(void *ctx)
{
	return count(HIT_FENTRY);
}

SEC("kprobe/do_filp_open")
int on_hook__kprobe(void *ctx)
{
	return count(HIT_KPROBE);
}

SEC("uprobe")
int on_place__multi(void *ctx)
{
	return count(HIT_UPROBE);
}

SEC("uprobe")
int on_place__perf(void *ctx)
{
	return count(HIT_UPROBE);
}

SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	return count(HIT_ITER);
}

/* ---- features: the verifier's answer is all that is asked for ----------- */

static long loop_once(__u32 i, void *ctx)
{
	return 0;
}

SEC("uprobe")
int use_loop(void *ctx)
{
	int nothing = 0;

	bpf_loop(4, loop_once, &nothing, 0);
	return 0;
}

SEC("uprobe")
int use_cookie(void *ctx)
{
	return count(bpf_get_attach_cookie(ctx) % HIT_SLOTS);
}

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} ring SEC(".maps");

SEC("uprobe")
int use_ring(void *ctx)
{
	struct bpf_dynptr record;
	__u64 stamp = bpf_ktime_get_ns();

	if (!bpf_ringbuf_reserve_dynptr(&ring, sizeof(stamp), 0, &record))
		bpf_dynptr_write(&record, 0, &stamp, sizeof(stamp), 0);
	bpf_ringbuf_discard_dynptr(&record, 0);
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} storage SEC(".maps");

/* From a uprobe: there its helpers came later than in tp_btf programs (6.1). */
SEC("uprobe")
int use_storage(void *ctx)
{
	__u64 *value = bpf_task_storage_get(&storage, bpf_get_current_task_btf(), NULL,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (value)
		__sync_fetch_and_add(value, 1);
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HIT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} mapped SEC(".maps");

SEC("uprobe")
int use_mapped(void *ctx)
{
	__u32 slot = 0;
	__u64 *value = bpf_map_lookup_elem(&mapped, &slot);

	if (value)
		__sync_fetch_and_add(value, 1);
	return 0;
}

/* What a walk reads of its process, and a layer of the kernel: refused under lockdown=
 * confidentiality. */
SEC("uprobe")
int use_read(void *ctx)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), ctx);
	bpf_probe_read_kernel(&word, sizeof(word), ctx);
	return 0;
}
