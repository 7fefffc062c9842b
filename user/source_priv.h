/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_priv.h: the live source's inside, shared by source_bpf.c and attach_layers.c alone.
 */
#ifndef BRICKTOP_SOURCE_PRIV_H
#define BRICKTOP_SOURCE_PRIV_H

#include "meter_stats.h"
#include "source_bpf.h"

struct attach;
struct ring_buffer;

#define MAX_SOURCE_LAYOUTS 32

/* A slot in use, and those that are the same to the model: listed from the first one. */
struct source_slot {
	struct wire_slot_key key;
	struct wire_slot_key name; /* key, with layer numbers as the model knows them */
	__u32 index;
	__u32 next; /* in known: the next of the same name; NO_SLOT */
	bool is_head;
	__u64 refused; /* what was counted there and had no room in the model */
};

/* Of a slot, by its number. */
struct source_seen {
	__u64 count;   /* how often it was entered, and ... */
	__u32 entered; /* ... the same modulo 2^32, both as last read */
	__u32 still;   /* looks in which its sum was the same */
	__u64 sum_ns;  /* as last looked at */
};

#define NO_SLOT 0xffffffffU

/* What the kernel's statistics have told so far (source_meter.c). */
struct source_sample {
	int error;                     /* why they cannot be had; 0 */
	uint64_t begin_ns, begin_hits; /* of the sample under way, or the last one */
	uint64_t last_ns;              /* up to when it has been added */
	struct meter_prog last_uprobes, last_tracepoints;
	uint64_t wall_ns; /* all samples together: time, hits, run time */
	struct meter_prog uprobes, tracepoints;
	uint64_t told_ns, told_hits, told_wall_ns; /* at the last source_meter() */
	uint64_t counted_hits;          /* the same of all hits, those without a price included */
	bool idle;                      /* the walk is off, ... */
	uint64_t idle_from;             /* ... since there were so many hits */
	uint64_t idle_hits, told_idle;  /* hits of earlier such times; at the last source_meter() */
	struct meter_prog idle_uprobes; /* of "uprobes" those in such times, which are not in it */
	struct meter_prog told_tracepoints;
	double hit_rate, run_rate; /* of tracepoints, a ns: the newest sample's */
};

struct source {
	struct attach *attach;
	struct wire_cfg cfg;
	enum uprobe_kind kind; /* of links to come */
	bool multi_works;      /* a uprobe-multi link was made here */
	uint64_t layers_off;
	uint64_t shed; /* set of attached layers that source_switch_layers() is about */
	bool static_off, multi_blind;
	int stats_fd; /* open while the kernel counts run times; -1 */
	bool stats_parted;
	struct meter_stats stats; /* stats_parted: who switches them on */
	struct ring_buffer *ring;
	int (*on_record)(void *arg, const void *record, size_t len_bytes);
	void *on_record_arg;

	const struct wire_pool_slot *pool; /* mapped, read-only */
	const __u64 *losses, *checks;
	struct wire_slow *slow; /* mapped, written; NULL: nothing slow is wanted */
	size_t pool_bytes, losses_bytes, checks_bytes, slow_bytes;

	/* the host's block devices; NULL: not looked at */
	const struct wire_dev *dev_pool;
	const struct wire_dev_info *dev_info;
	size_t dev_pool_bytes, dev_info_bytes;
	bool host_only, devices_off;

	struct wire_layout layouts[MAX_SOURCE_LAYOUTS];
	__u32 n_layouts;
	__u32 generation; /* of "nodes" */

	/* numbers that xlators had before they were told of: [layer - WIRE_LAYER_ADOPTED] */
	__u16 real_layer[WIRE_MAX_ADOPTED]; /* 0: not known yet */
	bool is_grouped;                    /* names and lists in known are up to date */
	bool is_last;                       /* the next feed is the last one */
	bool sees_aio;                      /* the layer aio is attached */

	struct source_slot *known; /* slots in use, as far as read */
	struct source_seen *seen;  /* [cfg.slots] */
	size_t n_known;
	__u32 used_seen; /* slots_used when they were read */
	__u32 rereads;   /* ... and how often since */

	struct source_sample sample;
	struct wire_traced_hits *cpu_hits; /* [n_cpus]: a row of "traced_hits" */
	int n_cpus;                        /* possible ones */
	struct wire_duty duty;             /* as the programs were told */
	uint64_t forgotten_hits;           /* of uprobes, in processes that were forgotten */
};

/* All hits of uprobes there ever were: those of processes that were forgotten, too. */
uint64_t source_uprobe_hits(struct source *src);

/* From now on the walk is off, and uprobe hits have another price; or it is on again. */
void source_meter_idle(struct source *src, bool idle);

/* What a process's hits have cost on all CPUs. 0, or -ENOENT: it has no row of "traced". */
int source_traced_hits(struct source *src, pid_t tgid, struct wire_traced_hits *ret_sum);

/* Map an array map, read-only; NULL where it is not loaded, or cannot be had. */
void *source_map_memory(struct source *src, const char *name, size_t bytes);

/* ---- attach_blockdev.c: the host's block devices ----------------------- */
/* Rows for so many of them; a partition's requests are its disk's. */
__u32 source_device_rows(size_t n_devices);
/* Attach the row of layers.def; where that fails, nothing of it stays. 0, or -errno and why. */
int source_attach_devices(struct source *src, unsigned int number, char *err, size_t err_size);
void source_unmap_devices(struct source *src);
/* Add what was lost among them: it is anybody's. */
void source_add_device_losses(const struct source *src, __u64 losses[WIRE_LOSSES]);

/* ring_buffer__new()'s callback. */
int source_on_record(void *arg, void *record, size_t len_bytes);

#endif
