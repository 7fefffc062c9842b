/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eh_frame.h: functions from the unwind table (.eh_frame), which strip(1) leaves in every object.
 * Source of the format: LSB core, "Exception Frames" and "DWARF Extensions". Pure: works on bytes.
 */
#ifndef BRICKTOP_EH_FRAME_H
#define BRICKTOP_EH_FRAME_H

#include "elf.h"

#include <stddef.h>
#include <stdint.h>

/*
 * All functions described by the FDEs in data, a copy of the section that is linked at vaddr.
 * Ascending, one per start address, [start, end) not empty. They may overlap or lie outside the
 * object: the caller checks. *ret_funcs is malloc'ed. 0, -ENOENT (none), -ENOMEM.
 */
int eh_frame_parse(const unsigned char *data, size_t len_bytes, uint64_t vaddr,
		   struct elf_range **ret_funcs, size_t *ret_n);

#endif
