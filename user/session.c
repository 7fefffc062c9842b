/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c: see session.h. Order matters in session_collect(): the process's own counts are read
 * before the maps, so that a request accounted in between can only make the coverage exceed, never
 * hide a loss.
 */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gluster_layout.h"
#include "layers.h"

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* ---- opening ----------------------------------------------------------- */

static int by_pid(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int new_model(struct session *s)
{
	struct model_layer rows[LAYER_COUNT];
	const struct layer *layer;
	unsigned int i;

	for (i = LAYER_NONE + 1; i < LAYER_COUNT; i++) {
		layer = layer_get(i);
		rows[i - 1] = (struct model_layer){
			.layer = i,
			.title = layer->title,
			.kind = layer->kind,
			.subs = layer->subs,
			.n_subs = layer->n_subs,
		};
	}
	return model_new(rows, LAYER_COUNT - 1, &s->model);
}

static void keep_name(void *arg, unsigned int target, unsigned int layer, const char *id)
{
	struct session *s = arg;
	char(*name)[64];

	if (!s->names || target >= s->n_targets || layer >= SESSION_LAYERS)
		return;
	name = &s->names[(size_t)target * SESSION_LAYERS + layer];
	if (!(*name)[0])
		snprintf(*name, sizeof(*name), "%s", id);
}

/* A process that is no GlusterFS: its own file operations are all that it can show. */
static int add_plain_process(struct session *s, size_t idx)
{
	const struct target *t = &s->targets[idx];
	struct model_target mt = { .pid = t->pid, .root = WIRE_ROOT_LOCAL };

	snprintf(mt.kind, sizeof(mt.kind), "%s", target_kind_name(t->kind));
	snprintf(mt.version, sizeof(mt.version), "-");
	snprintf(mt.layout, sizeof(mt.layout), "-");
	target_describe(t, mt.name, sizeof(mt.name));
	return model_set_target(s->model, (unsigned int)idx, &mt, NULL);
}

/* Open a process's memory and show its targets. */
static int open_proc(struct session *s, struct session_proc *p, char *err, size_t err_size)
{
	size_t i;
	int ret;

	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0) {
		ret = -errno;
		snprintf(err, err_size, "process %d cannot be watched: %s", (int)p->pid,
			 strerror(-ret));
		return ret;
	}
	if (s->targets[p->first].kind == TARGET_PROCESS)
		return add_plain_process(s, p->first);
	ret = watch_open(p->pid, &p->watch, err, err_size);
	for (i = p->first; i < p->first + p->n_targets && !ret; i++)
		ret = watch_add_target(p->watch, s->model, (unsigned int)i, &s->targets[i], err,
				       err_size);
	if (!ret)
		watch_each_layer(p->watch, keep_name, s);
	return ret;
}

static void close_proc(struct session *s, struct session_proc *p)
{
	watch_close(p->watch, s->source);
	p->watch = NULL;
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
}

static int check_kind(const struct target *t, char *err, size_t err_size)
{
	if (t->kind != TARGET_XFS && t->kind != TARGET_DEVICE)
		return 0;
	snprintf(err, err_size,
		 "'%s' is an %s: name a brick, a client or a process (see 'bricktop list')",
		 t->path, t->kind == TARGET_XFS ? "XFS mount" : "block device");
	return -ENOTSUP;
}

/* Sort the targets by process and make an entry for each process. */
static int group(struct session *s)
{
	size_t i;

	qsort(s->targets, s->n_targets, sizeof(*s->targets), by_pid);
	s->procs = calloc(s->n_targets, sizeof(*s->procs));
	if (!s->procs)
		return -ENOMEM;
	for (i = 0; i < s->n_targets; i++) {
		if (!i || s->targets[i].pid != s->targets[i - 1].pid) {
			s->procs[s->n_procs].pid = s->targets[i].pid;
			s->procs[s->n_procs].pidfd = -1;
			s->procs[s->n_procs++].first = i;
		}
		s->procs[s->n_procs - 1].n_targets++;
	}
	return 0;
}

int session_open(const struct target_list *targets, bool dump, struct session **ret_s, char *err,
		 size_t err_size)
{
	struct session *s = calloc(1, sizeof(*s));
	int ret = -ENOMEM;
	size_t i;

	if (!s)
		goto out_error;
	s->n_targets = targets->n < WIRE_MAX_TARGETS ? targets->n : WIRE_MAX_TARGETS;
	s->targets = calloc(s->n_targets + 1, sizeof(*s->targets));
	if (dump)
		s->names = calloc(s->n_targets * SESSION_LAYERS, sizeof(*s->names));
	if (!s->targets || (dump && !s->names))
		goto out_error;
	memcpy(s->targets, targets->t, s->n_targets * sizeof(*s->targets));
	ret = new_model(s);
	ret = ret ?: group(s);
	for (i = 0; i < s->n_targets && !ret; i++)
		ret = check_kind(&s->targets[i], err, err_size);
	for (i = 0; i < s->n_procs && !ret; i++)
		ret = open_proc(s, &s->procs[i], err, err_size);
	if (ret)
		goto out_error;
	*ret_s = s;
	return 0;

out_error:
	if (ret == -ENOMEM)
		snprintf(err, err_size, "out of memory");
	session_close(s);
	return ret;
}

