// SPDX-License-Identifier: Apache-2.0
/*
 * test_doctor.c: verdicts over systems that are not at hand: what is tried is faked, what must come
 * out is the true reason and what is lost by it.
 */
#include "doctor.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

#define BIT(n)      (1ULL << (n))
#define ALL_CAPS    (BIT(41) - 1)
#define ALL_CONFIGS (BIT(DOCTOR_CONFIG_COUNT) - 1)

enum { SYSCALL = DOCTOR_FIRST_ROW, XFS, DEVICES, N_LAYERS };

struct bed {
	struct doctor_facts facts;
	struct doctor_layer layers[N_LAYERS];
	struct doctor_hook hooks[8];
	struct doctor_report report;
};

static void add_hook(struct bed *b, unsigned int layer, const char *section, const char *program,
		     int found)
{
	struct doctor_hook *h = &b->hooks[b->facts.n_hooks++];

	*h = (struct doctor_hook){ .layer = layer, .found = found };
	snprintf(h->section, sizeof(h->section), "%s", section);
	snprintf(h->program, sizeof(h->program), "%s", program);
}

/* Root on a recent kernel, where everything was tried and works. */
static void set_up(struct bed *b)
{
	size_t i;

	*b = (struct bed){
		.facts.env = { .kernel = "6.12.1-amd64",
			       .machine = "x86_64",
			       .lockdown = "none",
			       .config_path = "/boot/config-6.12.1-amd64",
			       .config_on = (uint32_t)ALL_CONFIGS,
			       .has_btf = true,
			       .is_root = true,
			       .caps = ALL_CAPS,
			       .bounding = ALL_CAPS,
			       .unprivileged_bpf_disabled = 2,
			       .perf_event_paranoid = 2,
			       .ptrace_scope = DOCTOR_NOT_KNOWN },
		.layers = { [DOCTOR_MEMORY] = { .title = "memory", .on = true },
			    [DOCTOR_WALK] = { .title = "walk", .on = true },
			    [SYSCALL] = { .title = "syscall",
					  .parent = "storage/posix",
					  .on = true },
			    [DEVICES] = { .title = "devices",
					  .parent = "host",
					  .on = true,
					  .is_host = true },
			    [XFS] = { .title = "xfs", .parent = "root", .on = true } },
	};
	b->facts.layers = b->layers;
	b->facts.n_layers = N_LAYERS;
	b->facts.hooks = b->hooks;
	for (i = 0; i < DOCTOR_THINGS; i++)
		b->facts.things[i].tried = true;
	for (i = 0; i < N_LAYERS; i++)
		b->layers[i].result.tried = true;
	add_hook(b, DOCTOR_WALK, "uprobe-multi", "on_callback__multi", DOCTOR_NOT_KNOWN);
	add_hook(b, DOCTOR_WALK, "uprobe", "on_callback__perf", DOCTOR_NOT_KNOWN);
	add_hook(b, SYSCALL, "tp_btf/sys_enter", "on_enter", 1);
	add_hook(b, XFS, "tp_btf/xfs_log_force", "on_force__btf", 1);
	add_hook(b, XFS, "fentry/xfs_log_force", "on_force__fentry", 1);
}

static void fail_all(struct bed *b, int error)
{
	size_t i;

	for (i = 0; i < DOCTOR_THINGS; i++)
		b->facts.things[i].error = error;
	for (i = DOCTOR_WALK; i < N_LAYERS; i++)
		b->layers[i].result.error = error;
}

static const struct doctor_row *find_row(const struct bed *b, enum doctor_section section,
					 const char *name)
{
	static const struct doctor_row none = { .state = DOCTOR_WORKS, .reason = "(no such row)" };
	size_t i;

	for (i = 0; i < b->report.n; i++) {
		if (b->report.rows[i].section == section && !strcmp(b->report.rows[i].name, name))
			return &b->report.rows[i];
	}
	diag("no row %s", name);
	return &none;
}

