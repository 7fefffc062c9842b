/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_uses.c: files and applications in an investigation: their rows into the model at each
 * collection, their names into the snapshot at the report. An application may be gone by then, so
 * its name is looked up when it is first seen.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "gluster_path.h"
#include "model_uses.h"
#include "session_priv.h"
#include "target_app.h"
#include "text.h"

#define MAX_APPS     512              /* whose names are kept */
#define PATIENCE_NS  CLOCK_NS_PER_SEC /* with the file systems of bricks, at one report */
#define KERNEL_MINOR 20               /* dev_t inside the kernel: major << 20 | minor */

struct session_app {
	struct wire_app app;
	unsigned int target;
	char comm[64]; /* "" not to be had */
};

struct session_apps {
	struct session_app a[MAX_APPS];
	size_t n;
};

static struct session_proc *proc_of(struct session *s, unsigned int target)
{
	for (size_t i = 0; i < s->n_procs; i++)
		if (target - s->procs[i].first < s->procs[i].n_targets)
			return &s->procs[i];
	return NULL;
}

/* ---- applications ------------------------------------------------------ */

static struct session_app *find_app(struct session_apps *apps, unsigned int target,
				    const struct wire_app *app)
{
	for (size_t i = 0; i < apps->n; i++)
		if (apps->a[i].target == target && !memcmp(&apps->a[i].app, app, sizeof(*app)))
			return &apps->a[i];
	return NULL;
}

/* The pids that it sends are this host's: of a mount here, or of a brick's client that is one. */
static bool is_of_this_host(const struct session_proc *p, const struct wire_app *app)
{
	char client[1024];

	if (!app->client)
		return target_app_shares_pids(p->pid);
	return watch_name_client(p->watch, app->client, client, sizeof(client)) &&
	       target_app_is_client_here(client);
}

/* When first seen: its name, if it is a process of this host. */
static void see_app(void *arg, const struct wire_use_key *key, const struct wire_use *use)
{
	struct session *s = arg;
	struct session_proc *p = proc_of(s, key->target);
	struct session_app *a;
	struct wire_app app;

	memcpy(&app, key->id, sizeof(app));
	if (!key->kind || !p || !p->watch || app.pid <= 0 || s->apps->n == MAX_APPS ||
	    find_app(s->apps, key->target, &app))
		return;
	a = &s->apps->a[s->apps->n++];
	*a = (struct session_app){ .app = app, .target = key->target };
	if (is_of_this_host(p, &app))
		target_app_name(app.pid, app.uid, use->born_ns, a->comm, sizeof(a->comm));
}

int session_collect_uses(struct session *s)
{
	int ret;

	if (!s->apps)
		s->apps = calloc(1, sizeof(*s->apps));
	if (!s->apps)
		return -ENOMEM;
	ret = source_feed_uses(s->source, s->model, see_app, s);
	if (ret && ret != -ENOMEM && ret != -ENOENT)
		(void)model_feed_off(s->model, "files", strerror(-ret));
	return ret == -ENOMEM ? ret : 0;
}

static void name_app(struct session *s, unsigned int target, struct snap_app *app)
{
	struct wire_app id = { app->client_addr, (__s32)app->pid, app->uid };
	const struct session_app *a = s->apps ? find_app(s->apps, target, &id) : NULL;
	struct session_proc *p = proc_of(s, target);

	if (a)
		snprintf(app->comm, sizeof(app->comm), "%s", a->comm);
	if (app->thread[0])
		text_sanitize(app->comm, sizeof(app->comm), app->thread);
	if (p && p->watch && app->client_addr)
		watch_name_client(p->watch, app->client_addr, app->client, sizeof(app->client));
	target_app_client(app->client, app->client_host, sizeof(app->client_host),
			  &app->client_pid);
}

/* ---- files ------------------------------------------------------------- */

/*
 * The files that this link, a descriptor of a plain process, leads to: it says their name, as of
 * now. What the kernel has of the file is enough: its server, which may hang, is not asked.
 */
