/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h: a process to look at: a copy of the test's own, which waits until it is ended, and does
 * not outlive the test. What it plays, the test has laid out in memory before.
 */
#ifndef BRICKTOP_CHILD_H
#define BRICKTOP_CHILD_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Its pid, or -1. */
static inline pid_t child_start(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static inline void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
