/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter_stats.c: see meter_stats.h. The child is a fork of a process with threads: it calls nothing
 * but system calls.
 */
#include "meter_stats.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meter.h"
#include "rights.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* ---- the child --------------------------------------------------------- */

/* An answer is an error, or 0 and a descriptor. */
static int send_fd(int sock, int fd)
{
	int error = fd < 0 ? fd : 0;
	struct iovec iov = { .iov_base = &error, .iov_len = sizeof(error) };
	union control control = { .bytes = { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* Until the parent closes its end. */
static void serve(int sock)
{
	char asked;
	int fd;

	while (read(sock, &asked, 1) == 1) {
		fd = meter_enable_stats();
		if (send_fd(sock, fd))
			break;
		if (fd >= 0)
			close(fd);
	}
}

static void run_child(int sock)
{
	prctl(PR_SET_NAME, "bricktop-stats", 0, 0, 0);
	if (dup2(sock, 0) < 0 || syscall(SYS_close_range, 1U, ~0U, 0U) ||
	    rights_keep(rights_for_statistics()))
		_exit(1);
	serve(0);
	_exit(0);
}

/* ---- the parent -------------------------------------------------------- */

int meter_stats_start(struct meter_stats *ms)
{
	const struct timeval patience = { .tv_sec = 1 };
	int pair[2], error;

	ms->sock = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ms->child = fork();
	if (!ms->child)
		run_child(pair[1]);
	close(pair[1]);
	if (ms->child < 0) {
		error = -errno;
		close(pair[0]);
		return error;
	}
	(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	ms->sock = pair[0];
	return 0;
}

void meter_stats_end(struct meter_stats *ms)
{
	if (ms->sock < 0)
		return;
	close(ms->sock);
	ms->sock = -1;
	kill(ms->child, SIGKILL); /* it ends by itself, unless somebody has stopped it */
	waitpid(ms->child, NULL, 0);
}

/* The descriptor; what the child answered; -EPIPE or -EPROTO where it did not. */
static int ask(const struct meter_stats *ms)
{
	int error = 0, fd;
	struct iovec iov = { .iov_base = &error, .iov_len = sizeof(error) };
	union control control = { .bytes = { 0 } };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};

	if (send(ms->sock, "", 1, MSG_NOSIGNAL) != 1 ||
	    recvmsg(ms->sock, &msg, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(error))
		return -EPIPE;
	if (error)
		return error;
	if (msg.msg_controllen < CMSG_LEN(sizeof(int)) || control.head.cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

int meter_stats_enable(struct meter_stats *ms)
{
	int fd;

	if (ms->sock < 0)
		return -EPERM;
	fd = ask(ms);
	/* a descriptor that came late would keep the statistics on, unseen */
	if (fd == -EPIPE || fd == -EPROTO)
		meter_stats_end(ms);
	return fd;
}
