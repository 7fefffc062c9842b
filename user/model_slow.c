/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_slow.c: how long operations take that are called slow by their share: quantiles of whole
 * operations, by the rows that the BPF programs know limits by. Must not know single operations.
 */
#include "model_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../bpf/wire_slow.h"

struct root_slot {
	const struct model_slot *slot;
	unsigned int row;
};

static unsigned int row_of(const struct wire_slot_key *key)
{
	return wire_slow_row(key->root, key->origin, key->op, model_op_layer(key));
}

static int by_row(const void *pa, const void *pb)
{
	const struct root_slot *a = pa, *b = pb;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return memcmp(&a->slot->key, &b->slot->key, sizeof(a->slot->key));
}

/* The target's slots that count whole operations and have counted any in this window. */
static size_t find_roots(const struct model *m, unsigned int target, struct root_slot *ret_roots)
{
	size_t i, n = 0;

	for (i = 0; i < m->slot_cap; i++) {
		const struct model_slot *s = m->slots[i];

		if (!s || s->key.target != target || !model_is_root(&s->key) || !s->count.win)
			continue;
		ret_roots[n++] = (struct root_slot){ .slot = s, .row = row_of(&s->key) };
	}
	qsort(ret_roots, n, sizeof(*ret_roots), by_row);
	return n;
}

/* Of the roots that share the first one's row; returns how many those are. */
static size_t sum_row(const struct root_slot *roots, size_t n, unsigned int ppm,
		      struct model_quantile *ret)
{
	struct model_sum sum = { 0 };
	uint64_t entered;
	size_t i;

	for (i = 0; i < n && roots[i].row == roots[0].row; i++)
		model_sum_add(&sum, &roots[i].slot->incl, roots[i].slot->count.win);
	entered = model_sum_entered(&sum);
	ret->row = roots[0].row;
	ret->key = roots[0].slot->key;
	ret->count = entered;
	ret->ns = entered ? model_sum_quantile(&sum, entered, ppm) : 0;
	return i;
}

int model_quantiles(const struct model *m, unsigned int target, unsigned int ppm,
		    struct model_quantile **ret, size_t *ret_n)
{
	struct model_quantile *q;
	struct root_slot *roots;
	size_t n, i = 0, rows = 0;

	if (target >= WIRE_MAX_TARGETS || !m->targets[target])
		return -ENOENT;
	roots = calloc(m->targets[target]->n_slots + 1, sizeof(*roots));
	q = calloc(WIRE_SLOW_ROWS, sizeof(*q));
	if (!roots || !q) {
		free(roots);
		free(q);
		return -ENOMEM;
	}
	n = find_roots(m, target, roots);
	while (i < n)
		i += sum_row(&roots[i], n - i, ppm, &q[rows++]);
	free(roots);
	*ret = q;
	*ret_n = rows;
	return 0;
}
