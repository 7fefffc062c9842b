/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h: what the model hands to the sinks: one immutable picture of a window, for all
 * targets. Plain data: built by model.c, read by text, JSON and (later) screen and recorder. Names
 * in it are already sanitized. A figure that was not measured has valid == false and is shown as
 * "-".
 */
#ifndef BRICKTOP_SNAPSHOT_H
#define BRICKTOP_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snap_num {
	double v;
	bool valid;
};

/* A distribution of durations in ns. valid: anything was measured; has_quantiles: more than a mean.
 */
struct snap_dist {
	bool valid, has_quantiles;
	uint64_t count;
	double mean, p50, p90, p99, p999, max;
};

enum snap_state { SNAP_ON, SNAP_OFF, SNAP_DERIVED };

struct snap_layer {
	char id[64];    /* xlator name without the volume prefix, a tail group, a syscall */
	char path[512]; /* ids from the root, joined by '/' */
	char kind[16];  /* xlator|syscall|... */
	char type[128]; /* "performance/io-threads", or the layer's title */
	enum snap_state state;
	char reason[160];              /* why it is off or derived; "" */
	unsigned int depth;            /* 0: root */
	uint64_t count, errors, bytes; /* passages of this layer */
	bool has_errors, has_bytes;    /* measured; an xlator's errors are those that a request
					  ended with and that came back through it */
	uint64_t calls; /* inside a span: how often it was met; count is in how many operations */
	bool has_calls;
	struct snap_dist self, incl;
	struct snap_num share_pct;   /* self time of all passages / inclusive time of all roots */
	struct snap_num est_self_ns; /* memory mode: difference of means; an estimate, never a
					measurement */
};

enum snap_source { SNAP_FROM_WALK, SNAP_FROM_MEMORY };

struct snap_op {
	char root[16];   /* brick|client|app|local|background */
	char origin[16]; /* user|internal */
	char op[32];
	enum snap_source source; /* memory: "means only" */
	uint64_t count, bytes, errors;
	/*
	 * Requests in which layers were off for a time, and their time altogether: they are in no
	 * self time, and in no row below the xlators.
	 */
	uint64_t uncovered;
	double uncovered_ns;
	struct snap_num rate_hz;
	bool has_bytes, has_errors;
	struct snap_num in_flight, in_flight_oldest_ns;
	struct snap_num coverage_pct;
	struct snap_num sum_check_pct;
	struct snap_dist incl;
	struct snap_num unattributed_ns; /* mean per root */
	struct snap_layer *layers;       /* in tree order */
	size_t n_layers;
};

/* Mean inclusive time of the requests that were seen whole; 0: there are none. */
static inline double snapshot_covered_mean_ns(const struct snap_op *op)
{
	if (!op->incl.valid || op->count <= op->uncovered)
		return 0;
	return (op->incl.mean * (double)op->count - op->uncovered_ns) /
	       (double)(op->count - op->uncovered);
}

/* Names as in the JSON contract's "lost". */
struct snap_lost {
	uint64_t total, map_full, ring_full, unpaired, unreadable, absurd, ledger, skipped;
	uint64_t recursion, uprobe_missed, storage_busy;
	uint64_t frames, order, unknown_xlator; /* further causes of unsplit or unwalked requests */
	bool has_recursion, has_uprobe_missed;  /* somebody counts them */
	uint64_t marks;        /* shared frames that could not be split (--split-tails) */
	uint64_t wakes;        /* sleeps whose end was not seen: their time is told by no wait */
	uint64_t begun_before; /* not in total: asynchronous operations in flight as it began */
};

struct snap_checks {
	uint64_t walked, holds, outside, negative, unsplit, open, orphan, copies;
};

struct snap_cost {
	struct snap_num core_pct, target_pct;
	struct snap_num duty_pct; /* of the window, in which the layers below the xlators were on */
	struct snap_num walk_duty_pct; /* the same of the walk */
	struct snap_num budget_pct;    /* of the target's CPU time; not valid: no limit */
	struct snap_num own_pct;       /* the part of core_pct that is bricktop's own CPU time */
	uint64_t probe_hits;           /* host-wide: uprobe_hits + tracepoint_hits */
	uint64_t uprobe_hits, tracepoint_hits;
	/* calibrated cost of one hit, without the program's own time; 0: not known */
	double hit_ns, tracepoint_hit_ns;
	bool is_uncounted; /* the kernel keeps its statistics: only uprobe_hits is known */
};

/* Where the top callbacks of a target's process are probed. */
struct snap_probes {
	bool valid;
	uint64_t callbacks, stepped; /* stepped: of those, without a cheap instruction */
	char module[64];             /* "server.so" */
	char insn[80];               /* at the first one: "push r15" */
	bool insn_stepped;           /* its class: single-stepped, else emulated */
	char kind[16];               /* "uprobe-multi" or "perf" */
};

#define SNAP_ALL_TARGETS (-1)

