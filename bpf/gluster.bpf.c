// SPDX-License-Identifier: GPL-2.0-only
/*
 * gluster.bpf.c: requests of GlusterFS. One probe hit per request: at the callback of the topmost
 * xlator every frame of the request has ended and carries GlusterFS's own stamps; they are read,
 * linked (copied stacks included) and handed to the accounting of walk.bpf.h. Also finds, while it
 * is armed, through which callbacks stacks end (discovery). Offsets come from the collector, per
 * release.
 *
 * Sources: GlusterFS libglusterfs/src/glusterfs/stack.h (STACK_WIND, STACK_UNWIND, copy_frame,
 * STACK_DESTROY); struct offsets of each release in user/gluster_layout.c.
 */
#include "frames.bpf.h"

#include "dump.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct wire_callback_key);
	__type(value, struct wire_callback);
} callbacks SEC(".maps");

/* Stacks accounted in part: address -> until when. What is pushed out may be counted twice. */
struct mark_key {
	__u64 stack;
	__u32 tgid, pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct mark_key);
	__type(value, __u64);
} marks SEC(".maps");

/* ---- stacks that no request waits for ---------------------------------- */

/* 1 where the stack (its head in w->raw) is a copy of one that is still there: it counts with that.
 */
static __always_inline int has_original(struct walk *w)
{
	__u64 unique = raw_u64(w, STACK_UNIQUE), pool_addr = raw_u64(w, STACK_POOL);
	__u64 prev = raw_u64(w, STACK_PREV);

	if (!unique || read_stack(w, prev))
		return 0;
	return raw_u64(w, STACK_POOL) == pool_addr && raw_u64(w, STACK_UNIQUE) == unique;
}

struct openness {
	struct walk *w;
	__u32 open;
};

static long find_open(__u32 i, struct openness *o)
{
	struct walk_frame *f = walk_frame_at(o->w, i);

	if (!f)
		return 1;
	if (!i || f->flags & WIRE_FRAME_COPY_ROOT || f->end_raw)
		return 0;
	o->open = 1;
	return 1;
}

/*
 * An own stack is accounted when all its frames have ended, from where it was accounted last:
 * post-op phases of replicate each once, write-behind's requests as a whole. 0: account now; -1:
 * not yet.
 */
__noinline int background_due(struct thread *t)
{
	struct mark_key key = {};
	struct openness o = {};
	struct walk *w;
	__u64 *mark;

	if (!t)
		return -1;
	w = &t->walk;
	key.stack = w->stack[0];
	key.tgid = w->tgid;
	o.w = w;
	bpf_loop(w->n, find_open, &o, 0);
	if (o.open)
		return -1;
	mark = bpf_map_lookup_elem(&marks, &key);
	if (mark && *mark > w->frame[0].begin_raw)
		w->watermark = *mark;
	if (w->max_end <= w->watermark)
		return -1;
	w->root = WIRE_ROOT_BACKGROUND;
	bpf_map_update_elem(&marks, &key, &w->max_end, BPF_ANY);
	return 0;
}

/* Copies that live on behind a request's reply are accounted from here on by themselves. */
static __always_inline void mark_copies(struct walk *w)
{
	__u32 s;

	for (s = 1; s < WIRE_MAX_STACKS; s++) {
		struct mark_key key = { .tgid = w->tgid };

		if (s >= w->n_stacks)
			break;
		key.stack = w->stack[s];
		bpf_map_update_elem(&marks, &key, &w->frame[0].end, BPF_ANY);
	}
}

/* ---- the probes -------------------------------------------------------- */

static __always_inline void note_thread(struct wire_proc *proc, __u32 tid)
{
	if (!proc->first_tid)
		proc->first_tid = tid;
	else if (proc->first_tid != tid && !proc->other_tid)
		proc->other_tid = tid;
}

/*
 * A callback of the kind (frame, cookie, this, op_ret, op_errno, ...) was entered with a root
 * frame: a request has its reply, or a stack of the process's own a result.
 */
