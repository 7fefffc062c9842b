/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_uses.c: the tables of files and applications on the live source: read whole, in batches,
 * and handed to the model. Knows files and applications by their keys only.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "model_uses.h"
#include "source_priv.h"

#define BATCH 1024 /* larger than any chain of the hash table can get by chance */

struct source_batch {
	struct wire_use_key key[BATCH];
	struct wire_use use[BATCH];
};

/* All rows of a map, to fn; stops where that does not return 0. 0 or -errno. */
static int each_row(int fd, struct source_batch *batch,
		    int (*fn)(void *arg, const struct wire_use_key *key,
			      const struct wire_use *use),
		    void *arg)
{
	__u32 at = 0, count;
	bool first = true;
	int err = 0, ret = 0;

	while (!err && !ret) {
		count = BATCH;
		if (bpf_map_lookup_batch(fd, first ? NULL : &at, &at, batch->key, batch->use,
					 &count, NULL))
			err = -errno;
		first = false;
		if (err && err != -ENOENT)
			return err;
		for (__u32 i = 0; i < count && !ret; i++)
			ret = fn(arg, &batch->key[i], &batch->use[i]);
	}
	return ret;
}

/* How many rows of a table the programs have made of each target. 0 or -errno. */
static int read_made(int fd, enum model_use_table table, uint64_t made[WIRE_MAX_TARGETS])
{
	struct wire_uses_made rows;

	for (__u32 i = 0; i < WIRE_MAX_TARGETS; i++) {
		if (bpf_map_lookup_elem(fd, &i, &rows))
			return -errno;
		made[i] = rows.rows[table];
	}
	return 0;
}

struct feed {
	struct model *m;
	enum model_use_table table;
	void (*see)(void *arg, const struct wire_use_key *key, const struct wire_use *use);
	void *arg;
};

static int feed_row(void *arg, const struct wire_use_key *key, const struct wire_use *use)
{
	const struct feed *f = arg;
	int ret = model_feed_use(f->m, f->table, key, use);

	if (!ret && f->table == MODEL_APPS)
		f->see(f->arg, key, use);
	return ret == -ENOENT ? 0 : ret;
}

int source_feed_uses(struct source *src, struct model *m,
		     void (*see)(void *arg, const struct wire_use_key *key,
				 const struct wire_use *use),
		     void *arg)
{
	static const char *const maps[MODEL_USE_TABLES] = { "files", "apps" };
	struct source_batch *batch = malloc(sizeof(*batch));
	int made_fd = attach_map_fd(src->attach, "uses_made"), ret = batch ? 0 : -ENOMEM;
	uint64_t made[WIRE_MAX_TARGETS];

	for (unsigned int i = 0; !ret && i < MODEL_USE_TABLES; i++) {
		struct feed f = {
			.m = m, .table = (enum model_use_table)i, .see = see, .arg = arg
		};
		int fd = attach_map_fd(src->attach, maps[i]);

		ret = fd < 0 ? fd : read_made(made_fd, f.table, made);
		ret = ret ?: each_row(fd, batch, feed_row, &f);
		if (!ret)
			model_feed_uses_end(m, f.table, made);
	}
	free(batch);
	return ret;
}
