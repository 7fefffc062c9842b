// SPDX-License-Identifier: Apache-2.0
/*
 * test_elf.c: the ELF reader, on an object built by hand whose every byte is known, on damaged
 * ones, and on the C library that this test itself runs with (what it says must be where dlsym()
 * finds it).
 */
#include "elf.h"

#include "elf_image.h"
#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define FUNC_TYPE   STT_FUNC
#define OBJECT_TYPE STT_OBJECT

static struct elf_image image;

static void build_image(void)
{
	const uint64_t relr[2] = { IMAGE_DATA_VADDR + 0x100,
				   0x2 | 0x8 | 1 }; /* +8 and +24 behind */
	const uint64_t in_place[4] = { 0x11111, 0x22222, 0x33333, 0x44444 };

	image_init(&image, EM_X86_64);
	image_symbol(&image, "imported", FUNC_TYPE, SHN_UNDEF, 0, 0);
	image_symbol(&image, "run", FUNC_TYPE, 1, IMAGE_TEXT_VADDR + 0x40, 12);
	image_symbol(&image, "table", OBJECT_TYPE, 1, IMAGE_DATA_VADDR + 0x20, 64);
	image_rela(&image, IMAGE_DATA_VADDR + 0x28, 8, IMAGE_TEXT_VADDR + 0x40);
	image_rela(&image, IMAGE_DATA_VADDR + 0x20, 8, IMAGE_TEXT_VADDR);
	image_rela(&image, IMAGE_DATA_VADDR + 0x30, 6, 77); /* GLOB_DAT: not relative */
	image_append(&image, SEC_RELR, relr, sizeof(relr));
	image_put(&image, IMAGE_DATA_VADDR + 0x100, in_place, sizeof(in_place));
	image_func(&image, IMAGE_TEXT_VADDR + 0x40, 12);
	image_func(&image, IMAGE_TEXT_VADDR, 0x30);
	image_func(&image, IMAGE_TEXT_VADDR, 0x30);         /* twice the same */
	image_func(&image, IMAGE_DATA_VADDR, 0x30);         /* not code */
	image_func(&image, IMAGE_TEXT_VADDR + 0xff0, 0x20); /* over the segment's end */
	image_func(&image, IMAGE_TEXT_VADDR + 0x80, 0);     /* empty */
}

static struct elf_file *open_image(size_t len)
{
	struct elf_file *elf = NULL;
	int err = elf_open_memory(image.bytes, len, &elf);

	if (err)
		diag("elf_open_memory: %d", err);
	return elf;
}

static void test_symbols(const struct elf_file *elf)
{
	struct elf_symbol sym = { 0 };

	is_int(elf_machine(elf), EM_X86_64, "the machine");
	is_int(elf_find_symbol(elf, "run", &sym), 0, "an exported function is found");
	ok(sym.vaddr == IMAGE_TEXT_VADDR + 0x40 && sym.size_bytes == 12 && sym.is_func == 1,
	   "with its address, size and type");
	is_int(elf_find_symbol(elf, "table", &sym), 0, "an exported object is found");
	ok(sym.vaddr == IMAGE_DATA_VADDR + 0x20 && sym.size_bytes == 64 && !sym.is_func,
	   "with its address, size and type");
	is_int(elf_find_symbol(elf, "imported", &sym), -ENOENT, "an undefined symbol is not");
	is_int(elf_find_symbol(elf, "ru", &sym), -ENOENT, "a prefix is no match");
	is_int(elf_find_symbol(elf, "runs", &sym), -ENOENT, "nor is a longer name");
}

