/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_slow.c: the keeper of slow operations in a session: between the ring, which the keeper
 * does not know, and the snapshot. Windows begin and end with the session's.
 */
#include "session_priv.h"

#include <errno.h>

int session_keep_slow(struct session *s, const struct slow_config *config)
{
	struct slow_config mine = *config;

	mine.n_targets = (unsigned int)s->n_targets;
	return s->source ? slow_new(&mine, source_slow(s->source), &s->slow) : 0;
}

void session_take_slow(struct session *s, const void *record, size_t len)
{
	/* what it cannot keep it has counted, and the report says */
	if (s->slow)
		(void)slow_take(s->slow, record, len);
}

void session_start_slow(struct session *s)
{
	if (s->slow)
		slow_start_window(s->slow);
}

int session_tick_slow(struct session *s)
{
	return s->slow ? slow_tick(s->slow, s->model) : 0;
}

static __u16 real_layer(const void *arg, __u16 layer)
{
	return source_real_layer(arg, layer);
}

int session_report_slow(struct session *s, struct snapshot *snap)
{
	struct slow_view view = {
		.model = s->model,
		.wall_ns = s->collected_wall_ns - (int64_t)s->collected_ns,
		.real_layer = real_layer,
		.arg = s->source,
	};

	return s->slow ? slow_report(s->slow, &view, snap) : 0;
}
