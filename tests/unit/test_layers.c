// SPDX-License-Identifier: Apache-2.0
/*
 * test_layers.c: the table of layers and what the BPF programs assume of it. A program has its
 * layer's number as a plain define, since it cannot include the table: here the two are compared.
 * Runs in the project's root folder.
 */
#include "layers.h"

#include <linux/types.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "../bpf/wire.h"
#include "tap.h"

#define LAYER(id, object, title, kind, parent, on, cost, subs) [LAYER_##id] = #id,
static const char *const ids[LAYER_COUNT] = {
#include "layers.def"
};
#undef LAYER

static void test_rows(void)
{
	unsigned int i, k;

	ok(!layer_get(LAYER_NONE) && !layer_get(LAYER_COUNT) && !layer_get(~0U), "no other rows");
	ok(LAYER_COUNT <= WIRE_LAYER_XLATOR, "all numbers lie below those of xlators");
	for (i = 1; i < LAYER_COUNT; i++) {
		const struct layer *l = layer_get(i);

		ok(l && l->object[0] && l->title[0] && l->kind[0] && l->parent[0], "%s is filled",
		   ids[i]);
		for (k = 1; k < i && l; k++)
			ok(strcmp(l->title, layer_get(k)->title) != 0, "%s: a title of its own",
			   ids[i]);
		for (k = 1; l && k < l->n_subs; k++)
			ok(l->subs[k] && l->subs[k][0], "%s: sub-operation %u has a name", ids[i],
			   k);
	}
}

/* "#define WIRE_LAYER_SYSCALL 1" in the wire's header; 0 where there is none. */
static unsigned long defined_number(const char *id)
{
	char define[64], line[256];
	unsigned long number = 0;
	FILE *f = fopen("bpf/wire.h", "re");

	snprintf(define, sizeof(define), "#define WIRE_LAYER_%s ", id);
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, define, strlen(define)))
			number = strtoul(line + strlen(define), NULL, 10);
	}
	if (f)
		fclose(f);
	return number;
}

static void test_numbers(void)
{
	unsigned int i;

	for (i = 1; i < LAYER_COUNT; i++) {
		if (layer_is_host(layer_get(i)))
			continue; /* in no ledger: nobody needs its number */
		is_int((long long)defined_number(ids[i]), i, "bpf/wire.h has the number of %s",
		       ids[i]);
	}
	is_int((long long)defined_number("NONE"), 0, "no define is no number");
}

/* Names and numbers as this architecture's kernel headers have them. */
static void test_syscalls(void)
{
	const struct layer *l = layer_get(LAYER_SYSCALL);
	unsigned short numbers[WIRE_SYS_NUMBERS] = { 0 }, few[4] = { 0, 0, 0, 0xbeef };
	unsigned int i, watched = 0;

	is_int(l->n_subs, WIRE_SYSCALL_COUNT, "every system call of the wire has a name");
	is_str(l->subs[WIRE_SYS_pwrite64], "pwrite64", "pwrite64");
	is_str(l->subs[WIRE_SYS_io_submit], "io_submit", "the last one");
	layers_fill_syscalls(numbers, WIRE_SYS_NUMBERS);
	is_int(numbers[SYS_pread64], WIRE_SYS_pread64 | WIRE_SYS_BY_FD,
	       "pread64 names a descriptor");
	is_int(numbers[SYS_openat], WIRE_SYS_openat | WIRE_SYS_BY_PATH, "openat names a path");
	is_int(numbers[SYS_fsync], WIRE_SYS_fsync | WIRE_SYS_BY_FD, "fsync");
	is_int(numbers[SYS_io_getevents], WIRE_SYS_REAPS, "io_getevents only fetches results");
	is_int(numbers[SYS_futex], 0, "futex is no file operation");
	is_int(numbers[SYS_nanosleep], 0, "nor is nanosleep");
	for (i = 0; i < WIRE_SYS_NUMBERS; i++)
		watched += numbers[i] != 0;
#ifdef SYS_open
	is_int(watched, WIRE_SYSCALL_COUNT - 1 + 2,
	       "all of them are watched here, and two that fetch results");
#else
	ok(watched > 30, "those that are here are watched: %u", watched);
#endif
	layers_fill_syscalls(few, 3);
	is_int(few[3], 0xbeef, "no number beyond the array's end");
}

#define OFF(id) (1ULL << LAYER_##id)

static void parsed(const char *list, uint64_t wanted)
{
	uint64_t off = ~0ULL;
	char err[512] = "";

	is_int(layers_parse(list, &off, err, sizeof(err)), 0, "a list of layers: %s", list);
	ok(off == wanted, "leaves out %#llx", (unsigned long long)off);
}

static void not_parsed(const char *list, const char *culprit)
{
	uint64_t off = 42;
	char err[512] = "";

	ok(layers_parse(list, &off, err, sizeof(err)) < 0 && off == 42, "no list: '%s'", list);
	ok(strstr(err, culprit) && !strchr(err, '\n'), "it says %s", culprit);
}

static void test_lists(void)
{
	const uint64_t all = ((1ULL << LAYER_COUNT) - 1) & ~1ULL;

	parsed("all", 0);
	parsed("none", all);
	parsed("syscall", all & ~OFF(SYSCALL));
	parsed("devices,syscall", all & ~OFF(SYSCALL) & ~OFF(DEVICES));
	parsed("syscall,throttle", all & ~OFF(SYSCALL) & ~OFF(THROTTLE) & ~OFF(WRITEBACK));
	parsed("syscall,xfs,throttle,writeback,block,sched,aio,io_uring,devices", 0);
	not_parsed("", "'' is no layer: syscall, xfs, throttle, writeback, block, sched, aio, "
		       "io_uring, devices, or alone: all, none");
	not_parsed("all,xfs", "or alone: all, none");
	not_parsed("syscall,", "'' is no layer");
	not_parsed("syscal", "'syscal'");
	not_parsed("syscall,none", "'none'");
	not_parsed("syscall xfs", "'syscall xfs'");
	not_parsed("xfs", "layer 'xfs' lies in 'syscall'");
	not_parsed("aio", "layer 'aio' lies in 'syscall'");
}

int main(void)
{
	test_rows();
	test_lists();
	test_numbers();
	test_syscalls();
	return tap_done();
}
