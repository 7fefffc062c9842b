// SPDX-License-Identifier: Apache-2.0
/*
 * site.c: choose a function's cheapest probe site. What the kernel emulates is decided on the raw
 * bytes, by the kernel's own rules; capstone says how long an instruction is and what it
 * overwrites.
 */
#include "site.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <linux/elf-em.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BLOCK_BYTES 256         /* how far into a function a site is looked for */
#define MAX_BODY_BYTES  (64 * 1024) /* how much of it is searched for branches back */
#define ALL_ARGS        0x3f

static bool is_emulated_x86(const uint8_t *code, size_t len)
{
	size_t i = 0;

	while (i < len && code[i] == 0x66)
		i++;
	if (i + 1 == len && code[i] == 0x90)
		return true;
	if (i) /* the kernel refuses to emulate branches with an operand size prefix */
		return false;
	switch (len) {
	case 1:
		return (code[0] & 0xf8) == 0x50;
	case 2:
		if (code[0] == 0x41 && (code[1] & 0xf8) == 0x50)
			return true;
		return code[0] == 0xeb || (code[0] & 0xf0) == 0x70;
	case 5:
		return code[0] == 0xe8 || code[0] == 0xe9;
	case 6:
		return code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
	default:
		return false;
	}
}

static bool is_simulated_arm64(const uint8_t *code)
{
	uint32_t insn = code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24;

	return insn == 0xd503201f ||                /* nop */
	       (insn & 0x7c000000) == 0x14000000 || /* b, bl */
	       (insn & 0xff000010) == 0x54000000 || /* b.cond */
	       (insn & 0x7e000000) == 0x34000000 || /* cbz, cbnz */
	       (insn & 0x7e000000) == 0x36000000 || /* tbz, tbnz */
	       (insn & 0x1f000000) == 0x10000000 || /* adr, adrp */
	       (insn & 0xff9ffc1f) == 0xd61f0000;   /* br, blr, ret */
}

/* clang-format off */
static const x86_reg arg_family[6][5] = {
	{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL, X86_REG_INVALID},
	{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL, X86_REG_INVALID},
	{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH},
	{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH},
	{X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B, X86_REG_INVALID},
	{X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B, X86_REG_INVALID},
};
/* clang-format on */

/* The argument's bit, for its register or a part of it; 0 for other registers. */
static unsigned int arg_of_register(unsigned int reg)
{
	unsigned int arg, part;

	for (arg = 0; arg < 6; arg++) {
		for (part = 0; part < 5; part++) {
			if (reg != X86_REG_INVALID && arg_family[arg][part] == (x86_reg)reg)
				return 1U << arg;
		}
	}
	return 0;
}

/* Argument registers an instruction overwrites, wholly or in part. */
static unsigned int written_args(csh cs, const cs_insn *insn)
{
	cs_regs read, written;
	uint8_t n_read, n_written, i;
	unsigned int args = 0;

	if (cs_insn_group(cs, insn, CS_GRP_CALL) || cs_insn_group(cs, insn, CS_GRP_INT) ||
	    cs_regs_access(cs, insn, read, &n_read, written, &n_written))
		return ALL_ARGS;
	for (i = 0; i < n_written; i++)
		args |= arg_of_register(written[i]);
	/* These write their second operand too, which not every capstone knows. */
	if (insn->id == X86_INS_XCHG || insn->id == X86_INS_XADD || insn->id == X86_INS_CMPXCHG) {
		for (i = 0; i < n_read; i++)
			args |= arg_of_register(read[i]);
	}
	return args;
}

static void describe(const cs_insn *insn, uint64_t entry, enum site_class class, struct site *site)
{
	site->vaddr = insn->address;
	site->class = class;
	site->distance_bytes = (uint32_t)(insn->address - entry);
	snprintf(site->insn, sizeof(site->insn), "%s%s%.36s", insn->mnemonic,
		 insn->op_str[0] ? " " : "", insn->op_str);
}

/* Code of [vaddr, end), or what the object has of it; the caller frees it. */
static int read_code(const struct elf_file *elf, uint64_t vaddr, uint64_t end, size_t max,
		     uint8_t **ret_code, size_t *ret_len)
{
	size_t len = max;
	uint8_t *code;

	if (end > vaddr && end - vaddr < max)
		len = (size_t)(end - vaddr);
	code = malloc(max);
	if (!code)
		return -ENOMEM;
	while (len && elf_read(elf, vaddr, code, len))
		len /= 2; /* the segment ends before */
	if (!len) {
		free(code);
		return -ERANGE;
	}
	*ret_code = code;
	*ret_len = len;
	return 0;
}

/*
 * The first emulated instruction of the first block with the arguments intact; ret_entry gets the
 * entry in any case. 0, -ENOENT (none), -EILSEQ (no instruction at all).
 */
