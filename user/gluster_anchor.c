// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_anchor.c: where to begin in a process, from the symbols that its libglusterfs and its
 * executable export: no layout is needed for that, and stripped binaries have them. Knows ELF
 * objects and mappings, nothing of graphs.
 */
#include "gluster_walk.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "elf.h"
#include "text.h"

#define VERSION_DIR "/glusterfs/"

struct object {
	struct elf_file *elf;
	uint64_t bias; /* address in the process = vaddr + bias */
};

static const struct procmap *find_library(const struct procmaps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		const char *slash = strrchr(maps->maps[i].path, '/');

		if (slash && !strncmp(slash, "/libglusterfs.so", 16) && !maps->maps[i].offset)
			return &maps->maps[i];
	}
	return NULL;
}

static const struct procmap *find_executable(pid_t pid, const struct procmaps *maps)
{
	char link[32], path[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return NULL;
	path[len] = '\0';
	for (size_t i = 0; i < maps->n; i++)
		if (!maps->maps[i].offset && !strcmp(maps->maps[i].path, path))
			return &maps->maps[i];
	return NULL;
}

/* The object of a mapping that begins at the file's first byte. */
static int open_object(pid_t pid, const struct procmap *map, struct object *ret_object)
{
	char path[PATH_MAX + 64];
	uint64_t vaddr = 0;
	int err = procmem_map_path(pid, map, path, sizeof(path));

	if (!err)
		err = elf_open(path, &ret_object->elf);
	if (err)
		return err;
	err = elf_offset_to_vaddr(ret_object->elf, 0, &vaddr);
	if (err) {
		elf_close(ret_object->elf);
		ret_object->elf = NULL;
		return err;
	}
	ret_object->bias = map->start - vaddr;
	return 0;
}

/* "/usr/lib/x86_64-linux-gnu/glusterfs/10.3/xlator/storage/posix.so" -> "10.3" */
static bool version_of_maps(const struct procmaps *maps, char *version, size_t size)
{
	for (size_t i = 0; i < maps->n; i++) {
		const char *xlator = strstr(maps->maps[i].path, "/xlator/"), *dir = NULL, *next;
		char raw[64];
		int len;

		for (next = strstr(maps->maps[i].path, VERSION_DIR);
		     xlator && next && next < xlator; next = strstr(next + 1, VERSION_DIR))
			dir = next + strlen(VERSION_DIR);
		if (!dir || dir >= xlator)
			continue;
		len = (int)(xlator - dir);
		snprintf(raw, sizeof(raw), "%.*s", len < 63 ? len : 63, dir);
		text_sanitize(version, size, raw);
		return true;
	}
	return false;
}

/* argp_program_version points to "glusterfs 10.3\n..." */
static void version_of_program(struct procmem *pm, const struct object *exe, char *version,
			       size_t size)
{
	struct elf_symbol sym;
	char text[64], word[32];
	uint64_t addr;

	if (elf_find_symbol(exe->elf, "argp_program_version", &sym) ||
	    procmem_read_u64(pm, sym.vaddr + exe->bias, &addr) ||
	    procmem_read_str(pm, addr, text, sizeof(text)))
		return;
	if (sscanf(text, "glusterfs %31s", word) == 1)
		text_sanitize(version, size, word);
}

/* A COPY relocation moves a data symbol into the executable, so that one is asked first. */
static int find_global(const struct object *exe, const struct object *lib,
		       struct gluster_anchor *anchor)
{
	struct elf_symbol sym;

	if (exe->elf && !elf_find_symbol(exe->elf, "global_xlator", &sym))
		anchor->global_xlator = sym.vaddr + exe->bias;
	else if (!elf_find_symbol(lib->elf, "global_xlator", &sym))
		anchor->global_xlator = sym.vaddr + lib->bias;
	else
		return -ENOEXEC;
	anchor->xlator_size_bytes = sym.size_bytes;
	anchor->latency_is_u64 = !elf_find_symbol(lib->elf, "gf_frame_latency_update", &sym);
	if (exe->elf && !elf_find_symbol(exe->elf, "glusterfsd_ctx", &sym))
		anchor->glusterfsd_ctx = sym.vaddr + exe->bias;
	return 0;
}

int gluster_anchor_find(struct procmem *pm, const struct procmaps *maps,
			struct gluster_anchor *ret_anchor)
{
	pid_t pid = procmem_pid(pm);
	const struct procmap *lib_map = find_library(maps), *exe_map = find_executable(pid, maps);
	struct gluster_anchor anchor = { .version = "-" };
	struct object lib = { 0 }, exe = { 0 };
	int err;

	if (!lib_map)
		return -ENOENT;
	err = open_object(pid, lib_map, &lib);
	if (err)
		return err;
	if (exe_map)
		open_object(pid, exe_map, &exe); /* a witness more, not a need */
	err = find_global(&exe, &lib, &anchor);
	if (!version_of_maps(maps, anchor.version, sizeof(anchor.version)) && exe.elf)
		version_of_program(pm, &exe, anchor.version, sizeof(anchor.version));
	elf_close(exe.elf);
	elf_close(lib.elf);
	if (!err)
		*ret_anchor = anchor;
	return err;
}
