// SPDX-License-Identifier: Apache-2.0
/*
 * codeptr_track.c: instruction by instruction, where function addresses go: general registers, both
 * halves of vector registers (compilers store two neighbouring pointers at once), stack slots. An
 * instruction that is not understood makes what it writes unknown.
 */
#include "codeptr_track.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of rsp and rbp here: order of reg_family. */
enum { GP_RSP = 6, GP_RBP = 7 };

static int compare_start(const void *key, const void *func)
{
	uint64_t vaddr = *(const uint64_t *)key;
	const struct elf_range *range = func;

	return vaddr < range->start ? -1 : vaddr > range->start;
}

static const struct elf_range *find_func(const struct codeptr_tracker *tr, uint64_t vaddr)
{
	return bsearch(&vaddr, tr->funcs, tr->n_funcs, sizeof(*tr->funcs), compare_start);
}

static struct codeptr_value make_value(const struct codeptr_tracker *tr, uint64_t vaddr)
{
	struct codeptr_value value = { 0, 0 };

	if (find_func(tr, vaddr))
		value.fn = vaddr;
	return value;
}

static struct codeptr_value join_values(struct codeptr_value a, struct codeptr_value b)
{
	if (!a.fn)
		return b;
	if (b.fn && b.fn != a.fn)
		a.alt = b.fn;
	return a;
}

void codeptr_join(struct codeptr_state *into, const struct codeptr_state *from)
{
	unsigned int i;

	for (i = 0; i < CODEPTR_N_GP; i++)
		into->gp[i] = join_values(into->gp[i], from->gp[i]);
	for (i = 0; i < CODEPTR_N_XMM; i++) {
		into->xmm[i][0] = join_values(into->xmm[i][0], from->xmm[i][0]);
		into->xmm[i][1] = join_values(into->xmm[i][1], from->xmm[i][1]);
	}
	if (!into->n_spills) {
		memcpy(into->spills, from->spills, sizeof(into->spills));
		into->n_spills = from->n_spills;
	}
}

/* The registers by family, widest first; GP_RSP and GP_RBP are indices here. */
static const x86_reg reg_family[CODEPTR_N_GP][5] = {
	{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH },
	{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH },
	{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH },
	{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH },
	{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL, X86_REG_INVALID },
	{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL, X86_REG_INVALID },
	{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL, X86_REG_INVALID },
	{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL, X86_REG_INVALID },
	{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B, X86_REG_INVALID },
	{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B, X86_REG_INVALID },
	{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B, X86_REG_INVALID },
	{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B, X86_REG_INVALID },
	{ X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B, X86_REG_INVALID },
	{ X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B, X86_REG_INVALID },
	{ X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B, X86_REG_INVALID },
	{ X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B, X86_REG_INVALID },
};

static int gp_index(unsigned int reg)
{
	unsigned int i, width;

	if (reg == X86_REG_INVALID)
		return -1;
	for (i = 0; i < CODEPTR_N_GP; i++) {
		for (width = 0; width < 5; width++) {
			if (reg_family[i][width] == (x86_reg)reg)
				return (int)i;
		}
	}
	return -1;
}

/* XMM and the YMM register that contains it. */
static int xmm_index(unsigned int reg)
{
	if (reg >= X86_REG_XMM0 && reg < X86_REG_XMM0 + CODEPTR_N_XMM)
		return (int)(reg - X86_REG_XMM0);
	if (reg >= X86_REG_YMM0 && reg < X86_REG_YMM0 + CODEPTR_N_XMM)
		return (int)(reg - X86_REG_YMM0);
	return -1;
}

static bool is_reg64(const cs_x86_op *op)
{
	return op->type == X86_OP_REG && op->size == 8 && gp_index(op->reg) >= 0;
}

/* Number of the XMM register that an operand is, else -1. */
static int xmm_operand(const cs_x86_op *op)
{
	return op->type == X86_OP_REG && op->size == 16 ? xmm_index(op->reg) : -1;
}

