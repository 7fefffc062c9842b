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
#include "enter.bpf.h"
#include "join.bpf.h"
#include "kept.bpf.h"
#include "uses.bpf.h"
#include "who.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct wire_callback_key);
	__type(value, __u32);
} callbacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct wire_fops);
} fops SEC(".maps");

/* ---- stacks that no request waits for ---------------------------------- */

struct original {
	struct walk *w;
	__u64 at, pool, unique;
	__u32 found;
};

static long find_request(__u32 i, struct original *o)
{
	struct walk *w = o->w;

	if (read_stack(w, o->at) || raw_u64(w, STACK_POOL) != o->pool ||
	    raw_u64(w, STACK_UNIQUE) != o->unique)
		return 1;
	if (raw_u64(w, STACK_STATE) || raw_u64(w, STACK_CLIENT)) {
		o->found = 1;
		return 1;
	}
	o->at = raw_u64(w, STACK_PREV);
	return 0;
}

/*
 * Find the request that a stack (its head in w->raw) is a copy of, while it is there and has not
 * had its reply: the copy counts with it. Copies lie right behind their original, and survive it
 * one by one; those of a request that was walked and is about to go are marked. Not inlined: up to
 * Linux 6.12 all of the walk's frames have 512 bytes of stack together.
 */
static __noinline void find_request_of(struct walk *w, __u64 stack)
{
	struct original o = {
		.w = w,
		.at = raw_u64(w, STACK_PREV),
		.pool = raw_u64(w, STACK_POOL),
		.unique = raw_u64(w, STACK_UNIQUE),
	};
	struct mark_key key = { .stack = stack, .unique = o.unique, .tgid = w->tgid };

	if (o.unique)
		bpf_loop(WIRE_MAX_STACKS, find_request, &o, 0);
	w->original = o.found && !bpf_map_lookup_elem(&marks, &key) ? o.at : 0;
}

#define MARK_TRIES 4

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
 * post-op phases of replicate each once, write-behind's requests as a whole. That of a request
 * which waits is kept for it. 0: account now; -1: not yet, or not by itself.
 */
__noinline int background_due(struct walk *w)
{
	struct openness o = { .w = w };
	struct mark_key key = {};
	__u64 *mark, was = 0, until;
	__u32 i;

	if (!w)
		return -1;
	key.stack = w->stack[0];
	key.unique = w->unique;
	key.tgid = w->tgid;
	bpf_loop(w->n, find_open, &o, 0);
	if (o.open)
		return -1;
	if (w->original) {
		kept_store(w);
		return -1;
	}
	w->root = WIRE_ROOT_BACKGROUND;
	/* two threads may be here with results of one stack: each part of it is one's */
	for (i = 0; i < MARK_TRIES; i++) {
		mark = bpf_map_lookup_elem(&marks, &key);
		was = mark ? *mark : 0;
		w->watermark = was > w->frame[0].begin_raw ? was : 0;
		if (w->max_end <= w->watermark)
			return -1;
		/* on the stack: 6.1 takes no value from memory that a global function was given */
		until = walk_end(w);
		if (mark ? __sync_val_compare_and_swap(mark, was, until) == was :
			   !bpf_map_update_elem(&marks, &key, &until, BPF_NOEXIST))
			return 0;
	}
	layer_drop(w->frame[0].target, WIRE_LOST_SKIPPED);
	return -1;
}

/* ---- files and applications -------------------------------------------- */

static __always_inline __u32 use_class(__u32 op)
{
	switch (op) { /* GF_FOP_* */
	case 12:
		return WIRE_USE_READ;
	case 13:
		return WIRE_USE_WRITE;
	case 16: /* FSYNC */
	case 21: /* FSYNCDIR */
		return WIRE_USE_SYNC;
	}
	return WIRE_USE_OTHER;
}

/*
 * Enter what was accounted, a request that others wait for, in the rows of its file and of its
 * application; one that could not be split, too. A global function: verified by itself.
 */
