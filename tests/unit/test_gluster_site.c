// SPDX-License-Identifier: Apache-2.0
/*
 * test_gluster_site.c: finding fops and callbacks in objects without symbols: in hand-assembled
 * code, in a module compiled here whose callbacks are known by name before it is stripped, and in
 * the GlusterFS 10.3 modules where they are installed.
 */
#include "gluster_site.h"

#include "elf_image.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define MODULES    "/usr/lib/x86_64-linux-gnu/glusterfs/10.3/xlator/"
#define ENTRY      IMAGE_TEXT_VADDR
#define CBK        (IMAGE_TEXT_VADDR + 0x80)
#define CBK2       (IMAGE_TEXT_VADDR + 0xa0)
#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

/* Of 10.3, as far as this module reads it. */
static const struct gluster_layout layout = {
	.releases = "10.2-10.5", .frame_ret = 0x80, .api_fops = 0x60, .max_fop = 59
};
static const struct gluster_layout layout_312 = {
	.releases = "3.12.2-3.12.15", .frame_ret = 0x30, .api_fops = 0xffff, .max_fop = 55
};
static const struct gluster_layout layout_5 = {
	.releases = "5.0-5.13", .frame_ret = 0x30, .api_fops = 0x60, .max_fop = 58
};

/*
 * The code lies at ENTRY; there are functions at CBK and CBK2. 48 8d 05 disp32 at +n is "lea rax,
 * [CBK]" with disp = 0x80 - (n + 7).
 */
static void expect_code(const uint8_t *code, size_t len, uint64_t want, uint64_t want2,
			const char *what)
{
	static struct elf_image image;
	struct gluster_callbacks found = { 0 };
	struct elf_file *elf = NULL;
	size_t want_n = (want != 0) + (want2 != 0);
	int err;

	image_init(&image, EM_X86_64);
	image_put(&image, ENTRY, code, len);
	image_func(&image, ENTRY, (uint32_t)len);
	image_func(&image, CBK, 0x10);
	image_func(&image, CBK2, 0x10);
	err = elf_open_memory(image.bytes, IMAGE_BYTES, &elf);
	if (!err)
		err = gluster_site_callbacks(elf, &layout, &found);
	ok(!err && found.n == want_n && (want_n < 1 || found.funcs[0].start == want) &&
		   (want_n < 2 || found.funcs[1].start == want2),
	   "%s", what);
	if (err || found.n != want_n)
		diag("error %d, %zu callbacks, want %zu", err, found.n, want_n);
	gluster_site_free(&found);
	elf_close(elf);
}

static void test_stores(void)
{
	/* lea rax, [CBK]; mov [rbx + 0x80], rax; ret */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x48, 0x89, 0x83, 0x80, 0, 0, 0, 0xc3),
		    CBK, 0, "lea, store");
	/* the same to +0x88 */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x48, 0x89, 0x83, 0x88, 0, 0, 0, 0xc3),
		    0, 0, "a store at another offset is none");
	/* the same to [rsp + 0x80] */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x48, 0x89, 0x84, 0x24, 0x80, 0, 0, 0,
			  0xc3),
		    0, 0, "nor is a stack slot");
	/* the same with the lea one byte behind the function's start */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x7a, 0, 0, 0, 0x48, 0x89, 0x83, 0x80, 0, 0, 0, 0xc3),
		    0, 0, "nor the middle of a function");
	/* lea rax, [CBK]; mov rcx, rax; xor eax, eax; mov [rbx + 0x80], rcx */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x48, 0x89, 0xc1, 0x31, 0xc0, 0x48, 0x89,
			  0x8b, 0x80, 0, 0, 0, 0xc3),
		    CBK, 0, "through another register");
	/* lea rax, [CBK]; xor eax, eax; mov [rbx + 0x80], rax */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x31, 0xc0, 0x48, 0x89, 0x83, 0x80, 0, 0,
			  0, 0xc3),
		    0, 0, "overwritten in between");
	/* lea rax, [CBK]; call rdx; mov [rbx + 0x80], rax */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0xff, 0xd2, 0x48, 0x89, 0x83, 0x80, 0, 0,
			  0, 0xc3),
		    0, 0, "a call overwrites rax");
	/* lea rbp, [CBK]; call rdx; mov [rbx + 0x80], rbp */
	expect_code(BYTES(0x48, 0x8d, 0x2d, 0x79, 0, 0, 0, 0xff, 0xd2, 0x48, 0x89, 0xab, 0x80, 0, 0,
			  0, 0xc3),
		    CBK, 0, "but not rbp");
}