static const struct doctor_row *layer_row(const struct bed *b, const char *name)
{
	return find_row(b, DOCTOR_SECTION_LAYERS, name);
}

static const struct doctor_row *program_row(const struct bed *b, const char *name)
{
	return find_row(b, DOCTOR_SECTION_PROGRAMS, name);
}

static void judge(struct bed *b)
{
	is_int(doctor_judge(&b->facts, &b->report), 0, "judged");
}

/* Nothing that works has a reason or a loss, nothing else lacks a reason. */
static void check_sane(const struct bed *b, const char *what)
{
	size_t i, bad = 0;

	for (i = 0; i < b->report.n; i++) {
		const struct doctor_row *row = &b->report.rows[i];
		bool works = row->state == DOCTOR_WORKS;

		if (works == (row->reason[0] != '\0') || works == (row->lost[0] != '\0')) {
			diag("%s: '%s', '%s'", row->name, row->reason, row->lost);
			bad++;
		}
	}
	is_int((long long)bad, 0, "%s: a reason and a loss where, and only where, it is off", what);
}

static void test_healthy(void)
{
	struct bed b;
	size_t i, off = 0;

	set_up(&b);
	judge(&b);
	for (i = 0; i < b.report.n; i++)
		off += b.report.rows[i].state != DOCTOR_WORKS;
	is_int((long long)off, 0, "nothing is off");
	is_int((long long)b.report.n, N_LAYERS + DOCTOR_THINGS + 6 + 5, "a row for each");
	is_int(b.report.verdict, DOCTOR_ALL, "all layers work");
	check_sane(&b, "healthy");
	doctor_report_free(&b.report);
	doctor_report_free(&b.report);
}

static void test_locked(void)
{
	struct bed b;

	set_up(&b);
	snprintf(b.facts.env.lockdown, sizeof(b.facts.env.lockdown), "confidentiality");
	fail_all(&b, -EPERM);
	b.facts.things[DOCTOR_READING].error = -EINVAL;
	judge(&b);
	is_str(program_row(&b, "tp_btf")->reason, "the kernel is locked down (confidentiality)",
	       "refused: lockdown is the reason");
	is_str(find_row(&b, DOCTOR_SECTION_FEATURES, "reading memory")->reason,
	       "the kernel is locked down (confidentiality)",
	       "a helper that is hidden, which looks like an invalid one: likewise");
	ok(strstr(layer_row(&b, "walk")->reason, "locked down"), "and for the walk: %s",
	   layer_row(&b, "walk")->reason);
	ok(strstr(layer_row(&b, "xfs")->reason, "the walk is off"), "and what hangs below it: %s",
	   layer_row(&b, "xfs")->reason);
	is_int(b.report.verdict, DOCTOR_SOME, "memory still works");
	check_sane(&b, "locked");
	doctor_report_free(&b.report);

	set_up(&b);
	snprintf(b.facts.env.lockdown, sizeof(b.facts.env.lockdown), "integrity");
	b.facts.things[DOCTOR_FENTRY].error = -EPERM;
	b.facts.things[DOCTOR_UPROBE_MULTI].error = -EINVAL;
	judge(&b);
	is_str(program_row(&b, "fentry")->reason, "the kernel is locked down (integrity)",
	       "in the first degree fentry may be refused");
	ok(!strstr(program_row(&b, "uprobe-multi")->reason, "locked"),
	   "but what is invalid is not for that: %s", program_row(&b, "uprobe-multi")->reason);
	is_int(find_row(&b, DOCTOR_SECTION_HOOKS, "fentry/xfs_log_force")->state, DOCTOR_OFF,
	       "its hooks are off");
	ok(find_row(&b, DOCTOR_SECTION_HOOKS, "fentry/xfs_log_force")->optional,
	   "which is no loss where another variant is in");
	is_int(b.report.verdict, DOCTOR_ALL, "no layer is lost");
	check_sane(&b, "integrity");
	doctor_report_free(&b.report);
}

