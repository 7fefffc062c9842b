/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app.c: what all commands share: choosing targets, opening the output, complaining in one line.
 */
#include "app.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model.h"
#include "target_holders.h"
#include "text.h"

/* How long a FIFO's reader is waited for: two seconds. */
#define READER_NAP_NS 20000000
#define READER_NAPS   100

void app_complain(const char *fmt, ...)
{
	char line[1024], clean[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* names of other processes' files and xlators may be in it */
	fprintf(stderr, "bricktop: %s\n", text_sanitize(clean, sizeof(clean), line));
}

void app_warn_stopped(pid_t pid)
{
	char path[32], line[512] = "", *state = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(line, sizeof(line), f))
		state = strrchr(line, ')'); /* the name before it may hold anything */
	fclose(f);
	if (state && (state[1] == ' ') && (state[2] == 'T' || state[2] == 't'))
		app_complain("process %d is stopped (state %c): requests sent to it since are not "
			     "in its lists",
			     (int)pid, state[2]);
}

int app_open_file(const char *path, mode_t mode)
{
	const struct timespec nap = { .tv_nsec = READER_NAP_NS };
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	int fd, naps = 0;

	/* a FIFO opened in the ordinary way hangs until somebody reads it */
	while ((fd = open(path, flags | O_NONBLOCK, mode)) < 0 && errno == ENXIO &&
	       naps++ < READER_NAPS)
		nanosleep(&nap, NULL);
	if (fd >= 0 && fcntl(fd, F_SETFL, 0) == 0)
		return fd;
	if (errno == ENXIO)
		app_complain("cannot write '%s': nobody reads it: start its reader first", path);
	else
		app_complain("cannot write '%s': %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int app_open_output(const struct opts *opts)
{
	int fd;

	if (opts->out_path)
		return app_open_file(opts->out_path, 0644);
	/* main() has put something read-only in the place of a closed one */
	fd = fcntl(STDOUT_FILENO, F_GETFL);
	if (fd >= 0 && (fd & O_ACCMODE) != O_RDONLY)
		return STDOUT_FILENO;
	app_complain("standard output is closed: nowhere to report to");
	return -1;
}

static bool is_traceable(const struct target *t)
{
	return (t->kind == TARGET_BRICK || t->kind == TARGET_CLIENT) && !t->problem[0];
}

/* What is not found may be what this user cannot read: processes without a name. */
static bool is_blind(const struct target_list *list)
{
	size_t i;

	for (i = 0; i < list->n && geteuid(); i++) {
		if (list->t[i].pid && list->t[i].problem[0])
			return true;
	}
	return false;
}

static int complain_blind(void)
{
	app_complain("the GlusterFS processes here are other users': reading them needs root: try "
		     "sudo");
	return OPTS_EXIT_NOT_HERE;
}

/* Leave only what can be attached to. */
static int keep_traceable(struct target_list *list)
{
	bool blind = is_blind(list);
	size_t i, n = 0;

	for (i = 0; i < list->n; i++) {
		if (is_traceable(&list->t[i]))
			list->t[n++] = list->t[i];
	}
	list->n = n;
	if (n)
		return 0;
	if (blind)
		return complain_blind();
	app_complain("no GlusterFS brick or client that can be attached to runs here: see "
		     "'bricktop list'");
	return OPTS_EXIT_RUNTIME;
}

/*
 * The one target of *list, and behind a mount those who use it; all are what there is. Who uses it
 * is not needed to show the mount.
 */
static int add_users(struct target_list *list, const struct target_list *all)
{
	struct target_list more;
	int ret;

	if (list->t[0].kind != TARGET_XFS)
		return 0;
	ret = target_add_holders(TARGET_PROC, all, &list->t[0], WIRE_MAX_TARGETS, &more);
	if (!ret) {
		target_list_free(list);
		*list = more;
	} else if (ret != -ENOENT) {
		app_complain("cannot look for processes that use '%s': %s", list->t[0].path,
			     strerror(-ret));
	}
	return ret == -ENOMEM ? OPTS_EXIT_RUNTIME : 0;
}

/* The one target that a word means; users: and those who use it. */
static int keep_named(struct target_list *list, const char *word, bool users)
{
	struct target *one = malloc(sizeof(*one));
	struct target_list found = { one, 1 };
	bool blind = is_blind(list);
	char err[1024], real[PATH_MAX], real_err[1024];
	int ret;

	if (!one)
		return OPTS_EXIT_RUNTIME;
	ret = target_resolve(list, word, one, err, sizeof(err));
	if (ret == -ENOENT && realpath(word, real) &&
	    !target_resolve(list, real, one, real_err, sizeof(real_err)))
		ret = 0; /* a relative path, or one with symbolic links */
	if (ret) {
		free(one);
		if (ret == -ENOENT && blind)
			return complain_blind();
		app_complain("%s", err);
		return OPTS_EXIT_RUNTIME;
	}
	ret = users ? add_users(&found, list) : 0;
	target_list_free(list);
	*list = found;
	return ret;
}

int app_targets(const struct opts *opts, struct target_list *ret_list)
{
	struct target_list list = { 0 };
	int ret = target_scan(&list), status;

	if (ret) {
		app_complain("cannot look for targets in /proc: %s", strerror(-ret));
		return OPTS_EXIT_RUNTIME;
	}
	status = opts->target ? keep_named(&list, opts->target, opts->command == OPTS_ATTACH) :
				keep_traceable(&list);
	if (status)
		target_list_free(&list);
	else
		*ret_list = list;
	return status;
}
