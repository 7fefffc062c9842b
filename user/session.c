/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c: see session.h. Order matters in session_collect(): the process's own counts are read
 * before the maps, so that a request accounted in between can only make the coverage exceed, never
 * hide a loss; and its calls once more after them, so that such an excess is told from a double
 * count.
 */
#include "session_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"
#include "layers.h"
#include "procmem.h"
#include "verdict.h"

/* What could not be had, and why. A reason that finds no room is none to end for. */
static void tell_off(struct session *s, const char *what, const char *reason)
{
	(void)model_feed_off(s->model, what, reason);
}

void session_tell_off(struct session *s, const struct session_proc *p, const char *what,
		      const char *reason)
{
	size_t i;

	for (i = p->first; i < p->first + p->n_targets; i++)
		(void)model_feed_off_target(s->model, (int)i, what, reason);
}

void session_clear_off(struct session *s, const struct session_proc *p, const char *what)
{
	size_t i;

	for (i = p->first; i < p->first + p->n_targets; i++)
		model_clear_off(s->model, (int)i, what);
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

/*
 * A process that is no GlusterFS, or none that is understood: its own file operations are all that
 * it can show.
 */
static int add_plain_process(struct session *s, size_t idx)
{
	const struct target *t = &s->targets[idx];
	struct model_target mt = { .pid = t->pid, .version = "-", .layout = "-" };

	mt.root = WIRE_ROOT_LOCAL;
	snprintf(mt.kind, sizeof(mt.kind), "%s", target_kind_name(TARGET_PROCESS));
	snprintf(mt.name, sizeof(mt.name), "%s", t->comm);
	snprintf(mt.device, sizeof(mt.device), "%s", t->device);
	snprintf(mt.fstype, sizeof(mt.fstype), "%s", t->fstype);
	return model_set_target(s->model, (unsigned int)idx, &mt, NULL);
}

/* The process may have ended since it was found, and another one have got its number. */
static int check_start(const struct target *t, char *err, size_t err_size)
{
	struct procmem *pm;
	int ret = procmem_open(t->pid, &pm);

	if (!ret) {
		if (t->start_ticks && procmem_start_ticks(pm) != t->start_ticks)
			ret = -ESRCH;
		procmem_close(pm);
	}
	if (ret == -EACCES || ret == -EPERM)
		snprintf(err, err_size, "process %d may not be read: this needs CAP_SYS_PTRACE%s",
			 (int)t->pid, geteuid() ? ", run as root" : " over it");
	else if (ret)
		snprintf(err, err_size, "process %d cannot be watched: %s", (int)t->pid,
			 ret == -ESRCH ? "it has ended" : strerror(-ret));
	return ret;
}

/* Of several bricks in one process one may be detached any time: the others stay. */
static int add_targets(struct session *s, struct session_proc *p, char *err, size_t err_size)
{
	char what[64];
	size_t i, n = 0;
	int ret, last = -ENOENT;

	for (i = p->first; i < p->first + p->n_targets; i++) {
		ret = watch_add_target(p->watch, s->model, (unsigned int)i, &s->targets[i], err,
				       err_size);
		if (ret == -ENOMEM)
			return ret;
		if (ret) {
			last = ret;
			tell_off(s, target_describe(&s->targets[i], what, sizeof(what)), err);
		}
		n += !ret;
	}
	return n ? 0 : last;
}

int session_open_proc(struct session *s, struct session_proc *p, char *err, size_t err_size)
{
	const struct target *t = &s->targets[p->first];
	int ret;

	/* first the descriptor: what start_ticks are compared with is then the same process */
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0) {
		ret = -errno;
		snprintf(err, err_size, "process %d cannot be watched: %s", (int)p->pid,
			 strerror(-ret));
		return ret;
	}
	if (t->kind == TARGET_PROCESS) {
		ret = check_start(t, err, err_size);
		ret = ret ?: add_plain_process(s, p->first);
		return ret ?: session_open_threads(s, p);
	}
	ret = watch_open(p->pid, &p->watch, err, err_size);
	ret = ret ?: check_start(t, err, err_size);
	ret = ret ?: add_targets(s, p, err, err_size);
	if (!ret)
		session_keep_names(s, p);
	return ret ?: session_open_threads(s, p);
}

