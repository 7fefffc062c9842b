/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_opts.c: any command line: NUL-separated words after the program's name. Whatever they are,
 * the parser neither exits nor reads beyond them, and its answer keeps its contract.
 */
#include "opts.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(int ret, const struct opts *o, const char *text, int code)
{
	if (ret == 0) {
		if (text || code != OPTS_EXIT_OK || o->command == OPTS_NONE)
			abort();
		if (o->command == OPTS_ATTACH && (!o->target == !o->all || o->duration_ns == 0))
			abort();
		if (!o->dump_path != !o->dump_requests)
			abort();
	} else if (ret == 1) {
		if (!text || (code != OPTS_EXIT_OK && code != OPTS_EXIT_USAGE))
			abort();
		if (code == OPTS_EXIT_USAGE && (!*text || strchr(text, '\n')))
			abort();
	} else {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words = malloc(size + 1), *argv[WORDS_MAX + 2] = { (char[]){ "bricktop" } };
	struct opts opts = { 0 };
	char *text = NULL;
	int argc = 1, code = -1, ret;

	if (!words)
		return 0;
	memcpy(words, data, size);
	words[size] = '\0';
	for (size_t i = 0; i < size && argc <= WORDS_MAX; i += strlen(words + i) + 1)
		argv[argc++] = words + i;
	ret = opts_parse(argc, argv, &opts, &text, &code);
	check_answer(ret, &opts, text, code);
	free(text);
	free(words);
	return 0;
}
