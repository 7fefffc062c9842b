/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c: reading /proc/PID/task. The directory stays open, so that a process number that is
 * used again never shows another process's threads. Two small files are read for each thread.
 */
#include "threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "text.h"

#define FILE_BYTES 1024 /* stat has some 350 */

struct threads {
	DIR *dir;
	uint64_t tick_ns;
	struct model_thread *rows;
	size_t n, cap;
};

/* ---- names ------------------------------------------------------------- */

/* What GlusterFS's threads do, by the begin of their names without the prefix. */
static const struct {
	const char *name, *pool;
} pools[] = {
	{ "iotwr", "io-threads" },     { "epoll", "event threads" },
	{ "fuseproc", "fuse reader" }, { "fusenoti", "fuse notify" },
	{ "posixaio", "posix-aio" },   { "posixhc", "posix health" },
	{ "posixfsy", "posix fsync" }, { "posixctx", "posix janitor" },
	{ "sproc", "synctask" },       { "rpcrqhnd", "rpc requests" },
	{ "clog", "changelog" },       { "timer", "timer" },
};

static const char *strip_prefix(const char *comm)
{
	static const char *const prefixes[] = { "glfs_", "gluster" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(comm, prefixes[i], len))
			return comm + len;
	}
	return NULL;
}

void threads_pool(const char *comm, char *dst, size_t dst_size)
{
	const char *name = strip_prefix(comm);
	size_t len;

	for (size_t i = 0; name && i < sizeof(pools) / sizeof(pools[0]); i++) {
		if (strncmp(name, pools[i].name, strlen(pools[i].name)) != 0)
			continue;
		snprintf(dst, dst_size, "%s", pools[i].pool);
		return;
	}
	len = strlen(comm);
	while (len > 0 && strchr("0123456789-_:/.# ", comm[len - 1]))
		len--;
	if (!len) /* nothing but a number */
		len = strlen(comm);
	snprintf(dst, dst_size, "%.*s", (int)len, comm);
}

/* ---- files ------------------------------------------------------------- */

int threads_parse_schedstat(const char *text, struct model_thread *thread)
{
	unsigned long long oncpu, runnable, slices;

	if (sscanf(text, "%llu %llu %llu", &oncpu, &runnable, &slices) != 3)
		return -EINVAL;
	/* where the kernel does not count, it prints zeros: no thread exists that never ran */
	thread->has_times = slices > 0;
	thread->oncpu_ns = oncpu;
	thread->runnable_ns = runnable;
	return 0;
}

int threads_parse_stat(const char *text, struct model_thread *thread)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	unsigned long long ticks;
	char comm[64];

	if (!open || !close || close < open)
		return -EINVAL;
	/* fields 3 (state) to 21, then 22: starttime */
	if (sscanf(close + 1,
		   " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
		   " %llu",
		   &ticks) != 1)
		return -EINVAL;
	thread->start_ticks = ticks;
	snprintf(comm, sizeof(comm), "%.*s", (int)(close - open - 1), open + 1);
	text_sanitize(thread->comm, sizeof(thread->comm), comm);
	threads_pool(thread->comm, thread->pool, sizeof(thread->pool));
	return 0;
}

static int read_file(int dir, const char *tid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/%s", tid, name);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		ret = -errno;
	else
		buf[n] = '\0';
	close(fd);
	return ret;
}

/* boot_ns: CLOCK_BOOTTIME, which start times count, less CLOCK_MONOTONIC. */
static int read_thread(const struct threads *t, const char *tid, int64_t boot_ns,
		       struct model_thread *ret)
{
	char buf[FILE_BYTES];
	int dir = dirfd(t->dir);
	int64_t born_ns;
	int err;

	memset(ret, 0, sizeof(*ret));
	ret->tid = atoi(tid);
	err = read_file(dir, tid, "stat", buf, sizeof(buf));
	err = err ?: threads_parse_stat(buf, ret);
	if (err)
		return err;
	born_ns = (int64_t)(ret->start_ticks * t->tick_ns) - boot_ns;
	ret->born_ns = born_ns > 0 ? (uint64_t)born_ns : 0;
	/* a kernel without it: the thread is shown, its times are not known */
	err = read_file(dir, tid, "schedstat", buf, sizeof(buf));
	if (err == -ESRCH)
		return err;
	return err ? 0 : threads_parse_schedstat(buf, ret);
}

/* ---- the whole --------------------------------------------------------- */

static int compare_tids(const void *a, const void *b)
{
	const struct model_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int grow(struct threads *t)
{
	size_t cap = t->cap ? t->cap * 2 : 64;
	struct model_thread *rows;

	if (t->n < t->cap)
		return 0;
	if (t->n >= MODEL_MAX_THREADS)
		return -ENOSPC;
	rows = realloc(t->rows, cap * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	t->rows = rows;
	t->cap = cap;
	return 0;
}

int threads_read(struct threads *t, const struct model_thread **ret_threads, size_t *ret_n)
{
	int64_t boot_ns = (int64_t)clock_ns(CLOCK_BOOTTIME) - (int64_t)clock_mono_ns();
	const struct dirent *d;
	int err = 0;

	t->n = 0;
	rewinddir(t->dir);
	while (!err && (d = readdir(t->dir))) {
		if (d->d_name[0] < '0' || d->d_name[0] > '9')
			continue;
		err = grow(t);
		if (!err && !read_thread(t, d->d_name, boot_ns, &t->rows[t->n]))
			t->n++;
	}
	if (err == -ENOMEM)
		return err;
	if (!t->n)
		return -ESRCH;
	qsort(t->rows, t->n, sizeof(*t->rows), compare_tids);
	*ret_threads = t->rows;
	*ret_n = t->n;
	return err;
}

int threads_open(pid_t pid, struct threads **ret_t)
{
	struct threads *t = calloc(1, sizeof(*t));
	char path[32];

	if (!t)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	t->dir = opendir(path);
	if (!t->dir) {
		int err = -errno;

		free(t);
		return err;
	}
	t->tick_ns = CLOCK_NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	*ret_t = t;
	return 0;
}

void threads_close(struct threads *t)
{
	if (!t)
		return;
	closedir(t->dir);
	free(t->rows);
	free(t);
}