static void name_linked(struct snap_target *t, const char *link)
{
	char path[4096];
	struct statx st;
	ssize_t len;

	if (statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_INO, &st) || !(st.stx_mask & STATX_INO))
		return;
	for (size_t i = 0; i < t->n_files; i++) {
		struct snap_file *f = &t->files[i];
		uint64_t id[2];

		memcpy(id, f->id, sizeof(id));
		if (f->kind != SNAP_FILE_INODE || f->path[0] || st.stx_ino != id[0] ||
		    ((uint64_t)st.stx_dev_major << KERNEL_MINOR | st.stx_dev_minor) != id[1])
			continue;
		len = readlink(link, path, sizeof(path) - 1);
		path[len > 0 ? len : 0] = '\0';
		text_sanitize(f->path, sizeof(f->path), path);
	}
}

/* What a plain process has open. */
static void name_inodes(const struct session_proc *p, struct snap_target *t)
{
	char link[320];
	struct dirent *entry;
	DIR *dir;

	snprintf(link, sizeof(link), "/proc/%d/fd", (int)p->pid);
	dir = opendir(link);
	while (dir && (entry = readdir(dir))) {
		snprintf(link, sizeof(link), "/proc/%d/fd/%s", (int)p->pid, entry->d_name);
		name_linked(t, link);
	}
	if (dir)
		closedir(dir);
}

/*
 * Of a slow call the inode's number is known, not the device: it is the one file with that number
 * that the process used, where all that it used are known.
 */
static void name_called(const struct snap_target *t, struct snap_slow *op)
{
	const struct snap_file *found = NULL;
	unsigned int n = 0;
	uint64_t ino;

	for (size_t i = 0; i < t->n_files && op->ino; i++) {
		memcpy(&ino, t->files[i].id, sizeof(ino));
		if (t->files[i].kind != SNAP_FILE_INODE || ino != op->ino)
			continue;
		found = &t->files[i];
		n++;
	}
	if (n != 1 || !found->path[0] || t->n_files < t->n_all_files || t->files_pushed)
		return;
	op->file.kind = found->kind;
	memcpy(op->file.id, found->id, sizeof(op->file.id));
	memcpy(op->file.path, found->path, sizeof(op->file.path));
}

static void name_file(struct session *s, unsigned int target, struct snap_file *f)
{
	struct session_proc *p = proc_of(s, target);

	if (p && p->watch && f->kind != SNAP_FILE_UNKNOWN)
		watch_name_file(p->watch, &s->resolver, target, f->id, f->path, sizeof(f->path),
				&f->is_dir);
	name_app(s, target, &f->last);
}

/* Those of the table, and those that were slow. */
static void name_files(struct session *s, struct snap_target *t)
{
	struct session_proc *p = proc_of(s, t->number);
	size_t n_late = s->resolver.n_late;

	for (size_t i = 0; i < t->n_files; i++)
		name_file(s, t->number, &t->files[i]);
	for (size_t i = 0; i < t->slow.n_ops; i++)
		name_file(s, t->number, &t->slow.ops[i].file);
	t->names_late = s->resolver.n_late - n_late;
	if (!p || p->watch)
		return;
	name_inodes(p, t);
	for (size_t i = 0; i < t->slow.n_ops; i++)
		name_called(t, &t->slow.ops[i]);
}

int session_name_uses(struct session *s, struct snapshot *snap)
{
	int ret = 0;

	s->resolver.find = gluster_path_find;
	gluster_resolver_begin(&s->resolver, PATIENCE_NS);
	for (size_t i = 0; i < snap->n_targets && !ret; i++) {
		struct snap_target *t = &snap->targets[i];

		name_files(s, t);
		for (size_t k = 0; k < t->n_apps; k++)
			name_app(s, t->number, &t->apps[k]);
		ret = model_group_dirs(t);
	}
	gluster_resolver_end(&s->resolver);
	return ret;
}
