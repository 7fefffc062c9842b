/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_names.c: what targets, layers and operations are called in dumps. The sink's thread reads
 * names while more are kept: a name is written once, and its first byte, which says that it is
 * there, last.
 */
#include "session_priv.h"

#include <stdio.h>
#include <string.h>

#include "gluster_layout.h"
#include "layers.h"

void session_keep_name(void *arg, unsigned int target, unsigned int layer, const char *id)
{
	struct session *s = arg;
	char name[sizeof(*s->names)] = "";
	char *place;

	if (!s->names || target >= s->n_targets || layer >= SESSION_LAYERS)
		return;
	place = s->names[(size_t)target * SESSION_LAYERS + layer];
	if (place[0])
		return;
	snprintf(name, sizeof(name), "%s", id);
	memcpy(place + 1, name + 1, sizeof(name) - 1);
	__atomic_store_n(place, name[0], __ATOMIC_RELEASE);
}

static const char *name_target(const void *arg, unsigned int target)
{
	const struct session *s = arg;

	if (target >= s->n_targets)
		return NULL;
	return s->targets[target].path[0] ? s->targets[target].path : s->targets[target].volume;
}

static const char *name_layer(const void *arg, unsigned int target, unsigned int layer)
{
	const struct session *s = arg;
	const struct layer *row = layer_get(layer);
	const char *name;

	if (row)
		return row->title;
	if (!s->names || target >= s->n_targets || layer >= SESSION_LAYERS)
		return NULL;
	name = s->names[(size_t)target * SESSION_LAYERS + layer];
	return __atomic_load_n(name, __ATOMIC_ACQUIRE) ? name : NULL;
}

static const char *name_sub(const void *arg, unsigned int layer, unsigned int sub)
{
	const struct layer *row = layer_get(layer);

	(void)arg;
	return row && row->subs && sub < row->n_subs ? row->subs[sub] : NULL;
}

static const char *name_op(const void *arg, unsigned int op)
{
	(void)arg;
	return gluster_fop_name(op);
}

struct sink_dump_names session_names(const struct session *s)
{
	return (struct sink_dump_names){
		.target = name_target,
		.layer = name_layer,
		.sub = name_sub,
		.op = name_op,
		.arg = s,
	};
}
