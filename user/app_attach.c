/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_attach.c: one investigation from start to end: the table from memory first, then the probes,
 * the window, the report, and out. The collecting thread runs here in one epoll loop; it never
 * writes to a terminal or a file itself, the sink's thread does.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "app.h"
#include "clock.h"
#include "session.h"
#include "sink.h"

#define DRAIN_NS    (2 * CLOCK_NS_PER_SEC)
#define CLOSE_NS    (10 * CLOCK_NS_PER_SEC)
#define RING_PERIOD 10   /* ms between looks at the ring: producers never wake us */
#define MAX_HELD    1024 /* records that wait for names */
#define RETURN_NS   (10 * CLOCK_NS_PER_SEC) /* so long the last process is waited for */

enum { EV_TIMER, EV_SIGNAL, EV_PROC }; /* EV_PROC + i: process i */

/* A record of which not all xlators have names yet. */
struct held {
	struct held *next;
	void *record;
	size_t len;
};

struct run {
	const struct opts *opts;
	struct session *session;
	struct sink *sink;
	struct sink_dump_names names;
	int epfd, timer, sigfd, out_fd, dump_fd;
	uint64_t begin_ns, end_ns, next_report_ns, n_records;
	struct held *held;
	unsigned int n_held;
	bool stop;
};

/* ---- the loop's descriptors -------------------------------------------- */

static int watch_fd(struct run *r, int fd, uint64_t tag)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(r->epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int watch_procs(struct run *r)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < r->session->n_procs; i++) {
		if (r->session->procs[i].pidfd >= 0)
			ret = watch_fd(r, r->session->procs[i].pidfd, EV_PROC + i);
		if (ret && ret != -EEXIST)
			return ret;
	}
	return 0;
}

static int open_loop(struct run *r)
{
	sigset_t set;
	int ret;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->epfd = epoll_create1(EPOLL_CLOEXEC);
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->epfd < 0 || r->timer < 0 || r->sigfd < 0)
		return -errno;
	ret = watch_fd(r, r->timer, EV_TIMER);
	ret = ret ?: watch_fd(r, r->sigfd, EV_SIGNAL);
	return ret ?: watch_procs(r);
}

/* Wake in a second, at the next report or at the end, whichever is first. */
static void set_timer(struct run *r)
{
	uint64_t at = clock_mono_ns() + CLOCK_NS_PER_SEC;
	struct itimerspec its = { 0 };

	if (r->next_report_ns && r->next_report_ns < at)
		at = r->next_report_ns;
	if (r->end_ns < at)
		at = r->end_ns;
	its.it_value.tv_sec = (time_t)(at / CLOCK_NS_PER_SEC);
	its.it_value.tv_nsec = (long)(at % CLOCK_NS_PER_SEC);
	if (!at)
		its.it_value.tv_nsec = 1;
	timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &its, NULL);
}

/* ---- output ------------------------------------------------------------ */

/*
 * A client's new graph is in use some ms before it is read: its requests wait for that, as many as
 * there is room for. Those beyond, and what is never known, have numbers in the place of names.
 */
static int hold_record(struct run *r, void *record, size_t len)
{
	struct held *h = malloc(sizeof(*h));

	if (!h) {
		free(record);
		return -ENOMEM;
	}
	*h = (struct held){ .next = r->held, .record = record, .len = len };
	r->held = h;
	r->n_held++;
	return 0;
}

/* Those that are known by now; at the end all. */
static void push_held(struct run *r, bool all)
{
	struct held **at = &r->held, *h;

	if (r->held)
		session_learn_names(r->session);
	while ((h = *at)) {
		if (!session_settle_record(r->session, h->record, h->len) && !all) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		r->n_held--;
		sink_push_dump(r->sink, h->record, h->len, &r->names);
		free(h);
	}
}

static int on_record(void *arg, const void *record, size_t len)
{
	const struct wire_dump *head = record;
	struct run *r = arg;
	void *copy;

	if (len < sizeof(*head))
		return 0;
	if (head->wanted & WIRE_DUMP_SLOW)
		session_take_slow(r->session, record, len);
	if (!(head->wanted & WIRE_DUMP_ANY))
		return 0;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	r->n_records++;
	memcpy(copy, record, len);
	if (!session_settle_record(r->session, copy, len) && r->n_held < MAX_HELD)
		return hold_record(r, copy, len);
	sink_push_dump(r->sink, copy, len, &r->names);
	return 0;
}

