/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_things.c: the table of what bricktop is built on, and why something of it does not work. A
 * reason is what would have to change: every obstacle that is known to be there is named, since to
 * remove one of two helps nobody. What an attempt was answered decides only whether something
 * works; why it does not is looked up in what the kernel says of itself.
 */
#include "doctor_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CONFIG(x)   (1U << DOCTOR_CONFIG_##x)
#define BPF_CONFIGS (CONFIG(BPF_SYSCALL) | CONFIG(BPF_EVENTS))
#define CAP(x)      DOCTOR_BIT(DOCTOR_CAP_##x)
#define PROBE_CAPS  DOCTOR_PROBE_CAPS

#define KERNEL_ENOTSUPP 524 /* never leaves the kernel, but for BPF's attach */

/* ---- the table --------------------------------------------------------- */

#define PROGRAMS DOCTOR_SECTION_PROGRAMS
#define FEATURES DOCTOR_SECTION_FEATURES

static const char walk_lost[] =
	"the walk of requests, and all below it: only the means of the processes' own statistics";
static const char no_loss[] = "nothing: no layer needs it where tp_btf works";

static const struct doctor_thing_row things[DOCTOR_THINGS] = {
	[DOCTOR_TP_BTF] = { PROGRAMS, "tp_btf", "5.5", PROBE_CAPS,
			    BPF_CONFIGS | CONFIG(DEBUG_INFO_BTF), .btf = true,
			    .lost = "every layer below the xlators" },
	[DOCTOR_RAW_TP] = { PROGRAMS, "raw_tp", "4.17", PROBE_CAPS, BPF_CONFIGS, .optional = true,
			    .lost = no_loss },
	[DOCTOR_TP] = { PROGRAMS, "tp", "4.7", PROBE_CAPS,
			BPF_CONFIGS | CONFIG(EVENT_TRACING) | CONFIG(FTRACE_SYSCALLS), .perf = true,
			.optional = true, .lost = no_loss },
	[DOCTOR_UPROBE_PERF] = { PROGRAMS, "uprobe", "5.15", PROBE_CAPS,
				 BPF_CONFIGS | CONFIG(UPROBE_EVENTS), .perf = true, .proc = true,
				 .optional = true,
				 .lost = "the walk of requests, unless uprobe-multi works" },
	[DOCTOR_UPROBE_MULTI] = { PROGRAMS, "uprobe-multi", "6.6", PROBE_CAPS,
				  BPF_CONFIGS | CONFIG(UPROBE_EVENTS), .proc = true,
				  .optional = true,
				  .lost = "time: perf uprobes take its place, and to detach one "
					  "takes 0.1 s" },
	[DOCTOR_FENTRY] = { PROGRAMS, "fentry", "5.5", PROBE_CAPS,
			    BPF_CONFIGS | CONFIG(DEBUG_INFO_BTF) | CONFIG(FUNCTION_TRACER) |
				    CONFIG(DYNAMIC_FTRACE_WITH_DIRECT_CALLS),
			    .btf = true, .optional = true,
			    .lost = "sharper variants of some steps: tracepoints take their "
				    "place" },
	[DOCTOR_KPROBE] = { PROGRAMS, "kprobe", "4.1", PROBE_CAPS,
			    BPF_CONFIGS | CONFIG(KPROBES) | CONFIG(KPROBE_EVENTS), .perf = true,
			    .optional = true,
			    .lost = "sharper variants of some steps: tracepoints take their "
				    "place" },
	[DOCTOR_ITER_TASK] = { PROGRAMS, "iter/task", "5.8", PROBE_CAPS,
			       BPF_CONFIGS | CONFIG(DEBUG_INFO_BTF), .btf = true,
			       .lost = "the layer syscall, which counts a process's own file "
				       "operations with it" },
	[DOCTOR_BPF_LOOP] = { FEATURES, "bpf_loop", "5.17", PROBE_CAPS, BPF_CONFIGS,
			      .lost = walk_lost },
	[DOCTOR_COOKIES] = { FEATURES, "attach cookies", "5.15", PROBE_CAPS, BPF_CONFIGS,
			     .lost = walk_lost },
	[DOCTOR_RING] = { FEATURES, "ring buffer, dynptr", "5.19", PROBE_CAPS, BPF_CONFIGS,
			  .lost = walk_lost },
	[DOCTOR_STORAGE] = { FEATURES, "task storage", "6.1", PROBE_CAPS, BPF_CONFIGS,
			     .lost = walk_lost },
	[DOCTOR_MMAP_ARRAYS] = { FEATURES, "arrays in memory", "5.5", PROBE_CAPS, BPF_CONFIGS,
				 .lost = walk_lost },
	[DOCTOR_READING] = { FEATURES, "reading memory", "5.5", PROBE_CAPS, BPF_CONFIGS,
			     .lost = walk_lost },
	[DOCTOR_STATS] = { FEATURES, "BPF statistics", "5.8", CAP(SYS_ADMIN), BPF_CONFIGS,
			   .lost = "what bricktop costs, of a core and of the target" },
};

