/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site.h: where in a function to put a uprobe so that a hit costs little. The kernel emulates a few
 * instructions (about 1 us a hit); any other one it copies aside and single-steps, which costs some
 * 15 times more. Knows instructions, not what the function is for.
 *
 * Emulated on x86-64 (arch/x86/kernel/uprobes.c, branch_setup_xol_ops and push_setup_xol_ops): nop
 * (0x90 with prefixes 0x66), push of a 64-bit register, jmp, call and jcc with a relative target.
 * Longer nops are emulated only by the newest kernels, and endbr64 by none: neither counts as
 * cheap. On arm64 (arch/arm64/kernel/probes/decode-insn.c) nop, branches and adr/adrp are
 * simulated.
 */
#ifndef BRICKTOP_SITE_H
#define BRICKTOP_SITE_H

#include "elf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Argument registers of the System V ABI, in order; bits of a set. */
enum {
	SITE_ARG0 = 1 << 0, /* rdi, x0 */
	SITE_ARG1 = 1 << 1, /* rsi, x1 */
	SITE_ARG2 = 1 << 2, /* rdx, x2 */
	SITE_ARG3 = 1 << 3, /* rcx, x3 */
	SITE_ARG4 = 1 << 4, /* r8, x4 */
	SITE_ARG5 = 1 << 5, /* r9, x5 */
};

enum site_class {
	SITE_EMULATED, /* the trap alone */
	SITE_STEPPED,  /* the trap and a single step */
};

struct site {
	uint64_t offset; /* in the file */
	uint64_t vaddr;  /* link-time */
	enum site_class class;
	uint32_t distance_bytes; /* from the function's entry; 0: at the entry */
	char insn[80];           /* "push r15" */
};

/*
 * Choose a site in the function at vaddr, which ends before end_vaddr (0: unknown). At the site
 * every register of live_args still holds the argument; the site lies in the first basic block, and
 * no branch inside the function leads back to it, so one call is one hit. Without a cheap
 * instruction there: the entry itself, class SITE_STEPPED, or -ENOENT if cheap_only. Reads at most
 * 256 bytes for the choice. 0, -ERANGE (not in the object), -EILSEQ (no instruction), -EOPNOTSUPP
 * (neither x86-64 nor arm64), -ENOMEM.
 */
int site_choose(const struct elf_file *elf, uint64_t vaddr, uint64_t end_vaddr,
		unsigned int live_args, bool cheap_only, struct site *ret_site);

/* "push r15 at +4, emulated": one line for reports. */
void site_text(const struct site *site, char *buf, size_t size);

#endif
