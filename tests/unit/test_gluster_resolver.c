/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gluster_resolver.c: names by a child process: that it has nothing of its parent's, and what
 * becomes of the others where one of them is never answered.
 */
#include "gluster_resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "tap.h"

#define PATIENCE_NS 200000000ULL

enum what { NAME, NO_NAME, LONG_NAME, SILENCE, END, WHO };

/* How many descriptors this process has, up to a thousand. */
static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int find(const char *brick, const uint8_t gfid[16], char *path, size_t size,
		bool *ret_is_dir)
{
	int sig = 0;

	switch ((enum what)gfid[0]) {
	case NAME:
		snprintf(path, size, "%s/%d", brick, gfid[1]);
		*ret_is_dir = gfid[1] & 1;
		return 0;
	case NO_NAME:
		return -ENOENT;
	case LONG_NAME:
		memset(path, 'x', size);
		return 0;
	case SILENCE:
		for (;;)
			pause();
	case END:
		_exit(0);
	case WHO:
		prctl(PR_GET_PDEATHSIG, &sig);
		snprintf(path, size, "%d %d %d", (int)getpid(), count_fds(), sig);
		return 0;
	}
	return -EINVAL;
}

static int ask(struct gluster_resolver *r, enum what what, unsigned int number, char path[32],
	       bool *ret_is_dir)
{
	const uint8_t gfid[16] = { (uint8_t)what, (uint8_t)number };

	return gluster_resolver_ask(r, "/brick", gfid, path, 32, ret_is_dir);
}

static bool has_children(void)
{
	return waitpid(-1, NULL, WNOHANG) >= 0;
}

static void test_answers(void)
{
	struct gluster_resolver r = { .find = find };
	char path[32] = "untouched", want[32], longest[PATH_MAX + 1];
	bool is_dir = false;

	gluster_resolver_begin(&r, 600 * CLOCK_NS_PER_SEC);
	ok(!r.child, "a child is started when it is needed");
	is_int(ask(&r, NO_NAME, 0, path, &is_dir), -ENOENT, "what the file system says");
	is_int(ask(&r, LONG_NAME, 0, path, &is_dir), -ENAMETOOLONG, "a path without an end");
	is_str(path, "untouched", "neither is a path");
	is_int(ask(&r, NAME, 7, path, &is_dir), 0, "a name");
	is_str(path, "/brick/7", "the one that was asked for");
	ok(is_dir, "of a directory");
	is_int(ask(&r, NAME, 8, path, &is_dir), 0, "another one");
	ok(!is_dir && !strcmp(path, "/brick/8"), "of a file");
	memset(longest, 'x', PATH_MAX);
	longest[PATH_MAX] = '\0';
	is_int(gluster_resolver_ask(&r, longest, (const uint8_t[16]){ 0 }, path, 32, &is_dir),
	       -ENAMETOOLONG, "a brick that no file system has");
	is_int(ask(&r, WHO, 0, path, &is_dir), 0, "who answers?");
	snprintf(want, sizeof(want), "%d 1 %d", (int)r.child, SIGKILL);
	is_str(path, want, "one child, which has its socket alone and ends with its parent");
	is_int((long long)r.n_late, 0, "none was late");
	gluster_resolver_end(&r);
	ok(!has_children(), "and is no more");
}

static void test_silence(void)
{
	struct gluster_resolver r = { .find = find };
	char first[32] = "", path[32] = "untouched";
	uint64_t begin_ns;
	bool is_dir;
	int n;

	gluster_resolver_begin(&r, PATIENCE_NS);
	is_int(ask(&r, NAME, 1, first, &is_dir), 0, "a name comes");
	begin_ns = clock_mono_ns();
	is_int(ask(&r, SILENCE, 0, path, &is_dir), -ETIMEDOUT, "the next one does not");
	for (n = 1; n < 100 && ask(&r, NAME, 2, path, &is_dir) == -ETIMEDOUT; n++)
		;
	is_int(n, 100, "nor do those after it");
	ok(clock_mono_ns() - begin_ns < 50 * PATIENCE_NS, "which do not wait once more each");
	is_int((long long)r.n_late, 100, "all of them are counted");
	is_str(path, "untouched", "none has a path");
	is_str(first, "/brick/1", "what was there before has");
	ok(!has_children(), "who did not answer is no more");
	gluster_resolver_end(&r);

	gluster_resolver_begin(&r, 600 * CLOCK_NS_PER_SEC);
	is_int((long long)r.n_late, 0, "the next report counts anew");
	is_int(ask(&r, NAME, 3, path, &is_dir), 0, "and asks again");
	is_str(path, "/brick/3", "with success");
	is_int(ask(&r, END, 0, path, &is_dir), -ETIMEDOUT, "a child that ends answers nothing");
	is_int(ask(&r, NAME, 4, path, &is_dir), -ETIMEDOUT, "and is not replaced");
	gluster_resolver_end(&r);
	ok(!has_children(), "it is no more, either");
}

/* As where one of before is in uninterruptible sleep: here it is only not told to end yet. */
static void test_left_behind(void)
{
	struct gluster_resolver r = { .find = find };
	char path[32];
	bool is_dir;
	pid_t old;

	gluster_resolver_begin(&r, 600 * CLOCK_NS_PER_SEC);
	is_int(ask(&r, NAME, 1, path, &is_dir), 0, "a child");
	old = r.child;
	kill(old, SIGSTOP);
	waitpid(old, NULL, WUNTRACED); /* before it sees that nobody asks any more */
	close(r.sock);
	r.is_open = false;
	is_int(ask(&r, NAME, 2, path, &is_dir), -ETIMEDOUT, "while it is there no second one is");
	is_int((long long)r.n_late, 1, "and names are late");
	ok(!has_children(), "it is reaped once it ends");
	gluster_resolver_begin(&r, 600 * CLOCK_NS_PER_SEC);
	is_int(ask(&r, NAME, 3, path, &is_dir), 0, "then there is another one");
	gluster_resolver_end(&r);
}

int main(void)
{
	test_answers();
	test_silence();
	test_left_behind();
	return tap_done();
}
