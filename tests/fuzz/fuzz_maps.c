// SPDX-License-Identifier: Apache-2.0
/* fuzz_maps.c: /proc/PID/maps and mountinfo with any content: parsed or refused, and searchable. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procmem.h"
#include "target_mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mount_list mounts = { 0 };
	struct procmaps maps = { 0 };

	if (!procmaps_parse((const char *)data, size, &maps)) {
		for (size_t i = 0; i < maps.n; i++)
			if (procmaps_find(&maps, maps.maps[i].start) != &maps.maps[i] ||
			    procmaps_find(&maps, maps.maps[i].end - 1) != &maps.maps[i])
				abort();
		procmaps_free(&maps);
	}
	if (!mounts_parse((const char *)data, size, &mounts)) {
		for (size_t i = 0; i < mounts.n; i++)
			mounts_find(&mounts, mounts.m[i].path);
		mounts_free(&mounts);
	}
	return 0;
}
