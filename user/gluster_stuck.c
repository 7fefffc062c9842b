// SPDX-License-Identifier: Apache-2.0
/*
 * gluster_stuck.c: the requests in flight, oldest first. The pool's list is walked from its tail:
 * the oldest stacks stand there and move least. What ends while it is read is left out, since it is
 * no longer in flight; only a list that never closes makes the answer incomplete.
 */
#include "gluster_stuck.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gluster_frames.h"
#include "gluster_inode.h"
#include "gluster_walk.h"
#include "text.h"

#define MAX_STACKS 16384
#define TRIES      8
#define TYPE_FOP   1 /* GF_OP_TYPE_FOP; management calls have numbers of their own */
#define QUEUE_TYPE "performance/io-threads"

struct reader {
	struct gluster_proc *gp;
	const struct gluster_layout *layout;
	struct gluster_tables tables;
	uint64_t now_ns;
	struct gluster_frame frames[GLUSTER_MAX_FRAMES];
	unsigned int n_frames;
};

struct brief {
	struct gluster_stack stack;
	uint64_t copy_addr; /* the copied stack in which it goes on; 0: none */
	uint64_t age_ns;
	bool has_age, background;
};

/* The whole list once, from its tail. -EAGAIN where it moved; what was read until then is kept. */
static int list_stacks(struct gluster_proc *gp, struct gluster_stack *stacks, size_t *ret_n)
{
	uint64_t head[2], from = gp->pool_addr, node;
	int err = procmem_read(gp->pm, gp->pool_addr, head, sizeof(head));
	size_t n = 0;

	*ret_n = 0;
	if (err)
		return err;
	for (node = head[1]; node != gp->pool_addr; node = stacks[n++].prev) {
		if (n == MAX_STACKS)
			break;
		err = gluster_read_stack(gp->pm, gp->layout, node, &stacks[n]);
		if (err == -ESRCH)
			return err;
		if (err || stacks[n].pool != gp->pool_addr || stacks[n].ctx != gp->ctx_addr ||
		    stacks[n].next != from) {
			err = -EAGAIN;
			break;
		}
		from = node;
		*ret_n = n + 1;
	}
	return err ? err : (node == gp->pool_addr ? 0 : -E2BIG);
}

static const struct gluster_xlator *find_xlator(const struct gluster_proc *gp, uint64_t addr,
						const struct gluster_graph **ret_graph)
{
	for (size_t g = 0; g < gp->n_graphs; g++) {
		for (size_t i = 0; i < gp->graphs[g].n; i++) {
			if (gp->graphs[g].xl[i].addr != addr)
				continue;
			*ret_graph = &gp->graphs[g];
			return &gp->graphs[g].xl[i];
		}
	}
	return NULL;
}

/* The newest frame that has not ended. Frames are newest first; all may have ended just now. */
static const struct gluster_frame *deepest_open(const struct reader *r)
{
	for (unsigned int i = 0; i < r->n_frames; i++)
		if (!r->frames[i].complete && !r->frames[i].end_ns)
			return &r->frames[i];
	return &r->frames[r->n_frames - 1];
}

static bool has_child(const struct reader *r, const struct gluster_frame *frame)
{
	for (unsigned int i = 0; i < r->n_frames; i++)
		if (r->frames[i].parent == frame->addr)
			return true;
	return false;
}

/* io-stats zeroes its own stamp: its parent's is at hand. */
static uint64_t begin_of(const struct reader *r, const struct gluster_frame *frame)
{
	for (unsigned int hops = 0; frame && !frame->begin_ns && hops < r->n_frames; hops++) {
		uint64_t parent = frame->parent;

		frame = NULL;
		for (unsigned int i = 0; i < r->n_frames && !frame; i++)
			if (r->frames[i].addr == parent)
				frame = &r->frames[i];
	}
	return frame ? frame->begin_ns : 0;
}