/* Is the operand a stack slot, and which one? */
static bool stack_slot(const struct codeptr_state *state, const cs_x86_op *op, int64_t extra,
		       int64_t *ret_at)
{
	int64_t base;

	if (op->mem.index != X86_REG_INVALID)
		return false;
	if (op->mem.base == X86_REG_RSP)
		base = state->sp;
	else if (op->mem.base == X86_REG_RBP && state->has_fp)
		base = state->fp;
	else
		return false;
	*ret_at = (int64_t)((uint64_t)base + (uint64_t)op->mem.disp + (uint64_t)extra);
	return true;
}

static void set_spill(struct codeptr_state *state, int64_t at, struct codeptr_value value)
{
	unsigned int i;

	for (i = 0; i < state->n_spills && state->spills[i].at != at; i++)
		;
	if (i == state->n_spills) {
		if (!value.fn || i == CODEPTR_MAX_SPILLS)
			return;
		state->n_spills++;
	}
	state->spills[i].at = at;
	state->spills[i].value = value;
}

static struct codeptr_value get_spill(const struct codeptr_state *state, int64_t at)
{
	unsigned int i;

	for (i = 0; i < state->n_spills; i++) {
		if (state->spills[i].at == at)
			return state->spills[i].value;
	}
	return (struct codeptr_value){ 0, 0 };
}

static uint64_t rip_target(const cs_insn *insn, const cs_x86_op *op)
{
	return insn->address + insn->size + (uint64_t)op->mem.disp;
}

/* The 8 bytes at operand + extra: a stack slot, or a constant that a relocation fills. */
static struct codeptr_value load_value(const struct codeptr_tracker *tr, const cs_insn *insn,
				       const cs_x86_op *op, int64_t extra)
{
	uint64_t vaddr;
	int64_t at;

	if (stack_slot(&tr->now, op, extra, &at))
		return get_spill(&tr->now, at);
	if (op->mem.base == X86_REG_RIP && op->mem.index == X86_REG_INVALID &&
	    !elf_relative_addend(tr->elf, rip_target(insn, op) + (uint64_t)extra, &vaddr))
		return make_value(tr, vaddr);
	return (struct codeptr_value){ 0, 0 };
}

static void mark_target(struct codeptr_tracker *tr, uint64_t vaddr)
{
	const struct elf_range *func = vaddr ? find_func(tr, vaddr) : NULL;

	if (func)
		tr->is_target[func - tr->funcs] = 1;
}

static void store_value(struct codeptr_tracker *tr, const cs_x86_op *op, int64_t extra,
			struct codeptr_value value)
{
	int64_t at;

	if (stack_slot(&tr->now, op, extra, &at)) {
		set_spill(&tr->now, at, value);
		return;
	}
	if (op->mem.index != X86_REG_INVALID || gp_index(op->mem.base) < 0 ||
	    op->mem.base == X86_REG_RSP || op->mem.disp + extra != (int64_t)tr->disp_bytes)
		return;
	tr->scan->stores++;
	tr->scan->resolved += value.fn != 0;
	mark_target(tr, value.fn);
	mark_target(tr, value.alt);
}

/* The value an instruction's operand has, where it is 8 bytes wide. */
static struct codeptr_value operand_value(struct codeptr_tracker *tr, const cs_insn *insn,
					  const cs_x86_op *op)
{
	int xmm = xmm_operand(op);

	if (is_reg64(op))
		return tr->now.gp[gp_index(op->reg)];
	if (xmm >= 0)
		return tr->now.xmm[xmm][0];
	if (op->type == X86_OP_MEM)
		return load_value(tr, insn, op, 0);
	return (struct codeptr_value){ 0, 0 };
}

static void forget_register(struct codeptr_state *state, unsigned int reg)
{
	const struct codeptr_value unknown = { 0, 0 };
	int gp = gp_index(reg), xmm = xmm_index(reg);

	if (gp >= 0)
		state->gp[gp] = unknown;
	if (gp == GP_RBP)
		state->has_fp = false;
	if (xmm >= 0)
		state->xmm[xmm][0] = state->xmm[xmm][1] = unknown;
}