/*
 * The layout of a GlusterFS process could not be told, and err says why: system calls, what lies
 * below them, and threads need none. err stays as it is where that works.
 */
static int open_plain(struct session *s, struct session_proc *p, char *err, size_t err_size)
{
	int ret = check_start(&s->targets[p->first], err, err_size);

	ret = ret ?: add_plain_process(s, p->first);
	ret = ret ?: session_open_threads(s, p);
	if (ret)
		return ret;
	p->is_plain = true;
	session_tell_off(s, p, "walk", err);
	return 0;
}

void session_close_proc(struct session_proc *p)
{
	watch_close(p->watch);
	threads_close(p->threads);
	p->watch = NULL;
	p->threads = NULL;
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
}

/* Sort the targets by process and make an entry for each process; devices and mounts have none. */
static int group(struct session *s)
{
	size_t i;
	int ret;

	qsort(s->targets, s->n_targets, sizeof(*s->targets), by_pid);
	ret = session_add_host_targets(s);
	ret = ret ?: session_open_devices(s);
	if (ret)
		return ret;
	s->procs = calloc(s->n_targets, sizeof(*s->procs));
	if (!s->procs)
		return -ENOMEM;
	for (i = s->n_host; i < s->n_targets; i++) {
		if (i == s->n_host || s->targets[i].pid != s->targets[i - 1].pid) {
			s->procs[s->n_procs].pid = s->targets[i].pid;
			s->procs[s->n_procs].pidfd = -1;
			s->procs[s->n_procs++].first = i;
		}
		s->procs[s->n_procs - 1].n_targets++;
	}
	return 0;
}

/* A process that cannot be had does not keep others, or their mount, from being measured. */
static int open_all(struct session *s, char *err, size_t err_size)
{
	char line[512], what[64];
	size_t i, failed = 0;
	int ret, last = 0;

	for (i = 0; i < s->n_procs; i++) {
		struct session_proc *p = &s->procs[i];

		line[0] = '\0';
		ret = session_open_proc(s, p, line, sizeof(line));
		if (ret == -ENOTSUP && !p->watch && p->n_targets == 1)
			ret = open_plain(s, p, line, sizeof(line));
		if (ret == -ENOMEM)
			return ret;
		if (p->is_plain && !err[0])
			snprintf(err, err_size, "%s", line);
		if (!ret)
			continue;
		last = ret;
		session_close_proc(p);
		p->gone = true;
		target_describe(&s->targets[p->first], what, sizeof(what));
		tell_off(s, what, line);
		if (!failed++)
			snprintf(err, err_size, "%s", line);
	}
	return failed && failed == s->n_procs && !s->n_host ? last : 0;
}

/* As many as the programs have room for. */
static int copy_targets(struct session *s, const struct target_list *targets)
{
	s->n_targets = targets->n < WIRE_MAX_TARGETS ? targets->n : WIRE_MAX_TARGETS;
	s->targets = calloc(s->n_targets + 1, sizeof(*s->targets));
	if (!s->targets)
		return -ENOMEM;
	memcpy(s->targets, targets->t, s->n_targets * sizeof(*s->targets));
	return 0;
}

static void tell_too_many(struct session *s, size_t n, char *err, size_t err_size)
{
	if (n <= s->n_targets)
		return;
	snprintf(err, err_size, "%zu of %zu targets are not measured: at most %d are at once",
		 n - s->n_targets, n, WIRE_MAX_TARGETS);
	tell_off(s, "targets", err);
}

