/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_resolver.c: see gluster_resolver.h. One question at a time, and one answer to each: where
 * one is late the child is given up, so that no answer is ever taken for another one's.
 */
#include "gluster_resolver.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "rights.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif

#define NS_PER_MS  1000000ULL
#define REAP_LOOKS 50 /* a ms each: so long a child that was killed may take to end */

struct question {
	uint8_t gfid[16];
	char brick[PATH_MAX];
};

struct answer {
	int ret;
	bool is_dir;
	char path[PATH_MAX];
};

/* ---- the child --------------------------------------------------------- */

static void serve(int sock, gluster_resolver_fn find)
{
	struct question q;
	struct answer a;

	while (recv(sock, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
		memset(&a, 0, sizeof(a));
		a.ret = find(q.brick, q.gfid, a.path, sizeof(a.path), &a.is_dir);
		if (send(sock, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a))
			break;
	}
}

/*
 * Out of everything that its parent has open, probes above all, and of the right to have any; to
 * read trusted attributes takes CAP_SYS_ADMIN, as long as that is there.
 */
static void run_child(int sock, pid_t parent, gluster_resolver_fn find)
{
	prctl(PR_SET_NAME, "bricktop-names", 0, 0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != parent || dup2(sock, 0) < 0 ||
	    syscall(SYS_close_range, 1U, ~0U, 0U) || rights_keep(rights_to_read(false, true)))
		_exit(1);
	serve(0, find);
	_exit(0);
}

/* ---- the parent -------------------------------------------------------- */

/* false: it is still there. */
static bool reap(struct gluster_resolver *r, unsigned int looks)
{
	const struct timespec ms = { .tv_nsec = NS_PER_MS };

	while (r->child && waitpid(r->child, NULL, WNOHANG) == 0) {
		if (!looks--)
			return false;
		nanosleep(&ms, NULL);
	}
	r->child = 0;
	return true;
}

/* A second child would hang where the first one does. */
static int start(struct gluster_resolver *r)
{
	pid_t parent = getpid();
	int pair[2];

	if (!reap(r, 0))
		return -EBUSY;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	r->child = fork();
	if (!r->child)
		run_child(pair[1], parent, r->find);
	close(pair[1]);
	if (r->child < 0) {
		r->child = 0;
		close(pair[0]);
		return -EAGAIN;
	}
	r->sock = pair[0];
	r->is_open = true;
	return 0;
}

void gluster_resolver_begin(struct gluster_resolver *r, uint64_t patience_ns)
{
	r->left_ns = patience_ns;
	r->n_late = 0;
}

void gluster_resolver_end(struct gluster_resolver *r)
{
	if (r->is_open)
		close(r->sock);
	r->is_open = false;
	if (!r->child)
		return;
	kill(r->child, SIGKILL); /* in uninterruptible sleep it takes effect when that ends */
	reap(r, REAP_LOOKS);
}

/* Until an answer is there, or the patience is at its end; only waiting counts. */
static bool await(struct gluster_resolver *r)
{
	struct pollfd p = { .fd = r->sock, .events = POLLIN };
	uint64_t begin = clock_mono_ns(), waited = 0;
	int n = -1;

	while (n < 0 && waited < r->left_ns) {
		n = poll(&p, 1, (int)((r->left_ns - waited) / NS_PER_MS + 1));
		waited = clock_mono_ns() - begin;
		if (n < 0 && errno != EINTR)
			break;
	}
	r->left_ns -= waited < r->left_ns ? waited : r->left_ns;
	return n > 0;
}

static int ask(struct gluster_resolver *r, const struct question *q, struct answer *ret_a)
{
	if (!r->is_open && start(r))
		return -ETIMEDOUT;
	if (send(r->sock, q, sizeof(*q), MSG_NOSIGNAL) != (ssize_t)sizeof(*q) || !await(r) ||
	    recv(r->sock, ret_a, sizeof(*ret_a), MSG_DONTWAIT) != (ssize_t)sizeof(*ret_a))
		return -ETIMEDOUT;
	ret_a->path[sizeof(ret_a->path) - 1] = '\0';
	return 0;
}

int gluster_resolver_ask(struct gluster_resolver *r, const char *brick, const uint8_t gfid[16],
			 char *path, size_t size, bool *ret_is_dir)
{
	struct question q = { .brick = "" };
	struct answer a;
	int n = snprintf(q.brick, sizeof(q.brick), "%s", brick);

	if (n < 0 || (size_t)n >= sizeof(q.brick))
		return -ENAMETOOLONG;
	memcpy(q.gfid, gfid, sizeof(q.gfid));
	if (!r->left_ns || ask(r, &q, &a)) {
		r->left_ns = 0;
		r->n_late++;
		gluster_resolver_end(r);
		return -ETIMEDOUT;
	}
	if (a.ret)
		return a.ret;
	if (strlen(a.path) >= size)
		return -ENAMETOOLONG;
	memcpy(path, a.path, strlen(a.path) + 1);
	*ret_is_dir = a.is_dir;
	return 0;
}