static void forget_written(struct codeptr_tracker *tr, const cs_insn *insn)
{
	cs_regs read, written;
	uint8_t n_read, n_written, i;

	if (cs_regs_access(tr->cs, insn, read, &n_read, written, &n_written))
		return;
	for (i = 0; i < n_written; i++)
		forget_register(&tr->now, written[i]);
	if (insn->id == X86_INS_XCHG) {
		for (i = 0; i < n_read; i++)
			forget_register(&tr->now, read[i]);
	}
}

/* A call leaves rbx, rbp, rsp and r12-r15 alone, and nothing else. */
static void forget_caller_saved(struct codeptr_state *state)
{
	unsigned int i;

	for (i = 0; i < CODEPTR_N_GP; i++) {
		if (i != 1 && i != GP_RSP && i != GP_RBP && i < 12)
			state->gp[i] = (struct codeptr_value){ 0, 0 };
	}
	memset(state->xmm, 0, sizeof(state->xmm));
}

/* Whatever moves rsp. True if the instruction was such a one. */
static bool track_stack(struct codeptr_state *state, const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;
	int64_t delta;

	switch (insn->id) {
	case X86_INS_PUSH:
		state->sp -= 8;
		set_spill(state, state->sp, (struct codeptr_value){ 0, 0 });
		return true;
	case X86_INS_POP:
		state->sp += 8;
		forget_register(state, op[0].reg);
		return true;
	case X86_INS_SUB:
	case X86_INS_ADD:
		if (op[0].type != X86_OP_REG || op[0].reg != X86_REG_RSP ||
		    op[1].type != X86_OP_IMM)
			return false;
		delta = (int32_t)op[1].imm;
		state->sp += insn->id == X86_INS_ADD ? delta : -delta;
		return true;
	case X86_INS_LEAVE:
		if (state->has_fp)
			state->sp = state->fp + 8;
		forget_register(state, X86_REG_RBP);
		return true;
	default:
		return false;
	}
}

/* mov, movq and their like: eight bytes from the second operand to the first. */
static void track_move8(struct codeptr_tracker *tr, const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;
	int to = xmm_operand(&op[0]);
	struct codeptr_value value = { 0, 0 };

	if (op[1].size == 8 || xmm_operand(&op[1]) >= 0)
		value = operand_value(tr, insn, &op[1]);
	if (op[0].type == X86_OP_MEM) {
		if (op[0].size == 8)
			store_value(tr, &op[0], 0, value);
		return;
	}
	forget_written(tr, insn);
	if (is_reg64(&op[0]))
		tr->now.gp[gp_index(op[0].reg)] = value;
	else if (to >= 0)
		tr->now.xmm[to][0] = value;
	if (op[0].type == X86_OP_REG && op[0].reg == X86_REG_RBP && op[1].type == X86_OP_REG &&
	    op[1].reg == X86_REG_RSP) {
		tr->now.fp = tr->now.sp;
		tr->now.has_fp = true;
	}
}

/* movups, movdqa, ...: both halves. */
static void track_move16(struct codeptr_tracker *tr, const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;
	int from = xmm_operand(&op[1]);
	int to = xmm_operand(&op[0]);
	struct codeptr_value low = { 0, 0 }, high = { 0, 0 };

	if (op[0].size != 16) {
		forget_written(tr, insn);
		return;
	}
	if (from >= 0) {
		low = tr->now.xmm[from][0];
		high = tr->now.xmm[from][1];
	} else if (op[1].type == X86_OP_MEM) {
		low = load_value(tr, insn, &op[1], 0);
		high = load_value(tr, insn, &op[1], 8);
	}
	if (op[0].type == X86_OP_MEM) {
		store_value(tr, &op[0], 0, low);
		store_value(tr, &op[0], 8, high);
	} else if (to >= 0) {
		tr->now.xmm[to][0] = low;
		tr->now.xmm[to][1] = high;
	}
}

