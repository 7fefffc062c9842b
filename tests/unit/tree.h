/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h: a folder that plays /proc or /sys, for one test. */
#ifndef BRICKTOP_TEST_TREE_H
#define BRICKTOP_TEST_TREE_H

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

static char tree_dir[64]; /* made by the test with mkdtemp() */

__attribute__((format(printf, 1, 2))) static const char *path_of(const char *fmt, ...)
{
	static char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/", tree_dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path + n, sizeof(path) - (size_t)n, fmt, ap);
	va_end(ap);
	return path;
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return;
	fputs(text, f);
	fclose(f);
}

#endif
