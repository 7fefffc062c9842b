// SPDX-License-Identifier: GPL-2.0-only
/*
 * blockdev.bpf.c: the host's block devices: what each got, how long it lay in the queue and how
 * long the device took, for all of the host. A host table, no layer of the ledger: whose requests
 * these are is not asked here. A request carries its own times, so there is no map of starts;
 * devices that take bios and make no requests of them (dm, md, zram) need one for their bios alone.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "compat.bpf.h"
#include "raise.bpf.h"
#include "wire.h"

char LICENSE[] SEC("license") = "GPL";

const volatile struct wire_cfg cfg SEC(".rodata.cfg");

#define SECTOR_SHIFT 9
#define MAX_BIOS     8192 /* in flight, on all bio-based devices */
#define MAX_PARTIALS 1024 /* requests of which a part has ended */

#define EEXIST 17

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_DEV_ROWS);
	__type(key, struct wire_dev_key);
	__type(value, struct wire_dev_row);
} dev_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WIRE_DEV_ROWS);
	__type(key, __u32);
	__type(value, struct wire_dev);
} dev_pool SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wire_dev_info);
} dev_info SEC(".maps");

/* A bio on its way through a bio-based device: at its end it no longer says where it was. */
struct bio_start {
	__u64 start_ns, sector;
	__u32 bytes;
	__u32 pad;
	struct wire_dev_key key;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_BIOS);
	__type(key, __u64);
	__type(value, struct bio_start);
} dev_bios SEC(".maps");

/* Bytes of a request that have ended before the rest of it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PARTIALS);
	__type(key, __u64);
	__type(value, __u32);
} dev_partials SEC(".maps");

static __always_inline struct wire_dev_info *info_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&dev_info, &zero);
}

/* ---- rows -------------------------------------------------------------- */

/* Two CPUs may race for a new key: the loser's row stays unused. */
static __noinline struct wire_dev_row *row_make(const struct wire_dev_key *key)
{
	struct wire_dev_info *info = info_get();
	struct wire_dev_row row = {};

	if (!key || !info)
		return NULL;
	if (info->used < cfg.dev_rows) {
		row.index = __sync_fetch_and_add(&info->used, 1);
		if (row.index < cfg.dev_rows)
			bpf_map_update_elem(&dev_rows, key, &row, BPF_NOEXIST);
	}
	return bpf_map_lookup_elem(&dev_rows, key);
}

static __always_inline struct wire_dev_row *row_get(const struct wire_dev_key *key)
{
	struct wire_dev_row *row = bpf_map_lookup_elem(&dev_rows, key);
	struct wire_dev_info *info;

	if (row)
		return row;
	row = row_make(key);
	if (row)
		return row;
	info = info_get();
	if (info)
		__sync_fetch_and_add(&info->lost_rows, 1);
	return NULL;
}

static __always_inline struct wire_dev *dev_get(const struct wire_dev_row *row)
{
	__u32 i = row->index + cfg.dev_rows * (bpf_get_smp_processor_id() % (cfg.shards ?: 1));

	return bpf_map_lookup_elem(&dev_pool, &i);
}

static __always_inline void count_in(__u32 *buckets, __u64 v)
{
	__u32 b = hist_bucket(v);

	if (b < HIST_BUCKETS)
		__sync_fetch_and_add(&buckets[b], 1);
}

/*
 * 1 where this one follows on a recent one. They end in any order: it may as well be that a recent
 * one follows on this one, if that was not begun before this one.
 */
static __always_inline int is_sequential(struct wire_dev_row *row,
					 const struct wire_dev_recent *now)
{
	int i, found = 0;

#pragma unroll
	for (i = 0; i < WIRE_DEV_RECENT; i++) {
		const struct wire_dev_recent *r = &row->recent[i];

		if (r->end == now->begin && r->end)
			found = 1;
		if (r->begin == now->end && r->start_ns >= now->start_ns)
			found = 1;
	}
	/* a race with another CPU forgets one of the two */
	row->recent[row->next++ % WIRE_DEV_RECENT] = *now;
	return found;
}

/* ---- an end ------------------------------------------------------------ */

