/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count-sleeps: no translator, but a library to preload into a process: it counts the process's
 * calls of nanosleep(), by their length in whole milliseconds, in the file that SLEEP_COUNTER
 * names (u64 count[64]). debug/delay-gen sleeps so, and keeps no count of its own: this is the
 * independent witness of how many requests it has delayed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_COUNTS 64

static uint64_t *counts;

__attribute__((constructor)) static void map_counts(void)
{
	const char *path = getenv("SLEEP_COUNTER");
	size_t bytes = SLEEP_COUNTS * sizeof(*counts);
	void *table;
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	table = ftruncate(fd, (off_t)bytes) ?
			MAP_FAILED :
			mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (table != MAP_FAILED)
		counts = table;
}

int nanosleep(const struct timespec *request, struct timespec *remaining)
{
	uint64_t ms = (uint64_t)request->tv_sec * 1000 + (uint64_t)request->tv_nsec / 1000000;

	if (counts)
		__atomic_add_fetch(&counts[ms < SLEEP_COUNTS ? ms : SLEEP_COUNTS - 1], 1,
				   __ATOMIC_RELAXED);
	return (int)syscall(SYS_nanosleep, request, remaining);
}
