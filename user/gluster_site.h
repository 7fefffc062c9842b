/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gluster_site.h: which functions of an xlator's object are fops and which are callbacks, found in
 * the file alone, without symbols and without the process. Knows how GlusterFS is compiled, not how
 * a probe is attached.
 */
#ifndef BRICKTOP_GLUSTER_SITE_H
#define BRICKTOP_GLUSTER_SITE_H

#include "elf.h"
#include "gluster_layout.h"

#include <stddef.h>
#include <stdint.h>

/* What was found of an object's callbacks; freed by gluster_site_free(). */
struct gluster_callbacks {
	struct elf_range *funcs; /* ascending, each once */
	size_t n;
	/*
	 * Stores to where a frame keeps its callback, and how many of them were of functions of
	 * this object. The rest store something else: a callback of libglusterfs (default_*_cbk),
	 * one that was passed as a parameter, or a structure that is no frame.
	 */
	uint32_t stores, resolved;
};

/*
 * All functions that STACK_WIND and its kin enter as callback: "frame->ret = function", inlined at
 * each place that winds. They may include a few others (any structure with a function pointer at
 * the same offset), so a probe program must check its frame. Only the layout's frame_ret is used.
 * 0, -ENOENT (no unwind table), -EOPNOTSUPP (not x86-64), -EINVAL (frame_ret unknown), -ENOMEM.
 */
int gluster_site_callbacks(const struct elf_file *elf, const struct gluster_layout *layout,
			   struct gluster_callbacks *ret_callbacks);
void gluster_site_free(struct gluster_callbacks *callbacks);

/*
 * The xlator's fop functions: ret_fops[fop] is the link-time address, 0 where the xlator has none
 * of its own (or fills the table while running). Found in the table that xlator_api points to, or
 * in the exported "fops" before 6.0. 0, -ENOENT (neither is there), -EINVAL (layout without
 * max_fop).
 */
int gluster_site_fops(const struct elf_file *elf, const struct gluster_layout *layout,
		      uint64_t ret_fops[GLUSTER_MAX_FOP]);

#endif