int session_open(const struct target_list *targets, bool dump, struct session **ret_s, char *err,
		 size_t err_size)
{
	struct session *s = calloc(1, sizeof(*s));
	int ret = -ENOMEM;

	if (!s)
		goto out_error;
	s->last_gone_ns = clock_mono_ns();
	s->look_ns[0] = s->look_ns[1] = clock_ns(CLOCK_BOOTTIME);
	ret = copy_targets(s, targets);
	if (!ret && dump) {
		s->names = calloc(s->n_targets * SESSION_LAYERS, sizeof(*s->names));
		ret = s->names ? 0 : -ENOMEM;
	}
	ret = ret ?: new_model(s);
	ret = ret ?: group(s);
	ret = ret ?: open_all(s, err, err_size);
	if (ret)
		goto out_error;
	tell_too_many(s, targets->n, err, err_size);
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
		session_close_proc(&s->procs[i]);
	slow_free(s->slow);
	source_close(s->source);
	model_free(s->model);
	session_close_devices(s);
	free(s->apps);
	free(s->names);
	free(s->procs);
	free(s->targets);
	free(s);
}

/* ---- probes ------------------------------------------------------------ */

static int put_probes(struct session *s, struct session_proc *p, char *err, size_t err_size)
{
	struct wire_proc plain = {
		.root = WIRE_ROOT_LOCAL,
		.local_target = (__u16)p->first,
	};

	if (p->watch)
		return watch_attach(p->watch, s->source, s->model, err, err_size);
	return source_set_proc(s->source, p->pid, &plain, NULL);
}

int session_attach_proc(struct session *s, struct session_proc *p)
{
	char err[512] = "";
	int ret;

	if (!s->source)
		return 0;
	ret = put_probes(s, p, err, sizeof(err));
	if (!ret || ret == -ENOMEM)
		return ret;
	session_tell_off(s, p, "walk", err[0] ? err : strerror(-ret));
	/* what was put in until then would count halves */
	if (p->watch)
		watch_detach(p->watch);
	source_forget_proc(s->source, p->pid);
	return 0;
}

/* Follow what changes in the processes. */
static int tick_procs(struct session *s)
{
	size_t i;
	int ret;

	for (i = 0; i < s->n_procs; i++) {
		struct session_proc *p = &s->procs[i];

		if (!p->watch)
			continue;
		ret = watch_tick(p->watch, s->source, s->model, clock_mono_ns());
		if (ret == -ENOMEM)
			return ret;
		if (ret && ret != -ESRCH) /* gone: its pidfd tells */
			session_tell_off(s, p, "following", strerror(-ret));
		else if (p->tick_failed)
			session_clear_off(s, p, "following");
		p->tick_failed = ret != 0;
	}
	return 0;
}

int session_attach(struct session *s, const struct source_config *config)
{
	char line[512] = "";
	int ret = source_open(config, &s->source, line, sizeof(line));
	size_t i;

	if (ret) {
		tell_off(s, "walk", line[0] ? line : strerror(-ret));
		return 0;
	}
	for (i = 0; i < s->n_procs && !ret; i++) {
		if (!s->procs[i].gone)
			ret = session_attach_proc(s, &s->procs[i]);
	}
	if (ret)
		return ret;
	line[0] = '\0';
	if (meter_calibrate(source_kind(s->source), &s->cal, line, sizeof(line)) || line[0])
		tell_off(s, "calibration", line);
	source_attach_layers(s->source, s->model);
	/* what has gone by unmet since the probes are in is searched for already */
	return tick_procs(s);
}

void session_detach(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_procs; i++) {
		if (s->procs[i].watch)
			watch_detach(s->procs[i].watch);
	}
	if (s->source)
		source_detach(s->source);
}

/* ---- collecting -------------------------------------------------------- */

