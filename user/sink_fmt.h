/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_fmt.h: the bricks that the text sinks are built of: cells of a fixed width, lines that wrap
 * at the last column, figures with "-" for what was not measured, bars, colour. Owns how text looks
 * on a narrow or ASCII-only terminal; knows neither targets nor layers. Every string passes through
 * text_sanitize() once more on its way out.
 */
#ifndef BRICKTOP_SINK_FMT_H
#define BRICKTOP_SINK_FMT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "snapshot.h"

struct sink_style {
	unsigned int columns; /* sinks take 20 .. 400 of it */
	bool utf8; /* else bars are '#' and other characters outside ASCII print as '?' */
	bool colour;
};

enum sink_colour { SINK_PLAIN, SINK_BOLD, SINK_WARM, SINK_HOT };

/*
 * The style for a file descriptor: width of the terminal, or 100 columns; colour on a terminal
 * unless NO_COLOR is set and not empty; UTF-8 as the locale says (the caller has called
 * setlocale()).
 */
void sink_fmt_detect(int fd, struct sink_style *ret_style);
/* Flush; 0 or -errno of the stream. */
int sink_fmt_status(FILE *out);

unsigned int sink_fmt_columns(const struct sink_style *st);

/* Columns that s takes once it is printed: wide characters two, combining ones none. */
unsigned int sink_fmt_width(const struct sink_style *st, const char *s);

/* s, harmless, as it is. */
void sink_fmt_text(FILE *out, const struct sink_style *st, const char *s);
/* s in exactly width columns; cut ones end in '~'. Left or right aligned. */
void sink_fmt_left(FILE *out, const struct sink_style *st, const char *s, unsigned int width);
void sink_fmt_right(FILE *out, const struct sink_style *st, const char *s, unsigned int width);
/* A bar of width columns, full at 100 %; more than that ends in '+'. Invalid: blank. */
void sink_fmt_bar(FILE *out, const struct sink_style *st, struct snap_num pct, unsigned int width);
void sink_fmt_colour(FILE *out, const struct sink_style *st, enum sink_colour colour);

/* Figures into buf, "-" where not measured; they return buf. */
char *sink_fmt_ns(char *buf, size_t size, bool valid, double ns);
char *sink_fmt_pct(char *buf, size_t size, struct snap_num pct);
char *sink_fmt_count(char *buf, size_t size, bool valid, double value); /* one decimal below 100 */
char *sink_fmt_u64(char *buf, size_t size, uint64_t value);             /* 1,234,567 exactly */
char *sink_fmt_known(char *buf, size_t size, bool valid, uint64_t value); /* likewise */

/* A moment (CLOCK_REALTIME) as RFC 3339 in UTC, to the millisecond; "" where it is none. */
char *sink_fmt_time(char *buf, size_t size, int64_t wall_ns);

/*
 * A line of items that wraps before the last column; what follows is indented. Items are never cut:
 * one that is wider than the line stands alone. Start with sink_fmt_flow_begin(), or with
 * sink_fmt_flow_resume() on a line that has col columns already; sink_fmt_flow_end() writes the
 * newline.
 */
struct sink_flow {
	FILE *out;
	const struct sink_style *st;
	unsigned int col, indent;
	bool fresh; /* nothing on this line but its indentation */
};

void sink_fmt_flow_begin(struct sink_flow *flow, FILE *out, const struct sink_style *st,
			 const char *lead, unsigned int indent);
void sink_fmt_flow_resume(struct sink_flow *flow, FILE *out, const struct sink_style *st,
			  unsigned int col, unsigned int indent);
__attribute__((format(printf, 3, 4))) void
sink_fmt_flow_item(struct sink_flow *flow, unsigned int gap, const char *fmt, ...);
/* A sentence, word by word, so that it wraps wherever it may. */
void sink_fmt_flow_words(struct sink_flow *flow, const char *text);
void sink_fmt_flow_end(struct sink_flow *flow);

#endif
