/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h: what time it is, in ns. Owns nothing; cannot fail for the clocks that it is used with.
 */
#ifndef BRICKTOP_CLOCK_H
#define BRICKTOP_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_SEC 1000000000ULL

uint64_t clock_ns(clockid_t id);

/* CLOCK_MONOTONIC: what GlusterFS stamps frames with, and the BPF programs spans. */
uint64_t clock_mono_ns(void);

#endif