struct snap_off {   /* a layer or step that could not be attached */
	int target; /* the target (its place in the snapshot) that misses it, or SNAP_ALL_TARGETS */
	char what[64];
	char reason[256];
};

struct snap_oldest { /* oldest request in flight */
	bool valid;
	char op[32], xlator[256], file[1024];
	double age_ns;
	int64_t app_pid;
};

/*
 * A thread of the process, as the kernel's scheduler counts: shares of the part of the window in
 * which it existed. blocked: neither of the two, so asleep, in I/O or idle.
 */
struct snap_thread {
	char comm[64], pool[64];
	int tid;
	double secs; /* of the window in which it existed */
	struct snap_num oncpu_pct, runnable_pct, blocked_pct;
};

/* Threads that do the same work, by their names; shares of the time of all of them together. */
struct snap_pool {
	char name[64];
	unsigned int n;         /* threads that existed in the window */
	struct snap_num mean_n; /* at a time, on the average */
	struct snap_num oncpu_pct, runnable_pct, blocked_pct;
	struct snap_num oncpu_ns, runnable_ns; /* sums over the window */
	const struct snap_thread *busiest;     /* longest on CPU; in the same snapshot */
};

enum snap_confidence { SNAP_LOW, SNAP_MEDIUM, SNAP_HIGH };

#define SNAP_MAX_EVIDENCE 6
#define SNAP_MAX_CAUSES   5

/* One finding. Also "nothing stands out" and "not enough data" are findings, alone then. */
struct snap_cause {
	char cause[32];            /* what kind: "xlator", "device", "not-enough-data" */
	char subject[64];          /* which one: "delay-gen+upcall", "pread64"; "" */
	char summary[192];         /* for a reader: one clause */
	struct snap_num share_pct; /* of the time of all users' requests */
	bool tail;                 /* of the slowest requests, not of the mean */
	enum snap_confidence confidence;
	char evidence[SNAP_MAX_EVIDENCE][192];
	unsigned int n_evidence;
	char next[256]; /* what to look at next; "" */
};

/* What one file, directory or application got, of requests that others wait for. */
struct snap_use {
	uint64_t count, reads, writes, syncs; /* count: all of them, and everything else */
	uint64_t bytes, errors;
	double total_ns;
	struct snap_num max_ns, share_pct; /* of the time of all requests */
};

/* An application: a process on some client; of a plain process a thread. */
struct snap_app {
	struct snap_use use; /* nothing where it stands in a snap_file */
	int64_t pid;         /* where it runs; negative: GlusterFS's own */
	uint32_t uid;
	uint64_t client_addr; /* 0: of no client of a brick */
	uint64_t born_ns;     /* it was there then, CLOCK_MONOTONIC */
	char thread[17];      /* name of a plain process's thread */
	char comm[64];        /* "" not known, or not of this host */
	char client[256];     /* of a brick: its client, as that calls itself; "" */
	char client_host[65]; /* and the host and the process which that says; "" */
	int client_pid;
};

enum snap_file_kind { /* as enum wire_file */
		      SNAP_FILE_UNKNOWN,
		      SNAP_FILE_GFID,
		      SNAP_FILE_ENTRY, /* names that were no files (yet), in the directory path */
		      SNAP_FILE_INODE,
};

struct snap_file {
	struct snap_use use;
	enum snap_file_kind kind;
	uint8_t id[16];  /* gfid; or inode number and device */
	char path[1024]; /* "" not known, from the volume's root, else with as much as is known */
	bool is_dir;     /* it is a directory, as far as is known */
	struct snap_num slowdown; /* its time / that of as many of the same requests of others */
	struct snap_app last;     /* who used it last */
};

/* One layer of a slow operation. Rows are in tree order: what is below follows, a step deeper. */
struct snap_slow_row {
	char id[64], kind[16];   /* as in struct snap_layer */
	unsigned int depth;      /* 0: the operation as a whole */
	struct snap_num at_ns;   /* begin, from the operation's; not of parts of a system call */
	double incl_ns;          /* parts: of all their calls together */
	struct snap_num self_ns; /* not of an operation that could not be split */
	uint64_t calls;          /* parts: how often it was met; else 1 */
	int tid;                 /* thread that ran it; 0: not known */
	bool open;               /* went on after the operation had ended */
	bool failed;  /* the operation's error came back through it; a call that failed */
	bool longest; /* no other row has so much self time */
};

/* One slow operation, whole. */
struct snap_slow {
	char root[16], origin[16], op[32];
	int64_t wall_ns; /* when it began, CLOCK_REALTIME */
	double incl_ns, limit_ns;
	bool failed;
	int error;             /* errno, where failed */
	char unsplit[32];      /* why it could not be split, as in "lost"; "" */
	bool uncovered;        /* the layers below the xlators were off for a part of it */
	struct snap_file file; /* that GlusterFS works on; use: nothing; last: who asked for it */
	bool has_app;          /* file.last is known */
	uint64_t ino;          /* of the file that it read or wrote; 0: not known */
	int tid;
	char comm[64]; /* of that thread; "" */
	uint64_t bytes;
	bool has_bytes;
	uint64_t more_calls; /* system calls without a row: shorter ones than those that have */
	double more_ns;
	struct snap_slow_row *rows;
	size_t n_rows;
};

