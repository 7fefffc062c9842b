/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_json.c: snapshots as documents of the contract. Owns the names of the keys and how figures
 * are rounded; jansson owns quoting and nesting. An object that could not be built is remembered in
 * the builder and reported once, at the end.
 */
#include "sink_json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gluster_layout.h"
#include "sink_json_devices.h"
#include "sink_json_slow.h"
#include "sink_json_uses.h"
#include "text.h"

/* A failed allocation makes the document incomplete: it is then not written at all. */
struct builder {
	bool failed;
};

static void put(struct builder *b, json_t *object, const char *key, json_t *value)
{
	if (!value || json_object_set_new(object, key, value) != 0)
		b->failed = true;
}

static void append(struct builder *b, json_t *array, json_t *value)
{
	if (!value || json_array_append_new(array, value) != 0)
		b->failed = true;
}

/* Names were sanitized where they came in; jansson refuses what is not UTF-8: then once more. */
static json_t *string_json(const char *s)
{
	json_t *value = json_string(s);
	size_t size = strlen(s) * 3 + 1;
	char *clean;

	if (value)
		return value;
	clean = malloc(size);
	if (clean)
		value = json_string(text_sanitize(clean, size, s));
	free(clean);
	return value;
}

static void put_str(struct builder *b, json_t *object, const char *key, const char *s)
{
	put(b, object, key, string_json(s));
}

static void put_u64(struct builder *b, json_t *object, const char *key, uint64_t v)
{
	put(b, object, key, json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v));
}

struct count {
	const char *key;
	uint64_t n;
};

static void put_counts(struct builder *b, json_t *object, const struct count *counts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_u64(b, object, counts[i].key, counts[i].n);
}

#define PUT_COUNTS(b, object, ...)                                   \
	put_counts(b, object, (const struct count[]){ __VA_ARGS__ }, \
		   sizeof((const struct count[]){ __VA_ARGS__ }) / sizeof(struct count))

/* A count, or null where nobody counts. */
static void put_count(struct builder *b, json_t *object, const char *key, bool valid, uint64_t v)
{
	if (valid)
		put_u64(b, object, key, v);
	else
		put(b, object, key, json_null());
}

static void put_num(struct builder *b, json_t *object, const char *key, bool valid, double v)
{
	double rounded = round(v * 1000) / 1000;

	if (!valid || !isfinite(rounded))
		put(b, object, key, json_null());
	else
		put(b, object, key, json_real(rounded + 0.0)); /* no "-0.0" */
}

static void put_snap(struct builder *b, json_t *object, const char *key, struct snap_num num)
{
	put_num(b, object, key, num.valid, num.v);
}

static void put_us(struct builder *b, json_t *object, const char *key, struct snap_num ns)
{
	put_num(b, object, key, ns.valid, ns.v / 1000);
}

static void put_dist(struct builder *b, json_t *object, const char *key, const struct snap_dist *d)
{
	const struct {
		const char *key;
		double ns;
	} quantiles[] = {
		{ "p50", d->p50 },   { "p90", d->p90 }, { "p99", d->p99 },
		{ "p999", d->p999 }, { "max", d->max },
	};
	json_t *o = json_object();

	put_num(b, o, "mean", d->valid, d->mean / 1000);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		put_num(b, o, quantiles[i].key, d->valid && d->has_quantiles,
			quantiles[i].ns / 1000);
	put(b, object, key, o);
}

static json_t *layer_json(struct builder *b, const struct snap_layer *l)
{
	static const char *const states[] = {
		[SNAP_ON] = "on",
		[SNAP_OFF] = "off",
		[SNAP_DERIVED] = "derived",
	};
	json_t *o = json_object();

	put_str(b, o, "id", l->id);
	put_str(b, o, "path", l->path);
	put_str(b, o, "kind", l->kind);
	put_str(b, o, "type", l->type);
	put_str(b, o, "state", states[l->state]);
	put_str(b, o, "reason", l->reason);
	put_u64(b, o, "depth", l->depth);
	put_u64(b, o, "count", l->count);
	put_count(b, o, "self_count", l->self.valid, l->self.count);
	put_count(b, o, "errors", l->has_errors, l->errors);
	put_count(b, o, "bytes", l->has_bytes, l->bytes);
	if (l->has_calls)
		put_u64(b, o, "calls", l->calls);
	put_dist(b, o, "self_us", &l->self);
	put_dist(b, o, "incl_us", &l->incl);
	put_snap(b, o, "share_pct", l->share_pct);
	put_us(b, o, "est_self_us", l->est_self_ns);
	return o;
}

