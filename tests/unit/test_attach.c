// SPDX-License-Identifier: Apache-2.0
/*
 * test_attach.c: every BPF object loads on this kernel in every variant, objects share maps, maps
 * have the sizes asked for, and what cannot be is refused with a reason. Needs root; runs in the
 * project's root folder, whose bpf/ says which objects there are.
 */
#include "attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

static const char *const multi[] = { "multi", "btf", "12args", "8args", "7args",
				     "cqe",   "req", "sqe",    "tp",    NULL };
static const char *const perf[] = { "perf", "btf", "12args", "8args", "7args",
				    "cqe",  "req", "sqe",    "tp",    NULL };

static struct attach *open_new(unsigned int slots, unsigned int shards)
{
	struct attach_config config = { .cfg = { .slots = slots, .shards = shards } };
	struct attach *a = NULL;

	if (attach_new(&config, &a))
		exit(1);
	return a;
}

static unsigned int map_entries(const struct attach *a, const char *name)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(attach_map_fd(a, name), &info, &len) ? 0 : info.max_entries;
}

static unsigned int map_id(int fd)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.id;
}

static bool prog_has_map(int fd, unsigned int id)
{
	__u32 ids[64] = { 0 }, len, i;
	struct bpf_prog_info info = { .nr_map_ids = 64, .map_ids = (__u64)(uintptr_t)ids };

	len = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		return false;
	for (i = 0; i < info.nr_map_ids && i < 64; i++) {
		if (ids[i] == id)
			return true;
	}
	return false;
}

/* bpf/NAME.bpf.c in the root folder: the table that the build made must have them all. */
static void test_all_load(void)
{
	const char *const *const variants[] = { multi, perf };
	char name[64], err[256];
	struct attach *a;
	size_t i, v;
	glob_t found;

	if (glob("bpf/*.bpf.c", 0, NULL, &found))
		exit(1);
	ok(found.gl_pathc >= 3, "%zu objects", found.gl_pathc);
	for (i = 0; i < found.gl_pathc; i++) {
		snprintf(name, sizeof(name), "%s", found.gl_pathv[i] + strlen("bpf/"));
		name[strcspn(name, ".")] = '\0';
		for (v = 0; v < 2; v++) {
			a = open_new(16, 1);
			err[0] = '\0';
			is_int(attach_load(a, name, variants[v], err, sizeof(err)), 0,
			       "%s loads, %s", name, variants[v][0]);
			if (err[0])
				diag("%s", err);
			attach_free(a);
		}
	}
	globfree(&found);
}

static void test_variants(void)
{
	struct attach *a = open_new(16, 1);
	const char *name;
	char err[256];
	size_t n = 0;

	attach_load(a, "gluster", multi, err, sizeof(err));
	ok(attach_prog_fd(a, "on_callback__multi") >= 0, "the variant asked for");
	is_int(attach_prog_fd(a, "on_callback__perf"), -ENOENT, "and no other");
	is_int(attach_load(a, "gluster", perf, err, sizeof(err)), 0, "the other one beside it");
	ok(attach_prog_fd(a, "on_callback__perf") >= 0, "is there then");
	while (attach_prog_nth(a, n, &name) >= 0)
		ok(name[0], "program %zu is %s", ++n, name);
	ok(n >= 4, "programs of both: %zu", n);
	attach_free(a);
}

static void test_maps(void)
{
	struct attach *a = open_new(5, 3);
	unsigned int id;
	char err[256];

	is_int(attach_map_fd(a, "pool"), -ENOENT, "no map before the first object");
	attach_load(a, "gluster", perf, err, sizeof(err));
	id = map_id(attach_map_fd(a, "pool"));
	is_int(attach_load(a, "syscall", NULL, err, sizeof(err)), 0, "a second object");
	ok(id && map_id(attach_map_fd(a, "pool")) == id, "the map is still that of the first");
	ok(prog_has_map(attach_prog_fd(a, "on_callback__perf"), id), "which has it");
	ok(prog_has_map(attach_prog_fd(a, "on_flush"), id), "as has the second");
	is_int(map_entries(a, "slots"), 5, "as many slots as asked for");
	is_int(map_entries(a, "pool"), 15, "in every shard");
	is_int(map_entries(a, "ending"), 1024 + 128 * libbpf_num_possible_cpus(),
	       "an LRU map has what the CPUs take besides");
	is_int(map_entries(a, "kept"), 512, "others do not");
	is_int(map_entries(a, "entries"), 64, "nor does one that stays empty");
	attach_free(a);
}

static void test_auto(void)
{
	struct attach *a = open_new(16, 1);
	char err[256];

	is_int(attach_auto(a, "syscall", err, sizeof(err)), -ENOENT, "nothing loaded, no hooks");
	attach_load(a, "syscall", NULL, err, sizeof(err));
	is_int(attach_auto(a, "syscall", err, sizeof(err)), 0, "hooks that say where they go");
	attach_detach(a);
	attach_detach(a);
	is_int(attach_auto(a, "syscall", err, sizeof(err)), 0, "and again after they are off");
	attach_free(a);
	attach_detach(NULL);
	attach_free(NULL);
}

static void test_refused(void)
{
	struct attach *a = open_new(16, 1);
	char err[256] = "";
	int ret = 0, n;

	is_int(attach_load(a, "no-such-object", NULL, err, sizeof(err)), -ENOENT, "no such object");
	ok(strstr(err, "'no-such-object'"), "is named: %s", err);
	for (n = 0; n < 64 && !ret; n++)
		ret = attach_load(a, "calibrate", perf, err, sizeof(err));
	is_int(ret, -ENOSPC, "more objects than there is room for");
	attach_free(a);
}

int main(void)
{
	if (geteuid()) {
		skip("BPF objects", "loading them needs root");
		return tap_done();
	}
	test_all_load();
	test_variants();
	test_maps();
	test_auto();
	test_refused();
	return tap_done();
}