/* What cannot be read is said as long as it cannot. */
static void tell_readable(struct session *s, struct session_proc *p, int error)
{
	char line[128];
	size_t i;

	for (i = p->first; i < p->first + p->n_targets; i++)
		model_feed_readable(s->model, (unsigned int)i, !error);
	if (error) {
		snprintf(line, sizeof(line),
			 "cannot be read (%s): the process's own counts end where they last could",
			 strerror(-error));
		session_tell_off(s, p, "memory", line);
	} else if (p->unreadable) {
		session_clear_off(s, p, "memory");
	}
	p->unreadable = error != 0;
}

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
		if (ret != -ESRCH)
			tell_readable(s, p, ret);
		session_keep_names(s, p);
	}
	return 0;
}

/* Where this fails the next look at the memory does, too, and says so. */
static void collect_late(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_procs; i++) {
		if (s->procs[i].watch && !s->procs[i].unreadable)
			(void)watch_feed_late(s->procs[i].watch, s->model);
	}
}

int session_collect(struct session *s)
{
	int ret;

	s->collected_ns = clock_mono_ns();
	s->collected_wall_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	ret = collect_memory(s);
	if (s->source && !ret)
		ret = tick_procs(s);
	if (s->source && !ret)
		ret = source_feed(s->source, s->model, (unsigned int)s->n_targets);
	if (s->source && !ret)
		ret = session_collect_uses(s);
	if (s->source && !ret)
		collect_late(s);
	if (!ret)
		ret = session_tick_slow(s);
	if (ret != -ENOMEM)
		ret = session_collect_devices(s);
	if (ret != -ENOMEM)
		ret = session_collect_threads(s);
	session_collect_cost(s);
	return ret == -ENOMEM ? ret : 0;
}

int session_look(struct session *s)
{
	size_t i;
	int ret = 0;

	s->look_ns[0] = s->look_ns[1];
	s->look_ns[1] = clock_ns(CLOCK_BOOTTIME);
	if (s->source) {
		source_meter_look(s->source, clock_mono_ns());
		session_keep_budget(s);
	}
	for (i = 0; i < s->n_procs && ret != -ENOMEM; i++) {
		struct session_proc *p = &s->procs[i];

		/* a process that is going is found out by its pidfd */
		ret = p->watch ? watch_look(p->watch, s->source, s->model) : 0;
	}
	return ret == -ENOMEM ? ret : 0;
}

int session_finish(struct session *s)
{
	if (s->source)
		source_flush_spans(s->source);
	return session_collect(s);
}

int session_start(struct session *s)
{
	size_t i;
	int ret;

	s->begin_ns = clock_mono_ns();
	if (meter_own_cpu_ns(&s->own_cpu_ns))
		s->own_cpu_ns = 0;
	s->seen_own_cpu_ns = s->own_cpu_ns;
	for (i = 0; i < s->n_procs; i++)
		session_start_cost(s, &s->procs[i]);
	if (s->source) {
		source_meter_look(s->source, s->begin_ns);
		source_meter_start(s->source, s->begin_ns);
		session_start_duty(s);
	}
	memset(&s->meter, 0, sizeof(s->meter));
	ret = session_collect(s);
	model_start_window(s->model, s->collected_ns, s->collected_wall_ns);
	return ret;
}

void session_next_window(struct session *s)
{
	session_rewind_cost(s);
	model_start_window(s->model, s->collected_ns, s->collected_wall_ns);
	session_start_slow(s);
}

int session_snapshot(struct session *s, bool memory_only, bool lifetime, struct snapshot **ret_snap)
{
	struct model_view view = { .memory_only = memory_only, .lifetime = lifetime };
	struct utsname un;
	struct snapshot *snap;
	int ret = model_tick(s->model, s->collected_ns, &view, &snap);

	if (ret)
		return ret;
	if (!lifetime)
		ret = session_report_slow(s, snap);
	ret = ret ?: session_name_uses(s, snap);
	verdict_judge(snap);
	if (!uname(&un))
		snprintf(snap->kernel, sizeof(snap->kernel), "%s", un.release);
	if (ret)
		snapshot_free(snap);
	else
		*ret_snap = snap;
	return ret;
}
