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
#include "clock.h"
#include "layers.h"
#include "source_priv.h"

#define MAX_REREADS 2

/* ---- attaching --------------------------------------------------------- */

/* From now on the calls of libaio are looked at as well. */
static int open_aio(struct source *src)
{
	__u32 zero = 0, on = 1;

	if (bpf_map_update_elem(attach_map_fd(src->attach, "aio_on"), &zero, &on, BPF_ANY))
		return -errno;
	src->sees_aio = true;
	return 0;
}

bool source_sees_aio(const struct source *src)
{
	return src->sees_aio;
}

int source_attach_layer(struct source *src, unsigned int number, char *err, size_t err_size)
{
	const struct layer *layer = layer_get(number);
	int ret;

	if (number == LAYER_DEVICES)
		return source_attach_devices(src, number, err, err_size);
	ret = attach_load(src->attach, layer->object, NULL, err, err_size);
	ret = ret ?: attach_auto(src->attach, layer->object, err, err_size);
	if (!ret && number == LAYER_AIO)
		ret = open_aio(src);
	return ret;
}

/* Without processes there is nothing that a ledger could be of. */
static bool is_wanted(const struct source *src, unsigned int number)
{
	if (number == LAYER_DEVICES && src->devices_off)
		return false;
	return !src->host_only || layer_is_host(layer_get(number));
}

void source_attach_layers(struct source *src, struct model *m)
{
	const struct layer *layer;
	const char *why;
	char err[256];
	unsigned int i;

	for (i = LAYER_NONE + 1; i < LAYER_COUNT; i++) {
		layer = layer_get(i);
		if (!is_wanted(src, i))
			continue;
		err[0] = '\0';
		why = NULL;
		if (src->layers_off >> i & 1 || !layer->on)
			why = "switched off";
		else if (source_attach_layer(src, i, err, sizeof(err)))
			why = err[0] ? err : "cannot be attached";
		else if (layer->cost)
			src->shed |= 1ULL << i;
		if (why)
			(void)model_feed_off(m, layer->title, why);
	}
}

bool source_has_shed(const struct source *src)
{
	return src->shed != 0;
}

static int tell_duty(struct source *src)
{
	__u32 zero = 0;

	return bpf_map_update_elem(attach_map_fd(src->attach, "duty"), &zero, &src->duty, BPF_ANY) ?
		       -errno :
		       0;
}

static int set_duty(struct source *src, __u64 layers_since_ns)
{
	src->duty.layers_since_ns = layers_since_ns;
	return tell_duty(src);
}

static int switch_on(struct source *src, char *err, size_t err_size)
{
	unsigned int i;
	int ret = 0;

	for (i = LAYER_NONE + 1; i < LAYER_COUNT && !ret; i++) {
		if (src->shed >> i & 1)
			ret = source_attach_layer(src, i, err, err_size);
	}
	/* what began before this was not seen whole */
	return ret ?: set_duty(src, clock_mono_ns());
}

static void switch_off(struct source *src)
{
	unsigned int i;

	/* first: what ends from here on was not seen whole */
	(void)set_duty(src, WIRE_DUTY_OFF);
	for (i = LAYER_NONE + 1; i < LAYER_COUNT; i++) {
		if (src->shed >> i & 1)
			attach_auto_off(src->attach, layer_get(i)->object);
	}
}

int source_switch_layers(struct source *src, bool on, char *err, size_t err_size)
{
	int ret = on ? switch_on(src, err, err_size) : 0;

	if (!on || ret)
		switch_off(src);
	return ret;
}

int source_switch_walk(struct source *src, bool on)
{
	const struct wire_duty was = src->duty;
	int ret;

	if (on == source_walks(src))
		return 0;
	source_meter_idle(src, !on);
	src->duty.walk_since_ns = WIRE_DUTY_OFF;
	if (on) /* at the latest: what began before this was not seen whole */
		src->duty.walk_since_ns = clock_mono_ns();
	ret = tell_duty(src);
	if (ret) {
		src->duty = was;
		source_meter_idle(src, on);
	}
	return ret;
}

bool source_walks(const struct source *src)
{
	return src->duty.walk_since_ns != WIRE_DUTY_OFF;
}

/* A walk over all tasks' rings. */
void source_flush_spans(struct source *src)
{
	int prog = attach_prog_fd(src->attach, "on_flush"), link, iter;
	char nothing[64];

	src->is_last = true;
	src->is_grouped = false;
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

/*
 * The slots in use: read anew only when more are, and twice again where some are missing. A slot is
 * counted before it is in the map; one that two CPUs counted at once never comes.
 */
static bool must_read_slots(struct source *src, __u32 used)
{
	if (used != src->used_seen)
		src->rereads = 0;
	else if (src->n_known == used || src->rereads == MAX_REREADS)
		return false;
	else
		src->rereads++;
	src->used_seen = used;
	return true;
}

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
	if (!must_read_slots(src, used))
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
		src->known[n++] = (struct source_slot){ .key = key, .index = index };
	}
	src->n_known = n;
	src->is_grouped = false;
	return 0;
}

