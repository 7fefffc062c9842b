/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_query.c: the commands that only read: what can be attached to, and which requests are in
 * flight. They load no BPF program and put in no probe.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "gluster_graph.h"
#include "gluster_stuck.h"
#include "sink_json.h"
#include "sink_text.h"

#define MAX_SHOWN 4096

FILE *app_open_stream(const struct opts *opts, struct sink_style *style)
{
	int fd = app_open_output(opts);
	FILE *out;

	if (fd < 0)
		return NULL;
	sink_fmt_detect(fd, style);
	out = fdopen(fd == STDOUT_FILENO ? dup(fd) : fd, "w");
	if (!out)
		app_complain("cannot write: %s", strerror(errno));
	return out;
}

int app_close_stream(FILE *out, int ret)
{
	if (fclose(out) && !ret)
		ret = -errno;
	if (!ret)
		return OPTS_EXIT_OK;
	app_complain("cannot write the output: %s", strerror(-ret));
	return OPTS_EXIT_RUNTIME;
}

int app_list(const struct opts *opts)
{
	struct target_list list = { 0 };
	struct sink_style style;
	FILE *out;
	int ret = target_scan(&list);

	if (ret) {
		app_complain("cannot look for targets in /proc: %s", strerror(-ret));
		return OPTS_EXIT_RUNTIME;
	}
	out = app_open_stream(opts, &style);
	if (!out) {
		target_list_free(&list);
		return OPTS_EXIT_RUNTIME;
	}
	ret = opts->json ? sink_json_list(out, &list, opts_version()) :
			   sink_text_list(out, &list, &style);
	target_list_free(&list);
	return app_close_stream(out, ret);
}

/* One process's requests; those of other bricks in it are left out where the target is one brick.
 */
struct query {
	struct sink_stuck stuck;
	struct gluster_request *req;
	char name[512], problem[512];
};

static void keep_brick(struct query *q, uint64_t graph_key)
{
	size_t i, n = 0;

	for (i = 0; i < q->stuck.n; i++) {
		if (!q->req[i].graph_key || q->req[i].graph_key == graph_key)
			q->req[n++] = q->req[i];
	}
	q->stuck.n = n;
}

static int read_requests(struct query *q, const struct target *t)
{
	struct gluster_proc *gp;
	int ret = gluster_proc_open(t->pid, &gp, q->problem, sizeof(q->problem));

	q->stuck.target = target_describe(t, q->name, sizeof(q->name));
	q->stuck.pid = t->pid;
	if (!ret) {
		ret = gluster_stuck_read(gp, MAX_SHOWN, true, &q->req, &q->stuck.n,
					 &q->stuck.truncated);
		if (ret)
			snprintf(q->problem, sizeof(q->problem), "%s", strerror(-ret));
		gluster_proc_close(gp);
	}
	if (ret) {
		q->stuck.problem = q->problem;
		return ret;
	}
	app_warn_stopped(t->pid);
	if (t->kind == TARGET_BRICK)
		keep_brick(q, t->graph_key);
	q->stuck.req = q->req;
	return 0;
}

static int print_requests(const struct opts *opts, const struct query *q, size_t n)
{
	struct sink_stuck *stuck = calloc(n, sizeof(*stuck));
	struct sink_style style;
	FILE *out;
	size_t i;
	int ret;

	if (!stuck)
		return OPTS_EXIT_RUNTIME;
	for (i = 0; i < n; i++)
		stuck[i] = q[i].stuck;
	out = app_open_stream(opts, &style);
	if (!out) {
		free(stuck);
		return OPTS_EXIT_RUNTIME;
	}
	ret = opts->json ? sink_json_stuck(out, stuck, n, opts_version()) :
			   sink_text_stuck(out, stuck, n, &style);
	free(stuck);
	return app_close_stream(out, ret);
}

int app_stuck(const struct opts *opts)
{
	struct target_list list = { 0 };
	struct query *q;
	size_t i, failed = 0;
	int status = app_targets(opts, &list);

	if (status)
		return status;
	q = calloc(list.n, sizeof(*q));
	if (!q) {
		target_list_free(&list);
		return OPTS_EXIT_RUNTIME;
	}
	for (i = 0; i < list.n; i++) {
		if (read_requests(&q[i], &list.t[i]))
			failed++;
	}
	if (failed == list.n) {
		app_complain("%s", q[0].problem);
		status = OPTS_EXIT_RUNTIME;
	} else {
		status = print_requests(opts, q, list.n);
	}
	for (i = 0; i < list.n; i++)
		free(q[i].req);
	free(q);
	target_list_free(&list);
	return status;
}
