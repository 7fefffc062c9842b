// SPDX-License-Identifier: Apache-2.0
/*
 * test_uprobe.c: both kinds of uprobe links on a child process with two threads: exact hit counts
 * by cookie, nobody else's hits, and nothing left in the child's code once the links are closed.
 */
#include "uprobe.h"

#include "calibrate.skel.h"
#include "tap.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIT_SLOTS 16
#define COOKIE_A  3
#define COOKIE_B  5

/* The probed functions; the first byte of each is known (x86-64: push, arm64: nop). */
void probed_a(void);
void probed_b(void);

#if defined(__x86_64__)
#define BODY       "push %rbp\n pop %rbp\n ret\n"
#define FIRST_BYTE 0x55
#else
#define BODY       "nop\n ret\n"
#define FIRST_BYTE 0x1f
#endif

/* clang-format off */
__asm__(".pushsection .text\n .balign 16\n"
	".global probed_a\n .type probed_a, %function\n probed_a:\n " BODY
	".size probed_a, . - probed_a\n .balign 16\n"
	".global probed_b\n .type probed_b, %function\n probed_b:\n " BODY
	".size probed_b, . - probed_b\n .popsection\n");
/* clang-format on */

struct child {
	pid_t pid;
	int to, from; /* pipes */
};

static void call_probed(int times_a, int times_b)
{
	while (times_a-- > 0)
		probed_a();
	while (times_b-- > 0)
		probed_b();
}

static void *second_thread(void *arg)
{
	call_probed(300, 200);
	return arg;
}

