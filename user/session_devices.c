/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_devices.c: the host's block devices in an investigation: which lie below its targets,
 * what /sys says of them, and targets that are nothing but a device or a mount. The requests are
 * counted by the source.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blockdev.h"
#include "model_blockdev.h"
#include "session_priv.h"
#include "text.h"

struct session_device {
	struct model_device about;
	bool described;
};

struct session_devices {
	struct session_device *d;
	size_t n;
	bool everybody; /* also devices below no target */
};

/* ---- which devices ----------------------------------------------------- */

static struct session_device *get_device(struct session_devices *ds, uint32_t dev)
{
	struct session_device *grown;

	for (size_t i = 0; i < ds->n; i++)
		if (ds->d[i].about.dev == dev)
			return &ds->d[i];
	grown = realloc(ds->d, (ds->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	ds->d = grown;
	grown = &ds->d[ds->n++];
	*grown = (struct session_device){ .about.dev = dev };
	return grown;
}

static int add_device(struct session_devices *ds, uint32_t dev, uint64_t targets)
{
	struct session_device *d = get_device(ds, dev);

	if (!d)
		return -ENOMEM;
	d->about.targets |= targets;
	return 0;
}

/* A target's device, and all that lie below it. -ENOENT: it has none that is known here. */
static int add_stack(struct session_devices *ds, const struct target *t, size_t index)
{
	struct blockdev_list below;
	uint32_t disk;
	int ret;

	if (!t->device[0] || blockdev_find(BLOCKDEV_SYS, t->device, &disk))
		return -ENOENT;
	ret = add_device(ds, disk, 1ULL << index);
	blockdev_below(BLOCKDEV_SYS, disk, &below);
	for (size_t i = 0; i < below.n && !ret; i++)
		ret = add_device(ds, below.dev[i], 1ULL << index);
	return ret;
}

/* Nothing is below a client but the network. */
static bool is_without_devices(const struct target *t)
{
	return t->kind == TARGET_CLIENT;
}

int session_open_devices(struct session *s)
{
	size_t i, n_found = 0, n_without = 0;
	int ret;

	s->devices = calloc(1, sizeof(*s->devices));
	if (!s->devices)
		return -ENOMEM;
	for (i = 0; i < s->n_targets; i++) {
		if (is_without_devices(&s->targets[i])) {
			n_without++;
			continue;
		}
		ret = add_stack(s->devices, &s->targets[i], i);
		if (ret == -ENOMEM)
			return ret;
		n_found += !ret;
	}
	/* whose files a process will use is not known: it is shown what the host does */
	s->devices->everybody = !n_found && n_without < s->n_targets;
	s->devices_off = n_without == s->n_targets;
	return 0;
}

void session_close_devices(struct session *s)
{
	if (s->devices)
		free(s->devices->d);
	free(s->devices);
	s->devices = NULL;
}

void session_show_all_devices(struct session *s)
{
	s->devices->everybody = true;
	s->devices_off = false;
}

/* ---- targets that are no process --------------------------------------- */

/* Processes with files open on a mount that are no targets. */
static void tell_others(struct session *s, size_t idx)
{
	const struct target *t = &s->targets[idx];
	char line[160];

	if (t->n_left_out) {
		snprintf(line, sizeof(line),
			 "%u more with open files are not looked at: of at most %d targets at "
			 "once these have done the most I/O",
			 t->n_left_out, WIRE_MAX_TARGETS);
		(void)model_feed_off_target(s->model, (int)idx, "processes", line);
	}
	if (t->n_unreadable) {
		snprintf(line, sizeof(line),
			 "what %u of them %s open may not be read: this needs CAP_SYS_PTRACE over "
			 "%s",
			 t->n_unreadable, t->n_unreadable == 1 ? "has" : "have",
			 t->n_unreadable == 1 ? "it" : "them");
		(void)model_feed_off_target(s->model, (int)idx, "other processes", line);
	}
}

int session_add_host_targets(struct session *s)
{
	int ret = 0;

	/* sorted by process: those without come first */
	for (size_t i = 0; i < s->n_targets && !s->targets[i].pid && !ret; i++) {
		const struct target *t = &s->targets[i];
		struct model_target mt = { .root = WIRE_ROOT_LOCAL, .n_procs = t->n_procs };

		snprintf(mt.kind, sizeof(mt.kind), "%s", target_kind_name(t->kind));
		snprintf(mt.name, sizeof(mt.name), "%.*s", (int)sizeof(mt.name) - 1, t->path);
		snprintf(mt.device, sizeof(mt.device), "%s", t->device);
		snprintf(mt.fstype, sizeof(mt.fstype), "%s", t->fstype);
		snprintf(mt.version, sizeof(mt.version), "-");
		snprintf(mt.layout, sizeof(mt.layout), "-");
		ret = model_set_target(s->model, (unsigned int)i, &mt, NULL);
		tell_others(s, i);
		s->n_host++;
	}
	return ret;
}

/* ---- collecting -------------------------------------------------------- */

static void describe(struct session_device *d)
{
	struct model_device *about = &d->about;
	char label[4096], below_label[4096];
	struct blockdev_list below;

	if (blockdev_name(BLOCKDEV_SYS, about->dev, about->name, sizeof(about->name), label,
			  sizeof(label)))
		return;
	text_sanitize(about->label, sizeof(about->label), label);
	blockdev_below(BLOCKDEV_SYS, about->dev, &below);
	for (size_t i = 0; i < below.n && i < SNAP_DEVICE_STACK; i++) {
		if (!blockdev_name(BLOCKDEV_SYS, below.dev[i], about->stack[about->n_stack],
				   sizeof(about->stack[0]), below_label, sizeof(below_label)))
			about->n_stack++;
	}
	d->described = true;
}

static int feed_device(struct session *s, struct session_device *d)
{
	struct model_device *about = &d->about;
	struct blockdev_stat stat;

	if (!d->described)
		describe(d);
	about->has_stat = !blockdev_read_stat(BLOCKDEV_SYS, about->dev, &stat);
	if (about->has_stat) {
		about->merges[0] = stat.read.merges;
		about->merges[1] = stat.write.merges;
		about->merges[2] = stat.discard.merges;
		about->busy_ms = stat.busy_ms;
	}
	about->has_in_flight = !blockdev_read_in_flight(
		BLOCKDEV_SYS, about->dev, &about->in_flight_reads, &about->in_flight_writes);
	return model_feed_device(s->model, about);
}

int session_collect_devices(struct session *s)
{
	struct session_devices *ds = s->devices;
	struct session_device *d;
	size_t i;
	__u32 dev;
	int ret = 0;

	if (!session_sees_devices(s) || !ds)
		return 0;
	model_show_devices(s->model, ds->everybody);
	/* the model keeps the order: a target's own device stands before those below it */
	for (i = 0; i < ds->n && ret != -ENOMEM; i++)
		ret = feed_device(s, &ds->d[i]);
	if (ret != -ENOMEM)
		ret = source_feed_devices(s->source, s->model);
	for (; ret != -ENOMEM && ds->everybody && model_device_nth(s->model, i, &dev); i++) {
		d = get_device(ds, dev);
		ret = d ? feed_device(s, d) : -ENOMEM;
	}
	return ret == -ENOMEM ? ret : 0;
}

bool session_sees_devices(const struct session *s)
{
	return s->source && source_sees_devices(s->source);
}
