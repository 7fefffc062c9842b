// SPDX-License-Identifier: Apache-2.0
/*
 * elf.c: a bounded reader of ELF64 objects: segments, .dynsym, relative relocations; the unwind
 * table is left to eh_frame.c.
 *
 * Owns a private copy of the file's bytes, so a file that is truncated or replaced meanwhile cannot
 * raise SIGBUS. Every offset and count comes from a foreign object and is checked against that
 * copy. Must not know GlusterFS, processes or instructions.
 */
#include "elf.h"

#include "eh_frame.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES (1ULL << 30) /* larger objects are refused: nothing we trace comes near */
#define MAX_LOADS      64

/* Not in the kernel's headers: psABI x86-64 table 4.9, AArch64 ELF table 5-14, gABI DT_RELR. */
enum {
	RELOC_X86_64_RELATIVE = 8,
	RELOC_AARCH64_RELATIVE = 1027,
	SECTION_RELR = 19,
};

struct load_segment {
	uint64_t vaddr, offset, size_bytes; /* only what lies in the file */
	bool exec;
};

struct relative_reloc {
	uint64_t vaddr, addend;
};

struct file_span {
	uint64_t offset, size_bytes;
};

struct elf_file {
	unsigned char *image;
	uint64_t size_bytes;
	int machine;
	struct load_segment loads[MAX_LOADS];
	unsigned int n_loads;
	struct file_span dynsym, dynstr, eh_frame;
	uint64_t eh_frame_vaddr;
	struct relative_reloc *relocs; /* ascending by vaddr */
	size_t n_relocs, max_relocs;
};

static bool span_fits(uint64_t offset, uint64_t len, uint64_t size)
{
	return offset <= size && len <= size - offset;
}

/* Copy of a fixed-size record; the image has no alignment that could be relied on. */
static bool copy_record(const struct elf_file *elf, uint64_t offset, void *buf, size_t len)
{
	if (!span_fits(offset, len, elf->size_bytes))
		return false;
	memcpy(buf, elf->image + offset, len);
	return true;
}

