/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.c: which causes are named, in which order, and how sure they are. Owns every threshold,
 * in one table with its reason. Knows causes only as rows. When in doubt it says less: a wrong
 * cause costs whoever believes it more than none.
 */
#include "verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_priv.h" /* model_text_*() */
#include "text.h"
#include "verdict_priv.h"

#define MAX_MEAN_CAUSES (SNAP_MAX_CAUSES - 2) /* one is a file's, one the slowest requests' */

static const struct {
	double min_secs, min_requests, min_coverage_pct, min_turns_pct, max_unsplit, max_lost,
		max_unwalked;
	double min_attributed, named, second, light_in_flight, light_ns, light_lack;
	double high_share, high_margin, high_requests, high_coverage_pct, high_unsplit, high_lost;
	double high_bias, high_unwalked, max_parallel, medium_share, medium_margin;
	double file_share, file_slowdown, file_others;
	double tail_requests, tail_ratio, tail_ns, tail_share, long_ns, stuck_ns, long_stuck_ns;
} limits = {
	/* ---- less than this is not enough data ---- */
	.min_secs = 1,          /* counters are read about once a second */
	.min_requests = 100,    /* a share of 50 % is then known to 10 points (2 sigma) */
	.min_coverage_pct = 90, /* what was not seen could turn the order round */
	.min_turns_pct = 70,    /* the same where the walk takes turns: loads come and go */
	.max_unsplit = 0.2,     /* likewise: such requests' time is in no layer */
	.max_lost = 0.1,        /* losses per request */
	.max_unwalked = 0.25,   /* of the time: operations known by their means only */
	.min_attributed = 0.75, /* of the time that layers add up to */
	/* ---- what stands out ---- */
	.named = 0.35,          /* of a healthy brick's time several layers have a fifth each */
	.second = 0.15,         /* others are mentioned from here on */
	.light_in_flight = 0.5, /* nobody waits most of the time, and: */
	.light_ns = 1e6,        /* a millisecond a request; a disk takes longer than that */
	.light_lack = 0.5,      /* more of it than this may be the begin of a fault all the same */
	/* ---- confidence: shares and margins to the next cause are of the whole ---- */
	.high_share = 0.6, /* more than all others together, beyond any error below */
	.high_margin = 0.25,
	.high_requests = 300,    /* 6 points at 2 sigma */
	.high_coverage_pct = 97, /* the rest is within the margin, whatever it is */
	.high_unsplit = 0.05,
	.high_lost = 0.02,
	.high_bias = 0.2, /* of the mean time: requests with all layers on against all */
	.high_unwalked = 0.05,
	.max_parallel = 1.1, /* beyond, layers run side by side, and shares do not add up */
	.medium_share = 0.45,
	.medium_margin = 0.1,
	/* ---- one file ---- */
	.file_share = 0.5,  /* more than all others together, */
	.file_slowdown = 3, /* and slower than what a full cache or another place explain; */
	.file_others = 20,  /* or not slower, but one of so many */
	/* ---- the slowest requests ---- */
	.tail_requests = 1000, /* ten of them are beyond the 99th percentile */
	.tail_ratio = 5,       /* p99 to p50 */
	.tail_ns = 2e6,        /* quicker ones hurt nobody */
	.tail_share = 0.5,     /* a layer's p99 to the operation's; likewise of their slowest */
	.long_ns = 1e9,  /* one of them, ended or in flight: nothing that is well takes that */
	.stuck_ns = 5e9, /* in flight for so long: longer than a sick disk's retries */
	.long_stuck_ns = 30e9, /* beyond the timeouts of disks and networks */
};

/* ---- text -------------------------------------------------------------- */

void verdict_say(struct snap_cause *cause, const char *fmt, ...)
{
	va_list args;

	if (cause->n_evidence == SNAP_MAX_EVIDENCE)
		return;
	va_start(args, fmt);
	vsnprintf(cause->evidence[cause->n_evidence++], sizeof(cause->evidence[0]), fmt, args);
	va_end(args);
}

