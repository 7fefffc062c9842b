// SPDX-License-Identifier: Apache-2.0
/*
 * test_site.c: the choice of the cheapest probe site, on hand-assembled functions. What the bytes
 * mean is in the comment beside them (Intel syntax); the expected answers follow from the kernel's
 * rules.
 */
#include "site.h"

#include "elf_image.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>

#define ENTRY      (IMAGE_TEXT_VADDR + 0x100)
#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

/* Want: distance >= 0 and emulated; STEPPED: the entry, single-stepped. */
#define STEPPED -1

static int choose(uint16_t machine, const uint8_t *code, size_t len, unsigned int live,
		  bool cheap_only, struct site *ret_site)
{
	static struct elf_image image;
	struct elf_file *elf = NULL;
	int err;

	image_init(&image, machine);
	image_put(&image, ENTRY, code, len);
	image_func(&image, ENTRY, (uint32_t)len);
	err = elf_open_memory(image.bytes, IMAGE_BYTES, &elf);
	if (err)
		return err;
	err = site_choose(elf, ENTRY, ENTRY + len, live, cheap_only, ret_site);
	elf_close(elf);
	return err;
}

static void expect(const uint8_t *code, size_t len, unsigned int live, int want,
		   const char *want_insn, const char *what)
{
	uint32_t distance = want == STEPPED ? 0 : (uint32_t)want;
	struct site site = { 0 };
	int err = choose(EM_X86_64, code, len, live, false, &site);

	ok(!err && site.distance_bytes == distance && site.vaddr == ENTRY + distance &&
		   site.offset == IMAGE_TEXT_OFFSET + 0x100 + distance &&
		   site.class == (want == STEPPED ? SITE_STEPPED : SITE_EMULATED) &&
		   !strcmp(site.insn, want_insn),
	   "%s", what);
	if (err || strcmp(site.insn, want_insn) != 0)
		diag("error %d, got '%s' at +%u", err, site.insn, site.distance_bytes);
}

static void test_first_instruction(void)
{
	/* push rbp; mov rbp, rsp; ret */
	expect(BYTES(0x55, 0x48, 0x89, 0xe5, 0xc3), SITE_ARG0, 0, "push rbp", "push first");
	/* push r15; push r14; ret */
	expect(BYTES(0x41, 0x57, 0x41, 0x56, 0xc3), SITE_ARG0, 0, "push r15", "push with a prefix");
	/* nop; ret */
	expect(BYTES(0x90, 0xc3), SITE_ARG0, 0, "nop", "nop");
	/* data16 nop; ret */
	expect(BYTES(0x66, 0x90, 0xc3), SITE_ARG0, 0, "nop", "nop with a prefix");
	/* jmp +0x10 */
	expect(BYTES(0xeb, 0x10), SITE_ARG0, 0, "jmp 0x11112", "a tail call, short");
	/* jmp +0x100 */
	expect(BYTES(0xe9, 0x00, 0x01, 0x00, 0x00), SITE_ARG0, 0, "jmp 0x11205", "or near");
	/* call +0; ret: the arguments are still intact before it */
	expect(BYTES(0xe8, 0, 0, 0, 0, 0xc3), SITE_ARG0, 0, "call 0x11105", "a call");
}

static void test_not_emulated(void)
{
	/* nop word [rax + rax]; ret */
	expect(BYTES(0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3), SITE_ARG0, STEPPED,
	       "nop word ptr [rax + rax]", "a long nop is not cheap everywhere");
	/* push 5; ret */
	expect(BYTES(0x6a, 0x05, 0xc3), 0, STEPPED, "push 5", "push of a constant");
	/* push qword [rdi]; ret */
	expect(BYTES(0xff, 0x37, 0xc3), 0, STEPPED, "push qword ptr [rdi]", "push of memory");
	/* jmp rax */
	expect(BYTES(0xff, 0xe0), 0, STEPPED, "jmp rax", "an indirect jump");
	/* call rax; ret */
	expect(BYTES(0xff, 0xd0, 0xc3), SITE_ARG0, STEPPED, "call rax", "an indirect call");
	/* xchg r8, rax (0x90 with REX.B); ret */
	expect(BYTES(0x49, 0x90, 0xc3), 0, STEPPED, "xchg rax, r8", "0x90 that is no nop");
	/* jrcxz +2; ret */
	expect(BYTES(0xe3, 0x02, 0xc3, 0xc3, 0xc3), 0, STEPPED, "jrcxz 0x11104", "jrcxz");
	/* ret */
	expect(BYTES(0xc3), 0, STEPPED, "ret", "ret alone");
	/* ret; push rbp */
	expect(BYTES(0xc3, 0x55), 0, STEPPED, "ret", "nothing is looked for behind ret");
}

