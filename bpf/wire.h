/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * wire.h: the contract between the BPF programs and the collector. Everything that crosses is
 * declared here, once: fixed widths, explicit padding, no pointers, sizes asserted. Include it
 * after a header that defines the __u types (vmlinux.h in BPF, linux/types.h outside).
 */
#ifndef BRICKTOP_WIRE_H
#define BRICKTOP_WIRE_H

#include "hist.h"
#include "wire_subs.h"
#include "wire_who.h"

/* What kind of root a request has; WIRE_ROOT_APP is an application's syscall on a mount. */
enum wire_root {
	WIRE_ROOT_BRICK = 0,
	WIRE_ROOT_CLIENT = 1,
	WIRE_ROOT_APP = 2,
	WIRE_ROOT_LOCAL = 3,      /* a process's own file operations */
	WIRE_ROOT_BACKGROUND = 4, /* stacks that no request waits for */
	WIRE_ROOTS,
};

enum wire_origin { WIRE_ORIGIN_USER = 0, WIRE_ORIGIN_INTERNAL = 1 };

/*
 * Layer ids. 0 is the residue that no layer claims. 1 .. 63 are the rows of layers.def. From 64 on:
 * the xlators of a target, in the order of its graph (64 is the root: protocol/server or
 * mount/fuse).
 */
#define WIRE_LAYER_UNATTRIBUTED 0
#define WIRE_LAYER_SYSCALL      1
#define WIRE_LAYER_XFS          2
#define WIRE_LAYER_THROTTLE     3
#define WIRE_LAYER_WRITEBACK    4
#define WIRE_LAYER_BLOCK        5
#define WIRE_LAYER_SCHED        6
#define WIRE_LAYER_AIO          7
#define WIRE_LAYER_URING        8
#define WIRE_LAYER_XLATOR       64

/*
 * Xlators of a client's new graph, met before the collector has told of them, get numbers from here
 * on; the collector finds them in "nodes" and knows by the address whose they are.
 */
#define WIRE_LAYER_ADOPTED 0x8000
#define WIRE_MAX_ADOPTED   512

#define WIRE_MAX_TARGETS 64
#define WIRE_MAX_SHARDS  4

/* Limits of one walk; beyond them a request is counted as unsplit, never cut silently. */
#define WIRE_MAX_STACKS       16
#define WIRE_MAX_STACK_FRAMES 128
#define WIRE_MAX_FRAMES       320
#define WIRE_LEDGER           2048 /* finished outermost spans that a thread remembers, ... */
#define WIRE_OVERFLOW         2048 /* more of those that nobody has claimed, ... */
#define WIRE_DETAILS          44   /* and those of which it remembers parts and file */
#define WIRE_SPAN_PARTS       12   /* (layer, sub) pairs inside one outermost span */
#define WIRE_SPAN_DEPTH       8
#define WIRE_MAX_JOINED       8 /* spans that a request's frames waited for on other threads */
#define WIRE_TAIL_MARKS       8 /* entries remembered of one frame */

/* One histogram slot's identity: "layer, called from parent, for requests op of root". */
struct wire_slot_key {
	__u16 target;
	__u16 layer;
	__u16 parent; /* layer above; WIRE_LAYER_UNATTRIBUTED for a root */
	__u8 op;      /* the root request's fop; for WIRE_ROOT_LOCAL the sub of its span */
	__u8 root;    /* enum wire_root */
	__u8 origin;  /* enum wire_origin */
	__u8 sub;     /* operation inside a fixed layer (enum wire_syscall); of an xlator, and of
			 no layer: 0, or WIRE_SUB_UNCOVERED */
	__u8 parent_sub;
	__u8 top;              /* WIRE_ROOT_LOCAL: layer of the outermost span, whose sub is op */
} __attribute__((aligned(4))); /* compared by words */
_Static_assert(sizeof(struct wire_slot_key) == 12, "wire_slot_key");

/*
 * Of a request in which the layers below the xlators were off for a time (struct wire_duty): its
 * spans are not known whole, and are in no row. Its passages are true, but for their self times,
 * which hold what the spans took.
 */
#define WIRE_SUB_UNCOVERED 1

