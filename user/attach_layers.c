/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_layers.c: the layers of layers.def on the live source: load each row's object, attach its
 * hooks, and read what all programs have counted. A layer that cannot be had is reported with its
 * reason; the others go on.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "layers.h"
#include "source_priv.h"

/* ---- attaching --------------------------------------------------------- */

static int attach_layer(struct source *src, const struct layer *layer, char *err, size_t err_size)
{
	int ret = attach_load(src->attach, layer->object, NULL, err, err_size);

	return ret ?: attach_auto(src->attach, layer->object, err, err_size);
}

int source_attach_layers(struct source *src, struct model *m)
{
	const struct layer *layer;
	char err[256];
	unsigned int i;
	int ret = 0;

	for (i = LAYER_NONE + 1; i < LAYER_COUNT && !ret; i++) {
		layer = layer_get(i);
		if (src->layers_off || !layer->on) {
			ret = model_feed_off(m, layer->title, "switched off");
			continue;
		}
		err[0] = '\0';
		if (attach_layer(src, layer, err, sizeof(err)))
			ret = model_feed_off(m, layer->title, err[0] ? err : "cannot be attached");
	}
	return ret;
}

/* A walk over all tasks' rings. */
void source_flush_spans(struct source *src)
{
	int prog = attach_prog_fd(src->attach, "on_flush"), link, iter;
	char nothing[64];

	if (prog < 0)
		return;
	link = bpf_link_create(prog, 0, BPF_TRACE_ITER, NULL);
	if (link < 0)
		return;
	iter = bpf_iter_create(link);
	if (iter >= 0) {
		while (read(iter, nothing, sizeof(nothing)) > 0)
			;
		close(iter);
	}
	close(link);
}

void source_detach(struct source *src)
{
	attach_detach(src->attach);
}

/* ---- reading ----------------------------------------------------------- */

/* The slots in use: read anew only when more are. */
static int read_slots(struct source *src)
{
	int used_fd = attach_map_fd(src->attach, "slots_used");
	int fd = attach_map_fd(src->attach, "slots");
	struct wire_slot_key key, next, *at = NULL;
	__u32 zero = 0, used = 0, index;
	struct source_slot *grown;
	size_t n = 0;

	if (bpf_map_lookup_elem(used_fd, &zero, &used))
		return -errno;
	if (used > src->cfg.slots)
		used = src->cfg.slots;
	if (used == src->used_seen && src->n_known == used)
		return 0;
	grown = realloc(src->known, (used + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	src->known = grown;
	while (n < used && !bpf_map_get_next_key(fd, at, &next)) {
		key = next;
		at = &key;
		if (bpf_map_lookup_elem(fd, &key, &index) || index >= src->cfg.slots)
			continue;
		src->known[n].key = key;
		src->known[n++].index = index;
	}
	src->n_known = n;
	src->used_seen = used;
	return 0;
}

/* One slot over all shards. The words grow while they are read; each is read once. */
static void sum_slot(const struct source *src, __u32 index, struct wire_slot *ret_sum)
{
	__u32 shard, b;

	memset(ret_sum, 0, sizeof(*ret_sum));
	for (shard = 0; shard < src->cfg.shards; shard++) {
		const volatile struct wire_slot *s = &src->pool[index + src->cfg.slots * shard];
		__u64 self_max = s->self_max_ns, incl_max = s->incl_max_ns;

		ret_sum->count += s->count;
		ret_sum->self_sum_ns += s->self_sum_ns;
		ret_sum->incl_sum_ns += s->incl_sum_ns;
		ret_sum->errors += s->errors;
		ret_sum->bytes += s->bytes;
		ret_sum->holds += s->holds;
		if (self_max > ret_sum->self_max_ns)
			ret_sum->self_max_ns = self_max;
		if (incl_max > ret_sum->incl_max_ns)
			ret_sum->incl_max_ns = incl_max;
		for (b = 0; s->count && b < HIST_BUCKETS; b++) {
			ret_sum->self[b] += s->self[b];
			ret_sum->incl[b] += s->incl[b];
		}
	}
}

void source_read_losses(struct source *src, unsigned int target, __u64 ret_losses[WIRE_LOSSES])
{
	const volatile __u64 *own = src->losses + (size_t)target * WIRE_LOSSES;
	const volatile __u64 *nobodys = src->losses + (size_t)WIRE_MAX_TARGETS * WIRE_LOSSES;
	int i;

	for (i = 0; i < WIRE_LOSSES; i++)
		ret_losses[i] = own[i] + nobodys[i];
}

void source_read_checks(struct source *src, unsigned int target, __u64 ret_checks[WIRE_CHECKS])
{
	const volatile __u64 *own = src->checks + (size_t)target * WIRE_CHECKS;
	int i;

	for (i = 0; i < WIRE_CHECKS; i++)
		ret_checks[i] = own[i];
}

int source_feed(struct source *src, struct model *m, unsigned int n_targets)
{
	__u64 losses[WIRE_LOSSES], checks[WIRE_CHECKS], misses = source_recursion_misses(src);
	struct wire_slot sum;
	unsigned int t;
	size_t i;
	int ret = read_slots(src);

	for (i = 0; !ret && i < src->n_known; i++) {
		sum_slot(src, src->known[i].index, &sum);
		ret = model_feed_slot(m, &src->known[i].key, &sum);
	}
	for (t = 0; t < n_targets; t++) {
		source_read_losses(src, t, losses);
		source_read_checks(src, t, checks);
		model_feed_lost(m, t, losses, misses, 0);
		model_feed_checks(m, t, checks);
	}
	return ret;
}

/* ---- what it costs ----------------------------------------------------- */

static bool is_uprobe(const char *name)
{
	return strstr(name, "__multi") || strstr(name, "__perf");
}

void source_meter(struct source *src, struct meter_interval *interval)
{
	uint64_t run_ns = 0, uprobe_hits = 0, tp_hits = 0;
	struct meter_prog prog;
	const char *name;
	size_t i;
	int fd;

	for (i = 0; (fd = attach_prog_nth(src->attach, i, &name)) >= 0; i++) {
		if (meter_read_prog(fd, &prog))
			continue;
		run_ns += prog.run_ns;
		*(is_uprobe(name) ? &uprobe_hits : &tp_hits) += prog.hits;
	}
	interval->bpf_run_ns = run_ns - src->last_run_ns;
	interval->emulated_hits = uprobe_hits - src->last_uprobe_hits;
	interval->tracepoint_hits = tp_hits - src->last_tp_hits;
	src->last_run_ns = run_ns;
	src->last_uprobe_hits = uprobe_hits;
	src->last_tp_hits = tp_hits;
}

uint64_t source_recursion_misses(struct source *src)
{
	struct meter_prog prog;
	uint64_t misses = 0;
	size_t i;
	int fd;

	for (i = 0; (fd = attach_prog_nth(src->attach, i, NULL)) >= 0; i++) {
		if (!meter_read_prog(fd, &prog))
			misses += prog.missed;
	}
	return misses;
}
