/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_app.h: applications on this host: whether a pid that a request carries is a process here,
 * and what that is called. A pid alone says nothing: it may be another host's, another pid
 * namespace's, or by now another process's.
 */
#ifndef BRICKTOP_TARGET_APP_H
#define BRICKTOP_TARGET_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The process pid was there at alive_ns (CLOCK_MONOTONIC) and acts as uid on file systems: its
 * name, sanitized. false: it is none, or not (any more) that one.
 */
bool target_app_name(pid_t pid, uint32_t uid, uint64_t alive_ns, char *name, size_t size);

/* Pids that this process hands out are those that are seen here. */
bool target_app_shares_pids(pid_t pid);

/*
 * The host and the process of a brick's client, from what it calls itself. false: that is in no
 * such form.
 */
bool target_app_client(const char *client, char *host, size_t size, pid_t *ret_pid);

/*
 * Whether a brick's client ("CTX_ID:...-PID:4211-HOST:node1-PC_NAME:...") is a GlusterFS process of
 * this host whose pids are those that are seen here.
 */
bool target_app_is_client_here(const char *client);

#endif
