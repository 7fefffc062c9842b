/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden.h: output compared with a file under tests/golden. GOLDEN=rewrite (or GOLDEN_REWRITE=1)
 * writes the file anew: the difference is then for review. Tests run in the project's root folder.
 */
#ifndef BRICKTOP_TEST_GOLDEN_H
#define BRICKTOP_TEST_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

static bool golden_rewrites(void)
{
	const char *rewrite = getenv("GOLDEN"), *flag = getenv("GOLDEN_REWRITE");

	return (rewrite && strcmp(rewrite, "rewrite") == 0) || (flag && *flag);
}

/* A whole file as a malloc'ed string; NULL where there is none. */
static char *golden_read(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	if (!f)
		return NULL;
	if (getdelim(&text, &size, '\0', f) < 0) {
		free(text);
		text = strdup("");
	}
	fclose(f);
	return text;
}

static void golden_show_difference(const char *want, const char *got)
{
	unsigned int line = 1;

	while (*want && *want == *got) {
		line += *want == '\n';
		want++;
		got++;
	}
	diag("first difference in line %u: want \"%.*s\", got \"%.*s\"", line,
	     (int)strcspn(want, "\n"), want, (int)strcspn(got, "\n"), got);
}

static void golden_check(const char *name, const char *got)
{
	char path[256], *want;
	bool same;

	snprintf(path, sizeof(path), "tests/golden/%s", name);
	if (golden_rewrites()) {
		FILE *f = fopen(path, "we");

		ok(f && fputs(got, f) >= 0 && fclose(f) == 0, "%s rewritten", name);
		return;
	}
	want = golden_read(path);
	same = want && strcmp(want, got) == 0;
	ok(same, "output is as in %s", path);
	if (!want)
		diag("%s is not there: GOLDEN=rewrite writes it", path);
	else if (!same)
		golden_show_difference(want, got);
	free(want);
}

#endif
