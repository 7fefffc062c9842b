// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_build.c: one tree of xlators at a time from memory into a struct gluster_graph, and all
 * trees of a process: a server's bricks one by one, a client's graph in use and its older ones.
 * What is read may be damaged: nodes, edges and names are bounded, and the result is always
 * acyclic.
 */
#include "gluster_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define MAX_LINKS 512 /* of one xlator: as many children as a graph has xlators */

struct edge {
	unsigned int parent;
	uint64_t child_addr;
	bool synthetic; /* ours, not in GlusterFS's lists: fuse -> top */
};

/*
 * The walk's stack of edges yet to follow, and all edges ever seen. Depth first, in children order:
 * an xlator's edges are pushed in reverse.
 */
struct builder {
	struct gluster_probe *p;
	struct gluster_graph *g;
	uint64_t graph_addr, top_addr;
	struct edge edges[GLUSTER_MAX_EDGES], todo[GLUSTER_MAX_EDGES];
	unsigned int n_edges, n_todo;
	uint64_t parents_lists[GLUSTER_MAX_XLATORS]; /* xlator.parents of each node */
	uint64_t links[MAX_LINKS];
	struct gluster_raw_xlator raw;
};

static void free_xlator(struct gluster_xlator *xl)
{
	free(xl->name);
	free(xl->id);
	free(xl->type);
	free(xl->so_path);
	free(xl->parents);
	free(xl->children);
}

void gluster_graphs_free(struct gluster_graph *graphs, size_t n)
{
	for (size_t g = 0; graphs && g < n; g++) {
		for (size_t i = 0; i < graphs[g].n; i++)
			free_xlator(&graphs[g].xl[i]);
		free(graphs[g].xl);
	}
	free(graphs);
}

static int find_node(const struct gluster_graph *g, uint64_t addr)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->xl[i].addr == addr)
			return (int)i;
	return -1;
}

/* .data of a module is mapped from its file; its .bss, where an empty table lies, follows right on.
 */
static char *find_module(const struct procmaps *maps, uint64_t fops_addr)
{
	const struct procmap *map = maps ? procmaps_find(maps, fops_addr) : NULL;

	for (int i = 0; map && i < 2 && map->path[0] != '/'; i++)
		map = map > maps->maps && map[-1].end == map->start ? map - 1 : NULL;
	return map && map->path[0] == '/' ? strdup(map->path) : NULL;
}

static int fill_xlator(struct builder *b, struct gluster_xlator *xl)
{
	const struct gluster_layout *l = b->p->layout;
	const uint8_t *raw = b->raw.bytes;
	int err;

	if (gluster_word(raw, l->xl_ctx) != b->p->ctx_addr)
		return gluster_fail(b->p, "xlator %#" PRIx64 " has another context", b->raw.addr);
	xl->addr = b->raw.addr;
	err = gluster_read_name(b->p, gluster_word(raw, GLUSTER_XL_NAME), &xl->name);
	if (!err)
		err = gluster_read_type(b->p, gluster_word(raw, GLUSTER_XL_TYPE), &xl->type);
	if (err)
		return err;
	xl->fops_addr = gluster_word(raw, GLUSTER_XL_FOPS);
	xl->pass_through = l->xl_pass_through != GLUSTER_ABSENT && raw[l->xl_pass_through];
	xl->so_path = find_module(b->p->maps, xl->fops_addr);
	return 0;
}

/* mount/fuse and a server shared by bricks belong to no graph, or to another one. */
static int check_membership(struct builder *b, unsigned int index)
{
	uint64_t graph = gluster_word(b->raw.bytes, b->p->layout->xl_graph);

	if ((index == 0 && b->top_addr) || graph == b->graph_addr)
		return 0;
	return gluster_fail(b->p, "xlator %#" PRIx64 " is of another graph", b->raw.addr);
}

static int push_edge(struct builder *b, const struct edge *edge)
{
	if (b->n_edges == GLUSTER_MAX_EDGES || b->n_todo == GLUSTER_MAX_EDGES)
		return gluster_fail(b->p, "more than %d links", GLUSTER_MAX_EDGES);
	b->edges[b->n_edges++] = *edge;
	b->todo[b->n_todo++] = *edge;
	return 0;
}

/* The edges of the node just read; in reverse, so that the first child is followed first. */
static int push_children(struct builder *b, unsigned int index)
{
	unsigned int n = 0;
	int err;

	if (index == 0 && b->top_addr) {
		bool synthetic = strcmp(b->g->xl[0].type, "protocol/server") != 0;

		return push_edge(b, &(struct edge){ 0, b->top_addr, synthetic });
	}
	err = gluster_read_links(b->p, gluster_word(b->raw.bytes, GLUSTER_XL_CHILDREN), b->links,
				 MAX_LINKS, &n);
	while (!err && n-- > 0)
		err = push_edge(b, &(struct edge){ index, b->links[n], false });
	return err;
}

