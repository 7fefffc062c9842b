/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights.c: see rights.h.
 */
#include "rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCKDOWN_DIR  "/sys/kernel/security"
#define LOCKDOWN_FILE "lockdown"

/* Since 5.8; before, CAP_SYS_ADMIN stood for both, as it still does. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

/* Since 5.9; older kernels ignore the bit, and for what it is for want CAP_SYS_ADMIN. */
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

/* Since 5.2; glibc 2.36's <sys/mount.h> has the calls, but not what it collides with. */
#ifndef SYS_fsopen
#define SYS_fsopen   430
#define SYS_fsconfig 431
#define SYS_fsmount  432
#endif
enum { FS_CLOEXEC = 1, FS_CREATE = 6 };

void rights_parse_lockdown(const char *text, char *buf, size_t size)
{
	const char *open = strchr(text, '['), *end = open ? strchr(open, ']') : NULL;

	buf[0] = '\0';
	if (end)
		snprintf(buf, size, "%.*s", (int)(end - open - 1), open + 1);
}

/* A securityfs that is mounted nowhere, only for us, which takes CAP_SYS_ADMIN: an fd or -1. */
static int open_securityfs(void)
{
	int fs = (int)syscall(SYS_fsopen, "securityfs", FS_CLOEXEC), dir = -1;

	if (fs < 0)
		return -1;
	if (!syscall(SYS_fsconfig, fs, FS_CREATE, NULL, NULL, 0))
		dir = (int)syscall(SYS_fsmount, fs, FS_CLOEXEC, 0);
	close(fs);
	return dir;
}

static bool read_lockdown_in(int dir, char *state, size_t size)
{
	int fd = dir < 0 ? -1 : openat(dir, LOCKDOWN_FILE, O_RDONLY | O_CLOEXEC);
	char line[128] = "";

	if (fd < 0)
		return false;
	if (read(fd, line, sizeof(line) - 1) > 0)
		rights_parse_lockdown(line, state, size);
	close(fd);
	return state[0] != '\0';
}

void rights_read_lockdown(char *state, size_t size)
{
	int dir = open(LOCKDOWN_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool known;

	state[0] = '\0';
	known = read_lockdown_in(dir, state, size);
	if (dir >= 0)
		close(dir);
	if (known)
		return;
	dir = open_securityfs();
	read_lockdown_in(dir, state, size);
	if (dir >= 0)
		close(dir);
}

int rights_read_capabilities(uint64_t *ret_set)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, data))
		return -errno;
	*ret_set = data[0].effective | (uint64_t)data[1].effective << 32;
	return 0;
}

/* ---- giving up --------------------------------------------------------- */

#define BIT(cap) (1ULL << (cap))

uint64_t rights_to_read(bool probes, bool perf_uprobes)
{
	uint64_t set = BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_CHECKPOINT_RESTORE);

	if (probes)
		set |= BIT(CAP_BPF) | BIT(CAP_PERFMON);
	return perf_uprobes ? set | BIT(CAP_SYS_ADMIN) : set;
}

uint64_t rights_for_statistics(void)
{
	return BIT(CAP_SYS_ADMIN);
}

/* Without CAP_SETPCAP they stay, and are of no use: see PR_SET_NO_NEW_PRIVS. */
static void drop_bounding(void)
{
	int cap;

	/* the first number that the kernel does not know ends it */
	for (cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int rights_keep(uint64_t set)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	int i;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	drop_bounding();
	if (syscall(SYS_capget, &header, data))
		return -errno;
	for (i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(set >> 32 * i);
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0; /* which ends the ambient ones */
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* ---- why not ----------------------------------------------------------- */

/* Those that BPF programs and probes need and that are missing, as text into buf; NULL: none. */
static const char *missing_capabilities(char *buf, size_t size)
{
	uint64_t set = 0;
	bool bpf, perfmon;

	if (rights_read_capabilities(&set) || set >> CAP_SYS_ADMIN & 1)
		return NULL;
	bpf = set >> CAP_BPF & 1;
	perfmon = set >> CAP_PERFMON & 1;
	if (bpf && perfmon)
		return NULL;
	snprintf(buf, size, "this needs %s%s%s: run as root", bpf ? "" : "CAP_BPF",
		 bpf || perfmon ? "" : " and ", perfmon ? "" : "CAP_PERFMON");
	return buf;
}

const char *rights_why_not(int error, char *buf, size_t size)
{
	const char *missing;
	char state[32];

	if (error != -EPERM && error != -EACCES && error != -EINVAL)
		return NULL;
	missing = error == -EINVAL ? NULL : missing_capabilities(buf, size);
	if (missing)
		return missing;
	rights_read_lockdown(state, sizeof(state));
	if (!state[0] || !strcmp(state, "none"))
		return NULL;
	/* in this degree helpers of BPF are hidden, and then are no valid ones: EINVAL */
	if (error == -EINVAL && strcmp(state, "confidentiality") != 0)
		return NULL;
	snprintf(buf, size, "the kernel is locked down (%s)", state);
	return buf;
}