/* A slot as the collector has it: the sum over all shards. */
struct wire_slot {
	__u64 count;
	__u64 self_sum_ns, incl_sum_ns;
	__u64 self_max_ns, incl_max_ns;
	__u64 errors; /* replies with op_ret < 0; below the root passages that such a reply came
			 back through; failed calls (spans) */
	__u64 bytes;  /* op_ret of reads and writes; below the root what calls under it moved */
	__s64 more;   /* root rows: less those in which a node's sum check fails; rows inside a
			 span: how often it was met beyond once in a passage */
	__u64 no_errors, no_bytes; /* passages of which these are not known */
	__u32 self[HIST_BUCKETS];
	__u32 incl[HIST_BUCKETS];
};
_Static_assert(sizeof(struct wire_slot) == 80 + 8 * HIST_BUCKETS, "wire_slot");

/*
 * One slot of one shard (map "pool"). Every word only grows; the collector subtracts. A walk pays
 * for each cache line and page that it touches, and for each atomic addition. So the two buckets of
 * a duration lie side by side, and there is no word for what others tell: the count is the sum of
 * the buckets of self times, inclusive time is self time and what lies below.
 */
struct wire_pool_slot {
	__u64 self_ns, below_ns;
	__u64 self_max_ns, incl_max_ns;
	__u64 errors, bytes;
	__s64 more; /* of wire_slot */
	__u64 no_errors, no_bytes;
	__u64 pad[7]; /* to a cache line, like what comes before */
	union {
		struct {
			__u32 self, incl;
		};
		/* a passage without anything below it is one addition to both; after each 2^32 of
		 * them in one bucket that carries one into incl */
		__u64 both;
	} bucket[HIST_BUCKETS];
};
_Static_assert(sizeof(struct wire_pool_slot) == 128 + 8 * HIST_BUCKETS, "wire_pool_slot");

/* What was lost, and why; one growing counter each (array map "losses": [target][loss]). */
enum wire_loss {
	WIRE_LOST_MAP_FULL,   /* no slot left for a (target, layer, op) */
	WIRE_LOST_RING_FULL,  /* a dump record found no room */
	WIRE_LOST_UNPAIRED,   /* a span ended that had not begun, or began and never ended */
	WIRE_LOST_UNREADABLE, /* process memory that could not be read during a walk */
	WIRE_LOST_ABSURD,     /* negative durations, or longer than bricktop is attached */
	WIRE_LOST_LEDGER,     /* requests shown unsplit: the thread's ring had wrapped */
	WIRE_LOST_FRAMES,     /* requests shown unsplit: more frames or stacks than a walk takes */
	WIRE_LOST_ORDER,      /* requests shown unsplit: intervals that could not be ordered */
	WIRE_LOST_STORAGE,    /* task storage busy or out of memory */
	WIRE_LOST_UNKNOWN,    /* frames of an xlator that is in no known graph */
	WIRE_LOST_SKIPPED,    /* by duty cycle (not seen below the xlators) or filter limits */
	WIRE_LOST_MARKS,      /* shared frames whose entries were not all seen: shown as a group */
	WIRE_LOST_WAKES,      /* sleeps whose end was not seen: their time is not told apart */
	WIRE_LOST_BEFORE, /* not lost, only not seen whole: operations begun before bricktop came */
	WIRE_LOSSES,
};

/* Requests walked, by how their sum check came out (array map "checks": [target][check]). */
enum wire_check {
	WIRE_CHECK_WALKED,   /* all */
	WIRE_CHECK_FAILED,   /* not: incl = self + union(children) in every node, nothing below */
	WIRE_CHECK_OUTSIDE,  /* a child outside its parent's interval (clipped) */
	WIRE_CHECK_NEGATIVE, /* a node with negative self time or length */
	WIRE_CHECK_UNSPLIT,  /* spans or frames could not be split */
	WIRE_CHECK_OPEN,     /* a child was still open at its parent's end (clipped; no fault) */
	WIRE_CHECK_ORPHAN,   /* a frame whose parent is not in the stack */
	WIRE_CHECK_COPIES,   /* copied stacks that were followed (a count, no fault) */
	WIRE_CHECKS,
};

/*
 * File syscalls that storage/posix and SQLite make: sub of the layer "syscall". The second column
 * tells how the file is named: FD calls count only on regular files, directories and block devices.
 */
