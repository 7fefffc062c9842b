// SPDX-License-Identifier: Apache-2.0
/*
 * below.c: file loads whose time is known to go to one layer below the system call. Each waits for
 * a line on its standard input, works, and prints what its threads' own clocks saw, as JSON: calls
 * and their wall time; syncs that had nothing to wait for; and, of calls that all hold one lock,
 * how long they must have waited for it, by when the ones before them ended. Knows nothing of
 * bricktop.
 *
 *   below LOAD PATH THREADS COUNT SIZE
 *
 *   direct-read   O_DIRECT reads
 *   read          buffered reads, one here, one there, of what is not in the page cache
 *   write         to one file, buffered, each thread to blocks of its own; threads run until they
 *                 wait: nothing else takes the CPU away
 *   create        each creates files below PATH, and syncs some
 *   burst         creates without a sync; like write, it leaves no CPU to who writes the log
 *   extend        each appends to a PATH.N of its own, O_DIRECT
 *   extend-left   ... buffered
 *   extend-synced ... and syncs after each write
 *   dirty         buffered writes, one after another
 *   map           the same through a shared mapping: COUNT pages
 *   flush         overwrites, each with an fdatasync
 *   behind        fsyncs while SIZE bytes that another thread wrote are on their way to the device,
 *                 each after one that has none of them to wait for
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
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
#define BLOCK        4096
#define FAR          7919 /* blocks from one read to the next: a prime */

struct call {
	uint64_t begin, end;
};

struct worker {
	pthread_t thread;
	const char *path;
	unsigned long count, size, number;
	uint64_t calls, wall_ns, quiet_ns;
	struct call *timed; /* the first count calls */
	int error;
};

static pthread_barrier_t turn;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static void enter_call(struct worker *w, uint64_t begin, int ok)
{
	uint64_t end = now_ns();

	if (w->calls < w->count)
		w->timed[w->calls] = (struct call){ begin, end };
	w->calls++;
	w->wall_ns += end - begin;
	if (!ok && !w->error)
		w->error = errno ? errno : EIO;
}

/* One call between two readings of the clock; ok: it did what it should. */
#define TIMED(worker, ok)                           \
	do {                                        \
		uint64_t begin_ = now_ns();         \
		enter_call((worker), begin_, (ok)); \
	} while (0)

/* A file and a buffer as large as each call; -1 where there is none. */
static int open_file(struct worker *w, const char *path, int flags, void **ret_buf)
{
	int fd = open(path, flags, 0644);

	if (fd < 0 || posix_memalign(ret_buf, BLOCK, w->size)) {
		w->error = errno;
		return -1;
	}
	memset(*ret_buf, 1, w->size);
	return fd;
}

static void *close_file(int fd, void *buf)
{
	free(buf);
	close(fd);
	return NULL;
}

static void *read_direct(void *arg)
{
	struct worker *w = arg;
	void *buf;
	int fd = open_file(w, w->path, O_RDONLY | O_DIRECT, &buf);

	if (fd < 0)
		return NULL;
	for (unsigned long i = 0; i < w->count; i++)
		TIMED(w, pread(fd, buf, w->size, (off_t)(i % 256 * w->size)) == (ssize_t)w->size);
	return close_file(fd, buf);
}

static void *read_uncached(void *arg)
{
	struct worker *w = arg;
	void *buf;
	int fd = open_file(w, w->path, O_RDONLY, &buf);
	unsigned long steps = w->size > BLOCK ? w->size / BLOCK : 1;
	unsigned long blocks;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ||
	    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM))
		w->error = errno ? errno : EIO;
	blocks = (unsigned long)st.st_size / BLOCK / steps;
	for (unsigned long i = 0; blocks && i < w->count; i++) {
		off_t at = (off_t)(i * FAR % blocks * steps * BLOCK);

		TIMED(w, pread(fd, buf, w->size, at) == (ssize_t)w->size);
	}
	return close_file(fd, buf);
}

