/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c: see attach.h. The embedded objects are a table that the build makes of all of bpf/.
 */
#include "attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rights.h"
#include "uprobe.h"

struct embedded_object {
	const char *name;
	const void *(*bytes)(size_t *size);
};

#include "objects.h" /* generated: objects[], every bpf/NAME.bpf.c */

#define MAX_LOADED  16
#define MAX_REFUSED 32
#define MAX_LINKS   128

#define UNUSED_ENTRIES 64 /* of a map that must be there and stays empty */

/*
 * Before d4adf1c9ee77 (2025) each CPU takes so many free entries of an LRU map for itself; where
 * none are left it pushes out what it added last. They come on top of those that a map is to have,
 * as far as that costs no more than this of memory.
 */
#define LRU_CPU_ENTRIES 128
#define LRU_CPUS_BYTES  (16U << 20)

/*
 * The ring is in bricktop's memory as a whole, and that twice. Slow requests are few; the largest
 * record that there can be has 1.4 MB.
 */
#define RING_BYTES_ALL  (1 << 23)
#define RING_BYTES_SLOW (1 << 21)

struct attach {
	struct wire_cfg cfg;
	unsigned int max_entries; /* see struct attach_config */
	struct bpf_object *obj[MAX_LOADED];
	bool is_on[MAX_LOADED]; /* its programs are attached */
	size_t n;
	struct {
		struct bpf_link *link;
		size_t obj; /* whose */
	} link[MAX_LINKS];
	size_t n_links;
};

static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

int attach_new(const struct attach_config *config, struct attach **ret_a)
{
	struct attach *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->cfg = config->cfg;
	a->max_entries = config->max_entries;
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	if (!config->verbose)
		libbpf_set_print(print_nothing);
	*ret_a = a;
	return 0;
}

void attach_free(struct attach *a)
{
	if (!a)
		return;
	attach_detach(a);
	while (a->n)
		bpf_object__close(a->obj[--a->n]);
	free(a);
}

static unsigned int ring_bytes(const struct wire_cfg *cfg)
{
	return cfg->dump ? RING_BYTES_ALL :
	       cfg->slow ? RING_BYTES_SLOW :
			   (unsigned int)sysconf(_SC_PAGESIZE);
}

/* What the CPUs keep of an LRU map's entries; 0 of others. */
static unsigned int cpus_entries(const struct bpf_map *map)
{
	const int cpus = libbpf_num_possible_cpus();
	unsigned int n, most;

	if (bpf_map__type(map) != BPF_MAP_TYPE_LRU_HASH || cpus < 1)
		return 0;
	n = (unsigned int)cpus * LRU_CPU_ENTRIES;
	most = LRU_CPUS_BYTES / bpf_map__value_size(map);
	return n < most ? n : most;
}

/* How many entries a map is to have: what depends on the configuration, and on the machine. */
static unsigned int choose_entries(const struct wire_cfg *cfg, const struct bpf_map *map)
{
	const char *name = bpf_map__name(map);

	if (!strcmp(name, "slots"))
		return cfg->slots;
	if (!strcmp(name, "entries") && !cfg->split_tails)
		return UNUSED_ENTRIES;
	if (!strcmp(name, "events"))
		return ring_bytes(cfg);
	if (!strcmp(name, "slow") && !cfg->slow)
		return 1;
	if (!strcmp(name, "pool"))
		return cfg->slots * cfg->shards;
	if (!strcmp(name, "dev_rows") && cfg->dev_rows)
		return cfg->dev_rows;
	if (!strcmp(name, "dev_pool") && cfg->dev_rows)
		return cfg->dev_rows * cfg->shards;
	return bpf_map__max_entries(map) + cpus_entries(map);
}

/* That of the histograms has a limit of its own. */
static bool is_capped(const struct bpf_map *map)
{
	return (bpf_map__type(map) == BPF_MAP_TYPE_HASH ||
		bpf_map__type(map) == BPF_MAP_TYPE_LRU_HASH) &&
	       strcmp(bpf_map__name(map), "slots") != 0;
}

