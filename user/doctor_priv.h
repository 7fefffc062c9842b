/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_priv.h: the inside of doctor.c and doctor_things.c, which share a table and the reasons
 * that follow from it. Pure.
 */
#ifndef BRICKTOP_DOCTOR_PRIV_H
#define BRICKTOP_DOCTOR_PRIV_H

#include "doctor.h"

#define DOCTOR_BIT(n)     (1ULL << (n))
#define DOCTOR_PROBE_CAPS (DOCTOR_BIT(DOCTOR_CAP_BPF) | DOCTOR_BIT(DOCTOR_CAP_PERFMON))

/* A row of the table: what it needs, and what is lost without it. */
struct doctor_thing_row {
	enum doctor_section section;
	const char *name;
	const char *since; /* the release that brought it */
	uint64_t caps;
	uint32_t configs;
	bool btf, perf; /* needs the kernel's BTF; goes through perf_event_open() */
	bool proc;      /* finds its place by /proc */
	bool optional;
	const char *lost;
};

struct doctor_capability {
	unsigned int number;
	const char *name, *lost;
	bool optional;
};

enum { DOCTOR_CAPABILITIES = 6 };

const struct doctor_thing_row *doctor_thing_get(enum doctor_thing thing);
const struct doctor_capability *doctor_capability_get(size_t i); /* i < DOCTOR_CAPABILITIES */

/*
 * One more reason behind those that are there, unless it is among them. What finds no room is left
 * out as a whole.
 */
__attribute__((format(printf, 3, 4))) void doctor_tell(char *buf, size_t size, const char *fmt,
						       ...);

/* Those of wanted that this process lacks. */
uint64_t doctor_missing_caps(const struct doctor_env *env, uint64_t wanted);
void doctor_tell_caps(const struct doctor_env *env, uint64_t missing, char *buf, size_t size);

/* Where /proc is missing: that. */
void doctor_tell_proc(const struct doctor_env *env, char *buf, size_t size);

/* What stands in the way whatever the attempt was answered, but for capabilities. */
void doctor_tell_static(const struct doctor_env *env, const struct doctor_thing_row *t, char *buf,
			size_t size);

/* Works; or is off and why; or not known, where only a capability is missing to find out. */
enum doctor_state doctor_judge_thing(const struct doctor_env *env, const struct doctor_thing_row *t,
				     const struct doctor_try *result, char *buf, size_t size);

#endif
