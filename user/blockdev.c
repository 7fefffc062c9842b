/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blockdev.c: see blockdev.h. /sys/dev/block/MAJOR:MINOR leads to a device's folder without a
 * search; a partition's lies in its disk's.
 */
#include "blockdev.h"

#include <dirent.h>
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

#include "target_mounts.h"

static uint32_t make_dev(unsigned int major_number, unsigned int minor_number)
{
	return major_number << 20 | (minor_number & 0xfffff);
}

/* One small file below the device's folder, without its newline. 0 or -errno. */
static int read_file(const char *sys, uint32_t dev, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/dev/block/%u:%u/%s", sys, dev >> 20, dev & 0xfffff, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	close(fd);
	buf[n] = '\0';
	if (n && buf[n - 1] == '\n')
		buf[n - 1] = '\0';
	return 0;
}

static int parse_dev(const char *text, uint32_t *ret_dev)
{
	unsigned int major_number, minor_number;

	if (sscanf(text, "%u:%u", &major_number, &minor_number) != 2)
		return -EINVAL;
	*ret_dev = make_dev(major_number, minor_number);
	return 0;
}

/* ---- which device ------------------------------------------------------ */

size_t blockdev_count(const char *sys)
{
	char path[PATH_MAX];
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/class/block", sys);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

int blockdev_disk(const char *sys, uint32_t dev, uint32_t *ret_disk)
{
	char text[64];
	int ret = read_file(sys, dev, "dev", text, sizeof(text));

	if (ret)
		return ret;
	if (read_file(sys, dev, "partition", text, sizeof(text))) {
		*ret_disk = dev;
		return 0;
	}
	ret = read_file(sys, dev, "../dev", text, sizeof(text));
	return ret ?: parse_dev(text, ret_disk);
}

int blockdev_find(const char *sys, const char *device, uint32_t *ret_disk)
{
	const char *base = strrchr(device, '/');
	char path[PATH_MAX], text[64] = "";
	struct stat st;
	uint32_t dev;
	FILE *f;
	int ret;

	if (!stat(device, &st)) {
		if (!S_ISBLK(st.st_mode))
			return -ENOTBLK;
		return blockdev_disk(sys, make_dev(major(st.st_rdev), minor(st.st_rdev)), ret_disk);
	}
	/* a container's name of it, perhaps: what has that name here */
	snprintf(path, sizeof(path), "%s/class/block/%s/dev", sys, base ? base + 1 : device);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	ret = fgets(text, sizeof(text), f) ? parse_dev(text, &dev) : -EIO;
	fclose(f);
	return ret ?: blockdev_disk(sys, dev, ret_disk);
}

int blockdev_name(const char *sys, uint32_t disk, char *name, size_t name_size, char *label,
		  size_t label_size)
{
	char path[PATH_MAX], real[PATH_MAX];
	const char *base;

	label[0] = '\0';
	snprintf(path, sizeof(path), "%s/dev/block/%u:%u", sys, disk >> 20, disk & 0xfffff);
	if (!realpath(path, real))
		return -errno;
	base = strrchr(real, '/');
	snprintf(name, name_size, "%s", base ? base + 1 : real);
	if (read_file(sys, disk, "loop/backing_file", label, label_size) &&
	    read_file(sys, disk, "dm/name", label, label_size))
		label[0] = '\0';
	return 0;
}

/* ---- what lies below --------------------------------------------------- */

static void add_disk(struct blockdev_list *list, uint32_t disk)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->dev[i] == disk)
			return;
	if (list->n == BLOCKDEV_MAX_STACK)
		list->truncated = true;
	else
		list->dev[list->n++] = disk;
}

/*
 * A loop's backing file: the disk of its file system, if that lies on one. By the table of mounts:
 * to ask for the file itself could take for ever, where its disk or its server hangs.
 */
static int find_backing_disk(const char *sys, uint32_t disk, uint32_t *ret_disk)
{
	char file[PATH_MAX] = "";
	struct mount_list mounts;
	const struct mount_entry *m;
	int ret = -ENOENT;

	if (read_file(sys, disk, "loop/backing_file", file, sizeof(file)) || file[0] != '/' ||
	    mounts_load(getpid(), &mounts))
		return -ENOENT;
	m = mounts_find(&mounts, file);
	/* itself a device, perhaps: what holds those is memory */
	if (m && (!strcmp(m->fstype, "devtmpfs") || !strcmp(m->fstype, "tmpfs")))
		ret = blockdev_find(sys, file, ret_disk);
	else if (m)
		ret = blockdev_disk(sys, make_dev(m->major, m->minor), ret_disk);
	mounts_free(&mounts);
	return ret;
}

static void add_slaves(const char *sys, uint32_t disk, struct blockdev_list *list)
{
	char path[PATH_MAX], text[64];
	struct dirent *entry;
	uint32_t dev;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/dev/block/%u:%u/slaves", sys, disk >> 20, disk & 0xfffff);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "slaves/%s/dev", entry->d_name);
		if (!read_file(sys, disk, path, text, sizeof(text)) && !parse_dev(text, &dev) &&
		    !blockdev_disk(sys, dev, &dev))
			add_disk(list, dev);
	}
	if (dir)
		closedir(dir);
}

void blockdev_below(const char *sys, uint32_t disk, struct blockdev_list *ret_list)
{
	struct blockdev_list list = { 0 };
	uint32_t below = disk;

	/* in breadth: the list is what is left to look at; it is bounded, and holds each once */
	for (size_t i = 0; i <= list.n; i++) {
		uint32_t at = i ? list.dev[i - 1] : disk;

		add_slaves(sys, at, &list);
		if (!find_backing_disk(sys, at, &below) && below != disk)
			add_disk(&list, below);
	}
	*ret_list = list;
}

/* ---- statistics -------------------------------------------------------- */

int blockdev_parse_stat(const char *text, struct blockdev_stat *ret_stat)
{
	struct blockdev_stat s = { 0 };
	uint64_t in_flight, queue_ms;
	int n = sscanf(text,
		       "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64
		       "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64
		       "%" SCNu64 "%" SCNu64,
		       &s.read.ios, &s.read.merges, &s.read.sectors, &s.read.ticks_ms, &s.write.ios,
		       &s.write.merges, &s.write.sectors, &s.write.ticks_ms, &in_flight, &s.busy_ms,
		       &queue_ms, &s.discard.ios, &s.discard.merges, &s.discard.sectors,
		       &s.discard.ticks_ms, &s.flushes);

	if (n < 11)
		return -EINVAL;
	*ret_stat = s;
	return 0;
}

int blockdev_read_stat(const char *sys, uint32_t disk, struct blockdev_stat *ret_stat)
{
	char text[512], on[16];
	int ret;

	if (!read_file(sys, disk, "queue/iostats", on, sizeof(on)) && !strcmp(on, "0"))
		return -ENODATA;
	ret = read_file(sys, disk, "stat", text, sizeof(text));
	return ret ?: blockdev_parse_stat(text, ret_stat);
}

int blockdev_read_in_flight(const char *sys, uint32_t disk, unsigned int *ret_reads,
			    unsigned int *ret_writes)
{
	char text[64];
	int ret = read_file(sys, disk, "inflight", text, sizeof(text));

	if (ret)
		return ret;
	return sscanf(text, "%u%u", ret_reads, ret_writes) == 2 ? 0 : -EINVAL;
}