static bool set_age(const struct reader *r, const struct gluster_frame *frame, uint64_t *ret_age_ns)
{
	uint64_t begin_ns = frame->stamps_valid ? begin_of(r, frame) : 0;

	*ret_age_ns = 0;
	if (!begin_ns || begin_ns > r->now_ns)
		return false;
	*ret_age_ns = r->now_ns - begin_ns;
	return true;
}

/* An xlator of no known graph (the process's own, or of a graph on its way out) is named raw. */
static void name_unknown(const struct reader *r, uint64_t xl_addr, char *buf, size_t size)
{
	char raw[256] = "";
	uint64_t addr;

	if (!procmem_read_u64(r->gp->pm, xl_addr + GLUSTER_XL_NAME, &addr))
		procmem_read_str(r->gp->pm, addr, raw, sizeof(raw));
	text_sanitize(buf, size, raw);
}

static void set_place(const struct reader *r, const struct gluster_frame *frame,
		      struct gluster_request *req)
{
	const struct gluster_graph *graph;
	const struct gluster_xlator *xl = find_xlator(r->gp, frame->xlator, &graph);
	char wind[sizeof(req->wind)] = "";

	if (!xl)
		name_unknown(r, frame->xlator, req->xlator, sizeof(req->xlator));
	else
		snprintf(req->xlator, sizeof(req->xlator), "%.230s%s", xl->id,
			 !strcmp(xl->type, QUEUE_TYPE) && !has_child(r, frame) ? " (queued)" : "");
	if (frame->wind_from)
		procmem_read_str(r->gp->pm, frame->wind_from, wind, sizeof(wind));
	text_sanitize(req->wind, sizeof(req->wind), wind);
	req->has_frame_age = set_age(r, frame, &req->frame_age_ns);
}

/* The graph of the first frame below the shared top; a brick's connection is bound to its top too.
 */
static void set_graph(const struct reader *r, const struct gluster_stack *stack,
		      struct gluster_request *req)
{
	const struct gluster_graph *graph = NULL;
	uint64_t bound;

	snprintf(req->volume, sizeof(req->volume), "-");
	for (unsigned int i = 0; i < r->n_frames && !req->graph_key; i++) {
		const struct gluster_xlator *xl = find_xlator(r->gp, r->frames[i].xlator, &graph);

		if (xl && xl != &graph->xl[0])
			req->graph_key = graph->key;
	}
	if (!req->graph_key && stack->client &&
	    !procmem_read_u64(r->gp->pm, stack->client + r->layout->client_bound_xl, &bound))
		req->graph_key = bound;
	for (size_t g = 0; g < r->gp->n_graphs; g++)
		if (r->gp->graphs[g].key == req->graph_key)
			snprintf(req->volume, sizeof(req->volume), "%s", r->gp->graphs[g].volume);
}

static void set_client(const struct reader *r, const struct gluster_stack *stack,
		       struct gluster_request *req)
{
	uint64_t at = stack->client + r->layout->client_uid;
	char raw[sizeof(req->client)] = "";

	if (!stack->client ||
	    (!r->layout->client_uid_inline && procmem_read_u64(r->gp->pm, at, &at)) ||
	    procmem_read_str(r->gp->pm, at, raw, sizeof(raw)))
		return;
	text_sanitize(req->client, sizeof(req->client), raw);
}

static void set_fop(const struct reader *r, const struct gluster_stack *stack,
		    struct gluster_request *req)
{
	uint32_t op = stack->op;

	if (stack->type > TYPE_FOP)
		return;
	/* write-behind's own stacks leave it to their frames */
	for (unsigned int i = r->n_frames; !op && i-- > 0;)
		op = r->frames[i].op;
	req->fop = op < r->layout->max_fop ? op : 0;
}

/*
 * The state belongs to whoever waits for the reply: a copied stack may outlive it, so there only
 * the xlators' local data are asked.
 */
