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

#include "meter.h"
#include "model.h"
#include "sink_dump.h"
#include "source_bpf.h"
#include "target.h"
#include "watch.h"

#define SESSION_LAYERS 4096 /* wire layer numbers that dumps can name */

/* A process that one or more targets live in. */
struct session_proc {
	pid_t pid;
	int pidfd;               /* -1: gone */
	struct watch *watch;     /* NULL: gone, or not GlusterFS */
	size_t first, n_targets; /* its targets: session.targets[first ...] */
	unsigned int restarts;
	bool gone;
	uint64_t cpu_ns; /* of its threads, when the window began */
};

struct session {
	struct target *targets; /* in the model under their index; sorted by process */
	size_t n_targets;
	struct session_proc *procs;
	size_t n_procs;
	struct model *model;
	struct source *source; /* NULL in the memory mode */
	struct meter_calibration cal;
	struct meter_interval meter;
	uint64_t own_cpu_ns, begin_ns;
	char (*names)[64]; /* for dumps: [target * SESSION_LAYERS + layer] */
};

/* Open the memory of all targets' processes. 0 or -errno and one clear line. */
int session_open(const struct target_list *targets, bool dump, struct session **ret_s, char *err,
		 size_t err_size);
void session_close(struct session *s);

/* Load the programs and put the probes in. 0 or -errno and one clear line. */
int session_attach(struct session *s, const struct source_config *config, char *err,
		   size_t err_size);
void session_detach(struct session *s);

/* Start the window now; read everything into the model; the picture of the window so far. */
int session_start(struct session *s);
int session_collect(struct session *s);

/* As session_collect(), for the last time: what no request has claimed is entered, too. */
int session_finish(struct session *s);

int session_snapshot(struct session *s, bool memory_only, bool lifetime,
		     struct snapshot **ret_snap);

/* A process ended (its pidfd became readable). */
void session_proc_gone(struct session *s, struct session_proc *p);

/* Look whether processes that went have come back under a new pid; returns how many did. */
size_t session_follow(struct session *s);

/* Names for dump records; valid as long as the session. */
struct sink_dump_names session_names(const struct session *s);

#endif
