// SPDX-License-Identifier: Apache-2.0
/*
 * procmem.c: another process's memory, by /proc/PID/mem, which stays tied to the address space that
 * was opened: after an exec or an exit reads fail, they never reach a process that got the pid
 * next. A memory image takes the process's place in tests. Must not know what is being read.
 */
#include "procmem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES         4096ULL
#define LOWEST_ADDR        4096ULL      /* page 0 is never mapped: a null pointer plus a field */
#define HIGHEST_ADDR       (1ULL << 56) /* user space ends below this, with 5-level tables too */
#define STRING_CHUNK_BYTES 128

struct procmem {
	pid_t pid;
	int fd; /* -1: an image */
	uint64_t start_ticks;
	uint64_t failures;
	const struct procmem_segment *segments;
	size_t n_segments;
};

/* The state letter and field 22 of a stat line. comm may hold ") " itself: the last ')' ends it. */
static int parse_stat(const char *text, char *ret_state, uint64_t *ret_ticks)
{
	const char *p = strrchr(text, ')');
	unsigned long long ticks;
	char state, *end;

	if (!p || sscanf(p + 1, " %c", &state) != 1)
		return -EINVAL;
	for (int field = 2; field < 22; field++) {
		p = strchr(p + 1, ' ');
		if (!p)
			return -EINVAL;
	}
	ticks = strtoull(p, &end, 10);
	if (end == p)
		return -EINVAL;
	*ret_state = state;
	*ret_ticks = ticks;
	return 0;
}

static int read_stat(int dir_fd, char *ret_state, uint64_t *ret_ticks)
{
	char text[1024];
	ssize_t len;
	int fd = openat(dir_fd, "stat", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return -ESRCH;
	text[len] = '\0';
	return parse_stat(text, ret_state, ret_ticks);
}

int procmem_open(pid_t pid, struct procmem **ret_pm)
{
	struct procmem *pm;
	char path[32], state = '\0';
	int dir_fd, err;

	/* One directory fd for both files: it cannot come to mean another process in between. */
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno; /* hidepid looks like absence */
	pm = calloc(1, sizeof(*pm));
	if (!pm) {
		err = -ENOMEM;
		goto out_dir;
	}
	pm->pid = pid;
	pm->fd = openat(dir_fd, "mem", O_RDONLY | O_CLOEXEC);
	if (pm->fd < 0) {
		err = errno == ENOENT ? -ESRCH : -errno;
		goto out_free;
	}
	err = read_stat(dir_fd, &state, &pm->start_ticks);
	if (!err && (state == 'Z' || state == 'X'))
		err = -ESRCH;
	if (err)
		goto out_close;
	close(dir_fd);
	*ret_pm = pm;
	return 0;

out_close:
	close(pm->fd);
out_free:
	free(pm);
out_dir:
	close(dir_fd);
	return err;
}

int procmem_open_image(const struct procmem_segment *segments, size_t n, struct procmem **ret_pm)
{
	struct procmem *pm = calloc(1, sizeof(*pm));

	if (!pm)
		return -ENOMEM;
	pm->fd = -1;
	pm->segments = segments;
	pm->n_segments = n;
	*ret_pm = pm;
	return 0;
}

void procmem_close(struct procmem *pm)
{
	if (!pm)
		return;
	if (pm->fd >= 0)
		close(pm->fd);
	free(pm);
}

pid_t procmem_pid(const struct procmem *pm)
{
	return pm->pid;
}

uint64_t procmem_start_ticks(const struct procmem *pm)
{
	return pm->start_ticks;
}

uint64_t procmem_read_failures(const struct procmem *pm)
{
	return pm->failures;
}

static int read_image(const struct procmem *pm, uint64_t addr, void *buf, size_t len)
{
	for (size_t i = 0; i < pm->n_segments; i++) {
		const struct procmem_segment *seg = &pm->segments[i];

		if (addr >= seg->addr && addr - seg->addr < seg->len &&
		    len <= seg->len - (addr - seg->addr)) {
			memcpy(buf, (const char *)seg->data + (addr - seg->addr), len);
			return 0;
		}
	}
	return -EFAULT;
}

static int read_fd(const struct procmem *pm, uint64_t addr, char *buf, size_t len)
{
	while (len) {
		ssize_t n = pread(pm->fd, buf, len, (off_t)addr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ESRCH ? -ESRCH : -EFAULT;
		if (n == 0)
			return -ESRCH; /* the address space has no users left */
		buf += n;
		addr += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int procmem_read(struct procmem *pm, uint64_t addr, void *buf, size_t len)
{
	int err = -EFAULT;

	/* Pointers come from the process: most wild ones are caught here, without a system call. */
	if (addr >= LOWEST_ADDR && addr < HIGHEST_ADDR && len < HIGHEST_ADDR - addr)
		err = pm->fd < 0 ? read_image(pm, addr, buf, len) : read_fd(pm, addr, buf, len);
	if (err)
		pm->failures++;
	return err;
}

int procmem_read_u64(struct procmem *pm, uint64_t addr, uint64_t *ret_value)
{
	uint64_t value;
	int err = procmem_read(pm, addr, &value, sizeof(value));

	if (!err)
		*ret_value = value;
	return err;
}

int procmem_read_u32(struct procmem *pm, uint64_t addr, uint32_t *ret_value)
{
	uint32_t value;
	int err = procmem_read(pm, addr, &value, sizeof(value));

	if (!err)
		*ret_value = value;
	return err;
}

/* Bytes of the string to read at once: no chunk crosses a page, so that its end may be the last. */
static size_t chunk_bytes(const struct procmem *pm, uint64_t addr, size_t room)
{
	size_t len = STRING_CHUNK_BYTES;
	size_t to_page_end = (size_t)(PAGE_BYTES - addr % PAGE_BYTES);

	if (pm->fd < 0)
		len = 1; /* an image has segments of any length */
	if (len > to_page_end)
		len = to_page_end;
	return len < room ? len : room;
}

int procmem_read_str(struct procmem *pm, uint64_t addr, char *buf, size_t size)
{
	size_t have = 0;

	if (!size)
		return -EINVAL;
	while (have < size - 1) {
		size_t len = chunk_bytes(pm, addr + have, size - 1 - have);
		int err = procmem_read(pm, addr + have, buf + have, len);

		if (err) {
			buf[0] = '\0';
			return err;
		}
		if (memchr(buf + have, '\0', len))
			return 0;
		have += len;
	}
	buf[have] = '\0';
	return 0;
}