/* The requests that were seen whole: what own times, and rows below the xlators, are of. */
static void put_covered(struct builder *b, json_t *o, const struct snap_op *op)
{
	uint64_t covered = op->count - op->uncovered;
	bool known = op->source == SNAP_FROM_WALK && op->count > 0;

	put_count(b, o, "covered", known, covered);
	put_num(b, o, "covered_pct", known,
		known ? 100.0 * (double)covered / (double)op->count : 0);
	put_num(b, o, "covered_incl_mean_us", known && covered,
		snapshot_covered_mean_ns(op) / 1000);
}

static json_t *op_json(struct builder *b, const struct snap_op *op)
{
	json_t *o = json_object(), *layers = json_array();

	put_str(b, o, "root", op->root);
	put_str(b, o, "origin", op->origin);
	put_str(b, o, "op", op->op);
	put_str(b, o, "source", op->source == SNAP_FROM_WALK ? "walk" : "memory");
	put_u64(b, o, "count", op->count);
	put_snap(b, o, "rate_hz", op->rate_hz);
	put_count(b, o, "bytes", op->has_bytes, op->bytes);
	put_count(b, o, "errors", op->has_errors, op->errors);
	put_snap(b, o, "in_flight", op->in_flight);
	put_us(b, o, "in_flight_oldest_us", op->in_flight_oldest_ns);
	put_snap(b, o, "coverage_pct", op->coverage_pct);
	put_covered(b, o, op);
	put_dist(b, o, "incl_us", &op->incl);
	put_us(b, o, "unattributed_us", op->unattributed_ns);
	put_snap(b, o, "sum_check_pct", op->sum_check_pct);
	for (size_t i = 0; i < op->n_layers; i++)
		append(b, layers, layer_json(b, &op->layers[i]));
	put(b, o, "layers", layers);
	return o;
}

static json_t *lost_json(struct builder *b, const struct snap_lost *l)
{
	json_t *o = json_object();

	PUT_COUNTS(b, o, { "total", l->total }, { "map_full", l->map_full },
		   { "ring_full", l->ring_full }, { "unpaired", l->unpaired });
	put(b, o, "evicted", json_null()); /* the kernel does not tell */
	PUT_COUNTS(b, o, { "unreadable", l->unreadable }, { "absurd", l->absurd },
		   { "ledger", l->ledger }, { "skipped", l->skipped });
	put_count(b, o, "recursion", l->has_recursion, l->recursion);
	put_count(b, o, "uprobe_missed", l->has_uprobe_missed, l->uprobe_missed);
	PUT_COUNTS(b, o, { "storage_busy", l->storage_busy }, { "frames", l->frames },
		   { "order", l->order }, { "unknown_xlator", l->unknown_xlator },
		   { "marks", l->marks }, { "wakes", l->wakes },
		   { "begun_before", l->begun_before });
	return o;
}

static json_t *checks_json(struct builder *b, const struct snap_target *t)
{
	const struct snap_checks *c = &t->checks;
	json_t *o = json_object();

	put_snap(b, o, "sum_check_pct", t->sum_check_pct);
	PUT_COUNTS(b, o, { "walked", c->walked }, { "holds", c->holds }, { "outside", c->outside },
		   { "negative", c->negative }, { "unsplit", c->unsplit }, { "open", c->open },
		   { "orphan", c->orphan }, { "copies", c->copies });
	return o;
}