static void test_configs(void)
{
	struct bed b;

	set_up(&b);
	b.facts.env.config_on &= ~(1U << DOCTOR_CONFIG_KPROBES);
	b.facts.things[DOCTOR_KPROBE].error = -ENOENT;
	judge(&b);
	is_str(program_row(&b, "kprobe")->reason, "CONFIG_KPROBES is not set in this kernel",
	       "an option that is missing");
	check_sane(&b, "no kprobes");
	doctor_report_free(&b.report);

	/* not even where root's rights are missing too: root would not have it either */
	b.facts.env.caps = 0;
	b.facts.env.is_root = false;
	fail_all(&b, -EPERM);
	judge(&b);
	is_str(program_row(&b, "kprobe")->reason,
	       "CONFIG_KPROBES is not set in this kernel; CAP_BPF and CAP_PERFMON are missing: run "
	       "as root",
	       "both reasons");
	is_int(program_row(&b, "kprobe")->state, DOCTOR_OFF, "off, whoever asks");
	is_int(program_row(&b, "tp_btf")->state, DOCTOR_UNKNOWN, "where the other is not known");
	doctor_report_free(&b.report);

	set_up(&b);
	b.facts.env.config_path[0] = '\0';
	b.facts.env.config_on = 0;
	b.facts.things[DOCTOR_KPROBE].error = -ENOENT;
	judge(&b);
	is_str(program_row(&b, "kprobe")->reason, "this kernel does not take it (ENOENT)",
	       "no configuration to read: nothing is said of it");
	doctor_report_free(&b.report);
}

static void test_no_btf(void)
{
	struct bed b;
	size_t i;

	set_up(&b);
	b.facts.env.has_btf = false;
	b.facts.things[DOCTOR_TP_BTF].error = -ESRCH;
	b.facts.things[DOCTOR_FENTRY].error = -ESRCH;
	b.layers[SYSCALL].result.error = b.layers[XFS].result.error = -ENOENT;
	b.layers[DEVICES].result.error = -ENOENT;
	for (i = 0; i < b.facts.n_hooks; i++)
		b.hooks[i].found = DOCTOR_NOT_KNOWN;
	judge(&b);
	is_str(program_row(&b, "tp_btf")->reason,
	       "this kernel has no BTF (/sys/kernel/btf/vmlinux)", "no BTF");
	ok(strstr(layer_row(&b, "syscall")->reason, "tp_btf/sys_enter: this kernel has no BTF"),
	   "the layer says which hook: %s", layer_row(&b, "syscall")->reason);
	is_str(layer_row(&b, "syscall")->lost, "its row: its time stays in storage/posix",
	       "and who has its time now");
	is_str(layer_row(&b, "devices")->lost, "its table", "a table of the host has no time");
	is_int(b.report.verdict, DOCTOR_SOME, "the walk works");
	is_int((long long)b.report.n_working, 2, "beside the memory");
	check_sane(&b, "no BTF");
	doctor_report_free(&b.report);
}

static void test_no_proc(void)
{
	struct bed b;

	set_up(&b);
	b.facts.env.lacks_proc = true;
	b.facts.things[DOCTOR_UPROBE_MULTI].error = -ESRCH;
	b.facts.things[DOCTOR_UPROBE_PERF].error = -ESRCH;
	b.layers[DOCTOR_MEMORY].result.error = b.layers[DOCTOR_WALK].result.error = -ESRCH;
	judge(&b);
	is_str(layer_row(&b, "memory")->reason, "/proc is not mounted here",
	       "no /proc: no other process can be seen");
	is_str(program_row(&b, "uprobe")->reason, "/proc is not mounted here",
	       "nor where a uprobe goes, whatever the kernel takes");
	is_str(layer_row(&b, "walk")->reason,
	       "memory is off; uprobe-multi: /proc is not mounted here; "
	       "uprobe: /proc is not mounted here",
	       "so that there is no walk");
	check_sane(&b, "no /proc");
	doctor_report_free(&b.report);
}