static int load_segments(struct elf_file *elf, const Elf64_Ehdr *eh)
{
	unsigned int i;

	if (eh->e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	for (i = 0; i < eh->e_phnum && elf->n_loads < MAX_LOADS; i++) {
		struct load_segment *load = &elf->loads[elf->n_loads];
		uint64_t size = elf->size_bytes;
		Elf64_Phdr ph;

		if (!copy_record(elf, eh->e_phoff + i * sizeof(ph), &ph, sizeof(ph)))
			return -ENOEXEC;
		if (ph.p_type != PT_LOAD || ph.p_offset >= size)
			continue;
		load->vaddr = ph.p_vaddr;
		load->offset = ph.p_offset;
		load->size_bytes = ph.p_filesz;
		if (load->size_bytes > size - ph.p_offset)
			load->size_bytes = size - ph.p_offset; /* a truncated file */
		if (load->size_bytes > UINT64_MAX - load->vaddr)
			continue;
		load->exec = ph.p_flags & PF_X;
		elf->n_loads++;
	}
	return elf->n_loads ? 0 : -ENOEXEC;
}

static int push_reloc(struct elf_file *elf, uint64_t vaddr, uint64_t addend)
{
	struct relative_reloc *grown;
	size_t max;

	/* Each relocation fills its own eight bytes, so a sane object cannot have more. */
	if (elf->n_relocs >= elf->size_bytes / 8)
		return -E2BIG;
	if (elf->n_relocs == elf->max_relocs) {
		max = elf->max_relocs ? elf->max_relocs * 2 : 1024;
		grown = realloc(elf->relocs, max * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		elf->relocs = grown;
		elf->max_relocs = max;
	}
	elf->relocs[elf->n_relocs].vaddr = vaddr;
	elf->relocs[elf->n_relocs++].addend = addend;
	return 0;
}

static int load_rela(struct elf_file *elf, const Elf64_Shdr *sh)
{
	uint32_t want = elf->machine == EM_AARCH64 ? RELOC_AARCH64_RELATIVE : RELOC_X86_64_RELATIVE;
	uint64_t at;
	int err;

	for (at = 0; at + sizeof(Elf64_Rela) <= sh->sh_size; at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;

		if (!copy_record(elf, sh->sh_offset + at, &rela, sizeof(rela)))
			return -ENOEXEC;
		if (ELF64_R_TYPE(rela.r_info) != want)
			continue;
		err = push_reloc(elf, rela.r_offset, (uint64_t)rela.r_addend);
		if (err)
			return err;
	}
	return 0;
}

/*
 * The addend of a packed relocation lies in the relocated word itself. A word outside the image
 * refuses the object: a bitmap may claim 63 of them in 8 bytes, and that must not run for minutes.
 */
static int push_relr(struct elf_file *elf, uint64_t vaddr)
{
	uint64_t addend;

	if (elf_read(elf, vaddr, &addend, sizeof(addend)))
		return -ENOEXEC;
	return push_reloc(elf, vaddr, addend);
}

/* gABI "Relative Relocation Table": even words are addresses, odd ones bitmaps of what follows. */
static int load_relr(struct elf_file *elf, const Elf64_Shdr *sh)
{
	uint64_t at, where = 0, word;
	unsigned int bit;
	int err = 0;

	for (at = 0; !err && at + sizeof(word) <= sh->sh_size; at += sizeof(word)) {
		if (!copy_record(elf, sh->sh_offset + at, &word, sizeof(word)))
			return -ENOEXEC;
		if (!(word & 1)) {
			err = push_relr(elf, word);
			where = word + 8;
			continue;
		}
		for (bit = 0; !err && bit < 63; bit++) {
			if ((word >> (bit + 1)) & 1)
				err = push_relr(elf, where + bit * 8);
		}
		where += 63 * 8;
	}
	return err;
}

static int compare_relocs(const void *a, const void *b)
{
	const struct relative_reloc *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static bool name_is(const struct elf_file *elf, const struct file_span *strings, uint64_t at,
		    const char *name)
{
	size_t len = strlen(name) + 1;

	return span_fits(at, len, strings->size_bytes) &&
	       !memcmp(elf->image + strings->offset + at, name, len);
}

static bool read_section(const struct elf_file *elf, const Elf64_Ehdr *eh, uint64_t i,
			 Elf64_Shdr *ret_sh)
{
	Elf64_Shdr sh;

	if (i >= eh->e_shnum || !copy_record(elf, eh->e_shoff + i * sizeof(sh), &sh, sizeof(sh)))
		return false;
	if (sh.sh_type != SHT_NOBITS && !span_fits(sh.sh_offset, sh.sh_size, elf->size_bytes))
		return false;
	*ret_sh = sh;
	return true;
}

static int load_section(struct elf_file *elf, const Elf64_Ehdr *eh, const Elf64_Shdr *sh,
			const struct file_span *names)
{
	Elf64_Shdr strings;

	switch (sh->sh_type) {
	case SHT_DYNSYM:
		if (sh->sh_entsize != sizeof(Elf64_Sym) ||
		    !read_section(elf, eh, sh->sh_link, &strings) || strings.sh_type != SHT_STRTAB)
			return 0;
		elf->dynsym = (struct file_span){ sh->sh_offset, sh->sh_size };
		elf->dynstr = (struct file_span){ strings.sh_offset, strings.sh_size };
		return 0;
	case SHT_RELA:
		/* Static objects' debug sections have relocations too, but no SHF_ALLOC. */
		return sh->sh_flags & SHF_ALLOC ? load_rela(elf, sh) : 0;
	case SECTION_RELR:
		return load_relr(elf, sh);
	case SHT_NOBITS: /* as in separate debug files */
		return 0;
	default:
		if (name_is(elf, names, sh->sh_name, ".eh_frame")) {
			elf->eh_frame = (struct file_span){ sh->sh_offset, sh->sh_size };
			elf->eh_frame_vaddr = sh->sh_addr;
		}
		return 0;
	}
}

/* An object without section headers is usable: only what needs them answers -ENOENT. */
static int load_sections(struct elf_file *elf, const Elf64_Ehdr *eh)
{
	struct file_span names = { 0, 0 };
	Elf64_Shdr sh;
	uint64_t i;
	int err;

	if (eh->e_shentsize != sizeof(sh))
		return 0;
	if (read_section(elf, eh, eh->e_shstrndx, &sh) && sh.sh_type == SHT_STRTAB)
		names = (struct file_span){ sh.sh_offset, sh.sh_size };
	for (i = 0; i < eh->e_shnum; i++) {
		if (!read_section(elf, eh, i, &sh))
			continue;
		err = load_section(elf, eh, &sh, &names);
		if (err)
			return err;
	}
	if (elf->n_relocs)
		qsort(elf->relocs, elf->n_relocs, sizeof(*elf->relocs), compare_relocs);
	return 0;
}

/* Takes over image, also on failure. */
static int parse_image(unsigned char *image, uint64_t len, struct elf_file **ret_elf)
{
	struct elf_file *elf;
	Elf64_Ehdr eh;
	int err;

	elf = calloc(1, sizeof(*elf));
	if (!elf) {
		free(image);
		return -ENOMEM;
	}
	elf->image = image;
	elf->size_bytes = len;
	if (!copy_record(elf, 0, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB) {
		err = -ENOEXEC;
		goto out_close;
	}
	elf->machine = eh.e_machine;
	err = load_segments(elf, &eh);
	if (!err)
		err = load_sections(elf, &eh);
	if (err)
		goto out_close;
	*ret_elf = elf;
	return 0;

out_close:
	elf_close(elf);
	return err;
}

int elf_open_memory(const void *image, size_t len, struct elf_file **ret_elf)
{
	unsigned char *copy;

	if (len < sizeof(Elf64_Ehdr))
		return -ENOEXEC;
	if (len > MAX_FILE_BYTES)
		return -EFBIG;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, image, len);
	return parse_image(copy, len, ret_elf);
}

static int read_whole(int fd, unsigned char *buf, size_t size, size_t *ret_len)
{
	size_t len = 0;
	ssize_t n;

	while (len < size) {
		n = read(fd, buf + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* shorter than fstat() said: parse what there is */
		len += (size_t)n;
	}
	*ret_len = len;
	return 0;
}

int elf_open(const char *path, struct elf_file **ret_elf)
{
	unsigned char *image = NULL;
	struct stat st;
	size_t len = 0;
	int fd, err;

	/* O_NONBLOCK: a path inside a foreign root may be a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	err = -ENOEXEC;
	if (fstat(fd, &st)) {
		err = -errno;
		goto out_close;
	}
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		goto out_close;
	err = -EFBIG;
	if ((uint64_t)st.st_size > MAX_FILE_BYTES)
		goto out_close;
	err = -ENOMEM;
	image = malloc((size_t)st.st_size);
	if (!image)
		goto out_close;
	err = read_whole(fd, image, (size_t)st.st_size, &len);
	if (!err) {
		err = parse_image(image, len, ret_elf);
		image = NULL;
	}

out_close:
	free(image);
	close(fd);
	return err;
}

void elf_close(struct elf_file *elf)
{
	if (!elf)
		return;
	free(elf->relocs);
	free(elf->image);
	free(elf);
}

int elf_machine(const struct elf_file *elf)
{
	return elf->machine;
}

int elf_find_symbol(const struct elf_file *elf, const char *name, struct elf_symbol *ret_sym)
{
	Elf64_Sym sym;
	uint64_t at;

	for (at = 0; at + sizeof(sym) <= elf->dynsym.size_bytes; at += sizeof(sym)) {
		if (!copy_record(elf, elf->dynsym.offset + at, &sym, sizeof(sym)))
			break;
		if (sym.st_shndx == SHN_UNDEF || !name_is(elf, &elf->dynstr, sym.st_name, name))
			continue;
		ret_sym->vaddr = sym.st_value;
		ret_sym->size_bytes = sym.st_size;
		ret_sym->is_func = ELF_ST_TYPE(sym.st_info) == STT_FUNC;
		return 0;
	}
	return -ENOENT;
}

static const struct load_segment *find_load(const struct elf_file *elf, uint64_t vaddr)
{
	unsigned int i;

	for (i = 0; i < elf->n_loads; i++) {
		const struct load_segment *load = &elf->loads[i];

		if (vaddr >= load->vaddr && vaddr - load->vaddr < load->size_bytes)
			return load;
	}
	return NULL;
}

int elf_vaddr_to_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_offset)
{
	const struct load_segment *load = find_load(elf, vaddr);

	if (!load)
		return -ERANGE;
	*ret_offset = load->offset + (vaddr - load->vaddr);
	return 0;
}

int elf_offset_to_vaddr(const struct elf_file *elf, uint64_t offset, uint64_t *ret_vaddr)
{
	unsigned int i;

	for (i = 0; i < elf->n_loads; i++) {
		const struct load_segment *load = &elf->loads[i];

		if (offset >= load->offset && offset - load->offset < load->size_bytes) {
			*ret_vaddr = load->vaddr + (offset - load->offset);
			return 0;
		}
	}
	return -ERANGE;
}

int elf_read(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t len)
{
	const struct load_segment *load = find_load(elf, vaddr);

	if (!load || !span_fits(vaddr - load->vaddr, len, load->size_bytes))
		return -ERANGE;
	memcpy(buf, elf->image + load->offset + (vaddr - load->vaddr), len);
	return 0;
}

int elf_relative_addend(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_vaddr)
{
	const struct relative_reloc key = { .vaddr = vaddr }, *found = NULL;

	if (elf->n_relocs)
		found = bsearch(&key, elf->relocs, elf->n_relocs, sizeof(key), compare_relocs);
	if (!found)
		return -ENOENT;
	*ret_vaddr = found->addend;
	return 0;
}

int elf_functions(const struct elf_file *elf, struct elf_range **ret_funcs, size_t *ret_n)
{
	const unsigned char *data = elf->image + elf->eh_frame.offset;
	struct elf_range *funcs;
	size_t i, n, kept = 0;
	int err;

	err = eh_frame_parse(data, elf->eh_frame.size_bytes, elf->eh_frame_vaddr, &funcs, &n);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		const struct load_segment *load = find_load(elf, funcs[i].start);
		uint64_t len = funcs[i].end - funcs[i].start;

		if (load && load->exec &&
		    span_fits(funcs[i].start - load->vaddr, len, load->size_bytes))
			funcs[kept++] = funcs[i];
	}
	if (kept == 0) {
		free(funcs);
		return -ENOENT;
	}
	*ret_funcs = funcs;
	*ret_n = kept;
	return 0;
}
