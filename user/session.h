/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h: one investigation: targets, the processes behind them, the live source, the model. It
 * collects; what is shown, and when, is app_attach.c's. Runs on one thread.
 */
#ifndef BRICKTOP_SESSION_H
#define BRICKTOP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "budget.h"
#include "meter.h"
#include "model.h"
#include "sink_dump.h"
#include "slow.h"
#include "source_bpf.h"
#include "target.h"
#include "threads.h"
#include "watch.h"

#define SESSION_LAYERS 4096 /* wire layer numbers that dumps can name */

/* A process that one or more targets live in. */
struct session_proc {
	pid_t pid;
	int pidfd;               /* -1: gone */
	struct watch *watch;     /* NULL: gone, or not GlusterFS */
	struct threads *threads; /* NULL: gone, or not to be had */
	size_t first, n_targets; /* its targets: session.targets[first ...] */
	unsigned int restarts;
	bool gone, unreadable; /* unreadable: its memory, when last looked at */
	bool tick_failed;      /* following it did, when last tried */
	bool is_plain;         /* a brick or a client whose memory is not understood */
	uint64_t gone_ns;      /* when it ended, CLOCK_MONOTONIC; 0: it never was there */
	uint64_t alive_ns;     /* and when it surely had not, CLOCK_BOOTTIME; 0: likewise */
	/* when the window began, or when it was followed: CPU time of its threads, what they hit */
	uint64_t cpu_ns;
	struct meter_target paid;
	uint64_t stepped_hits; /* in the window, as last read */
	/* the same as of the last collection, where the next window may begin */
	uint64_t seen_cpu_ns;
	struct meter_target seen_paid;
	/* and as of the budget's last tick */
	uint64_t tick_cpu_ns;
	struct meter_target tick_paid;
};

/* How long something has been on that is switched off and on. */
struct session_duty {
	bool is_off;
	uint64_t switched_ns; /* since when it is off, or on */
	uint64_t on_ns;       /* how long it has been on, without the time since, if it is */
	/* as the window began, and as of the last look */
	uint64_t begin_ns, begin_on_ns, seen_ns, seen_on_ns;
};

/* Switched at each tick, whatever they cost: tests. */
enum session_turns { SESSION_TURNS_NONE, SESSION_TURNS_LAYERS, SESSION_TURNS_WALK };

/* How an investigation keeps to its budget (session_budget.c). */
struct session_budget {
	double limit_pct; /* of the targets' CPU time; 0: no limit */
	struct budget account;
	enum session_turns turns;
	unsigned int tick;
	bool failed; /* the layers could not be switched on again */
	uint64_t next_tick_ns;
	struct session_duty layers, walk;
};

struct session_devices; /* session_devices.c */
struct session_apps;    /* session_uses.c */

struct session {
	struct target *targets; /* in the model under their index; sorted by process */
	size_t n_targets;
	size_t n_host; /* the first so many are a device or a mount, and no process */
	struct session_devices *devices;
	bool devices_off;          /* no target has any */
	struct session_apps *apps; /* NULL: none was seen */
	struct gluster_resolver resolver;
	struct session_proc *procs;
	size_t n_procs;
	struct model *model;
	struct source *source; /* NULL in the memory mode */
	struct slow *slow;     /* NULL: nothing slow is kept */
	struct meter_calibration cal;
	struct meter_interval meter;
	struct session_budget budget;
	uint64_t rights; /* capabilities that were kept, as of rights.h; has_dropped: the others not
			  */
	bool has_dropped,
		multi_proven; /* multi_proven: a uprobe-multi link saw more than a thread */
	uint64_t own_cpu_ns, begin_ns;
	uint64_t seen_own_cpu_ns, collected_ns; /* as of the last collection */
	int64_t collected_wall_ns;
	uint64_t last_gone_ns, next_follow_ns;
	uint64_t look_ns[2]; /* of the last two looks, or the begin, CLOCK_BOOTTIME */
	char (*names)[64];   /* for dumps: [target * SESSION_LAYERS + layer] */
};

/*
 * Open the memory of all targets' processes. One whose layout no check confirms is taken as a plain
 * process (is_plain); of several those that cannot be had are left out; both is told to the model.
 * 0, and err may say what was left out; or -errno and one clear line.
 */
int session_open(const struct target_list *targets, bool dump, struct session **ret_s, char *err,
		 size_t err_size);
void session_close(struct session *s);

/* Show all block devices of the host, not only those below the targets. Before session_attach(). */
void session_show_all_devices(struct session *s);
/* The host's block devices are looked at. */
bool session_sees_devices(const struct session *s);

/*
 * What bricktop may cost, of the targets' CPU time; turns: what is switched off and on instead,
 * whatever it costs. Before session_attach().
 */
void session_limit(struct session *s, double limit_pct, enum session_turns turns);

/*
 * Load the programs and put the probes in. What keeps them out is told to the model, and the memory
 * mode goes on: then s->source may be NULL. 0 or -ENOMEM.
 */
int session_attach(struct session *s, const struct source_config *config);
void session_detach(struct session *s);

/*
 * Give up what is not needed any more now that everything is in place; again now and then: with
 * time less is. Threads that are there already give up nothing by it.
 */
void session_drop_rights(struct session *s);

/*
 * Keep slow operations: after session_attach() with source_config.slow, before session_start().
 * config->n_targets is the session's business. 0 or -ENOMEM; does nothing without probes.
 */
int session_keep_slow(struct session *s, const struct slow_config *config);
/* A record of the ring with WIRE_DUMP_SLOW. */
void session_take_slow(struct session *s, const void *record, size_t len);
/*
 * Forget what was taken so far. Due after session_start(), once the ring was emptied; of later
 * windows session_next_window() sees to it.
 */
void session_start_slow(struct session *s);

/*
 * Start the window now; read everything into the model. 0 or -ENOMEM: what else cannot be read is
 * told to the model.
 */
int session_start(struct session *s);
int session_collect(struct session *s);

/* Let the next window begin where the last collection was: nothing falls in between. */
void session_next_window(struct session *s);

/*
 * Between collections: clients whose graph was switched. Wants to be called every SESSION_LOOK_MS;
 * does nothing, at the cost of a read for each client, where nothing was.
 */
#define SESSION_LOOK_MS 20
int session_look(struct session *s);

/* As session_collect(), for the last time: what no request has claimed is entered, too. */
int session_finish(struct session *s);

/* The picture of the window, up to the last collection. */
int session_snapshot(struct session *s, bool memory_only, bool lifetime,
		     struct snapshot **ret_snap);

/* A process ended (its pidfd became readable). */
void session_proc_gone(struct session *s, struct session_proc *p);

/*
 * No process is left, nor a device or a mount; then *ret_last is the process that ended last.
 */
bool session_all_gone(const struct session *s, const struct session_proc **ret_last);

/*
 * Look whether processes that went have come back under a new pid; returns how many did. Not at
 * each call: the longer they are gone, the more rarely.
 */
size_t session_follow(struct session *s);

/*
 * A dump record's xlators get the numbers that names are kept under. False: some are not known yet,
 * and may be when session_look() has read the new graph and session_learn_names() was called.
 */
bool session_settle_record(const struct session *s, void *record, size_t len);
void session_learn_names(struct session *s);
/* Names for dump records; valid as long as the session. */
struct sink_dump_names session_names(const struct session *s);

#endif