__noinline int use_request(struct walk *w)
{
	struct wire_use_key key = {};
	struct use use = {};
	struct wire_app app;

	if (!w || w->root == WIRE_ROOT_BACKGROUND || !(w->frame[0].flags & WIRE_FRAME_COUNTED))
		return 0;
	if (w->frame[0].end > w->frame[0].begin)
		use.dur_ns = w->frame[0].end - w->frame[0].begin;
	use.class = use_class(w->op);
	use.failed = w->result < 0;
	if (moves_data(w) && w->result > 0)
		use.bytes = w->result;
	app.client = w->who.client;
	app.pid = w->who.pid;
	app.uid = w->who.uid;
	key.target = w->target;
	key.kind = w->who.kind;
	__builtin_memcpy(key.id, w->who.file, sizeof(key.id));
	use_file(&key, &use, &app);
	key.kind = w->who.has_app;
	__builtin_memcpy(key.id, &app, sizeof(key.id));
	use_app(&key, &use, NULL);
	return 0;
}

/* ---- the probes -------------------------------------------------------- */

static __always_inline void note_thread(struct wire_proc *proc, __u32 tid)
{
	if (!proc->first_tid)
		proc->first_tid = tid;
	else if (proc->first_tid != tid && !proc->other_tid)
		proc->other_tid = tid;
}

/* A set of what was walked: a bit that is lost to another CPU comes with the next request. */
static __always_inline void note_fop(const struct walk *w)
{
	__u32 tgid = w->tgid;
	struct wire_fops *seen = bpf_map_lookup_elem(&fops, &tgid);

	if (seen && w->op < 64 && !(seen->walked >> w->op & 1))
		seen->walked |= 1ULL << w->op;
}

/* A stack counts when it is met first: later parts of it have a watermark. */
static __always_inline void note_stacks(struct wire_proc *proc, const struct walk *w)
{
	__sync_fetch_and_add(&proc->stacks, w->n_stacks + w->n_joined - !!w->watermark);
}

/* What is known of a request before its frames are read. */
static __always_inline void describe(struct walk *w, const struct wire_proc *proc, __s32 result,
				     __s32 op_errno)
{
	__u64 id = bpf_get_current_pid_tgid();

	w->tgid = id >> 32;
	w->tid = id;
	w->layout = proc->layout;
	w->result = result;
	w->op_errno = op_errno;
	w->root = proc->root;
	/* a client's frames begin on one thread and end on another, the one that hears replies */
	w->has_ledger = proc->root == WIRE_ROOT_BRICK;
}

/* It is not walked: what this thread did for the request is nobody's, and not the process's own. */
static __always_inline void pass_request(void)
{
	struct ledger *l = ledger_find();

	if (l)
		l->passed = l->head;
}

/*
 * What a walk would show of a request or stack that began before the walk came on may not be whole:
 * copies that were gone by then were not kept, and nothing says from where on the rest counts.
 */
static __always_inline int began_unseen(const struct walk *w, int is_top)
{
	if (w->frame[0].begin_raw >= walk_since() || (is_top && !kept_are_any()))
		return 0;
	layer_drop(w->target, WIRE_LOST_SKIPPED);
	pass_request();
	return 1;
}

/*
 * A callback of the kind (frame, cookie, this, op_ret, op_errno, ...) was entered with a root
 * frame: a request has its reply, or a stack of the process's own a result.
 */
static __noinline int on_root(__u64 frame, __s32 result, __s32 op_errno, struct wire_proc *proc,
			      __u32 site)
{
	struct wire_layout *l;
	struct ledger *ledger;
	struct walk *w;
	__u64 stack, next;
	int is_top, ret;

	if (!proc)
		return 0;
	w = walk_get();
	if (!w)
		return 0;
	describe(w, proc, result, op_errno);
	l = layout_get(w);
	if (!l || bpf_probe_read_user(w->raw, 16, (const void *)frame))
		goto out_unreadable;
	if (raw_u64(w, FRAME_PARENT))
		return 0; /* not a root frame: this callback has another use as well */
	stack = raw_u64(w, FRAME_ROOT);
	if (read_stack(w, stack))
		goto out_unreadable;
	is_top = site == WIRE_SITE_TOP && raw_u64(w, STACK_STATE);
	if (!is_top) {
		find_request_of(w, stack);
		if (read_stack(w, stack))
			goto out_unreadable;
	}
	walk_begin(w, stack, &next);
	ret = walk_read(w, l, next, is_top);
	if (ret < 0 || (!is_top && background_due(w)))
		return 0;
	if (is_top && w->unique)
		kept_take(w);
	note_stacks(proc, w);
	if (ret || began_unseen(w, is_top))
		return 0;
	if (is_top) {
		note_thread(proc, bpf_get_current_pid_tgid());
		note_fop(w);
		who_read(w, l);
	}
	walk_join(proc->has_aio ? w : NULL);
	ledger = ledger_find();
	walk_account(w, ledger);
	use_request(w);
	dump_request(w, ledger);
	return 0;

out_unreadable:
	layer_drop(WIRE_MAX_TARGETS, WIRE_LOST_UNREADABLE);
	return 0;
}

