// SPDX-License-Identifier: Apache-2.0
/*
 * test_sink_doctor.c: how a report of doctor looks, on a narrow and a usual terminal and as JSON:
 * compared with tests/golden.
 */
#include "sink_doctor.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "golden.h"
#include "tap.h"

static struct doctor_row rows[] = {
	{ .section = DOCTOR_SECTION_LAYERS, .name = "memory" },
	{ .section = DOCTOR_SECTION_LAYERS, .name = "walk" },
	{ .section = DOCTOR_SECTION_LAYERS,
	  .name = "xfs",
	  .state = DOCTOR_OFF,
	  .reason =
		  "tp_btf/xfs_log_force: neither this kernel nor one of its loaded modules has it",
	  .lost = "its row: its time stays in syscall" },
	{ .section = DOCTOR_SECTION_PROGRAMS, .name = "tp_btf" },
	{ .section = DOCTOR_SECTION_PROGRAMS,
	  .name = "fentry",
	  .state = DOCTOR_OFF,
	  .optional = true,
	  .reason = "the kernel is locked down (integrity)",
	  .lost = "sharper variants of some steps: tracepoints take their place" },
	{ .section = DOCTOR_SECTION_FEATURES,
	  .name = "BPF statistics",
	  .state = DOCTOR_UNKNOWN,
	  .reason = "CAP_SYS_ADMIN is missing: taken from this container or service",
	  .lost = "what bricktop costs" },
	{ .section = DOCTOR_SECTION_CAPABILITIES, .name = "CAP_BPF" },
	{ .section = DOCTOR_SECTION_CAPABILITIES,
	  .name = "CAP_SYS_ADMIN",
	  .state = DOCTOR_OFF,
	  .reason = "CAP_SYS_ADMIN is missing: taken from this container or service",
	  .lost = "what bricktop costs" },
	{ .section = DOCTOR_SECTION_HOOKS, .name = "uprobe-multi", .used_by = "walk" },
	{ .section = DOCTOR_SECTION_HOOKS, .name = "uprobe", .used_by = "walk" },
	{ .section = DOCTOR_SECTION_HOOKS,
	  .name = "tp_btf/xfs_log_force",
	  .used_by = "xfs",
	  .state = DOCTOR_OFF,
	  .reason = "neither this kernel nor one of its loaded modules has it",
	  .lost = "the layer xfs" },
	{ .section = DOCTOR_SECTION_HOOKS,
	  .name = "tp_btf/a_name_as_long_as_some_tracepoints_have",
	  .used_by = "xfs",
	  .state = DOCTOR_OFF,
	  .reason = "gone\033[31m",
	  .lost = "the layer xfs" },
};

static const struct doctor_report report = {
	.env = { .kernel = "6.12.1-amd64",
		 .machine = "x86_64",
		 .lockdown = "integrity",
		 .config_path = "/boot/config-6.12.1-amd64",
		 .has_btf = true,
		 .unprivileged_bpf_disabled = 2,
		 .perf_event_paranoid = 3,
		 .ptrace_scope = DOCTOR_NOT_KNOWN },
	.rows = rows,
	.n = sizeof(rows) / sizeof(rows[0]),
	.verdict = DOCTOR_SOME,
	.n_on = 3,
	.n_working = 2,
};

static char *print(unsigned int columns)
{
	const struct sink_style st = { .columns = columns };
	struct capture c;
	FILE *out = capture_begin(&c);

	is_int(columns ? sink_doctor_text(out, &report, &st) :
			 sink_doctor_json(out, &report, "1.0"),
	       0, "printed, %u columns", columns);
	return capture_end(&c);
}

static size_t longest_line(const char *text)
{
	size_t longest = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");

		longest = len > longest ? len : longest;
		text += len + (text[len] != '\0');
	}
	return longest;
}

int main(void)
{
	char *text = print(80);

	golden_check("doctor_80.txt", text);
	ok(longest_line(text) <= 80, "no line is longer");
	ok(!strchr(text, '\033'), "nothing but text");
	free(text);
	text = print(100);
	golden_check("doctor_100.txt", text);
	free(text);
	text = print(0);
	golden_check("doctor.json", text);
	free(text);
	return tap_done();
}
