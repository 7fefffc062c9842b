/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_bpf.c: see source_bpf.h. Programs and maps are found by the names that bpf/ gives them.
 */
#include "source_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach.h"
#include "blockdev.h"
#include "layers.h"
#include "source_priv.h"

#define SLOTS_PER_TARGET 512
#define SLOTS_AT_LEAST   1024
#define POOL_MAX_BYTES   (160UL << 20) /* kernel memory of all histograms */

static const char *const multi_only[] = { "multi", NULL };
static const char *const perf_only[] = { "perf", NULL };

/* ---- opening ----------------------------------------------------------- */

static void *map_memory(struct source *src, const char *name, size_t bytes, int prot)
{
	int fd = attach_map_fd(src->attach, name);
	void *p;

	if (fd < 0)
		return NULL;
	p = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	/* a child that cannot end would keep the map */
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

void *source_map_memory(struct source *src, const char *name, size_t bytes)
{
	return map_memory(src, name, bytes, PROT_READ);
}

static int map_all(struct source *src)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

#define ROUND(n) (((n) + page - 1) / page * page)
	src->pool_bytes = ROUND(sizeof(*src->pool) * src->cfg.slots * src->cfg.shards);
	src->losses_bytes = ROUND(sizeof(__u64) * (WIRE_MAX_TARGETS + 1) * WIRE_LOSSES);
	src->checks_bytes = ROUND(sizeof(__u64) * WIRE_MAX_TARGETS * WIRE_CHECKS);
	src->slow_bytes = ROUND(sizeof(struct wire_slow) * WIRE_MAX_TARGETS);
#undef ROUND
	src->pool = source_map_memory(src, "pool", src->pool_bytes);
	src->losses = source_map_memory(src, "losses", src->losses_bytes);
	src->checks = source_map_memory(src, "checks", src->checks_bytes);
	if (src->cfg.slow)
		src->slow = map_memory(src, "slow", src->slow_bytes, PROT_READ | PROT_WRITE);
	return src->pool && src->losses && src->checks && (src->slow || !src->cfg.slow) ? 0 :
											  -ENOMEM;
}

static int load_walk(struct source *src, bool perf, char *err, size_t err_size)
{
	src->kind = UPROBE_MULTI;
	if (!perf && !attach_load(src->attach, "gluster", multi_only, err, err_size))
		return 0;
	/* no uprobe-multi before 6.6: the other variant */
	src->kind = UPROBE_PERF;
	return attach_load(src->attach, "gluster", perf_only, err, err_size);
}

static int open_ring(struct source *src, uint64_t count)
{
	__s64 left = (__s64)count;
	__u32 zero = 0;

	if (bpf_map_update_elem(attach_map_fd(src->attach, "dump_left"), &zero, &left, BPF_ANY))
		return -errno;
	src->ring =
		ring_buffer__new(attach_map_fd(src->attach, "events"), source_on_record, src, NULL);
	return src->ring ? 0 : -errno;
}

/* Fewer shards only make CPUs meet on a line more often; fewer slots lose rows. */
static void cap_pool(struct wire_cfg *cfg)
{
	const size_t max = POOL_MAX_BYTES / sizeof(struct wire_pool_slot);

	while (cfg->shards > 1 && (size_t)cfg->slots * cfg->shards > max)
		cfg->shards--;
	if (cfg->slots > max)
		cfg->slots = (__u32)max;
}

static void choose_sizes(struct source *src, const struct source_config *config)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	unsigned int slots = config->n_targets * SLOTS_PER_TARGET;

	if (slots < SLOTS_AT_LEAST)
		slots = SLOTS_AT_LEAST;
	src->cfg.slots = config->slots ?: slots;
	src->cfg.shards = cpus < 1 ? 1 : cpus > WIRE_MAX_SHARDS ? WIRE_MAX_SHARDS : (__u32)cpus;
	cap_pool(&src->cfg);
	src->cfg.dump = config->dump;
	src->cfg.slow = config->slow;
	src->cfg.split_tails = config->split_tails;
	src->layers_off = config->layers_off;
	src->static_off = config->static_off;
	src->multi_blind = config->multi_blind;
	src->host_only = config->host_only;
	src->devices_off = config->devices_off;
	src->cfg.dev_rows = source_device_rows(blockdev_count(BLOCKDEV_SYS));
	layers_fill_syscalls(src->cfg.syscalls, WIRE_SYS_NUMBERS);
}

