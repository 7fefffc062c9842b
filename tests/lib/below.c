// SPDX-License-Identifier: Apache-2.0
/*
 * below.c: file loads whose time is known to go to one layer below the system call. Each waits for
 * a line on its standard input, works, and prints what its threads' own clocks saw, as JSON: calls,
 * their wall time, the CPU time that the threads used in them, and how long it all took. Knows
 * nothing of bricktop.
 *
 *   below direct-read FILE READS            one thread, 4 KiB O_DIRECT reads
 *   below write FILE THREADS WRITES SIZE    threads that write to one file, buffered, each to
 *                                           blocks of its own; they run until they wait: nothing
 *                                           else takes the CPU away
 *   below create DIR THREADS FILES          each creates files below, and syncs some
 *   below dirty FILE MIB                    one thread, buffered writes of 128 KiB
 *   below map FILE MIB                      the same through a shared mapping
 *   below sync FILE SYNCS FILLER MIB        fsyncs of one file behind another thread's pages of it
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS  64
#define FILES_A_SYNC 64

struct clocks {
	uint64_t calls, wall_ns, cpu_ns;
};

struct worker {
	pthread_t thread;
	const char *path;
	unsigned long count, size, number;
	unsigned long blocks; /* that it writes to, one after another */
	struct clocks seen;
	int error;
};

static atomic_int stop;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

/* One call between two readings of both clocks; ok: it did what it should. */
#define TIMED(worker, ok)                                                        \
	do {                                                                     \
		uint64_t cpu_ = now_ns(CLOCK_THREAD_CPUTIME_ID);                 \
		uint64_t wall_ = now_ns(CLOCK_MONOTONIC);                        \
		int ok_ = (ok);                                                  \
		(worker)->seen.wall_ns += now_ns(CLOCK_MONOTONIC) - wall_;       \
		(worker)->seen.cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_; \
		(worker)->seen.calls++;                                          \
		if (!ok_ && !(worker)->error)                                    \
			(worker)->error = errno ? errno : EIO;                   \
	} while (0)

static void *read_direct(void *arg)
{
	struct worker *w = arg;
	int fd = open(w->path, O_RDONLY | O_DIRECT);
	void *buf;

	if (fd < 0 || posix_memalign(&buf, 4096, 4096)) {
		w->error = errno;
		return NULL;
	}
	for (unsigned long i = 0; i < w->count; i++)
		TIMED(w, pread(fd, buf, 4096, (off_t)(i % 1024) * 4096) == 4096);
	free(buf);
	close(fd);
	return NULL;
}

static void run_undisturbed(void)
{
	struct sched_param param = { .sched_priority = 1 };

	(void)sched_setscheduler(0, SCHED_FIFO, &param);
}

static void *write_file(void *arg)
{
	struct worker *w = arg;
	int fd = open(w->path, O_WRONLY | O_CREAT, 0644);
	size_t step = w->size < 4096 ? 4096 : w->size;
	char *buf = calloc(1, w->size);

	if (fd < 0 || !buf) {
		w->error = errno;
		return NULL;
	}
	for (unsigned long i = 0; i < w->count && !stop; i++) {
		unsigned long block = w->number * w->blocks + i % w->blocks;

		TIMED(w, pwrite(fd, buf, w->size, (off_t)(block * step)) == (ssize_t)w->size);
	}
	free(buf);
	close(fd);
	return NULL;
}

/* Names and attributes are long, for the log's sake; every few files one is synced. */
static void *create_files(void *arg)
{
	struct worker *w = arg;
	char path[4096], data[4096] = { 0 }, name[180];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/%lu", w->path, w->number);
	TIMED(w, mkdir(path, 0755) == 0);
	for (unsigned long i = 0; i < w->count; i++) {
		int fd = -1;

		snprintf(path, sizeof(path), "%s/%lu/%s-%lu", w->path, w->number, name, i);
		TIMED(w, (fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644)) >= 0);
		TIMED(w, fsetxattr(fd, "user.below", data, 200, 0) == 0);
		if (i % FILES_A_SYNC == 0) {
			TIMED(w, write(fd, data, sizeof(data)) == (ssize_t)sizeof(data));
			TIMED(w, fsync(fd) == 0);
		}
		TIMED(w, close(fd) == 0);
	}
	return NULL;
}

static void *dirty_file(void *arg)
{
	struct worker *w = arg;
	int fd = open(w->path, O_WRONLY | O_CREAT, 0644);
	char *buf = calloc(1, w->size);

	if (fd < 0 || !buf) {
		w->error = errno;
		return NULL;
	}
	for (unsigned long i = 0; i < w->count; i++)
		TIMED(w, write(fd, buf, w->size) == (ssize_t)w->size);
	free(buf);
	close(fd);
	return NULL;
}