/* Add the buckets of one shard; returns how often its slot was entered, modulo 2^32. */
static __u32 add_buckets(const volatile struct wire_pool_slot *s, struct wire_slot *sum)
{
	__u32 entered = 0, self, b;

	for (b = 0; b < HIST_BUCKETS; b++) {
		self = s->bucket[b].self;
		entered += self;
		sum->self[b] += self;
		sum->incl[b] += s->bucket[b].incl;
	}
	return entered;
}

/* Add one slot over all shards. The words grow while they are read; each is read once. */
static void add_slot(const struct source *src, __u32 index, struct wire_slot *ret_sum)
{
	struct source_seen *seen = &src->seen[index];
	__u32 shard, entered = 0;

	for (shard = 0; shard < src->cfg.shards; shard++) {
		const volatile struct wire_pool_slot *s =
			&src->pool[index + src->cfg.slots * shard];
		__u64 self = s->self_ns, below = s->below_ns;
		__u64 self_max = s->self_max_ns, incl_max = s->incl_max_ns;

		ret_sum->self_sum_ns += self;
		ret_sum->incl_sum_ns += self + below;
		ret_sum->errors += s->errors;
		ret_sum->bytes += s->bytes;
		ret_sum->more += s->more;
		ret_sum->no_errors += s->no_errors;
		ret_sum->no_bytes += s->no_bytes;
		if (self_max > ret_sum->self_max_ns)
			ret_sum->self_max_ns = self_max;
		if (incl_max > ret_sum->incl_max_ns)
			ret_sum->incl_max_ns = incl_max;
		if (self || below || src->is_last)
			entered += add_buckets(s, ret_sum);
	}
	seen->count += entered - seen->entered;
	seen->entered = entered;
	ret_sum->count += seen->count;
}

void source_read_losses(struct source *src, unsigned int target, __u64 ret_losses[WIRE_LOSSES])
{
	const volatile __u64 *own = src->losses + (size_t)target * WIRE_LOSSES;
	int i;

	for (i = 0; i < WIRE_LOSSES; i++)
		ret_losses[i] = src->losses ? own[i] : 0;
	/* where the devices are all that is looked at, theirs are the targets' */
	if (target == WIRE_MAX_TARGETS && src->host_only)
		source_add_device_losses(src, ret_losses);
}

void source_read_checks(struct source *src, unsigned int target, __u64 ret_checks[WIRE_CHECKS])
{
	const volatile __u64 *own = src->checks + (size_t)target * WIRE_CHECKS;
	int i;

	for (i = 0; i < WIRE_CHECKS; i++)
		ret_checks[i] = src->checks ? own[i] : 0;
}

/*
 * What the model calls the slot; false: not known yet. In the end an xlator that came and went
 * unidentified keeps the number that it was given.
 */
static bool name_slot(const struct source *src, struct source_slot *slot)
{
	__u16 layer = source_real_layer(src, slot->key.layer);
	__u16 parent = source_real_layer(src, slot->key.parent);

	slot->name = slot->key;
	if (src->is_last) {
		layer = layer ?: slot->key.layer;
		parent = parent ?: slot->key.parent;
	}
	slot->name.layer = layer;
	slot->name.parent = parent;
	return (layer || !slot->key.layer) && (parent || !slot->key.parent);
}

static int by_name(const void *a, const void *b, void *known)
{
	const struct source_slot *slot = known;

	return memcmp(&slot[*(const __u32 *)a].name, &slot[*(const __u32 *)b].name,
		      sizeof(slot->name));
}

/* List the slots that are the same but for numbers given before their xlator was known. */
static int group_slots(struct source *src)
{
	__u32 *sorted = malloc((src->n_known + 1) * sizeof(*sorted));
	size_t i, n = 0;

	if (!sorted)
		return -ENOMEM;
	for (i = 0; i < src->n_known; i++) {
		struct source_slot *slot = &src->known[i];

		slot->next = NO_SLOT;
		slot->is_head = false;
		slot->refused = 0;
		src->seen[slot->index].still = 0; /* fed anew, with its list */
		if (name_slot(src, slot))
			sorted[n++] = (__u32)i;
	}
	qsort_r(sorted, n, sizeof(*sorted), by_name, src->known);
	for (i = 0; i < n; i++) {
		if (!i || by_name(&sorted[i - 1], &sorted[i], src->known))
			src->known[sorted[i]].is_head = true;
		else
			src->known[sorted[i - 1]].next = sorted[i];
	}
	free(sorted);
	src->is_grouped = true;
	return 0;
}