int source_open(const struct source_config *config, struct source **ret_src, char *err,
		size_t err_size)
{
	struct attach_config ac = { .max_entries = config->map_entries,
				    .verbose = getenv("BRICKTOP_DEBUG") != NULL };
	struct source *src = calloc(1, sizeof(*src));
	int ret;

	if (!src)
		return -ENOMEM;
	src->stats_fd = src->stats.sock = -1;
	choose_sizes(src, config);
	ac.cfg = src->cfg;
	src->seen = calloc(src->cfg.slots, sizeof(*src->seen));
	src->n_cpus = libbpf_num_possible_cpus();
	if (src->n_cpus > 0)
		src->cpu_hits = calloc((size_t)src->n_cpus, sizeof(*src->cpu_hits));
	ret = src->seen && src->cpu_hits ? attach_new(&ac, &src->attach) : -ENOMEM;
	if (ret)
		goto out_free;
	if (!src->host_only)
		ret = load_walk(src, config->perf_only, err, err_size);
	if (ret)
		goto out_free;
	if (src->host_only)
		src->kind = UPROBE_PERF; /* there will be none: what every kernel takes */
	else
		ret = map_all(src);
	if (!ret && (config->dump || config->slow) && !src->host_only)
		ret = open_ring(src, config->dump_count);
	if (ret) {
		snprintf(err, err_size, "cannot map bricktop's BPF maps: %s", strerror(-ret));
		goto out_free;
	}
	*ret_src = src;
	return 0;

out_free:
	source_close(src);
	return ret;
}

static void unmap(const void *p, size_t bytes)
{
	if (p)
		munmap((void *)p, bytes);
}

void source_close(struct source *src)
{
	if (!src)
		return;
	source_detach(src);
	if (src->ring)
		ring_buffer__free(src->ring);
	unmap(src->pool, src->pool_bytes);
	unmap(src->losses, src->losses_bytes);
	unmap(src->checks, src->checks_bytes);
	unmap(src->slow, src->slow_bytes);
	source_unmap_devices(src);
	attach_free(src->attach);
	if (src->stats_fd >= 0)
		close(src->stats_fd);
	meter_stats_end(&src->stats);
	free(src->cpu_hits);
	free(src->seen);
	free(src->known);
	free(src);
}

/* ---- what the programs are told ---------------------------------------- */

/* Row of a layout in the map; equal layouts share one. */
static int layout_row(struct source *src, const struct wire_layout *layout)
{
	int fd = attach_map_fd(src->attach, "layouts");
	__u32 i;

	for (i = 0; i < src->n_layouts; i++) {
		if (!memcmp(&src->layouts[i], layout, sizeof(*layout)))
			return (int)i;
	}
	if (i == MAX_SOURCE_LAYOUTS)
		return -ENOSPC;
	if (bpf_map_update_elem(fd, &i, layout, BPF_ANY))
		return -errno;
	src->layouts[src->n_layouts++] = *layout;
	return (int)i;
}

static struct wire_traced make_traced(__u32 tgid, const struct wire_proc *proc)
{
	return (struct wire_traced){
		.tgid = tgid,
		.local_target = proc->local_target,
		.is_plain = proc->root == WIRE_ROOT_LOCAL,
	};
}

/* A row is another process's from now on, whose hits count from 0. 0 or -errno. */
static int put_traced(struct source *src, __u32 at, struct wire_traced row)
{
	memset(src->cpu_hits, 0, (size_t)src->n_cpus * sizeof(*src->cpu_hits));
	if (bpf_map_update_elem(attach_map_fd(src->attach, "traced_hits"), &at, src->cpu_hits,
				BPF_ANY) ||
	    bpf_map_update_elem(attach_map_fd(src->attach, "traced"), &at, &row, BPF_ANY))
		return -errno;
	return 0;
}