static void *dirty_map(void *arg)
{
	struct worker *w = arg;
	int fd = open(w->path, O_RDWR | O_CREAT, 0644);
	size_t len = w->count * w->size;
	char *map;

	if (fd < 0 || posix_fallocate(fd, 0, (off_t)len)) {
		w->error = errno;
		return NULL;
	}
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		w->error = errno;
		return NULL;
	}
	for (size_t at = 0; at < len; at += 4096)
		TIMED(w, (*(volatile char *)(map + at) = 1));
	munmap(map, len);
	close(fd);
	return NULL;
}

static void *sync_file(void *arg)
{
	struct worker *w = arg;
	int fd = open(w->path, O_WRONLY | O_CREAT, 0644);

	if (fd < 0) {
		w->error = errno;
		return NULL;
	}
	for (unsigned long i = 0; i < w->count; i++) {
		usleep(1000);
		TIMED(w, fsync(fd) == 0);
	}
	stop = 1;
	close(fd);
	return NULL;
}

static int run(struct worker *workers, unsigned int n, void *(*fn)(void *))
{
	uint64_t began = now_ns(CLOCK_MONOTONIC);
	struct clocks all = { 0 };
	unsigned int i;
	int error = 0;

	for (i = 0; i < n; i++)
		if (pthread_create(&workers[i].thread, NULL, fn, &workers[i]))
			return 1;
	for (i = 0; i < n; i++) {
		pthread_join(workers[i].thread, NULL);
		all.calls += workers[i].seen.calls;
		all.wall_ns += workers[i].seen.wall_ns;
		all.cpu_ns += workers[i].seen.cpu_ns;
		error = error ? error : workers[i].error;
	}
	printf("{\"calls\":%llu,\"wall_ns\":%llu,\"cpu_ns\":%llu,\"elapsed_ns\":%llu}\n",
	       (unsigned long long)all.calls, (unsigned long long)all.wall_ns,
	       (unsigned long long)all.cpu_ns,
	       (unsigned long long)(now_ns(CLOCK_MONOTONIC) - began));
	if (error)
		fprintf(stderr, "below: %s\n", strerror(error));
	return error != 0;
}

static int run_writers(struct worker *w, unsigned int n)
{
	run_undisturbed();
	return run(w, n, write_file);
}

/* The writer's thread runs beside the syncs and is not in their clocks. */
static int run_sync(struct worker *syncer, struct worker *writer)
{
	int status;

	if (pthread_create(&writer->thread, NULL, write_file, writer))
		return 1;
	status = run(syncer, 1, sync_file);
	pthread_join(writer->thread, NULL);
	return status || writer->error != 0;
}

static unsigned long number(int argc, char **argv, int i, unsigned long otherwise)
{
	return i < argc ? strtoul(argv[i], NULL, 0) : otherwise;
}

int main(int argc, char **argv)
{
	struct worker w[MAX_THREADS] = { 0 };
	unsigned int i, n;
	char line[16];

	if (argc < 3 || !fgets(line, sizeof(line), stdin))
		return 2;
	n = (unsigned int)number(argc, argv, 3, 1) % (MAX_THREADS + 1);
	for (i = 0; i < MAX_THREADS; i++)
		w[i] = (struct worker){ .path = argv[2],
					.number = i,
					.size = 128 << 10,
					.count = number(argc, argv, 3, 1) };
	if (!strcmp(argv[1], "direct-read"))
		return run(w, 1, read_direct);
	if (!strcmp(argv[1], "dirty") || !strcmp(argv[1], "map")) {
		w[0].count *= 8;
		return run(w, 1, argv[1][0] == 'd' ? dirty_file : dirty_map);
	}
	for (i = 0; i < MAX_THREADS; i++) {
		w[i].count = number(argc, argv, 4, 1);
		w[i].size = number(argc, argv, 5, 4096);
		w[i].blocks = w[i].count;
	}
	if (!strcmp(argv[1], "write"))
		return run_writers(w, n);
	if (!strcmp(argv[1], "create"))
		return run(w, n, create_files);
	if (!strcmp(argv[1], "sync")) {
		w[0].count = n;
		w[1].count = ~0UL;
		w[1].blocks = 64;
		w[1].size = number(argc, argv, 4, 1 << 20);
		return run_sync(&w[0], &w[1]);
	}
	return 2;
}