static const struct doctor_capability capabilities[DOCTOR_CAPABILITIES] = {
	{ DOCTOR_CAP_BPF, "CAP_BPF", walk_lost, false },
	{ DOCTOR_CAP_PERFMON, "CAP_PERFMON", walk_lost, false },
	{ DOCTOR_CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "everything of other users' processes", false },
	{ DOCTOR_CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
	  "what bricktop costs; hooks that are in a module of the kernel", false },
	{ DOCTOR_CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
	  "modules of GlusterFS that only their owner may read", true },
	{ DOCTOR_CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE",
	  "processes whose files are on overlayfs, as in containers, or were replaced", true },
};

const struct doctor_thing_row *doctor_thing_get(enum doctor_thing thing)
{
	return &things[thing];
}

const struct doctor_capability *doctor_capability_get(size_t i)
{
	return &capabilities[i];
}

#define CONFIG_NAME(name) #name,
static const char *const config_names[] = { DOCTOR_CONFIGS(CONFIG_NAME) };

const char *doctor_config_name(enum doctor_config config)
{
	return config_names[config];
}

const char *doctor_state_name(enum doctor_state state)
{
	static const char *const names[] = { "works", "off", "unknown" };

	return names[state];
}

const char *doctor_section_name(enum doctor_section section)
{
	static const char *const names[] = { "layers", "programs", "features", "capabilities",
					     "hooks" };

	return names[section];
}

bool doctor_parse_config(const char *line, enum doctor_config *ret_config)
{
	static const char prefix[] = "CONFIG_";
	size_t i, len;

	if (strncmp(line, prefix, sizeof(prefix) - 1) != 0)
		return false;
	line += sizeof(prefix) - 1;
	for (i = 0; i < DOCTOR_CONFIG_COUNT; i++) {
		len = strlen(config_names[i]);
		if (strncmp(line, config_names[i], len) != 0 || line[len] != '=')
			continue;
		*ret_config = (enum doctor_config)i;
		return line[len + 1] == 'y' || line[len + 1] == 'm';
	}
	return false;
}

/* ---- obstacles --------------------------------------------------------- */

