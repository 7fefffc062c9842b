/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_image.h: builds small ELF64 objects in memory for tests: a text and a data segment, .dynsym,
 * .rela.dyn, .relr.dyn and .eh_frame. Owns the layout; a test says what is in it.
 */
#ifndef BRICKTOP_TESTS_ELF_IMAGE_H
#define BRICKTOP_TESTS_ELF_IMAGE_H

#include <linux/elf.h>
#include <stdint.h>
#include <string.h>

enum {
	IMAGE_TEXT_OFFSET = 0x1000,
	IMAGE_TEXT_VADDR = 0x11000,
	IMAGE_DATA_OFFSET = 0x2000,
	IMAGE_DATA_VADDR = 0x23000,
	IMAGE_SEGMENT_BYTES = 0x1000,
	IMAGE_FRAME_OFFSET = 0x2800, /* in the data segment, behind 0x800 bytes for tables */
	IMAGE_FRAME_VADDR = 0x23800,
	IMAGE_SECTIONS = 0x3000,
	IMAGE_DYNSYM = 0x3400,
	IMAGE_DYNSTR = 0x3600,
	IMAGE_RELA = 0x3800,
	IMAGE_RELR = 0x3c00,
	IMAGE_NAMES = 0x3e00,
	IMAGE_BYTES = 0x4000,
	IMAGE_SHT_RELR = 19,
};

enum image_section {
	SEC_NULL,
	SEC_DYNSYM,
	SEC_DYNSTR,
	SEC_RELA,
	SEC_RELR,
	SEC_FRAME,
	SEC_NAMES,
	SEC_N
};

struct elf_image {
	uint8_t bytes[IMAGE_BYTES];
	Elf64_Shdr sections[SEC_N];
};

__attribute__((unused)) static void image_section(struct elf_image *image, enum image_section sec,
						  uint32_t type, uint64_t offset, uint64_t entsize)
{
	image->sections[sec].sh_type = type;
	image->sections[sec].sh_offset = offset;
	image->sections[sec].sh_entsize = entsize;
	image->sections[sec].sh_flags = SHF_ALLOC;
}

/* What the tests changed in sections goes into the image. */
__attribute__((unused)) static void image_finish(struct elf_image *image)
{
	memcpy(image->bytes + IMAGE_SECTIONS, image->sections, sizeof(image->sections));
}

/* Append n bytes to a section. */
__attribute__((unused)) static void image_append(struct elf_image *image, enum image_section sec,
						 const void *data, size_t n)
{
	Elf64_Shdr *sh = &image->sections[sec];

	memcpy(image->bytes + sh->sh_offset + sh->sh_size, data, n);
	sh->sh_size += n;
	image_finish(image);
}

__attribute__((unused)) static void image_init(struct elf_image *image, uint16_t machine)
{
	static const char names[] = "\0.eh_frame";
	/* length 16, CIE, version 1, "zR", factors 1 and -8, register 16, addresses pcrel sdata4 */
	static const uint8_t cie[] = { 16,  0, 0, 0,    0,  0, 0,    0, 1, 'z',
				       'R', 0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0 };
	Elf64_Ehdr *eh = (Elf64_Ehdr *)image->bytes;
	Elf64_Phdr *ph = (Elf64_Phdr *)(image->bytes + sizeof(*eh));
	const Elf64_Sym no_symbol = { 0 };

	memset(image, 0, sizeof(*image));
	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_type = ET_DYN;
	eh->e_machine = machine;
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(*ph);
	eh->e_phnum = 2;
	eh->e_shoff = IMAGE_SECTIONS;
	eh->e_shentsize = sizeof(Elf64_Shdr);
	eh->e_shnum = SEC_N;
	eh->e_shstrndx = SEC_NAMES;
	ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_offset = IMAGE_TEXT_OFFSET,
			      .p_vaddr = IMAGE_TEXT_VADDR,
			      .p_filesz = IMAGE_SEGMENT_BYTES };
	ph[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
			      .p_flags = PF_R | PF_W,
			      .p_offset = IMAGE_DATA_OFFSET,
			      .p_vaddr = IMAGE_DATA_VADDR,
			      .p_filesz = IMAGE_SEGMENT_BYTES };
	image_section(image, SEC_DYNSYM, SHT_DYNSYM, IMAGE_DYNSYM, sizeof(Elf64_Sym));
	image->sections[SEC_DYNSYM].sh_link = SEC_DYNSTR;
	image_section(image, SEC_DYNSTR, SHT_STRTAB, IMAGE_DYNSTR, 0);
	image_section(image, SEC_RELA, SHT_RELA, IMAGE_RELA, sizeof(Elf64_Rela));
	image_section(image, SEC_RELR, IMAGE_SHT_RELR, IMAGE_RELR, 8);
	image_section(image, SEC_FRAME, SHT_PROGBITS, IMAGE_FRAME_OFFSET, 0);
	image->sections[SEC_FRAME].sh_addr = IMAGE_FRAME_VADDR;
	image->sections[SEC_FRAME].sh_name = 1;
	image_section(image, SEC_NAMES, SHT_STRTAB, IMAGE_NAMES, 0);
	image_append(image, SEC_NAMES, names, sizeof(names));
	image_append(image, SEC_DYNSTR, "", 1);
	image_append(image, SEC_DYNSYM, &no_symbol, sizeof(no_symbol));
	image_append(image, SEC_FRAME, cie, sizeof(cie));
}

/* Code (or data) at a virtual address of either segment. */
__attribute__((unused)) static void image_put(struct elf_image *image, uint64_t vaddr,
					      const void *data, size_t n)
{
	uint64_t offset = vaddr - IMAGE_TEXT_VADDR + IMAGE_TEXT_OFFSET;

	if (vaddr >= IMAGE_DATA_VADDR)
		offset = vaddr - IMAGE_DATA_VADDR + IMAGE_DATA_OFFSET;
	memcpy(image->bytes + offset, data, n);
}

__attribute__((unused)) static void image_func(struct elf_image *image, uint64_t vaddr,
					       uint32_t len)
{
	uint32_t at = (uint32_t)image->sections[SEC_FRAME].sh_size;
	/* length, distance to the CIE, start relative to its own place, length, no augmentation */
	uint32_t fde[5] = { 16, at + 4, (uint32_t)(vaddr - (IMAGE_FRAME_VADDR + at + 8)), len, 0 };

	image_append(image, SEC_FRAME, fde, sizeof(fde));
}

__attribute__((unused)) static void image_symbol(struct elf_image *image, const char *name,
						 unsigned int type, uint16_t section,
						 uint64_t vaddr, uint64_t size)
{
	Elf64_Sym sym = { .st_name = (uint32_t)image->sections[SEC_DYNSTR].sh_size,
			  .st_info = (unsigned char)type,
			  .st_shndx = section,
			  .st_value = vaddr,
			  .st_size = size };

	image_append(image, SEC_DYNSTR, name, strlen(name) + 1);
	image_append(image, SEC_DYNSYM, &sym, sizeof(sym));
}

/* type 8 is R_X86_64_RELATIVE */
__attribute__((unused)) static void image_rela(struct elf_image *image, uint64_t vaddr,
					       uint32_t type, uint64_t addend)
{
	Elf64_Rela rela = { .r_offset = vaddr, .r_info = type, .r_addend = (int64_t)addend };

	image_append(image, SEC_RELA, &rela, sizeof(rela));
}

#endif