static void test_later_site(void)
{
	/* endbr64; push rbp; ret */
	expect(BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0xc3), SITE_ARG0, 4, "push rbp",
	       "CET: the push behind endbr64");
	/* sub rsp, 8; call +0; add rsp, 8; ret */
	expect(BYTES(0x48, 0x83, 0xec, 0x08, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x08, 0xc3),
	       SITE_ARG0, 4, "call 0x11109", "sub rsp, then a call");
	/* sub rsp, 8; mov rax, [rdi]; ret */
	expect(BYTES(0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x07, 0xc3), SITE_ARG0, STEPPED,
	       "sub rsp, 8", "sub rsp and nothing cheap");
	/* mov rax, [rdi]; test rax, rax; je +1; nop; ret */
	expect(BYTES(0x48, 0x8b, 0x07, 0x48, 0x85, 0xc0, 0x74, 0x01, 0x90, 0xc3), SITE_ARG0, 6,
	       "je 0x11109", "the conditional jump that ends the block");
	/* test rdi, rdi; je near +1; push rbp; ret */
	expect(BYTES(0x48, 0x85, 0xff, 0x0f, 0x84, 1, 0, 0, 0, 0x55, 0xc3), SITE_ARG0, 3,
	       "je 0x1110a", "a near conditional jump");
}

static void test_live_arguments(void)
{
	/* mov rdi, rsi; push rbp; ret */
	const uint8_t moved[] = { 0x48, 0x89, 0xf7, 0x55, 0xc3 };

	expect(moved, sizeof(moved), SITE_ARG0, STEPPED, "mov rdi, rsi",
	       "rdi is overwritten before the push");
	expect(moved, sizeof(moved), SITE_ARG1, 3, "push rbp", "which is fine if rsi is wanted");
	expect(moved, sizeof(moved), 0, 3, "push rbp", "or nothing");
	/* xor edi, edi; push rbp; ret */
	expect(BYTES(0x31, 0xff, 0x55, 0xc3), SITE_ARG0, STEPPED, "xor edi, edi",
	       "a write to the lower half counts");
	/* mov dil, 1; push rbp; ret */
	expect(BYTES(0x40, 0xb7, 0x01, 0x55, 0xc3), SITE_ARG0, STEPPED, "mov dil, 1",
	       "and one to the lowest byte");
	/* mul rsi; push rbp: rdx without naming it */
	expect(BYTES(0x48, 0xf7, 0xe6, 0x55, 0xc3), SITE_ARG2, STEPPED, "mul rsi",
	       "and one that is not written out");
	/* xchg rdi, rax; push rbp */
	expect(BYTES(0x48, 0x97, 0x55, 0xc3), SITE_ARG0, STEPPED, "xchg rax, rdi", "xchg");
	/* rep movsb; push rbp */
	expect(BYTES(0xf3, 0xa4, 0x55, 0xc3), SITE_ARG3, STEPPED,
	       "rep movsb byte ptr [rdi], byte ptr [rsi]", "rep moves rcx");
	/* mov r9d, 1; push rbp */
	expect(BYTES(0x41, 0xb9, 1, 0, 0, 0, 0x55, 0xc3), SITE_ARG5, STEPPED, "mov r9d, 1", "r9");
	/* mov r8, rdi; push rbp */
	expect(BYTES(0x49, 0x89, 0xf8, 0x55, 0xc3), SITE_ARG4, STEPPED, "mov r8, rdi", "r8");
	/* call rax; push rbp: the callee may have overwritten all */
	expect(BYTES(0xff, 0xd0, 0x55, 0xc3), SITE_ARG1, STEPPED, "call rax",
	       "a call ends all arguments");
}

