// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_walk.c: the smallest steps through a GlusterFS process's memory: an xlator, a name, a
 * list, the context. Each step checks what it reads; what does not fit ends the try with the name
 * of the check. Must not know what the caller makes of it.
 */
#include "gluster_walk.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME_BYTES 4096 /* a brick's top is named by its path */
#define FUSE_PRIVATE_BYTES                                                     \
	512 /* holds next_graph and active_subvol, neighbours, in all releases \
	     */

void gluster_begin_check(struct gluster_probe *p, const char *check)
{
	if (p->check)
		p->n_passed++;
	p->check = check;
}

int gluster_fail(struct gluster_probe *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

int gluster_read(struct gluster_probe *p, uint64_t addr, void *buf, size_t len)
{
	int err = procmem_read(p->pm, addr, buf, len);

	if (err && err != -ESRCH)
		return gluster_fail(p, "%zu bytes at %#" PRIx64 " cannot be read", len, addr);
	return err;
}

int gluster_read_ptr(struct gluster_probe *p, uint64_t addr, uint64_t *ret_value)
{
	return gluster_read(p, addr, ret_value, sizeof(*ret_value));
}

uint64_t gluster_word(const void *bytes, unsigned int offset)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)bytes + offset, sizeof(value));
	return value;
}

int gluster_read_xlator(struct gluster_probe *p, uint64_t addr, struct gluster_raw_xlator *ret_xl)
{
	ret_xl->addr = addr;
	return gluster_read(p, addr, ret_xl->bytes, p->layout->xlator_size_bytes);
}

static int read_text(struct gluster_probe *p, uint64_t addr, char **ret_text)
{
	char text[MAX_NAME_BYTES];
	int err = procmem_read_str(p->pm, addr, text, sizeof(text));

	if (err == -ESRCH)
		return err;
	if (err) {
		gluster_fail(p, "a name at %#" PRIx64 " cannot be read", addr);
		return -EBADMSG;
	}
	*ret_text = strdup(text);
	return *ret_text ? 0 : -ENOMEM;
}

/*
 * Any bytes but control characters, as a volume file can hold them: what has some was read at the
 * wrong place. Paths are what their owner likes, and are told by their first character.
 */
