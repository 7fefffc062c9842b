// SPDX-License-Identifier: Apache-2.0
/*
 * btf-to-header BASE [MODULE]: the types of a kernel's BTF, and of one module's on top of it, as
 * one C header on stdout. bpftool can print either, but the two headers cannot be included
 * together, since the second repeats what it needs of the first. It knows nothing about bricktop.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

static void print_text(void *ctx, const char *fmt, va_list args)
{
	(void)ctx;
	vprintf(fmt, args);
}

static int dump_types(const struct btf *btf)
{
	struct btf_dump *dump = btf_dump__new(btf, print_text, NULL, NULL);
	__u32 id;
	int err;

	if (!dump)
		return -errno;
	for (id = 1; id < btf__type_cnt(btf); id++) {
		err = btf_dump__dump_type(dump, id);
		if (err)
			break;
	}
	btf_dump__free(dump);
	return err;
}

int main(int argc, char **argv)
{
	struct btf *base, *btf;
	int err;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: btf-to-header BASE [MODULE]\n");
		return 2;
	}
	base = btf__parse(argv[1], NULL);
	btf = base && argc == 3 ? btf__parse_split(argv[2], base) : base;
	if (!btf) {
		fprintf(stderr, "btf-to-header: cannot read the BTF: %s\n", strerror(errno));
		return 1;
	}
	printf("#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n\n"
	       "#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n"
	       "#pragma clang attribute push (__attribute__((preserve_access_index)), "
	       "apply_to = record)\n#endif\n\n");
	err = dump_types(btf);
	printf("#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n#pragma clang attribute pop\n#endif\n\n"
	       "#endif /* __VMLINUX_H__ */\n");
	if (btf != base)
		btf__free(btf);
	btf__free(base);
	if (err || fflush(stdout)) {
		fprintf(stderr, "btf-to-header: cannot print the types: %s\n", strerror(-err));
		return 1;
	}
	return 0;
}