static void test_detours(void)
{
	/* lea rax, [CBK]; mov [rsp + 8], rax; push rdx; call rdx; mov rcx, [rsp + 16];
	 * mov [rbx + 0x80], rcx */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x48, 0x89, 0x44, 0x24, 0x08, 0x52, 0xff,
			  0xd2, 0x48, 0x8b, 0x4c, 0x24, 0x10, 0x48, 0x89, 0x8b, 0x80, 0, 0, 0,
			  0xc3),
		    CBK, 0, "through a stack slot, while rsp moves");
	/* lea rax, [CBK]; lea rdx, [CBK2]; test edi, edi; cmove rax, rdx; mov [rbx + 0x80], rax */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x48, 0x8d, 0x15, 0x92, 0, 0, 0, 0x85,
			  0xff, 0x48, 0x0f, 0x44, 0xc2, 0x48, 0x89, 0x83, 0x80, 0, 0, 0, 0xc3),
		    CBK, CBK2, "either of two");
	/* test edi, edi; je L (to the second lea); lea rax, [CBK]; jmp M; L: lea rax, [CBK2];
	 * M: mov [rbx + 0x80], rax */
	expect_code(BYTES(0x85, 0xff, 0x74, 0x09, 0x48, 0x8d, 0x05, 0x75, 0, 0, 0, 0xeb, 0x07, 0x48,
			  0x8d, 0x05, 0x8c, 0, 0, 0, 0x48, 0x89, 0x83, 0x80, 0, 0, 0, 0xc3),
		    CBK, CBK2, "by two paths");
	/* lea rax, [CBK]; test edi, edi; jne L; xor eax, eax; ret; L: mov [rbx + 0x80], rax; ret */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x85, 0xff, 0x75, 0x03, 0x31, 0xc0, 0xc3,
			  0x48, 0x89, 0x83, 0x80, 0, 0, 0, 0xc3),
		    CBK, 0, "over a return in between");
	/* lea rax, [CBK]; movq xmm1, rax; movq xmm0, rdi; punpcklqdq xmm0, xmm1;
	 * movups [rbx + 0x78], xmm0 */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x66, 0x48, 0x0f, 0x6e, 0xc8, 0x66, 0x48,
			  0x0f, 0x6e, 0xc7, 0x66, 0x0f, 0x6c, 0xc1, 0x0f, 0x11, 0x43, 0x78, 0xc3),
		    CBK, 0, "as upper half of a vector");
	/* lea rax, [CBK]; movq xmm0, rax; pinsrq xmm0, rdi, 1; movups [rbx + 0x80], xmm0 */
	expect_code(BYTES(0x48, 0x8d, 0x05, 0x79, 0, 0, 0, 0x66, 0x48, 0x0f, 0x6e, 0xc0, 0x66, 0x48,
			  0x0f, 0x3a, 0x22, 0xc7, 0x01, 0x0f, 0x11, 0x83, 0x80, 0, 0, 0, 0xc3),
		    CBK, 0, "as lower half");
}

/* A constant in the data segment, filled by a relocation: "mov rax, [rip + X]". */
static void test_constant(void)
{
	/* mov rax, [IMAGE_DATA_VADDR + 0x40]: disp = 0x12040 - 7; mov [rbx + 0x80], rax */
	const uint8_t code[] = { 0x48, 0x8b, 0x05, 0x39, 0x20, 0x01, 0,   0x48,
				 0x89, 0x83, 0x80, 0,    0,    0,    0xc3 };
	static struct elf_image image;
	struct gluster_callbacks found = { 0 };
	struct elf_file *elf = NULL;

	image_init(&image, EM_X86_64);
	image_put(&image, ENTRY, code, sizeof(code));
	image_func(&image, ENTRY, sizeof(code));
	image_func(&image, CBK, 0x10);
	image_rela(&image, IMAGE_DATA_VADDR + 0x40, 8, CBK);
	if (elf_open_memory(image.bytes, IMAGE_BYTES, &elf)) {
		ok(false, "cannot open the image");
		return;
	}
	is_int(gluster_site_callbacks(elf, &layout, &found), 0, "a relocated constant");
	ok(found.n == 1 && found.funcs[0].start == CBK, "is followed");
	ok(found.stores == 1 && found.resolved == 1, "and counted");
	gluster_site_free(&found);
	is_int(gluster_site_callbacks(elf, &(struct gluster_layout){ .frame_ret = 0xffff }, &found),
	       -EINVAL, "a layout without the offset");
	elf_close(elf);
}

static struct elf_file *open_tables(uint16_t machine, bool with_api, bool with_fops)
{
	static struct elf_image image;
	struct elf_file *elf = NULL;