int gluster_read_name(struct gluster_probe *p, uint64_t ptr_addr, char **ret_name)
{
	char *name = NULL;
	int err = read_text(p, ptr_addr, &name);

	if (err)
		return err;
	for (const char *s = name; *s && *name != '/' && !err; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			err = gluster_fail(p, "a name at %#" PRIx64 " is not printable", ptr_addr);
	if (!err && !*name)
		err = gluster_fail(p, "a name at %#" PRIx64 " is empty", ptr_addr);
	if (err) {
		free(name);
		return err;
	}
	*ret_name = name;
	return 0;
}

int gluster_read_type(struct gluster_probe *p, uint64_t ptr_addr, char **ret_type)
{
	char *type = NULL;
	int err = read_text(p, ptr_addr, &type);

	if (err)
		return err;
	for (const char *s = type; *s && !err; s++)
		if (!isascii((unsigned char)*s) || !isgraph((unsigned char)*s))
			err = gluster_fail(p, "a type at %#" PRIx64 " is not printable", ptr_addr);
	if (!err && !*type)
		err = gluster_fail(p, "a type at %#" PRIx64 " is empty", ptr_addr);
	if (err) {
		free(type);
		return err;
	}
	*ret_type = type;
	return 0;
}

int gluster_read_links(struct gluster_probe *p, uint64_t list_addr, uint64_t *addrs,
		       unsigned int max, unsigned int *ret_n)
{
	unsigned int n = 0;

	while (list_addr) {
		uint64_t entry[2]; /* struct xlator_list: xlator, next */
		int err = gluster_read(p, list_addr, entry, sizeof(entry));

		if (err)
			return err;
		if (n == max)
			return gluster_fail(p, "a list of xlators does not end within %u", max);
		addrs[n++] = entry[0];
		list_addr = entry[1];
	}
	*ret_n = n;
	return 0;
}

/* global_xlator is an xlator of its own kind; its ctx is the context in every daemon. */
static int check_global(struct gluster_probe *p, const struct gluster_anchor *anchor)
{
	char name[16] = "", type[16] = "";
	struct gluster_raw_xlator xl;
	uint64_t witness;
	int err;

	gluster_begin_check(p, "global xlator");
	err = gluster_read_xlator(p, anchor->global_xlator, &xl);
	if (err)
		return err;
	if (procmem_read_str(p->pm, gluster_word(xl.bytes, GLUSTER_XL_NAME), name, sizeof(name)) ||
	    procmem_read_str(p->pm, gluster_word(xl.bytes, GLUSTER_XL_TYPE), type, sizeof(type)) ||
	    strcmp(name, "glusterfs") || strcmp(type, "global"))
		return gluster_fail(p, "its name and type are not glusterfs and global");
	p->global_addr = anchor->global_xlator;
	p->ctx_addr = gluster_word(xl.bytes, p->layout->xl_ctx);
	gluster_begin_check(p, "context");
	if (!p->ctx_addr)
		return gluster_fail(p, "there is none yet");
	if (anchor->glusterfsd_ctx) {
		err = gluster_read_ptr(p, anchor->glusterfsd_ctx, &witness);
		if (err)
			return err;
		if (witness != p->ctx_addr)
			return gluster_fail(p, "global_xlator and glusterfsd_ctx do not agree");
	}
	return 0;
}

static int check_graph_list(struct gluster_probe *p)
{
	uint64_t head = p->ctx_addr + p->layout->ctx_graphs, links[2], prev = head, node;
	int err;

	gluster_begin_check(p, "list of graphs");
	err = gluster_read(p, head, links, sizeof(links));
	p->n_graphs = 0;
	for (node = links[0]; !err && node != head; node = links[0]) {
		if (p->n_graphs == GLUSTER_MAX_GRAPHS)
			return gluster_fail(p, "it does not close within %u", GLUSTER_MAX_GRAPHS);
		err = gluster_read(p, node, links, sizeof(links));
		if (!err && links[1] != prev)
			return gluster_fail(p, "next and prev do not agree");
		p->graphs[p->n_graphs++] = node; /* the list link is the graph's first member */
		prev = node;
	}
	if (!err && !p->n_graphs)
		return gluster_fail(p,
				    "it is empty: a libgfapi program, or a daemon that starts up");
	return err;
}

static int check_active(struct gluster_probe *p)
{
	const struct gluster_layout *l = p->layout;
	unsigned char measures = 0;
	int err;

	gluster_begin_check(p, "active graph");
	err = gluster_read_ptr(p, p->ctx_addr + l->ctx_active, &p->active_addr);
	if (err)
		return err;
	for (unsigned int i = 0;; i++) {
		if (i == p->n_graphs)
			return gluster_fail(p, "it is not in the list of graphs");
		if (p->graphs[i] == p->active_addr)
			break;
	}
	gluster_begin_check(p, "measure_latency");
	err = gluster_read(p, p->ctx_addr + l->ctx_measure_latency, &measures, 1);
	if (!err && measures > 1)
		return gluster_fail(p, "it is %u, not 0 or 1", measures);
	p->measures_latency = measures == 1;
	return err;
}

/*
 * mount/fuse moves to a new graph only when the next request arrives: its active_subvol, the one
 * word in its private data that is some graph's top, says which one is in use.
 */
static int find_active_subvol(struct gluster_probe *p)
{
	uint64_t private[FUSE_PRIVATE_BYTES / 8], addr, top;
	size_t len = sizeof(private);
	int err = gluster_read_ptr(p, p->root_addr + p->layout->xl_private, &addr);

	p->subvol_addr = 0;
	if (err)
		return err;
	if (procmem_read(p->pm, addr, private, len)) {
		len /= 2;
		err = gluster_read(p, addr, private, len);
		if (err)
			return err;
	}
	for (unsigned int g = 0; g < p->n_graphs; g++) {
		err = gluster_read_ptr(p, p->graphs[g] + p->layout->graph_top, &top);
		if (err)
			return err;
		for (size_t i = 0; top && i < len / 8; i++)
			if (private[i] == top)
				p->subvol_addr = top;
	}
	return 0;
}

int gluster_probe_context(struct gluster_probe *p, const struct gluster_anchor *anchor)
{
	int err = check_global(p, anchor);

	if (!err && anchor->latency_is_u64 >= 0) {
		gluster_begin_check(p, "exported symbols");
		if (anchor->latency_is_u64 != (p->layout->lat_type == GLUSTER_LAT_U64_NS))
			err = gluster_fail(
				p, "gf_frame_latency_update, exported since 9, says otherwise");
	}
	if (!err)
		err = check_graph_list(p);
	if (!err)
		err = check_active(p);
	if (err)
		return err;
	gluster_begin_check(p, "context pointers");
	err = gluster_read_ptr(p, p->ctx_addr + p->layout->ctx_pool, &p->pool_addr);
	if (!err)
		err = gluster_read_ptr(p, p->ctx_addr + p->layout->ctx_root, &p->root_addr);
	if (!err && p->root_addr)
		err = find_active_subvol(p);
	return err;
}