#define WIRE_SYSCALLS(X)        \
	X(pread64, FD)          \
	X(pwrite64, FD)         \
	X(preadv, FD)           \
	X(pwritev, FD)          \
	X(preadv2, FD)          \
	X(pwritev2, FD)         \
	X(readv, FD)            \
	X(writev, FD)           \
	X(read, FD)             \
	X(write, FD)            \
	X(fsync, FD)            \
	X(fdatasync, FD)        \
	X(sync_file_range, FD)  \
	X(fallocate, FD)        \
	X(ftruncate, FD)        \
	X(truncate, PATH)       \
	X(openat, PATH)         \
	X(open, PATH)           \
	X(close, FD)            \
	X(newfstatat, PATH)     \
	X(fstat, FD)            \
	X(lstat, PATH)          \
	X(stat, PATH)           \
	X(statx, PATH)          \
	X(getxattr, PATH)       \
	X(lgetxattr, PATH)      \
	X(fgetxattr, FD)        \
	X(setxattr, PATH)       \
	X(lsetxattr, PATH)      \
	X(fsetxattr, FD)        \
	X(llistxattr, PATH)     \
	X(flistxattr, FD)       \
	X(lremovexattr, PATH)   \
	X(removexattr, PATH)    \
	X(fremovexattr, FD)     \
	X(mkdir, PATH)          \
	X(mkdirat, PATH)        \
	X(rmdir, PATH)          \
	X(unlink, PATH)         \
	X(unlinkat, PATH)       \
	X(rename, PATH)         \
	X(renameat, PATH)       \
	X(renameat2, PATH)      \
	X(link, PATH)           \
	X(linkat, PATH)         \
	X(symlink, PATH)        \
	X(symlinkat, PATH)      \
	X(mknod, PATH)          \
	X(mknodat, PATH)        \
	X(readlink, PATH)       \
	X(readlinkat, PATH)     \
	X(utimensat, PATH)      \
	X(chmod, PATH)          \
	X(fchmod, FD)           \
	X(fchmodat, PATH)       \
	X(lchown, PATH)         \
	X(fchown, FD)           \
	X(fchownat, PATH)       \
	X(statfs, PATH)         \
	X(fstatfs, FD)          \
	X(lseek, FD)            \
	X(getdents64, FD)       \
	X(copy_file_range, FD)  \
	X(msync, PATH)          \
	X(syncfs, FD)           \
	X(io_uring_enter, PATH) \
	X(io_submit, PATH)

#define WIRE_SYSCALL_ENUM(name, by) WIRE_SYS_##name,
enum wire_syscall { WIRE_SYS_NONE, WIRE_SYSCALLS(WIRE_SYSCALL_ENUM) WIRE_SYSCALL_COUNT };
_Static_assert(WIRE_SYSCALL_COUNT <= 256, "a sub has 8 bits");

/*
 * Entry of wire_cfg.syscalls: the sub, and whether the call's first argument is a descriptor. REAPS
 * alone: a call that fetches results of asynchronous operations, which is no file operation itself.
 */
#define WIRE_SYS_BY_PATH 0
#define WIRE_SYS_BY_FD   0x100
#define WIRE_SYS_REAPS   0x200
#define WIRE_SYS_NUMBERS 512

/* ---- configuration: what the collector tells the programs -------------- */

/* .rodata.cfg, set before load. */
struct wire_cfg {
	__u32 shards;      /* 1 .. WIRE_MAX_SHARDS */
	__u32 slots;       /* per shard */
	__u32 dump;        /* 1: whole requests are wanted (map "dump_left" says how many) */
	__u32 slow;        /* 1: so are slow ones (map "slow" says from how long on) */
	__u32 split_tails; /* 1: frames that xlators share are split by their entries */
	__u32 dev_rows;    /* of the host's block devices, per shard */
	__u16 syscalls[WIRE_SYS_NUMBERS]; /* by this architecture's number; 0: not watched */
};

/* Map "duty", one entry: what is switched off and on to keep a budget. */
#define WIRE_DUTY_OFF (~0ULL)

struct wire_duty {
	/*
	 * Since when (CLOCK_MONOTONIC) all layers below the xlators are on that are wanted; 0: they
	 * always were; WIRE_DUTY_OFF: not all of them are.
	 */
	__u64 layers_since_ns;
	/* The same of the walk: while it is off its probes count their hits, and read nothing. */
	__u64 walk_since_ns;
};

