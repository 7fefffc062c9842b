// SPDX-License-Identifier: Apache-2.0
/*
 * target_match.c: what a user's word means among the targets there are. The more a word says, the
 * earlier it is tried: a path or a pid names one thing, a volume may name several bricks and
 * clients.
 */
#include "target.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procmem.h"
#include "target_mounts.h"
#include "text.h"

#define MAX_LISTED 8 /* targets that a message names */

typedef bool (*match_fn)(const struct target *t, const char *word);

const char *target_kind_name(enum target_kind kind)
{
	switch (kind) {
	case TARGET_BRICK:
		return "brick";
	case TARGET_CLIENT:
		return "client";
	case TARGET_XFS:
		return "xfs";
	case TARGET_DEVICE:
		return "device";
	case TARGET_PROCESS:
		return "process";
	}
	return "?";
}

const char *target_describe(const struct target *t, char *buf, size_t size)
{
	switch (t->kind) {
	case TARGET_BRICK:
		if (t->path[0])
			snprintf(buf, size, "%s:%s", t->volume, t->path);
		else
			snprintf(buf, size, "brick of volume %s", t->volume);
		break;
	case TARGET_CLIENT:
		snprintf(buf, size, "client %s%s%s", t->volume, t->path[0] ? " on " : "", t->path);
		break;
	case TARGET_XFS:
		snprintf(buf, size, "xfs %s on %s", t->path, t->device);
		break;
	case TARGET_DEVICE:
		snprintf(buf, size, "device %s", t->device);
		break;
	case TARGET_PROCESS:
		snprintf(buf, size, "process %d (%s)", (int)t->pid, t->comm);
		break;
	}
	return buf;
}

/* Equal but for slashes at the end. */
static bool same_path(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);

	while (a_len > 1 && a[a_len - 1] == '/')
		a_len--;
	while (b_len > 1 && b[b_len - 1] == '/')
		b_len--;
	return a_len && a_len == b_len && !memcmp(a, b, a_len);
}

static bool is_number(const char *word)
{
	size_t len = strspn(word, "0123456789");

	return len && len < 10 && !word[len];
}

static bool match_volume_and_path(const struct target *t, const char *word)
{
	size_t len = strlen(t->volume);

	return t->kind == TARGET_BRICK && !strncmp(word, t->volume, len) && word[len] == ':' &&
	       same_path(word + len + 1, t->path);
}

static bool match_brick_path(const struct target *t, const char *word)
{
	return t->kind == TARGET_BRICK && same_path(word, t->path);
}

static bool match_client_path(const struct target *t, const char *word)
{
	return t->kind == TARGET_CLIENT && same_path(word, t->path);
}

static bool match_xfs_path(const struct target *t, const char *word)
{
	return t->kind == TARGET_XFS && same_path(word, t->path);
}

/* "/dev/loop0" or "loop0" */
static bool is_device(const struct target *t, const char *word)
{
	const char *base = strrchr(t->device, '/');

	return t->device[0] && (!strcmp(word, t->device) || (base && !strcmp(word, base + 1)));
}

/* A device word means the brick on it, where there is one. */
static bool match_brick_device(const struct target *t, const char *word)
{
	return t->kind == TARGET_BRICK && is_device(t, word);
}

static bool match_device(const struct target *t, const char *word)
{
	return t->kind == TARGET_DEVICE && is_device(t, word);
}

static bool match_pid(const struct target *t, const char *word)
{
	return t->pid > 0 && is_number(word) && atoi(word) == t->pid;
}

static bool match_brick_volume(const struct target *t, const char *word)
{
	return t->kind == TARGET_BRICK && strcmp(word, "-") && !strcmp(word, t->volume);
}

static bool match_client_volume(const struct target *t, const char *word)
{
	return t->kind != TARGET_BRICK && strcmp(word, "-") && !strcmp(word, t->volume);
}

/* From the most particular meaning to the least; the first that anything has is the word's. */
static const match_fn meanings[] = {
	match_volume_and_path, match_brick_path, match_client_path, match_brick_device,
	match_xfs_path,        match_device,     match_pid,         match_brick_volume,
	match_client_volume,
};

__attribute__((format(printf, 4, 5))) static void append(char *buf, size_t size, size_t *len,
							 const char *fmt, ...)
{
	va_list ap;
	int n;

	if (*len >= size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(buf + *len, size - *len, fmt, ap);
	va_end(ap);
	if (n > 0)
		*len += (size_t)n;
}

/* The first targets that match (all where match is NULL); the rest as a number. */
static void list_targets(const struct target_list *list, match_fn match, const char *word,
			 char *err, size_t err_size, size_t len)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < list->n; i++) {
		char name[4400];

		if (match && !match(&list->t[i], word))
			continue;
		target_describe(&list->t[i], name, sizeof(name));
		if (left || shown == MAX_LISTED || len + strlen(name) + 70 >= err_size) {
			left++;
			continue;
		}
		append(err, err_size, &len, "%s%s", shown++ ? ", " : "", name);
		if (list->t[i].pid && list->t[i].kind != TARGET_PROCESS)
			append(err, err_size, &len, " (pid %d)", (int)list->t[i].pid);
	}
	if (left)
		append(err, err_size, &len, " and %zu more: see 'bricktop list'", left);
	else if (!shown)
		append(err, err_size, &len, "nothing");
}