static void *write_file(void *arg)
{
	struct worker *w = arg;
	size_t step = w->size < BLOCK ? BLOCK : w->size;
	void *buf;
	int fd = open_file(w, w->path, O_WRONLY | O_CREAT, &buf);

	if (fd < 0)
		return NULL;
	for (unsigned long i = 0; i < w->count; i++) {
		off_t at = (off_t)((w->number * w->count + i) * step);

		TIMED(w, pwrite(fd, buf, w->size, at) == (ssize_t)w->size);
	}
	return close_file(fd, buf);
}

/* Names and attributes are long, for the log's sake; every few files one is synced. */
static void create(struct worker *w, unsigned long files_a_sync)
{
	char path[4096], data[BLOCK] = { 0 }, name[180];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/%lu", w->path, w->number);
	TIMED(w, mkdir(path, 0755) == 0);
	for (unsigned long i = 0; i < w->count; i++) {
		int fd = -1;

		snprintf(path, sizeof(path), "%s/%lu/%s-%lu", w->path, w->number, name, i);
		TIMED(w, (fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644)) >= 0);
		TIMED(w, fsetxattr(fd, "user.below", data, 200, 0) == 0);
		if (i % files_a_sync == 0) {
			TIMED(w, write(fd, data, sizeof(data)) == (ssize_t)sizeof(data));
			TIMED(w, fsync(fd) == 0);
		}
		TIMED(w, close(fd) == 0);
	}
}

static void *create_files(void *arg)
{
	create(arg, FILES_A_SYNC);
	return NULL;
}

static void *create_burst(void *arg)
{
	struct worker *w = arg;

	create(w, w->count + 1);
	return NULL;
}

static void *extend_file(struct worker *w, int flags, int synced)
{
	char path[4096];
	void *buf;
	int fd;

	snprintf(path, sizeof(path), "%s.%lu", w->path, w->number);
	fd = open_file(w, path, O_WRONLY | O_CREAT | O_TRUNC | flags, &buf);
	if (fd < 0)
		return NULL;
	for (unsigned long i = 0; i < w->count; i++) {
		TIMED(w, write(fd, buf, w->size) == (ssize_t)w->size);
		if (synced)
			TIMED(w, fsync(fd) == 0);
	}
	return close_file(fd, buf);
}

static void *extend_direct(void *arg)
{
	return extend_file(arg, O_DIRECT, 0);
}

static void *extend_left(void *arg)
{
	return extend_file(arg, 0, 0);
}

static void *extend_synced(void *arg)
{
	return extend_file(arg, 0, 1);
}

static void *dirty_map(void *arg)
{
	struct worker *w = arg;
	int fd = open(w->path, O_RDWR | O_CREAT, 0644);
	size_t len = w->count * BLOCK;
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
	for (size_t at = 0; at < len; at += BLOCK)
		TIMED(w, (*(volatile char *)(map + at) = 1));
	munmap(map, len);
	close(fd);
	return NULL;
}

static void *flush_file(void *arg)
{
	struct worker *w = arg;
	void *buf;
	int fd = open_file(w, w->path, O_WRONLY | O_DIRECT, &buf);

	if (fd < 0)
		return NULL;
	for (unsigned long i = 0; i < w->count; i++) {
		if (pwrite(fd, buf, w->size, (off_t)(i % 256 * w->size)) != (ssize_t)w->size)
			w->error = errno ? errno : EIO;
		TIMED(w, fdatasync(fd) == 0);
	}
	return close_file(fd, buf);
}

/* The other thread of "behind": its pages are on their way when the syncs begin. */
static void *write_ahead(void *arg)
{
	struct worker *w = arg;
	void *buf;
	int fd = open_file(w, w->path, O_WRONLY, &buf);

	for (unsigned long i = 0; i < w->count; i++) {
		pthread_barrier_wait(&turn);
		if (fd >= 0 && (pwrite(fd, buf, w->size, 0) != (ssize_t)w->size ||
				sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE)))
			w->error = errno;
		pthread_barrier_wait(&turn);
	}
	return fd < 0 ? NULL : close_file(fd, buf);
}

