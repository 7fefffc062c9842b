/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_table.h: the table of one operation's layers, as text. Owns its columns and how the tree is
 * drawn: a row is called by the one above it; rows are indented from where the tree branches (or
 * the kind of layer changes), so that a chain of fifteen xlators stays at the left edge. Knows one
 * operation only.
 */
#ifndef BRICKTOP_SINK_TABLE_H
#define BRICKTOP_SINK_TABLE_H

#include <stdio.h>

#include "sink_fmt.h"
#include "snapshot.h"

/*
 * The layers as walked: self/op is mean x passages / roots, likewise incl/op; p50, p99 and max are
 * of one passage's self time. 0 or -ENOMEM.
 */
int sink_table_walk(FILE *out, const struct snap_op *op, const struct sink_style *st);

/* The layers as the process's own statistics give them: calls, means, estimated self ('~'). */
int sink_table_memory(FILE *out, const struct snap_op *op, const struct sink_style *st);

/*
 * A process's own file operations, one row each, inclusive: those of ops[0 ... n - 1] for which
 * is_row() holds. Nothing where there is none.
 */
void sink_table_local(FILE *out, const struct snap_op *ops, size_t n,
		      bool (*is_row)(const struct snap_op *op), const struct sink_style *st);

/* One line: the layers with the largest self times, dearest first; nothing where none is known. */
void sink_table_top(FILE *out, const struct snap_op *op, const struct sink_style *st);

/* Self (or inclusive) time of a layer per root operation. */
struct snap_num sink_table_per_op(const struct snap_op *op, const struct snap_layer *layer,
				  const struct snap_dist *dist);

#endif
