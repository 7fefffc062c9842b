// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_graph.c: a GlusterFS process with damaged memory. The first two bytes choose a layout row
 * and brick or client; the rest are patches of its image: where (2 bytes, in words), how, and what.
 * A patch may also be a pointer into the image, which makes loops and cross links likely.
 */
#include "gluster_stuck.h"
#include "unit/gluster_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct image im;

/* 3 bytes of place and kind, then 2 bytes of an address in the image or 8 of anything. */
static size_t patch(const uint8_t *data, size_t size)
{
	size_t words = im.used / 8, at, need = size && data[0] & 1 ? 11 : 5;
	uint64_t value = 0, base = (uint64_t)(uintptr_t)im.mem;

	if (size < need)
		return size;
	at = ((size_t)data[1] | (size_t)data[2] << 8) % words;
	memcpy(&value, data + 3, need - 3);
	if (need == 5)
		value = base + value % words * 8;
	image_put64(base + at * 8, value);
	return need;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gluster_stat stats[GLUSTER_MAX_FOP];
	const struct gluster_layout *rows;
	struct gluster_request *list;
	struct procmem_segment seg;
	struct gluster_proc *gp;
	unsigned int n_rows;
	bool truncated;
	char err[256];
	size_t n;

	if (size < 2)
		return 0;
	rows = gluster_layouts(&n_rows);
	image_make(&im, &rows[data[0] % n_rows], data[1] & 1);
	for (size_t at = 2; at < size;)
		at += patch(data + at, size - at);
	if (image_open(&im, &seg, &gp, err, sizeof(err)))
		return 0;
	for (size_t g = 0; g < gp->n_graphs; g++)
		for (size_t i = 0; i < gp->graphs[g].n; i++)
			gluster_stats_read(gp, &gp->graphs[g].xl[i], stats);
	if (!gluster_stuck_read(gp, 4, true, &list, &n, &truncated))
		free(list);
	gluster_proc_refresh(gp, err, sizeof(err));
	gluster_proc_close(gp);
	return 0;
}
