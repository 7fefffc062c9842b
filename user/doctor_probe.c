/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_probe.c: see doctor_probe.h. The small programs are those of bpf/doctor.bpf.c.
 */
#include "doctor_probe.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach.h"
#include "doctor_env.h"
#include "layers.h"
#include "meter.h"
#include "procmem.h"
#include "source_bpf.h"
#include "uprobe.h"

#define OBJECT    "doctor"
#define WALK      "gluster" /* the object of the walk, which no row of layers.def names */
#define KPROBE_ON "do_filp_open"
#define BTF_DIR   "/sys/kernel/btf"

/* bpf/doctor.bpf.c's */
enum { HIT_BTF, HIT_RAW, HIT_TP, HIT_UPROBE, HIT_FENTRY, HIT_KPROBE, HIT_ITER, HIT_SLOTS };

static int try_alone(const char *prog, const char *map, struct attach **ret_a)
{
	const struct attach_config config = { .verbose = getenv("BRICKTOP_DEBUG") != NULL };
	struct attach *a;
	int ret = attach_new(&config, &a);

	if (ret)
		return ret;
	ret = attach_load_one(a, OBJECT, prog, map);
	if (ret)
		attach_free(a);
	else
		*ret_a = a;
	return ret;
}

/* ---- where the small programs are hung ---------------------------------- */

/* Hit by uprobes; what it returns keeps it from being optimised away. */
__attribute__((noinline)) static int be_hit(int n)
{
	__asm__ volatile("nop");
	return n + 1;
}

/* Everything that a hook of bpf/doctor.bpf.c waits for. */
static void hit_all(void)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	be_hit(fd);
	syscall(SYS_getppid);
	if (fd >= 0)
		close(fd);
}

static int own_site(struct uprobe_site *ret_site)
{
	uint64_t addr = (uint64_t)(uintptr_t)be_hit;
	struct procmaps maps = { 0 };
	int ret = procmaps_load(getpid(), &maps);
	size_t i;

	for (i = 0; !ret && i < maps.n; i++) {
		if (addr >= maps.maps[i].start && addr < maps.maps[i].end)
			break;
	}
	if (!ret && i == maps.n)
		ret = -ENOENT;
	if (!ret)
		*ret_site = (struct uprobe_site){ .path = "/proc/self/exe",
						  .offset = addr - maps.maps[i].start +
							    maps.maps[i].offset };
	procmaps_free(&maps);
	return ret;
}

static long read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = -ENOENT;

	if (!f)
		return -errno;
	if (fscanf(f, "%ld", &n) != 1)
		n = -ENOENT;
	fclose(f);
	return n;
}

