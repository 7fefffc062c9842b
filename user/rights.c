/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights.c: see rights.h.
 */
#include "rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCKDOWN_FILE "/sys/kernel/security/lockdown"

/* Since 5.8; before, CAP_SYS_ADMIN stood for both, as it still does. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

void rights_parse_lockdown(const char *text, char *buf, size_t size)
{
	const char *open = strchr(text, '['), *end = open ? strchr(open, ']') : NULL;

	buf[0] = '\0';
	if (end)
		snprintf(buf, size, "%.*s", (int)(end - open - 1), open + 1);
}

static bool is_locked_down(char *state, size_t size)
{
	FILE *f = fopen(LOCKDOWN_FILE, "re");
	char line[128] = "";

	state[0] = '\0';
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f))
		rights_parse_lockdown(line, state, size);
	fclose(f);
	return state[0] && strcmp(state, "none") != 0;
}

/* The set of effective capabilities. */
static int read_capabilities(uint64_t *ret_set)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, data))
		return -errno;
	*ret_set = data[0].effective | (uint64_t)data[1].effective << 32;
	return 0;
}

const char *rights_why_not(int error, char *buf, size_t size)
{
	uint64_t set = 0;
	char state[32];
	bool bpf, perfmon;

	if (error != -EPERM && error != -EACCES && error != -EINVAL)
		return NULL;
	/* a locked-down kernel hides helpers of BPF, which then are no valid ones: EINVAL */
	if (is_locked_down(state, sizeof(state))) {
		snprintf(buf, size, "the kernel is locked down (%s)", state);
		return buf;
	}
	if (error == -EINVAL || read_capabilities(&set) || set >> CAP_SYS_ADMIN & 1)
		return NULL;
	bpf = set >> CAP_BPF & 1;
	perfmon = set >> CAP_PERFMON & 1;
	if (bpf && perfmon)
		return NULL;
	snprintf(buf, size, "this needs %s%s%s: run as root", bpf ? "" : "CAP_BPF",
		 bpf || perfmon ? "" : " and ", perfmon ? "" : "CAP_PERFMON");
	return buf;
}