static int add_node(struct builder *b, uint64_t addr)
{
	struct gluster_graph *g = b->g;
	unsigned int index = (unsigned int)g->n;
	int err;

	if (index == GLUSTER_MAX_XLATORS)
		return gluster_fail(b->p, "more than %d xlators", GLUSTER_MAX_XLATORS);
	err = gluster_read_xlator(b->p, addr, &b->raw);
	if (err)
		return err;
	if ((index & (index - 1)) == 0) { /* grown at each power of two */
		size_t more = index ? 2 * (size_t)index : 1;
		struct gluster_xlator *grown = realloc(g->xl, more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		g->xl = grown;
	}
	memset(&g->xl[index], 0, sizeof(g->xl[index]));
	g->n++;
	b->parents_lists[index] = gluster_word(b->raw.bytes, GLUSTER_XL_PARENTS);
	err = fill_xlator(b, &g->xl[index]);
	if (!err)
		err = check_membership(b, index);
	return err ? err : push_children(b, index);
}

/* Each child must name its parent: a list read with a wrong offset does not. */
static int check_parents(struct builder *b)
{
	for (unsigned int e = 0; e < b->n_edges; e++) {
		int child = find_node(b->g, b->edges[e].child_addr);
		unsigned int n = 0, i = 0;
		int err;

		if (b->edges[e].synthetic)
			continue;
		err = gluster_read_links(b->p, b->parents_lists[child], b->links, MAX_LINKS, &n);
		if (err)
			return err;
		while (i < n && b->links[i] != b->g->xl[b->edges[e].parent].addr)
			i++;
		if (i == n)
			return gluster_fail(b->p, "a child does not know its parent");
	}
	return 0;
}

static int add_link(unsigned int **array, unsigned int *n, unsigned int value)
{
	unsigned int *grown = realloc(*array, (*n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	*array = grown;
	grown[(*n)++] = value;
	return 0;
}

/* Edges were pushed child by child in reverse; reading them backwards gives children order again.
 */
static int link_nodes(struct builder *b)
{
	for (unsigned int e = b->n_edges; e-- > 0;) {
		unsigned int parent = b->edges[e].parent;
		unsigned int child = (unsigned int)find_node(b->g, b->edges[e].child_addr);
		struct gluster_xlator *xl = b->g->xl;

		if (add_link(&xl[parent].children, &xl[parent].n_children, child) ||
		    add_link(&xl[child].parents, &xl[child].n_parents, parent))
			return -ENOMEM;
	}
	return 0;
}

/* Kahn's algorithm: what is never left without parents is on a cycle or behind one. */
static int check_acyclic(struct builder *b)
{
	unsigned int open_parents[GLUSTER_MAX_XLATORS], ready[GLUSTER_MAX_XLATORS], n_ready = 0;
	struct gluster_graph *g = b->g;
	size_t done = 0;

	for (unsigned int i = 0; i < g->n; i++) {
		open_parents[i] = g->xl[i].n_parents;
		if (!open_parents[i])
			ready[n_ready++] = i;
	}
	while (n_ready) {
		const struct gluster_xlator *xl = &g->xl[ready[--n_ready]];

		done++;
		for (unsigned int c = 0; c < xl->n_children; c++)
			if (!--open_parents[xl->children[c]])
				ready[n_ready++] = xl->children[c];
	}
	return done == g->n ? 0 : gluster_fail(b->p, "the graph has a cycle");
}

int gluster_build_tree(struct gluster_probe *p, uint64_t root_addr, uint64_t top_addr,
		       uint64_t graph_addr, struct gluster_graph *graph)
{
	struct builder *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->p = p;
	b->g = graph;
	b->graph_addr = graph_addr;
	b->top_addr = top_addr;
	gluster_begin_check(p, "xlators");
	err = add_node(b, root_addr);
	while (!err && b->n_todo) {
		uint64_t addr = b->todo[--b->n_todo].child_addr;

		if (find_node(graph, addr) < 0)
			err = add_node(b, addr);
	}
	if (!err) {
		gluster_begin_check(p, "parents and children");
		err = check_parents(b);
	}
	if (!err)
		err = link_nodes(b);
	if (!err)
		err = check_acyclic(b);
	free(b);
	return err;
}

int gluster_check_chain(struct gluster_probe *p, uint64_t graph_addr)
{
	const struct gluster_layout *l = p->layout;
	uint64_t addr, prev = 0;
	uint32_t want, n = 0;
	int err;

	gluster_begin_check(p, "chain of xlators");
	err = gluster_read(p, graph_addr + l->graph_xl_count, &want, sizeof(want));
	if (!err)
		err = gluster_read_ptr(p, graph_addr + l->graph_first, &addr);
	while (!err && addr) {
		uint64_t links[2]; /* next, prev */

		if (n++ == GLUSTER_MAX_XLATORS)
			return gluster_fail(p, "it does not end within %d", GLUSTER_MAX_XLATORS);
		err = gluster_read(p, addr + GLUSTER_XL_NEXT, links, sizeof(links));
		if (!err && prev && links[1] != prev)
			return gluster_fail(p, "next and prev do not agree");
		prev = addr;
		addr = links[0];
	}
	if (!err && n != want)
		return gluster_fail(p, "it has %u xlators, the graph says %u", n, want);
	return err;
}