static void set_file(const struct reader *r, const struct gluster_stack *stack,
		     struct gluster_request *req)
{
	bool found = !req->background && gluster_inode_in(r->gp, &r->tables, stack->state,
							  req->gfid, req->file, sizeof(req->file));

	for (unsigned int i = 0; !found && i < r->n_frames; i++)
		found = gluster_inode_in(r->gp, &r->tables, r->frames[i].local, req->gfid,
					 req->file, sizeof(req->file));
}

/* The request came in at protocol/server or mount/fuse: its oldest frame is theirs. */
static bool came_from_outside(const struct reader *r)
{
	const struct gluster_graph *graph;
	uint64_t addr = r->frames[r->n_frames - 1].xlator;
	const struct gluster_xlator *xl = find_xlator(r->gp, addr, &graph);

	if (r->gp->root_xl_addr && addr == r->gp->root_xl_addr)
		return true;
	return xl && !strcmp(xl->type, "protocol/server");
}

static int read_frames(struct reader *r, struct gluster_stack *stack)
{
	int err = gluster_read_frames(r->gp->pm, r->layout, stack, r->frames, GLUSTER_MAX_FRAMES,
				      &r->n_frames);

	if (err != -EAGAIN)
		return err;
	/* It wound or unwound meanwhile: once more, from what the stack is now. */
	if (gluster_read_stack(r->gp->pm, r->layout, stack->addr, stack) ||
	    stack->pool != r->gp->pool_addr)
		return -EAGAIN;
	return gluster_read_frames(r->gp->pm, r->layout, stack, r->frames, GLUSTER_MAX_FRAMES,
				   &r->n_frames);
}

/* What sorting and merging need of a stack; the rest is read for those that are returned. */
static int read_brief(struct reader *r, struct brief *b)
{
	int err = read_frames(r, &b->stack);

	if (err)
		return err;
	b->background = !came_from_outside(r);
	b->has_age = set_age(r, &r->frames[r->n_frames - 1], &b->age_ns);
	return 0;
}

static int compare_uniques(const void *a, const void *b)
{
	const struct brief *x = a, *y = b;

	if (x->stack.unique != y->stack.unique)
		return x->stack.unique < y->stack.unique ? -1 : 1;
	return (int)x->background - (int)y->background;
}

static int compare_ages(const void *a, const void *b)
{
	const struct brief *x = a, *y = b;

	if (x->has_age != y->has_age)
		return x->has_age ? -1 : 1;
	return x->age_ns < y->age_ns ? 1 : x->age_ns > y->age_ns ? -1 : 0;
}

/*
 * On a client, a copied stack (replicate, disperse) carries its request on: the request sits where
 * its newest copy is. Copies whose request has been answered stay, as background.
 */
static void merge_copies(struct brief *list, size_t *n)
{
	struct brief *request = NULL;
	uint64_t newest_ns = 0;
	size_t kept = 0;

	qsort(list, *n, sizeof(*list), compare_uniques);
	for (size_t i = 0; i < *n; i++) {
		struct brief *b = &list[i];

		if (b->background && b->stack.unique && request &&
		    request->stack.unique == b->stack.unique) {
			if (!request->copy_addr || b->age_ns < newest_ns) {
				request->copy_addr = b->stack.addr;
				newest_ns = b->age_ns;
			}
			continue;
		}
		list[kept] = *b;
		request = b->background ? NULL : &list[kept];
		kept++;
	}
	*n = kept;
}

/* The place of a request that went on in a copied stack; unchanged where that has ended by now. */
static void follow_copy(struct reader *r, const struct brief *b, struct gluster_request *req)
{
	struct gluster_stack copy;

	if (gluster_read_stack(r->gp->pm, r->layout, b->copy_addr, &copy) ||
	    copy.pool != r->gp->pool_addr || copy.unique != b->stack.unique ||
	    read_frames(r, &copy))
		return;
	set_place(r, deepest_open(r), req);
}

