/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_priv.h: what the files of the verdict share: a target's window as sums over all users'
 * requests (verdict_case.c), the table of causes (verdict_rows.c), the devices' evidence
 * (verdict_device.c), the ranking (verdict.c).
 *
 * The arithmetic. T is the inclusive time of all users' requests; each layer's self time is its own
 * share of T, per request and as a union of intervals, so shares add up to T. Q, the self time of
 * io-threads, is waiting for a thread, and threads are in the layers below: so a cause below it has
 * besides its own share its part of Q, by B, the self time of all layers below:
 * share = (above + below * (1 + w * Q / B)) / T. The weight w is 1, but where the pool itself is
 * short (all its threads hold requests, and more wait than it has threads): then a layer below is
 * only as much to blame as its time a request is long, up to a millisecond. Two hundred
 * microseconds of work are no fault, but with one thread for it a queue grows. What a plain
 * process's asynchronous operations and the calls that wait for them both have is in T once.
 */
#ifndef BRICKTOP_VERDICT_PRIV_H
#define BRICKTOP_VERDICT_PRIV_H

#include "verdict.h"

#define VERDICT_MAX_PILES    192
#define VERDICT_MAX_FINDINGS 64

/* The self time of one layer over all users' operations. */
struct verdict_pile {
	const struct snap_layer *layer; /* where it has most, and in which operation */
	const struct snap_op *op;
	double most_ns;
	double self_ns, below_ns; /* below_ns: of self_ns, on threads of io-threads */
	uint64_t count;
};

struct verdict_case {
	const struct snapshot *snap;
	const struct snap_target *t;
	double window_ns;
	uint64_t requests;    /* walked */
	uint64_t covered;     /* of those, with all layers on all the time */
	double covered_ns;    /* their time; what layers had to themselves stands for T */
	double total_ns;      /* T */
	double unwalked_ns;   /* of operations known from the process's memory alone */
	double attributed_ns; /* sum of all self times */
	double queue_ns;      /* Q: self time of io-threads */
	double below_ns;      /* B */
	bool has_uring;       /* operations of io_uring's are among them */
	bool remote;          /* requests wait for another process: no thread is held meanwhile */
	struct snap_num coverage_pct;     /* weighed by time; of that in which the walk was on */
	bool in_turns;                    /* it was not all the time (--budget) */
	const struct snap_op *slowest_op; /* the one with most time */
	/* scheduler: all threads, and those of the pool io-threads */
	bool has_threads;
	double oncpu_ns, runnable_ns;
	const struct snap_pool *iot;
	struct verdict_pile piles[VERDICT_MAX_PILES];
	size_t n_piles;
	double left_out_ns; /* self time of layers that found no room above */
};

struct verdict_row;

/* A cause that may be named. pile: what it is about, where that is one layer. */
struct verdict_finding {
	const struct verdict_row *row;
	const struct verdict_pile *pile;
	double share;  /* 0 .. 1, with its part of the queue */
	double own_ns; /* without */
	bool at_most;  /* the share has time of something else in it: not sure */
	/* of a row that is apart */
	const struct snap_file *file;
	double lead; /* to the next of its kind, or to what is not known */
};

struct verdict_list {
	struct verdict_finding f[VERDICT_MAX_FINDINGS];
	size_t n;
};

/* A row of the table. Adding a cause is adding a row. */
struct verdict_row {
	const char *id;
	const char *what; /* one clause; '@' stands for the finding's subject, a layer */
	/* Whose self time it explains; NULL: it is not about layers' self time. */
	bool (*claims)(const struct snap_layer *layer);
	/* Adds what may be named to the list. */
	void (*find)(const struct verdict_case *c, const struct verdict_row *row,
		     struct verdict_list *list);
	/* More evidence than what holds for any layer; NULL: none. */
	void (*explain)(const struct verdict_case *c, const struct verdict_finding *f,
			struct snap_cause *cause);
	const char *next;
	bool needs_threads; /* without the scheduler's figures it is a guess */
	bool is_apart;      /* the same time seen from another side: beside the layers' causes */
	bool no_tail;       /* its slowest passages are somebody else's doing */
	bool waits;         /* threads sleep in what it claims, or spin */
	bool is_lack;       /* nobody should wait for it at all, unlike work or a device */
	bool unexplained;   /* says where, not why: not sure where more was looked at */
};

/* ---- verdict_case.c ---------------------------------------------------- */
void verdict_case_build(const struct snapshot *snap, const struct snap_target *t,
			struct verdict_case *c);
/* Self time with its part of the queue, as a share of T. */
double verdict_share(const struct verdict_case *c, double self_ns, double below_ns);
/* Threads of io-threads that hold a request / requests in its queue, at a time, on the average. */
double verdict_held(const struct verdict_case *c);
double verdict_queued(const struct verdict_case *c);
/* More threads would help: all hold requests, and so many wait that io-threads would make more. */
bool verdict_pool_is_short(const struct verdict_case *c);
/* What threads lack a CPU for inside the calls that are judged is timed, as layers. */
bool verdict_times_lack(const struct verdict_case *c);
/* The target's threads do more than what is judged: a plain process computes between its calls. */
bool verdict_is_plain(const struct verdict_case *c);
/* Of the time that requests take outside of queues, the part in which their threads wait for a CPU,
 * by the kernel's sums: of a plain process also between its calls. */
double verdict_starved(const struct verdict_case *c);
/* Of what threads of io-threads do for requests, without waits_ns of it, which layers account for:
 * the part that is neither on CPU nor waiting for one. 1 where it is not known. */
double verdict_asleep(const struct verdict_case *c, double waits_ns);
/* Layers below the system calls were looked at, and met. */
bool verdict_sees_below(const struct verdict_case *c);
bool verdict_is_user(const struct snap_target *t, const struct snap_op *op);

/* ---- verdict_rows.c ---------------------------------------------------- */
/* The table; NULL behind its end. */
const struct verdict_row *verdict_row_at(size_t i);
/* The row that claims a layer's self time; never NULL. */
const struct verdict_row *verdict_row_of(const struct snap_layer *layer);
__attribute__((format(printf, 2, 3))) void verdict_say(struct snap_cause *cause, const char *fmt,
						       ...);

/* ---- verdict_device.c -------------------------------------------------- */
/* The target's own device, as the whole host uses it, and a busier one below. */
void verdict_explain_device(const struct verdict_case *c, const struct verdict_finding *f,
			    struct snap_cause *cause);

#endif
