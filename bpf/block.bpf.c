// SPDX-License-Identifier: GPL-2.0-only
/*
 * block.bpf.c: the layer "block" as the waiting thread felt it: when a request completes, its
 * stamps are noted for whoever sleeps for it. The kernel keeps the stamps in the request itself, so
 * there is nothing to be done when it starts. Whose it is can be told from its first bio; that of
 * somebody who is not looked at is found nowhere.
 */
#include "wait.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Kernel stacks are this large and aligned to it: x86-64 without KASAN, arm64 with 4 KiB pages. */
#define STACK_BYTES 16384

/* Low bits of page->mapping tell what it is; 0: the mapping of a file. */
#define MAPPING_FLAGS 3

static __always_inline struct io_notes *notes_of(__u64 key)
{
	return key ? bpf_map_lookup_elem(&io_waited, &key) : NULL;
}

/* The mapping that a bio's first page belongs to; 0: it is of no file. */
static __always_inline __u64 bio_mapping(struct bio *bio)
{
	struct page *page = BPF_CORE_READ(bio, bi_io_vec, bv_page);
	__u64 head, mapping;

	if (!page)
		return 0;
	head = BPF_CORE_READ(page, compound_head);
	if (head & 1)
		page = (struct page *)(head - 1);
	mapping = (__u64)BPF_CORE_READ(page, mapping);
	return mapping & MAPPING_FLAGS ? 0 : mapping;
}

/* Who waits in direct I/O, if that is what the bio is of: else any number, which is nobody's key.
 */
static __always_inline __u64 dio_waiter(void *private)
{
	struct iomap_dio *dio = private;

	if (!BPF_CORE_READ(dio, wait_for_completion))
		return 0;
	return (__u64)BPF_CORE_READ(dio, submit.waiter);
}

static __always_inline struct io_notes *find_waiter(struct bio *bio)
{
	void *private = bio->bi_private;
	struct io_notes *notes = NULL;

	if (bio->bi_vcnt)
		notes = notes_of(bio_mapping(bio));
	if (!notes)
		notes = notes_of(dio_waiter(private));
	if (!notes)
		notes = notes_of((__u64) private);
	if (!notes)
		notes = notes_of((__u64) private & ~(__u64)(STACK_BYTES - 1));
	return notes;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *rq, int error, unsigned int nr_bytes)
{
	struct bio *bio = rq->bio;
	struct io_notes *notes;

	/* only the last part of what completes in parts */
	if (!bio || nr_bytes < rq->__data_len)
		return 0;
	notes = find_waiter(bio);
	if (notes)
		io_note_request(notes, rq);
	return 0;
}
