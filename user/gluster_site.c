// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_site.c: fops from the tables that every xlator exports, callbacks from its code. The
 * general part of the latter, following a function's address to a store, is codeptr.c's.
 */
#include "gluster_site.h"

#include "codeptr.h"

#include <errno.h>
#include <string.h>

#define NO_OFFSET 0xffff

/*
 * Up to 3.13 struct xlator_fops had an order of its own (libglusterfs/src/xlator.h, tag v3.12.15):
 * the fop of each slot. From 4.0 the slot is the fop's number less one.
 */
static const uint8_t old_slots[] = {
	27, /* lookup */
	1,  /* stat */
	25, /* fstat */
	10, /* truncate */
	24, /* ftruncate */
	22, /* access */
	2,  /* readlink */
	3,  /* mknod */
	4,  /* mkdir */
	5,  /* unlink */
	6,  /* rmdir */
	7,  /* symlink */
	8,  /* rename */
	9,  /* link */
	23, /* create */
	11, /* open */
	12, /* readv */
	13, /* writev */
	15, /* flush */
	16, /* fsync */
	20, /* opendir */
	28, /* readdir */
	40, /* readdirp */
	21, /* fsyncdir */
	14, /* statfs */
	17, /* setxattr */
	18, /* getxattr */
	36, /* fsetxattr */
	35, /* fgetxattr */
	19, /* removexattr */
	45, /* fremovexattr */
	26, /* lk */
	29, /* inodelk */
	30, /* finodelk */
	31, /* entrylk */
	32, /* fentrylk */
	37, /* rchecksum */
	33, /* xattrop */
	34, /* fxattrop */
	38, /* setattr */
	39, /* fsetattr */
	44, /* getspec */
	46, /* fallocate */
	47, /* discard */
	48, /* zerofill */
	49, /* ipc */
	50, /* seek */
	51, /* lease */
	52, /* compound */
	53, /* getactivelk */
	54, /* setactivelk */
};

/* GF_FOP_MAXVALUE of the releases with the old order (4.0 added three fops). */
#define OLD_ORDER_MAX_FOP 55

int gluster_site_callbacks(const struct elf_file *elf, const struct gluster_layout *layout,
			   struct gluster_callbacks *ret_callbacks)
{
	struct codeptr_scan scan;
	int err;

	if (layout->frame_ret == 0 || layout->frame_ret == NO_OFFSET)
		return -EINVAL;
	err = codeptr_find(elf, layout->frame_ret, &scan);
	if (err)
		return err;
	ret_callbacks->funcs = scan.targets;
	ret_callbacks->n = scan.n;
	ret_callbacks->stores = scan.stores;
	ret_callbacks->resolved = scan.resolved;
	return 0;
}

void gluster_site_free(struct gluster_callbacks *callbacks)
{
	struct codeptr_scan scan = { .targets = callbacks->funcs };

	codeptr_free(&scan);
	*callbacks = (struct gluster_callbacks){ 0 };
}

/* Where the fops table lies. xlator_api wins: in 4.x and 5 a module may have both, for one table.
 */
static int find_table(const struct elf_file *elf, const struct gluster_layout *layout,
		      uint64_t *ret_table)
{
	struct elf_symbol sym;

	if (layout->api_fops != NO_OFFSET && !elf_find_symbol(elf, "xlator_api", &sym) &&
	    !elf_relative_addend(elf, sym.vaddr + layout->api_fops, ret_table))
		return 0;
	if (!elf_find_symbol(elf, "fops", &sym) && !sym.is_func) {
		*ret_table = sym.vaddr;
		return 0;
	}
	return -ENOENT;
}

int gluster_site_fops(const struct elf_file *elf, const struct gluster_layout *layout,
		      uint64_t ret_fops[GLUSTER_MAX_FOP])
{
	uint64_t fops[GLUSTER_MAX_FOP] = { 0 };
	unsigned int slot, fop, n_slots;
	uint64_t table, vaddr;
	int err;

	if (layout->max_fop == 0 || layout->max_fop > GLUSTER_MAX_FOP)
		return -EINVAL;
	err = find_table(elf, layout, &table);
	if (err)
		return err;
	n_slots = layout->max_fop - 1U;
	if (layout->max_fop <= OLD_ORDER_MAX_FOP)
		n_slots = sizeof(old_slots);
	for (slot = 0; slot < n_slots; slot++) {
		fop = layout->max_fop <= OLD_ORDER_MAX_FOP ? old_slots[slot] : slot + 1;
		if (!elf_relative_addend(elf, table + slot * 8, &vaddr))
			fops[fop] = vaddr;
	}
	memcpy(ret_fops, fops, sizeof(fops));
	return 0;
}