static void test_old_kernel(void)
{
	struct bed b;

	set_up(&b);
	snprintf(b.facts.env.kernel, sizeof(b.facts.env.kernel), "5.10.0-32-amd64");
	b.facts.things[DOCTOR_BPF_LOOP].error = -EINVAL;
	b.facts.things[DOCTOR_UPROBE_MULTI].error = -EINVAL;
	b.layers[DOCTOR_WALK].result.error = -EINVAL;
	snprintf(b.layers[DOCTOR_WALK].text, sizeof(b.layers[0].text), "cannot load");
	b.layers[SYSCALL].result.error = b.layers[XFS].result.error = -EINVAL;
	b.hooks[3].found = 0;
	judge(&b);
	is_str(layer_row(&b, "walk")->reason,
	       "bpf_loop: this kernel (5.10.0-32-amd64) is older than 5.17", "an old kernel");
	is_str(program_row(&b, "uprobe-multi")->reason,
	       "this kernel (5.10.0-32-amd64) is older than 6.6", "of each thing");
	is_str(find_row(&b, DOCTOR_SECTION_HOOKS, "tp_btf/xfs_log_force")->reason,
	       "neither this kernel nor one of its loaded modules has it", "a hook it lacks");
	check_sane(&b, "old");
	doctor_report_free(&b.report);
}

static void test_hooks(void)
{
	struct bed b;

	/* of a step with two variants one is enough, without any the layer is off */
	set_up(&b);
	b.hooks[3].found = 0;
	judge(&b);
	is_int(b.report.verdict, DOCTOR_ALL, "another variant stands in");
	doctor_report_free(&b.report);
	b.hooks[4].found = 0;
	b.layers[XFS].result.error = -ENOENT;
	snprintf(b.layers[XFS].text, sizeof(b.layers[0].text), "cannot load BPF object 'xfs'");
	judge(&b);
	is_str(layer_row(&b, "xfs")->reason,
	       "tp_btf/xfs_log_force: neither this kernel nor one of its loaded modules has it",
	       "a layer without hooks names the first");
	is_int(b.report.verdict, DOCTOR_SOME, "and is off");
	doctor_report_free(&b.report);
	b.hooks[3].found = b.hooks[4].found = 1;
	judge(&b);
	is_str(layer_row(&b, "xfs")->reason, "cannot load BPF object 'xfs'",
	       "where nothing is missing the engine's words stand");
	doctor_report_free(&b.report);
}

/* What hangs on what: a walk needs memory, rows need the walk, host tables nothing. */
static void test_chain(void)
{
	struct bed b;

	set_up(&b);
	b.layers[DOCTOR_MEMORY].result.error = -EACCES;
	snprintf(b.layers[DOCTOR_MEMORY].text, sizeof(b.layers[0].text), "cannot be read");
	judge(&b);
	is_str(layer_row(&b, "memory")->reason, "cannot be read", "memory that is closed to us");
	is_str(layer_row(&b, "walk")->reason, "memory is off", "takes the walk with it");
	is_str(layer_row(&b, "syscall")->reason, "the walk is off", "and its rows");
	is_int(layer_row(&b, "devices")->state, DOCTOR_WORKS, "but not the host's tables");
	is_int((long long)b.report.n_working, 1, "which alone work");
	check_sane(&b, "chain");
	doctor_report_free(&b.report);
}