/* A perf event of that kind, with the program on it: the link's descriptor, or -errno. */
static int link_perf(int prog, struct perf_event_attr *perf, long type)
{
	int event, link;

	if (type < 0)
		return (int)type;
	perf->size = sizeof(*perf);
	perf->type = (__u32)type;
	perf->sample_period = 1;
	event = (int)syscall(SYS_perf_event_open, perf, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	link = bpf_link_create(prog, event, BPF_PERF_EVENT, NULL);
	close(event);
	return link;
}

static int hang_kprobe(int prog)
{
	struct perf_event_attr perf = { .config1 = (__u64)(uintptr_t)KPROBE_ON };

	return link_perf(prog, &perf, read_number("/sys/bus/event_source/devices/kprobe/type"));
}

static int hang_tp(int prog)
{
	static const char *const files[] = {
		"/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id",
		"/sys/kernel/debug/tracing/events/syscalls/sys_enter_getppid/id"
	};
	long id = read_number(files[0]);
	struct perf_event_attr perf = { 0 };

	if (id == -ENOENT)
		id = read_number(files[1]);
	if (id < 0)
		return (int)id;
	perf.config = (__u64)id;
	return link_perf(prog, &perf, PERF_TYPE_TRACEPOINT);
}

static int hang_raw(int prog)
{
	return bpf_raw_tracepoint_open("sys_enter", prog);
}

/* tp_btf and fentry: the program itself says where. */
static int hang_btf(int prog)
{
	return bpf_raw_tracepoint_open(NULL, prog);
}

/* An iterator does not wait: it runs over all tasks while its output is read. */
static int hang_iter(int prog)
{
	int link = bpf_link_create(prog, 0, BPF_TRACE_ITER, NULL), iter;
	char nothing[64];

	if (link < 0)
		return link;
	iter = bpf_iter_create(link);
	if (iter >= 0) {
		while (read(iter, nothing, sizeof(nothing)) > 0)
			;
		close(iter);
	}
	return link;
}

static int check_hit(const struct attach *a, __u32 slot)
{
	__u64 hits = 0;

	if (bpf_map_lookup_elem(attach_map_fd(a, "tries"), &slot, &hits))
		return -errno;
	return hits ? 0 : -ENODATA;
}

static int try_hook(const char *prog, int (*hang)(int prog), __u32 slot)
{
	struct attach *a;
	int ret = try_alone(prog, "tries", &a), link;

	if (ret)
		return ret;
	link = hang(attach_prog_fd(a, prog));
	if (link >= 0) {
		hit_all();
		close(link);
		ret = check_hit(a, slot);
	} else {
		ret = link;
	}
	attach_free(a);
	return ret;
}

static int try_uprobe(enum uprobe_kind kind, const char *prog)
{
	struct uprobe_links links = { 0 };
	struct uprobe_site site;
	struct attach *a;
	char err[256];
	int ret = try_alone(prog, "tries", &a);

	if (ret)
		return ret;
	ret = own_site(&site);
	ret = ret   ?:
		      uprobe_attach(kind, attach_prog_fd(a, prog), getpid(), &site, 1, &links, err,
				    sizeof(err));
	if (!ret) {
		hit_all();
		ret = check_hit(a, HIT_UPROBE);
	}
	uprobe_links_close(&links);
	attach_free(a);
	return ret;
}

static int try_load(const char *prog, const char *map)
{
	struct attach *a;
	int ret = try_alone(prog, map, &a);

	if (!ret)
		attach_free(a);
	return ret;
}

static int try_stats(void)
{
	int fd = meter_enable_stats();

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void try_things(struct doctor_try things[DOCTOR_THINGS])
{
	const int errors[DOCTOR_THINGS] = {
		[DOCTOR_TP_BTF] = try_hook("on_hook__btf", hang_btf, HIT_BTF),
		[DOCTOR_RAW_TP] = try_hook("on_hook__raw", hang_raw, HIT_RAW),
		[DOCTOR_TP] = try_hook("on_hook__tp", hang_tp, HIT_TP),
		[DOCTOR_UPROBE_PERF] = try_uprobe(UPROBE_PERF, "on_place__perf"),
		[DOCTOR_UPROBE_MULTI] = try_uprobe(UPROBE_MULTI, "on_place__multi"),
		[DOCTOR_FENTRY] = try_hook("on_hook__fentry", hang_btf, HIT_FENTRY),
		[DOCTOR_KPROBE] = try_hook("on_hook__kprobe", hang_kprobe, HIT_KPROBE),
		[DOCTOR_ITER_TASK] = try_hook("on_task", hang_iter, HIT_ITER),
		[DOCTOR_BPF_LOOP] = try_load("use_loop", ""),
		[DOCTOR_COOKIES] = try_load("use_cookie", "tries"),
		[DOCTOR_RING] = try_load("use_ring", "ring"),
		[DOCTOR_STORAGE] = try_load("use_storage", "storage"),
		[DOCTOR_MMAP_ARRAYS] = try_load("use_mapped", "mapped"),
		[DOCTOR_READING] = try_load("use_read", ""),
		[DOCTOR_STATS] = try_stats(),
	};
	size_t i;

	for (i = 0; i < DOCTOR_THINGS; i++)
		things[i] = (struct doctor_try){ .tried = true, .error = errors[i] };
}

static unsigned int row_number(size_t layer)
{
	return (unsigned int)(layer - DOCTOR_FIRST_ROW) + LAYER_NONE + 1;
}

/* ---- hooks -------------------------------------------------------------- */

/* The kernel's types, and those of its modules once something was not found there. */
struct btfs {
	struct btf *vmlinux, **modules;
	size_t n;
	bool has_modules; /* they were loaded */
};

static void load_modules(struct btfs *b)
{
	DIR *dir = opendir(BTF_DIR);
	struct dirent *entry;
	struct btf **grown, *one;
	char path[300];

	b->has_modules = true;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "vmlinux"))
			continue;
		snprintf(path, sizeof(path), BTF_DIR "/%s", entry->d_name);
		grown = realloc(b->modules, (b->n + 1) * sizeof(*grown));
		one = grown ? btf__parse_split(path, b->vmlinux) : NULL;
		if (grown)
			b->modules = grown;
		if (one)
			b->modules[b->n++] = one;
	}
	if (dir)
		closedir(dir);
}