static json_t *cost_json(struct builder *b, const struct snap_cost *c)
{
	json_t *o = json_object();

	put_snap(b, o, "core_pct", c->core_pct);
	put_snap(b, o, "target_pct", c->target_pct);
	put_count(b, o, "probe_hits", !c->is_uncounted, c->probe_hits);
	put_snap(b, o, "duty_pct", c->duty_pct);
	put_snap(b, o, "walk_duty_pct", c->walk_duty_pct);
	put_snap(b, o, "budget_pct", c->budget_pct);
	put_num(b, o, "hit_us", c->hit_ns > 0, c->hit_ns / 1000);
	put_snap(b, o, "own_pct", c->own_pct);
	put_u64(b, o, "uprobe_hits", c->uprobe_hits);
	put_count(b, o, "tracepoint_hits", !c->is_uncounted, c->tracepoint_hits);
	put_num(b, o, "tracepoint_hit_us", c->tracepoint_hit_ns > 0, c->tracepoint_hit_ns / 1000);
	return o;
}

static json_t *oldest_json(struct builder *b, const struct snap_oldest *oldest)
{
	json_t *o;

	if (!oldest->valid)
		return json_null();
	o = json_object();
	put_str(b, o, "op", oldest->op);
	put_str(b, o, "xlator", oldest->xlator);
	put_str(b, o, "file", oldest->file);
	put_num(b, o, "age_us", true, oldest->age_ns / 1000);
	put(b, o, "app_pid", json_integer(oldest->app_pid));
	return o;
}

static json_t *target_json(struct builder *b, const struct snap_target *t)
{
	json_t *o = json_object();

	put_str(b, o, "kind", t->kind);
	put_str(b, o, "name", t->name);
	put(b, o, "pid", t->pid > 0 ? json_integer(t->pid) : json_null());
	if (!strcmp(t->kind, "xfs"))
		put_u64(b, o, "processes", t->n_procs);
	put_str(b, o, "version", t->version);
	put_str(b, o, "layout", t->layout);
	put_str(b, o, "device", t->device);
	put_str(b, o, "fstype", t->fstype);
	put(b, o, "gone", json_boolean(t->gone));
	put_snap(b, o, "gone_after_secs", t->gone_after_secs);
	put_u64(b, o, "restarts", t->restarts);
	return o;
}

static json_t *window_json(struct builder *b, const struct snapshot *snap)
{
	json_t *o = json_object();
	char start[48];

	if (*sink_fmt_time(start, sizeof(start), snap->wall_ns))
		put_str(b, o, "start", start);
	else
		put(b, o, "start", json_null());
	put_num(b, o, "secs", snap->window_secs > 0, snap->window_secs);
	return o;
}

static json_t *probes_json(struct builder *b, const struct snap_probes *p)
{
	json_t *o;

	if (!p->valid)
		return json_null();
	o = json_object();
	put_u64(b, o, "callbacks", p->callbacks);
	put_u64(b, o, "stepped", p->stepped);
	put_str(b, o, "module", p->module);
	put_str(b, o, "insn", p->insn);
	put_str(b, o, "class", p->insn_stepped ? "single-stepped" : "emulated");
	put_str(b, o, "kind", p->kind);
	return o;
}

/* What a target misses: of its own, and with everybody else. */
static json_t *off_json(struct builder *b, const struct snapshot *snap, size_t target)
{
	json_t *array = json_array();

	for (size_t i = 0; i < snap->n_off; i++) {
		json_t *o;

		if (snap->off[i].target >= 0 && (size_t)snap->off[i].target != target)
			continue;
		o = json_object();
		put_str(b, o, "what", snap->off[i].what);
		put_str(b, o, "reason", snap->off[i].reason);
		append(b, array, o);
	}
	return array;
}