/* Its row of "traced", unless another process has it: then its calls are not counted. */
static int set_traced(struct source *src, pid_t tgid, const struct wire_proc *proc)
{
	__u32 at = (__u32)tgid % WIRE_TRACED_ROWS;
	struct wire_traced row;
	int fd = attach_map_fd(src->attach, "traced");

	if (bpf_map_lookup_elem(fd, &at, &row))
		return -errno;
	if (row.tgid && row.tgid != (__u32)tgid)
		return 0;
	return put_traced(src, at, make_traced((__u32)tgid, proc));
}

/* Its row goes to another process that would have it, without which that one is not seen. */
static void forget_traced(struct source *src, pid_t tgid)
{
	__u32 at = (__u32)tgid % WIRE_TRACED_ROWS, key, *last = NULL, next;
	int fd = attach_map_fd(src->attach, "traced"), procs = attach_map_fd(src->attach, "procs");
	struct wire_traced row, fresh = { 0 };
	struct wire_proc proc;

	if (bpf_map_lookup_elem(fd, &at, &row) || row.tgid != (__u32)tgid)
		return;
	while (!fresh.tgid && !bpf_map_get_next_key(procs, last, &next)) {
		key = next;
		last = &key;
		if (key != (__u32)tgid && key % WIRE_TRACED_ROWS == at &&
		    !bpf_map_lookup_elem(procs, &key, &proc))
			fresh = make_traced(key, &proc);
	}
	(void)put_traced(src, at, fresh);
}

int source_traced_hits(struct source *src, pid_t tgid, struct wire_traced_hits *ret_sum)
{
	__u32 at = (__u32)tgid % WIRE_TRACED_ROWS;
	struct wire_traced row;
	int i;

	*ret_sum = (struct wire_traced_hits){ 0 };
	if (bpf_map_lookup_elem(attach_map_fd(src->attach, "traced"), &at, &row) ||
	    row.tgid != (__u32)tgid ||
	    bpf_map_lookup_elem(attach_map_fd(src->attach, "traced_hits"), &at, src->cpu_hits))
		return -ENOENT;
	for (i = 0; i < src->n_cpus; i++) {
		ret_sum->calls += src->cpu_hits[i].calls;
		ret_sum->hits += src->cpu_hits[i].hits;
		ret_sum->timed_ns += src->cpu_hits[i].timed_ns;
		ret_sum->timed += src->cpu_hits[i].timed;
	}
	return 0;
}

int source_set_proc(struct source *src, pid_t tgid, const struct wire_proc *proc,
		    const struct wire_layout *layout)
{
	struct wire_proc value = *proc;
	__u32 key = (__u32)tgid;
	int row = layout ? layout_row(src, layout) : 0;
	int ret;

	if (row < 0)
		return row;
	value.layout = (__u16)row;
	ret = set_traced(src, tgid, proc);
	if (ret)
		return ret;
	return bpf_map_update_elem(attach_map_fd(src->attach, "procs"), &key, &value, BPF_ANY) ?
		       -errno :
		       0;
}

int source_get_proc(struct source *src, pid_t tgid, struct wire_proc *ret_proc)
{
	__u32 key = (__u32)tgid;

	return bpf_map_lookup_elem(attach_map_fd(src->attach, "procs"), &key, ret_proc) ? -ENOENT :
											  0;
}

uint64_t source_uprobe_hits(struct source *src)
{
	int fd = attach_map_fd(src->attach, "procs");
	uint64_t hits = src->forgotten_hits;
	__u32 key, *at = NULL, next;
	struct wire_proc proc;

	while (!bpf_map_get_next_key(fd, at, &next)) {
		key = next;
		at = &key;
		if (!bpf_map_lookup_elem(fd, &key, &proc))
			hits += proc.probe_hits;
	}
	return hits;
}

