/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_threads.c: the times of the targets' threads, from /proc into the model, at each
 * collection. Where they cannot be had the report says why, and nothing else suffers.
 */
#include "session_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void tell_off(struct session *s, const struct session_proc *p, const char *reason)
{
	for (size_t i = p->first; i < p->first + p->n_targets; i++)
		(void)model_feed_off_target(s->model, (int)i, "threads", reason);
}

int session_open_threads(struct session *s, struct session_proc *p)
{
	char reason[128];
	int err = threads_open(p->pid, &p->threads);

	if (!err || err == -ENOMEM)
		return err;
	snprintf(reason, sizeof(reason), "their times cannot be read: %s", strerror(-err));
	tell_off(s, p, reason);
	return 0;
}

/* Without times no thread's share of a CPU is known: why, once for the process. */
static void check_times(struct session *s, const struct session_proc *p,
			const struct model_thread *threads, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (threads[i].has_times)
			return;
	tell_off(s, p, "this kernel does not count what threads run and wait (no schedstat)");
}

static int collect_threads(struct session *s, const struct session_proc *p)
{
	const struct model_thread *threads = NULL;
	size_t i, n = 0;
	int err = threads_read(p->threads, &threads, &n), ret = 0;

	if (err == -ENOMEM)
		return err;
	if (err && err != -ENOSPC) /* gone: its pidfd tells */
		return 0;
	check_times(s, p, threads, n);
	for (i = p->first; i < p->first + p->n_targets && ret != -ENOMEM; i++) {
		ret = model_feed_threads(s->model, (unsigned int)i, s->collected_ns, threads, n);
		if (ret == -ENOSPC)
			err = ret;
	}
	if (err == -ENOSPC)
		tell_off(s, p, "there are too many of them: the rest is not shown");
	return ret == -ENOMEM ? ret : 0;
}

int session_collect_threads(struct session *s)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < s->n_procs && !ret; i++)
		if (s->procs[i].threads)
			ret = collect_threads(s, &s->procs[i]);
	return ret;
}
