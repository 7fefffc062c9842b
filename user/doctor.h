/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h: what works with this kernel and these privileges, and why the rest does not. Owns the
 * table of what bricktop is built on (program types, features, capabilities): what each needs and
 * what is lost without it. Pure: judges what doctor_env.c has read and doctor_probe.c has tried.
 */
#ifndef BRICKTOP_DOCTOR_H
#define BRICKTOP_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what is known ----------------------------------------------------- */

/* Options of the kernel's configuration that decide something here. */
#define DOCTOR_CONFIGS(X)  \
	X(BPF_SYSCALL)     \
	X(BPF_EVENTS)      \
	X(PERF_EVENTS)     \
	X(DEBUG_INFO_BTF)  \
	X(TRACEPOINTS)     \
	X(EVENT_TRACING)   \
	X(FTRACE_SYSCALLS) \
	X(UPROBE_EVENTS)   \
	X(KPROBES)         \
	X(KPROBE_EVENTS)   \
	X(FUNCTION_TRACER) \
	X(DYNAMIC_FTRACE_WITH_DIRECT_CALLS)

#define DOCTOR_CONFIG_ENTRY(name) DOCTOR_CONFIG_##name,
enum doctor_config { DOCTOR_CONFIGS(DOCTOR_CONFIG_ENTRY) DOCTOR_CONFIG_COUNT };
#undef DOCTOR_CONFIG_ENTRY

#define DOCTOR_NOT_KNOWN INT_MIN /* of a setting */

/* Capabilities that matter, by their numbers in linux/capability.h. */
enum {
	DOCTOR_CAP_DAC_READ_SEARCH = 2,
	DOCTOR_CAP_SYS_PTRACE = 19,
	DOCTOR_CAP_SYS_ADMIN = 21,
	DOCTOR_CAP_PERFMON = 38,
	DOCTOR_CAP_BPF = 39,
	DOCTOR_CAP_CHECKPOINT_RESTORE = 40,
};

struct doctor_env {
	char kernel[96], machine[32];
	char lockdown[32];    /* "none", "integrity", "confidentiality"; "" not known */
	char config_path[64]; /* where the configuration was found; "" nowhere */
	uint32_t config_on;   /* 1 << DOCTOR_CONFIG_x: built in or a module. Without a path: 0 */
	bool has_btf;         /* /sys/kernel/btf/vmlinux */
	bool lacks_proc;      /* no file system of processes is mounted at /proc */
	bool is_root;         /* effective user */
	uint64_t caps;        /* effective: 1 << CAP_x */
	uint64_t bounding;    /* what this process could ever have */
	int unprivileged_bpf_disabled, perf_event_paranoid, ptrace_scope; /* or DOCTOR_NOT_KNOWN */
};

/* What was tried. Program types are loaded, attached and hit; features are loaded. */
enum doctor_thing {
	DOCTOR_TP_BTF,
	DOCTOR_RAW_TP,
	DOCTOR_TP,
	DOCTOR_UPROBE_PERF,
	DOCTOR_UPROBE_MULTI,
	DOCTOR_FENTRY,
	DOCTOR_KPROBE,
	DOCTOR_ITER_TASK,
	DOCTOR_BPF_LOOP,
	DOCTOR_COOKIES,
	DOCTOR_RING,
	DOCTOR_STORAGE,
	DOCTOR_MMAP_ARRAYS,
	DOCTOR_READING,
	DOCTOR_STATS,
	DOCTOR_THINGS,
};

struct doctor_try {
	bool tried; /* 0: nothing is known of it */
	int error;  /* 0: it worked; -errno; -ENODATA: attached, and never hit */
};

/* Something to attach to, as a BPF object names it. */
struct doctor_hook {
	char section[96]; /* "tp_btf/xfs_log_force" */
	char program[64]; /* STEP__VARIANT */
	unsigned int layer;
	int found; /* in the kernel's or a module's BTF: 1, 0, or DOCTOR_NOT_KNOWN */
};

/* What a report is made of, from the bottom of what bricktop can do. */
struct doctor_layer {
	const char *title;
	const char *parent; /* who has its time while it is off; NULL: see doctor.c */
	bool on;            /* attached unless switched off */
	bool is_host;       /* a table of the host's: has to do with no process */
	struct doctor_try result;
	char text[256]; /* the engine's words where it did not work; or "" */
};

/* Numbers of the layers that stand in no table. */
enum { DOCTOR_MEMORY, DOCTOR_WALK, DOCTOR_FIRST_ROW };

struct doctor_facts {
	struct doctor_env env;
	struct doctor_try things[DOCTOR_THINGS];
	struct doctor_layer *layers; /* [DOCTOR_MEMORY], [DOCTOR_WALK], then those of layers.def */
	size_t n_layers;
	struct doctor_hook *hooks;
	size_t n_hooks;
};

/* ---- what follows ------------------------------------------------------ */

enum doctor_section {
	DOCTOR_SECTION_LAYERS,
	DOCTOR_SECTION_PROGRAMS,
	DOCTOR_SECTION_FEATURES,
	DOCTOR_SECTION_CAPABILITIES,
	DOCTOR_SECTION_HOOKS,
	DOCTOR_SECTIONS,
};

enum doctor_state { DOCTOR_WORKS, DOCTOR_OFF, DOCTOR_UNKNOWN };

struct doctor_row {
	enum doctor_section section;
	enum doctor_state state;
	bool optional; /* bricktop does without it and loses nothing that it shows */
	char name[96];
	char used_by[64]; /* a hook's layer; else "" */
	char reason[384]; /* why it does not work; "" where it does */
	char lost[256];   /* what is lost by that; "" where nothing is, or it works */
};

enum doctor_verdict { DOCTOR_ALL, DOCTOR_SOME, DOCTOR_NOTHING };

struct doctor_report {
	struct doctor_env env;
	struct doctor_row *rows; /* by section */
	size_t n;
	enum doctor_verdict verdict; /* of the layers that are on by default */
	size_t n_on, n_working;      /* of those */
};

/* 0 or -ENOMEM; freed by doctor_report_free(), which takes a zeroed one. */
int doctor_judge(const struct doctor_facts *facts, struct doctor_report *ret_report);
void doctor_report_free(struct doctor_report *report);

/* "works", "off", "unknown"; "layers", "programs", ... */
const char *doctor_state_name(enum doctor_state state);
const char *doctor_section_name(enum doctor_section section);

/* "KPROBES" */
const char *doctor_config_name(enum doctor_config config);

/*
 * A line of a kernel's configuration. True where it switches one on that is in DOCTOR_CONFIGS, with
 * its number in *ret_config.
 */
bool doctor_parse_config(const char *line, enum doctor_config *ret_config);

#endif