/* what, with the subject for '@'. */
static void set_summary(struct snap_cause *cause, const char *what)
{
	const char *at = strchr(what, '@');

	if (!at)
		model_text_set(cause->summary, sizeof(cause->summary), what);
	else
		snprintf(cause->summary, sizeof(cause->summary), "%.*s%s%s", (int)(at - what), what,
			 cause->subject, at + 1);
}

static struct snap_cause *add_cause(struct snap_target *t, const char *id, const char *subject,
				    const char *what, const char *next)
{
	struct snap_cause *cause = &t->causes[t->n_causes++];

	memset(cause, 0, sizeof(*cause));
	model_text_set(cause->cause, sizeof(cause->cause), id);
	model_text_set(cause->subject, sizeof(cause->subject), subject);
	model_text_set(cause->next, sizeof(cause->next), next);
	set_summary(cause, what);
	return cause;
}

/* A path, or its end where it is too long; a cut begins with whole characters. */
static const char *file_subject(const struct snap_file *file, char *buf, size_t size)
{
	const char *path = file->path;

	if (!path[0])
		return text_gfid(buf, file->id);
	if (strlen(path) >= size)
		path += strlen(path) - size + 1;
	while ((*path & 0xc0) == 0x80)
		path++;
	model_text_set(buf, size, path);
	return buf;
}

static const char *finding_subject(const struct verdict_finding *f, char *buf, size_t size)
{
	if (f->file && f->file->kind != SNAP_FILE_INODE)
		return file_subject(f->file, buf, size);
	if (f->file)
		return f->file->path[0] ? file_subject(f->file, buf, size) : "an inode";
	return f->pile ? f->pile->layer->id : "";
}

static void say_place(const char *what, const struct verdict_finding *f, struct snap_cause *cause)
{
	verdict_say(cause, "%s: %s%s%s, %.0f %%", what, f->row->id, f->pile ? " " : "",
		    f->pile ? f->pile->layer->id : "", 100 * f->share);
}

/* What holds for any layer: its own time in the operation in which it has most. */
static void explain_pile(const struct verdict_case *c, const struct verdict_finding *f,
			 struct snap_cause *cause)
{
	const struct verdict_pile *p = f->pile;
	char each[16], mean[16], p50[16], p99[16];
	double queued = f->share * c->total_ns - f->own_ns;

	if (!p || !p->op)
		return;
	text_duration(each, sizeof(each), p->most_ns / (double)p->op->count);
	text_duration(mean, sizeof(mean), p->op->incl.mean);
	text_duration(p50, sizeof(p50), p->layer->self.p50);
	text_duration(p99, sizeof(p99), p->layer->self.p99);
	verdict_say(cause, "%s: %s of %s a request in %s itself (%.0f %%); p50 %s, p99 %s",
		    p->op->op, each, mean, p->layer->id,
		    100 * p->most_ns / (p->op->incl.mean * (double)p->op->count), p50, p99);
	if (queued > 0.05 * c->total_ns)
		verdict_say(cause,
			    "itself %.0f %% of all requests' time; for %.0f %% others wait in "
			    "io-threads for threads that are in it",
			    100 * f->own_ns / c->total_ns, 100 * queued / c->total_ns);
}

/* ---- enough data? ------------------------------------------------------ */

static double unsplit(const struct verdict_case *c)
{
	const struct snap_checks *k = &c->t->checks;

	return k->walked ? (double)k->unsplit / (double)k->walked : 0;
}

static double lost(const struct verdict_case *c)
{
	uint64_t n = c->t->lost.total;

	/* a budget's skipping is known for what it is: c->covered */
	if (c->covered < c->requests)
		n -= c->t->lost.skipped;
	return c->requests ? (double)n / (double)c->requests : 0;
}

