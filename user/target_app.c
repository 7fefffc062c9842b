/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_app.c: see target_app.h. Everything is read from /proc; what is gone is not there.
 */
#include "target_app.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"
#include "procmem.h"
#include "text.h"

/* The first line of /proc/PID/WHAT that begins with that, or ends. */
static bool read_line(pid_t pid, const char *what, const char *begin, char *buf, size_t size)
{
	char path[64];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && fgets(buf, (int)size, f))
		found = !strncmp(buf, begin, strlen(begin));
	fclose(f);
	buf[strcspn(buf, "\n")] = '\0';
	return found;
}

/* When it began, CLOCK_MONOTONIC; the kernel counts ticks of the clock that runs in suspend. */
static bool began_before(pid_t pid, uint64_t mono_ns)
{
	uint64_t tick_ns = CLOCK_NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t now_ns = clock_mono_ns(); /* first: the other one is never behind it */
	uint64_t suspended_ns = clock_ns(CLOCK_BOOTTIME) - now_ns;
	char stat[1024];
	const char *at;

	/* the name may hold anything, so that fields are counted from its end: the start is 22nd */
	if (!read_line(pid, "stat", "", stat, sizeof(stat)) || !(at = strrchr(stat, ')')))
		return false;
	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	return at && strtoull(at, NULL, 10) * tick_ns <= mono_ns + suspended_ns;
}

static bool acts_as(pid_t pid, uint32_t uid)
{
	unsigned int fs_uid;
	char line[128];

	return read_line(pid, "status", "Uid:", line, sizeof(line)) &&
	       sscanf(line, "Uid: %*u %*u %*u %u", &fs_uid) == 1 && fs_uid == uid;
}

bool target_app_name(pid_t pid, uint32_t uid, uint64_t alive_ns, char *name, size_t size)
{
	char comm[64];

	if (pid <= 0 || !began_before(pid, alive_ns) || !acts_as(pid, uid) ||
	    !read_line(pid, "comm", "", comm, sizeof(comm)))
		return false;
	text_sanitize(name, size, comm);
	return true;
}

bool target_app_shares_pids(pid_t pid)
{
	struct stat own, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return !stat("/proc/self/ns/pid", &own) && !stat(path, &its) && own.st_ino == its.st_ino &&
	       own.st_dev == its.st_dev;
}

bool target_app_client(const char *client, char *host, size_t size, pid_t *ret_pid)
{
	const char *pid_at = strstr(client, "-PID:"), *host_at = strstr(client, "-HOST:"), *end;
	long pid;

	if (!pid_at || !host_at)
		return false;
	host_at += strlen("-HOST:");
	end = strstr(host_at, "-PC_NAME:");
	pid = strtol(pid_at + strlen("-PID:"), NULL, 10);
	if (!end || end == host_at || (size_t)(end - host_at) >= size || pid <= 0 || pid > INT_MAX)
		return false;
	snprintf(host, size, "%.*s", (int)(end - host_at), host_at);
	*ret_pid = (pid_t)pid;
	return true;
}

bool target_app_is_client_here(const char *client)
{
	char comm[64], host[sizeof(((struct utsname *)NULL)->nodename)];
	struct utsname un;
	pid_t pid;

	return target_app_client(client, host, sizeof(host), &pid) && !uname(&un) &&
	       !strcmp(host, un.nodename) &&
	       read_line(pid, "comm", "gluster", comm, sizeof(comm)) && target_app_shares_pids(pid);
}
