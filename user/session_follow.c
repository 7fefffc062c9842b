/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_follow.c: processes that go and come: a brick that was killed and started again, a mount
 * made anew. They are known by volume and path. Looking costs a scan of /proc: the longer a process
 * has been gone, the more rarely it is looked for.
 */
#include "session_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

#define LOOK_PART   8 /* looked for again after 1 / so much of the time that it has been gone */
#define LOOK_MAX_NS (8 * CLOCK_NS_PER_SEC)

/* Starts are known in clock ticks, and ends by when they were looked for. */
#define START_SLACK_NS CLOCK_NS_PER_SEC

static void tell_gone(struct session *s, const struct session_proc *p)
{
	size_t i;

	for (i = p->first; i < p->first + p->n_targets; i++)
		model_feed_gone(s->model, (unsigned int)i, p->gone ? p->gone_ns : 0, p->restarts);
}

void session_proc_gone(struct session *s, struct session_proc *p)
{
	if (s->source)
		source_feed(s->source, s->model, (unsigned int)s->n_targets);
	session_close_proc(p);
	if (s->source)
		source_forget_proc(s->source, p->pid);
	p->gone = true;
	s->last_gone_ns = p->gone_ns = clock_mono_ns();
	p->alive_ns = s->look_ns[0]; /* the last one may have been after it ended */
	s->next_follow_ns = 0;
	tell_gone(s, p);
}

bool session_all_gone(const struct session *s, const struct session_proc **ret_last)
{
	const struct session_proc *last = s->procs;
	size_t i;

	/* a device or a mount stays, whoever goes */
	if (!s->n_procs || s->n_host)
		return false;
	for (i = 0; i < s->n_procs; i++) {
		if (!s->procs[i].gone)
			return false;
		if (s->procs[i].gone_ns > last->gone_ns)
			last = &s->procs[i];
	}
	*ret_last = last;
	return true;
}

/* The same brick or mount. */
static bool is_same(const struct target *a, const struct target *b)
{
	return a->kind == b->kind && !strcmp(a->volume, b->volume) && !strcmp(a->path, b->path);
}

/* It is measured already: as another target of that name, in another container. */
static bool is_taken(const struct session *s, const struct session_proc *p, pid_t pid)
{
	size_t i;

	for (i = 0; i < s->n_procs; i++) {
		if (&s->procs[i] != p && !s->procs[i].gone && s->procs[i].pid == pid)
			return true;
	}
	return false;
}

/*
 * One that ran beside p does not replace it, whatever it is called: replicas in containers have
 * the same volume and path on one host.
 */
static bool may_replace(const struct session *s, const struct session_proc *p,
			const struct target *t)
{
	uint64_t tick_ns = CLOCK_NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);

	if (t->pid == p->pid || is_taken(s, p, t->pid))
		return false;
	return !t->start_ticks || t->start_ticks * tick_ns + START_SLACK_NS >= p->alive_ns;
}

static bool has_all(const struct session *s, const struct session_proc *p,
		    const struct target_list *now, pid_t pid)
{
	size_t i, k;

	for (i = p->first; i < p->first + p->n_targets; i++) {
		for (k = 0; k < now->n; k++) {
			if (now->t[k].pid == pid && !now->t[k].problem[0] &&
			    is_same(&s->targets[i], &now->t[k]))
				break;
		}
		if (k == now->n)
			return false;
	}
	return true;
}

pid_t session_find_new(const struct session *s, const struct session_proc *p,
		       const struct target_list *now)
{
	size_t k;

	for (k = 0; k < now->n; k++) {
		if (is_same(&s->targets[p->first], &now->t[k]) && may_replace(s, p, &now->t[k]) &&
		    has_all(s, p, now, now->t[k].pid))
			return now->t[k].pid;
	}
	return 0;
}

/* The targets of p are those of the process pid. */
static void move(struct session *s, struct session_proc *p, pid_t pid,
		 const struct target_list *now)
{
	size_t i, k;

	p->pid = pid;
	for (i = p->first; i < p->first + p->n_targets; i++) {
		s->targets[i].pid = pid;
		for (k = 0; k < now->n; k++) {
			if (now->t[k].pid != pid || !is_same(&s->targets[i], &now->t[k]))
				continue;
			s->targets[i].graph_key = now->t[k].graph_key;
			s->targets[i].start_ticks = now->t[k].start_ticks;
			break;
		}
	}
}

static void tell_failed(struct session *s, const struct session_proc *p, pid_t pid, int error,
			const char *err)
{
	char line[384];

	snprintf(line, sizeof(line), "process %d, of the same name, is not measured: %s", (int)pid,
		 err[0] ? err : strerror(-error));
	session_tell_off(s, p, "following", line);
}

/* Likely the one, but it cannot be attached to, which the list of targets knows the reason of. */
static void tell_problem(struct session *s, const struct session_proc *p,
			 const struct target_list *now)
{
	size_t k;

	for (k = 0; k < now->n; k++) {
		if (now->t[k].problem[0] && is_same(&s->targets[p->first], &now->t[k]) &&
		    may_replace(s, p, &now->t[k]))
			tell_failed(s, p, now->t[k].pid, 0, now->t[k].problem);
	}
}

/* All targets of p found in one new process: take it. Where that fails it is tried again later. */
static bool follow_one(struct session *s, struct session_proc *p, const struct target_list *now)
{
	pid_t pid = session_find_new(s, p, now), old = p->pid;
	char err[256] = "";
	size_t i;
	int ret;

	if (!pid) {
		tell_problem(s, p, now);
		return false;
	}
	move(s, p, pid, now);
	ret = session_open_proc(s, p, err, sizeof(err));
	if (!ret && p->is_plain)
		session_clear_off(s, p, "walk"); /* which was the old one's */
	ret = ret ?: session_attach_proc(s, p);
	if (ret) {
		session_close_proc(p);
		if (s->source)
			source_forget_proc(s->source, pid);
		p->pid = old;
		for (i = p->first; i < p->first + p->n_targets; i++)
			s->targets[i].pid = old;
		tell_failed(s, p, pid, ret, err);
		return false;
	}
	session_clear_off(s, p, "following");
	p->gone = p->is_plain = false;
	session_start_cost(s, p);
	p->restarts++;
	tell_gone(s, p);
	return true;
}

/* It went, and may be found again: a plain process has nothing to be known by. */
static bool is_missed(const struct session *s, const struct session_proc *p)
{
	return p->gone && s->targets[p->first].kind != TARGET_PROCESS;
}

size_t session_follow(struct session *s)
{
	struct target_list now = { 0 };
	uint64_t at = clock_mono_ns(), wait;
	size_t i, n = 0;

	for (i = 0; i < s->n_procs && !is_missed(s, &s->procs[i]); i++)
		;
	if (i == s->n_procs || at < s->next_follow_ns || target_scan(&now))
		return 0;
	wait = (at - s->last_gone_ns) / LOOK_PART;
	s->next_follow_ns = at + (wait < LOOK_MAX_NS ? wait : LOOK_MAX_NS);
	for (; i < s->n_procs; i++) {
		struct session_proc *p = &s->procs[i];

		if (is_missed(s, p))
			n += follow_one(s, p, &now);
	}
	target_list_free(&now);
	return n;
}
