/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h: what the kernel says of one process's threads: how long each ran and how long it
 * waited for a CPU, without any probe. Owns the open /proc/PID/task and which pool a thread's name
 * belongs to; the arithmetic of windows is the model's.
 */
#ifndef BRICKTOP_THREADS_H
#define BRICKTOP_THREADS_H

#include <stddef.h>
#include <sys/types.h>

#include "model.h"

struct threads;

/* 0 or -errno (-ENOENT, -ESRCH: there is no such process). */
int threads_open(pid_t pid, struct threads **ret_t);
void threads_close(struct threads *t);

/*
 * All threads that exist now, ascending by number; the array is t's until the next call. Threads
 * that end meanwhile are left out. 0 or -errno (-ESRCH: the process is gone); -ENOSPC: there are
 * more than MODEL_MAX_THREADS, and the array holds the first ones.
 */
int threads_read(struct threads *t, const struct model_thread **ret_threads, size_t *ret_n);

/*
 * The pool of a thread by its name: GlusterFS's by what they do (names of 4.0 and later,
 * "glfs_iotwr00a", and of 3.x, "glusteriotwr1"), others by their name without its number.
 */
void threads_pool(const char *comm, char *dst, size_t dst_size);

/* Parse the text of schedstat and of stat. 0 or -EINVAL. Exposed for tests: foreign bytes. */
int threads_parse_schedstat(const char *text, struct model_thread *thread);
int threads_parse_stat(const char *text, struct model_thread *thread);

#endif
