/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_threads.c: the kernel's files, as they are and as nobody writes them; names and their pools;
 * and this very process: a thread that works, one that sleeps, one that comes and goes.
 */
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "tap.h"

static void test_schedstat(void)
{
	struct model_thread t = { 0 };

	is_int(threads_parse_schedstat("123456789 42 7\n", &t), 0, "schedstat is parsed");
	ok(t.has_times && t.oncpu_ns == 123456789 && t.runnable_ns == 42, "times");
	is_int(threads_parse_schedstat("0 0 0\n", &t), 0, "zeros are parsed");
	ok(!t.has_times, "zeros are what a kernel prints that does not count");
	is_int(threads_parse_schedstat("", &t), -EINVAL, "nothing");
	is_int(threads_parse_schedstat("12 x", &t), -EINVAL, "no numbers");
}

#define FIELDS " 1 1 1 0 -1 4194304 10 0 0 0 1 2 0 0 20 0 24 0 "

static void test_stat(void)
{
	struct model_thread t = { 0 };

	is_int(threads_parse_stat("77 (glfs_iotwr00a) S" FIELDS "918273 5 6 7\n", &t), 0,
	       "stat is parsed");
	ok(t.start_ticks == 918273, "when it started");
	is_str(t.comm, "glfs_iotwr00a", "its name");
	is_str(t.pool, "io-threads", "its pool");
	is_int(threads_parse_stat("77 (a) b (c\033)) R" FIELDS "9 5\n", &t), 0, "an odd name");
	is_str(t.comm, "a) b (c?)", "is taken to its end, and harmless");
	is_int(threads_parse_stat("77 glfs S 1", &t), -EINVAL, "no name");
	is_int(threads_parse_stat("77 )x( S 1", &t), -EINVAL, "brackets the wrong way round");
	is_int(threads_parse_stat("77 (x) S 1 2 3", &t), -EINVAL, "too short");
	is_int(threads_parse_stat("77 (x", &t), -EINVAL, "cut off");
	is_int(threads_parse_stat("", &t), -EINVAL, "nothing");
}

static void test_pools(void)
{
	static const char *const names[][2] = {
		{ "glfs_iotwr000", "io-threads" },
		{ "glusteriotwr1", "io-threads" },
		{ "glfs_epoll001", "event threads" },
		{ "glfs_fuseproc", "fuse reader" },
		{ "glfs_posixaio", "posix-aio" },
		{ "glfs_timer", "timer" },
		{ "glfs_rpcrqhnd", "rpc requests" },
		{ "glusterfsd", "glusterfsd" },
		{ "worker-12", "worker" },
		{ "kworker/3:1", "kworker" },
		{ "4711", "4711" },
		{ "", "" },
	};
	char pool[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		threads_pool(names[i][0], pool, sizeof(pool));
		is_str(pool, names[i][1], "pool of '%s'", names[i][0]);
	}
}

/* ---- this process ------------------------------------------------------ */

static volatile int stop; /* no bool: gcc 12 with its sanitizer reads it but once */
static volatile pid_t worker_tid, sleeper_tid;

static void *work(void *arg)
{
	(void)arg;
	worker_tid = (pid_t)syscall(SYS_gettid);
	while (!stop)
		;
	return NULL;
}

static void *rest(void *arg)
{
	(void)arg;
	sleeper_tid = (pid_t)syscall(SYS_gettid);
	while (!stop)
		usleep(1000);
	return NULL;
}

static const struct model_thread *find(const struct model_thread *t, size_t n, pid_t tid)
{
	static const struct model_thread none;

	for (size_t i = 0; i < n; i++)
		if (t[i].tid == tid)
			return &t[i];
	return &none;
}

static uint64_t cpu_of(pthread_t thread)
{
	clockid_t clock;

	return pthread_getcpuclockid(thread, &clock) ? 0 : clock_ns(clock);
}

static void test_self(void)
{
	const struct model_thread *rows = NULL, *t;
	uint64_t before, after, began = clock_mono_ns();
	pthread_t worker, sleeper;
	struct threads *threads;
	size_t n = 0;

	pthread_create(&worker, NULL, work, NULL);
	pthread_create(&sleeper, NULL, rest, NULL);
	is_int(threads_open(getpid(), &threads), 0, "this process is opened");
	while (!worker_tid || !sleeper_tid || cpu_of(worker) < 30000000)
		usleep(1000);
	before = cpu_of(worker);
	is_int(threads_read(threads, &rows, &n), 0, "and read");
	after = cpu_of(worker);
	is_int((long long)n, 3, "three threads");
	ok(rows[0].tid < rows[1].tid && rows[1].tid < rows[2].tid, "in order");
	t = find(rows, n, worker_tid);
	ok(t->has_times && t->oncpu_ns + 20000000 >= before && t->oncpu_ns <= after,
	   "the time on CPU is the thread's own clock's, to a tick");
	ok(find(rows, n, sleeper_tid)->oncpu_ns < t->oncpu_ns, "who sleeps has less");
	ok(t->born_ns + 20000000 >= began && t->born_ns <= clock_mono_ns(), "born just now");
	stop = 1;
	pthread_join(worker, NULL);
	pthread_join(sleeper, NULL);
	is_int(threads_read(threads, &rows, &n), 0, "read again");
	is_int((long long)n, 1, "the ended ones are gone");
	threads_close(threads);
}

static void test_gone(void)
{
	const struct model_thread *rows = NULL;
	struct threads *threads;
	pid_t pid = child_start();
	size_t n = 0;

	is_int(threads_open(pid, &threads), 0, "a child is opened");
	is_int(threads_read(threads, &rows, &n), 0, "and read");
	child_end(pid);
	is_int(threads_read(threads, &rows, &n), -ESRCH, "a process that is gone");
	threads_close(threads);
	is_int(threads_open(pid, &threads), -ENOENT, "is not there any more");
	threads_close(NULL);
}

int main(void)
{
	test_schedstat();
	test_stat();
	test_pools();
	test_self();
	test_gone();
	return tap_done();
}