/* One more reason behind those that are there; what finds no room is left out as a whole. */
void doctor_tell(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	char one[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(one, sizeof(one), fmt, ap);
	va_end(ap);
	if (strstr(buf, one) || len + strlen(one) + 3 > size)
		return;
	snprintf(buf + len, size - len, "%s%s", len ? "; " : "", one);
}

/* CAP_SYS_ADMIN stands for those that were split off it: two in 5.8, one in 5.9. */
uint64_t doctor_missing_caps(const struct doctor_env *env, uint64_t wanted)
{
	uint64_t have = env->caps;

	if (have & CAP(SYS_ADMIN))
		have |= PROBE_CAPS | CAP(CHECKPOINT_RESTORE);
	return wanted & ~have;
}

void doctor_tell_caps(const struct doctor_env *env, uint64_t missing, char *buf, size_t size)
{
	char names[128] = "";
	size_t i, len, n = 0;

	for (i = 0; i < DOCTOR_CAPABILITIES; i++) {
		if (!(missing & DOCTOR_BIT(capabilities[i].number)))
			continue;
		len = strlen(names);
		snprintf(names + len, sizeof(names) - len, "%s%s", n++ ? " and " : "",
			 capabilities[i].name);
	}
	/* root that lacks one: a container or a service has taken it away */
	doctor_tell(buf, size, "%s %s: %s", names, n > 1 ? "are missing" : "is missing",
		    !env->is_root            ? "run as root" :
		    missing & ~env->bounding ? "taken from this container or service" :
					       "dropped by who started this");
}

static bool is_locked(const struct doctor_env *env)
{
	return env->lockdown[0] && strcmp(env->lockdown, "none") != 0;
}

/* Lockdown hides helpers from the verifier in its second degree only: then it says EINVAL. */
static bool may_be_lockdown(const struct doctor_env *env, int error)
{
	if (!is_locked(env))
		return false;
	return error == -EPERM || error == -EACCES ||
	       (error == -EINVAL && !strcmp(env->lockdown, "confidentiality"));
}

/* "6.1.0-57" is older than "6.6"? Only ever to explain, never to choose. */
static bool is_older(const char *kernel, const char *than)
{
	unsigned int have[2] = { 0, 0 }, want[2] = { 0, 0 };

	if (sscanf(kernel, "%u.%u", &have[0], &have[1]) != 2 ||
	    sscanf(than, "%u.%u", &want[0], &want[1]) != 2)
		return false;
	return have[0] < want[0] || (have[0] == want[0] && have[1] < want[1]);
}

static void tell_error(const struct doctor_env *env, const struct doctor_thing_row *t, int error,
		       char *buf, size_t size)
{
	const char *name = strerrorname_np(-error);

	if (error == -ENODATA)
		doctor_tell(buf, size, "attached, but never hit");
	else if (t->perf && (error == -EACCES || error == -EPERM) && env->perf_event_paranoid > 2 &&
		 !(env->caps & CAP(SYS_ADMIN)))
		doctor_tell(buf, size, "kernel.perf_event_paranoid is %d",
			    env->perf_event_paranoid);
	else if (error == -EPERM || error == -EACCES)
		doctor_tell(buf, size, "the kernel refuses it (%s)%s%s", name,
			    env->caps & CAP(SYS_ADMIN) ? "" : " without CAP_SYS_ADMIN",
			    env->lockdown[0] ? "" :
					       "; whether it is locked down cannot be read here");
	else if (is_older(env->kernel, t->since))
		doctor_tell(buf, size, "this kernel (%.40s) is older than %s", env->kernel,
			    t->since);
	else if (error == -KERNEL_ENOTSUPP || error == -EOPNOTSUPP)
		doctor_tell(buf, size, "this kernel does not support it");
	else
		doctor_tell(buf, size, "this kernel does not take it (%s)", name ? name : "?");
}

void doctor_tell_proc(const struct doctor_env *env, char *buf, size_t size)
{
	if (env->lacks_proc)
		doctor_tell(buf, size, "/proc is not mounted here");
}

/* What stands in the way whatever the attempt was answered, but for capabilities. */
void doctor_tell_static(const struct doctor_env *env, const struct doctor_thing_row *t, char *buf,
			size_t size)
{
	uint32_t off = env->config_path[0] ? t->configs & ~env->config_on : 0;
	char names[192] = "";
	unsigned int i, n = 0;
	size_t len;

	for (i = 0; i < DOCTOR_CONFIG_COUNT; i++) {
		if (!(off & 1U << i))
			continue;
		len = strlen(names);
		snprintf(names + len, sizeof(names) - len, "%sCONFIG_%s", n++ ? " and " : "",
			 config_names[i]);
	}
	if (n)
		doctor_tell(buf, size, "%s %s not set in this kernel", names, n > 1 ? "are" : "is");
	if (t->btf && !env->has_btf && !(off & CONFIG(DEBUG_INFO_BTF)))
		doctor_tell(buf, size, "this kernel has no BTF (/sys/kernel/btf/vmlinux)");
	if (t->proc)
		doctor_tell_proc(env, buf, size);
}

/* Works, or not and why; unknown where only a capability is missing to find out. */
enum doctor_state doctor_judge_thing(const struct doctor_env *env, const struct doctor_thing_row *t,
				     const struct doctor_try *result, char *buf, size_t size)
{
	uint64_t missing = doctor_missing_caps(env, t->caps);
	bool is_off;

	buf[0] = '\0';
	if (result->tried && !result->error)
		return DOCTOR_WORKS;
	doctor_tell_static(env, t, buf, size);
	is_off = buf[0] != '\0';
	if (missing) {
		doctor_tell_caps(env, missing, buf, size);
		return is_off ? DOCTOR_OFF : DOCTOR_UNKNOWN;
	}
	if (!result->tried)
		doctor_tell(buf, size, "not tried");
	else if (may_be_lockdown(env, result->error))
		doctor_tell(buf, size, "the kernel is locked down (%s)", env->lockdown);
	else if (!is_off)
		tell_error(env, t, result->error, buf, size);
	return result->tried || is_off ? DOCTOR_OFF : DOCTOR_UNKNOWN;
}