/*
 * pinsrq, movhps, punpcklqdq: the low half of one operand, the high half from another. The VEX
 * forms name the source of the low half apart, as second of three operands (four with the
 * immediate).
 */
static void track_high_half(struct codeptr_tracker *tr, const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;
	int to = xmm_operand(&op[0]);
	unsigned int n = insn->detail->x86.op_count;
	struct codeptr_value low, high;

	if (n && op[n - 1].type == X86_OP_IMM)
		n = op[n - 1].imm & 1 ? n - 1 : 0; /* pinsrq of a low half: compilers use movq */
	if (to < 0 || n < 2 || n > 3) {
		forget_written(tr, insn);
		return;
	}
	low = operand_value(tr, insn, n == 3 ? &op[1] : &op[0]);
	high = operand_value(tr, insn, &op[n - 1]);
	tr->now.xmm[to][0] = low;
	tr->now.xmm[to][1] = high;
}

/* movhps [memory], xmm */
static bool track_high_store(struct codeptr_tracker *tr, const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;
	int from = xmm_operand(&op[1]);

	if (op[0].type != X86_OP_MEM || from < 0)
		return false;
	store_value(tr, &op[0], 0, tr->now.xmm[from][1]);
	return true;
}

static void track_lea(struct codeptr_tracker *tr, const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	forget_written(tr, insn);
	if (is_reg64(&op[0]) && op[1].mem.base == X86_REG_RIP && op[1].mem.index == X86_REG_INVALID)
		tr->now.gp[gp_index(op[0].reg)] = make_value(tr, rip_target(insn, &op[1]));
}

static bool is_cmov(unsigned int id)
{
	static const unsigned int ids[] = {
		X86_INS_CMOVA,  X86_INS_CMOVAE, X86_INS_CMOVB,  X86_INS_CMOVBE,
		X86_INS_CMOVE,  X86_INS_CMOVG,  X86_INS_CMOVGE, X86_INS_CMOVL,
		X86_INS_CMOVLE, X86_INS_CMOVNE, X86_INS_CMOVNO, X86_INS_CMOVNP,
		X86_INS_CMOVNS, X86_INS_CMOVO,  X86_INS_CMOVP,  X86_INS_CMOVS,
	};
	unsigned int i;

	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (ids[i] == id)
			return true;
	}
	return false;
}

void codeptr_track(struct codeptr_tracker *tr, const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;
	struct codeptr_value *value;

	if (track_stack(&tr->now, insn))
		return;
	switch (insn->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVQ:
	case X86_INS_VMOVQ:
	case X86_INS_MOVLPS:
	case X86_INS_MOVLPD:
		track_move8(tr, insn);
		return;
	case X86_INS_LEA:
		track_lea(tr, insn);
		return;
	case X86_INS_MOVUPS:
	case X86_INS_MOVAPS:
	case X86_INS_MOVUPD:
	case X86_INS_MOVAPD:
	case X86_INS_MOVDQU:
	case X86_INS_MOVDQA:
	case X86_INS_VMOVUPS:
	case X86_INS_VMOVAPS:
	case X86_INS_VMOVDQU:
	case X86_INS_VMOVDQA:
		track_move16(tr, insn);
		return;
	case X86_INS_PINSRQ:
	case X86_INS_VPINSRQ:
	case X86_INS_PUNPCKLQDQ:
	case X86_INS_VPUNPCKLQDQ:
	case X86_INS_MOVHPS:
	case X86_INS_MOVHPD:
	case X86_INS_VMOVHPS:
	case X86_INS_VMOVHPD:
	case X86_INS_MOVLHPS:
	case X86_INS_VMOVLHPS:
		if (!track_high_store(tr, insn))
			track_high_half(tr, insn);
		return;
	case X86_INS_CALL:
		forget_caller_saved(&tr->now);
		return;
	default:
		break;
	}
	if (is_cmov(insn->id) && is_reg64(&op[0])) {
		value = &tr->now.gp[gp_index(op[0].reg)];
		*value = join_values(*value, operand_value(tr, insn, &op[1]));
		return;
	}
	forget_written(tr, insn);
}