/* From how long on operations of one kind were slow, and how many were. */
struct snap_slow_limit {
	char root[16], origin[16], op[32];
	struct snap_num limit_ns;
	uint64_t ended, slow;
};

/* What was asked for by --slow. */
struct snap_slows {
	char wanted[32];     /* "5ms", "p99.9"; "": not asked for */
	uint64_t enough;     /* of a share: so many operations have to have ended; else 0 */
	uint64_t slow, lost; /* all of the window; lost: of those, not kept for want of room */
	struct snap_slow_limit *limits;
	size_t n_limits;
	struct snap_slow *ops; /* users' requests, others, local; of each the slowest first */
	size_t n_ops;
};

struct snap_dir {
	struct snap_use use;
	char path[1024];
	uint64_t n_files; /* files of it that are in the table */
};

#define SNAP_MAX_FILES 256 /* of one target in a snapshot; likewise applications */

struct snap_target {
	unsigned int number; /* as the model was told */
	char kind[16];       /* brick|client|xfs|device|process */
	char name[512];      /* "perfvol:/bricks/b1" */
	char device[256], fstype[32], version[32], layout[32];
	int pid;
	unsigned int n_procs; /* of a mount: processes behind it, each a target of its own */
	bool gone;            /* the process ended, and has not come back */
	struct snap_num gone_after_secs; /* from the window's begin; not where it was before */
	unsigned int restarts;           /* times it was followed to a new pid */
	struct snap_num sum_check_pct;
	struct snap_checks checks;
	struct snap_cost cost;
	struct snap_lost lost;
	struct snap_oldest oldest;
	struct snap_probes probes;
	struct snap_op
		*ops; /* users' requests by total time first, then internal, background, local */
	size_t n_ops;
	struct snap_thread *threads; /* longest on CPU first */
	size_t n_threads;
	struct snap_pool *pools; /* likewise */
	size_t n_pools;
	bool has_files;          /* files and applications were looked at */
	struct snap_file *files; /* most time first; at most SNAP_MAX_FILES of n_all_files */
	struct snap_app *apps;   /* likewise */
	struct snap_dir *dirs;   /* of files; filled once their paths are known */
	size_t n_files, n_apps, n_dirs;
	uint64_t n_all_files, n_all_apps;
	struct snap_num files_pct, apps_pct; /* what all of them cover, of all requests' time */
	struct snap_num dirs_pct;
	uint64_t files_pushed, apps_pushed; /* rows for which the programs had no room any more */
	uint64_t names_late; /* of files: the brick's file system did not answer in time */
	struct snap_cause causes[SNAP_MAX_CAUSES]; /* the verdict, first cause first */
	unsigned int n_causes;                     /* 0: nobody has judged */
	struct snap_slows slow;
};

/* So many requests of so many bytes or more, fewer than the next bucket's edge. */
struct snap_size {
	uint64_t from_bytes, count;
};

/* One operation of a block device. Sizes are distributions of bytes. */
struct snap_device_op {
	char op[16];
	uint64_t count, bytes, errors;
	uint64_t partial; /* completions that left a part of their request to be done */
	struct snap_num rate_hz;
	struct snap_num in_flight; /* mean: time of all of them together / window */
	struct snap_num merges, sequential_pct;
	struct snap_dist size, queue, device;
	struct snap_size *sizes; /* all of size's buckets that are not empty, smallest first */
	size_t n_sizes;
};

#define SNAP_DEVICE_STACK 16

/* What a block device of the host got in the window, from everybody. */
struct snap_device {
	char dev[16], name[32];            /* "7:3", "loop3" */
	char label[256];                   /* backing file of a loop, name of a dm device; "" */
	char stack[SNAP_DEVICE_STACK][32]; /* the devices below it, top first */
	unsigned int n_stack;
	uint64_t targets; /* 1 << place in the snapshot, of those that it is shown to */
	bool by_bio;      /* it takes bios: all of their time is the device's */
	struct snap_num busy_pct;
	struct snap_num reads_now, writes_now; /* handed to the device at the window's end */
	struct snap_device_op *ops;
	size_t n_ops;
};

struct snapshot {
	uint64_t mono_ns;   /* end of the window */
	int64_t wall_ns;    /* begin of the window, CLOCK_REALTIME */
	double window_secs; /* 0: since the processes' own counters began */
	bool memory_only;   /* no probe was in */
	char kernel[128];
	struct snap_lost lost_unassigned; /* of which target is not known; in none's lost */
	struct snap_lost lost_devices; /* in the table of devices; in none's, if not a device's */
	struct snap_target *targets;
	size_t n_targets;
	struct snap_off *off;
	size_t n_off;
	bool has_devices; /* the host's block devices were looked at */
	struct snap_device *devices;
	size_t n_devices;
};

#endif