/* Size it, or share what is there already. */
static int configure_map(struct attach *a, struct bpf_map *map)
{
	const char *name = bpf_map__name(map), *dot = strchr(name, '.');
	int fd = attach_map_fd(a, name);
	unsigned int n;

	if (dot && !strcmp(dot, ".rodata.cfg"))
		return bpf_map__set_initial_value(map, &a->cfg, sizeof(a->cfg));
	if (dot)
		return 0;
	if (fd >= 0)
		return bpf_map__reuse_fd(map, fd);
	n = choose_entries(&a->cfg, map);
	if (a->max_entries && a->max_entries < n && is_capped(map))
		n = a->max_entries;
	return bpf_map__set_max_entries(map, n);
}

/* Which programs of an object are loaded. */
struct choice {
	const char *const *variants; /* allowed; NULL: any */
	const char *only;            /* just this one; NULL: no such limit */
	const char *only_map;        /* the one map to make; NULL: any */
	bool all;                    /* every variant at once */
	char refused[MAX_REFUSED][48];
	size_t n_refused;
};

static bool is_allowed(const struct choice *c, const char *prog)
{
	const char *variant = strstr(prog, "__");
	size_t i;

	if (c->only)
		return !strcmp(prog, c->only);
	for (i = 0; i < c->n_refused; i++) {
		if (!strcmp(prog, c->refused[i]))
			return false;
	}
	if (!variant || !c->variants)
		return true;
	for (i = 0; c->variants[i]; i++) {
		if (!strcmp(variant + 2, c->variants[i]))
			return true;
	}
	return false;
}

/* Of the programs STEP__VARIANT of one step the first that is allowed is wanted. */
static bool is_wanted(const struct choice *c, const struct bpf_object *obj, const char *prog)
{
	const char *variant = strstr(prog, "__"), *name;
	struct bpf_program *earlier;

	if (c->all || !is_allowed(c, prog) || !variant)
		return c->all || is_allowed(c, prog);
	bpf_object__for_each_program(earlier, obj) {
		name = bpf_program__name(earlier);
		if (!strcmp(name, prog))
			return true;
		if (!strncmp(name, prog, (size_t)(variant - prog) + 2) && is_allowed(c, name))
			return false;
	}
	return true;
}

static int configure_prog(struct bpf_program *prog, bool wanted)
{
	const char *variant = strstr(bpf_program__name(prog), "__");

	if (!wanted)
		return bpf_program__set_autoload(prog, false);
	if (variant && !strcmp(variant, "__multi"))
		return bpf_program__set_expected_attach_type(
			prog, (enum bpf_attach_type)UPROBE_MULTI_ATTACH_TYPE);
	return 0;
}

static struct bpf_object *open_object(const char *name)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = name);
	const void *bytes;
	size_t i, size;

	for (i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		if (strcmp(objects[i].name, name) != 0)
			continue;
		bytes = objects[i].bytes(&size);
		return bpf_object__open_mem(bytes, size, &opts);
	}
	errno = ENOENT;
	return NULL;
}

/* In words; buf may be used. */
static const char *why_not(int error, char *buf, size_t size)
{
	const char *rights = rights_why_not(error, buf, size);

	if (rights)
		return rights;
	switch (-error) {
	case EPERM:
		return "the kernel refuses it";
	case EACCES:
	case E2BIG:
		return "the kernel's verifier refuses the program";
	case EINVAL:
		return "this kernel lacks a helper, a map or a hook that it uses";
	case ENOENT:
	case ESRCH:
		return "this kernel has no BTF (/sys/kernel/btf/vmlinux) or lacks what it needs";
	case ENOMEM:
		return "out of memory";
	default:
		return strerror(-error);
	}
}