static double unwalked(const struct verdict_case *c)
{
	double all = c->total_ns + c->unwalked_ns;

	return all > 0 ? c->unwalked_ns / all : 0;
}

static double attributed(const struct verdict_case *c)
{
	return c->total_ns > 0 ? c->attributed_ns / c->total_ns : 0;
}

/* What is missing, as evidence; true where anything is. */
static bool find_missing(const struct verdict_case *c, struct snap_cause *cause)
{
	double min_coverage_pct = c->in_turns ? limits.min_turns_pct : limits.min_coverage_pct;

	if (c->snap->memory_only) {
		verdict_say(cause, "no probe was in: only means are known, of calls, not of "
				   "requests");
		return true;
	}
	if (c->snap->window_secs < limits.min_secs)
		verdict_say(cause, "%.1f s were measured: %.0f s are needed", c->snap->window_secs,
			    limits.min_secs);
	if ((double)c->requests < limits.min_requests)
		verdict_say(cause, "%llu requests ended: %.0f are needed",
			    (unsigned long long)c->requests, limits.min_requests);
	else if ((double)c->covered < limits.min_requests)
		verdict_say(cause,
			    "%llu of %llu requests ended while all layers were on (--budget): "
			    "%.0f are needed",
			    (unsigned long long)c->covered, (unsigned long long)c->requests,
			    limits.min_requests);
	if (c->coverage_pct.valid && c->coverage_pct.v < min_coverage_pct)
		verdict_say(cause, "%.1f %% of the requests%s were seen: %.0f %% are needed",
			    c->coverage_pct.v, c->in_turns ? " while the walk was on" : "",
			    min_coverage_pct);
	if (unwalked(c) > limits.max_unwalked)
		verdict_say(cause, "for %.0f %% of the time only means are known",
			    100 * unwalked(c));
	if (unsplit(c) > limits.max_unsplit || lost(c) > limits.max_lost)
		verdict_say(cause, "%.0f %% of the requests could not be split, and %llu losses",
			    100 * unsplit(c), (unsigned long long)c->t->lost.total);
	if (c->requests && attributed(c) < limits.min_attributed)
		verdict_say(cause, "the layers' own times are %.0f %% of the requests' time",
			    100 * attributed(c));
	return cause->n_evidence > 0;
}

/* ---- how sure ---------------------------------------------------------- */

/* Of a process that serves nobody nothing else counts the calls. */
static bool is_covered(const struct verdict_case *c)
{
	if (!c->coverage_pct.valid)
		return c->slowest_op && !strcmp(c->slowest_op->root, "local");
	return c->coverage_pct.v >= limits.high_coverage_pct;
}

/* The requests that were seen whole are enough, and took as long as the others. */
static bool is_sampled_well(const struct verdict_case *c)
{
	double mean_ns = c->total_ns / (double)c->requests;

	return (double)c->covered >= limits.high_requests &&
	       fabs(c->covered_ns / (double)c->covered - mean_ns) <= limits.high_bias * mean_ns;
}

static bool is_complete(const struct verdict_case *c, const struct verdict_finding *f)
{
	return is_sampled_well(c) && is_covered(c) && unsplit(c) <= limits.high_unsplit &&
	       lost(c) <= limits.high_lost && unwalked(c) <= limits.high_unwalked &&
	       attributed(c) <= limits.max_parallel && (c->has_threads || !f->row->needs_threads) &&
	       !c->t->gone && !f->at_most && !(f->row->unexplained && verdict_sees_below(c));
}

static enum snap_confidence confidence(const struct verdict_case *c,
				       const struct verdict_finding *f, double margin)
{
	if (f->share >= limits.high_share && margin >= limits.high_margin && is_complete(c, f))
		return SNAP_HIGH;
	if (f->share >= limits.medium_share && margin >= limits.medium_margin)
		return SNAP_MEDIUM;
	return SNAP_LOW;
}

/* ---- ranking ----------------------------------------------------------- */

