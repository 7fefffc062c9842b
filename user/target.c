// SPDX-License-Identifier: Apache-2.0
/*
 * target.c: what there is to attach to: GlusterFS processes from /proc, brick by brick, and XFS
 * mounts with their devices. A process that cannot be read is listed too, with the reason, by what
 * its command line says. Processes come and go meanwhile: those that are gone are simply not there.
 */
#include "target.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gluster_graph.h"
#include "target_mounts.h"
#include "text.h"

#define MAX_TARGETS 16384
#define MAX_ARGS    256

struct cmdline {
	char *text; /* owns the words */
	const char *args[MAX_ARGS];
	unsigned int n;
};

static int append_target(struct target_list *list, const struct target *t)
{
	struct target *grown;

	if (list->n == MAX_TARGETS)
		return -E2BIG;
	grown = realloc(list->t, (list->n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	list->t = grown;
	grown[list->n++] = *t;
	return 0;
}

void target_list_free(struct target_list *list)
{
	free(list->t);
	memset(list, 0, sizeof(*list));
}

static ssize_t read_proc(pid_t pid, const char *file, char *buf, size_t size)
{
	char path[48];
	size_t have = 0;
	ssize_t n = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n > 0 && have < size - 1) {
		n = read(fd, buf + have, size - 1 - have);
		have += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	buf[have] = '\0';
	return n < 0 ? -EIO : (ssize_t)have;
}

static int load_cmdline(pid_t pid, struct cmdline *cmd)
{
	const size_t size = 64 << 10;
	ssize_t len;

	memset(cmd, 0, sizeof(*cmd));
	cmd->text = malloc(size);
	if (!cmd->text)
		return -ENOMEM;
	len = read_proc(pid, "cmdline", cmd->text, size);
	for (ssize_t at = 0; at < len && cmd->n < MAX_ARGS;
	     at += (ssize_t)strlen(cmd->text + at) + 1)
		cmd->args[cmd->n++] = cmd->text + at;
	return 0;
}

/* "--name value" or "--name=value"; NULL where it is not given. */
static const char *find_option(const struct cmdline *cmd, const char *name)
{
	size_t len = strlen(name);

	for (unsigned int i = 1; i < cmd->n; i++) {
		if (strncmp(cmd->args[i], name, len))
			continue;
		if (cmd->args[i][len] == '=')
			return cmd->args[i] + len + 1;
		if (!cmd->args[i][len] && i + 1 < cmd->n)
			return cmd->args[i + 1];
	}
	return NULL;
}

/*
 * The mount point is the client's last argument; where the mount is called otherwise (a relative
 * path), its one mount of the type that ends like it.
 */
static void find_mount_point(pid_t pid, const struct cmdline *cmd, char *path, size_t size)
{
	const char *last = cmd->n > 1 ? cmd->args[cmd->n - 1] : "";
	struct mount_list mounts = { 0 };
	const char *found = NULL;
	size_t last_len;

	while (!strncmp(last, "./", 2))
		last += 2;
	last_len = strlen(last);
	while (last_len > 1 && last[last_len - 1] == '/')
		last_len--;
	mounts_load(pid, &mounts);
	for (size_t i = 0; last_len && i < mounts.n; i++) {
		const struct mount_entry *m = &mounts.m[i];
		size_t len = strlen(m->path);

		if (strncmp(m->fstype, "fuse", 4) || len < last_len ||
		    strncmp(m->path + len - last_len, last, last_len))
			continue;
		if (len == last_len || m->path[len - last_len - 1] == '/')
			found = m->path;
	}
	if (!found && last[0] == '/')
		found = last; /* unmounted lazily, or another mount namespace by now */
	text_sanitize(path, size, found ? found : "");
	mounts_free(&mounts);
}

static void find_device(pid_t pid, struct target *t)
{
	const struct mount_entry *m;
	struct mount_list mounts = { 0 };

	if (t->path[0] != '/' || mounts_load(pid, &mounts))
		return;
	m = mounts_find(&mounts, t->path);
	if (m) {
		text_sanitize(t->fstype, sizeof(t->fstype), m->fstype);
		if (!strncmp(m->source, "/dev/", 5))
			text_sanitize(t->device, sizeof(t->device), m->source);
	}
	mounts_free(&mounts);
}

static void join_ids(const struct gluster_graph *g, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < g->n && len < size; i++) {
		int n = snprintf(buf + len, size - len, "%s%s", i ? " > " : "", g->xl[i].id);

		if (n < 0)
			return;
		len += (size_t)n;
	}
}

static bool is_glusterd(const struct gluster_graph *g)
{
	return g->n && !strcmp(g->xl[0].type, "mgmt/glusterd");
}

/* One target per brick; a client's or a helper daemon's graph in use. */
static int add_graphs(struct target_list *list, const struct gluster_proc *gp,
		      const struct target *of, const struct cmdline *cmd)
{
	int err = 0;

	for (size_t i = 0; i < gp->n_graphs && !err; i++) {
		const struct gluster_graph *g = &gp->graphs[i];
		struct target t = *of;

		if (!g->is_active || is_glusterd(g))
			continue;
		t.graph_key = g->key;
		snprintf(t.version, sizeof(t.version), "%s", gp->version);
		snprintf(t.volume, sizeof(t.volume), "%s", g->volume);
		join_ids(g, t.xlators, sizeof(t.xlators));
		t.kind = TARGET_PROCESS; /* self-heal daemon and the like */
		if (g->is_brick) {
			t.kind = TARGET_BRICK;
			snprintf(t.path, sizeof(t.path), "%s", g->brick_path);
			find_device(t.pid, &t);
		} else if (gp->root_xl_addr) {
			t.kind = TARGET_CLIENT;
			find_mount_point(t.pid, cmd, t.path, sizeof(t.path));
		}
		err = append_target(list, &t);
	}
	return err;
}

/* What the command line says of a process whose memory cannot be read or is not understood. */
static int add_unreadable(struct target_list *list, struct target *t, const struct cmdline *cmd)
{
	const char *brick = find_option(cmd, "--brick-name");
	const char *volfile_id = find_option(cmd, "--volfile-id");
	char volume[sizeof(t->volume)];

	if (!strcmp(t->comm, "glusterd"))
		return 0;
	snprintf(t->volume, sizeof(t->volume), "-");
	snprintf(t->version, sizeof(t->version), "-");
	while (volfile_id && *volfile_id == '/')
		volfile_id++;
	if (volfile_id && *volfile_id) {
		snprintf(volume, sizeof(volume), "%.*s", (int)strcspn(volfile_id, "."), volfile_id);
		text_sanitize(t->volume, sizeof(t->volume), volume);
	}
	if (brick || !strcmp(t->comm, "glusterfsd")) {
		t->kind = TARGET_BRICK;
		text_sanitize(t->path, sizeof(t->path), brick ? brick : "");
		find_device(t->pid, t);
	} else {
		t->kind = TARGET_CLIENT;
		find_mount_point(t->pid, cmd, t->path, sizeof(t->path));
	}
	return append_target(list, t);
}

static int add_process(struct target_list *list, pid_t pid)
{
	struct target t = { .pid = pid };
	struct gluster_proc *gp = NULL;
	struct cmdline cmd;
	char comm[64];
	int err;

	if (read_proc(pid, "comm", comm, sizeof(comm)) < 0 || strncmp(comm, "gluster", 7))
		return 0;
	comm[strcspn(comm, "\n")] = '\0';
	text_sanitize(t.comm, sizeof(t.comm), comm);
	err = load_cmdline(pid, &cmd);
	if (err)
		return err;
	err = gluster_proc_open(pid, &gp, t.problem, sizeof(t.problem));
	if (!err) {
		t.problem[0] = '\0';
		t.start_ticks = procmem_start_ticks(gp->pm);
		err = add_graphs(list, gp, &t, &cmd);
		gluster_proc_close(gp);
	} else if (err == -ESRCH || err == -ENOENT) {
		err = 0; /* gone, or something else of that name */
	} else {
		err = add_unreadable(list, &t, &cmd);
	}
	free(cmd.text);
	return err;
}

static int scan_processes(struct target_list *list)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			err = add_process(list, (pid_t)atoi(entry->d_name));
	}
	closedir(dir);
	return err;
}

