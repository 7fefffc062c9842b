/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dump.c: any bytes as a record of the ring: refused, or one line that is JSON and UTF-8.
 */
#include "sink_dump.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *target_name(const void *arg, unsigned int target)
{
	(void)target;
	return arg;
}

static const char *op_name(const void *arg, unsigned int op)
{
	(void)arg;
	return op & 1 ? "write" : NULL;
}

/* The record's own first bytes serve as names: they are as hostile as it gets. */
static const char *layer_name(const void *arg, unsigned int target, unsigned int layer)
{
	(void)target;
	return layer & 1 ? arg : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[64] = "", *text = NULL;
	struct sink_dump_names names = { .target = target_name,
					 .layer = layer_name,
					 .sub = layer_name,
					 .op = op_name,
					 .arg = name };
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int err;

	if (!out)
		return 0;
	memcpy(name, data, size < sizeof(name) - 1 ? size : sizeof(name) - 1);
	err = sink_dump_write(out, data, size, &names);
	fclose(out);
	if (err && (err != -EBADMSG || len != 0))
		abort();
	if (!err) {
		json_t *doc = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);

		if (!doc || strchr(text, '\n') != text + len - 1)
			abort();
		json_decref(doc);
	}
	free(text);
	return 0;
}
