/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * who.bpf.h: which file a request is about. The state that protocol/server and mount/fuse keep of a
 * request names it, by its gfid or by an inode. What is found there is believed only where the
 * state's inode table is that of an xlator of this process, and an inode points back to it. Knows
 * nothing of times.
 *
 * Sources: GlusterFS xlators/protocol/server/src/server.h (struct _server_state, the same in this
 * part from 3.12 to 11), xlators/mount/fuse/src/fuse-bridge.h (fuse_state_t),
 * libglusterfs/src/glusterfs/inode.h; offsets that moved are in user/gluster_layout.c.
 */
#ifndef BRICKTOP_WHO_BPF_H
#define BRICKTOP_WHO_BPF_H

#include "frames.bpf.h"

enum {
	SERVER_ITABLE = 0x08,
	SERVER_INODE = 0x28, /* loc.inode */
	SERVER_GFID = 0xa8,  /* resolve.gfid: as it came over the wire */
	SERVER_PARGFID = 0xb8,
	SERVER_END = 0xc8,
	FUSE_ITABLE = 0x18,
	FUSE_INODE = 0x30,  /* loc.inode */
	FUSE_PARENT = 0x38, /* loc.parent */
	FUSE_END = 0xe0,    /* behind fd, wherever that is (struct wire_layout) */
};

static __always_inline int who_set(struct walk *w, const __u64 gfid[2], __u32 kind)
{
	if (!(gfid[0] | gfid[1]))
		return 0;
	__builtin_memcpy(w->who.file, gfid, sizeof(w->who.file));
	w->who.kind = kind;
	return 1;
}

/* An inode of that table that has got its gfid: what is looked up or created has none yet. */
static __always_inline int who_set_inode(struct walk *w, __u64 itable, __u64 inode, __u32 kind)
{
	__u64 head[3]; /* table, gfid */

	if (!inode || bpf_probe_read_user(head, sizeof(head), (const void *)inode) ||
	    head[0] != itable)
		return 0;
	return who_set(w, head + 1, kind);
}

/* Is that an inode table of this process? Its xlator must be one that is known. */
static __always_inline int is_itable(struct walk *w, const struct wire_layout *l, __u64 itable)
{
	__u64 xlator;

	if (itable == w->itable && w->itable_generation == w->generation)
		return 1;
	if (!itable ||
	    bpf_probe_read_user(&xlator, sizeof(xlator), (const void *)(itable + l->itable_xl)) ||
	    !node_get(w->tgid, xlator))
		return 0;
	w->itable = itable;
	w->itable_generation = w->generation;
	return 1;
}

/* A client sends the gfid of what it has, and of a name's directory. */
static __always_inline void who_server(struct walk *w, const struct wire_layout *l)
{
	const __u64 *gfid = (const __u64 *)(w->raw + SERVER_GFID - SERVER_ITABLE);
	const __u64 *pargfid = (const __u64 *)(w->raw + SERVER_PARGFID - SERVER_ITABLE);
	__u64 at = w->state + SERVER_ITABLE, itable;

	if (bpf_probe_read_user(w->raw, SERVER_END - SERVER_ITABLE, (const void *)at))
		return;
	itable = raw_u64(w, 0);
	if (!is_itable(w, l, itable) || who_set(w, gfid, WIRE_FILE_GFID) ||
	    who_set_inode(w, itable, raw_u64(w, SERVER_INODE - SERVER_ITABLE), WIRE_FILE_GFID))
		return;
	who_set(w, pargfid, WIRE_FILE_ENTRY);
}

static __always_inline void who_fuse(struct walk *w, const struct wire_layout *l)
{
	__u64 at = w->state + FUSE_ITABLE, fd, itable, inode, parent;

	if (bpf_probe_read_user(w->raw, FUSE_END - FUSE_ITABLE, (const void *)at))
		return;
	fd = raw_u64(w, l->fuse_fd - FUSE_ITABLE);
	itable = raw_u64(w, 0);
	inode = raw_u64(w, FUSE_INODE - FUSE_ITABLE);
	parent = raw_u64(w, FUSE_PARENT - FUSE_ITABLE);
	if (!is_itable(w, l, itable) || who_set_inode(w, itable, inode, WIRE_FILE_GFID))
		return;
	if (fd && !bpf_probe_read_user(&inode, sizeof(inode), (const void *)(fd + l->fd_inode)) &&
	    who_set_inode(w, itable, inode, WIRE_FILE_GFID))
		return;
	who_set_inode(w, itable, parent, WIRE_FILE_ENTRY);
}

/*
 * The file of the request that was walked, into w->who, where walk_begin() has put the rest. Only
 * while its root is being called back: its state goes with its reply. A global function: verified
 * by itself.
 */
__noinline int who_read(struct walk *w, struct wire_layout *l)
{
	if (!w || !l || !w->state)
		return 0;
	if (w->root == WIRE_ROOT_CLIENT)
		who_fuse(w, l);
	else
		who_server(w, l);
	return 0;
}

#endif
