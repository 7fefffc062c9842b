/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_path.c: see gluster_path.h. A directory's entry below .glusterfs is a symbolic link
 * "../../aa/bb/<parent's gfid>/<name>" (xlators/storage/posix/src/posix-handle.c); a file's is a
 * hard link, and trusted.gfid2path.<hash>, on unless storage.gfid2path is switched off, is
 * "<parent's gfid>/<name>" (posix-gfid-path.c), one for each of its names.
 */
#include "gluster_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "text.h"

#define MAX_DEPTH  64
#define LIST_BYTES 16384
#define NAMED_BY   "trusted.gfid2path."

static bool is_root(const char *gfid)
{
	return !strcmp(gfid, "00000000-0000-0000-0000-000000000001");
}

static bool is_gfid(const char *text)
{
	return strspn(text, "0123456789abcdef-") == TEXT_GFID - 1 && text[TEXT_GFID - 1] == '/';
}

static int entry_path(const char *brick, const char *gfid, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%s/.glusterfs/%.2s/%.2s/%s", brick, gfid, gfid + 2, gfid);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* "<parent's gfid>/<name>" of a directory. -EINVAL: it is none. */
static int read_link(const char *entry, char *named, size_t size)
{
	char target[PATH_MAX];
	ssize_t n = readlink(entry, target, sizeof(target) - 1);
	const char *parent;

	if (n < 0)
		return -errno;
	target[n] = '\0';
	parent = target + strlen("../../aa/bb/");
	if ((size_t)n <= strlen("../../aa/bb/") + TEXT_GFID || !is_gfid(parent))
		return -ENOENT;
	n = snprintf(named, size, "%s", parent);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* The same of a file, by the first name that it knows. */
static int read_names(const char *entry, char *named, size_t size)
{
	char list[LIST_BYTES]; /* no malloc(): this runs in a process forked off one with threads */
	ssize_t n = llistxattr(entry, list, sizeof(list)), len = -1;
	int ret = -ENOENT;

	if (n < 0)
		ret = -errno;
	for (ssize_t at = 0; at < n && len < 0; at += (ssize_t)strlen(list + at) + 1)
		if (!strncmp(list + at, NAMED_BY, strlen(NAMED_BY)))
			len = lgetxattr(entry, list + at, named, size - 1);
	if (len < 0)
		return ret;
	named[len] = '\0';
	return is_gfid(named) ? 0 : -ENOENT;
}

/* "/name" before what there is at *at. */
static int prepend(char *buf, size_t *at, const char *name)
{
	size_t len = strnlen(name, NAME_MAX);

	if (!len || strchr(name, '/') || *at < len + 1)
		return len ? -ENAMETOOLONG : -ENOENT;
	*at -= len;
	memcpy(buf + *at, name, len);
	buf[--*at] = '/';
	return 0;
}

/* A name, and the gfid of its directory, into gfid. */
static int step_up(const char *brick, char gfid[TEXT_GFID], bool first, char *buf, size_t *at,
		   bool *ret_is_dir)
{
	char entry[PATH_MAX], named[TEXT_GFID + NAME_MAX + 1];
	int ret = entry_path(brick, gfid, entry, sizeof(entry));

	ret = ret ?: read_link(entry, named, sizeof(named));
	if (first)
		*ret_is_dir = !ret;
	if (ret == -EINVAL && first)
		ret = read_names(entry, named, sizeof(named));
	ret = ret ?: prepend(buf, at, named + TEXT_GFID);
	if (!ret)
		snprintf(gfid, TEXT_GFID, "%.36s", named);
	return ret;
}

int gluster_path_find(const char *brick, const uint8_t gfid[16], char *path, size_t size,
		      bool *ret_is_dir)
{
	char buf[PATH_MAX], at_gfid[TEXT_GFID];
	size_t at = sizeof(buf) - 1;
	int ret = 0;

	text_gfid(at_gfid, gfid);
	buf[at] = '\0';
	*ret_is_dir = is_root(at_gfid);
	for (int depth = 0; !ret && !is_root(at_gfid); depth++)
		ret = depth == MAX_DEPTH ? -ELOOP :
					   step_up(brick, at_gfid, !depth, buf, &at, ret_is_dir);
	if (!ret && at == sizeof(buf) - 1)
		buf[--at] = '/';
	if (!ret && sizeof(buf) - at > size)
		ret = -ENAMETOOLONG;
	if (!ret)
		memcpy(path, buf + at, sizeof(buf) - at);
	return ret;
}
