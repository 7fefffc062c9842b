/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opts.h: the command line. Owns the names of commands and options and what goes with what. Pure:
 * prints nothing, ends nothing, opens nothing; what has to be said is handed back as text.
 */
#ifndef BRICKTOP_OPTS_H
#define BRICKTOP_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opts_command {
	OPTS_NONE, /* only a text to print: help, version, or an error */
	OPTS_ATTACH,
	OPTS_LIST,
	OPTS_STUCK,
	OPTS_DOCTOR,
};

struct opts {
	enum opts_command command;
	const char *target;   /* points into argv; NULL: all */
	uint64_t duration_ns; /* attach: length of the measurement */
	uint64_t interval_ns; /* attach: a report every so long; 0: one, at the end */
	bool json, all, split_tails, memory_only;
	uint64_t dump_requests; /* attach: so many whole requests ... */
	const char *dump_path;  /* ... into this file (points into argv); NULL: none */
	double budget_pct;      /* attach: of the target's CPU time; 0: no limit */
	uint64_t layers_off;    /* attach: set (1 << number) of rows of layers.def left out */
	const char *slow; /* attach: keep slow operations; as given (points into argv); NULL: no */
	uint64_t slow_ns; /* ... those that take so long or longer, unless */
	unsigned int slow_ppm; /* ... those longer than so many millionths of their like; 0: no */
	const char *out_path;  /* reports go here (points into argv); NULL: standard output */
};

#define OPTS_EXIT_OK       0
#define OPTS_EXIT_RUNTIME  1
#define OPTS_EXIT_USAGE    2
#define OPTS_EXIT_NOT_HERE 77

/*
 * Parse argv (argc entries; argv is not changed, and must outlive *ret_opts). 0: *ret_opts holds a
 * command to run, and *ret_text is NULL. 1: nothing to run; *ret_text (to be freed) is help or
 * version for standard output where *ret_exit is OPTS_EXIT_OK, or else an error of one line without
 * newline for standard error. -ENOMEM.
 */
int opts_parse(int argc, char *const argv[], struct opts *ret_opts, char **ret_text, int *ret_exit);

/* "1.0": this build. */
const char *opts_version(void);

#endif
