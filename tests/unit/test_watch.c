// SPDX-License-Identifier: Apache-2.0
/*
 * test_watch.c: processes that cannot be watched are refused with a reason, and nothing is left
 * open. Watching real ones is for the end-to-end tests.
 */
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static void test_refused(void)
{
	pid_t gone = fork();
	struct watch *w = NULL;
	char err[256] = "";
	int before = count_fds();

	if (!gone)
		_exit(0);
	is_int(watch_open(getpid(), &w, err, sizeof(err)), -ENOENT, "not a GlusterFS process");
	is_int(watch_open(gone, &w, err, sizeof(err)) < 0, 1, "one that has ended");
	waitpid(gone, NULL, 0);
	is_int(watch_open(gone, &w, err, sizeof(err)), -ESRCH, "one that is gone");
	ok(!w, "no handle is written");
	is_int(count_fds(), before, "nothing is left open");
	watch_close(NULL);
}

int main(void)
{
	test_refused();
	return tap_done();
}