	image_init(&image, machine);
	if (with_api)
		image_symbol(&image, "xlator_api", STT_OBJECT, 1, IMAGE_DATA_VADDR, 0x80);
	if (with_fops)
		image_symbol(&image, "fops", STT_OBJECT, 1, IMAGE_DATA_VADDR + 0x400, 0x1b0);
	image_rela(&image, IMAGE_DATA_VADDR + 0x60, 8, IMAGE_DATA_VADDR + 0x100);
	image_rela(&image, IMAGE_DATA_VADDR + 0x100 + 0x60, 8, CBK);  /* slot 12 */
	image_rela(&image, IMAGE_DATA_VADDR + 0x400 + 0x88, 8, CBK2); /* slot 17 */
	image_rela(&image, IMAGE_DATA_VADDR + 0x400, 8, ENTRY);       /* slot 0 */
	return elf_open_memory(image.bytes, IMAGE_BYTES, &elf) ? NULL : elf;
}

static void test_fops(void)
{
	uint64_t fops[GLUSTER_MAX_FOP] = { 0 };
	struct elf_file *elf = open_tables(EM_X86_64, true, true);

	is_int(gluster_site_fops(elf, &layout, fops), 0, "xlator_api wins");
	is_int((long long)fops[13], CBK, "slot 12 is fop 13, writev");
	is_int((long long)fops[12], 0, "an empty slot is 0");
	is_int(gluster_site_fops(elf, &layout_312, fops), 0, "3.12: the exported fops");
	is_int((long long)fops[13], CBK2, "whose slot 17 is writev");
	is_int((long long)fops[27], ENTRY, "and slot 0 lookup");
	elf_close(elf);

	elf = open_tables(EM_X86_64, false, true);
	is_int(gluster_site_fops(elf, &layout_5, fops), 0, "5: most modules export fops only");
	is_int((long long)fops[1], ENTRY, "whose slot 0 is fop 1, stat");
	is_int((long long)fops[18], CBK2, "and slot 17 fop 18");
	elf_close(elf);

	fops[5] = 77;
	elf = open_tables(EM_X86_64, false, false);
	is_int(gluster_site_fops(elf, &layout, fops), -ENOENT, "neither table");
	is_int((long long)fops[5], 77, "leaves the result alone");
	elf_close(elf);
}

/* ---- a module compiled here ----------------------------------------------------------------- */

static const char module_source[] =
	"typedef int (*cbk_t)(void *, void *, int);\n"
	"struct frame { char pad[0x78]; void *this; cbk_t ret; int op; };\n"
	"extern struct frame *get_frame(void *);\n"
	"extern int external_cbk(void *, void *, int);\n"
	"extern int wind(struct frame *, void *, int, int, int, int, int, int);\n"
	"#define CBK(n) static int cbk_##n(void *f, void *c, int r)\\\n"
	"	{ return wind(f, c, r, n, 1, 2, 3, 4); }\n"
	"CBK(1) CBK(2) CBK(3) CBK(4) CBK(5)\n"
	"static int unused_as_cbk(void *f, void *c, int r)\n"
	"	{ return wind(f, c, r, 9, 0, 0, 0, 0); }\n"
	"cbk_t exported = unused_as_cbk;\n"
	"static inline __attribute__((always_inline)) int go(void *f, cbk_t fn) {\n"
	"	struct frame *n = get_frame(f); if (!n) return -1;\n"
	"	n->this = f; n->ret = fn; n->op = 3; return wind(n, f, 1, 2, 3, 4, 5, 6); }\n"
	"int fop_a(void *f) { return go(f, cbk_1); }\n"
	"int fop_b(void *f, int x) { return x ? go(f, cbk_2) : go(f, cbk_3); }\n"
	"int fop_c(void *f, int n) { int i, r = 0;\n"
	"	for (i = 0; i < n; i++) r += go(f, cbk_4); return r; }\n"
	"int fop_d(void *f, int x) { return go(f, x ? cbk_5 : cbk_1); }\n"
	"int fop_e(void *f) { return go(f, external_cbk); }\n";

/* Run a shell command line, made of constants, in our own temporary directory. */
static int run_in(const char *dir, const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd %s && %s", dir, command);
	return system(line); /* NOLINT(cert-env33-c): a compiler is a command */
}

