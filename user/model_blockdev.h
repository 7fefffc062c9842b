/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_blockdev.h: the host's block devices in the model: growing counters of devices and
 * operations in, the table of a window out (snapshot.devices). Pure, like all of the model; what a
 * device is called and what lies below it comes from blockdev.h by way of the session.
 */
#ifndef BRICKTOP_MODEL_BLOCKDEV_H
#define BRICKTOP_MODEL_BLOCKDEV_H

#include "model.h"

/* Reads, writes, discards: as /sys/block/X/stat has them. */
#define MODEL_DEVICE_GROUPS 3

/* What is known of a device besides its requests; cumulative figures since it exists. */
struct model_device {
	__u32 dev;                         /* major << 20 | minor, of the whole disk */
	uint64_t targets;                  /* 1 << target, of those that it lies below */
	char name[32];                     /* "loop3", "dm-0" */
	char label[256];                   /* backing file of a loop, name of a dm device; "" */
	char stack[SNAP_DEVICE_STACK][32]; /* the devices below it, top first */
	unsigned int n_stack;
	bool has_stat; /* the two that follow */
	uint64_t merges[MODEL_DEVICE_GROUPS], busy_ms;
	bool has_in_flight;
	unsigned int in_flight_reads, in_flight_writes; /* now, handed to the device */
};

/*
 * A row of the programs, as wire_slot: summed over the shards; it counts from 0. 0, -ENOMEM, or
 * -ENOSPC: more devices than the model keeps. -EINVAL: no such operation.
 */
int model_feed_dev_row(struct model *m, const struct wire_dev_key *key, const struct wire_dev *sum);

/* Replaces what was fed of the device before; statistics fed first are a baseline. As above. */
int model_feed_device(struct model *m, const struct model_device *device);

/* Devices known so far, in the order in which they were first fed; false: there is no i-th. */
bool model_device_nth(const struct model *m, size_t i, __u32 *ret_dev);

/* The table was there, be it empty. everybody: show all devices that did anything, to all. */
void model_show_devices(struct model *m, bool everybody);

#endif
