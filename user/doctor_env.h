/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_env.h: what the kernel and this process say of themselves, without trying anything: the
 * release, its configuration, lockdown, capabilities, settings. Works for everybody; what cannot be
 * read is marked as not known.
 */
#ifndef BRICKTOP_DOCTOR_ENV_H
#define BRICKTOP_DOCTOR_ENV_H

#include "doctor.h"

void doctor_env_read(struct doctor_env *ret_env);

#endif
