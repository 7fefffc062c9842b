/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.h: from a snapshot to ranked causes: which layer or lack takes the time of users'
 * requests, how sure that is, and what to look at next. Pure. A cause is a row of the table in
 * verdict_rows.c; how they are ranked, and what is too little to judge, is verdict.c's. It never
 * says more than the snapshot holds: where nothing takes most of the time, or requests are few,
 * quick or badly covered, it says that instead.
 */
#ifndef BRICKTOP_VERDICT_H
#define BRICKTOP_VERDICT_H

#include "snapshot.h"

/*
 * Judge every target of the snapshot: fills its causes. A snapshot of a process's whole life
 * (window_secs 0) is not judged: it has no window in which its figures belong together.
 */
void verdict_judge(struct snapshot *snap);

#endif
