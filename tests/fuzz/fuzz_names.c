// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_names.c: names from elsewhere. What text_sanitize() made stays as it is when it is made
 * again, has no control characters and fits; any word is resolved among targets of any names.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *src, size_t room)
{
	char once[512], twice[512];

	text_sanitize(once, room, src);
	if (strlen(once) >= room)
		abort();
	for (const char *s = once; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			abort();
	text_sanitize(twice, sizeof(twice), once);
	if (strcmp(once, twice))
		abort();
}

static void check_resolve(char *word, const char *name)
{
	struct target items[3] = { { .kind = TARGET_BRICK, .pid = 3 },
				   { .kind = TARGET_CLIENT, .pid = 4 },
				   { .kind = TARGET_DEVICE } };
	struct target_list list = { items, 3 };
	struct target *found = malloc(sizeof(*found));
	char err[200];

	for (int i = 0; i < 3; i++) {
		text_sanitize(items[i].volume, sizeof(items[i].volume), name);
		text_sanitize(items[i].path, sizeof(items[i].path), name);
		text_sanitize(items[i].device, sizeof(items[i].device), name);
	}
	/* Digits would ask this host for its processes: not a matter of bytes. */
	if (word[0] >= '0' && word[0] <= '9')
		word[0] = 'x';
	if (found)
		target_resolve(&list, word, found, err, sizeof(err));
	free(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[512];
	uint64_t ns;
	size_t len = size < sizeof(text) - 1 ? size : sizeof(text) - 1;

	memcpy(text, data, len);
	text[len] = '\0';
	check_text(text, 1 + (size ? data[0] : 0));
	check_text(text, sizeof(text));
	text_parse_duration(text, 1000000000, &ns);
	check_resolve(text, text + strlen(text) / 2);
	return 0;
}
