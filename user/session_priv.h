/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_priv.h: the inside of a session, shared by session.c (opening, probes, collecting),
 * session_cost.c (what bricktop costs), session_budget.c and session_follow.c (processes that go
 * and come) alone.
 */
#ifndef BRICKTOP_SESSION_PRIV_H
#define BRICKTOP_SESSION_PRIV_H

#include "session.h"

/*
 * Open a process's memory and show its targets; those of several that cannot be shown are told to
 * the model. 0 or -errno and one clear line; then session_close_proc() is due.
 */
int session_open_proc(struct session *s, struct session_proc *p, char *err, size_t err_size);
void session_close_proc(struct session_proc *p);

/* What of a process's targets could not be had, and why; that it can be had now. */
void session_tell_off(struct session *s, const struct session_proc *p, const char *what,
		      const char *reason);
void session_clear_off(struct session *s, const struct session_proc *p, const char *what);

/*
 * Put a process's probes in. -ENOMEM; what else keeps them out is told to the model, and the
 * process is shown by its memory.
 */
int session_attach_proc(struct session *s, struct session_proc *p);

/*
 * Open, and feed at each collection, the times of a process's threads. -ENOMEM, or 0: what cannot
 * be had is told to the model.
 */
int session_open_threads(struct session *s, struct session_proc *p);
int session_collect_threads(struct session *s);

/* ---- session_names.c --------------------------------------------------- */
/* Keep what the xlators of a process are called, for dumps. */
void session_keep_names(struct session *s, const struct session_proc *p);

/* ---- session_devices.c ------------------------------------------------- */
/* Which block devices lie below which target. 0 or -ENOMEM. */
int session_open_devices(struct session *s);
void session_close_devices(struct session *s);
/* Show the targets that are no process. 0 or -errno of model_set_target(). */
int session_add_host_targets(struct session *s);
/* Feed what the devices have done. 0 or -ENOMEM; nothing where they are not looked at. */
int session_collect_devices(struct session *s);

/* ---- session_slow.c; nothing where no slow operations are kept ---------- */
/* Move limits; add to a snapshot what was slow. 0 or -ENOMEM. */
int session_tick_slow(struct session *s);
int session_report_slow(struct session *s, struct snapshot *snap);

/* ---- session_uses.c ----------------------------------------------------- */
/* Feed files and applications. 0 or -ENOMEM. */
int session_collect_uses(struct session *s);
/*
 * Fill in what they are called, those of slow operations, too, as far as it is known now, and the
 * directories. 0 or -ENOMEM.
 */
int session_name_uses(struct session *s, struct snapshot *snap);

/* The window of one process's cost begins now; that of all: at the last collection. */
void session_start_cost(const struct session *s, struct session_proc *p);
void session_rewind_cost(struct session *s);

/* ---- session_follow.c --------------------------------------------------- */
/*
 * The process in which all targets of p, which is gone, are among those that are there now; 0:
 * none. It is no other one of the session's, and did not run beside p.
 */
pid_t session_find_new(const struct session *s, const struct session_proc *p,
		       const struct target_list *now);

/* ---- session_budget.c -------------------------------------------------- */
/* Between collections: switch the layers as the budget demands. Needs the source. */
void session_keep_budget(struct session *s);
/* The window begins at s->begin_ns; it begins at the last collection. */
void session_start_duty(struct session *s);
void session_rewind_duty(struct session *s);
/* The part of the window up to now in which one of them was on. */
double session_duty_pct(struct session_duty *d, uint64_t now_ns);

/* Feed what the window has cost so far. */
void session_collect_cost(struct session *s);

#endif
