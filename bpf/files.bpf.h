/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * files.bpf.h: which files count: those that lie in a file system. Knows nothing of who uses them.
 */
#ifndef BRICKTOP_FILES_BPF_H
#define BRICKTOP_FILES_BPF_H

#include "compat.bpf.h"

#define S_IFMT  0170000
#define S_IFDIR 0040000
#define S_IFBLK 0060000
#define S_IFREG 0100000

/* The inode where it is a file in a file system; NULL: sockets, pipes and /dev/fuse are none. */
static __always_inline struct inode *file_inode_of(struct file *file)
{
	struct inode *inode;
	__u32 mode;

	if (!file)
		return NULL;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	return mode == S_IFREG || mode == S_IFDIR || mode == S_IFBLK ? inode : NULL;
}

/* The same of one of the current thread's descriptors. */
static __always_inline struct inode *file_inode_of_fd(unsigned int fd)
{
	return file_inode_of(compat_task_file(bpf_get_current_task_btf(), fd));
}

#endif