/* Map "procs": tgid -> how to read that process, and what it showed. */
struct wire_proc {
	__u16 layout;       /* index into the map "layouts" */
	__u8 root;          /* enum wire_root of requests at its top callback */
	__u8 has_aio;       /* 1: asynchronous operations of frames of it were seen */
	__u16 local_target; /* target that its own file operations are shown under */
	__u16 pad2;
	__u32 first_tid; /* first thread that hit a probe, and another one: the proof that */
	__u32 other_tid; /* a pid filter matches the whole process (broken on early 6.6) */
	__u64 probe_hits, stepped_hits; /* uprobe hits of its threads; those at a stepped site */
	__u64 stacks; /* call stacks of it that probes have met: each once, copies included */
	__u64 ends, bare_ends; /* discovery: stacks seen to end; those that never wound anything */
};
_Static_assert(sizeof(struct wire_proc) == 56, "wire_proc");

/*
 * Map "traced": tgid % WIRE_TRACED_ROWS -> the process, for hooks that every process of the host
 * runs into. A process whose row was taken is found in "procs" alone, and its calls are not
 * counted.
 */
#define WIRE_TRACED_ROWS  1024
#define WIRE_TRACED_FIRST 1024 /* calls, a CPU, whose hits are all timed */
#define WIRE_TRACED_SHIFT 4    /* of the later ones, one hit in 1 << 4 */

struct wire_traced {
	__u32 tgid; /* 0: nobody */
	__u16 local_target;
	__u16 is_plain; /* 1: no GlusterFS: each of its calls is for itself */
};
_Static_assert(sizeof(struct wire_traced) == 8, "wire_traced");

/*
 * Map "traced_hits", by the same number and by CPU: what the process's hits cost. Not counted
 * atomically: a few of many millions may be missing of what is an estimate anyway.
 */
struct wire_traced_hits {
	__u64 calls;    /* that its threads began: each is a hit at enter and at exit */
	__u64 hits;     /* of its threads at other tracepoints */
	__u64 timed_ns; /* run time of their hits behind the filter, by those timed; ... */
	__u64 timed;    /* ... so many hits; in each is one reading of the clock */
};
_Static_assert(sizeof(struct wire_traced_hits) == 32, "wire_traced_hits");

/* Map "layouts": offsets of one GlusterFS release (see user/gluster_layout.h). */
struct wire_layout {
	__u16 stack_myframes, stack_op;
	__u16 frame_begin, frame_end, frame_this, frame_ret, frame_op;
	__u16 stack_err_xl; /* who raised the stack's error, which lies behind; 0: not known */
	__u16 fuse_fd;      /* of mount/fuse's state of a request: its open file */
	__u16 fd_inode, itable_xl;
	__u16 pad;
};
_Static_assert(sizeof(struct wire_layout) == 24, "wire_layout");

/* Map "nodes": an xlator of a process -> its place in a target's graph. */
struct wire_node_key {
	__u64 xlator;
	__u32 tgid;
	__u32 pad;
};

#define WIRE_NODE_ROOT 1 /* protocol/server or mount/fuse: shared by a process's targets */
#define WIRE_NODE_HOP  2 /* io-threads: what it winds runs on another thread */
#define WIRE_NODE_AIO  4 /* storage/posix: may wait for asynchronous operations */

struct wire_node {
	__u16 target; /* WIRE_MAX_TARGETS: of a brick that is not looked at */
	__u16 layer;
	__u16 flags;
	__u16 pad;
	__u64 marked;   /* set of fops whose entry is probed: 1 << fop */
	__u64 since_ns; /* ... for frames begun from then on (CLOCK_MONOTONIC) */
};
_Static_assert(sizeof(struct wire_node) == 24, "wire_node");

/*
 * Map "entries": a frame's address -> who was entered with it. An xlator that winds by tail hands
 * its own frame on, so a frame may have several. Frames are used again and again: only marks inside
 * a frame's own begin and end are of this use.
 */
struct wire_entry_key {
	__u64 frame;
	__u32 tgid;
	__u32 pad;
};

struct wire_mark {
	__u64 xlator, time;
};

struct wire_entries {
	__u64 n; /* ever made; the next goes to mark[n % WIRE_TAIL_MARKS] */
	struct wire_mark mark[WIRE_TAIL_MARKS];
};
_Static_assert(sizeof(struct wire_entries) == 8 + 16 * WIRE_TAIL_MARKS, "wire_entries");