static void free_btfs(struct btfs *b)
{
	while (b->n)
		btf__free(b->modules[--b->n]);
	free(b->modules);
	btf__free(b->vmlinux);
}

static bool has_type(struct btfs *b, const char *name, __u32 kind)
{
	size_t i;

	if (btf__find_by_name_kind(b->vmlinux, name, kind) > 0)
		return true;
	if (!b->has_modules)
		load_modules(b);
	for (i = 0; i < b->n; i++) {
		if (btf__find_by_name_kind(b->modules[i], name, kind) > 0)
			return true;
	}
	return false;
}

/* Is there such a place? Uprobes go to other processes' files, so nobody can tell here. */
static int find_hook(struct btfs *b, const char *section)
{
	static const struct {
		const char *prefix, *type_prefix;
		__u32 kind;
	} kinds[] = {
		{ "tp_btf/", "btf_trace_", BTF_KIND_TYPEDEF },
		{ "raw_tp/", "btf_trace_", BTF_KIND_TYPEDEF },
		{ "fentry/", "", BTF_KIND_FUNC },
		{ "fexit/", "", BTF_KIND_FUNC },
		{ "kprobe/", "", BTF_KIND_FUNC },
		{ "kretprobe/", "", BTF_KIND_FUNC },
		{ "iter/", "bpf_iter_", BTF_KIND_FUNC },
	};
	char name[128];
	size_t i;

	for (i = 0; b->vmlinux && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i].prefix);

		if (strncmp(section, kinds[i].prefix, len) != 0)
			continue;
		snprintf(name, sizeof(name), "%s%s", kinds[i].type_prefix, section + len);
		return has_type(b, name, kinds[i].kind);
	}
	return DOCTOR_NOT_KNOWN;
}

struct collect {
	struct doctor_facts *facts;
	struct btfs btfs;
	unsigned int layer;
};

static int add_hook(void *arg, const char *section, const char *prog)
{
	struct collect *c = arg;
	struct doctor_facts *f = c->facts;
	bool multi = !strcmp(section, "uprobe") && strstr(prog, "__multi");
	struct doctor_hook *grown = realloc(f->hooks, (f->n_hooks + 1) * sizeof(*grown)), *hook;

	if (!grown)
		return -ENOMEM;
	f->hooks = grown;
	hook = &grown[f->n_hooks++];
	*hook = (struct doctor_hook){ .layer = c->layer, .found = find_hook(&c->btfs, section) };
	snprintf(hook->section, sizeof(hook->section), "%s%s", section, multi ? "-multi" : "");
	snprintf(hook->program, sizeof(hook->program), "%s", prog);
	return 0;
}

static int collect_hooks(struct doctor_facts *f)
{
	struct collect c = { .facts = f, .btfs.vmlinux = btf__load_vmlinux_btf() };
	const char *object;
	int ret = 0;

	for (c.layer = DOCTOR_WALK; c.layer < f->n_layers && ret != -ENOMEM; c.layer++) {
		object = c.layer == DOCTOR_WALK ? WALK : layer_get(row_number(c.layer))->object;
		ret = attach_each_program(object, add_hook, &c);
	}
	free_btfs(&c.btfs);
	return ret == -ENOMEM ? ret : 0;
}

/* ---- layers ------------------------------------------------------------- */

