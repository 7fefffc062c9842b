// SPDX-License-Identifier: Apache-2.0
/*
 * test_attach_blockdev.c: the table of the host's block devices in the live source: how large it
 * is, and whose its losses are. The programs are loaded, and none is attached.
 */
#include "source_bpf.h"

#include <stdlib.h>
#include <unistd.h>

#include "source_priv.h"
#include "tap.h"

static void test_rows(void)
{
	is_int(source_device_rows(0), WIRE_DEV_ROWS, "rows for a few devices");
	is_int(source_device_rows(100), 400, "for many");
	is_int(source_device_rows(100000), 2048, "and at most");
}

/* What source_feed() makes of those losses with n_targets bricks. */
static struct snapshot *feed(struct source *src, unsigned int n_targets)
{
	static const struct model_node node = { .id = "server", .type = "protocol/server" };
	const struct model_target t = {
		.kind = "brick", .root = WIRE_ROOT_BRICK, .nodes = &node, .n_nodes = 1
	};
	struct snapshot *snap = NULL;
	struct model *m;
	__u16 layer;

	if (model_new(NULL, 0, &m))
		return NULL;
	for (unsigned int i = 0; i < n_targets; i++)
		if (model_set_target(m, i, &t, &layer))
			return NULL;
	model_start_window(m, 1, 0);
	if (!source_feed(src, m, n_targets))
		model_tick(m, 1000000001, &(struct model_view){ 0 }, &snap);
	model_free(m);
	return snap;
}

/* Sixty disks of others fill the table of devices: a brick has lost nothing by that. */
static void test_losses(void)
{
	static const struct wire_dev_info info = { .lost_rows = 1000, .unpaired = 3 };
	struct source_config config = { .n_targets = 2, .layers_off = ~0ULL };
	__u64 nobodys[WIRE_LOSSES];
	char err[256] = "";
	struct source *src;

	is_int(source_open(&config, &src, err, sizeof(err)), 0, "a source%s", err);
	src->dev_info = &info;
	for (unsigned int n = 1; n <= 2; n++) {
		struct snapshot *snap = feed(src, n);

		if (!snap)
			exit(1);
		is_int((long long)snap->targets->lost.total, 0, "of %u, none of a process's", n);
		is_int((long long)snap->lost_unassigned.total, 0, "nor of some process's");
		is_int((long long)snap->lost_devices.map_full, 1000, "but the devices'");
		is_int((long long)snap->lost_devices.total, 1003, "in all");
		snapshot_free(snap);
	}
	src->host_only = true;
	source_read_losses(src, WIRE_MAX_TARGETS, nobodys);
	is_int((long long)nobodys[WIRE_LOST_MAP_FULL], 1000, "of a device it is its own");
	src->dev_info = NULL;
	source_close(src);
}

int main(void)
{
	test_rows();
	if (geteuid())
		skip("losses", "loading programs needs root");
	else
		test_losses();
	return tap_done();
}
