/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_probe.h: tries what bricktop is built on: loads small programs of each kind, hangs them
 * where this very process hits them, and takes them out again; then the layers themselves, as an
 * investigation would. Decides nothing: doctor.c does. Nothing of it stays.
 */
#ifndef BRICKTOP_DOCTOR_PROBE_H
#define BRICKTOP_DOCTOR_PROBE_H

#include "doctor.h"

/*
 * Fill *ret_facts, env included; freed by doctor_facts_free(). layers: try those too, which takes
 * longest. 0 or -ENOMEM.
 */
int doctor_probe(bool layers, struct doctor_facts *ret_facts);
void doctor_facts_free(struct doctor_facts *facts);

#endif