static void test_loop(void)
{
	/* mov rax, [rdi]; L: push rax; pop rax; dec rsi; jne L; ret: a hit for each turn */
	const uint8_t looped[] = {
		0x48, 0x8b, 0x07, 0x50, 0x58, 0x48, 0xff, 0xce, 0x75, 0xf9, 0xc3
	};
	/* mov rax, [rdi]; push rax; L: pop rax; dec rsi; jne L; ret: the loop begins behind it */
	const uint8_t behind[] = {
		0x48, 0x8b, 0x07, 0x50, 0x58, 0x48, 0xff, 0xce, 0x75, 0xfa, 0xc3
	};

	expect(looped, sizeof(looped), SITE_ARG0, STEPPED, "mov rax, qword ptr [rdi]",
	       "an instruction inside a loop is no site");
	expect(behind, sizeof(behind), SITE_ARG0, 3, "push rax", "one before the loop is");
}

static void test_errors(void)
{
	const uint8_t stepped[] = { 0x48, 0x8b, 0x07, 0xc3 }; /* mov rax, [rdi]; ret */
	const uint8_t push[] = { 0x55, 0xc3 };
	const uint8_t junk[] = { 0x06, 0x06 }; /* no instruction in 64-bit mode */
	static struct elf_image image;
	struct site site = { .distance_bytes = 99 };
	struct elf_file *elf = NULL;

	is_int(choose(EM_X86_64, stepped, sizeof(stepped), SITE_ARG0, true, &site), -ENOENT,
	       "cheap only, but there is none");
	is_int(choose(EM_X86_64, junk, sizeof(junk), 0, false, &site), -EILSEQ, "no instruction");
	is_int(choose(EM_386, push, sizeof(push), 0, false, &site), -EOPNOTSUPP,
	       "an architecture that is not known");
	image_init(&image, EM_X86_64);
	image_put(&image, IMAGE_TEXT_VADDR + 0xffe, push, sizeof(push));
	if (elf_open_memory(image.bytes, IMAGE_BYTES, &elf)) {
		ok(false, "cannot open the image");
		return;
	}
	is_int(site_choose(elf, 0x500000, 0, 0, false, &site), -ERANGE, "outside the object");
	is_int(site.distance_bytes, 99, "a failure leaves the result alone");
	is_int(site_choose(elf, IMAGE_TEXT_VADDR + 0xffe, 0, 0, false, &site), 0,
	       "two bytes before the segment's end");
	is_str(site.insn, "push rbp", "the instruction there is read");
	elf_close(elf);
}

static void test_arm64(void)
{
	const uint8_t stp[] = { 0xfd, 0x7b, 0xbf, 0xa9 };  /* stp x29, x30, [sp, #-16]! */
	const uint8_t branch[] = { 0x04, 0, 0, 0x14 };     /* b +16 */
	const uint8_t nop[] = { 0x1f, 0x20, 0x03, 0xd5 };  /* nop */
	const uint8_t bti[] = { 0x5f, 0x24, 0x03, 0xd5 };  /* bti c */
	const uint8_t adrp[] = { 0x00, 0x00, 0x00, 0x90 }; /* adrp x0, 0 */
	struct site site = { 0 };

	is_int(choose(EM_AARCH64, stp, 4, SITE_ARG0, false, &site), 0, "arm64: the entry");
	ok(site.class == SITE_STEPPED && site.distance_bytes == 0, "stp is stepped");
	is_int(choose(EM_AARCH64, stp, 4, SITE_ARG0, true, &site), -ENOENT, "and not cheap");
	choose(EM_AARCH64, bti, 4, SITE_ARG0, false, &site);
	is_int(site.class, SITE_STEPPED, "bti is stepped");
	choose(EM_AARCH64, branch, 4, SITE_ARG0, false, &site);
	is_int(site.class, SITE_EMULATED, "b is simulated");
	choose(EM_AARCH64, adrp, 4, SITE_ARG0, false, &site);
	is_int(site.class, SITE_EMULATED, "adrp is simulated");
	choose(EM_AARCH64, nop, 4, SITE_ARG0, false, &site);
	is_int(site.class, SITE_EMULATED, "nop is simulated");
}

static void test_text(void)
{
	struct site site = { .class = SITE_EMULATED, .distance_bytes = 4, .insn = "push r15" };
	char text[128];

	site_text(&site, text, sizeof(text));
	is_str(text, "push r15 at +4, emulated", "the explanation");
	site.class = SITE_STEPPED;
	site_text(&site, text, sizeof(text));
	is_str(text, "push r15 at +4, single-stepped", "of either class");
}

int main(void)
{
	test_first_instruction();
	test_not_emulated();
	test_later_site();
	test_live_arguments();
	test_loop();
	test_errors();
	test_arm64();
	test_text();
	return tap_done();
}
