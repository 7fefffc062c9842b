// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_elf.c: the ELF reader on arbitrary bytes: every query that takes an object of another
 * process.
 */
#include "elf.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_range *funcs = NULL;
	struct elf_file *elf = NULL;
	struct elf_symbol sym;
	uint64_t value, back;
	size_t n = 0, i;
	uint8_t buf[64];

	if (elf_open_memory(data, size, &elf))
		return 0;
	if (!elf_find_symbol(elf, "xlator_api", &sym)) {
		elf_relative_addend(elf, sym.vaddr + 0x60, &value);
		elf_read(elf, sym.vaddr, buf, sizeof(buf));
	}
	if (!elf_functions(elf, &funcs, &n)) {
		for (i = 0; i < n; i++) {
			/* What is said to be a function can be read, and has a place in the file.
			 */
			if (funcs[i].end <= funcs[i].start ||
			    elf_read(elf, funcs[i].end - 1, buf, 1) ||
			    elf_vaddr_to_offset(elf, funcs[i].start, &value) || value >= size)
				abort();
			if (i && funcs[i].start <= funcs[i - 1].start)
				abort();
		}
		free(funcs);
	}
	if (!elf_offset_to_vaddr(elf, size / 2, &value) &&
	    !elf_vaddr_to_offset(elf, value, &back) && back >= size)
		abort();
	elf_close(elf);
	return 0;
}
