/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.h: what bricktop reads from an ELF object on disk: exported symbols, relocated table entries,
 * function starts. The objects belong to traced processes, so their contents are untrusted: every
 * offset is bounded by the file. Knows nothing of GlusterFS.
 */
#ifndef BRICKTOP_ELF_H
#define BRICKTOP_ELF_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct elf_symbol {
	uint64_t vaddr;      /* link-time virtual address (st_value) */
	uint64_t size_bytes; /* st_size; 0 where the object does not say */
	int is_func;         /* 1 for STT_FUNC, 0 otherwise */
};

/* Open PATH (an ELF64 object). 0, or -errno; -ENOEXEC where it is no usable ELF64 object. */
int elf_open(const char *path, struct elf_file **ret_elf);
/*
 * The same for an image in memory, which is copied: the file may be truncated or replaced at any
 * time, so nothing here ever works on a mapping of it.
 */
int elf_open_memory(const void *image, size_t len, struct elf_file **ret_elf);
void elf_close(struct elf_file *elf);

/* EM_X86_64, EM_AARCH64, ... */
int elf_machine(const struct elf_file *elf);

/* A defined symbol of .dynsym by name. 0 or -ENOENT. */
int elf_find_symbol(const struct elf_file *elf, const char *name, struct elf_symbol *ret_sym);

/* File offset of a virtual address (what uprobes take), by the PT_LOAD segments. 0 or -ERANGE. */
int elf_vaddr_to_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_offset);
int elf_offset_to_vaddr(const struct elf_file *elf, uint64_t offset, uint64_t *ret_vaddr);

/* Copy len bytes of the file image at a virtual address. 0 or -ERANGE. */
int elf_read(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t len);

/* The value that a relative relocation will store at vaddr, less the load base. 0 or -ENOENT. */
int elf_relative_addend(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_vaddr);

struct elf_range {
	uint64_t start, end; /* virtual addresses, [start, end) */
};

/*
 * Every function of the object, in ascending order, from .eh_frame's FDEs, which strip(1) leaves.
 * *ret_funcs is malloc'ed, the caller frees it. 0 or -errno (-ENOENT: no .eh_frame).
 */
int elf_functions(const struct elf_file *elf, struct elf_range **ret_funcs, size_t *ret_n);

#endif
