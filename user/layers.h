/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.h: the table of layers.def as data. A layer's wire number is its place in the table.
 */
#ifndef BRICKTOP_LAYERS_H
#define BRICKTOP_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYER(id, object, title, kind, parent, on, cost, subs) LAYER_##id,
enum layer_id {
	LAYER_NONE,
#include "layers.def"
	LAYER_COUNT,
};
#undef LAYER

struct layer {
	const char *object, *title, *kind, *parent;
	bool on;
	int cost;
	const char *const *subs; /* sub number -> name; NULL: no sub-operations */
	unsigned int n_subs;
};

/* Row of a wire layer number, or NULL. */
const struct layer *layer_get(unsigned int number);

/* A host table: counts for the whole host, in no ledger (see layers.def). */
bool layer_is_host(const struct layer *layer);

/*
 * A comma-separated list of titles, or "all", or "none", as the set (1 << number) of the rows that
 * are left out. Rows of one object come together. 0; -EINVAL and one clear line: a word is no
 * title, or the layer that one lies in is not listed.
 */
int layers_parse(const char *list, uint64_t *ret_off, char *err, size_t err_size);

/* For wire_cfg.syscalls: what is watched, by this architecture's syscall number. */
void layers_fill_syscalls(unsigned short *numbers, unsigned int n);

#endif
