/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_names.c: what the numbers in dump records are called. Owns the names of the targets'
 * xlators, the earlier graphs' included. Records come from a client sooner than its new graph is
 * read: the numbers that xlators were given until then are made those that have names.
 */
#include "session_priv.h"

#include <stdio.h>
#include <string.h>

#include "gluster_layout.h"
#include "layers.h"
#include "request.h"

static char *name_place(const struct session *s, unsigned int target, unsigned int layer)
{
	if (!s->names || target >= s->n_targets || layer >= SESSION_LAYERS)
		return NULL;
	return s->names[(size_t)target * SESSION_LAYERS + layer];
}

/*
 * The sink's thread reads names while more are kept: a name is written once, and its first byte,
 * which says that it is there, last.
 */
static void keep_name(void *arg, unsigned int target, unsigned int layer, const char *id)
{
	struct session *s = arg;
	char name[sizeof(*s->names)] = "";
	char *place = name_place(s, target, layer);

	if (!place || place[0])
		return;
	snprintf(name, sizeof(name), "%s", id);
	memcpy(place + 1, name + 1, sizeof(name) - 1);
	__atomic_store_n(place, name[0], __ATOMIC_RELEASE);
}

void session_keep_names(struct session *s, const struct session_proc *p)
{
	if (s->names && p->watch)
		watch_each_layer(p->watch, keep_name, s);
}

void session_learn_names(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_procs; i++)
		session_keep_names(s, &s->procs[i]);
}

/* ---- numbers that were given before the graph was read ------------------- */

/* False: it may have a name later. */
static bool settle_layer(const struct session *s, unsigned int target, __u16 *layer)
{
	__u16 real = s->source ? source_real_layer(s->source, *layer) : *layer;
	const char *name;

	if (!real)
		return *layer == real;
	*layer = real;
	name = name_place(s, target, real);
	return real < WIRE_LAYER_XLATOR || !name || name[0];
}

static bool settle_marks(const struct session *s, unsigned int target, struct wire_dump_marks *m)
{
	bool known = settle_layer(s, target, &m->this_layer);
	unsigned int i;

	for (i = 0; i < WIRE_TAIL_MARKS; i++)
		known &= settle_layer(s, target, &m->layer[i]);
	return known;
}

bool session_settle_record(const struct session *s, void *record, size_t len)
{
	struct wire_dump_frame f;
	struct wire_dump_marks m;
	struct request r;
	unsigned int i;
	bool known;
	char *at;

	if (request_open(record, len, &r))
		return true; /* the sink says that it is none */
	known = settle_layer(s, r.head.target, &r.head.raiser);
	memcpy(record, &r.head, sizeof(r.head));
	for (i = 0; i < r.head.n_frames; i++) {
		at = (char *)record + (r.frames - (char *)record) + i * sizeof(f);
		memcpy(&f, at, sizeof(f));
		known &= settle_layer(s, r.head.target, &f.layer);
		memcpy(at, &f, sizeof(f));
	}
	for (i = 0; i < r.head.n_marks; i++) {
		at = (char *)record + (r.marks - (char *)record) + i * sizeof(m);
		memcpy(&m, at, sizeof(m));
		known &= settle_marks(s, r.head.target, &m);
		memcpy(at, &m, sizeof(m));
	}
	return known;
}

/* ---- for the sink -------------------------------------------------------- */

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
	name = name_place(s, target, layer);
	return name && __atomic_load_n(name, __ATOMIC_ACQUIRE) ? name : NULL;
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
