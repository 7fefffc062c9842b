/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_modules.c: see watch_modules.h. One file may be mapped under several names, and a replaced
 * one is another file of the same name: modules are told apart by device and inode.
 */
#include "watch_modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int watch_modules_load(struct watch_modules *ms, pid_t pid)
{
	ms->pid = pid;
	return procmaps_load(pid, &ms->maps);
}

void watch_modules_free(struct watch_modules *ms)
{
	size_t i;

	for (i = 0; i < ms->n; i++) {
		free(ms->module[i].path);
		free(ms->module[i].funcs);
		elf_close(ms->module[i].elf);
	}
	procmaps_free(&ms->maps);
	*ms = (struct watch_modules){ 0 };
}

static int open_module(struct watch_modules *ms, const struct procmap *map,
		       const struct watch_module **ret_m)
{
	struct watch_module *m = ms->module;
	char path[4200];
	int ret;

	for (; m < ms->module + ms->n; m++) {
		if (m->dev == map->dev && m->inode == map->inode) {
			*ret_m = m;
			return m->path ? 0 : -ENOMEM;
		}
	}
	if (ms->n == WATCH_MAX_MODULES)
		return -ENOSPC;
	ret = procmem_map_path(ms->pid, map, path, sizeof(path));
	ret = ret ?: elf_open(path, &m->elf);
	if (ret)
		return ret;
	m->dev = map->dev;
	m->inode = map->inode;
	m->path = strdup(path);
	ms->n++;
	/* without them the end of a function is not known, and the choice of a site is smaller */
	if (elf_functions(m->elf, &m->funcs, &m->n_funcs))
		m->n_funcs = 0;
	*ret_m = m;
	return m->path ? 0 : -ENOMEM;
}

int watch_modules_find(struct watch_modules *ms, uint64_t addr, const struct watch_module **ret_m,
		       uint64_t *ret_vaddr)
{
	const struct procmap *map = procmaps_find(&ms->maps, addr);
	int ret;

	if (!map || !map->exec)
		return -EFAULT;
	ret = open_module(ms, map, ret_m);
	return ret   ?:
		       elf_offset_to_vaddr((*ret_m)->elf, addr - map->start + map->offset,
					   ret_vaddr);
}

uint64_t watch_module_end(const struct watch_module *m, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < m->n_funcs; i++) {
		if (m->funcs[i].start == vaddr)
			return m->funcs[i].end;
	}
	return 0;
}