/* Both syncs have the same to write: the file's times. */
static void *sync_behind(void *arg)
{
	struct worker *w = arg, writer = *w;
	int fd = open(w->path, O_WRONLY);
	uint64_t begin;

	pthread_barrier_init(&turn, NULL, 2);
	if (fd < 0 || pthread_create(&writer.thread, NULL, write_ahead, &writer)) {
		w->error = errno;
		return NULL;
	}
	for (unsigned long i = 0; i < w->count; i++) {
		w->error = w->error ? w->error : futimens(fd, NULL) ? errno : 0;
		begin = now_ns();
		w->error = w->error ? w->error : fsync(fd) ? errno : 0;
		w->quiet_ns += now_ns() - begin;
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
		TIMED(w, fsync(fd) == 0);
	}
	pthread_join(writer.thread, NULL);
	w->error = w->error ? w->error : writer.error;
	close(fd);
	return NULL;
}

static int by_end(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return x->end < y->end ? -1 : x->end > y->end;
}

/* How long calls waited that hold one lock from when they have it until they end: it is theirs when
 * the call before them, by their ends, has ended. */
static uint64_t queued_ns(struct call *calls, size_t n)
{
	uint64_t sum = 0;

	qsort(calls, n, sizeof(*calls), by_end);
	for (size_t i = 1; i < n; i++)
		if (calls[i].begin < calls[i - 1].end)
			sum += calls[i - 1].end - calls[i].begin;
	return sum;
}

static int run(struct worker *workers, unsigned int n, void *(*fn)(void *))
{
	uint64_t calls = 0, wall = 0, quiet = 0;
	struct call *timed = workers[0].timed;
	size_t n_timed = 0;
	unsigned int i;
	int error = 0;

	for (i = 0; i < n; i++)
		if (pthread_create(&workers[i].thread, NULL, fn, &workers[i]))
			return 1;
	for (i = 0; i < n; i++) {
		struct worker *w = &workers[i];
		size_t own;

		pthread_join(w->thread, NULL);
		own = w->calls < w->count ? w->calls : w->count;
		memmove(timed + n_timed, w->timed, own * sizeof(*timed));
		n_timed += own;
		calls += w->calls;
		wall += w->wall_ns;
		quiet += w->quiet_ns;
		error = error ? error : w->error;
	}
	printf("{\"calls\":%llu,\"wall_ns\":%llu,\"quiet_ns\":%llu,\"queued_ns\":%llu}\n",
	       (unsigned long long)calls, (unsigned long long)wall, (unsigned long long)quiet,
	       (unsigned long long)queued_ns(timed, n_timed));
	if (error)
		fprintf(stderr, "below: %s\n", strerror(error));
	return error != 0;
}

static const struct load {
	const char *name;
	void *(*fn)(void *);
	int undisturbed;
} loads[] = {
	{ "direct-read", read_direct, 0 }, { "read", read_uncached, 0 },
	{ "write", write_file, 1 },        { "create", create_files, 0 },
	{ "burst", create_burst, 1 },      { "extend", extend_direct, 0 },
	{ "extend-left", extend_left, 0 }, { "extend-synced", extend_synced, 0 },
	{ "dirty", write_file, 0 },        { "map", dirty_map, 0 },
	{ "flush", flush_file, 0 },        { "behind", sync_behind, 0 },
};

static const struct load *find_load(const char *name)
{
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		if (!strcmp(loads[i].name, name))
			return &loads[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct sched_param first = { .sched_priority = 1 };
	const struct load *load = argc == 6 ? find_load(argv[1]) : NULL;
	struct worker w[MAX_THREADS] = { 0 };
	unsigned long n, count, size;
	struct call *timed;
	char line[16];

	if (!load || !fgets(line, sizeof(line), stdin))
		return 2;
	n = strtoul(argv[3], NULL, 10);
	count = strtoul(argv[4], NULL, 10);
	size = strtoul(argv[5], NULL, 10);
	timed = n && n <= MAX_THREADS ? calloc(n * count, sizeof(*timed)) : NULL;
	if (!timed)
		return 2;
	for (unsigned int i = 0; i < n; i++)
		w[i] = (struct worker){ .path = argv[2],
					.number = i,
					.count = count,
					.size = size,
					.timed = timed + i * count };
	if (load->undisturbed && sched_setscheduler(0, SCHED_FIFO, &first))
		perror("below: SCHED_FIFO");
	return run(w, (unsigned int)n, load->fn);
}
