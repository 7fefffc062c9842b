/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h: BPF objects, generically: open from the embedded bytes, configure, share maps between
 * objects, choose variants, load. Owns the loaded objects; knows no layer by name.
 */
#ifndef BRICKTOP_ATTACH_H
#define BRICKTOP_ATTACH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "../bpf/wire.h"

struct bpf_object;
struct attach;

struct attach_config {
	struct wire_cfg cfg;      /* copied into .rodata.cfg of every object */
	unsigned int max_entries; /* of a hash map but "slots", for tests; 0: as needed */
	bool verbose;             /* let libbpf talk on stderr */
};

int attach_new(const struct attach_config *config, struct attach **ret_a);
void attach_free(struct attach *a);

/*
 * Load an object (by skeleton name). Maps of the same name as in an object loaded before are shared
 * with it. Programs named STEP__VARIANT are alternatives: of each step the first is loaded that
 * this kernel takes and that is in variants (a NULL-terminated list; NULL: any). 0, or -errno and
 * the reason in err: also where a step is left without any. An object that is loaded already stays.
 */
int attach_load(struct attach *a, const char *object, const char *const *variants, char *err,
		size_t err_size);

/*
 * Load one program of an object alone (NULL: all of them, every variant), with that map only (NULL:
 * all maps; "": none), to see what the kernel says to it. 0 or -errno.
 */
int attach_load_one(struct attach *a, const char *object, const char *prog, const char *map);

/*
 * Every program of an object, loaded or not: where it goes, and its name. Needs no rights. An fn
 * that does not return 0 ends it, with that value; -errno where there is no such object.
 */
int attach_each_program(const char *object,
			int (*fn)(void *arg, const char *section, const char *prog), void *arg);

/*
 * Attach all loaded programs of an object whose section says where (tp_btf/..., fentry/...).
 * Where a step's program cannot be attached, none of the object's stay. 0, also where they are
 * attached already, or -errno and the reason.
 */
int attach_auto(struct attach *a, const char *object, char *err, size_t err_size);

/* Detach what attach_auto() attached of one object; it may be attached again. */
void attach_auto_off(struct attach *a, const char *object);

/* Detach all that attach_auto() attached; maps and programs stay. NULL is a no-op. */
void attach_detach(struct attach *a);

/* Descriptor of a map or a program of the loaded objects; -ENOENT. */
int attach_map_fd(const struct attach *a, const char *map);
int attach_prog_fd(const struct attach *a, const char *prog);

/* Every loaded program's descriptor in turn; -1 after the last. */
int attach_prog_nth(const struct attach *a, size_t nth, const char **ret_name);

#endif