/* nm's addresses of cbk_1 ... cbk_5, before stripping. */
static int read_symbols(const char *dir, uint64_t addrs[6])
{
	char line[256], path[256];
	int n = 0;
	FILE *nm;

	snprintf(path, sizeof(path), "nm %s/m.so", dir);
	nm = popen(path, "r"); /* NOLINT(cert-env33-c): as above */
	while (nm && fgets(line, sizeof(line), nm)) {
		const char *name = strstr(line, " t cbk_");

		if (name && name[7] >= '1' && name[7] <= '5') {
			addrs[name[7] - '0'] = strtoull(line, NULL, 16);
			n++;
		}
	}
	if (nm)
		pclose(nm);
	return n;
}

static void check_module(const char *dir, const char *flags)
{
	struct gluster_callbacks found = { 0 };
	uint64_t addrs[6] = { 0 };
	struct elf_file *elf = NULL;
	unsigned int hit = 0, i;
	char path[256];
	size_t k;

	if (read_symbols(dir, addrs) != 5) {
		ok(false, "%s: the compiler kept all five callbacks", flags);
		return;
	}
	snprintf(path, sizeof(path), "%s/stripped.so", dir);
	if (!is_int(elf_open(path, &elf), 0, "%s: the stripped module opens", flags))
		return;
	is_int(gluster_site_callbacks(elf, &layout, &found), 0, "%s: callbacks", flags);
	for (k = 0; k < found.n; k++) {
		for (i = 1; i <= 5; i++)
			hit += found.funcs[k].start == addrs[i];
	}
	ok(hit == 5 && found.n == 5, "%s: exactly the five that are stored (%u of %zu)", flags, hit,
	   found.n);
	ok(found.stores > found.resolved, "%s: the external one is counted, not resolved", flags);
	gluster_site_free(&found);
	elf_close(elf);
}

static void test_compiled(void)
{
	static const char *const flags[] = { "-O2", "-O1", "-O3 -march=x86-64-v3",
					     "-O2 -fcf-protection=full -fno-omit-frame-pointer" };
	char dir[] = "/tmp/bricktop-test-site-XXXXXX", path[256], build[400];
	FILE *source;
	size_t i;

#ifndef __x86_64__
	skip("a compiled module", "callbacks are found in x86-64 code only");
	return;
#endif
	if (run_in("/", "cc --version >/dev/null 2>&1 && nm --version >/dev/null 2>&1") ||
	    !mkdtemp(dir)) {
		skip("a compiled module", "no compiler here");
		return;
	}
	snprintf(path, sizeof(path), "%s/m.c", dir);
	source = fopen(path, "w");
	if (!source || fputs(module_source, source) < 0 || fclose(source)) {
		ok(false, "cannot write %s", path);
		return;
	}
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		snprintf(build, sizeof(build),
			 "cc %s -fno-ipa-icf -fPIC -shared -o m.so m.c && "
			 "strip -o stripped.so m.so",
			 flags[i]);
		if (is_int(run_in(dir, build), 0, "cc %s", flags[i]))
			check_module(dir, flags[i]);
	}
	run_in(dir, "rm -f m.c m.so stripped.so");
	rmdir(dir);
}

/* ---- the installed ones --------------------------------------------------------------------- */

/*
 * Callbacks and fops that version 10.3 of Debian 12 has; "at least", because another build may
 * inline one function more or less.
 */
static void check_installed(const char *name, size_t min_callbacks, int want_fops)
{
	struct gluster_callbacks found = { 0 };
	uint64_t fops[GLUSTER_MAX_FOP] = { 0 };
	struct elf_file *elf = NULL;
	int n_fops = 0, err, i;
	char path[256];

	snprintf(path, sizeof(path), MODULES "%s", name);
	err = elf_open(path, &elf);
	if (err) {
		skip(name, "GlusterFS 10.3 is not installed here");
		return;
	}
	err = gluster_site_callbacks(elf, &layout, &found);
	ok(!err && found.n >= min_callbacks, "%s: %zu callbacks, at least %zu", name, found.n,
	   min_callbacks);
	diag("%s: %u stores at the offset, %u of functions of its own", name, found.stores,
	     found.resolved);
	err = gluster_site_fops(elf, &layout, fops);
	for (i = 0; i < GLUSTER_MAX_FOP; i++)
		n_fops += fops[i] != 0;
	is_int(err ? err : n_fops, want_fops, "%s: its fops", name);
	gluster_site_free(&found);
	elf_close(elf);
}

int main(void)
{
	test_stores();
	test_detours();
	test_constant();
	test_fops();
	test_compiled();
	check_installed("protocol/server.so", 100, 0);
	check_installed("mount/fuse.so", 28, 0);
	check_installed("performance/write-behind.so", 7, 17);
	check_installed("cluster/afr.so", 65, 46);
	check_installed("cluster/ec.so", 40, 45);
	check_installed("features/locks.so", 36, 46);
	return tap_done();
}