static int walk_block(csh cs, cs_insn *insn, const uint8_t *code, size_t len, uint64_t vaddr,
		      unsigned int live_args, struct site *ret_entry, struct site *ret_site)
{
	uint64_t at = vaddr;
	bool first = true;

	while (cs_disasm_iter(cs, &code, &len, &at, insn)) {
		if (first)
			describe(insn, vaddr, SITE_STEPPED, ret_entry);
		first = false;
		if (is_emulated_x86(insn->bytes, insn->size)) {
			describe(insn, vaddr, SITE_EMULATED, ret_site);
			return 0;
		}
		if ((written_args(cs, insn) & live_args) || cs_insn_group(cs, insn, CS_GRP_JUMP) ||
		    cs_insn_group(cs, insn, CS_GRP_RET))
			break;
	}
	return first ? -EILSEQ : -ENOENT;
}

/* A branch from anywhere in the function to (entry, site] means that one call may hit twice. */
static bool has_branch_into(csh cs, cs_insn *insn, const uint8_t *code, size_t len, uint64_t vaddr,
			    uint64_t site_vaddr)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];
	uint64_t at = vaddr;

	while (len) {
		if (!cs_disasm_iter(cs, &code, &len, &at, insn)) {
			code++; /* padding or data: go on behind it */
			len--;
			at++;
			continue;
		}
		if (cs_insn_group(cs, insn, CS_GRP_JUMP) && insn->detail->x86.op_count == 1 &&
		    op->type == X86_OP_IMM && (uint64_t)op->imm > vaddr &&
		    (uint64_t)op->imm <= site_vaddr)
			return true;
	}
	return false;
}

static int choose_x86(csh cs, cs_insn *insn, const struct elf_file *elf, uint64_t vaddr,
		      uint64_t end_vaddr, unsigned int live_args, struct site *ret_entry,
		      struct site *ret_site)
{
	uint8_t *code;
	size_t len;
	int err;

	err = read_code(elf, vaddr, end_vaddr, MAX_BLOCK_BYTES, &code, &len);
	if (err)
		return err;
	err = walk_block(cs, insn, code, len, vaddr, live_args, ret_entry, ret_site);
	free(code);
	if (err || ret_site->distance_bytes == 0 || end_vaddr <= vaddr)
		return err;
	err = read_code(elf, vaddr, end_vaddr, MAX_BODY_BYTES, &code, &len);
	if (err)
		return err;
	if (has_branch_into(cs, insn, code, len, vaddr, ret_site->vaddr))
		err = -ENOENT;
	free(code);
	return err;
}

static int choose_arm64(csh cs, cs_insn *insn, const struct elf_file *elf, uint64_t vaddr,
			struct site *ret_entry, struct site *ret_site)
{
	uint8_t code[4];
	const uint8_t *cursor = code;
	size_t len = sizeof(code);
	uint64_t at = vaddr;

	if (elf_read(elf, vaddr, code, sizeof(code)))
		return -ERANGE;
	if (!cs_disasm_iter(cs, &cursor, &len, &at, insn))
		return -EILSEQ;
	describe(insn, vaddr, SITE_STEPPED, ret_entry);
	describe(insn, vaddr, SITE_EMULATED, ret_site);
	return is_simulated_arm64(code) ? 0 : -ENOENT;
}

int site_choose(const struct elf_file *elf, uint64_t vaddr, uint64_t end_vaddr,
		unsigned int live_args, bool cheap_only, struct site *ret_site)
{
	bool is_arm64 = elf_machine(elf) == EM_AARCH64;
	struct site entry = { 0 }, site = { 0 };
	cs_insn *insn;
	csh cs;
	int err;

	if (!is_arm64 && elf_machine(elf) != EM_X86_64)
		return -EOPNOTSUPP;
	if (cs_open(is_arm64 ? CS_ARCH_ARM64 : CS_ARCH_X86,
		    is_arm64 ? CS_MODE_LITTLE_ENDIAN : CS_MODE_64, &cs))
		return -ENOMEM;
	cs_option(cs, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(cs);
	if (!insn) {
		cs_close(&cs);
		return -ENOMEM;
	}
	if (is_arm64)
		err = choose_arm64(cs, insn, elf, vaddr, &entry, &site);
	else
		err = choose_x86(cs, insn, elf, vaddr, end_vaddr, live_args, &entry, &site);
	cs_free(insn, 1);
	cs_close(&cs);
	if (err == -ENOENT && !cheap_only) {
		site = entry;
		err = 0;
	}
	if (!err)
		err = elf_vaddr_to_offset(elf, site.vaddr, &site.offset);
	if (!err)
		*ret_site = site;
	return err;
}

void site_text(const struct site *site, char *buf, size_t size)
{
	snprintf(buf, size, "%s at +%u, %s", site->insn, site->distance_bytes,
		 site->class == SITE_EMULATED ? "emulated" : "single-stepped");
}
