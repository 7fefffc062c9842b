/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_target_app.c: whose pid it is: this process and its child, seen under their own and under
 * others' pids, uids and times; and what clients call themselves.
 */
#include "target_app.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "tap.h"

static void test_name(void)
{
	uint64_t now = clock_mono_ns();
	char name[64] = "untouched";

	prctl(PR_SET_NAME, "a) b\x1b[1m");
	ok(target_app_name(getpid(), geteuid(), now, name, sizeof(name)), "this process");
	is_str(name, "a) b?[1m", "its name, made harmless");
	ok(!target_app_name(getpid(), geteuid() + 1, now, name, sizeof(name)), "not as another");
	ok(!target_app_name(getpid(), geteuid(), 1, name, sizeof(name)),
	   "not where it was there before: then it is another process's number by now");
	ok(!target_app_name(0, geteuid(), now, name, sizeof(name)), "0 is no process");
	ok(!target_app_name(-6, geteuid(), now, name, sizeof(name)), "nor is what is negative");
}

static void test_gone(void)
{
	uint64_t now;
	char name[64];
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	now = clock_mono_ns() + CLOCK_NS_PER_SEC;
	ok(target_app_name(pid, geteuid(), now, name, sizeof(name)), "a child");
	ok(target_app_shares_pids(pid), "its pids are ours");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok(!target_app_name(pid, geteuid(), now, name, sizeof(name)), "that has ended");
	ok(!target_app_shares_pids(pid), "and has no pids any more");
}

static void test_client(void)
{
	char host[16], client[256];
	struct utsname un;
	pid_t pid = 0;

	ok(target_app_client("CTX_ID:1-2-GRAPH_ID:0-PID:4211-HOST:node-1.x-PC_NAME:v-client-0-R",
			     host, sizeof(host), &pid),
	   "a client");
	is_str(host, "node-1.x", "its host");
	is_int(pid, 4211, "its process");
	ok(!target_app_client("", host, sizeof(host), &pid), "no name");
	ok(!target_app_client("-PID:1-HOST:-PC_NAME:", host, sizeof(host), &pid), "no host");
	ok(!target_app_client("-PID:1-HOST:name", host, sizeof(host), &pid), "cut");
	ok(!target_app_client("-PID:99999999999-HOST:h-PC_NAME:", host, sizeof(host), &pid),
	   "no pid");
	ok(!target_app_client("-PID:1-HOST:longer-than-there-is-room-PC_NAME:", host, sizeof(host),
			      &pid),
	   "too long");
	uname(&un);
	snprintf(client, sizeof(client), "CTX_ID:1-GRAPH_ID:0-PID:%d-HOST:%s-PC_NAME:c", getpid(),
		 un.nodename);
	ok(!target_app_is_client_here(client), "this process is no GlusterFS");
	prctl(PR_SET_NAME, "glusterfs");
	ok(target_app_is_client_here(client), "one that is");
	snprintf(client, sizeof(client), "CTX_ID:1-GRAPH_ID:0-PID:%d-HOST:%sx-PC_NAME:c", getpid(),
		 un.nodename);
	ok(!target_app_is_client_here(client), "another host");
}

int main(void)
{
	test_name();
	test_gone();
	test_client();
	return tap_done();
}
