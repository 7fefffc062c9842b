/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_env.c: see doctor_env.h.
 */
#include "doctor_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include "rights.h"
#include "text.h"

#define BTF_FILE "/sys/kernel/btf/vmlinux"

static int read_setting(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[32] = "", *end;
	long value;

	if (!f)
		return DOCTOR_NOT_KNOWN;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	value = strtol(line, &end, 10);
	return end != line && value > -100 && value < 100 ? (int)value : DOCTOR_NOT_KNOWN;
}

/* zlib reads plain files as they are. */
static bool read_config(struct doctor_env *env, const char *path)
{
	gzFile f = gzopen(path, "re");
	enum doctor_config config;
	char line[512];

	if (!f)
		return false;
	while (gzgets(f, line, sizeof(line))) {
		if (doctor_parse_config(line, &config))
			env->config_on |= 1U << config;
	}
	gzclose(f);
	/* not a configuration, or a broken one: no kernel that runs us is without this */
	if (!env->config_on)
		return false;
	snprintf(env->config_path, sizeof(env->config_path), "%s", path);
	return true;
}

static void find_config(struct doctor_env *env)
{
	static const char *const places[] = { "/boot/config-%s", "/lib/modules/%s/config",
					      "/usr/lib/modules/%s/config" };
	char path[160];
	size_t i;

	if (read_config(env, "/proc/config.gz"))
		return;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		size_t dir = strcspn(places[i], "%");

		snprintf(path, sizeof(path), "%.*s%s%s", (int)dir, places[i], env->kernel,
			 places[i] + dir + strlen("%s"));
		if (read_config(env, path))
			return;
	}
}

static uint64_t read_bounding(void)
{
	uint64_t set = 0;
	int cap, has;

	for (cap = 0; cap < 64; cap++) {
		has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (has < 0)
			break;
		set |= (uint64_t)(has > 0) << cap;
	}
	return set;
}

void doctor_env_read(struct doctor_env *ret_env)
{
	struct doctor_env env = { .is_root = geteuid() == 0 };
	struct utsname uts;

	if (!uname(&uts)) {
		text_sanitize(env.kernel, sizeof(env.kernel), uts.release);
		text_sanitize(env.machine, sizeof(env.machine), uts.machine);
	}
	rights_read_lockdown(env.lockdown, sizeof(env.lockdown));
	find_config(&env);
	env.has_btf = access(BTF_FILE, R_OK) == 0;
	env.lacks_proc = access("/proc/self/stat", R_OK) != 0;
	if (rights_read_capabilities(&env.caps))
		env.caps = 0;
	env.bounding = read_bounding();
	env.unprivileged_bpf_disabled = read_setting("/proc/sys/kernel/unprivileged_bpf_disabled");
	env.perf_event_paranoid = read_setting("/proc/sys/kernel/perf_event_paranoid");
	env.ptrace_scope = read_setting("/proc/sys/kernel/yama/ptrace_scope");
	*ret_env = env;
}
