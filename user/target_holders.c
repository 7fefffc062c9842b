// SPDX-License-Identifier: Apache-2.0
/*
 * target_holders.c: who has files open on a mount. Of each descriptor the kernel tells the mount in
 * /proc/PID/fdinfo; to ask what it leads to instead, by stat(), would wait for the server of
 * whatever is mounted there. A mount has another number in each namespace: the numbers of our
 * device are read in each one once. Processes come and go meanwhile.
 */
#include "target_holders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target_mounts.h"
#include "text.h"

#define KERNEL_THREAD 0x00200000UL /* PF_KTHREAD of the flags in stat */

struct numbers {
	unsigned int *v;
	size_t n;
};

struct scan {
	const char *proc;
	unsigned int major, minor; /* of the device */
	struct numbers mounts;     /* of it, in the namespaces seen so far */
	struct numbers spaces;     /* these */
	struct target_holders found;
};

static bool has_number(const struct numbers *list, unsigned int v)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i] == v)
			return true;
	return false;
}

static int add_number(struct numbers *list, unsigned int v)
{
	unsigned int *grown;

	if (has_number(list, v))
		return 0;
	grown = realloc(list->v, (list->n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	list->v = grown;
	grown[list->n++] = v;
	return 0;
}

/* ---- files ------------------------------------------------------------- */

/* The begin of a file, as text. 0 or -errno. */
static int read_at(int dir, const char *path, char *buf, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	n = n < 0 ? -errno : n;
	close(fd);
	if (n < 0)
		return (int)n;
	buf[n] = '\0';
	return 0;
}

static bool parse_u64(const char *text, const char *key, uint64_t *ret_v)
{
	const char *at = strstr(text, key);

	return at && sscanf(at + strlen(key), "%" SCNu64, ret_v) == 1;
}

/* Bytes alone say what a device had to do: what the page cache answered is not in them. */
static uint64_t read_io(int dir)
{
	uint64_t in = 0, out = 0;
	char text[512];

	if (read_at(dir, "io", text, sizeof(text)))
		return 0;
	parse_u64(text, "\nread_bytes:", &in);
	parse_u64(text, "\nwrite_bytes:", &out);
	return in + out;
}

static bool is_kernel_thread(int dir)
{
	unsigned long flags;
	char text[512], *name_end;

	if (read_at(dir, "stat", text, sizeof(text)))
		return false;
	name_end = strrchr(text, ')'); /* the name may hold anything */
	return name_end && sscanf(name_end + 1, " %*c %*s %*s %*s %*s %*s %lu", &flags) == 1 &&
	       flags & KERNEL_THREAD;
}

/* ---- one process ------------------------------------------------------- */

static int add_mounts(struct scan *s, const char *path)
{
	struct mount_list mounts = { 0 };
	int ret = mounts_load_file(path, &mounts);

	for (size_t i = 0; i < mounts.n && !ret; i++)
		if (mounts.m[i].major == s->major && mounts.m[i].minor == s->minor)
			ret = add_number(&s->mounts, mounts.m[i].id);
	mounts_free(&mounts);
	return ret;
}

/* What our device's mounts are called where this process lives. */
static int learn_space(struct scan *s, int dir, const char *pid)
{
	char link[64], path[PATH_MAX];
	ssize_t len = readlinkat(dir, "ns/mnt", link, sizeof(link) - 1);
	unsigned int space;
	int ret;

	if (len < 0)
		return -errno;
	link[len] = '\0';
	if (sscanf(link, "mnt:[%u]", &space) != 1)
		return -EINVAL;
	if (has_number(&s->spaces, space))
		return 0;
	snprintf(path, sizeof(path), "%s/%s/mountinfo", s->proc, pid);
	ret = add_mounts(s, path);
	return ret ?: add_number(&s->spaces, space);
}

static bool is_of_device(const struct scan *s, int fdinfo, const char *fd)
{
	char text[160]; /* the mount's number is in its third line */
	uint64_t mount;

	return !read_at(fdinfo, fd, text, sizeof(text)) && parse_u64(text, "\nmnt_id:", &mount) &&
	       mount <= UINT_MAX && has_number(&s->mounts, (unsigned int)mount);
}

/* 1: it has a file open there; 0: none; -errno. */
static int holds_files(const struct scan *s, int dir)
{
	int fd = openat(dir, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *fdinfo = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int ret = 0;

	if (!fdinfo) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		return ret;
	}
	while (!ret && (entry = readdir(fdinfo)))
		if (isdigit((unsigned char)entry->d_name[0]))
			ret = is_of_device(s, fd, entry->d_name);
	closedir(fdinfo);
	return ret;
}

static int append_holder(struct target_holders *found, pid_t pid, uint64_t io_bytes)
{
	struct target_holder *grown = realloc(found->h, (found->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	found->h = grown;
	grown[found->n++] = (struct target_holder){ .pid = pid, .io_bytes = io_bytes };
	return 0;
}

static int look_at(struct scan *s, const char *pid)
{
	char path[PATH_MAX];
	int dir, ret;

	snprintf(path, sizeof(path), "%s/%s", s->proc, pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return 0; /* gone */
	ret = learn_space(s, dir, pid);
	ret = ret ?: holds_files(s, dir);
	if (ret > 0)
		ret = append_holder(&s->found, (pid_t)atoi(pid), read_io(dir));
	else if (ret < 0 && ret != -ENOENT && ret != -ESRCH && ret != -ENOMEM)
		s->found.n_unreadable += !is_kernel_thread(dir);
	close(dir);
	return ret == -ENOMEM ? ret : 0;
}

/* ---- all of them ------------------------------------------------------- */

static int by_io(const void *a, const void *b)
{
	const struct target_holder *x = a, *y = b;

	if (x->io_bytes != y->io_bytes)
		return x->io_bytes > y->io_bytes ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* The device of the mount: of several at one place the last lies on top. */
static int find_number(struct scan *s, const char *path)
{
	struct mount_list mounts = { 0 };
	char file[PATH_MAX], clean[PATH_MAX];
	int ret;

	snprintf(file, sizeof(file), "%s/self/mountinfo", s->proc);
	ret = mounts_load_file(file, &mounts);
	if (ret)
		return ret;
	ret = -ENOENT;
	for (size_t i = 0; i < mounts.n; i++) {
		const struct mount_entry *m = &mounts.m[i];

		text_sanitize(clean, sizeof(clean), m->path);
		if (strcmp(m->fstype, "xfs") || strcmp(clean, path))
			continue;
		s->major = m->major;
		s->minor = m->minor;
		ret = 0;
	}
	mounts_free(&mounts);
	return ret;
}

static int look_at_all(struct scan *s)
{
	DIR *proc = opendir(s->proc);
	struct dirent *entry;
	int ret = 0;

	if (!proc)
		return -errno;
	while (!ret && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid())
			ret = look_at(s, entry->d_name);
	closedir(proc);
	return ret;
}

int target_holders_find(const char *proc, const char *path, struct target_holders *ret_holders)
{
	struct scan s = { .proc = proc };
	int ret = find_number(&s, path);

	ret = ret ?: look_at_all(&s);
	free(s.mounts.v);
	free(s.spaces.v);
	if (ret) {
		target_holders_free(&s.found);
		return ret;
	}
	if (s.found.n)
		qsort(s.found.h, s.found.n, sizeof(*s.found.h), by_io);
	*ret_holders = s.found;
	return 0;
}

void target_holders_free(struct target_holders *holders)
{
	free(holders->h);
	memset(holders, 0, sizeof(*holders));
}

/* ---- as targets -------------------------------------------------------- */

static bool is_gluster(const struct target *t, pid_t pid)
{
	return t->pid == pid && (t->kind == TARGET_BRICK || t->kind == TARGET_CLIENT) &&
	       !t->problem[0];
}

/*
 * What is known of pid, all of it or (on_mount) bricks of this mount's device alone: one process
 * may serve many bricks, and those elsewhere were not asked for. How many there are is returned;
 * they are added where all of them have room.
 */
static size_t add_known(const struct target_list *known, pid_t pid, bool on_mount, size_t room,
			struct target_list *list)
{
	const char *device = list->t[0].device;
	size_t n = 0;

	for (int add = 0; add < 2 && n <= room; add++) {
		n = 0;
		for (size_t i = 0; i < known->n; i++) {
			const struct target *t = &known->t[i];

			if (!is_gluster(t, pid) || (on_mount && strcmp(t->device, device)))
				continue;
			if (add)
				list->t[list->n++] = *t;
			n++;
		}
	}
	return n;
}

/* A process as it is, at that place of the list. */
static void add_plain(pid_t pid, bool has_room, struct target_list *list)
{
	struct target *mount = &list->t[0], t;
	char err[256];

	if (target_of_process(pid, &t, err, sizeof(err)))
		return; /* it has ended */
	if (t.problem[0]) {
		mount->n_unreadable++;
	} else if (!has_room) {
		mount->n_left_out++;
	} else {
		snprintf(t.device, sizeof(t.device), "%s", mount->device);
		snprintf(t.fstype, sizeof(t.fstype), "%s", mount->fstype);
		list->t[list->n++] = t;
		mount->n_procs++;
	}
}

static void add_holder(const struct target_list *known, pid_t pid, size_t room,
		       struct target_list *list)
{
	size_t n = add_known(known, pid, true, room, list);

	n = n ?: add_known(known, pid, false, room, list);
	if (!n)
		add_plain(pid, room > 0, list);
	else if (n <= room)
		list->t[0].n_procs++;
	else
		list->t[0].n_left_out++;
}

int target_add_holders(const char *proc, const struct target_list *known,
		       const struct target *mount, size_t max, struct target_list *ret_list)
{
	struct target_list list = { .t = calloc(max, sizeof(*list.t)), .n = 1 };
	struct target_holders holders = { 0 };
	int ret;

	if (!list.t)
		return -ENOMEM;
	list.t[0] = *mount;
	ret = target_holders_find(proc, mount->path, &holders);
	if (ret) {
		target_list_free(&list);
		return ret;
	}
	list.t[0].n_unreadable = (unsigned int)holders.n_unreadable;
	for (size_t i = 0; i < holders.n; i++)
		add_holder(known, holders.h[i].pid, max - list.n, &list);
	target_holders_free(&holders);
	*ret_list = list;
	return 0;
}