/* Uprobe cookies: what a site is. */
enum wire_site {
	WIRE_SITE_TOP = 1, /* callback of protocol/server or mount/fuse: one hit, one request */
	WIRE_SITE_BACKGROUND = 2, /* callback of a stack that an xlator made itself */
};
#define WIRE_SITE_MASK    0xff
#define WIRE_SITE_STEPPED 0x100 /* its instruction is single-stepped: a dear hit */

/* Map "fops": tgid -> sets (1 << fop) of what was walked, and of what discovery is to look at. */
struct wire_fops {
	__u64 walked; /* fops of requests, by the programs */
	__u64 wanted; /* by the collector; 0: all */
};

/* Map "callbacks" (discovery): a set of callbacks that results of stacks came back through. */
struct wire_callback_key {
	__u64 addr; /* frame->ret in the process */
	__u32 tgid;
	__u32 pad;
};

/* ---- whole requests: one record of the ring "events" ------------------- */

struct wire_dump_frame {
	__u64 addr, xlator, begin_raw, end_raw, begin, end, covered;
	__u16 parent; /* index; 0xffff: none */
	__u16 layer;
	__u16 op;
	__u8 stack;
	__u8 flags;        /* WIRE_FRAME_* */
	__u64 bytes;       /* moved by the calls in it and below it */
	__u32 failed, pad; /* 1: the request's error came back through it */
};
_Static_assert(sizeof(struct wire_dump_frame) == 80, "wire_dump_frame");

#define WIRE_FRAME_COPY_ROOT 1 /* root frame of a copied stack: stands for the frame it copies */
#define WIRE_FRAME_ON_THREAD 2 /* ran on the thread that walked */
#define WIRE_FRAME_COUNTED   4 /* entered in a histogram */
#define WIRE_FRAME_DERIVED   8 /* begin was taken from a neighbour */
#define WIRE_FRAME_CLIPPED   16
#define WIRE_FRAME_OPEN      32
#define WIRE_FRAME_TAIL      64  /* the part of its parent's frame since this xlator was entered */
#define WIRE_FRAME_MARKED    128 /* its entries were looked at */

struct wire_span_part {
	__u16 layer;
	__u8 sub, parent_part; /* index of the enclosing part; 0xff: outermost */
	__u32 calls;
	__u64 self_ns, incl_ns;
};
_Static_assert(sizeof(struct wire_span_part) == 24, "wire_span_part");

/*
 * A finished outermost span of a thread's ledger. Always of this size, what lies behind n_parts is
 * undefined. One that no frame claimed (it is another request's, or the thread's own) may have lost
 * its parts but the outermost.
 */
struct wire_span {
	__u64 begin, end; /* CLOCK_MONOTONIC ns */
	__u64 bytes;      /* moved by the call, 0 where it moves none */
	__u64 file;       /* inode number, 0 unknown; known where bytes were moved, and of aio */
	__u32 claimed;    /* 0: by nobody yet */
	__u16 frame;      /* index of the frame that claimed it; 0xffff: none did */
	__u8 failed, n_parts;
	__u64 joined; /* address of the frame that its control block names; 0: it is a thread's */
	struct wire_span_part part[WIRE_SPAN_PARTS];
};
_Static_assert(sizeof(struct wire_span) == 48 + 24 * WIRE_SPAN_PARTS, "wire_span");

#define WIRE_DUMP_ANY  1 /* as one of so many that were asked for */
#define WIRE_DUMP_SLOW 2 /* for its length */

/* A process's own operation (root local) has one span and no frame; its tgid is its target's. */
struct wire_dump {
	__u32 tgid, tid;
	__u16 target, op;
	__u8 root, origin, unsplit; /* unsplit: enum wire_loss + 1, or 0 */
	__u8 wanted;                /* WIRE_DUMP_* */
	__s64 result;               /* op_ret */
	__u64 watermark;
	__u32 n_frames, n_spans;
	__u32 n_marks;
	__s32 op_errno;
	__s32 stack_error; /* where result < 0: the stack's last error, and the layer of */
	__u16 raiser;      /* who raised it (0: nobody that is known) */
	__u8 raiser_known;
	__u8 uncovered; /* 1: layers were off while it ran (WIRE_SUB_UNCOVERED) */
	/* then a wire_who, n_frames wire_dump_frame, n_spans wire_span, n_marks wire_dump_marks */
};
_Static_assert(sizeof(struct wire_dump) == 56, "wire_dump");

