// SPDX-License-Identifier: Apache-2.0
/*
 * procmaps.c: the mappings of a process, from /proc/PID/maps, and the path by which this process
 * can open a file that another one maps. The other half of procmem.h. File names in there are
 * chosen by the traced process (or its container): any bytes, any length up to PATH_MAX.
 */
#include "procmem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAX_TEXT_BYTES (64U << 20) /* 65,530 mappings (vm.max_map_count) make about 8 MiB */

/* The kernel writes a newline in a path as \012; everything else comes as it is. */
static char *copy_path(const char *s, size_t len)
{
	char *path = malloc(len + 1);
	size_t out = 0;

	if (!path)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && !memcmp(s + i, "\\012", 4)) {
			path[out++] = '\n';
			i += 3;
		} else {
			path[out++] = s[i];
		}
	}
	path[out] = '\0';
	return path;
}

/* One line, NUL-terminated, e.g. "7f10-7f20 r-xp 00001000 08:01 1234    /usr/lib/x.so". */
static int parse_line(const char *line, size_t len, struct procmap *ret_map)
{
	struct procmap map = { 0 };
	unsigned int major, minor;
	char perms[5];
	int used = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%n", &map.start,
		   &map.end, perms, &map.offset, &major, &minor, &map.inode, &used) != 7 ||
	    strlen(perms) != 4 || map.start >= map.end)
		return -EINVAL;
	while ((size_t)used < len && line[used] == ' ')
		used++;
	map.exec = perms[2] == 'x';
	map.write = perms[1] == 'w';
	map.dev = (uint64_t)major << 32 | minor;
	map.path = copy_path(line + used, len - (size_t)used);
	if (!map.path)
		return -ENOMEM;
	*ret_map = map;
	return 0;
}

static int append_map(struct procmaps *maps, size_t *capacity, const struct procmap *map)
{
	if (maps->n == *capacity) {
		size_t more = *capacity ? *capacity * 2 : 128;
		struct procmap *grown = realloc(maps->maps, more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		maps->maps = grown;
		*capacity = more;
	}
	maps->maps[maps->n++] = *map;
	return 0;
}

int procmaps_parse(const char *text, size_t len, struct procmaps *ret_maps)
{
	char line[PATH_MAX * 4 + 128]; /* a path of newlines alone grows fourfold */
	struct procmaps maps = { 0 };
	size_t capacity = 0;
	int err = 0;

	for (size_t at = 0, line_len; at < len && !err; at += line_len + 1) {
		const char *end = memchr(text + at, '\n', len - at);
		struct procmap map;

		line_len = end ? (size_t)(end - (text + at)) : len - at;
		if (!line_len)
			continue;
		err = -EINVAL;
		if (line_len >= sizeof(line) || memchr(text + at, '\0', line_len))
			break;
		memcpy(line, text + at, line_len);
		line[line_len] = '\0';
		err = parse_line(line, line_len, &map);
		if (!err && maps.n && map.start < maps.maps[maps.n - 1].end)
			err = -EINVAL; /* not ascending: procmaps_find() would go wrong */
		else if (!err)
			err = append_map(&maps, &capacity, &map);
		else
			break;
		if (err)
			free(map.path);
	}
	if (err) {
		procmaps_free(&maps);
		return err;
	}
	*ret_maps = maps;
	return 0;
}

static int read_text(int fd, char **ret_text, size_t *ret_len)
{
	size_t capacity = 64 << 10, have = 0;
	char *text = malloc(capacity);
	int err = text ? 0 : -ENOMEM;

	while (!err) {
		ssize_t n = read(fd, text + have, capacity - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n < 0 ? -errno : 0;
			break;
		}
		have += (size_t)n;
		if (have == capacity) {
			char *grown = capacity < MAX_TEXT_BYTES ? realloc(text, capacity * 2) :
								  NULL;

			if (!grown)
				err = capacity < MAX_TEXT_BYTES ? -ENOMEM : -EFBIG;
			else
				text = grown, capacity *= 2;
		}
	}
	if (err) {
		free(text);
		return err;
	}
	*ret_text = text;
	*ret_len = have;
	return 0;
}

/* A mapping that moved between two read() calls breaks the order: read such a list once more. */
int procmaps_load(pid_t pid, struct procmaps *ret_maps)
{
	int err = -EINVAL;

	for (int tries = 0; tries < 3 && err == -EINVAL; tries++) {
		char path[32], *text = NULL;
		size_t len = 0;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return errno == ENOENT ? -ESRCH : -errno;
		err = read_text(fd, &text, &len);
		close(fd);
		if (!err)
			err = procmaps_parse(text, len, ret_maps);
		free(text);
	}
	return err;
}

void procmaps_free(struct procmaps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		free(maps->maps[i].path);
	free(maps->maps);
	memset(maps, 0, sizeof(*maps));
}

const struct procmap *procmaps_find(const struct procmaps *maps, uint64_t addr)
{
	size_t low = 0, high = maps->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (addr < maps->maps[mid].start)
			high = mid;
		else if (addr >= maps->maps[mid].end)
			low = mid + 1;
		else
			return &maps->maps[mid];
	}
	return NULL;
}

/* Do two paths lead to one file? Only what can be opened counts. */
static bool is_same_file(const char *a, const struct stat *b)
{
	struct stat st;

	return !stat(a, &st) && st.st_dev == b->st_dev && st.st_ino == b->st_ino;
}

/*
 * The name is only a proposal: a package upgrade under a running daemon leaves its old files mapped
 * but deleted, with the new ones at their place; and a name of a chroot or of another mount
 * namespace may mean something else here. The link of the mapping itself always opens what is
 * mapped, but needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE; without it the numbers in the list
 * decide (on overlayfs they are those of the layer below, so there it is a refusal).
 */
int procmem_map_path(pid_t pid, const struct procmap *map, char *buf, size_t size)
{
	char link[80];
	struct stat mapped;
	int len, err;

	if (map->path[0] != '/')
		return -EINVAL; /* [heap], anon_inode:, ... */
	snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		 map->start, map->end);
	err = stat(link, &mapped) ? -errno : 0;
	if (err) {
		mapped.st_dev = makedev(map->dev >> 32, map->dev & 0xffffffff);
		mapped.st_ino = map->inode;
	}
	len = snprintf(buf, size, "/proc/%d/root%s", (int)pid, map->path);
	if (len > 0 && (size_t)len < size && is_same_file(buf, &mapped))
		return 0;
	if (err)
		return err == -EPERM || err == -EACCES ? -EPERM : -ENOENT;
	len = snprintf(buf, size, "%s", link);
	return len > 0 && (size_t)len < size ? 0 : -ENAMETOOLONG;
}

int procmem_host_path(pid_t pid, const char *path, char *buf, size_t size)
{
	struct procmaps maps = { 0 };
	int err = procmaps_load(pid, &maps);
	size_t i = 0;

	if (err)
		return err;
	while (i < maps.n && strcmp(maps.maps[i].path, path) != 0)
		i++;
	err = i < maps.n ? procmem_map_path(pid, &maps.maps[i], buf, size) : -ENOENT;
	procmaps_free(&maps);
	return err;
}
