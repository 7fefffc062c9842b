// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_inode.c: from a request to its file. The state of a request has another shape in each
 * release and in server and fuse, but all of them hold fd_t and loc_t pointers; an fd leads to an
 * inode, and an inode starts with the address of its table, which is known. So the shape of the
 * state need not be known. Names come from the dentries, as far up as they are in memory.
 */
#include "gluster_inode.h"

#include <stdio.h>
#include <string.h>

#include "gluster_walk.h"
#include "text.h"

#define BLOCK_BYTES   1024
#define POINTEE_BYTES 0x30 /* an inode's table (0), or an fd's inode (0x20 or 0x28) */
#define MAX_DEPTH     64
#define PATH_BYTES    4096
#define NAME_BYTES    256
#define INODE_GFID    0x08
#define DENTRY_INODE  0x20
#define LOC_INODE     2 /* words behind path in a loc_t */
#define LOC_PARENT    3
#define MAX_CHAIN     4096 /* inodes of one hash value */
#define IA_IFDIR      2    /* ia_type_t: IA_INVAL, IA_IFREG, IA_IFDIR, ... */

static void add_tables(struct gluster_proc *gp, const struct gluster_graph *graph,
		       struct gluster_tables *tables)
{
	for (size_t i = 0; i < graph->n && tables->n < GLUSTER_MAX_TABLES; i++) {
		uint64_t at = graph->xl[i].addr + gp->layout->xl_itable, table;

		if (!procmem_read_u64(gp->pm, at, &table) && table)
			tables->addr[tables->n++] = table;
	}
}

void gluster_tables_find(struct gluster_proc *gp, struct gluster_tables *ret_tables)
{
	ret_tables->n = 0;
	for (size_t g = 0; g < gp->n_graphs; g++)
		add_tables(gp, &gp->graphs[g], ret_tables);
}

void gluster_tables_of(struct gluster_proc *gp, size_t graph, struct gluster_tables *ret_tables)
{
	ret_tables->n = 0;
	if (graph < gp->n_graphs)
		add_tables(gp, &gp->graphs[graph], ret_tables);
}

static bool is_table(const struct gluster_tables *tables, uint64_t addr)
{
	for (unsigned int i = 0; i < tables->n; i++)
		if (tables->addr[i] == addr)
			return true;
	return false;
}

static bool is_pointer(uint64_t word)
{
	return word >= 0x10000 && word < 1ULL << 56 && word % 8 == 0;
}

/* What word points to is an inode, or an fd whose inode is. */
static bool follow(struct gluster_proc *gp, const struct gluster_tables *tables, uint64_t word,
		   uint64_t *ret_inode)
{
	uint8_t bytes[POINTEE_BYTES];
	uint64_t inode, table;

	if (!is_pointer(word) || procmem_read(gp->pm, word, bytes, sizeof(bytes)))
		return false;
	if (is_table(tables, gluster_word(bytes, 0))) {
		*ret_inode = word;
		return true;
	}
	inode = gluster_word(bytes, gp->layout->fd_inode);
	if (!is_pointer(inode) || procmem_read_u64(gp->pm, inode, &table) ||
	    !is_table(tables, table))
		return false;
	*ret_inode = inode;
	return true;
}

static bool read_gfid(struct gluster_proc *gp, uint64_t inode, uint8_t gfid[16])
{
	static const uint8_t none[16];

	return !procmem_read(gp->pm, inode + INODE_GFID, gfid, 16) && memcmp(gfid, none, 16) != 0;
}

static bool is_root(const uint8_t gfid[16])
{
	static const uint8_t root[16] = { [15] = 1 };

	return !memcmp(gfid, root, 16);
}

/* Name and parent of an inode by its first dentry, which must point back to it. */
static bool read_dentry(struct gluster_proc *gp, uint64_t inode, char name[NAME_BYTES],
			uint64_t *ret_parent)
{
	const struct gluster_layout *l = gp->layout;
	uint64_t dentry, back, name_at;

	if (procmem_read_u64(gp->pm, inode + l->inode_dentry_list, &dentry) ||
	    dentry == inode + l->inode_dentry_list)
		return false;
	if (procmem_read_u64(gp->pm, dentry + DENTRY_INODE, &back) || back != inode ||
	    procmem_read_u64(gp->pm, dentry + l->dentry_parent, ret_parent))
		return false;
	name_at = dentry + l->dentry_name;
	if (!l->dentry_name_inline && procmem_read_u64(gp->pm, name_at, &name_at))
		return false;
	return !procmem_read_str(gp->pm, name_at, name, NAME_BYTES) && name[0];
}

/* From the file up to the root, or as far as there are dentries: then without a leading slash. */
static void read_path(struct gluster_proc *gp, uint64_t inode, char path[PATH_BYTES])
{
	size_t at = PATH_BYTES - 1;
	uint8_t gfid[16];

	path[at] = '\0';
	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		char name[NAME_BYTES];
		uint64_t parent;
		size_t len;

		if (read_gfid(gp, inode, gfid) && is_root(gfid)) {
			if (at == PATH_BYTES - 1)
				path[--at] = '/';
			break;
		}
		if (!read_dentry(gp, inode, name, &parent)) {
			at += path[at] == '/';
			break;
		}
		len = strlen(name);
		if (at < len + 1)
			break;
		at -= len;
		memcpy(path + at, name, len);
		path[--at] = '/';
		inode = parent;
	}
	memmove(path, path + at, PATH_BYTES - at);
}

