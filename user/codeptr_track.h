/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codeptr_track.h: the inner half of codeptr: what one x86-64 instruction does to the function
 * addresses in registers and stack slots. For codeptr.c only.
 */
#ifndef BRICKTOP_CODEPTR_TRACK_H
#define BRICKTOP_CODEPTR_TRACK_H

#include "codeptr.h"

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODEPTR_N_GP        16
#define CODEPTR_N_XMM       16
#define CODEPTR_MAX_SPILLS  32
#define CODEPTR_MAX_PENDING 128

struct codeptr_value {
	uint64_t fn, alt; /* alt only besides fn */
};

struct codeptr_spill {
	int64_t at; /* relative to rsp at entry */
	struct codeptr_value value;
};

struct codeptr_state {
	struct codeptr_value gp[CODEPTR_N_GP];
	struct codeptr_value xmm[CODEPTR_N_XMM][2];
	struct codeptr_spill spills[CODEPTR_MAX_SPILLS];
	unsigned int n_spills;
	int64_t sp, fp; /* rsp, and rbp if has_fp, relative to rsp at entry */
	bool has_fp;
};

struct codeptr_pending {
	uint64_t target;
	struct codeptr_state state;
};

struct codeptr_tracker {
	const struct elf_file *elf;
	const struct elf_range *funcs;
	size_t n_funcs;
	unsigned char *is_target; /* one flag per function */
	uint32_t disp_bytes;
	struct codeptr_scan *scan;
	csh cs;
	struct codeptr_state now, at_branch; /* at_branch: at the last branch */
	struct codeptr_pending pending[CODEPTR_MAX_PENDING];
	unsigned int n_pending;
};

/* Apply an instruction that is no branch to tr->now; a store that is looked for marks its function.
 */
void codeptr_track(struct codeptr_tracker *tr, const cs_insn *insn);

/* Another path meets this one: what is unknown in *into is taken from *from. */
void codeptr_join(struct codeptr_state *into, const struct codeptr_state *from);

#endif