/* What a frame with WIRE_FRAME_MARKED was split by, as recorded. */
struct wire_dump_marks {
	__u16 frame;      /* index of the frame, the first of its parts */
	__u16 this_layer; /* the xlator that the process says it ended in */
	__u32 pad;
	__u16 layer[WIRE_TAIL_MARKS]; /* of each mark's xlator; 0: of none that is known */
	struct wire_entries entries;
};
_Static_assert(sizeof(struct wire_dump_marks) == 8 + 2 * WIRE_TAIL_MARKS + 8 + 16 * WIRE_TAIL_MARKS,
	       "wire_dump_marks");

/* ---- the host's block devices (bpf/blockdev.bpf.c) --------------------- */

/*
 * What a row counts. FLUSH are the flushes that a device got; FLUSH_WAIT the requests that asked
 * for nothing but a flush and waited for one, several perhaps for the same: the kernel's own
 * statistics count those as writes of no sectors.
 */
#define WIRE_DEV_OPS(X)             \
	X(READ, "read")             \
	X(WRITE, "write")           \
	X(FLUSH, "flush")           \
	X(FLUSH_WAIT, "flush-wait") \
	X(DISCARD, "discard")       \
	X(ZEROES, "write-zeroes")   \
	X(OTHER, "other")

#define WIRE_DEV_ENUM(id, name) WIRE_DEV_##id,
enum wire_dev_op { WIRE_DEV_OPS(WIRE_DEV_ENUM) WIRE_DEV_OP_COUNT };

#define WIRE_DEV_ROWS   256 /* at least so many wire_cfg.dev_rows: pairs of device and op */
#define WIRE_DEV_RECENT 8   /* requests that a next one may follow on */

/* A row of map "dev_rows". dev as the kernel has it: major << 20 | minor, of the whole disk. */
struct wire_dev_key {
	__u32 dev;
	__u8 op;     /* enum wire_dev_op */
	__u8 by_bio; /* 1: the device takes bios and makes no requests of them (dm, md, zram) */
	__u16 pad;
};
_Static_assert(sizeof(struct wire_dev_key) == 8, "wire_dev_key");

/* Where a finished request lay, and when it was begun. */
struct wire_dev_recent {
	__u64 begin, end; /* sectors */
	__u64 start_ns;
};

struct wire_dev_row {
	__u32 index; /* into one shard of "dev_pool" */
	__u32 next;  /* recent[next % WIRE_DEV_RECENT] is overwritten next */
	struct wire_dev_recent recent[WIRE_DEV_RECENT];
};
_Static_assert(sizeof(struct wire_dev_row) == 8 + 24 * WIRE_DEV_RECENT, "wire_dev_row");

/*
 * One row of one shard (map "dev_pool"). Every word only grows, but for the maxima, which are
 * raised. How many were timed is the sum of a histogram's buckets: a queue without statistics
 * leaves them empty. Sizes are in bytes, in the same buckets as durations.
 */
struct wire_dev {
	/* a line of the cache: what every request touches */
	__u64 count; /* requests (bios) that ended */
	__u64 bytes;
	__u64 queue_sum_ns, queue_max_ns, device_sum_ns, device_max_ns, size_sum, size_max;
	__u64 sequential; /* began where a recent one ended */
	__u64 errors;
	__u64 partial; /* completions that did not complete their request */
	__u64 pad[5];
	__u32 queue[HIST_BUCKETS], device[HIST_BUCKETS], size[HIST_BUCKETS];
};
_Static_assert(sizeof(struct wire_dev) == 128 + 12 * HIST_BUCKETS, "wire_dev");

/* Map "dev_info", one entry: what there is, and what was lost. */
struct wire_dev_info {
	__u32 used; /* rows of a shard */
	__u32 open_partials;
	__u64 lost_rows;    /* requests for whose device and op no row was left */
	__u64 lost_bios;    /* bios that could not be remembered until their end */
	__u64 unpaired;     /* bios whose end was never seen */
	__u64 lost_partial; /* requests whose first parts could not be remembered */
	__u64 negative;     /* times that ended before they began */
};
_Static_assert(sizeof(struct wire_dev_info) == 48, "wire_dev_info");

#endif
