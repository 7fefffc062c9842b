// SPDX-License-Identifier: Apache-2.0
/*
 * test_session.c: an investigation of which not all can be had: processes that have ended, whose
 * number another one has got, more targets than there is room for, a mount whose processes go. What
 * is left is measured, and what is not is told. The processes are this one and its children; no
 * probe is put in.
 */
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "child.h"
#include "procmem.h"
#include "tap.h"

static void describe(struct target *t, pid_t pid)
{
	struct procmem *pm;

	memset(t, 0, sizeof(*t));
	t->kind = TARGET_PROCESS;
	t->pid = pid;
	if (!procmem_open(pid, &pm)) {
		t->start_ticks = procmem_start_ticks(pm);
		procmem_close(pm);
	}
}

static int open_session(struct target *t, size_t n, struct session **ret_s, char *err, size_t size)
{
	struct target_list list = { .t = t, .n = n };

	err[0] = '\0';
	*ret_s = NULL;
	return session_open(&list, false, ret_s, err, size);
}

static const struct snap_off *find_off(const struct snapshot *snap, const char *part)
{
	size_t i;

	for (i = 0; i < snap->n_off; i++) {
		if (strstr(snap->off[i].reason, part))
			return &snap->off[i];
	}
	return NULL;
}

/* A report of n targets, in which that is told. */
static void is_report(struct session *s, size_t n, const char *part, const char *name)
{
	struct snapshot *snap = NULL;

	is_int(session_start(s), 0, "%s: the window begins", name);
	is_int(session_finish(s), 0, "%s: and ends", name);
	is_int(session_snapshot(s, true, false, &snap), 0, "%s: a report", name);
	is_int((long long)snap->n_targets, (long long)n, "%s: its targets", name);
	ok(find_off(snap, part), "%s: it says that '%s'", name, part);
	snapshot_free(snap);
}

static void test_ended(void)
{
	struct target t[2];
	struct session *s;
	char err[512];
	pid_t pid = child_start();

	describe(&t[0], getpid());
	describe(&t[1], pid);
	child_end(pid);
	is_int(open_session(t, 2, &s, err, sizeof(err)), 0, "one of two has ended");
	ok(strstr(err, "cannot be watched"), "that is said: %s", err);
	is_report(s, 1, "cannot be watched", "ended");
	session_close(s);
	is_int(open_session(t + 1, 1, &s, err, sizeof(err)), -ESRCH, "the only one has ended");
	ok(!s && strstr(err, "cannot be watched"), "that is an error: %s", err);
}

static void test_recycled(void)
{
	struct target t[2];
	struct session *s;
	char err[512];
	pid_t pid = child_start();

	describe(&t[0], getpid());
	describe(&t[1], pid);
	t[1].start_ticks--;
	is_int(open_session(t, 2, &s, err, sizeof(err)), 0, "one of two is another process");
	is_report(s, 1, "it has ended", "recycled");
	session_close(s);
	t[1].start_ticks++;
	is_int(open_session(t, 2, &s, err, sizeof(err)), 0, "both are those that were found");
	is_str(err, "", "nothing is left out");
	session_close(s);
	child_end(pid);
}

static void test_too_many(void)
{
	enum { N = WIRE_MAX_TARGETS + 3 };
	struct target *t = calloc(N, sizeof(*t));
	struct session *s;
	char err[512];
	size_t i;

	for (i = 0; i < N; i++)
		describe(&t[i], getpid());
	is_int(open_session(t, N, &s, err, sizeof(err)), 0, "more targets than there is room for");
	ok(strstr(err, "3 of 67 targets"), "that is said: %s", err);
	is_int((long long)s->n_targets, WIRE_MAX_TARGETS, "the others are measured");
	session_close(s);
	free(t);
}

/* A mount is there whoever uses it, and says whom it lacks. */
static void test_mount(void)
{
	const struct session_proc *last;
	struct target t[2];
	struct session *s;
	char err[512];
	pid_t pid = child_start();

	describe(&t[0], pid);
	memset(&t[1], 0, sizeof(t[1]));
	t[1].kind = TARGET_XFS;
	t[1].n_procs = 1;
	t[1].n_left_out = 7;
	t[1].n_unreadable = 1;
	is_int(open_session(t, 2, &s, err, sizeof(err)), 0, "a mount and who uses it");
	is_str(err, "", "nothing is missing");
	is_report(s, 2, "7 more with open files", "mount");
	is_report(s, 2, "what 1 of them has open may not be read", "mount");
	child_end(pid);
	session_proc_gone(s, &s->procs[0]);
	ok(!session_all_gone(s, &last), "the mount stays when its process goes");
	is_int((long long)session_follow(s), 0, "a plain process is not looked for");
	is_int((long long)s->next_follow_ns, 0, "nor is /proc");
	session_close(s);
	is_int(open_session(t, 2, &s, err, sizeof(err)), 0, "it ended before");
	is_report(s, 1, "cannot be watched", "mount alone");
	session_close(s);
}

/* Windows that follow each other have no time between them. */
static void test_windows(void)
{
	struct snapshot *snap;
	struct session *s;
	struct target t;
	uint64_t end_ns;
	char err[512];

	describe(&t, getpid());
	if (open_session(&t, 1, &s, err, sizeof(err)))
		exit(1);
	session_start(s);
	session_collect(s);
	session_snapshot(s, true, false, &snap);
	end_ns = snap->mono_ns;
	snapshot_free(snap);
	session_next_window(s);
	session_collect(s);
	session_snapshot(s, true, false, &snap);
	is_int((long long)(snap->window_secs * 1e9 + 0.5), (long long)(snap->mono_ns - end_ns),
	       "the next window begins where the last one ended");
	snapshot_free(snap);
	session_close(s);
}

int main(void)
{
	test_ended();
	test_recycled();
	test_too_many();
	test_mount();
	test_windows();
	return tap_done();
}