static int add_device(struct target_list *list, const char *device, const char *fstype)
{
	struct target t = { .kind = TARGET_DEVICE, .volume = "-", .version = "-" };

	for (size_t i = 0; i < list->n; i++)
		if (list->t[i].kind == TARGET_DEVICE && !strcmp(list->t[i].device, device))
			return 0;
	snprintf(t.device, sizeof(t.device), "%s", device);
	snprintf(t.path, sizeof(t.path), "%s", device);
	snprintf(t.fstype, sizeof(t.fstype), "%s", fstype);
	return append_target(list, &t);
}

/* Each XFS once, at the first place where all of it is mounted, else where a part of it is. */
static bool is_shown_elsewhere(const struct mount_list *mounts, size_t index)
{
	const struct mount_entry *m = &mounts->m[index];
	bool whole = !strcmp(m->root, "/");

	for (size_t i = 0; i < mounts->n; i++) {
		const struct mount_entry *other = &mounts->m[i];
		bool other_whole = !strcmp(other->root, "/");

		if (i == index || other->major != m->major || other->minor != m->minor)
			continue;
		if (other_whole != whole ? other_whole : i < index)
			return true;
	}
	return false;
}

static int scan_mounts(struct target_list *list)
{
	struct mount_list mounts = { 0 };
	int err = mounts_load(getpid(), &mounts);

	for (size_t i = 0; i < mounts.n && !err; i++) {
		struct target t = { .kind = TARGET_XFS, .volume = "-", .version = "-" };

		if (strcmp(mounts.m[i].fstype, "xfs") || is_shown_elsewhere(&mounts, i))
			continue;
		snprintf(t.fstype, sizeof(t.fstype), "xfs");
		text_sanitize(t.path, sizeof(t.path), mounts.m[i].path);
		text_sanitize(t.device, sizeof(t.device), mounts.m[i].source);
		err = append_target(list, &t);
	}
	mounts_free(&mounts);
	return err;
}

/* Devices of bricks are listed too: their mounts may be a container's own. */
static int add_devices(struct target_list *list)
{
	size_t n = list->n;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		char device[sizeof(list->t[i].device)], fstype[sizeof(list->t[i].fstype)];

		/* Copies: append_target() moves the array. */
		memcpy(device, list->t[i].device, sizeof(device));
		memcpy(fstype, list->t[i].fstype, sizeof(fstype));
		if (device[0])
			err = add_device(list, device, fstype);
	}
	return err;
}

int target_scan(struct target_list *ret_list)
{
	struct target_list list = { 0 };
	int err = scan_processes(&list);

	if (!err)
		err = scan_mounts(&list);
	if (!err)
		err = add_devices(&list);
	if (err && err != -E2BIG) { /* a list that is full is a list still */
		target_list_free(&list);
		return err;
	}
	*ret_list = list;
	return 0;
}