/*
 * A passage's time is added first, and it is entered in its bucket right after: one more read after
 * the sum has stopped sees all of it. What took no time at all is seen with the next one that did,
 * or in the end.
 */
static bool has_moved(struct source *src, __u32 index)
{
	struct source_seen *seen = &src->seen[index];
	__u64 sum_ns = 0;
	__u32 shard;

	for (shard = 0; shard < src->cfg.shards; shard++) {
		const volatile struct wire_pool_slot *s =
			&src->pool[index + src->cfg.slots * shard];

		sum_ns += s->self_ns + s->below_ns;
	}
	if (sum_ns != seen->sum_ns)
		seen->still = 0;
	seen->sum_ns = sum_ns;
	return seen->still++ < 2 || src->is_last;
}

/* Feed a slot, with those of the same name. What the model has no room for is lost, and counted. */
static int feed_slot(struct source *src, struct model *m, struct source_slot *head)
{
	struct wire_slot sum = { 0 };
	bool moved = false;
	__u32 i;
	int ret;

	for (i = (__u32)(head - src->known); i != NO_SLOT; i = src->known[i].next)
		moved |= has_moved(src, src->known[i].index);
	if (!moved)
		return 0;
	for (i = (__u32)(head - src->known); i != NO_SLOT; i = src->known[i].next)
		add_slot(src, src->known[i].index, &sum);
	ret = model_feed_slot(m, &head->name, &sum);
	head->refused = ret ? sum.count : 0;
	return ret == -ENOMEM ? ret : 0;
}

static int feed_slots(struct source *src, struct model *m)
{
	size_t i;
	int ret = read_slots(src);

	if (!ret && !src->is_grouped)
		ret = group_slots(src);
	for (i = 0; !ret && i < src->n_known; i++) {
		if (src->known[i].is_head)
			ret = feed_slot(src, m, &src->known[i]);
	}
	return ret;
}

static __u64 count_refused(const struct source *src, unsigned int target)
{
	__u64 n = 0;
	size_t i;

	for (i = 0; i < src->n_known; i++) {
		if (src->known[i].key.target == target)
			n += src->known[i].refused;
	}
	return n;
}

static bool is_nameless(const struct source_slot *slot)
{
	return slot->is_head && slot->name.layer >= WIRE_LAYER_ADOPTED;
}

static void tell_nameless(const struct source *src, struct model *m)
{
	size_t i;

	for (i = 0; i < src->n_known && !is_nameless(&src->known[i]); i++)
		;
	if (i < src->n_known)
		(void)model_feed_off(m, "xlator names",
				     "xlators of a graph that was replaced before it could be read "
				     "are shown by number");
}

/* Nobody knows of which target the kernel, or a walk that found none, lost something. */
static void feed_losses(struct source *src, struct model *m, unsigned int n_targets)
{
	__u64 own[WIRE_LOSSES], nobodys[WIRE_LOSSES], misses = source_recursion_misses(src);
	unsigned int t, i;

	source_read_losses(src, WIRE_MAX_TARGETS, nobodys);
	for (t = 0; t < n_targets; t++) {
		source_read_losses(src, t, own);
		own[WIRE_LOST_MAP_FULL] += count_refused(src, t);
		for (i = 0; i < WIRE_LOSSES && n_targets == 1; i++)
			own[i] += nobodys[i];
		model_feed_lost(m, t, own, n_targets == 1 ? misses : MODEL_NOT_COUNTED,
				MODEL_NOT_COUNTED);
	}
	if (n_targets > 1)
		model_feed_lost(m, MODEL_UNASSIGNED, nobodys, misses, MODEL_NOT_COUNTED);
	if (!src->host_only) {
		__u64 devices[WIRE_LOSSES] = { 0 };

		source_add_device_losses(src, devices);
		model_feed_lost(m, MODEL_DEVICES, devices, MODEL_NOT_COUNTED, MODEL_NOT_COUNTED);
	}
}

int source_feed(struct source *src, struct model *m, unsigned int n_targets)
{
	__u64 checks[WIRE_CHECKS];
	unsigned int t;
	int ret = src->pool ? feed_slots(src, m) : 0;

	if (src->is_last)
		tell_nameless(src, m);
	feed_losses(src, m, n_targets);
	for (t = 0; t < n_targets; t++) {
		source_read_checks(src, t, checks);
		model_feed_checks(m, t, checks);
	}
	return ret;
}
