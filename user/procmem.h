/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procmem.h: reading another process: its memory (/proc/PID/mem), its mappings, its names. Owns the
 * file descriptors and the bounds; knows nothing of GlusterFS. All that it returns is untrusted.
 */
#ifndef BRICKTOP_PROCMEM_H
#define BRICKTOP_PROCMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct procmem;

/* Open a process for reading. 0 or -errno (-ESRCH: gone, -EACCES/-EPERM: not allowed). */
int procmem_open(pid_t pid, struct procmem **ret_pm);

/* A memory image instead of a process (tests, fuzzers): segments are borrowed, not copied. pid is
 * 0. */
struct procmem_segment {
	uint64_t addr;
	const void *data;
	size_t len;
};
int procmem_open_image(const struct procmem_segment *segments, size_t n, struct procmem **ret_pm);

void procmem_close(struct procmem *pm);
pid_t procmem_pid(const struct procmem *pm);

/* Start time of the process, clock ticks since boot (/proc/PID/stat field 22): tells a recycled
 * pid. */
uint64_t procmem_start_ticks(const struct procmem *pm);

/* Exactly len bytes at addr. 0, -EFAULT (unreadable), -ESRCH (process gone). Counts its failures.
 */
int procmem_read(struct procmem *pm, uint64_t addr, void *buf, size_t len);
int procmem_read_u64(struct procmem *pm, uint64_t addr, uint64_t *ret_value);
int procmem_read_u32(struct procmem *pm, uint64_t addr, uint32_t *ret_value);

/* A C string of at most size - 1 bytes; longer ones are cut. 0, or -errno as procmem_read(). */
int procmem_read_str(struct procmem *pm, uint64_t addr, char *buf, size_t size);
uint64_t procmem_read_failures(const struct procmem *pm);

struct procmap {
	uint64_t start, end, offset; /* addresses in the process; offset in the file */
	bool exec, write;
	uint64_t dev, inode;
	char *path; /* as the process sees it; "" for anonymous memory */
};

struct procmaps {
	struct procmap *maps;
	size_t n;
};

/* All mappings, ascending. 0 or -errno. procmaps_free() takes a zeroed struct. */
int procmaps_load(pid_t pid, struct procmaps *ret_maps);
int procmaps_parse(const char *text, size_t len, struct procmaps *ret_maps);
void procmaps_free(struct procmaps *maps);
const struct procmap *procmaps_find(const struct procmaps *maps, uint64_t addr);

/*
 * Path under which this process opens the very file that another one has mapped: its name below
 * /proc/PID/root where that leads to the same file, else the mapping's own link in map_files (the
 * file was replaced or deleted, or lies outside of the process's root). Good for reading and for
 * uprobes as long as it is mapped there. 0, -EINVAL (no file), -EPERM (not by its name, and for the
 * link CAP_CHECKPOINT_RESTORE is missing), -ENOENT (neither way), -ENAMETOOLONG.
 */
int procmem_map_path(pid_t pid, const struct procmap *map, char *buf, size_t size);

/* The same for the first mapping of that path, as the process sees it. 0 or -errno. */
int procmem_host_path(pid_t pid, const char *path, char *buf, size_t size);

#endif
