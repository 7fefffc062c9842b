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
	/* frames are recycled: one older than its request was read while it changed hands */
	if (req->has_age && req->frame_age_ns > req->age_ns)
		req->has_frame_age = false;
}

/* The graph of the first frame below the shared top; a brick's connection is bound to its top too.
 */
static uint64_t find_graph(const struct reader *r, const struct gluster_stack *stack)
{
	const struct gluster_graph *graph = NULL;
	uint64_t bound;

	for (unsigned int i = 0; i < r->n_frames; i++) {
		const struct gluster_xlator *xl = find_xlator(r->gp, r->frames[i].xlator, &graph);

		if (xl && xl != &graph->xl[0])
			return graph->key;
	}
	if (stack->client &&
	    !procmem_read_u64(r->gp->pm, stack->client + r->layout->client_bound_xl, &bound))
		return bound;
	return 0;
}

static void set_graph(const struct reader *r, const struct gluster_stack *stack,
		      struct gluster_request *req)
{
	req->graph_key = find_graph(r, stack);
	snprintf(req->volume, sizeof(req->volume), "-");
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

static unsigned int find_fop(const struct reader *r, const struct gluster_stack *stack)
{
	uint32_t op = stack->op;

	if (stack->type > TYPE_FOP)
		return 0;
	/* write-behind's own stacks leave it to their frames */
	for (unsigned int i = r->n_frames; !op && i-- > 0;)
		op = r->frames[i].op;
	return op < r->layout->max_fop ? op : 0;
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

/* What counting, sorting and merging need of a stack. */
static int read_brief(struct reader *r, struct gluster_stack *stack, struct gluster_brief *ret_b)
{
	int err = read_frames(r, stack);

	if (err)
		return err;
	*ret_b = (struct gluster_brief){ .stack_addr = stack->addr, .unique = stack->unique };
	ret_b->background = !came_from_outside(r);
	ret_b->has_age = set_age(r, &r->frames[r->n_frames - 1], &ret_b->age_ns);
	ret_b->graph_key = find_graph(r, stack);
	ret_b->fop = find_fop(r, stack);
	return 0;
}

static int compare_uniques(const void *a, const void *b)
{
	const struct gluster_brief *x = a, *y = b;

	if (x->unique != y->unique)
		return x->unique < y->unique ? -1 : 1;
	return (int)x->background - (int)y->background;
}

static int compare_ages(const void *a, const void *b)
{
	const struct gluster_brief *x = a, *y = b;

	if (x->has_age != y->has_age)
		return x->has_age ? -1 : 1;
	return x->age_ns < y->age_ns ? 1 : x->age_ns > y->age_ns ? -1 : 0;
}

/*
 * On a client, a copied stack (replicate, disperse) carries its request on: the request sits where
 * its newest copy is. Copies whose request has been answered stay, as background.
 */
static void merge_copies(struct gluster_brief *list, size_t *n)
{
	struct gluster_brief *request = NULL;
	uint64_t newest_ns = 0;
	size_t kept = 0;

	qsort(list, *n, sizeof(*list), compare_uniques);
	for (size_t i = 0; i < *n; i++) {
		struct gluster_brief *b = &list[i];

		if (b->background && b->unique && request && request->unique == b->unique) {
			if (!request->copy_addr || b->age_ns < newest_ns) {
				request->copy_addr = b->stack_addr;
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
static void follow_copy(struct reader *r, const struct gluster_brief *b,
			struct gluster_request *req)
{
	struct gluster_stack copy;

	if (gluster_read_stack(r->gp->pm, r->layout, b->copy_addr, &copy) ||
	    copy.pool != r->gp->pool_addr || copy.unique != b->unique || read_frames(r, &copy))
		return;
	set_place(r, deepest_open(r), req);
}

/* -EAGAIN: it has ended, or the stack is another request's by now. */
static int read_request(struct reader *r, const struct gluster_brief *b, bool with_files,
			struct gluster_request *req)
{
	struct gluster_stack stack;
	int err = gluster_read_stack(r->gp->pm, r->layout, b->stack_addr, &stack);

	if (err == -ESRCH)
		return err;
	if (err || stack.pool != r->gp->pool_addr || stack.ctx != r->gp->ctx_addr)
		return -EAGAIN;
	err = read_frames(r, &stack);
	if (err)
		return err;
	if (stack.unique != b->unique)
		return -EAGAIN;
	memset(req, 0, sizeof(*req));
	req->stack_addr = b->stack_addr;
	req->unique = b->unique;
	req->app_pid = stack.pid;
	req->uid = stack.uid;
	req->background = b->background;
	req->has_age = b->has_age;
	req->age_ns = b->age_ns;
	req->fop = find_fop(r, &stack);
	set_place(r, deepest_open(r), req);
	set_graph(r, &stack, req);
	set_client(r, &stack, req);
	if (with_files)
		set_file(r, &stack, req);
	if (b->copy_addr)
		follow_copy(r, b, req);
	return 0;
}

/* All of the stacks that can still be read, oldest first. */
static int read_briefs(struct reader *r, struct gluster_stack *stacks, size_t n_stacks,
		       struct gluster_brief **ret_list, size_t *ret_n)
{
	struct gluster_brief *list = calloc(n_stacks + 1, sizeof(*list));
	size_t n = 0;
	int err = list ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < n_stacks; i++) {
		err = read_brief(r, &stacks[i], &list[n]);
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

static struct reader *new_reader(struct gluster_proc *gp, bool with_files)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->gp = gp;
	r->layout = gp->layout;
	r->now_ns = gluster_frame_clock_ns(gp->layout);
	if (with_files)
		gluster_tables_find(gp, &r->tables);
	return r;
}

int gluster_stuck_brief(struct gluster_proc *gp, struct gluster_brief **ret_list, size_t *ret_n,
			bool *ret_truncated)
{
	struct gluster_stack *stacks = NULL;
	struct reader *r = NULL;
	size_t n_stacks = 0;
	bool whole = false;
	int err = load_stacks(gp, &stacks, &n_stacks, &whole);

	if (!err) {
		r = new_reader(gp, false); /* now: later than what was read */
		err = r ? 0 : -ENOMEM;
	}
	err = err ?: read_briefs(r, stacks, n_stacks, ret_list, ret_n);
	if (!err)
		*ret_truncated = !whole;
	free(stacks);
	free(r);
	return err;
}

int gluster_stuck_detail(struct gluster_proc *gp, const struct gluster_brief *briefs, size_t n,
			 bool with_files, struct gluster_request **ret_list, size_t *ret_n)
{
	struct gluster_request *list = calloc(n + 1, sizeof(*list));
	struct reader *r = new_reader(gp, with_files && n);
	size_t done = 0;
	int err = list && r ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		err = read_request(r, &briefs[i], with_files, &list[done]);
		done += !err;
		if (err == -EAGAIN)
			err = 0;
	}
	free(r);
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
	struct gluster_brief *briefs = NULL;
	bool truncated = false;
	size_t n = 0;
	int err = gluster_stuck_brief(gp, &briefs, &n, &truncated);

	if (!err)
		err = gluster_stuck_detail(gp, briefs, n < max ? n : max, with_files, ret_list,
					   ret_n);
	if (!err)
		*ret_truncated = truncated || n > max;
	free(briefs);
	return err;
}