static int load_chosen(struct attach *a, const char *object, const struct choice *c,
		       struct bpf_object **ret_obj)
{
	struct bpf_object *obj = open_object(object);
	struct bpf_program *prog;
	struct bpf_map *map;
	int ret = 0;

	if (!obj)
		return -errno;
	bpf_object__for_each_map(map, obj) {
		if (c->only_map && strcmp(bpf_map__name(map), c->only_map) != 0)
			ret = ret ?: bpf_map__set_autocreate(map, false);
		else
			ret = ret ?: configure_map(a, map);
	}
	bpf_object__for_each_program(prog, obj) {
		ret = ret ?: configure_prog(prog, is_wanted(c, obj, bpf_program__name(prog)));
	}
	ret = ret ?: bpf_object__load(obj);
	if (ret)
		bpf_object__close(obj);
	else
		*ret_obj = obj;
	return ret;
}

/* Load each program alone; those that this kernel refuses are named in c. Returns how many. */
static size_t find_refused(struct attach *a, const char *object, struct choice *c)
{
	struct bpf_object *obj = open_object(object), *loaded = NULL;
	size_t before = c->n_refused;
	struct bpf_program *prog;

	if (!obj)
		return 0;
	bpf_object__for_each_program(prog, obj) {
		struct choice alone = { .only = bpf_program__name(prog) };

		if (!is_wanted(c, obj, alone.only) || c->n_refused == MAX_REFUSED)
			continue;
		if (!load_chosen(a, object, &alone, &loaded))
			bpf_object__close(loaded);
		else
			snprintf(c->refused[c->n_refused++], sizeof(c->refused[0]), "%s",
				 alone.only);
	}
	bpf_object__close(obj);
	return c->n_refused - before;
}

/* Variants of one step share what stands before "__"; a step without variants is one program. */
static bool is_same_step(const char *name, const char *other)
{
	const char *variant = strstr(name, "__");

	return variant ? !strncmp(other, name, (size_t)(variant - name) + 2) : !strcmp(other, name);
}

/* 1 where each step of the object still has a program that may be loaded. */
static bool has_all_steps(const char *object, const struct choice *c)
{
	struct bpf_object *obj = open_object(object);
	struct bpf_program *prog, *other;
	bool all = obj != NULL;

	if (!obj)
		return false;
	bpf_object__for_each_program(prog, obj) {
		bool any = false;

		bpf_object__for_each_program(other, obj) {
			const char *name = bpf_program__name(other);

			any = any ||
			      (is_same_step(bpf_program__name(prog), name) && is_allowed(c, name));
		}
		all = all && any;
	}
	bpf_object__close(obj);
	return all;
}

/* Place of a loaded object; a->n: it is not. */
static size_t find_object(const struct attach *a, const char *name)
{
	size_t i;

	for (i = 0; i < a->n && strcmp(bpf_object__name(a->obj[i]), name) != 0; i++)
		;
	return i;
}

int attach_load(struct attach *a, const char *object, const char *const *variants, char *err,
		size_t err_size)
{
	struct choice c = { .variants = variants };
	struct bpf_object *obj = NULL;
	char why[128];
	int ret;

	/* layers may share an object; other variants of it are loaded beside those that are there
	 */
	if (!variants && find_object(a, object) < a->n)
		return 0;
	if (a->n == MAX_LOADED)
		return -ENOSPC;
	ret = has_all_steps(object, &c) ? load_chosen(a, object, &c, &obj) : -ENOENT;
	while (ret && find_refused(a, object, &c) && has_all_steps(object, &c))
		ret = load_chosen(a, object, &c, &obj);
	if (ret) {
		snprintf(err, err_size, "cannot load BPF object '%s': %s", object,
			 why_not(ret, why, sizeof(why)));
		return ret;
	}
	a->obj[a->n++] = obj;
	return 0;
}