/* A number below which the xlator was met before it was told of means its real one from now on. */
static void learn_adopted(struct source *src, const struct wire_node *was,
			  const struct wire_node *node)
{
	__u32 i = was->layer - (__u32)WIRE_LAYER_ADOPTED;

	if (was->layer < WIRE_LAYER_ADOPTED || i >= WIRE_MAX_ADOPTED)
		return;
	if (src->real_layer[i] != node->layer)
		src->is_grouped = false;
	src->real_layer[i] = node->layer;
}

/* "nodes" has changed: what walks remember of it is void. */
static void next_generation(struct source *src)
{
	__u32 zero = 0;

	if (!++src->generation)
		src->generation = 1;
	bpf_map_update_elem(attach_map_fd(src->attach, "generation"), &zero, &src->generation,
			    BPF_ANY);
}

int source_set_node(struct source *src, pid_t tgid, uint64_t xlator, const struct wire_node *node)
{
	struct wire_node_key key = { .xlator = xlator, .tgid = (__u32)tgid };
	int fd = attach_map_fd(src->attach, "nodes"), ret;
	struct wire_node was;

	if (!bpf_map_update_elem(fd, &key, node, BPF_NOEXIST)) {
		next_generation(src);
		return 0;
	}
	/* once in the map the programs do not change it */
	if (!bpf_map_lookup_elem(fd, &key, &was))
		learn_adopted(src, &was, node);
	ret = bpf_map_update_elem(fd, &key, node, BPF_ANY) ? -errno : 0;
	next_generation(src);
	return ret;
}

void source_forget_node(struct source *src, pid_t tgid, uint64_t xlator)
{
	struct wire_node_key key = { .xlator = xlator, .tgid = (__u32)tgid };

	bpf_map_delete_elem(attach_map_fd(src->attach, "nodes"), &key);
	next_generation(src);
}

void source_forget_proc(struct source *src, pid_t tgid)
{
	int nodes = attach_map_fd(src->attach, "nodes");
	struct wire_node_key key, next, *at = NULL;
	struct wire_proc proc;
	__u32 id = (__u32)tgid;

	if (!source_get_proc(src, tgid, &proc))
		src->forgotten_hits += proc.probe_hits;
	forget_traced(src, tgid);
	bpf_map_delete_elem(attach_map_fd(src->attach, "procs"), &id);
	bpf_map_delete_elem(attach_map_fd(src->attach, "fops"), &id);
	while (!bpf_map_get_next_key(nodes, at, &next)) {
		if (at && at->tgid == id)
			bpf_map_delete_elem(nodes, at);
		key = next;
		at = &key;
	}
	if (at && at->tgid == id)
		bpf_map_delete_elem(nodes, at);
	next_generation(src);
}

/* ---- probes ------------------------------------------------------------ */

enum uprobe_kind source_kind(const struct source *src)
{
	return src->kind;
}

int source_use_perf(struct source *src, char *err, size_t err_size)
{
	int ret;

	if (src->kind == UPROBE_PERF)
		return 0;
	ret = attach_load(src->attach, "gluster", perf_only, err, err_size);
	if (!ret)
		src->kind = UPROBE_PERF;
	return ret;
}

/*
 * A kernel without uprobe-multi says so at the first link, if it has taken the program at all. Any
 * other failure, and any later one, is of these sites alone.
 */
static bool is_without_multi(const struct source *src, int error)
{
	return src->kind == UPROBE_MULTI && !src->multi_works &&
	       (error == -EINVAL || error == -EOPNOTSUPP);
}

static int probe(struct source *src, const char *step, pid_t tgid, const struct uprobe_site *sites,
		 size_t n, struct uprobe_links *links, char *err, size_t err_size)
{
	char name[64];
	int ret, fd;

	snprintf(name, sizeof(name), "%s__%s", step, src->kind == UPROBE_MULTI ? "multi" : "perf");
	fd = attach_prog_fd(src->attach, name);
	if (fd < 0) {
		snprintf(err, err_size, "program '%s' is not loaded", name);
		return fd;
	}
	if (src->multi_blind && src->kind == UPROBE_MULTI)
		tgid = getpid();
	ret = uprobe_attach(src->kind, fd, tgid, sites, n, links, err, err_size);
	if (!ret && n && src->kind == UPROBE_MULTI)
		src->multi_works = true;
	if (!is_without_multi(src, ret))
		return ret;
	ret = source_use_perf(src, err, err_size);
	return ret ?: probe(src, step, tgid, sites, n, links, err, err_size);
}

