/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_uses.h: files and applications in the model: growing rows in, the tables of a window out
 * (snap_target.files, .dirs, .apps). The programs keep the rows that were used last; what was
 * pushed out stays here as far as it was read, and the rest is said. Pure, like all of the model:
 * what a file or an application is called, the session fills into the snapshot.
 */
#ifndef BRICKTOP_MODEL_USES_H
#define BRICKTOP_MODEL_USES_H

#include "model.h"

enum model_use_table {
	MODEL_FILES = WIRE_USES_FILES,
	MODEL_APPS = WIRE_USES_APPS,
	MODEL_USE_TABLES = WIRE_USE_TABLES,
};

/* A row of the programs; a born_ns that is not known counts from 0. 0, -ENOENT or -ENOMEM. */
int model_feed_use(struct model *m, enum model_use_table table, const struct wire_use_key *key,
		   const struct wire_use *use);

/*
 * All rows of a table have been fed; made: how many the programs had made of each target before
 * that (growing). Those that were not among the rows have been pushed out.
 */
void model_feed_uses_end(struct model *m, enum model_use_table table,
			 const uint64_t made[WIRE_MAX_TARGETS]);

/*
 * Make the table of directories of that of files, once their paths are known: each file's time is
 * its directory's, a directory's own requests (readdirp, names looked up in it) are its, too. 0 or
 * -ENOMEM.
 */
int model_group_dirs(struct snap_target *t);

#endif
