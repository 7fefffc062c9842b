/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h: one GlusterFS process under observation: its memory, its graphs as targets of the model,
 * its callbacks as probe sites, and what has to be followed while it runs (bricks that attach,
 * graphs that switch, callbacks seen for the first time). The bridge between gluster_* and the live
 * source; owns no output.
 */
#ifndef BRICKTOP_WATCH_H
#define BRICKTOP_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gluster_graph.h"
#include "gluster_resolver.h"
#include "model.h"
#include "source_bpf.h"
#include "target.h"

struct watch;

/* Open the process's memory. 0 or -errno as gluster_proc_open(), with its line in err. */
int watch_open(pid_t pid, struct watch **ret_w, char *err, size_t err_size);

/* Detaches and closes. NULL is a no-op. */
void watch_close(struct watch *w);
pid_t watch_pid(const struct watch *w);

/*
 * Show one of its graphs as target idx of the model: the brick t describes, or the client's graph
 * in use. 0 or -errno and a line in err.
 */
int watch_add_target(struct watch *w, struct model *m, unsigned int idx, const struct target *t,
		     char *err, size_t err_size);

/* Read statistics and requests in flight into the model. 0, -ESRCH where the process is gone. */
int watch_feed_memory(struct watch *w, struct model *m);

/* After the slots were fed: the calls that came in by then (model_feed_late()). 0 or -errno. */
int watch_feed_late(struct watch *w, struct model *m);

/*
 * Put the walk's probes in. What cannot be had is told to the model and the memory mode stays. 0,
 * or -errno where nothing at all could be done, with a line in err.
 */
int watch_attach(struct watch *w, struct source *src, struct model *m, char *err, size_t err_size);

/* Once a second: follow graph changes, discovery, the proof that all threads are seen. 0 or -errno.
 */
int watch_tick(struct watch *w, struct source *src, struct model *m, uint64_t now_ns);

/*
 * Between ticks, a few dozen times a second: a client's new graph has to be known when its first
 * request ends. src may be NULL. 0 or -errno.
 */
int watch_look(struct watch *w, struct source *src, struct model *m);

/* Its uprobe-multi link has been hit by another thread than the first one. */
bool watch_is_proven(const struct watch *w);

/*
 * The walk is about to be off, and is on again: what ends meanwhile goes unmet, and is not searched
 * for.
 */
void watch_pause(struct watch *w, struct source *src, struct model *m);
void watch_resume(struct watch *w, struct source *src, struct model *m);

/* Detach the probes; memory stays readable. */
void watch_detach(struct watch *w);

/*
 * The path of a gfid in target idx, sanitized: with a leading slash from the volume's root, else as
 * much as is known of it. false: nothing is (any more), or r, who is asked for what a brick's file
 * system knows, was late.
 */
bool watch_name_file(struct watch *w, struct gluster_resolver *r, unsigned int idx,
		     const uint8_t gfid[16], char *path, size_t size, bool *ret_is_dir);

/* How a client (address of its client_t in the brick) calls itself, sanitized. */
bool watch_name_client(struct watch *w, uint64_t client, char *name, size_t size);

/* Every wire layer that the target's graphs have been given, with the xlator's id. */
void watch_each_layer(const struct watch *w,
		      void (*fn)(void *arg, unsigned int target, unsigned int layer,
				 const char *id),
		      void *arg);

#endif