static int open_sink(struct run *r)
{
	struct sink_config config = {
		.json = r->opts->json,
		.json_lines = r->opts->all || r->opts->interval_ns || r->session->n_targets > 1,
		.version = opts_version(),
	};
	int ret;

	r->out_fd = app_open_output(r->opts);
	if (r->out_fd < 0)
		return OPTS_EXIT_RUNTIME;
	if (r->opts->dump_path) {
		r->dump_fd = app_open_file(r->opts->dump_path, 0600);
		if (r->dump_fd < 0)
			return OPTS_EXIT_RUNTIME;
	}
	config.out_fd = r->out_fd;
	config.dump_fd = r->dump_fd;
	sink_fmt_detect(r->out_fd, &config.style);
	ret = sink_open(&config, &r->sink);
	if (!ret)
		return 0;
	app_complain("cannot start the output thread: %s", strerror(-ret));
	return OPTS_EXIT_RUNTIME;
}

/* lifetime: what the processes have counted since they started. */
static int push_report(struct run *r, bool lifetime)
{
	struct snapshot *snap;
	int ret = session_snapshot(r->session, !r->session->source, lifetime, &snap);

	if (!ret)
		sink_push_snapshot(r->sink, snap);
	return ret;
}

/* Whole requests are wanted, for one thing or the other. */
static bool wants_requests(const struct run *r)
{
	return r->opts->dump_requests || r->opts->slow;
}

static void take_records(struct run *r)
{
	if (wants_requests(r) && r->session->source)
		source_poll_ring(r->session->source, on_record, r);
	push_held(r, false);
}

/* ---- events ------------------------------------------------------------ */