static json_t *threads_json(struct builder *b, const struct snap_target *t)
{
	json_t *array = t->n_threads ? json_array() : json_null();

	for (size_t i = 0; i < t->n_threads; i++) {
		const struct snap_thread *thread = &t->threads[i];
		json_t *o = json_object();

		put_str(b, o, "comm", thread->comm);
		put_str(b, o, "pool", thread->pool);
		put(b, o, "tid", json_integer(thread->tid));
		put_num(b, o, "secs", true, thread->secs);
		put_snap(b, o, "oncpu_pct", thread->oncpu_pct);
		put_snap(b, o, "runnable_pct", thread->runnable_pct);
		put_snap(b, o, "blocked_pct", thread->blocked_pct);
		append(b, array, o);
	}
	return array;
}

static json_t *verdict_json(struct builder *b, const struct snap_target *t)
{
	static const char *const names[] = {
		[SNAP_LOW] = "low",
		[SNAP_MEDIUM] = "medium",
		[SNAP_HIGH] = "high",
	};
	json_t *array = t->n_causes ? json_array() : json_null();

	for (unsigned int i = 0; i < t->n_causes; i++) {
		const struct snap_cause *cause = &t->causes[i];
		json_t *o = json_object(), *evidence = json_array();

		put_str(b, o, "cause", cause->cause);
		put_str(b, o, "subject", cause->subject);
		put_str(b, o, "summary", cause->summary);
		put_snap(b, o, "share_pct", cause->share_pct);
		put_str(b, o, "of", cause->tail ? "slowest" : "mean");
		put_str(b, o, "confidence", names[cause->confidence]);
		for (unsigned int k = 0; k < cause->n_evidence; k++)
			append(b, evidence, string_json(cause->evidence[k]));
		put(b, o, "evidence", evidence);
		put_str(b, o, "next", cause->next);
		append(b, array, o);
	}
	return array;
}

static json_t *report_json(struct builder *b, const struct snapshot *snap, size_t target,
			   const char *version)
{
	const struct snap_target *t = &snap->targets[target];
	json_t *o = json_object(), *ops = json_array();

	put_str(b, o, "schema", "bricktop/1");
	put_str(b, o, "version", version);
	put_str(b, o, "kernel", snap->kernel);
	put(b, o, "memory_only", json_boolean(snap->memory_only));
	put(b, o, "target", target_json(b, t));
	put(b, o, "window", window_json(b, snap));
	put(b, o, "cost", cost_json(b, &t->cost));
	put(b, o, "lost", lost_json(b, &t->lost));
	put(b, o, "lost_unassigned", lost_json(b, &snap->lost_unassigned));
	put(b, o, "lost_devices", lost_json(b, &snap->lost_devices));
	put(b, o, "checks", checks_json(b, t));
	put(b, o, "oldest", oldest_json(b, &t->oldest));
	put(b, o, "off", off_json(b, snap, target));
	put(b, o, "probes", probes_json(b, &t->probes));
	for (size_t i = 0; i < t->n_ops; i++)
		append(b, ops, op_json(b, &t->ops[i]));
	put(b, o, "ops", ops);
	put(b, o, "devices", sink_json_devices(snap, target));
	if (t->slow.wanted[0]) {
		put(b, o, "slow", sink_json_slow(&t->slow));
		put(b, o, "slow_limits", sink_json_slow_limits(&t->slow));
	}
	put(b, o, "files", sink_json_files(t));
	put(b, o, "directories", sink_json_dirs(t));
	put(b, o, "apps", sink_json_apps(t));
	put(b, o, "seen", sink_json_uses(t));
	put(b, o, "threads", threads_json(b, t));
	put(b, o, "verdict", verdict_json(b, t));
	return o;
}

/* Write and free a document. Reals were rounded: 15 digits print them as they were meant. */
static int write_document(FILE *out, struct builder *b, json_t *document, bool lines)
{
	size_t flags = JSON_REAL_PRECISION(15) | (lines ? JSON_COMPACT : JSON_INDENT(1));
	char *text = b->failed ? NULL : json_dumps(document, flags);
	int err = 0;

	json_decref(document);
	if (!text)
		return -ENOMEM;
	errno = 0;
	if (fputs(text, out) < 0 || fputc('\n', out) < 0 || fflush(out) != 0)
		err = errno ? -errno : -EIO;
	free(text);
	return err;
}

