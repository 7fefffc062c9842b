/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_doctor.c: the command that says what works here: tries, judges, prints, and has an exit
 * status that a script can use.
 */
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "doctor.h"
#include "doctor_probe.h"
#include "sink_doctor.h"

static int print_report(const struct opts *opts, const struct doctor_report *report)
{
	struct sink_style style;
	FILE *out = app_open_stream(opts, &style);
	int ret;

	if (!out)
		return OPTS_EXIT_RUNTIME;
	ret = opts->json ? sink_doctor_json(out, report, opts_version()) :
			   sink_doctor_text(out, report, &style);
	return app_close_stream(out, ret);
}

int app_doctor(const struct opts *opts)
{
	static const int statuses[] = {
		[DOCTOR_ALL] = OPTS_EXIT_OK,
		[DOCTOR_SOME] = OPTS_EXIT_RUNTIME,
		[DOCTOR_NOTHING] = OPTS_EXIT_NOT_HERE,
	};
	struct doctor_report report = { 0 };
	struct doctor_facts facts = { 0 };
	int ret = doctor_probe(true, &facts), status;

	ret = ret ?: doctor_judge(&facts, &report);
	doctor_facts_free(&facts);
	if (ret) {
		app_complain("cannot examine this system: %s", strerror(-ret));
		return OPTS_EXIT_RUNTIME;
	}
	status = print_report(opts, &report) ?: statuses[report.verdict];
	doctor_report_free(&report);
	return status;
}
