/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app.h: the commands. Only here and in main.c is anything printed on standard error.
 */
#ifndef BRICKTOP_APP_H
#define BRICKTOP_APP_H

#include <stdio.h>
#include <sys/types.h>

#include "opts.h"
#include "sink_fmt.h"
#include "target.h"

/* Run a parsed command; returns the exit status (0 ok, 1 runtime, 2 usage, 77 not possible here).
 */
int app_run(const struct opts *opts);

/* One clear line on standard error. */
__attribute__((format(printf, 1, 2))) void app_complain(const char *fmt, ...);

/*
 * The targets that the options mean: one by name, or all that bricktop can attach to. Complains,
 * and returns an exit status other than 0, where there is none. Freed by target_list_free().
 */
int app_targets(const struct opts *opts, struct target_list *ret_list);

/* The commands; each returns the exit status (0 ok, 1 runtime, 2 usage, 77 not possible here). */
int app_attach(const struct opts *opts);
int app_list(const struct opts *opts);
int app_stuck(const struct opts *opts);
int app_doctor(const struct opts *opts);

/* Say so where a process is stopped: what was sent to it since waits where nobody sees it. */
void app_warn_stopped(pid_t pid);

/* Where reports go: standard output, or opts->out_path. Complains. A descriptor, or -1. */
int app_open_output(const struct opts *opts);
/* A file to write, emptied. A FIFO without a reader is waited for, not for long. As above. */
int app_open_file(const char *path, mode_t mode);

/*
 * Standard output as a stream of its own, so that a failed write shows when it is closed, and how
 * it looks; NULL after a complaint. Closing takes what the sink returned; an exit status.
 */
FILE *app_open_stream(const struct opts *opts, struct sink_style *style);
int app_close_stream(FILE *out, int ret);

#endif