int sink_json_report(FILE *out, const struct snapshot *snap, const char *version, bool lines)
{
	for (size_t i = 0; i < snap->n_targets; i++) {
		struct builder b = { 0 };
		json_t *document = report_json(&b, snap, i, version);
		int err = write_document(out, &b, document, lines);

		if (err)
			return err;
	}
	return 0;
}

static json_t *list_row_json(struct builder *b, const struct target *t)
{
	json_t *o = json_object(), *xlators = json_array();
	char chain[sizeof(t->xlators)], *rest = NULL;

	put_str(b, o, "kind", target_kind_name(t->kind));
	put_str(b, o, "volume", t->volume);
	put_str(b, o, "path", t->path);
	put(b, o, "pid", t->pid > 0 ? json_integer(t->pid) : json_null());
	put_str(b, o, "version", t->version);
	put_str(b, o, "device", t->device);
	put_str(b, o, "fstype", t->fstype);
	put_str(b, o, "comm", t->comm);
	put_str(b, o, "problem", t->problem);
	/* "a > b > c": ids hold no blanks, they are names of a volume file. */
	snprintf(chain, sizeof(chain), "%s", t->xlators);
	for (char *id = strtok_r(chain, " ", &rest); id; id = strtok_r(NULL, " ", &rest))
		if (strcmp(id, ">") != 0)
			append(b, xlators, string_json(id));
	put(b, o, "xlators", xlators);
	return o;
}

int sink_json_list(FILE *out, const struct target_list *list, const char *version)
{
	json_t *document = json_object(), *targets = json_array();
	struct builder b = { 0 };

	put_str(&b, document, "schema", "bricktop-list/1");
	put_str(&b, document, "version", version);
	for (size_t i = 0; i < list->n; i++)
		append(&b, targets, list_row_json(&b, &list->t[i]));
	put(&b, document, "targets", targets);
	return write_document(out, &b, document, false);
}

static json_t *request_json(struct builder *b, const struct gluster_request *r)
{
	const char *fop = gluster_fop_name(r->fop);
	json_t *o = json_object();
	char number[16];

	snprintf(number, sizeof(number), "%u", r->fop);
	put_num(b, o, "age_us", r->has_age, (double)r->age_ns / 1000);
	put_num(b, o, "frame_age_us", r->has_frame_age, (double)r->frame_age_ns / 1000);
	put_str(b, o, "op", fop ? fop : number);
	put_str(b, o, "root", r->background ? "background" : "request");
	put_str(b, o, "origin", r->app_pid < 0 ? "internal" : "user");
	put_str(b, o, "xlator", r->xlator);
	put_str(b, o, "wind", r->wind);
	put_str(b, o, "volume", r->volume);
	put_str(b, o, "file", r->file);
	put_str(b, o, "gfid", r->gfid);
	put(b, o, "app_pid", json_integer(r->app_pid));
	put_u64(b, o, "uid", r->uid);
	put_str(b, o, "client", r->client);
	put_u64(b, o, "unique", r->unique);
	return o;
}

int sink_json_stuck(FILE *out, const struct sink_stuck *stuck, size_t n_stuck, const char *version)
{
	json_t *document = json_object(), *processes = json_array();
	struct builder b = { 0 };

	put_str(&b, document, "schema", "bricktop-stuck/1");
	put_str(&b, document, "version", version);
	for (size_t i = 0; i < n_stuck; i++) {
		json_t *o = json_object(), *requests = json_array();

		put_str(&b, o, "target", stuck[i].target);
		put(&b, o, "pid", json_integer(stuck[i].pid));
		put(&b, o, "truncated", json_boolean(stuck[i].truncated));
		put_str(&b, o, "problem", stuck[i].problem ? stuck[i].problem : "");
		for (size_t j = 0; j < stuck[i].n; j++)
			append(&b, requests, request_json(&b, &stuck[i].req[j]));
		put(&b, o, "requests", requests);
		append(&b, processes, o);
	}
	put(&b, document, "processes", processes);
	return write_document(out, &b, document, false);
}