static void test_addresses(const struct elf_file *elf)
{
	uint64_t value = 1, words[2];

	is_int(elf_vaddr_to_offset(elf, IMAGE_TEXT_VADDR + 5, &value), 0, "an address of the text");
	is_int((long long)value, IMAGE_TEXT_OFFSET + 5, "lies in the file where the segment says");
	is_int(elf_vaddr_to_offset(elf, IMAGE_TEXT_VADDR + IMAGE_SEGMENT_BYTES, &value), -ERANGE,
	       "one behind the segment has no offset");
	is_int(elf_vaddr_to_offset(elf, UINT64_MAX, &value), -ERANGE, "nor has the last address");
	is_int(elf_offset_to_vaddr(elf, IMAGE_DATA_OFFSET + 9, &value), 0, "an offset");
	is_int((long long)value, IMAGE_DATA_VADDR + 9, "goes back to its address");
	is_int(elf_offset_to_vaddr(elf, 0x10, &value), -ERANGE, "the header is not loaded");
	is_int(elf_read(elf, IMAGE_DATA_VADDR + 0x108, words, 16), 0, "reading inside a segment");
	ok(words[0] == 0x22222 && words[1] == 0x33333, "gives the bytes there");
	is_int(elf_read(elf, IMAGE_DATA_VADDR + 0xff8, words, 16), -ERANGE, "not over its end");
	is_int(elf_read(elf, IMAGE_DATA_VADDR, words, SIZE_MAX), -ERANGE, "nor the whole world");
}

static void test_relocations(const struct elf_file *elf)
{
	uint64_t value = 0;

	is_int(elf_relative_addend(elf, IMAGE_DATA_VADDR + 0x20, &value), 0,
	       "a relative relocation");
	is_int((long long)value, IMAGE_TEXT_VADDR, "gives its addend (table not in order)");
	is_int(elf_relative_addend(elf, IMAGE_DATA_VADDR + 0x30, &value), -ENOENT,
	       "another type is none");
	is_int(elf_relative_addend(elf, IMAGE_DATA_VADDR + 0x21, &value), -ENOENT,
	       "between two there is none");
	elf_relative_addend(elf, IMAGE_DATA_VADDR + 0x100, &value);
	is_int((long long)value, 0x11111, "a packed relocation by address");
	elf_relative_addend(elf, IMAGE_DATA_VADDR + 0x108, &value);
	is_int((long long)value, 0x22222, "and by the first bit of a bitmap");
	is_int(elf_relative_addend(elf, IMAGE_DATA_VADDR + 0x110, &value), -ENOENT,
	       "not by a clear one");
	elf_relative_addend(elf, IMAGE_DATA_VADDR + 0x118, &value);
	is_int((long long)value, 0x44444, "and by the third bit");
}

static void test_functions(const struct elf_file *elf)
{
	struct elf_range *funcs = NULL;
	size_t n = 0;

	is_int(elf_functions(elf, &funcs, &n), 0, "functions from .eh_frame");
	is_int((long long)n, 2, "those in the text, each once, none that is empty or too long");
	ok(n == 2 && funcs[0].start == IMAGE_TEXT_VADDR &&
		   funcs[0].end == IMAGE_TEXT_VADDR + 0x30 &&
		   funcs[1].start == IMAGE_TEXT_VADDR + 0x40,
	   "ascending");
	free(funcs);
}

/* Damaged objects: an error or an answer, but no crash and no answer from outside the image. */
static void test_damage(void)
{
	struct elf_file *elf = NULL;
	struct elf_range *funcs;
	struct elf_symbol sym;
	uint64_t value;
	size_t len, n;
	int opened = 0;

	is_int(elf_open_memory("not an object", 13, &elf), -ENOEXEC, "text is no object");
	is_int(elf_open("/nonexistent/file", &elf), -ENOENT, "a missing file");
	is_int(elf_open("/", &elf), -ENOEXEC, "a directory is no object");
	is_int(elf_open("/dev/zero", &elf), -ENOEXEC, "nor is a device");
	for (len = 0; len < IMAGE_BYTES; len += 61) {
		uint8_t *exact = malloc(len + 1); /* its own block: a sanitizer sees its end */

		memcpy(exact, image.bytes, len);
		if (!elf_open_memory(exact, len, &elf)) {
			opened++;
			elf_find_symbol(elf, "table", &sym);
			elf_relative_addend(elf, IMAGE_DATA_VADDR + 0x20, &value);
			if (!elf_functions(elf, &funcs, &n))
				free(funcs);
			if (!elf_vaddr_to_offset(elf, IMAGE_DATA_VADDR + 0xfff, &value) &&
			    value >= len)
				ok(false, "an offset behind the end of %zu bytes", len);
			elf_close(elf);
		}
		free(exact);
	}
	ok(opened > 100 && opened < 269, "truncated at any length: %d of 269 open", opened);
	elf_close(NULL);
}