static int on_timer(struct run *r)
{
	uint64_t expirations, now = clock_mono_ns();
	int ret = 0;

	if (read(r->timer, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
		return -errno;
	if (session_follow(r->session))
		ret = watch_procs(r);
	ret = ret ?: session_collect(r->session);
	session_drop_rights(r->session);
	take_records(r);
	if (!ret && r->next_report_ns && now >= r->next_report_ns && now < r->end_ns) {
		ret = push_report(r, false);
		session_next_window(r->session);
		r->next_report_ns += r->opts->interval_ns;
	}
	if (now >= r->end_ns || sink_error(r->sink))
		r->stop = true;
	set_timer(r);
	return ret;
}

static int on_event(struct run *r, uint64_t tag)
{
	struct signalfd_siginfo si;

	if (tag == EV_TIMER)
		return on_timer(r);
	if (tag == EV_SIGNAL) {
		while (read(r->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
			;
		r->stop = true;
		return 0;
	}
	session_proc_gone(r->session, &r->session->procs[tag - EV_PROC]);
	return 0;
}

/* Nothing is left to watch, and none that could come back has done so in time. */
static bool is_over(const struct run *r)
{
	const struct session *s = r->session;
	const struct session_proc *last;
	size_t i;

	if (!session_all_gone(s, &last))
		return false;
	for (i = 0; i < s->n_procs; i++) {
		if (s->targets[s->procs[i].first].kind != TARGET_PROCESS)
			return clock_mono_ns() - last->gone_ns > RETURN_NS;
	}
	return true;
}

static int loop(struct run *r)
{
	struct epoll_event ev[16];
	int n, i, ret = 0;

	set_timer(r);
	while (!r->stop && !ret && !is_over(r)) {
		n = epoll_wait(r->epfd, ev, 16,
			       r->opts->dump_requests ? RING_PERIOD : SESSION_LOOK_MS);
		if (n < 0 && errno != EINTR)
			return -errno;
		ret = session_look(r->session);
		for (i = 0; i < n && !ret; i++)
			ret = on_event(r, ev[i].data.u64);
		take_records(r);
	}
	return ret;
}

/* ---- the course of an investigation ------------------------------------ */

/* Any of the processes keeps statistics of its own. */
static bool has_memory(const struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_procs && !s->procs[i].watch; i++)
		;
	return i < s->n_procs;
}

/*
 * There are statistics of a process, a device's table, or a layer that sees a plain process's
 * calls. With --memory-only of that one no more was asked for than the times of its threads.
 */
static bool has_measured(const struct run *r)
{
	const struct session *s = r->session;
	size_t i;

	for (i = 0; i < s->n_procs; i++) {
		if (s->targets[s->procs[i].first].kind != TARGET_PROCESS && !s->procs[i].is_plain)
			return true;
	}
	if (session_sees_devices(s))
		return true;
	return s->n_procs && (r->opts->memory_only || (s->source && source_has_shed(s->source)));
}

/*
 * The process's own statistics come first, and are on their way to the reader before the first BPF
 * program is loaded.
 */
static int show_memory(struct run *r)
{
	int ret = session_start(r->session);

	/* a device has no statistics of its own process */
	if (ret || r->opts->json || !has_memory(r->session))
		return ret;
	ret = push_report(r, true);
	if (!ret)
		sink_drain(r->sink, DRAIN_NS);
	return ret;
}

/* Of a variable of the environment; 0: not set. */
static unsigned int number_of(const char *variable)
{
	const char *text = getenv(variable);

	return text ? (unsigned int)strtoul(text, NULL, 10) : 0;
}

/* Probes in; where they cannot be, the memory mode goes on and the report says why. */
static int put_probes_in(struct run *r)
{
	const char *uprobe = getenv("BRICKTOP_UPROBE");
	struct source_config config = {
		.n_targets = (unsigned int)r->session->n_targets,
		.slots = number_of("BRICKTOP_SLOTS"),
		.map_entries = number_of("BRICKTOP_MAPS"),
		.layers_off = r->opts->layers_off,
		.static_off = getenv("BRICKTOP_DISCOVER") != NULL,
		.dump = r->opts->dump_requests > 0,
		.dump_count = r->opts->dump_requests,
		.slow = r->opts->slow != NULL,
		.split_tails = r->opts->split_tails,
		.host_only = !r->session->n_procs,
		.devices_off = r->session->devices_off,
		.perf_only = uprobe && !strcmp(uprobe, "perf"),
		.multi_blind = uprobe && !strcmp(uprobe, "blind"),
	};
	const struct slow_config slow = {
		.wanted = r->opts->slow,
		.limit_ns = r->opts->slow_ns,
		.ppm = r->opts->slow_ppm,
	};
	int ret;

	if (r->opts->memory_only && r->session->n_host)
		return model_feed_off(r->session->model, "devices",
				      "--memory-only: without probes "
				      "nothing is known of them");
	ret = r->opts->memory_only ? 0 : session_attach(r->session, &config);
	return ret || !slow.wanted ? ret : session_keep_slow(r->session, &slow);
}

/* The window, and its report: also where it breaks off, of what was measured until then. */
static int measure(struct run *r)
{
	int ret = put_probes_in(r), last;

	session_drop_rights(r->session);
	ret = ret ?: session_start(r->session);
	take_records(r);
	session_start_slow(r->session);
	r->begin_ns = clock_mono_ns();
	r->end_ns = r->begin_ns + r->opts->duration_ns;
	if (r->opts->interval_ns)
		r->next_report_ns = r->begin_ns + r->opts->interval_ns;
	ret = ret ?: loop(r);
	last = session_finish(r->session);
	ret = ret ?: last;
	take_records(r);
	/* all is read: whatever the report waits for, nobody's requests are held up any more */
	session_detach(r->session);
	last = push_report(r, false);
	ret = ret ?: last;
	take_records(r);
	push_held(r, true);
	return ret;
}

/*
 * Whoever waits for the exit status learns that the last part of the time nobody was there. That a
 * plain process ends is how it should be.
 */
static int check_gone(const struct run *r)
{
	const struct session_proc *last;
	double secs;

	if (!session_all_gone(r->session, &last) ||
	    r->session->targets[last->first].kind == TARGET_PROCESS)
		return OPTS_EXIT_OK;
	secs = (double)(last->gone_ns - r->begin_ns) / (double)CLOCK_NS_PER_SEC;
	if (r->session->n_procs == 1)
		app_complain("process %d ended after %.1f s", (int)last->pid, secs);
	else
		app_complain("all %zu processes ended, the last one (%d) after %.1f s",
			     r->session->n_procs, (int)last->pid, secs);
	return OPTS_EXIT_RUNTIME;
}

static int investigate(struct run *r)
{
	int ret = open_loop(r);

	ret = ret ?: show_memory(r);
	if (ret) {
		app_complain("cannot start: %s", strerror(-ret));
		return OPTS_EXIT_RUNTIME;
	}
	ret = measure(r);
	if (ret) {
		app_complain("the measurement broke off: %s", strerror(-ret));
		return OPTS_EXIT_RUNTIME;
	}
	if (!has_measured(r)) {
		app_complain("nothing could be measured: the report says why");
		return OPTS_EXIT_NOT_HERE;
	}
	if (!wants_requests(r) || r->session->source)
		return check_gone(r);
	app_complain("no request could be %s: no probe is in, and the report says why",
		     r->opts->dump_requests ? "dumped" : "kept");
	return OPTS_EXIT_RUNTIME;
}

/* What of the requests that were to be dumped is not in the file. */
static int check_dumps(const struct run *r, const struct sink_status *st)
{
	uint64_t lost = st->dropped_dumps + st->bad_dumps;

	if (lost) {
		app_complain("%llu of %llu dumped requests are missing in '%s': it was not written "
			     "fast enough",
			     (unsigned long long)lost, (unsigned long long)r->n_records,
			     r->opts->dump_path);
		return OPTS_EXIT_RUNTIME;
	}
	if (r->session->source && r->n_records < r->opts->dump_requests)
		app_complain("%llu of %llu requests were dumped: no more ended in time",
			     (unsigned long long)r->n_records,
			     (unsigned long long)r->opts->dump_requests);
	return OPTS_EXIT_OK;
}

static int close_sink(struct run *r, int status)
{
	struct sink_status st = { 0 };
	int ret = r->sink ? sink_close(r->sink, CLOSE_NS, &st) : 0;

	if (r->dump_fd >= 0)
		close(r->dump_fd);
	if (r->out_fd > STDERR_FILENO)
		close(r->out_fd);
	if (ret == 0 && r->sink && r->opts->dump_requests)
		return check_dumps(r, &st) ?: status;
	if (ret == 0)
		return status;
	if (st.out_error || st.timed_out)
		app_complain("cannot write the report: %s",
			     strerror(st.out_error ? -st.out_error : ETIMEDOUT));
	if (st.dump_error)
		app_complain("cannot write '%s': %s", r->opts->dump_path, strerror(-st.dump_error));
	return OPTS_EXIT_RUNTIME;
}

static void close_loop(struct run *r)
{
	if (r->epfd >= 0)
		close(r->epfd);
	if (r->timer >= 0)
		close(r->timer);
	if (r->sigfd >= 0)
		close(r->sigfd);
}

/* Of what was asked for nothing is left where no process's memory is understood. */
static bool is_refused(const struct run *r)
{
	const struct session *s = r->session;
	size_t i;

	if (has_memory(s) || (!r->opts->memory_only && !r->opts->dump_requests))
		return false;
	for (i = 0; i < s->n_procs && !s->procs[i].is_plain; i++)
		;
	return i < s->n_procs;
}

/*
 * Requests are GlusterFS's, and slow file operations a process's: a device or a mount has neither.
 * Said before anything is measured, or a file is emptied.
 */
static int check_wanted(const struct run *r)
{
	const char *option = r->opts->dump_requests ? "--dump-requests" : "--slow";

	if (is_refused(r))
		return OPTS_EXIT_RUNTIME; /* which was told as the session was opened */
	if (r->opts->dump_requests ? has_memory(r->session) : r->session->n_procs > 0)
		return OPTS_EXIT_OK;
	if (!wants_requests(r))
		return OPTS_EXIT_OK;
	app_complain("%s needs a brick or a client%s: '%s' is none", option,
		     r->opts->dump_requests ? "" : " or a process", r->opts->target);
	return OPTS_EXIT_RUNTIME;
}

/* For tests: what is switched off and on whatever it costs. */
static enum session_turns budget_turns(void)
{
	const char *what = getenv("BRICKTOP_BUDGET");

	if (what && !strcmp(what, "turns"))
		return SESSION_TURNS_LAYERS;
	return what && !strcmp(what, "walk-turns") ? SESSION_TURNS_WALK : SESSION_TURNS_NONE;
}

int app_attach(const struct opts *opts)
{
	struct run r = {
		.opts = opts,
		.epfd = -1,
		.timer = -1,
		.sigfd = -1,
		.out_fd = -1,
		.dump_fd = -1,
	};
	struct target_list list = { 0 };
	char err[1024] = "";
	int status, ret;

	status = app_targets(opts, &list);
	if (status)
		return status;
	ret = session_open(&list, opts->dump_requests > 0, &r.session, err, sizeof(err));
	if (ret) {
		app_complain("%s", err);
		status = ret == -EACCES || ret == -EPERM ? OPTS_EXIT_NOT_HERE : OPTS_EXIT_RUNTIME;
	} else {
		if (err[0])
			app_complain("%s", err);
		for (size_t i = 0; i < list.n && !is_refused(&r); i++)
			app_warn_stopped(list.t[i].pid);
		r.names = session_names(r.session);
		if (opts->budget_pct > 0)
			session_limit(r.session, opts->budget_pct, budget_turns());
		if (opts->all)
			session_show_all_devices(r.session);
		status = check_wanted(&r);
		if (!status)
			status = open_sink(&r);
		if (!status)
			status = investigate(&r);
	}
	status = close_sink(&r, status);
	close_loop(&r);
	session_close(r.session);
	target_list_free(&list);
	return status;
}
