/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_names.c: what gfids and clients are called, while their process is there: by its memory,
 * and of a brick by its file system, too, which may be late. Asked at the report, of what is shown.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gluster_inode.h"
#include "watch_priv.h"

static const struct watch_target *find_target(const struct watch *w, unsigned int idx)
{
	size_t i;

	for (i = 0; i < w->n_targets; i++)
		if (w->targets[i].idx == idx)
			return &w->targets[i];
	return NULL;
}

bool watch_name_file(struct watch *w, struct gluster_resolver *r, unsigned int idx,
		     const uint8_t gfid[16], char *path, size_t size, bool *ret_is_dir)
{
	const struct watch_target *wt = find_target(w, idx);
	struct gluster_tables tables;
	char raw[4096] = "", brick[sizeof(wt->target.path) + 32], disk[4096];
	bool is_dir = false;

	*ret_is_dir = false;
	if (!wt)
		return false;
	gluster_tables_of(w->gp, wt->graph, &tables);
	gluster_inode_path(w->gp, &tables, gfid, raw, sizeof(raw), ret_is_dir);
	if (raw[0] != '/' && wt->target.kind == TARGET_BRICK) {
		snprintf(brick, sizeof(brick), "/proc/%d/root%s", (int)w->pid, wt->target.path);
		if (!gluster_resolver_ask(r, brick, gfid, disk, sizeof(disk), &is_dir)) {
			memcpy(raw, disk, sizeof(raw));
			*ret_is_dir = is_dir;
		}
	}
	text_sanitize(path, size, raw);
	return raw[0] != '\0';
}

bool watch_name_client(struct watch *w, uint64_t client, char *name, size_t size)
{
	const struct gluster_layout *l = w->gp->layout;
	uint64_t at = client + l->client_uid;
	char raw[1024];

	if (!client || (!l->client_uid_inline && procmem_read_u64(w->gp->pm, at, &at)) ||
	    procmem_read_str(w->gp->pm, at, raw, sizeof(raw)) || !raw[0])
		return false;
	text_sanitize(name, size, raw);
	return true;
}
