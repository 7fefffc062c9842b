// SPDX-License-Identifier: Apache-2.0
/* fuzz_threads.c: /proc/PID/task/TID/{stat,schedstat} with any content: refused, or harmless text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "threads.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model_thread t = { 0 };
	char *text = strndup((const char *)data, size);

	threads_parse_schedstat(text, &t);
	if (!threads_parse_stat(text, &t)) {
		check_text(t.comm);
		check_text(t.pool);
	}
	free(text);
	return 0;
}
