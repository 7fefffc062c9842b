/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h: what is printed to a stream, as a string. Knows nothing of who prints.
 *
 *	sink_table_text(capture_begin(&c), ...);
 *	text = capture_end(&c);
 */
#ifndef BRICKTOP_TEST_CAPTURE_H
#define BRICKTOP_TEST_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>

struct capture {
	FILE *out;
	char *text;
	size_t len;
};

static FILE *capture_begin(struct capture *c)
{
	*c = (struct capture){ 0 };
	c->out = open_memstream(&c->text, &c->len);
	if (!c->out)
		abort(); /* no memory */
	return c->out;
}

/* The caller frees it. */
static char *capture_end(struct capture *c)
{
	fclose(c->out);
	return c->text;
}

#endif