int source_probe_callbacks(struct source *src, pid_t tgid, const struct uprobe_site *sites,
			   size_t n, struct source_probes *probes, char *err, size_t err_size)
{
	bool is_first = !probes->callbacks.n;
	int ret = probe(src, "on_callback", tgid, sites, n, &probes->callbacks, err, err_size);

	if (!ret && (is_first || src->kind == UPROBE_MULTI))
		probes->kind = src->kind;
	return ret;
}

int source_arm_discovery(struct source *src, pid_t tgid, const struct uprobe_site *site,
			 struct source_probes *probes, char *err, size_t err_size)
{
	if (probes->discovery.n)
		return 0;
	return probe(src, "on_frame_end", tgid, site, 1, &probes->discovery, err, err_size);
}

void source_disarm_discovery(struct source_probes *probes)
{
	uprobe_links_close(&probes->discovery);
}

int source_probe_entries(struct source *src, pid_t tgid, const struct uprobe_site *sites, size_t n,
			 struct source_probes *probes, char *err, size_t err_size)
{
	return probe(src, "on_entry", tgid, sites, n, &probes->entries, err, err_size);
}

bool source_splits_tails(const struct source *src)
{
	return src->cfg.split_tails;
}

void source_probes_close(struct source_probes *probes)
{
	uprobe_links_close(&probes->entries);
	uprobe_links_close(&probes->discovery);
	uprobe_links_close(&probes->callbacks);
}

bool source_static_off(const struct source *src)
{
	return src->static_off;
}

int source_set_wanted(struct source *src, pid_t tgid, uint64_t wanted)
{
	int fd = attach_map_fd(src->attach, "fops");
	struct wire_fops sets = { 0 };
	__u32 key = (__u32)tgid;

	/* a walk in between loses its bit here, and sets it again with the next request */
	bpf_map_lookup_elem(fd, &key, &sets);
	sets.wanted = wanted;
	return bpf_map_update_elem(fd, &key, &sets, BPF_ANY) ? -errno : 0;
}

uint64_t source_walked_fops(struct source *src, pid_t tgid)
{
	struct wire_fops sets = { 0 };
	__u32 key = (__u32)tgid;

	bpf_map_lookup_elem(attach_map_fd(src->attach, "fops"), &key, &sets);
	return sets.walked;
}

int source_each_callback(struct source *src,
			 int (*fn)(void *arg, const struct wire_callback_key *key), void *arg)
{
	struct wire_callback_key key, *at = NULL, next;
	int fd = attach_map_fd(src->attach, "callbacks"), ret;

	while (!bpf_map_get_next_key(fd, at, &next)) {
		key = next;
		at = &key;
		ret = fn(arg, &key);
		if (ret)
			return ret;
	}
	return 0;
}

struct wire_slow *source_slow(const struct source *src)
{
	return src->slow;
}

__u16 source_real_layer(const struct source *src, __u16 layer)
{
	__u32 i = layer - (__u32)WIRE_LAYER_ADOPTED;

	return layer < WIRE_LAYER_ADOPTED ? layer : i < WIRE_MAX_ADOPTED ? src->real_layer[i] : 0;
}

/* ---- the ring ---------------------------------------------------------- */

int source_ring_fd(const struct source *src)
{
	return src->ring ? ring_buffer__epoll_fd(src->ring) : -1;
}

int source_on_record(void *arg, void *record, size_t len_bytes)
{
	struct source *src = arg;

	return src->on_record ? src->on_record(src->on_record_arg, record, len_bytes) : 0;
}

int source_poll_ring(struct source *src, int (*fn)(void *arg, const void *record, size_t len_bytes),
		     void *arg)
{
	if (!src->ring)
		return 0;
	src->on_record = fn;
	src->on_record_arg = arg;
	return ring_buffer__consume(src->ring);
}
