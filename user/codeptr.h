/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codeptr.h: which functions of an object have their address stored into a structure, by reading
 * the machine code: "lea reg, [function]" ... "mov [other + DISP], reg". This is how callbacks are
 * found in an object without symbols. Static and approximate: values are followed through
 * registers, stack slots and forward branches of one function, not through calls. Knows nothing of
 * GlusterFS.
 */
#ifndef BRICKTOP_CODEPTR_H
#define BRICKTOP_CODEPTR_H

#include "elf.h"

#include <stddef.h>
#include <stdint.h>

/* What one scan found. */
struct codeptr_scan {
	struct elf_range
		*targets; /* functions whose address is stored, ascending, each once; malloc'ed */
	size_t n;
	uint32_t stores;   /* 8-byte stores to [register + DISP] seen */
	uint32_t resolved; /* of these, with the address of a function of this object */
};

/*
 * Look through every function of the object (x86-64) for stores at displacement disp_bytes. Only
 * starts of functions count as function addresses. 0, -ENOENT (no .eh_frame), -EOPNOTSUPP (other
 * machine), -ENOMEM. The caller frees with codeptr_free().
 */
int codeptr_find(const struct elf_file *elf, uint32_t disp_bytes, struct codeptr_scan *ret_scan);
void codeptr_free(struct codeptr_scan *scan);

#endif