static __always_inline int on_callback(struct pt_regs *ctx)
{
	struct wire_proc *proc = proc_get(bpf_get_current_pid_tgid() >> 32);
	__u64 site = bpf_get_attach_cookie(ctx);

	if (!proc)
		return 0;
	__sync_fetch_and_add(&proc->probe_hits, 1);
	if (site & WIRE_SITE_STEPPED)
		__sync_fetch_and_add(&proc->stepped_hits, 1);
	if (walk_since() == WIRE_DUTY_OFF) {
		pass_request();
		return 0;
	}
	return on_root(PT_REGS_PARM1(ctx), PT_REGS_PARM4(ctx), PT_REGS_PARM5(ctx), proc,
		       site & WIRE_SITE_MASK);
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

/* A fop of an xlator that shares its frame, or may: fop(frame, this, ...). */
static __always_inline int on_entry(struct pt_regs *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct wire_proc *proc = proc_get(tgid);

	if (!proc)
		return 0;
	__sync_fetch_and_add(&proc->probe_hits, 1);
	if (walk_since() == WIRE_DUTY_OFF)
		return 0;
	tails_mark(tgid, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx));
	return 0;
}

SEC("uprobe")
int on_entry__multi(struct pt_regs *ctx)
{
	return on_entry(ctx);
}

SEC("uprobe")
int on_entry__perf(struct pt_regs *ctx)
{
	return on_entry(ctx);
}

/* Thread -> stack whose frames it is destroying, children first (discovery). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u64);
} ending SEC(".maps");

/* A stack's last frame, its root, ends: did it have others? Who winds nothing ends in no callback.
 */
static __always_inline void count_end(struct wire_proc *proc, __u64 thread, __u64 stack)
{
	__u64 *last = bpf_map_lookup_elem(&ending, &thread);

	__sync_fetch_and_add(&proc->ends, 1);
	if (!last || *last != stack)
		__sync_fetch_and_add(&proc->bare_ends, 1);
}

/* A child of a root frame names in frame->ret the callback through which its stack gets results. */
static __always_inline void note_callback(const struct wire_layout *l, __u32 tgid, __u64 frame)
{
	struct wire_fops *sets = bpf_map_lookup_elem(&fops, &tgid);
	struct wire_callback_key key = { .tgid = tgid };
	__u32 op = 0, seen = 1;

	bpf_probe_read_user(&op, sizeof(op), (const void *)(frame + l->frame_op));
	if (sets && sets->wanted && !(sets->wanted >> (op & 63) & 1))
		return;
	if (bpf_probe_read_user(&key.addr, 8, (const void *)(frame + l->frame_ret)) || !key.addr)
		return;
	if (!bpf_map_lookup_elem(&callbacks, &key) &&
	    bpf_map_update_elem(&callbacks, &key, &seen, BPF_NOEXIST) == -7 /* E2BIG */)
		layer_drop(WIRE_MAX_TARGETS, WIRE_LOST_MAP_FULL);
}

/* Discovery: gf_frame_latency_update(frame) sees each frame as its stack is destroyed. */
static __always_inline int on_frame_end(struct pt_regs *ctx)
{
	__u64 frame = PT_REGS_PARM1(ctx), thread = bpf_get_current_pid_tgid(), head[2], grand = 1;
	__u64 *last;
	__u32 tgid = thread >> 32, row;
	struct wire_proc *proc = proc_get(tgid);
	struct wire_layout *l;

	if (!proc)
		return 0;
	__sync_fetch_and_add(&proc->probe_hits, 1);
	row = proc->layout;
	l = bpf_map_lookup_elem(&layouts, &row);
	/* its stack (FRAME_ROOT) and its parent */
	if (!l || bpf_probe_read_user(head, sizeof(head), (const void *)(frame + FRAME_ROOT)))
		return 0;
	if (!head[1]) {
		count_end(proc, thread, head[0]);
		return 0;
	}
	last = bpf_map_lookup_elem(&ending, &thread);
	if (!last || *last != head[0])
		bpf_map_update_elem(&ending, &thread, &head[0], BPF_ANY);
	if (!bpf_probe_read_user(&grand, 8, (const void *)(head[1] + FRAME_PARENT)) && !grand)
		note_callback(l, tgid, frame);
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
