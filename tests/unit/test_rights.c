// SPDX-License-Identifier: Apache-2.0
/*
 * test_rights.c: what is said to who was refused something. Capabilities are given up in a child,
 * which needs root; the lockdown state is a text,
 * and this kernel's own.
 */
#include "rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#ifndef CAP_BPF
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

#define BIT(n) (1ULL << (n))

static void test_lockdown(void)
{
	char state[32];

	rights_parse_lockdown("none [integrity] confidentiality\n", state, sizeof(state));
	is_str(state, "integrity", "the state in force is the one in brackets");
	rights_parse_lockdown("[none] integrity confidentiality\n", state, sizeof(state));
	is_str(state, "none", "as it is where nothing is locked");
	rights_parse_lockdown("none [integr", state, sizeof(state));
	is_str(state, "", "no end, no state");
	rights_parse_lockdown("", state, sizeof(state));
	is_str(state, "", "no text, no state");
	rights_parse_lockdown("[confidentiality]", state, 5);
	is_str(state, "conf", "what is too long is cut");
}

static int keep_only(uint64_t set)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	data[0].effective = data[0].permitted = (uint32_t)set;
	data[1].effective = data[1].permitted = (uint32_t)(set >> 32);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* What is said with those capabilities; "" where nothing is. */
static void say(uint64_t set, int error, char *buf, size_t size)
{
	char text[128] = "";
	int pipes[2];
	ssize_t n;
	pid_t pid;

	buf[0] = '\0';
	if (pipe(pipes))
		return;
	pid = fork();
	if (!pid) {
		if (keep_only(set))
			_exit(1);
		if (rights_why_not(error, text, sizeof(text)) &&
		    write(pipes[1], text, strlen(text)) < 0)
			_exit(1);
		_exit(0);
	}
	close(pipes[1]);
	n = read(pipes[0], buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	close(pipes[0]);
	waitpid(pid, NULL, 0);
}

static void test_capabilities(void)
{
	char text[128], state[32], locked[128] = "";

	rights_read_lockdown(state, sizeof(state));
	if (state[0] && strcmp(state, "none") != 0)
		snprintf(locked, sizeof(locked), "the kernel is locked down (%s)", state);

	say(0, -EPERM, text, sizeof(text));
	is_str(text, "this needs CAP_BPF and CAP_PERFMON: run as root", "no capability");
	say(BIT(CAP_BPF), -EPERM, text, sizeof(text));
	is_str(text, "this needs CAP_PERFMON: run as root", "the one alone");
	say(BIT(CAP_PERFMON), -EACCES, text, sizeof(text));
	is_str(text, "this needs CAP_BPF: run as root", "the other alone");
	/* securityfs can be read by the last one alone, unless it is mounted */
	say(BIT(CAP_PERFMON) | BIT(CAP_BPF), -EPERM, text, sizeof(text));
	ok(!strstr(text, "CAP_"), "both: it is not for want of them: %s", text);
	say(BIT(CAP_SYS_ADMIN), -EPERM, text, sizeof(text));
	is_str(text, locked, "nor with the old one that stands for both");
	say(0, -ENOENT, text, sizeof(text));
	is_str(text, "", "other errors are no matter of rights");
	say(0, -EINVAL, text, sizeof(text));
	is_str(text, "", "what is invalid is so for everybody");
}

/* In a child: 0 where exactly the kept are left of those that it had, and none can come back. */
static int keep_in_child(uint64_t had, uint64_t set, uint64_t want)
{
	uint64_t now = 0, again = 0;
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		if (keep_only(had) || rights_keep(set) || rights_read_capabilities(&now) ||
		    now != want)
			_exit(1);
		if (!keep_only(had) && had != want)
			_exit(2);
		_exit(rights_read_capabilities(&again) || again != want ? 3 : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_keep(void)
{
	const uint64_t least = BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) |
			       BIT(CAP_CHECKPOINT_RESTORE);
	const uint64_t all = least | BIT(CAP_BPF) | BIT(CAP_PERFMON);

	ok(rights_to_read(true, false) == all, "with probes: five");
	ok(rights_to_read(true, true) == (all | BIT(CAP_SYS_ADMIN)), "perf uprobes: one more");
	ok(rights_to_read(false, false) == least, "without: three");
	is_int(keep_in_child(all | BIT(CAP_SYS_ADMIN) | BIT(CAP_SETPCAP), all, all), 0,
	       "what is not kept is gone for good");
	is_int(keep_in_child(BIT(CAP_BPF), all, BIT(CAP_BPF)), 0, "what was not had is not got");
	is_int(keep_in_child(all, 0, 0), 0, "nothing is kept");
}

int main(void)
{
	char text[128];

	test_lockdown();
	if (geteuid() != 0)
		skip("capabilities", "needs root");
	else if (rights_why_not(-EINVAL, text, sizeof(text)))
		skip("capabilities", text);
	else
		test_capabilities();
	if (geteuid() == 0)
		test_keep();
	return tap_done();
}
