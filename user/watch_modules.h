/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_modules.h: from an address of a process to the file, and the place in it, that can be
 * probed. Each module is opened and searched once, whatever number of addresses lies in it. Shared
 * by watch*.c alone; knows nothing of what the code is for.
 */
#ifndef BRICKTOP_WATCH_MODULES_H
#define BRICKTOP_WATCH_MODULES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf.h"
#include "procmem.h"

#define WATCH_MAX_MODULES 64

struct watch_module {
	char *path; /* as this process opens it */
	uint64_t dev, inode;
	struct elf_file *elf;
	struct elf_range *funcs;
	size_t n_funcs;
};

/* The process's mappings at one moment, and the modules opened by now. Zeroed is empty. */
struct watch_modules {
	pid_t pid;
	struct procmaps maps;
	struct watch_module module[WATCH_MAX_MODULES];
	size_t n;
};

/* Read the mappings. 0 or -errno of procmaps_load(). */
int watch_modules_load(struct watch_modules *ms, pid_t pid);
void watch_modules_free(struct watch_modules *ms);

/*
 * The module that the code at an address lies in, opened now if it is not yet, and the address in
 * it. The module is the caller's until watch_modules_free(). 0; -EFAULT: no code; -ENOSPC; -errno.
 */
int watch_modules_find(struct watch_modules *ms, uint64_t addr, const struct watch_module **ret_m,
		       uint64_t *ret_vaddr);

/* End of the function that starts at vaddr, 0 where unknown. */
uint64_t watch_module_end(const struct watch_module *m, uint64_t vaddr);

#endif