static void test_caps(void)
{
	struct bed b;

	set_up(&b);
	b.facts.env.caps &=
		~(BIT(DOCTOR_CAP_SYS_PTRACE) | BIT(DOCTOR_CAP_SYS_ADMIN) | BIT(DOCTOR_CAP_PERFMON));
	b.facts.env.bounding &= ~BIT(DOCTOR_CAP_PERFMON);
	fail_all(&b, -EPERM);
	b.layers[DOCTOR_MEMORY].result.error = -EACCES;
	judge(&b);
	is_str(layer_row(&b, "walk")->reason,
	       "memory is off; CAP_PERFMON is missing: taken from this container or service",
	       "root in a container that lacks one");
	is_str(layer_row(&b, "memory")->reason,
	       "CAP_SYS_PTRACE is missing: dropped by who started this", "or that was dropped");
	is_int(b.report.verdict, DOCTOR_NOTHING, "nothing works");
	check_sane(&b, "capabilities");
	doctor_report_free(&b.report);

	set_up(&b);
	b.facts.env.caps = BIT(DOCTOR_CAP_SYS_ADMIN) | BIT(DOCTOR_CAP_SYS_PTRACE);
	judge(&b);
	is_int(find_row(&b, DOCTOR_SECTION_CAPABILITIES, "CAP_BPF")->state, DOCTOR_WORKS,
	       "CAP_SYS_ADMIN stands for CAP_BPF, as it did before");
	is_int(find_row(&b, DOCTOR_SECTION_CAPABILITIES, "CAP_CHECKPOINT_RESTORE")->state,
	       DOCTOR_WORKS, "and for CAP_CHECKPOINT_RESTORE");
	doctor_report_free(&b.report);
}

static void test_settings(void)
{
	struct bed b;

	set_up(&b);
	b.facts.env.caps = BIT(DOCTOR_CAP_BPF) | BIT(DOCTOR_CAP_PERFMON);
	b.facts.env.perf_event_paranoid = 3;
	b.facts.env.ptrace_scope = 3;
	b.facts.things[DOCTOR_UPROBE_PERF].error = -EACCES;
	b.facts.things[DOCTOR_TP_BTF].error = -EACCES;
	b.facts.things[DOCTOR_RAW_TP].error = -ENODATA;
	b.layers[DOCTOR_MEMORY].result.error = -EPERM;
	judge(&b);
	is_str(program_row(&b, "uprobe")->reason, "kernel.perf_event_paranoid is 3",
	       "a setting that forbids perf events");
	is_str(program_row(&b, "tp_btf")->reason,
	       "the kernel refuses it (EACCES) without CAP_SYS_ADMIN",
	       "which BPF's own tracepoints are not");
	is_str(program_row(&b, "raw_tp")->reason, "attached, but never hit", "silent");
	ok(strstr(layer_row(&b, "memory")->reason, "ptrace_scope is 3"), "and one for memory: %s",
	   layer_row(&b, "memory")->reason);
	b.facts.env.lockdown[0] = '\0';
	doctor_report_free(&b.report);
	judge(&b);
	is_str(program_row(&b, "tp_btf")->reason,
	       "the kernel refuses it (EACCES) without CAP_SYS_ADMIN; whether it is locked down "
	       "cannot be read here",
	       "what is not known is said");
	doctor_report_free(&b.report);
}

static void test_parse(void)
{
	enum doctor_config config = DOCTOR_CONFIG_COUNT;

	ok(doctor_parse_config("CONFIG_KPROBES=y\n", &config), "an option that is set");
	is_str(doctor_config_name(config), "KPROBES", "by its name");
	ok(!doctor_parse_config("# CONFIG_KPROBES is not set", &config), "one that is not");
	ok(!doctor_parse_config("CONFIG_KPROBES=n", &config), "or said to be off");
	ok(!doctor_parse_config("CONFIG_KPROBES_ON_FTRACE=y", &config), "a longer name");
	ok(!doctor_parse_config("CONFIG_KPROBE", &config), "a shorter one");
	ok(!doctor_parse_config("", &config), "nothing");
	ok(doctor_parse_config("CONFIG_UPROBE_EVENTS=m", &config), "a module");
	is_int(config, DOCTOR_CONFIG_UPROBE_EVENTS, "likewise");
}

int main(void)
{
	test_healthy();
	test_locked();
	test_configs();
	test_no_btf();
	test_no_proc();
	test_old_kernel();
	test_hooks();
	test_chain();
	test_caps();
	test_settings();
	test_parse();
	return tap_done();
}