/* At each byte that comes: 1,000 + 300 calls of a, 500 + 200 of b, then a byte back. */
static void run_child(int in, int out)
{
	pthread_t thread;
	char byte;

	while (read(in, &byte, 1) == 1) {
		if (pthread_create(&thread, NULL, second_thread, NULL))
			_exit(1);
		call_probed(1000, 500);
		pthread_join(thread, NULL);
		if (write(out, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static bool start_child(struct child *child)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		return false;
	child->pid = fork();
	if (child->pid < 0)
		return false;
	if (child->pid == 0) {
		close(to[1]);
		close(from[0]);
		run_child(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	child->to = to[1];
	child->from = from[0];
	return true;
}

static bool let_run(const struct child *child)
{
	char byte = 'g';

	call_probed(40, 40); /* this process's own calls must not count */
	return write(child->to, &byte, 1) == 1 && read(child->from, &byte, 1) == 1;
}

static void stop_child(struct child *child)
{
	close(child->to);
	close(child->from);
	waitpid(child->pid, NULL, 0);
}

/* What the child has as first byte of a function: both processes run the same image. */
static int first_byte(const struct child *child, void (*func)(void))
{
	unsigned char byte = 0;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)child->pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || pread(fd, &byte, 1, (off_t)(uintptr_t)func) != 1)
		byte = 0;
	if (fd >= 0)
		close(fd);
	return byte;
}

static uint64_t file_offset(void (*func)(void))
{
	uint64_t at = (uintptr_t)func, found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		/* "start-end rwxp offset ..." */
		char *next = line;
		uint64_t start = strtoull(next, &next, 16);
		uint64_t end = strtoull(next + 1, &next, 16);

		if (at >= start && at < end)
			found = at - start + strtoull(next + 6, NULL, 16);
	}
	if (maps)
		fclose(maps);
	return found;
}

static uint64_t count_of(const struct calibrate *skel, uint32_t slot)
{
	uint64_t count = UINT64_MAX;

	bpf_map_lookup_elem(bpf_map__fd(skel->maps.hits), &slot, &count);
	return count;
}

static uint64_t count_all(const struct calibrate *skel)
{
	uint64_t sum = 0;
	uint32_t slot;

	for (slot = 0; slot < HIT_SLOTS; slot++)
		sum += count_of(skel, slot);
	return sum;
}

static struct calibrate *load(enum uprobe_kind kind)
{
	struct calibrate *skel = calibrate__open();

	if (!skel)
		return NULL;
	bpf_program__set_autoload(skel->progs.on_hit__multi, kind == UPROBE_MULTI);
	bpf_program__set_autoload(skel->progs.on_hit__perf, kind == UPROBE_PERF);
	bpf_program__set_expected_attach_type(skel->progs.on_hit__multi,
					      (enum bpf_attach_type)UPROBE_MULTI_ATTACH_TYPE);
	if (calibrate__load(skel)) {
		calibrate__destroy(skel);
		return NULL;
	}
	return skel;
}

static void check_counts(const struct child *child, const struct calibrate *skel,
			 struct uprobe_links *links, const char *name)
{
	is_int(first_byte(child, probed_a) != FIRST_BYTE, 1, "%s: a breakpoint is in", name);
	ok(let_run(child), "%s: the child runs", name);
	is_int((long long)count_of(skel, COOKIE_A), 1300, "%s: hits of the first, both threads",
	       name);
	is_int((long long)count_of(skel, COOKIE_B), 700, "%s: hits of the second", name);
	is_int((long long)count_all(skel), 2000, "%s: and no others", name);
	uprobe_links_close(links);
	ok(links->n == 0 && links->fds == NULL, "%s: closed", name);
	is_int(first_byte(child, probed_a), FIRST_BYTE, "%s: the breakpoint is gone", name);
	is_int(first_byte(child, probed_b), FIRST_BYTE, "%s: the other one too", name);
	ok(let_run(child), "%s: the child runs on", name);
	is_int((long long)count_all(skel), 2000, "%s: and nothing counts", name);
}

/* One bad site: none of the call's links stays, those from before do. */
static void check_failures(const struct child *child, enum uprobe_kind kind, int prog,
			   const struct uprobe_site *good, const char *name)
{
	const struct uprobe_site sites[] = { good[0], { "/zz-nonexistent/lib.so", 0x1000, 1 } };
	struct uprobe_links links = { 0 };
	char err[256] = "";
	pid_t gone;
	int code;

	is_int(uprobe_attach(kind, prog, child->pid, sites, 2, &links, err, sizeof(err)), -ENOENT,
	       "%s: a file that is not there", name);
	ok(strstr(err, "/zz-nonexistent/lib.so") != NULL && !strchr(err, '\n'),
	   "%s: is named in one line", name);
	diag("%s", err);
	is_int((long long)links.n, 0, "%s: no link stays", name);
	is_int(first_byte(child, probed_a), FIRST_BYTE, "%s: nor does a breakpoint", name);
	gone = fork();
	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	is_int(uprobe_attach(kind, prog, gone, good, 1, &links, err, sizeof(err)), -ESRCH,
	       "%s: a process that is gone", name);
	is_int(uprobe_attach(kind, prog, child->pid, good, 0, &links, err, sizeof(err)), 0,
	       "%s: no sites at all", name);
	code = uprobe_attach(kind == UPROBE_MULTI ? UPROBE_PERF : UPROBE_MULTI, prog, child->pid,
			     good, 1, &links, err, sizeof(err));
	ok(code < 0 && err[0], "%s: a program of the other kind is refused (%d)", name, code);
	uprobe_links_close(&links);
}

static void test_kind(const struct child *child, enum uprobe_kind kind, const char *name)
{
	const struct uprobe_site sites[] = {
		{ "/proc/self/exe", file_offset(probed_a), COOKIE_A },
		{ "/proc/self/exe", file_offset(probed_b), COOKIE_B },
	};
	struct calibrate *skel = load(kind);
	struct uprobe_links links = { 0 };
	char err[256] = "";
	int prog, code;

	if (!ok(skel != NULL, "%s: the programs load", name))
		return;
	prog = bpf_program__fd(kind == UPROBE_MULTI ? skel->progs.on_hit__multi :
						      skel->progs.on_hit__perf);
	code = uprobe_attach(kind, prog, child->pid, sites, 2, &links, err, sizeof(err));
	if (kind == UPROBE_MULTI && code == -EINVAL) {
		skip(name, "this kernel has no uprobe-multi links");
		calibrate__destroy(skel);
		return;
	}
	is_int(code, 0, "%s: attach %s", name, err);
	is_int((long long)links.n, kind == UPROBE_MULTI ? 1 : 2, "%s: number of links", name);
	check_counts(child, skel, &links, name);
	check_failures(child, kind, prog, sites, name);
	calibrate__destroy(skel);
}

int main(void)
{
	struct child child = { 0 };

	libbpf_set_print(NULL);
	if (geteuid() != 0) {
		skip("uprobes", "needs root");
		return tap_done();
	}
	signal(SIGPIPE, SIG_IGN);
	if (!ok(start_child(&child), "a child with two threads"))
		return tap_done();
	test_kind(&child, UPROBE_MULTI, "multi");
	test_kind(&child, UPROBE_PERF, "perf");
	stop_child(&child);
	return tap_done();
}
