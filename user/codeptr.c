// SPDX-License-Identifier: Apache-2.0
/*
 * codeptr.c: one pass over each function's x86-64 code in address order; codeptr_track.c follows
 * the values, this file the control flow: the state at a forward branch is kept and joined at its
 * target, since compilers move blocks; loops are not iterated. The code is foreign: all tables are
 * bounded, and what does not fit is merely not found.
 */
#include "codeptr.h"

#include "codeptr_track.h"

#include <errno.h>
#include <linux/elf-em.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CODE_BYTES (1 << 20) /* of one function */

static void keep_for_target(struct codeptr_tracker *tr, uint64_t target)
{
	unsigned int i;

	for (i = 0; i < tr->n_pending && tr->pending[i].target != target; i++)
		;
	if (i < tr->n_pending) {
		codeptr_join(&tr->pending[i].state, &tr->now);
	} else if (i < CODEPTR_MAX_PENDING) {
		tr->pending[i].target = target;
		tr->pending[i].state = tr->now;
		tr->n_pending++;
	}
}

/* At the start of an instruction: what other paths bring here. */
static void arrive(struct codeptr_tracker *tr, uint64_t vaddr, bool falls_through)
{
	bool found = false;
	unsigned int i;

	for (i = 0; i < tr->n_pending; i++) {
		if (tr->pending[i].target > vaddr)
			continue;
		if (tr->pending[i].target == vaddr) {
			found = true;
			if (falls_through)
				codeptr_join(&tr->now, &tr->pending[i].state);
			else
				tr->now = tr->pending[i].state;
		}
		tr->pending[i] = tr->pending[--tr->n_pending];
		i--;
	}
	/* Reached from below only: the last branch is the best guess, an epilogue's rsp is not. */
	if (!found && !falls_through)
		tr->now = tr->at_branch;
}

static void track_branch(struct codeptr_tracker *tr, const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	tr->at_branch = tr->now;
	if (insn->detail->x86.op_count == 1 && op->type == X86_OP_IMM &&
	    (uint64_t)op->imm > insn->address)
		keep_for_target(tr, (uint64_t)op->imm);
}

static void scan_function(struct codeptr_tracker *tr, cs_insn *insn, const uint8_t *code,
			  size_t len, uint64_t vaddr)
{
	bool falls_through = true;
	uint64_t at = vaddr;

	memset(&tr->now, 0, sizeof(tr->now));
	tr->at_branch = tr->now;
	tr->n_pending = 0;
	while (len) {
		if (!cs_disasm_iter(tr->cs, &code, &len, &at, insn)) {
			code++; /* not an instruction that capstone knows: find the next one */
			len--;
			at++;
			continue;
		}
		if (tr->n_pending || !falls_through)
			arrive(tr, insn->address, falls_through);
		falls_through = insn->id != X86_INS_JMP && !cs_insn_group(tr->cs, insn, CS_GRP_RET);
		if (cs_insn_group(tr->cs, insn, CS_GRP_JUMP))
			track_branch(tr, insn);
		else if (falls_through)
			codeptr_track(tr, insn);
	}
}

static int scan_functions(struct codeptr_tracker *tr)
{
	uint8_t *code = NULL, *grown;
	size_t i, max = 0;
	cs_insn *insn;
	int err = 0;

	insn = cs_malloc(tr->cs);
	if (!insn)
		return -ENOMEM;
	for (i = 0; i < tr->n_funcs && !err; i++) {
		uint64_t start = tr->funcs[i].start, len = tr->funcs[i].end - start;

		if (len > MAX_CODE_BYTES)
			len = MAX_CODE_BYTES;
		if (len > max) {
			grown = realloc(code, len);
			if (!grown) {
				err = -ENOMEM;
				break;
			}
			code = grown;
			max = len;
		}
		if (!elf_read(tr->elf, start, code, len))
			scan_function(tr, insn, code, len, start);
	}
	free(code);
	cs_free(insn, 1);
	return err;
}

static int collect_targets(const struct codeptr_tracker *tr, struct codeptr_scan *scan)
{
	size_t i;

	scan->targets = malloc((tr->n_funcs + 1) * sizeof(*scan->targets));
	if (!scan->targets)
		return -ENOMEM;
	for (i = 0; i < tr->n_funcs; i++) {
		if (tr->is_target[i])
			scan->targets[scan->n++] = tr->funcs[i];
	}
	return 0;
}

int codeptr_find(const struct elf_file *elf, uint32_t disp_bytes, struct codeptr_scan *ret_scan)
{
	struct codeptr_scan scan = { 0 };
	struct elf_range *funcs = NULL;
	struct codeptr_tracker *tr;
	int err;

	if (elf_machine(elf) != EM_X86_64)
		return -EOPNOTSUPP;
	tr = calloc(1, sizeof(*tr));
	if (!tr)
		return -ENOMEM;
	tr->elf = elf;
	tr->disp_bytes = disp_bytes;
	tr->scan = &scan;
	err = elf_functions(elf, &funcs, &tr->n_funcs);
	if (err)
		goto out_free;
	tr->funcs = funcs;
	err = -ENOMEM;
	tr->is_target = calloc(tr->n_funcs, 1);
	if (!tr->is_target || cs_open(CS_ARCH_X86, CS_MODE_64, &tr->cs))
		goto out_free;
	cs_option(tr->cs, CS_OPT_DETAIL, CS_OPT_ON);
	err = scan_functions(tr);
	cs_close(&tr->cs);
	if (!err)
		err = collect_targets(tr, &scan);
	if (!err)
		*ret_scan = scan;

out_free:
	free(tr->is_target);
	free(funcs);
	free(tr);
	return err;
}

void codeptr_free(struct codeptr_scan *scan)
{
	free(scan->targets);
	*scan = (struct codeptr_scan){ 0 };
}