struct ended {
	struct wire_dev_key key;
	struct wire_dev_recent where; /* empty where nothing was moved */
	__u64 bytes;                  /* of the whole request */
	__u64 last_bytes;             /* of its last part: those before were added then */
	__u64 queue_ns, device_ns;
	__u8 has_queue, has_device, failed;
};

static __always_inline void account(const struct ended *e)
{
	struct wire_dev_row *row = row_get(&e->key);
	struct wire_dev *b = row ? dev_get(row) : NULL;

	if (!b)
		return;
	__sync_fetch_and_add(&b->count, 1);
	if (e->failed)
		__sync_fetch_and_add(&b->errors, 1);
	if (e->bytes) {
		__sync_fetch_and_add(&b->bytes, e->last_bytes);
		__sync_fetch_and_add(&b->size_sum, e->bytes);
		raise_max(&b->size_max, e->bytes);
		count_in(b->size, e->bytes);
		if (is_sequential(row, &e->where))
			__sync_fetch_and_add(&b->sequential, 1);
	}
	if (e->has_queue) {
		__sync_fetch_and_add(&b->queue_sum_ns, e->queue_ns);
		raise_max(&b->queue_max_ns, e->queue_ns);
		count_in(b->queue, e->queue_ns);
	}
	if (e->has_device) {
		__sync_fetch_and_add(&b->device_sum_ns, e->device_ns);
		raise_max(&b->device_max_ns, e->device_ns);
		count_in(b->device, e->device_ns);
	}
}

/* A time from begin to end; 0 stamps were not taken. 1 where it is known. */
static __always_inline __u8 time_between(__u64 begin, __u64 end, __u64 *ret_ns)
{
	struct wire_dev_info *info;

	if (!begin || !end)
		return 0;
	if (end >= begin) {
		*ret_ns = end - begin;
		return 1;
	}
	/* the kernel may take a stamp from a clock that it has read a little earlier */
	info = info_get();
	if (info)
		__sync_fetch_and_add(&info->negative, 1);
	return 0;
}

static __always_inline __u8 table_op(__u32 op)
{
	switch (op) {
	case REQ_OP_READ:
		return WIRE_DEV_READ;
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_APPEND:
		return WIRE_DEV_WRITE;
	case REQ_OP_FLUSH:
		return WIRE_DEV_FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return WIRE_DEV_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		return WIRE_DEV_ZEROES;
	default:
		return WIRE_DEV_OTHER;
	}
}

static __always_inline __u32 disk_dev(const struct gendisk *disk)
{
	return (__u32)disk->major << 20 | (__u32)disk->first_minor;
}

/* ---- requests ---------------------------------------------------------- */

/* A part of a request has ended. Rare: a device that answers short, an error in the middle. */
static __noinline int keep_partial(struct wire_dev_key *key, __u64 rq, __u32 nr_bytes)
{
	struct wire_dev_info *info = info_get();
	__u32 *so_far = bpf_map_lookup_elem(&dev_partials, &rq);
	struct wire_dev_row *row = key ? row_get(key) : NULL;
	struct wire_dev *b = row ? dev_get(row) : NULL;

	if (b) {
		__sync_fetch_and_add(&b->partial, 1);
		__sync_fetch_and_add(&b->bytes, nr_bytes);
	}
	if (!info)
		return 0;
	if (so_far) {
		*so_far += nr_bytes; /* one request ends on one CPU at a time */
		return 0;
	}
	if (bpf_map_update_elem(&dev_partials, &rq, &nr_bytes, BPF_NOEXIST))
		__sync_fetch_and_add(&info->lost_partial, 1);
	else
		__sync_fetch_and_add(&info->open_partials, 1);
	return 0;
}

/* What has ended of a request before its last part. */
static __always_inline __u32 take_partial(__u64 rq)
{
	struct wire_dev_info *info = info_get();
	__u32 *so_far, bytes;

	if (!info || !info->open_partials)
		return 0;
	so_far = bpf_map_lookup_elem(&dev_partials, &rq);
	if (!so_far)
		return 0;
	bytes = *so_far;
	if (!bpf_map_delete_elem(&dev_partials, &rq))
		__sync_fetch_and_add(&info->open_partials, -1);
	return bytes;
}