int attach_load_one(struct attach *a, const char *object, const char *prog, const char *map)
{
	const struct choice c = { .only = prog, .only_map = map, .all = !prog };
	struct bpf_object *obj = NULL;
	int ret = a->n < MAX_LOADED ? load_chosen(a, object, &c, &obj) : -ENOSPC;

	if (!ret)
		a->obj[a->n++] = obj;
	return ret;
}

int attach_each_program(const char *object,
			int (*fn)(void *arg, const char *section, const char *prog), void *arg)
{
	struct bpf_object *obj = open_object(object);
	struct bpf_program *prog;
	int ret = 0;

	if (!obj)
		return -errno;
	bpf_object__for_each_program(prog, obj) {
		ret = ret ?: fn(arg, bpf_program__section_name(prog), bpf_program__name(prog));
	}
	bpf_object__close(obj);
	return ret;
}

/* Programs that say themselves where they go; uprobes and iterators are attached by who knows
 * where. */
static bool is_auto(const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog);

	return bpf_program__fd(prog) >= 0 &&
	       (!strncmp(section, "tp_btf/", 7) || !strncmp(section, "fentry/", 7));
}

static void detach_object(struct attach *a, size_t obj)
{
	size_t i, n = 0;

	for (i = 0; i < a->n_links; i++) {
		if (a->link[i].obj == obj)
			bpf_link__destroy(a->link[i].link);
		else
			a->link[n++] = a->link[i];
	}
	a->n_links = n;
	a->is_on[obj] = false;
}

int attach_auto(struct attach *a, const char *object, char *err, size_t err_size)
{
	size_t at = find_object(a, object);
	struct bpf_program *prog;
	struct bpf_link *link;
	char why[128];
	int ret;

	if (at == a->n)
		return -ENOENT;
	if (a->is_on[at])
		return 0;
	bpf_object__for_each_program(prog, a->obj[at]) {
		if (!is_auto(prog))
			continue;
		link = a->n_links < MAX_LINKS ? bpf_program__attach(prog) : NULL;
		if (link) {
			a->link[a->n_links].link = link;
			a->link[a->n_links++].obj = at;
			continue;
		}
		ret = a->n_links < MAX_LINKS ? -errno : -ENOSPC;
		snprintf(err, err_size, "cannot attach '%s': %s", bpf_program__section_name(prog),
			 why_not(ret, why, sizeof(why)));
		detach_object(a, at);
		return ret;
	}
	a->is_on[at] = true;
	return 0;
}

void attach_auto_off(struct attach *a, const char *object)
{
	size_t at = find_object(a, object);

	if (at < a->n)
		detach_object(a, at);
}

void attach_detach(struct attach *a)
{
	size_t i;

	for (i = 0; a && i < a->n; i++)
		detach_object(a, i);
}

int attach_map_fd(const struct attach *a, const char *map)
{
	struct bpf_map *m;
	size_t i;

	for (i = 0; i < a->n; i++) {
		m = bpf_object__find_map_by_name(a->obj[i], map);
		if (m)
			return bpf_map__fd(m);
	}
	return -ENOENT;
}

int attach_prog_fd(const struct attach *a, const char *prog)
{
	struct bpf_program *p;
	size_t i;

	for (i = 0; i < a->n; i++) {
		p = bpf_object__find_program_by_name(a->obj[i], prog);
		if (p && bpf_program__fd(p) >= 0)
			return bpf_program__fd(p);
	}
	return -ENOENT;
}

int attach_prog_nth(const struct attach *a, size_t nth, const char **ret_name)
{
	struct bpf_program *p;
	size_t i;

	for (i = 0; i < a->n; i++) {
		bpf_object__for_each_program(p, a->obj[i]) {
			if (bpf_program__fd(p) < 0 || nth--)
				continue;
			if (ret_name)
				*ret_name = bpf_program__name(p);
			return bpf_program__fd(p);
		}
	}
	return -1;
}