void session_close(struct session *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->n_procs; i++)
		close_proc(s, &s->procs[i]);
	source_close(s->source);
	model_free(s->model);
	free(s->names);
	free(s->procs);
	free(s->targets);
	free(s);
}

/* ---- probes ------------------------------------------------------------ */

static int attach_proc(struct session *s, struct session_proc *p, char *err, size_t err_size)
{
	struct wire_proc plain = {
		.root = WIRE_ROOT_LOCAL,
		.local_target = (__u16)p->first,
	};

	if (p->watch)
		return watch_attach(p->watch, s->source, s->model, err, err_size);
	return source_set_proc(s->source, p->pid, &plain, NULL);
}

int session_attach(struct session *s, const struct source_config *config, char *err,
		   size_t err_size)
{
	char line[256] = "";
	int ret;
	size_t i;

	ret = source_open(config, &s->source, err, err_size);
	for (i = 0; i < s->n_procs && !ret; i++)
		ret = attach_proc(s, &s->procs[i], err, err_size);
	ret = ret ?: source_attach_layers(s->source, s->model);
	if (ret)
		return ret;
	if (meter_calibrate(source_kind(s->source), &s->cal, line, sizeof(line)) || line[0])
		ret = model_feed_off(s->model, "calibration", line);
	return ret;
}

void session_detach(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_procs; i++) {
		if (s->procs[i].watch)
			watch_detach(s->procs[i].watch, s->source);
	}
	if (s->source)
		source_detach(s->source);
}

/* ---- collecting -------------------------------------------------------- */

static int collect_memory(struct session *s)
{
	size_t i;
	int ret;

	for (i = 0; i < s->n_procs; i++) {
		struct session_proc *p = &s->procs[i];

		if (!p->watch)
			continue;
		ret = watch_feed_memory(p->watch, s->model);
		if (ret == -ENOMEM)
			return ret;
		watch_each_layer(p->watch, keep_name, s);
	}
	return 0;
}

/* Cost of one process's targets: what its threads paid, of what they used. */
static void feed_cost(struct session *s, const struct session_proc *p)
{
	struct meter_interval interval = s->meter;
	struct meter_cost cost;
	struct snap_cost snap = { .probe_hits = interval.emulated_hits + interval.stepped_hits +
						interval.tracepoint_hits };
	uint64_t cpu_ns;
	size_t i;

	interval.has_target = !p->gone && !meter_target_cpu_ns(p->pid, &cpu_ns) &&
			      cpu_ns >= p->cpu_ns;
	if (interval.has_target)
		interval.target_cpu_ns = cpu_ns - p->cpu_ns;
	meter_compute(&s->cal, &interval, &cost);
	snap.core_pct = (struct snap_num){ cost.core_pct, cost.has_core };
	snap.target_pct = (struct snap_num){ cost.target_pct, cost.has_target };
	snap.duty_pct = (struct snap_num){ 100.0, s->source != NULL };
	snap.hit_ns = s->cal.has_emulated ? s->cal.emulated_ns : 0;
	for (i = p->first; i < p->first + p->n_targets; i++)
		model_feed_cost(s->model, (unsigned int)i, &snap);
}

static void collect_cost(struct session *s)
{
	struct meter_interval tick = { 0 };
	uint64_t own_ns;
	size_t i;

	if (s->source)
		source_meter(s->source, &tick);
	s->meter.bpf_run_ns += tick.bpf_run_ns;
	s->meter.emulated_hits += tick.emulated_hits;
	s->meter.tracepoint_hits += tick.tracepoint_hits;
	s->meter.wall_ns = clock_ns(CLOCK_MONOTONIC) - s->begin_ns;
	if (!meter_own_cpu_ns(&own_ns))
		s->meter.own_cpu_ns = own_ns - s->own_cpu_ns;
	for (i = 0; i < s->n_procs; i++)
		feed_cost(s, &s->procs[i]);
}

int session_collect(struct session *s)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t i;
	int ret = collect_memory(s);

	for (i = 0; i < s->n_procs && s->source && !ret; i++) {
		if (s->procs[i].watch)
			ret = watch_tick(s->procs[i].watch, s->source, s->model, now);
	}
	if (s->source && !ret)
		ret = source_feed(s->source, s->model, (unsigned int)s->n_targets);
	collect_cost(s);
	return ret;
}

int session_finish(struct session *s)
{
	if (s->source)
		source_flush_spans(s->source);
	return session_collect(s);
}

