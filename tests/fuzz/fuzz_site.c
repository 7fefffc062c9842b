// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_site.c: reading machine code of other processes' objects: the choice of a probe site and the
 * search for callbacks. The input is code (its first byte says which registers must live), put into
 * a well-formed object; whole objects are fuzz_elf.c's.
 */
#include "gluster_site.h"
#include "site.h"

#include "unit/elf_image.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_site(const struct elf_file *elf, uint64_t vaddr, uint64_t end, unsigned int live)
{
	struct site site;
	char text[128];

	if (site_choose(elf, vaddr, end, live, live & 1, &site))
		return;
	if (site.vaddr - vaddr != site.distance_bytes || site.distance_bytes >= 256 ||
	    site.offset < IMAGE_TEXT_OFFSET || site.offset >= IMAGE_DATA_OFFSET ||
	    ((live & 1) && site.class != SITE_EMULATED))
		abort();
	site_text(&site, text, sizeof(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct gluster_layout layout = { .frame_ret = 0x80, .api_fops = 0x60, .max_fop = 59 };
	static struct elf_image image;
	struct gluster_callbacks found;
	struct elf_file *elf;
	uint16_t machine;
	uint64_t end;
	size_t i;

	if (size < 2 || size - 1 > IMAGE_SEGMENT_BYTES - 0x100)
		return 0;
	machine = data[0] & 0x80 ? EM_AARCH64 : EM_X86_64;
	end = IMAGE_TEXT_VADDR + 0x100 + size - 1;
	image_init(&image, machine);
	image_func(&image, IMAGE_TEXT_VADDR, 0x100); /* something that can be pointed to */
	image_func(&image, IMAGE_TEXT_VADDR + 0x100, (uint32_t)(size - 1));
	image_put(&image, IMAGE_TEXT_VADDR + 0x100, data + 1, size - 1);
	if (elf_open_memory(image.bytes, IMAGE_BYTES, &elf))
		abort();
	check_site(elf, IMAGE_TEXT_VADDR + 0x100, end, data[0] & 0x3f);
	check_site(elf, IMAGE_TEXT_VADDR + 0x100, 0, data[0] & 0x3f);
	if (!gluster_site_callbacks(elf, &layout, &found)) {
		if (found.resolved > found.stores)
			abort();
		for (i = 0; i < found.n; i++) {
			if (found.funcs[i].start != IMAGE_TEXT_VADDR &&
			    found.funcs[i].start != IMAGE_TEXT_VADDR + 0x100)
				abort();
		}
		gluster_site_free(&found);
	}
	elf_close(elf);
	return 0;
}
