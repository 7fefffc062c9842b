// SPDX-License-Identifier: Apache-2.0
/*
 * util_tracefs.c: reads /events/CATEGORY/NAME/id of tracefs: where it is mounted, or else of an
 * instance that is attached nowhere and goes with its file descriptor.
 */
#include "util_tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

/* A descriptor of tracefs's root directory, or -errno. */
static int open_root(void)
{
	static const char *const mounted[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	unsigned int i;
	int fs, fd;

	for (i = 0; i < sizeof(mounted) / sizeof(mounted[0]); i++) {
		fd = open(mounted[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && !faccessat(fd, "events", F_OK, 0))
			return fd;
		if (fd >= 0)
			close(fd); /* the mount point is there, the file system is not */
	}
	fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	fd = fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (!fd)
		fd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	close(fs);
	return fd;
}

int util_tracefs_event_id(const char *category, const char *name)
{
	char path[256], text[32];
	int root, fd, id;
	ssize_t len;
	long value;
	char *end;

	root = open_root();
	if (root < 0)
		return root;
	snprintf(path, sizeof(path), "events/%s/%s/id", category, name);
	fd = openat(root, path, O_RDONLY | O_CLOEXEC);
	id = fd < 0 ? -errno : -EINVAL;
	close(root);
	if (fd < 0)
		return id;
	len = read(fd, text, sizeof(text) - 1);
	if (len > 0) {
		text[len] = '\0';
		value = strtol(text, &end, 10);
		if (end != text && value >= 0 && value <= INT_MAX)
			id = (int)value;
	}
	close(fd);
	return id;
}
