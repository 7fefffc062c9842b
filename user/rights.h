/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights.h: what the kernel lets this process do: as text for who was refused something, and given
 * up where it is not needed any more. Reads the capabilities and the lockdown state, and decides
 * nothing: only the attempt shows whether something is allowed.
 */
#ifndef BRICKTOP_RIGHTS_H
#define BRICKTOP_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Why BPF programs or probes are refused with that error (-EPERM, -EACCES, -EINVAL ...), as far as
 * it is a matter of rights: "this needs CAP_BPF: run as root" or "the kernel is locked down
 * (confidentiality)". Returns buf, or NULL where nothing of the kind is missing.
 */
const char *rights_why_not(int error, char *buf, size_t size);

/*
 * The state in force in the text of /sys/kernel/security/lockdown, "none [integrity]
 * confidentiality", into buf; "" where that cannot be told.
 */
void rights_parse_lockdown(const char *text, char *buf, size_t size);

/*
 * The state in force of this kernel, also where securityfs is mounted nowhere (that takes
 * CAP_SYS_ADMIN); "" where it cannot be told.
 */
void rights_read_lockdown(char *state, size_t size);

/* The set of effective capabilities: 1 << CAP_x. 0 or -errno. */
int rights_read_capabilities(uint64_t *ret_set);

/*
 * What an investigation needs once everything is in place, as such a set: to read processes of
 * others and what lies behind their roots (CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH), also files that
 * they have mapped and that are at no path any more, or on overlayfs (CAP_CHECKPOINT_RESTORE); with
 * probes, to put in some more and to follow a process that was started again (CAP_BPF,
 * CAP_PERFMON); where those are perf uprobes CAP_SYS_ADMIN, too.
 */
uint64_t rights_to_read(bool probes, bool perf_uprobes);

/* BPF run time statistics are for CAP_SYS_ADMIN alone. */
uint64_t rights_for_statistics(void);

/*
 * This thread, and those that it starts, give up for good what is not in the set (permitted,
 * effective), and all that a file which is executed might bring: inheritable, ambient and (where
 * CAP_SETPCAP lets it) bounding capabilities, and with no_new_privs any others. The user id stays.
 * What is in the set and was not had is not had now. 0 or -errno.
 */
int rights_keep(uint64_t set);

#endif