static void read_comm(pid_t pid, char *comm, size_t size)
{
	char path[32], raw[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(raw, sizeof(raw), file))
			raw[strcspn(raw, "\n")] = '\0';
		fclose(file);
	}
	text_sanitize(comm, size, raw);
}

/* The process that a thread belongs to; 0 where that cannot be read. */
static pid_t read_tgid(pid_t tid)
{
	char path[32], line[256];
	FILE *file;
	int tgid = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Tgid: %d", &tgid) == 1)
			break;
	if (file)
		fclose(file);
	return tgid;
}

int target_of_process(pid_t pid, struct target *ret_target, char *err, size_t err_size)
{
	struct target t = { .kind = TARGET_PROCESS, .pid = pid, .volume = "-", .version = "-" };
	struct procmem *pm = NULL;
	char path[32];
	pid_t tgid;
	int ret;

	snprintf(path, sizeof(path), "/proc/%d", (int)t.pid);
	if (access(path, F_OK))
		return -ENOENT;
	tgid = read_tgid(t.pid);
	if (tgid && tgid != t.pid) {
		snprintf(err, err_size, "%d is a thread of process %d: attach to that", (int)t.pid,
			 (int)tgid);
		return -EINVAL;
	}
	ret = procmem_open(t.pid, &pm);
	if (ret == -ESRCH) {
		snprintf(err, err_size,
			 "process %d has no memory: it has ended, or is the kernel's", (int)t.pid);
		return -EINVAL;
	}
	if (ret)
		snprintf(t.problem, sizeof(t.problem), "its memory may not be read: %s",
			 strerror(-ret));
	else
		t.start_ticks = procmem_start_ticks(pm);
	procmem_close(pm);
	read_comm(t.pid, t.comm, sizeof(t.comm));
	*ret_target = t;
	return 0;
}

/* Any other process, by its pid. */
static int resolve_process(const char *word, struct target *ret_target, char *err, size_t err_size)
{
	if (!is_number(word) || atoi(word) <= 0)
		return -ENOENT;
	return target_of_process(atoi(word), ret_target, err, err_size);
}

/* Any other mount, by its place, of what lies on a block device. */
static int resolve_mount(const char *word, struct target *ret_target)
{
	struct target t = { .kind = TARGET_DEVICE, .volume = "-", .version = "-" };
	struct mount_list mounts = { 0 };
	const struct mount_entry *m;
	struct stat st;
	int ret = mounts_load(getpid(), &mounts);

	if (ret)
		return ret;
	m = mounts_find(&mounts, word);
	if (m && same_path(m->path, word) && !stat(m->source, &st) && S_ISBLK(st.st_mode)) {
		if (!strcmp(m->fstype, "xfs"))
			t.kind = TARGET_XFS;
		text_sanitize(t.device, sizeof(t.device), m->source);
		text_sanitize(t.path, sizeof(t.path), m->path);
		text_sanitize(t.fstype, sizeof(t.fstype), m->fstype);
		*ret_target = t;
	} else {
		ret = -ENOENT;
	}
	mounts_free(&mounts);
	return ret;
}

/* Any other block device, by its file or its name below /dev. */
static int resolve_device(const char *word, struct target *ret_target)
{
	struct target t = { .kind = TARGET_DEVICE, .volume = "-", .version = "-" };
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", strchr(word, '/') ? "" : "/dev/", word);
	if (stat(path, &st) || !S_ISBLK(st.st_mode))
		return -ENOENT;
	text_sanitize(t.device, sizeof(t.device), path);
	text_sanitize(t.path, sizeof(t.path), path);
	*ret_target = t;
	return 0;
}

int target_resolve(const struct target_list *list, const char *word, struct target *ret_target,
		   char *err, size_t err_size)
{
	char clean[300], told[sizeof(ret_target->path) + sizeof(ret_target->volume)];
	const char *raw = word;
	size_t len = 0;
	int ret;

	text_sanitize(clean, sizeof(clean), word);
	/* names are kept harmless: what is compared with them has to be, too */
	word = text_sanitize(told, sizeof(told), word);
	for (size_t m = 0; m < sizeof(meanings) / sizeof(meanings[0]); m++) {
		const struct target *found = NULL;
		size_t n = 0;

		for (size_t i = 0; i < list->n; i++) {
			if (!meanings[m](&list->t[i], word))
				continue;
			if (!n++)
				found = &list->t[i];
		}
		if (n == 1) {
			*ret_target = *found;
			return 0;
		}
		if (n > 1) {
			append(err, err_size, &len, "'%s' is not one target but %zu: ", clean, n);
			list_targets(list, meanings[m], word, err, err_size, len);
			return -EEXIST;
		}
	}
	ret = resolve_process(word, ret_target, err, err_size);
	if (ret != -ENOENT)
		return ret;
	if (!resolve_device(raw, ret_target) || !resolve_mount(raw, ret_target))
		return 0;
	append(err, err_size, &len, "no target '%s' on this host; there is ", clean);
	list_targets(list, NULL, word, err, err_size, len);
	return -ENOENT;
}
