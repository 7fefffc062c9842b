/* SPDX-License-Identifier: Apache-2.0 */
/*
 * util_tracefs.h: the kernel's numbers of its tracepoints. Works where tracefs is not mounted, and
 * mounts nothing where others would see it.
 */
#ifndef BRICKTOP_UTIL_TRACEFS_H
#define BRICKTOP_UTIL_TRACEFS_H

/*
 * The id of a tracepoint ("syscalls", "sys_enter_pread64") for perf_event_attr.config. The id, or
 * -errno: -ENOENT if this kernel has no such tracepoint, -EPERM, -ENODEV without tracefs, ...
 */
int util_tracefs_event_id(const char *category, const char *name);

#endif