/* -EAGAIN: it has ended, or the stack is another request's by now. */
static int read_request(struct reader *r, struct brief *b, bool with_files,
			struct gluster_request *req)
{
	uint64_t unique = b->stack.unique;
	int err = read_frames(r, &b->stack);

	if (err)
		return err;
	if (b->stack.unique != unique)
		return -EAGAIN;
	memset(req, 0, sizeof(*req));
	req->stack_addr = b->stack.addr;
	req->unique = unique;
	req->app_pid = b->stack.pid;
	req->uid = b->stack.uid;
	req->background = b->background;
	req->has_age = b->has_age;
	req->age_ns = b->age_ns;
	set_fop(r, &b->stack, req);
	set_place(r, deepest_open(r), req);
	set_graph(r, &b->stack, req);
	set_client(r, &b->stack, req);
	if (with_files)
		set_file(r, &b->stack, req);
	if (b->copy_addr)
		follow_copy(r, b, req);
	return 0;
}

/* Oldest first, as many as are asked for. */
static int choose(struct reader *r, const struct gluster_stack *stacks, size_t n_stacks,
		  struct brief **ret_list, size_t *ret_n)
{
	struct brief *list = calloc(n_stacks + 1, sizeof(*list));
	size_t n = 0;
	int err = list ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < n_stacks; i++) {
		list[n] = (struct brief){ .stack = stacks[i] };
		err = read_brief(r, &list[n]);
		n += !err;
		if (err == -EAGAIN)
			err = 0;
	}
	if (err) {
		free(list);
		return err;
	}
	if (r->gp->root_xl_addr)
		merge_copies(list, &n);
	qsort(list, n, sizeof(*list), compare_ages);
	*ret_list = list;
	*ret_n = n;
	return 0;
}

/* The list of stacks; *ret_whole says whether it closed. */
static int load_stacks(struct gluster_proc *gp, struct gluster_stack **ret_stacks, size_t *ret_n,
		       bool *ret_whole)
{
	struct gluster_stack *stacks = malloc(MAX_STACKS * sizeof(*stacks));
	int err = stacks ? -EAGAIN : -ENOMEM;

	for (int tries = 0; tries < TRIES && err == -EAGAIN; tries++)
		err = list_stacks(gp, stacks, ret_n);
	if (err && err != -EAGAIN && err != -E2BIG) {
		free(stacks);
		return err;
	}
	*ret_stacks = stacks;
	*ret_whole = !err;
	return 0;
}

static int read_requests(struct reader *r, struct brief *briefs, size_t n, bool with_files,
			 struct gluster_request **ret_list, size_t *ret_n)
{
	struct gluster_request *list = calloc(n + 1, sizeof(*list));
	size_t done = 0;
	int err = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		err = read_request(r, &briefs[i], with_files, &list[done]);
		done += !err;
		if (err == -EAGAIN)
			err = 0;
	}
	if (err) {
		free(list);
		return err;
	}
	*ret_list = list;
	*ret_n = done;
	return 0;
}

int gluster_stuck_read(struct gluster_proc *gp, size_t max, bool with_files,
		       struct gluster_request **ret_list, size_t *ret_n, bool *ret_truncated)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct gluster_stack *stacks = NULL;
	struct brief *briefs = NULL;
	size_t n_stacks = 0, n = 0;
	bool whole = false;
	int err = r ? load_stacks(gp, &stacks, &n_stacks, &whole) : -ENOMEM;

	if (!err) {
		r->gp = gp;
		r->layout = gp->layout;
		r->now_ns = gluster_frame_clock_ns(gp->layout);
		if (with_files)
			gluster_tables_find(gp, &r->tables);
		err = choose(r, stacks, n_stacks, &briefs, &n);
	}
	if (!err)
		err = read_requests(r, briefs, n < max ? n : max, with_files, ret_list, ret_n);
	if (!err)
		*ret_truncated = !whole || n > max;
	free(briefs);
	free(stacks);
	free(r);
	return err;
}