static int compare_findings(const void *pa, const void *pb)
{
	const struct verdict_finding *a = pa, *b = pb;

	if (a->share < b->share || a->share > b->share)
		return a->share > b->share ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

static void find_all(const struct verdict_case *c, bool apart, struct verdict_list *list)
{
	const struct verdict_row *row;

	list->n = 0;
	for (size_t i = 0; (row = verdict_row_at(i)); i++)
		if (row->is_apart == apart)
			row->find(c, row, list);
	qsort(list->f, list->n, sizeof(list->f[0]), compare_findings);
}

/* A brick that little is asked of, and that answers quickly, has no cause of anything. */
static bool is_light(const struct verdict_case *c, const struct verdict_finding *f)
{
	return c->total_ns / c->window_ns < limits.light_in_flight &&
	       f->share * c->total_ns / (double)c->requests < limits.light_ns;
}

static struct snap_cause *start_finding(const struct verdict_finding *f, struct snap_target *t)
{
	char subject[sizeof(((struct snap_cause *)NULL)->subject)];
	struct snap_cause *cause = add_cause(t, f->row->id,
					     finding_subject(f, subject, sizeof(subject)),
					     f->row->what, f->row->next);

	cause->share_pct = (struct snap_num){ 100 * f->share, true };
	return cause;
}

static void add_finding(const struct verdict_case *c, const struct verdict_list *list, size_t i,
			struct snap_target *t)
{
	const struct verdict_finding *f = &list->f[i];
	const struct verdict_finding *other = i ? &list->f[0] : list->n > 1 ? &list->f[1] : NULL;
	double margin = f->share - (other ? other->share : 0);
	struct snap_cause *cause = start_finding(f, t);

	cause->confidence = i ? SNAP_LOW : confidence(c, f, margin);
	explain_pile(c, f, cause);
	if (f->row->explain)
		f->row->explain(c, f, cause);
	if (i || !other)
		return;
	say_place("next to it", other, cause);
}

/* ---- one file ---------------------------------------------------------- */

static bool is_slow_file(const struct verdict_finding *f)
{
	return f->file->slowdown.valid && f->file->slowdown.v >= limits.file_slowdown;
}

/*
 * Beside the layers' causes: it says where the same time is, not what it is spent on. That one of
 * many files is used most may be as it should: then it is only said.
 */
static bool add_file(const struct verdict_case *c, struct snap_target *t)
{
	struct verdict_list list;
	const struct verdict_finding *f = &list.f[0];
	struct snap_cause *cause;

	find_all(c, true, &list);
	if (!list.n || f->share < limits.file_share || is_light(c, f) ||
	    (!is_slow_file(f) && (double)t->n_all_files < limits.file_others))
		return false;
	cause = start_finding(f, t);
	cause->confidence = is_slow_file(f) ? confidence(c, f, f->lead) : SNAP_LOW;
	f->row->explain(c, f, cause);
	return true;
}

/* ---- the slowest requests ---------------------------------------------- */

/* Who waits for a lock, or on a ring for whatever comes, may do so for long, and by right. */
static bool waits_by_right(const char *op)
{
	static const char *const ops[] = { "lk",      "inodelk",  "finodelk",
					   "entrylk", "fentrylk", "io_uring_enter" };

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (!strcmp(op, ops[i]))
			return true;
	return false;
}

/* The operation with the longest request, where that is longer than any should be; NULL: none. */
static const struct snap_op *find_long(const struct verdict_case *c)
{
	const struct snap_op *worst = NULL;

	for (size_t i = 0; i < c->t->n_ops; i++) {
		const struct snap_op *op = &c->t->ops[i];

		if (!verdict_is_user(c->t, op) || !op->incl.has_quantiles ||
		    op->incl.max < limits.long_ns || waits_by_right(op->op))
			continue;
		if (!worst || op->incl.max > worst->incl.max)
			worst = op;
	}
	return worst;
}

/* How long the slowest took: one by itself, or one in a hundred. */
static double slowest_ns(const struct snap_dist *d, bool single)
{
	return single ? d->max : d->p99;
}

/*
 * The layer whose own slowest passages are as long as the operation's slowest requests. What most
 * requests do not meet says nothing about one in a hundred, but a single one may have met it.
 */
static const struct snap_layer *find_tail(const struct snap_op *op, bool single)
{
	const uint64_t enough = single ? 1 : (op->count - op->uncovered) / 2;
	const double all_ns = slowest_ns(&op->incl, single);
	const struct snap_layer *worst = NULL;
	double worst_ns = 0;

	for (size_t i = 0; i < op->n_layers; i++) {
		const struct snap_layer *l = &op->layers[i];
		double ns = slowest_ns(&l->self, single);

		if (l->state == SNAP_OFF || !l->self.valid || !l->self.has_quantiles ||
		    l->self.count < enough || verdict_row_of(l)->no_tail || ns <= worst_ns)
			continue;
		worst = l;
		worst_ns = ns;
	}
	return worst && worst_ns >= limits.tail_share * all_ns ? worst : NULL;
}

/* -> whether it was named: not where it is a cause already, or no layer explains it. */
static bool add_slowest(struct snap_target *t, const struct snap_op *op, bool single)
{
	const struct snap_layer *l = find_tail(op, single);
	const struct verdict_row *row = l ? verdict_row_of(l) : NULL;
	const char *which = single ? "the slowest" : "p99";
	struct snap_cause *cause;
	char p50[16], all[16], own[16];

	if (!row || slowest_ns(&op->incl, single) < limits.tail_ratio * op->incl.p50)
		return false;
	for (unsigned int i = 0; i < t->n_causes; i++)
		if (!strcmp(t->causes[i].cause, row->id))
			return false;
	if (t->n_causes == SNAP_MAX_CAUSES)
		t->n_causes--;
	cause = add_cause(t, row->id, l->id, row->what, row->next);
	cause->tail = true;
	/* percentiles do not add up as means do, and two slowest may be of different requests */
	cause->confidence = SNAP_LOW;
	verdict_say(cause, "%s: p50 %s, but %s %s; %s of %s itself %s", op->op,
		    text_duration(p50, sizeof(p50), op->incl.p50), which,
		    text_duration(all, sizeof(all), slowest_ns(&op->incl, single)), which, l->id,
		    text_duration(own, sizeof(own), slowest_ns(&l->self, single)));
	return true;
}

/* Where the slowest requests, or a single one, have another cause than the mean. */
static void add_tail(const struct verdict_case *c, struct snap_target *t)
{
	const struct snap_op *op = c->slowest_op;

	if (op && (double)op->count >= limits.tail_requests && op->incl.p99 >= limits.tail_ns &&
	    add_slowest(t, op, false))
		return;
	op = find_long(c);
	if (op)
		add_slowest(t, op, true);
}

/* ---- requests that do not end ------------------------------------------ */

static void say_pending(const struct snap_oldest *o, struct snap_cause *cause)
{
	char age[16];

	verdict_say(cause, "%s, in flight for %s, in %s; in no figure above", o->op,
		    text_duration(age, sizeof(age), o->age_ns), o->xlator);
}

/* They are in no sum: only ended requests are. */
static void add_stuck(struct snap_target *t)
{
	const struct snap_oldest *o = &t->oldest;
	struct snap_cause *cause;

	if (!o->valid || o->age_ns < limits.stuck_ns || waits_by_right(o->op))
		return;
	if (t->n_causes == SNAP_MAX_CAUSES)
		t->n_causes--;
	cause = add_cause(t, "stuck", "", "a request does not come back from @",
			  "bricktop stuck: all requests in flight, their files and clients");
	model_text_set(cause->subject, sizeof(cause->subject), o->xlator);
	set_summary(cause, "a request does not come back from @");
	cause->confidence = o->age_ns < limits.long_stuck_ns ? SNAP_MEDIUM : SNAP_HIGH;
	say_pending(o, cause);
}

/* ---- the whole --------------------------------------------------------- */

/*
 * Whether those who have not come back are few and young, or why that is not known. What a process
 * without a list of its requests waits for all through the window is in no figure.
 */
static bool knows_pending(const struct verdict_case *c, struct snap_cause *cause)
{
	const struct snap_oldest *o = &c->t->oldest;

	if (c->slowest_op && !strcmp(c->slowest_op->root, "local")) {
		verdict_say(cause, "calls that did not end in the window are in no figure");
		return false;
	}
	if (!o->valid || o->age_ns < limits.long_ns || waits_by_right(o->op))
		return true;
	say_pending(o, cause);
	return false;
}

/* Whether none took longer than any should: among many quick ones no mean shows it. */
static bool knows_long(const struct verdict_case *c, struct snap_cause *cause)
{
	const struct snap_op *op = find_long(c);
	char longest[16];

	if (!op)
		return true;
	verdict_say(cause, "the slowest %s took %s: --slow %.0fs shows such ones whole", op->op,
		    text_duration(longest, sizeof(longest), op->incl.max), limits.long_ns / 1e9);
	return false;
}

/* What nobody should wait for, and most of the little time goes to; NULL: nothing. */
static const struct verdict_finding *find_lack(const struct verdict_list *list)
{
	for (size_t i = 0; i < list->n && list->f[i].share > limits.light_lack; i++)
		if (list->f[i].row->is_lack)
			return &list->f[i];
	return NULL;
}

/* Why nothing is named, although something always comes first. */
static void add_nothing(const struct verdict_case *c, const struct verdict_list *list,
			struct snap_target *t)
{
	struct snap_cause *cause = add_cause(t, "nothing-stands-out", "", "nothing stands out", "");
	const struct verdict_finding *lack = find_lack(list);
	bool whole = is_covered(c) && knows_pending(c, cause), quick = knows_long(c, cause);
	char mean[16];

	cause->confidence = whole && quick && !lack ? SNAP_HIGH : SNAP_MEDIUM;
	verdict_say(cause, "%.2f requests in flight at a time, %s each", c->total_ns / c->window_ns,
		    text_duration(mean, sizeof(mean), c->total_ns / (double)c->requests));
	if (list->n && lack != &list->f[0])
		say_place("first of all causes", &list->f[0], cause);
	if (lack)
		say_place("would be first", lack, cause);
}

static void judge_target(const struct snapshot *snap, struct snap_target *t)
{
	struct verdict_case c;
	struct verdict_list list;
	struct snap_cause missing = { 0 };

	t->n_causes = 0;
	/* a mount or a device has no requests of its own, only its table */
	if (!t->pid)
		return;
	verdict_case_build(snap, t, &c);
	if (find_missing(&c, &missing)) {
		struct snap_cause *cause =
			add_cause(t, "not-enough-data", "", "not enough data for a verdict", "");

		memcpy(cause->evidence, missing.evidence, sizeof(missing.evidence));
		cause->n_evidence = missing.n_evidence;
		add_stuck(t);
		return;
	}
	find_all(&c, false, &list);
	if (list.n && list.f[0].share >= limits.named && !is_light(&c, &list.f[0]))
		for (size_t i = 0; i < list.n && i < MAX_MEAN_CAUSES; i++)
			if (list.f[i].share >= limits.second)
				add_finding(&c, &list, i, t);
	if (!add_file(&c, t) && !t->n_causes)
		add_nothing(&c, &list, t);
	add_tail(&c, t);
	add_stuck(t);
}

void verdict_judge(struct snapshot *snap)
{
	if (!(snap->window_secs > 0))
		return;
	for (size_t i = 0; i < snap->n_targets; i++)
		judge_target(snap, &snap->targets[i]);
}
