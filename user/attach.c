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

#include "uprobe.h"

struct embedded_object {
	const char *name;
	const void *(*bytes)(size_t *size);
};

#include "objects.h" /* generated: objects[], every bpf/NAME.bpf.c */

#define MAX_LOADED 16
#define MAX_LINKS  128

struct attach {
	struct wire_cfg cfg;
	struct bpf_object *obj[MAX_LOADED];
	size_t n;
	struct bpf_link *link[MAX_LINKS];
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

/* Size what depends on the configuration, share what is there already. */
static int configure_map(struct attach *a, struct bpf_map *map)
{
	const char *name = bpf_map__name(map), *dot = strchr(name, '.');
	int fd = attach_map_fd(a, name);

	if (dot && !strcmp(dot, ".rodata.cfg"))
		return bpf_map__set_initial_value(map, &a->cfg, sizeof(a->cfg));
	if (dot)
		return 0;
	if (fd >= 0)
		return bpf_map__reuse_fd(map, fd);
	if (!strcmp(name, "slots"))
		return bpf_map__set_max_entries(map, a->cfg.slots);
	if (!strcmp(name, "pool"))
		return bpf_map__set_max_entries(map, a->cfg.slots * a->cfg.shards);
	return 0;
}

static bool is_wanted(const char *prog, const char *const *variants)
{
	const char *variant = strstr(prog, "__");
	size_t i;

	if (!variant)
		return true;
	for (i = 0; variants && variants[i]; i++) {
		if (!strcmp(variant + 2, variants[i]))
			return true;
	}
	return false;
}

static int configure_prog(struct bpf_program *prog, const char *const *variants)
{
	const char *name = bpf_program__name(prog), *variant = strstr(name, "__");

	if (!is_wanted(name, variants))
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

static const char *why_not(int error)
{
	switch (-error) {
	case EPERM:
		return "the kernel refuses it: no CAP_BPF and CAP_PERFMON, or lockdown";
	case EACCES:
	case E2BIG:
		return "the kernel's verifier refuses the program";
	case ENOENT:
	case ESRCH:
		return "this kernel has no BTF (/sys/kernel/btf/vmlinux) or lacks what it needs";
	case ENOMEM:
		return "out of memory";
	default:
		return strerror(-error);
	}
}

int attach_load(struct attach *a, const char *object, const char *const *variants, char *err,
		size_t err_size)
{
	struct bpf_object *obj;
	struct bpf_program *prog;
	struct bpf_map *map;
	int ret = 0;

	if (a->n == MAX_LOADED)
		return -ENOSPC;
	obj = open_object(object);
	if (!obj) {
		ret = -errno;
		snprintf(err, err_size, "cannot open BPF object '%s': %s", object, why_not(ret));
		return ret;
	}
	bpf_object__for_each_map(map, obj) {
		ret = ret ?: configure_map(a, map);
	}
	bpf_object__for_each_program(prog, obj) {
		ret = ret ?: configure_prog(prog, variants);
	}
	ret = ret ?: bpf_object__load(obj);
	if (ret) {
		snprintf(err, err_size, "cannot load BPF object '%s': %s", object, why_not(ret));
		bpf_object__close(obj);
		return ret;
	}
	a->obj[a->n++] = obj;
	return 0;
}

/* Programs that say themselves where they go; uprobes and iterators are attached by who knows
 * where. */
static bool is_auto(const struct bpf_program *prog)
{
	return bpf_program__fd(prog) >= 0 &&
	       !strncmp(bpf_program__section_name(prog), "tp_btf/", 7);
}

static struct bpf_object *find_object(const struct attach *a, const char *name)
{
	size_t i;

	for (i = 0; i < a->n; i++) {
		if (!strcmp(bpf_object__name(a->obj[i]), name))
			return a->obj[i];
	}
	return NULL;
}

int attach_auto(struct attach *a, const char *object, char *err, size_t err_size)
{
	struct bpf_object *obj = find_object(a, object);
	size_t before = a->n_links;
	struct bpf_program *prog;
	struct bpf_link *link;
	int ret;

	if (!obj)
		return -ENOENT;
	bpf_object__for_each_program(prog, obj) {
		if (!is_auto(prog))
			continue;
		link = a->n_links < MAX_LINKS ? bpf_program__attach(prog) : NULL;
		if (link) {
			a->link[a->n_links++] = link;
			continue;
		}
		ret = a->n_links < MAX_LINKS ? -errno : -ENOSPC;
		snprintf(err, err_size, "cannot attach '%s': %s", bpf_program__section_name(prog),
			 why_not(ret));
		while (a->n_links > before)
			bpf_link__destroy(a->link[--a->n_links]);
		return ret;
	}
	return 0;
}

void attach_detach(struct attach *a)
{
	while (a->n_links)
		bpf_link__destroy(a->link[--a->n_links]);
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