static void test_bad_tables(void)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)image.bytes;
	const uint64_t wild[2] = { 0x7fff00000000, UINT64_MAX };
	struct elf_file *elf = NULL;
	struct elf_symbol sym;
	struct elf_range *funcs;
	size_t n;

	build_image();
	image.sections[SEC_DYNSYM].sh_size = UINT64_MAX - 5;
	image_finish(&image);
	elf = open_image(IMAGE_BYTES);
	is_int(elf_find_symbol(elf, "run", &sym), -ENOENT,
	       "a section larger than the file is ignored");
	elf_close(elf);

	build_image();
	image_append(&image, SEC_RELR, wild, sizeof(wild));
	is_int(elf_open_memory(image.bytes, IMAGE_BYTES, &elf), -ENOEXEC,
	       "packed relocations outside the object are refused");

	build_image();
	image.bytes[IMAGE_FRAME_OFFSET + 4 + 5] = 'x'; /* the CIE's augmentation "zR" */
	elf = open_image(IMAGE_BYTES);
	is_int(elf_functions(elf, &funcs, &n), -ENOENT, "an unknown augmentation: no functions");
	elf_close(elf);

	build_image();
	eh->e_shnum = 0;
	elf = open_image(IMAGE_BYTES);
	is_int(elf_functions(elf, &funcs, &n), -ENOENT, "no sections: no functions");
	is_int(elf_find_symbol(elf, "run", &sym), -ENOENT, "and no symbols");
	elf_close(elf);

	build_image();
	eh->e_ident[EI_CLASS] = ELFCLASS32;
	is_int(elf_open_memory(image.bytes, IMAGE_BYTES, &elf), -ENOEXEC,
	       "32-bit objects are refused");
	build_image();
	eh->e_phnum = 0;
	is_int(elf_open_memory(image.bytes, IMAGE_BYTES, &elf), -ENOEXEC,
	       "and such without a loadable segment");
}

/* The file may shrink under us: what was read stays readable. */
static void test_truncated_file(void)
{
	char path[] = "/tmp/bricktop-test-elf-XXXXXX";
	struct elf_file *elf = NULL;
	struct elf_symbol sym;
	int fd = mkstemp(path);

	build_image();
	if (fd < 0 || write(fd, image.bytes, IMAGE_BYTES) != IMAGE_BYTES) {
		ok(false, "cannot write %s", path);
		return;
	}
	is_int(elf_open(path, &elf), 0, "an object in a file opens");
	is_int(ftruncate(fd, 0), 0, "(the file is truncated)");
	is_int(elf_find_symbol(elf, "run", &sym), 0, "and is still whole to us");
	elf_close(elf);
	close(fd);
	unlink(path);
}

static void test_own_libc(void)
{
	void *want = dlsym(RTLD_DEFAULT, "getppid");
	struct elf_symbol sym = { 0 };
	struct elf_range *funcs = NULL;
	uint8_t code[16] = { 0 };
	struct elf_file *elf;
	size_t n = 0, i;
	Dl_info info;
	int found = 0;

	if (!want || !dladdr(want, &info) || elf_open(info.dli_fname, &elf)) {
		skip("the C library itself", "it is linked statically, or its file cannot be read");
		return;
	}
	is_int(elf_find_symbol(elf, "getppid", &sym), 0, "getppid in %s", info.dli_fname);
	ok((uint8_t *)info.dli_fbase + sym.vaddr == (uint8_t *)want, "is where dlsym() says");
	is_int(elf_read(elf, sym.vaddr, code, sizeof(code)), 0, "its code can be read");
	ok(!memcmp(code, want, sizeof(code)), "and is what is mapped");
	is_int(elf_functions(elf, &funcs, &n), 0, "its functions");
	for (i = 0; i < n; i++)
		found += funcs[i].start == sym.vaddr && funcs[i].end == sym.vaddr + sym.size_bytes;
	is_int(found, 1, "have it once, with the symbol's size, among %zu", n);
	free(funcs);
	elf_close(elf);
}

int main(void)
{
	struct elf_file *elf;

	build_image();
	elf = open_image(IMAGE_BYTES);
	if (!ok(elf != NULL, "the object opens"))
		return tap_done();
	test_symbols(elf);
	test_addresses(elf);
	test_relocations(elf);
	test_functions(elf);
	elf_close(elf);
	test_damage();
	test_bad_tables();
	test_truncated_file();
	test_own_libc();
	return tap_done();
}
