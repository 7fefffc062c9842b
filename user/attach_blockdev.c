/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_blockdev.c: the host's block devices on the live source: attach bpf/blockdev.bpf.c, and
 * hand its rows, summed over the shards, to the model. Knows devices by number only.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach.h"
#include "layers.h"
#include "model_blockdev.h"
#include "source_priv.h"

#define OPS_OF_MOST 4    /* read, write, flush and one more: that all devices see all is rare */
#define MAX_ROWS    2048 /* a row and shard are 7 KB of the kernel's memory */

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

__u32 source_device_rows(size_t n_devices)
{
	size_t rows = OPS_OF_MOST * n_devices;

	return rows < WIRE_DEV_ROWS ? WIRE_DEV_ROWS : rows > MAX_ROWS ? MAX_ROWS : (__u32)rows;
}

int source_attach_devices(struct source *src, unsigned int number, char *err, size_t err_size)
{
	const struct layer *layer = layer_get(number);
	int ret = attach_load(src->attach, layer->object, NULL, err, err_size);

	if (ret)
		return ret;
	src->dev_pool_bytes =
		whole_pages(sizeof(*src->dev_pool) * src->cfg.dev_rows * src->cfg.shards);
	src->dev_info_bytes = whole_pages(sizeof(*src->dev_info));
	src->dev_pool = source_map_memory(src, "dev_pool", src->dev_pool_bytes);
	src->dev_info = source_map_memory(src, "dev_info", src->dev_info_bytes);
	if (!src->dev_pool || !src->dev_info) {
		snprintf(err, err_size, "cannot map bricktop's BPF maps: %s", strerror(ENOMEM));
		ret = -ENOMEM;
	}
	ret = ret ?: attach_auto(src->attach, layer->object, err, err_size);
	if (ret)
		source_unmap_devices(src);
	return ret;
}

void source_unmap_devices(struct source *src)
{
	if (src->dev_pool)
		munmap((void *)src->dev_pool, src->dev_pool_bytes);
	if (src->dev_info)
		munmap((void *)src->dev_info, src->dev_info_bytes);
	src->dev_pool = NULL;
	src->dev_info = NULL;
}

static __u64 larger(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Add one row over all shards. The words grow while they are read; each is read once. */
static void add_row(const struct source *src, __u32 index, struct wire_dev *ret_sum)
{
	__u32 shard, b;

	for (shard = 0; shard < src->cfg.shards; shard++) {
		const volatile struct wire_dev *d =
			&src->dev_pool[index + src->cfg.dev_rows * shard];

		ret_sum->count += d->count;
		ret_sum->bytes += d->bytes;
		ret_sum->errors += d->errors;
		ret_sum->sequential += d->sequential;
		ret_sum->partial += d->partial;
		ret_sum->queue_sum_ns += d->queue_sum_ns;
		ret_sum->device_sum_ns += d->device_sum_ns;
		ret_sum->size_sum += d->size_sum;
		ret_sum->queue_max_ns = larger(ret_sum->queue_max_ns, d->queue_max_ns);
		ret_sum->device_max_ns = larger(ret_sum->device_max_ns, d->device_max_ns);
		ret_sum->size_max = larger(ret_sum->size_max, d->size_max);
		for (b = 0; d->count && b < HIST_BUCKETS; b++) {
			ret_sum->queue[b] += d->queue[b];
			ret_sum->device[b] += d->device[b];
			ret_sum->size[b] += d->size[b];
		}
	}
}

int source_feed_devices(struct source *src, struct model *m)
{
	int fd = attach_map_fd(src->attach, "dev_rows"), ret = 0;
	struct wire_dev_key key, next, *at = NULL;
	struct wire_dev_row row;
	struct wire_dev *sum;
	__u32 n = 0;

	if (!src->dev_pool)
		return -ENOENT;
	sum = malloc(sizeof(*sum));
	if (!sum)
		return -ENOMEM;
	/* rows are never deleted: the walk comes to an end */
	while (!ret && n++ < src->cfg.dev_rows && !bpf_map_get_next_key(fd, at, &next)) {
		key = next;
		at = &key;
		if (bpf_map_lookup_elem(fd, &key, &row) || row.index >= src->cfg.dev_rows)
			continue;
		memset(sum, 0, sizeof(*sum));
		add_row(src, row.index, sum);
		ret = model_feed_dev_row(m, &key, sum);
	}
	free(sum);
	return ret;
}

void source_add_device_losses(const struct source *src, __u64 losses[WIRE_LOSSES])
{
	const volatile struct wire_dev_info *info = src->dev_info;

	if (!info)
		return;
	losses[WIRE_LOST_MAP_FULL] += info->lost_rows + info->lost_bios + info->lost_partial;
	losses[WIRE_LOST_UNPAIRED] += info->unpaired;
	losses[WIRE_LOST_ABSURD] += info->negative;
}

bool source_sees_devices(const struct source *src)
{
	return src->dev_pool != NULL;
}