int session_start(struct session *s)
{
	struct meter_interval discard;
	size_t i;
	int ret;

	s->begin_ns = clock_ns(CLOCK_MONOTONIC);
	if (meter_own_cpu_ns(&s->own_cpu_ns))
		s->own_cpu_ns = 0;
	for (i = 0; i < s->n_procs; i++) {
		if (meter_target_cpu_ns(s->procs[i].pid, &s->procs[i].cpu_ns))
			s->procs[i].cpu_ns = 0;
	}
	if (s->source)
		source_meter(s->source, &discard);
	memset(&s->meter, 0, sizeof(s->meter));
	ret = session_collect(s);
	model_start_window(s->model, s->begin_ns, (int64_t)clock_ns(CLOCK_REALTIME));
	return ret;
}

int session_snapshot(struct session *s, bool memory_only, bool lifetime, struct snapshot **ret_snap)
{
	struct model_view view = { .memory_only = memory_only, .lifetime = lifetime };

	return model_tick(s->model, clock_ns(CLOCK_MONOTONIC), &view, ret_snap);
}

/* ---- processes that go and come ---------------------------------------- */

static void tell_gone(struct session *s, const struct session_proc *p)
{
	size_t i;

	for (i = p->first; i < p->first + p->n_targets; i++)
		model_feed_gone(s->model, (unsigned int)i, p->gone, p->restarts);
}

void session_proc_gone(struct session *s, struct session_proc *p)
{
	if (s->source)
		source_feed(s->source, s->model, (unsigned int)s->n_targets);
	close_proc(s, p);
	if (s->source)
		source_forget_proc(s->source, p->pid);
	p->gone = true;
	tell_gone(s, p);
}

/* The same brick or mount in another process. */
static bool is_same(const struct target *a, const struct target *b)
{
	return a->kind == b->kind && !b->problem[0] && !strcmp(a->volume, b->volume) &&
	       !strcmp(a->path, b->path);
}

/* All targets of p found in one new process: take it. */
static bool follow_one(struct session *s, struct session_proc *p, const struct target_list *now)
{
	char err[256];
	size_t i, k, found = 0;
	pid_t pid = 0;

	for (i = p->first; i < p->first + p->n_targets; i++) {
		for (k = 0; k < now->n; k++) {
			if (now->t[k].pid == p->pid || !is_same(&s->targets[i], &now->t[k]) ||
			    (pid && now->t[k].pid != pid))
				continue;
			pid = now->t[k].pid;
			s->targets[i].graph_key = now->t[k].graph_key;
			found++;
			break;
		}
	}
	if (found != p->n_targets)
		return false;
	p->pid = pid;
	for (i = p->first; i < p->first + p->n_targets; i++)
		s->targets[i].pid = pid;
	if (open_proc(s, p, err, sizeof(err)) ||
	    (s->source && attach_proc(s, p, err, sizeof(err)))) {
		close_proc(s, p);
		return false;
	}
	p->gone = false;
	p->restarts++;
	tell_gone(s, p);
	return true;
}

size_t session_follow(struct session *s)
{
	struct target_list now = { 0 };
	size_t i, n = 0;

	for (i = 0; i < s->n_procs && !s->procs[i].gone; i++)
		;
	if (i == s->n_procs || target_scan(&now))
		return 0;
	for (; i < s->n_procs; i++) {
		struct session_proc *p = &s->procs[i];

		if (p->gone && s->targets[p->first].kind != TARGET_PROCESS)
			n += follow_one(s, p, &now);
	}
	target_list_free(&now);
	return n;
}

/* ---- names ------------------------------------------------------------- */

static const char *name_target(const void *arg, unsigned int target)
{
	const struct session *s = arg;

	if (target >= s->n_targets)
		return NULL;
	return s->targets[target].path[0] ? s->targets[target].path : s->targets[target].volume;
}

static const char *name_layer(const void *arg, unsigned int target, unsigned int layer)
{
	const struct session *s = arg;
	const struct layer *row = layer_get(layer);
	const char *name;

	if (row)
		return row->title;
	if (!s->names || target >= s->n_targets || layer >= SESSION_LAYERS)
		return NULL;
	name = s->names[(size_t)target * SESSION_LAYERS + layer];
	return name[0] ? name : NULL;
}

static const char *name_sub(const void *arg, unsigned int layer, unsigned int sub)
{
	const struct layer *row = layer_get(layer);

	(void)arg;
	return row && row->subs && sub < row->n_subs ? row->subs[sub] : NULL;
}

static const char *name_op(const void *arg, unsigned int op)
{
	(void)arg;
	return gluster_fop_name(op);
}

struct sink_dump_names session_names(const struct session *s)
{
	return (struct sink_dump_names){
		.target = name_target,
		.layer = name_layer,
		.sub = name_sub,
		.op = name_op,
		.arg = s,
	};
}