static __noinline int on_root(__u64 frame, __s64 result, struct wire_proc *proc, __u32 site)
{
	__u64 id = bpf_get_current_pid_tgid(), stack, next;
	struct wire_layout *l;
	struct thread *t;
	struct walk *w;
	int is_top;

	if (!proc)
		return 0;
	t = thread_get();
	if (!t)
		return 0;
	w = &t->walk;
	w->tgid = id >> 32;
	w->tid = id;
	w->layout = proc->layout;
	w->result = result;
	w->root = proc->root;
	l = layout_get(w);
	if (!l || bpf_probe_read_user(w->raw, 16, (const void *)frame) || raw_u64(w, FRAME_PARENT))
		return 0; /* not a root frame: this callback has another use as well */
	stack = raw_u64(w, FRAME_ROOT);
	if (read_stack(w, stack)) {
		layer_drop(WIRE_MAX_TARGETS, WIRE_LOST_UNREADABLE);
		return 0;
	}
	is_top = site == WIRE_SITE_TOP && raw_u64(w, STACK_STATE);
	if (!is_top && has_original(w))
		return 0;
	if (!is_top && read_stack(w, stack))
		return 0;
	walk_begin(w, stack, &next);
	if (walk_read(t, l, next, is_top) || (!is_top && background_due(t)))
		return 0;
	if (is_top)
		note_thread(proc, id);
	walk_account(t);
	if (is_top && w->n_stacks > 1)
		mark_copies(w);
	if (cfg.dump)
		dump_request(t);
	return 0;
}

static __always_inline int on_callback(struct pt_regs *ctx)
{
	struct wire_proc *proc = proc_get(bpf_get_current_pid_tgid() >> 32);

	if (!proc)
		return 0;
	return on_root(PT_REGS_PARM1(ctx), (__s32)PT_REGS_PARM4(ctx), proc,
		       bpf_get_attach_cookie(ctx));
}

SEC("uprobe")
int on_callback__multi(struct pt_regs *ctx)
{
	return on_callback(ctx);
}

SEC("uprobe")
int on_callback__perf(struct pt_regs *ctx)
{
	return on_callback(ctx);
}

/*
 * Discovery: gf_frame_latency_update(frame) sees each frame as its stack is destroyed. A child of a
 * root frame names in frame->ret the callback through which its stack gets results.
 */
static __always_inline int on_frame_end(struct pt_regs *ctx)
{
	__u64 frame = PT_REGS_PARM1(ctx), root_frame = 0, grand = 1;
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct wire_callback_key key = { .tgid = tgid };
	struct wire_callback fresh = { .hits = 1 }, *seen;
	struct wire_proc *proc = proc_get(tgid);
	struct wire_layout *l;
	__u32 row;

	if (!proc)
		return 0;
	row = proc->layout;
	l = bpf_map_lookup_elem(&layouts, &row);
	if (!l || bpf_probe_read_user(&root_frame, 8, (const void *)(frame + FRAME_PARENT)) ||
	    !root_frame ||
	    bpf_probe_read_user(&grand, 8, (const void *)(root_frame + FRAME_PARENT)) || grand)
		return 0;
	if (bpf_probe_read_user(&key.addr, 8, (const void *)(frame + l->frame_ret)) || !key.addr)
		return 0;
	seen = bpf_map_lookup_elem(&callbacks, &key);
	if (seen) {
		__sync_fetch_and_add(&seen->hits, 1);
		return 0;
	}
	bpf_probe_read_user(&fresh.xlator, 8, (const void *)(root_frame + l->frame_this));
	if (bpf_map_update_elem(&callbacks, &key, &fresh, BPF_NOEXIST) == -7 /* E2BIG */)
		layer_drop(WIRE_MAX_TARGETS, WIRE_LOST_MAP_FULL);
	return 0;
}

SEC("uprobe")
int on_frame_end__multi(struct pt_regs *ctx)
{
	return on_frame_end(ctx);
}

SEC("uprobe")
int on_frame_end__perf(struct pt_regs *ctx)
{
	return on_frame_end(ctx);
}