/*
 * A file that is looked up or created has no dentry yet, but its loc_t (path, name, inode, parent)
 * has a path, into which name points: that is how one is told. words[index] is its inode or parent.
 */
static bool read_loc_path(struct gluster_proc *gp, const uint64_t *words, unsigned int index,
			  unsigned int words_before, char path[PATH_BYTES])
{
	const char *slash;

	if (index < words_before || !words[index - words_before] ||
	    procmem_read_str(gp->pm, words[index - words_before], path, PATH_BYTES))
		return false;
	slash = strrchr(path, '/');
	return path[0] == '/' && words[index - words_before] + (uint64_t)(slash + 1 - path) ==
					 words[index - words_before + 1];
}

/* mount/fuse knows only parent and name of what it looks up: path and inode are null. */
static bool read_child_path(struct gluster_proc *gp, const uint64_t *words, unsigned int index,
			    uint64_t parent, char path[PATH_BYTES])
{
	char name[NAME_BYTES];
	size_t len;

	if (index < LOC_PARENT || words[index] != parent || words[index - 3] || words[index - 1] ||
	    procmem_read_str(gp->pm, words[index - 2], name, sizeof(name)) || !name[0] ||
	    strchr(name, '/'))
		return false;
	read_path(gp, parent, path);
	len = strlen(path);
	if (!len || len + strlen(name) + 2 > PATH_BYTES)
		return false;
	snprintf(path + len, PATH_BYTES - len, "%s%s", path[len - 1] == '/' ? "" : "/", name);
	return true;
}

bool gluster_inode_in(struct gluster_proc *gp, const struct gluster_tables *tables, uint64_t block,
		      char gfid[TEXT_GFID], char *file, size_t file_size)
{
	uint64_t words[BLOCK_BYTES / 8], inode = 0;
	size_t len = sizeof(words);
	char path[PATH_BYTES];
	uint8_t raw[16];
	unsigned int i;

	if (!is_pointer(block))
		return false;
	while (len >= 128 && procmem_read(gp->pm, block, words, len))
		len /= 2; /* the block may end where the heap does */
	if (len < 128)
		return false;
	for (i = 0; i < len / 8 && !follow(gp, tables, words[i], &inode); i++)
		;
	if (!inode)
		return false;
	gfid[0] = '\0';
	if (!read_loc_path(gp, words, i, LOC_PARENT, path) &&
	    !read_child_path(gp, words, i, inode, path)) {
		if (read_gfid(gp, inode, raw))
			text_gfid(gfid, raw);
		read_path(gp, inode, path);
		if (!path[0] && !read_loc_path(gp, words, i, LOC_INODE, path))
			path[0] = '\0';
	}
	text_sanitize(file, file_size, path);
	return true;
}

/* Address of a gfid's bucket, the head of a list; 0: not to be had. */
static uint64_t find_bucket(struct gluster_proc *gp, uint64_t table, const uint8_t gfid[16])
{
	const struct gluster_layout *l = gp->layout;
	uint64_t size = 65536, buckets;
	uint32_t hash = gfid[15] + ((uint32_t)gfid[14] << 8);

	/* in all releases: sizes, name, root, xl; hashes of inodes and names, active inodes */
	if (procmem_read_u64(gp->pm, table + l->itable_active - 16, &buckets) ||
	    (l->gfid_hash != GLUSTER_HASH_64K &&
	     procmem_read_u64(gp->pm, table + l->itable_xl - 24, &size)) ||
	    !size)
		return 0;
	if (l->gfid_hash == GLUSTER_HASH_WORD) {
		memcpy(&hash, gfid, sizeof(hash));
		return buckets + 16 * (hash & (size - 1));
	}
	return buckets + 16 * (hash % size);
}

/* An inode by its gfid; the root is in no bucket. */
static bool find_inode(struct gluster_proc *gp, uint64_t table, const uint8_t gfid[16],
		       uint64_t *ret_inode)
{
	unsigned int link = gp->layout->inode_dentry_list + 16u; /* of the hash, in an inode */
	uint64_t head = find_bucket(gp, table, gfid), node;
	uint8_t found[16];

	if (!head || procmem_read_u64(gp->pm, head, &node))
		return false;
	for (unsigned int i = 0; i < MAX_CHAIN && node != head; i++) {
		if (!is_pointer(node) || !read_gfid(gp, node - link, found))
			return false;
		if (!memcmp(found, gfid, sizeof(found))) {
			*ret_inode = node - link;
			return !procmem_read_u64(gp->pm, *ret_inode, &node) && node == table;
		}
		if (procmem_read_u64(gp->pm, node, &node))
			return false;
	}
	return false;
}

bool gluster_inode_path(struct gluster_proc *gp, const struct gluster_tables *tables,
			const uint8_t gfid[16], char *path, size_t size, bool *ret_is_dir)
{
	char whole[PATH_BYTES];
	uint64_t inode = 0;
	uint32_t type = 0;
	bool found = false;

	if (is_root(gfid)) {
		*ret_is_dir = true;
		snprintf(path, size, "/");
		return true;
	}
	for (unsigned int i = 0; i < tables->n && !found; i++)
		found = find_inode(gp, tables->addr[i], gfid, &inode);
	if (!found)
		return false;
	read_path(gp, inode, whole);
	procmem_read_u32(gp->pm, inode + gp->layout->inode_ia_type, &type);
	*ret_is_dir = type == IA_IFDIR;
	snprintf(path, size, "%s", whole);
	return whole[0] != '\0';
}
