/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights.h: what the kernel lets this process do, as text for who was refused something. Reads the
 * capabilities and the lockdown state; owns nothing, and decides nothing: only the attempt shows
 * whether something is allowed.
 */
#ifndef BRICKTOP_RIGHTS_H
#define BRICKTOP_RIGHTS_H

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

#endif
