/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: bricktop's entry: the command line in, a command run, its exit status out.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "opts.h"

#define LARGE_BLOCK (128 * 1024) /* bytes */

/*
 * A descriptor 0 .. 2 that is closed would become the next file that is opened, and be written to:
 * take its place with something that cannot be.
 */
static void fill_closed(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static int inform(const char *text)
{
	if (fputs(text, stdout) != EOF && !fflush(stdout))
		return OPTS_EXIT_OK;
	fprintf(stderr, "bricktop: cannot write to standard output: %s\n", strerror(errno));
	return OPTS_EXIT_RUNTIME;
}

static int run(const struct opts *opts)
{
	switch (opts->command) {
	case OPTS_ATTACH:
		return app_attach(opts);
	case OPTS_LIST:
		return app_list(opts);
	case OPTS_STUCK:
		return app_stuck(opts);
	case OPTS_DOCTOR:
		return app_doctor(opts);
	case OPTS_NONE:
		break;
	}
	return OPTS_EXIT_USAGE;
}

int main(int argc, char *argv[])
{
	struct opts opts;
	char *text = NULL;
	int status = OPTS_EXIT_RUNTIME, ret;

	fill_closed();
	/* large blocks, of which loading frees many, go back at once and leave no holes */
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
	setlocale(LC_ALL, "");
	signal(SIGPIPE, SIG_IGN);
	ret = opts_parse(argc, argv, &opts, &text, &status);
	if (ret < 0) {
		fprintf(stderr, "bricktop: %s\n", strerror(-ret));
		return OPTS_EXIT_RUNTIME;
	}
	if (ret == 0)
		return run(&opts);
	if (status != OPTS_EXIT_OK)
		fprintf(stderr, "bricktop: %s\n", text);
	else
		status = inform(text);
	free(text);
	return status;
}
