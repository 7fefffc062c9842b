// SPDX-License-Identifier: Apache-2.0
/*
 * target_mounts.c: /proc/PID/mountinfo. Names in there come from whoever mounts, users of
 * containers included: any bytes, blanks and backslashes as octal escapes.
 */
#include "target_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT_BYTES (16U << 20)
#define MAX_FIELDS     24

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* "\040" -> " ", in place: the text only shrinks. */
static void unescape(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\\' && is_octal(s[1]) && is_octal(s[2]) && is_octal(s[3])) {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

static void free_entry(struct mount_entry *m)
{
	free(m->root);
	free(m->path);
	free(m->fstype);
	free(m->source);
}

void mounts_free(struct mount_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free_entry(&list->m[i]);
	free(list->m);
	memset(list, 0, sizeof(*list));
}

static char *copy_field(const char *field)
{
	char *copy = strdup(field);

	if (copy)
		unescape(copy);
	return copy;
}

/* "36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw"; any number of fields before " -
 * ". */
static int parse_line(char *line, struct mount_entry *ret_entry)
{
	char *fields[MAX_FIELDS], *save = NULL;
	struct mount_entry m = { 0 };
	unsigned int n = 0, dash = 6;

	for (char *f = strtok_r(line, " ", &save); f && n < MAX_FIELDS;
	     f = strtok_r(NULL, " ", &save))
		fields[n++] = f;
	while (dash < n && strcmp(fields[dash], "-"))
		dash++;
	if (dash + 2 >= n || sscanf(fields[0], "%u", &m.id) != 1 ||
	    sscanf(fields[2], "%u:%u", &m.major, &m.minor) != 2)
		return -EINVAL;
	m.root = copy_field(fields[3]);
	m.path = copy_field(fields[4]);
	m.fstype = copy_field(fields[dash + 1]);
	m.source = copy_field(fields[dash + 2]);
	if (!m.root || !m.path || !m.fstype || !m.source) {
		free_entry(&m);
		return -ENOMEM;
	}
	*ret_entry = m;
	return 0;
}

static int append_entry(struct mount_list *list, const struct mount_entry *entry)
{
	if ((list->n & (list->n - 1)) == 0) { /* grown at each power of two */
		size_t more = list->n ? 2 * list->n : 1;
		struct mount_entry *grown = realloc(list->m, more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->m = grown;
	}
	list->m[list->n++] = *entry;
	return 0;
}

int mounts_parse(const char *text, size_t len, struct mount_list *ret_list)
{
	struct mount_list list = { 0 };
	int err = 0;

	for (size_t at = 0, line_len; at < len && err != -ENOMEM; at += line_len + 1) {
		const char *end = memchr(text + at, '\n', len - at);
		struct mount_entry entry;
		char *line;

		line_len = end ? (size_t)(end - (text + at)) : len - at;
		line = strndup(text + at, line_len);
		err = line ? parse_line(line, &entry) : -ENOMEM;
		free(line);
		if (!err) {
			err = append_entry(&list, &entry);
			if (err)
				free_entry(&entry);
		}
	}
	if (err == -ENOMEM) {
		mounts_free(&list);
		return err;
	}
	*ret_list = list;
	return 0;
}

int mounts_load(pid_t pid, struct mount_list *ret_list)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	return mounts_load_file(path, ret_list);
}

int mounts_load_file(const char *path, struct mount_list *ret_list)
{
	char *text = NULL;
	size_t have = 0, capacity = 0;
	ssize_t n = 1;
	int fd, err = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n > 0 && !err) {
		if (have == capacity) {
			size_t more = capacity ? 2 * capacity : 16384;
			char *grown = more <= MAX_TEXT_BYTES ? realloc(text, more) : NULL;

			if (!grown) {
				err = -ENOMEM;
				break;
			}
			text = grown;
			capacity = more;
		}
		n = read(fd, text + have, capacity - have);
		if (n < 0)
			err = -errno;
		else
			have += (size_t)n;
	}
	close(fd);
	if (!err)
		err = mounts_parse(text, have, ret_list);
	free(text);
	return err;
}

const struct mount_entry *mounts_find(const struct mount_list *list, const char *path)
{
	const struct mount_entry *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < list->n; i++) {
		const char *at = list->m[i].path;
		size_t len = strlen(at);

		while (len > 1 && at[len - 1] == '/')
			len--;
		if (len == 1 && at[0] == '/')
			len = 0; /* "/" holds everything */
		if (strncmp(path, at, len) || (path[len] && path[len] != '/'))
			continue;
		if (!best || len >= best_len) {
			best = &list->m[i];
			best_len = len;
		}
	}
	return best;
}