/*
 * Writes with a flush before or after them end twice: first their data, then, without any bytes
 * left, the whole. The data were counted. One without data was never given to the device: it
 * waited for a flush.
 */
static __always_inline int is_second_end(const struct request *rq, struct ended *e)
{
	if (e->key.op != WIRE_DEV_WRITE || e->bytes)
		return 0;
	if (rq->bio && rq->bio->bi_io_vec)
		return 1;
	e->key.op = WIRE_DEV_FLUSH_WAIT;
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_request_end, struct request *rq, blk_status_t error, unsigned int nr_bytes)
{
	__u64 start = compat_request_start(rq), issued = rq->io_start_time_ns, now, id = (__u64)rq;
	struct ended e = {};

	e.key.dev = disk_dev(rq->q->disk);
	e.key.op = table_op(rq->cmd_flags & REQ_OP_MASK);
	e.bytes = e.last_bytes = rq->__data_len;
	if (nr_bytes < e.bytes)
		return keep_partial(&e.key, id, nr_bytes);
	if (is_second_end(rq, &e))
		return 0;
	now = bpf_ktime_get_ns();
	e.bytes += take_partial(id);
	e.failed = error != 0;
	e.where.begin = rq->__sector - ((e.bytes - e.last_bytes) >> SECTOR_SHIFT);
	e.where.end = e.where.begin + (e.bytes >> SECTOR_SHIFT);
	e.where.start_ns = start;
	if (e.key.op == WIRE_DEV_FLUSH_WAIT) {
		e.has_queue = time_between(start, now, &e.queue_ns);
	} else {
		e.has_queue = time_between(start, issued, &e.queue_ns);
		e.has_device = time_between(issued, now, &e.device_ns);
	}
	account(&e);
	return 0;
}

/* ---- bios of devices without requests ---------------------------------- */

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_begin, struct bio *bio)
{
	struct gendisk *disk = bio->bi_bdev->bd_disk;
	struct wire_dev_info *info;
	struct bio_start s = {};
	__u64 id = (__u64)bio;
	long ret;

	if (!disk->fops->submit_bio)
		return 0;
	s.key.dev = disk_dev(disk);
	s.key.op = table_op(bio->bi_opf & REQ_OP_MASK);
	s.key.by_bio = 1;
	s.bytes = bio->bi_iter.bi_size;
	s.sector = bio->bi_iter.bi_sector;
	if (s.key.op == WIRE_DEV_WRITE && !s.bytes)
		s.key.op = WIRE_DEV_FLUSH;
	s.start_ns = bpf_ktime_get_ns();
	ret = bpf_map_update_elem(&dev_bios, &id, &s, BPF_NOEXIST);
	if (!ret)
		return 0;
	info = info_get();
	if (info && ret != -EEXIST)
		__sync_fetch_and_add(&info->lost_bios, 1);
	/* one that was there before has ended unseen: handed on to another device, for one */
	if (info && ret == -EEXIST) {
		__sync_fetch_and_add(&info->unpaired, 1);
		bpf_map_update_elem(&dev_bios, &id, &s, BPF_ANY);
	}
	return 0;
}

/* Parts that a driver has split off end here, too; they never began, and are not counted. */
SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_end, struct request_queue *q, struct bio *bio)
{
	__u64 id = (__u64)bio;
	struct bio_start *s = bpf_map_lookup_elem(&dev_bios, &id);
	struct ended e = {};

	if (!s)
		return 0;
	e.key = s->key;
	e.bytes = e.last_bytes = s->bytes;
	e.failed = bio->bi_status != 0;
	e.where.begin = s->sector;
	e.where.end = s->sector + (s->bytes >> SECTOR_SHIFT);
	e.where.start_ns = s->start_ns;
	e.has_device = time_between(s->start_ns, bpf_ktime_get_ns(), &e.device_ns);
	bpf_map_delete_elem(&dev_bios, &id);
	account(&e);
	return 0;
}
