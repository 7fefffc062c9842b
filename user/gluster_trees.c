// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_trees.c: which trees of xlators a process has: each brick under a server (multiplexed
 * bricks hang under one server and have graphs of their own that no list holds), each graph of a
 * client under mount/fuse. Also the signature by which a change is noticed for the price of a few
 * reads.
 */
#include "gluster_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 4096

struct tree_list {
	struct gluster_graph *graphs;
	size_t n;
};

/* The string that a pointer in the process points to; "" where it is null or unreadable. */
static void read_optional(struct gluster_probe *p, uint64_t ptr_at, char text[TEXT_BYTES])
{
	uint64_t addr = 0;

	text[0] = '\0';
	if (!procmem_read_u64(p->pm, ptr_at, &addr) && addr)
		procmem_read_str(p->pm, addr, text, TEXT_BYTES);
}

static int add_tree(struct tree_list *list, struct gluster_graph *graph)
{
	struct gluster_graph *grown = realloc(list->graphs, (list->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	list->graphs = grown;
	grown[list->n++] = *graph;
	return 0;
}

static void drop_tree(struct gluster_graph *graph)
{
	struct gluster_graph *copy = malloc(sizeof(*copy));

	if (!copy)
		return; /* a leak is the lesser evil here */
	*copy = *graph;
	gluster_graphs_free(copy, 1);
}

/* Read the tree, name it, append it. The graph's own fields are set by the caller's template. */
static int append_tree(struct gluster_probe *p, struct tree_list *list, struct gluster_graph *graph,
		       uint64_t root_addr, uint64_t top_addr, uint64_t volfile_id_at)
{
	char volfile_id[TEXT_BYTES], brick_name[TEXT_BYTES];
	uint32_t id;
	int err;

	graph->id = -1;
	if (!procmem_read_u32(p->pm, graph->addr + p->layout->graph_id, &id) && id < INT32_MAX)
		graph->id = (int)id;
	read_optional(p, volfile_id_at, volfile_id);
	read_optional(p, p->ctx_addr + p->layout->ctx_brick_name, brick_name);
	err = gluster_build_tree(p, root_addr, top_addr, graph->addr, graph);
	if (!err)
		err = gluster_name_graph(graph, volfile_id, brick_name);
	if (!err)
		err = add_tree(list, graph);
	if (err)
		drop_tree(graph);
	return err;
}

/*
 * A server's children are its bricks. The chain of the graph is checked as long as the brick that
 * came with the server is there: once that one is detached, the chain leads into freed memory.
 */
static int append_bricks(struct gluster_probe *p, struct tree_list *list, uint64_t graph_addr,
			 uint64_t server_addr)
{
	const struct gluster_layout *l = p->layout;
	uint64_t *tops = malloc(GLUSTER_MAX_BRICKS * sizeof(*tops)), children = 0;
	bool has_first = false;
	unsigned int n = 0;
	int err = tops ? gluster_read_ptr(p, server_addr + GLUSTER_XL_CHILDREN, &children) :
			 -ENOMEM;

	if (!err)
		err = gluster_read_links(p, children, tops, GLUSTER_MAX_BRICKS, &n);
	for (unsigned int i = 0; !err && i < n; i++) {
		struct gluster_graph graph = { .key = tops[i], .is_brick = true };

		graph.is_active = graph_addr == p->active_addr;
		err = gluster_read_ptr(p, tops[i] + l->xl_graph, &graph.addr);
		has_first = has_first || graph.addr == graph_addr;
		if (!err)
			err = append_tree(p, list, &graph, server_addr, tops[i],
					  tops[i] + l->xl_volfile_id);
	}
	free(tops);
	return !err && has_first ? gluster_check_chain(p, graph_addr) : err;
}

static bool has_type(struct gluster_probe *p, uint64_t xl_addr, const char *want)
{
	char type[64];
	uint64_t addr;

	return !procmem_read_u64(p->pm, xl_addr + GLUSTER_XL_TYPE, &addr) &&
	       !procmem_read_str(p->pm, addr, type, sizeof(type)) && !strcmp(type, want);
}

static int append_graph(struct gluster_probe *p, struct tree_list *list, uint64_t graph_addr)
{
	struct gluster_graph graph = { .addr = graph_addr };
	uint64_t top;
	bool fuse;
	int err;

	gluster_begin_check(p, "graph's top");
	err = gluster_read_ptr(p, graph_addr + p->layout->graph_top, &top);
	if (err)
		return err;
	if (has_type(p, top, "protocol/server"))
		return append_bricks(p, list, graph_addr, top);
	err = gluster_check_chain(p, graph_addr);
	if (err)
		return err;
	graph.key = top;
	graph.is_active = p->subvol_addr ? p->subvol_addr == top : graph_addr == p->active_addr;
	fuse = p->root_addr && p->root_addr != top && has_type(p, p->root_addr, "mount/fuse");
	return append_tree(p, list, &graph, fuse ? p->root_addr : top, fuse ? top : 0,
			   p->ctx_addr + p->layout->ctx_volfile_id);
}

/*
 * A graph that is neither active nor in use may be on its way out, and is then left out; one that
 * is must fit.
 */
int gluster_build_graphs(struct gluster_probe *p, struct gluster_graph **ret_graphs, size_t *ret_n)
{
	struct tree_list list = { 0 };
	int err = 0;

	for (unsigned int i = 0; !err && i < p->n_graphs; i++) {
		size_t before = list.n;
		uint64_t top = 0;

		err = append_graph(p, &list, p->graphs[i]);
		if (err != -EBADMSG || p->graphs[i] == p->active_addr)
			continue;
		if (!procmem_read_u64(p->pm, p->graphs[i] + p->layout->graph_top, &top) && top &&
		    top == p->subvol_addr)
			continue;
		while (list.n > before)
			drop_tree(&list.graphs[--list.n]);
		err = 0;
	}
	if (err) {
		gluster_graphs_free(list.graphs, list.n);
		return err;
	}
	*ret_graphs = list.graphs;
	*ret_n = list.n;
	return 0;
}

static void mix(uint64_t *hash, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		*hash ^= words[i];
		*hash *= 0x100000001b3ULL; /* FNV-1a's prime, word by word */
		*hash ^= *hash >> 29;
	}
}

/* An address alone does not tell one brick from the next in the same memory: its pointers do. */
static int mix_xlator(struct gluster_probe *p, uint64_t addr, uint64_t *hash)
{
	struct gluster_raw_xlator xl;
	uint64_t words[4];
	int err = gluster_read_xlator(p, addr, &xl);

	if (err)
		return err;
	words[0] = addr;
	words[1] = gluster_word(xl.bytes, GLUSTER_XL_NAME);
	words[2] = gluster_word(xl.bytes, p->layout->xl_graph);
	words[3] = gluster_word(xl.bytes, p->layout->xl_private);
	mix(hash, words, 4);
	return 0;
}

int gluster_signature(struct gluster_probe *p, uint64_t *ret_signature)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	uint64_t *tops = malloc(GLUSTER_MAX_BRICKS * sizeof(*tops));
	int err = tops ? 0 : -ENOMEM;

	mix(&hash, (uint64_t[]){ p->active_addr, p->root_addr, p->subvol_addr }, 3);
	for (unsigned int i = 0; !err && i < p->n_graphs; i++) {
		uint64_t top = 0, children = 0;
		unsigned int n = 0;

		mix(&hash, &p->graphs[i], 1);
		err = gluster_read_ptr(p, p->graphs[i] + p->layout->graph_top, &top);
		if (!err)
			err = mix_xlator(p, top, &hash);
		if (err || !has_type(p, top, "protocol/server"))
			continue;
		err = gluster_read_ptr(p, top + GLUSTER_XL_CHILDREN, &children);
		if (!err)
			err = gluster_read_links(p, children, tops, GLUSTER_MAX_BRICKS, &n);
		for (unsigned int c = 0; !err && c < n; c++)
			err = mix_xlator(p, tops[c], &hash);
	}
	free(tops);
	*ret_signature = hash;
	return err;
}