/* A process that only who may trace other users' can read, as a brick is; its pid or -errno. */
static pid_t start_guarded(void)
{
	int pipes[2];
	char byte = 0;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0) ||
		    write(pipes[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	if (pid < 0)
		pid = -errno;
	/* where it dies instead, reading it fails */
	while (pid > 0 && read(pipes[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(pipes[0]);
	return pid;
}

static int read_memory_of(pid_t pid)
{
	struct procmaps maps = { 0 };
	struct procmem *pm = NULL;
	uint64_t word;
	int ret = procmem_open(pid, &pm);

	ret = ret ?: procmaps_load(pid, &maps);
	if (!ret)
		ret = maps.n ? procmem_read_u64(pm, maps.maps[0].start, &word) : -EACCES;
	procmaps_free(&maps);
	procmem_close(pm);
	return ret;
}

static int try_memory(char *err, size_t err_size)
{
	pid_t pid = start_guarded();
	int ret = pid < 0 ? (int)pid : read_memory_of(pid);

	if (ret)
		snprintf(err, err_size, "the memory of another process cannot be read: %s",
			 strerror(-ret));
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return ret;
}

/* The walk's programs on a place of our own, which no request passes. */
static int try_walk(struct source *src, char *err, size_t err_size)
{
	struct source_probes probes = { 0 };
	struct uprobe_site site;
	int ret = own_site(&site);

	ret = ret ?: source_probe_callbacks(src, getpid(), &site, 1, &probes, err, err_size);
	if (!ret)
		be_hit(0);
	source_probes_close(&probes);
	return ret;
}

static void set_result(struct doctor_layer *layer, int ret)
{
	layer->result = (struct doctor_try){ .tried = true, .error = ret };
}

static void try_rows(struct doctor_facts *f, struct source *src, bool host, int why_not)
{
	size_t i;

	for (i = DOCTOR_FIRST_ROW; i < f->n_layers; i++) {
		struct doctor_layer *l = &f->layers[i];
		int ret = why_not;

		if (l->is_host != host)
			continue;
		if (!ret)
			ret = source_attach_layer(src, row_number(i), l->text, sizeof(l->text));
		set_result(l, ret);
	}
}

/* As an investigation does it: the walk, the rows on top of it; host tables also without it. */
static void try_layers(struct doctor_facts *f)
{
	struct source_config config = { .n_targets = 1, .dump = true, .dump_count = 1 };
	struct doctor_layer *memory = &f->layers[DOCTOR_MEMORY], *walk = &f->layers[DOCTOR_WALK];
	struct source *src = NULL;
	int ret;

	set_result(memory, try_memory(memory->text, sizeof(memory->text)));
	ret = source_open(&config, &src, walk->text, sizeof(walk->text));
	ret = ret ?: try_walk(src, walk->text, sizeof(walk->text));
	set_result(walk, ret);
	try_rows(f, src, false, ret);
	if (ret) {
		source_close(src);
		src = NULL;
		config = (struct source_config){ .n_targets = 1, .host_only = true };
		ret = source_open(&config, &src, walk->text, sizeof(walk->text));
	}
	try_rows(f, src, true, ret);
	source_close(src);
}

static int name_layers(struct doctor_facts *f)
{
	const struct layer *row;
	unsigned int i;

	f->n_layers = DOCTOR_FIRST_ROW + LAYER_COUNT - LAYER_NONE - 1;
	f->layers = calloc(f->n_layers, sizeof(*f->layers));
	if (!f->layers)
		return -ENOMEM;
	f->layers[DOCTOR_MEMORY] = (struct doctor_layer){ .title = "memory", .on = true };
	f->layers[DOCTOR_WALK] = (struct doctor_layer){ .title = "walk", .on = true };
	for (i = DOCTOR_FIRST_ROW; i < f->n_layers; i++) {
		row = layer_get(row_number(i));
		f->layers[i] = (struct doctor_layer){ .title = row->title,
						      .parent = row->parent,
						      .on = row->on,
						      .is_host = layer_is_host(row) };
	}
	return 0;
}

int doctor_probe(bool layers, struct doctor_facts *ret_facts)
{
	struct doctor_facts facts = { 0 };
	int ret = name_layers(&facts);

	doctor_env_read(&facts.env);
	try_things(facts.things);
	ret = ret ?: collect_hooks(&facts);
	if (ret) {
		doctor_facts_free(&facts);
		return ret;
	}
	if (layers)
		try_layers(&facts);
	*ret_facts = facts;
	return 0;
}

void doctor_facts_free(struct doctor_facts *facts)
{
	free(facts->layers);
	free(facts->hooks);
	*facts = (struct doctor_facts){ 0 };
}
