// SPDX-License-Identifier: Apache-2.0
/*
 * meter_calibrate.c: what a hit costs on this machine, as it is loaded now. The smallest programs
 * are attached to two functions of this executable and to the system calls' tracepoints, and calls
 * are timed in thread CPU time, so that other load on the machine does not count; the programs' own
 * run time, which the kernel knows, is taken off, less what knowing it adds.
 *
 * Other load does make each call dearer: caches are lost to it, and a processor shared with a busy
 * sibling is slower. So calls with a hook and without take turns, and of each kind the middle half
 * is averaged: what changes slowly is in both, and fits and starts are in neither.
 */
#include "meter.h"

#include "calibrate.skel.h"
#include "clock.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN_EXECUTABLE "/proc/self/exe"
#define EMULATED_CALLS 100
#define STEPPED_CALLS  20 /* of some 20 us */
#define ROUNDS         8  /* of attaching tracepoints: each waits for some ms */
#define SYSCALLS       4  /* in a row, as a thread makes them while it serves a request */
#define ROUND_CALLS    12 /* of so many system calls */
#define RUNS           51 /* of a program that is run by hand */
#define MAX_TIMES      128
#define CACHE_LINE     64
#define CACHE_BYTES    (1 << 20) /* where the size of the second-level cache is not known */

#if defined(__x86_64__)
#define EMULATED_BODY "push %rbp\n pop %rbp\n ret\n"
#define STEPPED_BODY  "mov %rdi, %rax\n ret\n"
#elif defined(__aarch64__)
#define EMULATED_BODY "nop\n ret\n"
#define STEPPED_BODY  "mov x0, x0\n ret\n"
#else
#error "meter_calibrate.c: which instructions does this architecture emulate under a uprobe?"
#endif

/* Each twice: one to be probed, one to be called without. */
/* clang-format off */
#define SITE(name, body)                                 \
	".balign 16\n"                                   \
	".global " name "\n .hidden " name "\n"          \
	".type " name ", %function\n" name ":\n " body   \
	".size " name ", . - " name "\n"

__asm__(".pushsection .text\n"
	SITE("meter_emulated_site", EMULATED_BODY)
	SITE("meter_emulated_twin", EMULATED_BODY)
	SITE("meter_stepped_site", STEPPED_BODY)
	SITE("meter_stepped_twin", STEPPED_BODY)
	".popsection\n");
/* clang-format on */

void meter_emulated_site(void);
void meter_emulated_twin(void);
void meter_stepped_site(void);
void meter_stepped_twin(void);

/* The cheapest system call, some times: all pay the same for the tracepoints. */
static void make_syscalls(void)
{
	int i;

	for (i = 0; i < SYSCALLS; i++)
		syscall(SYS_getppid);
}

/* ---- timing ------------------------------------------------------------ */

/*
 * Other work to be done before a call. A process that is hit some thousand times a second uses its
 * caches for itself in between: the way through the kernel is then two to three times as long as in
 * a loop. Half of the second-level cache stands for that.
 */
struct other_work {
	volatile char *memory;
	size_t bytes;
};

struct times {
	double ns[MAX_TIMES];
	size_t n;
};

static int compare_ns(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The mean of the middle half; sorts what it is given. */
static double middle_ns(struct times *t)
{
	size_t from = t->n / 4, to = t->n - from, i;
	double sum = 0;

	qsort(t->ns, t->n, sizeof(*t->ns), compare_ns);
	for (i = from; i < to; i++)
		sum += t->ns[i];
	return to > from ? sum / (double)(to - from) : 0;
}

/* CPU time of a call. Reading the clock takes some, with hooks and without. */
static void time_call(void (*func)(void), const struct other_work *work, struct times *t)
{
	uint64_t start;
	size_t i;

	for (i = 0; i < work->bytes; i += CACHE_LINE)
		work->memory[i]++;
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	func();
	if (t->n < MAX_TIMES)
		t->ns[t->n++] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start);
}

/* Run time of one hit of a program, since it was last asked; -ENODATA: it was hit less often. */
static int read_hit(int prog_fd, uint64_t calls, struct meter_prog *seen, struct times *t)
{
	struct meter_prog now;
	uint64_t hits;
	int err = meter_read_prog(prog_fd, &now);

	if (err)
		return err;
	hits = now.hits - seen->hits; /* on tracepoints those of other processes, too */
	if (hits < calls || !hits)
		return -ENODATA; /* a hook that misses would look cheap */
	if (t->n < MAX_TIMES)
		t->ns[t->n++] = (double)(now.run_ns - seen->run_ns) / (double)hits;
	*seen = now;
	return 0;
}

/*
 * What a hit of the program runs, each call of func hitting it so many times; less than nothing
 * where the statistics' own share is as much. 0, -ENODATA or -errno.
 */
static int time_runs(void (*func)(void), unsigned int hits, int prog_fd,
		     const struct other_work *work, double empty_ns, double *ret_ns)
{
	struct times runs = { .n = 0 }, ignored = { .n = 0 };
	struct meter_prog seen;
	int stats = meter_enable_stats(), i, err;

	if (stats < 0)
		return stats;
	err = meter_read_prog(prog_fd, &seen);
	for (i = 0; !err && i < STEPPED_CALLS; i++) {
		time_call(func, work, &ignored);
		err = read_hit(prog_fd, hits, &seen, &runs);
	}
	close(stats);
	*ret_ns = middle_ns(&runs) - empty_ns;
	return err;
}

/* Never below 0: of what costs next to nothing noise could make less than nothing. */
static double above_zero(double ns)
{
	return ns > 0 ? ns : 0;
}

/* ---- uprobes ----------------------------------------------------------- */

/* File offset of a function of this executable, by the mapping that it lies in. */
static int own_offset(void (*func)(void), uint64_t *ret_offset)
{
	uint64_t vaddr = (uint64_t)(uintptr_t)func;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int err = -ENOENT;

	if (!maps)
		return -errno;
	while (err && fgets(line, sizeof(line), maps)) {
		/* "start-end rwxp offset ..." */
		char *at = line;
		uint64_t start = strtoull(at, &at, 16);
		uint64_t end = *at == '-' ? strtoull(at + 1, &at, 16) : 0;

		if (vaddr >= start && vaddr < end && strlen(at) > 6) {
			*ret_offset = vaddr - start + strtoull(at + 6, NULL, 16);
			err = 0;
		}
	}
	fclose(maps);
	return err;
}

/* Both sites in one go, since detaching is what takes long. */
static int attach_sites(enum uprobe_kind kind, int prog_fd, struct uprobe_links *links, char *err,
			size_t err_size)
{
	struct uprobe_site site[2] = { { .path = OWN_EXECUTABLE }, { .path = OWN_EXECUTABLE } };
	int code = own_offset(meter_emulated_site, &site[0].offset);

	code = code ?: own_offset(meter_stepped_site, &site[1].offset);
	if (code) {
		snprintf(err, err_size, "cannot calibrate: no own mapping in /proc/self/maps: %s",
			 strerror(-code));
		return code;
	}
	return uprobe_attach(kind, prog_fd, getpid(), site, 2, links, err, err_size);
}

/* What a hit of one site costs beyond the program's run time. 0, or as time_runs(). */
static int price_site(void (*site)(void), void (*twin)(void), int calls, int prog_fd,
		      const struct other_work *work, double empty_ns, double *ret_ns)
{
	struct times with = { .n = 0 }, without = { .n = 0 };
	double run_ns;
	int i, err;

	/* the first hits break the page's sharing: not typical */
	site();
	twin();
	for (i = 0; i < calls; i++) {
		time_call(site, work, &with);
		time_call(twin, work, &without);
	}
	err = time_runs(site, 1, prog_fd, work, empty_ns, &run_ns);
	*ret_ns = above_zero(middle_ns(&with) - middle_ns(&without) - above_zero(run_ns));
	return err;
}

static void calibrate_uprobes(enum uprobe_kind kind, int prog_fd, const struct other_work *work,
			      struct meter_calibration *cal, char *err, size_t err_size)
{
	struct uprobe_links links = { 0 };

	if (attach_sites(kind, prog_fd, &links, err, err_size))
		return;
	cal->has_emulated = !price_site(meter_emulated_site, meter_emulated_twin, EMULATED_CALLS,
					prog_fd, work, cal->empty_ns, &cal->emulated_ns);
	cal->has_stepped = !price_site(meter_stepped_site, meter_stepped_twin, STEPPED_CALLS,
				       prog_fd, work, cal->empty_ns, &cal->stepped_ns);
	uprobe_links_close(&links);
	if (!cal->has_emulated || !cal->has_stepped)
		snprintf(err, err_size, "cannot calibrate uprobes: fewer hits than calls");
}

/* ---- tracepoints ------------------------------------------------------- */

/* The clock is read by a system call as well: between two readings lies one more than was made. */
#define HITS (2 * (SYSCALLS + 1))

/* Calls while nothing is attached, of a process that is not traced, and of one that is. */
struct tracepoint_times {
	struct times without, with, traced;
};

static void make_calls(const struct other_work *work, struct times *t)
{
	int i;

	for (i = 0; i < ROUND_CALLS; i++)
		time_call(make_syscalls, work, t);
}

/* One round; 0 or -errno, with the name of the tracepoint that is not to be had. */
static int time_round(const struct calibrate *skel, const struct other_work *work,
		      struct tracepoint_times *t, const char **ret_name)
{
	int enter = bpf_raw_tracepoint_open(NULL, bpf_program__fd(skel->progs.on_enter__btf));
	int leave = enter < 0 ? enter :
				bpf_raw_tracepoint_open(NULL,
							bpf_program__fd(skel->progs.on_exit__btf));
	int trace = bpf_program__fd(skel->progs.on_trace);
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	*ret_name = enter < 0 ? "sys_enter" : "sys_exit";
	if (leave >= 0) {
		make_calls(work, &t->with);
		if (!bpf_prog_test_run_opts(trace, &opts)) {
			make_calls(work, &t->traced);
			(void)bpf_prog_test_run_opts(trace, &opts);
		}
		close(leave);
	}
	if (enter >= 0)
		close(enter);
	make_calls(work, &t->without);
	return leave < 0 ? leave : 0;
}

/* Run time of a hit in a process that is not traced, the mean of both programs. */
static int time_filters(const struct calibrate *skel, const struct other_work *work,
			double empty_ns, double *ret_ns)
{
	int progs[2] = { bpf_program__fd(skel->progs.on_enter__btf),
			 bpf_program__fd(skel->progs.on_exit__btf) };
	double sum = 0, run_ns = 0;
	int i, link, err = 0;

	for (i = 0; !err && i < 2; i++) {
		link = bpf_raw_tracepoint_open(NULL, progs[i]);
		err = link < 0 ?
			      link :
			      time_runs(make_syscalls, SYSCALLS, progs[i], work, empty_ns, &run_ns);
		if (link >= 0)
			close(link);
		sum += run_ns;
	}
	*ret_ns = above_zero(sum / 2);
	return err;
}

static void calibrate_tracepoints(const struct calibrate *skel, const struct other_work *work,
				  struct meter_calibration *cal, char *err, size_t err_size)
{
	struct tracepoint_times t = { .without.n = 0 };
	double without, with, traced;
	const char *name = "";
	int i, code = 0;

	make_syscalls();
	for (i = 0; !code && i < ROUNDS; i++)
		code = time_round(skel, work, &t, &name);
	if (code) {
		snprintf(err, err_size, "cannot calibrate tracepoint '%s': %s", name,
			 strerror(-code));
		return;
	}
	if (time_filters(skel, work, cal->empty_ns, &cal->filter_ns)) {
		snprintf(err, err_size, "cannot calibrate tracepoints: fewer hits than calls");
		return;
	}
	without = middle_ns(&t.without);
	with = middle_ns(&t.with);
	traced = t.traced.n ? middle_ns(&t.traced) : with;
	cal->has_tracepoint = true;
	cal->tracepoint_ns = above_zero((with - without) / HITS - cal->filter_ns);
	cal->count_ns = cal->filter_ns + above_zero((traced - with) / HITS);
}

/* ---- all of it --------------------------------------------------------- */

/*
 * Programs that are run by hand: what one that does nothing takes by the kernel's statistics, and
 * what one finds between two readings of the clock. The second reading finds the way to the clock
 * in the caches, wherever the hit comes from: back to back is as in a busy process.
 */
static int run_by_hand(const struct calibrate *skel, double *ret_empty_ns, double *ret_clock_ns)
{
	int nothing = bpf_program__fd(skel->progs.on_nothing);
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	struct times empty = { .n = 0 }, clock = { .n = 0 };
	struct meter_prog seen = { 0 };
	unsigned int i;
	int err;

	for (i = 0; i < RUNS; i++) {
		err = bpf_prog_test_run_opts(nothing, &opts);
		err = err ?: read_hit(nothing, 1, &seen, &empty);
		err = err ?: bpf_prog_test_run_opts(bpf_program__fd(skel->progs.on_clock), &opts);
		if (err)
			return err;
		clock.ns[clock.n++] = opts.retval;
	}
	*ret_empty_ns = middle_ns(&empty);
	*ret_clock_ns = middle_ns(&clock);
	return 0;
}

/* To be taken off: before anything else, whose run times contain it. */
static void calibrate_readings(const struct calibrate *skel, struct meter_calibration *cal,
			       char *err, size_t err_size)
{
	int stats = meter_enable_stats();
	int code = stats < 0 ? stats : run_by_hand(skel, &cal->empty_ns, &cal->clock_ns);

	if (stats >= 0)
		close(stats);
	cal->has_empty = cal->has_clock = !code;
	if (code)
		snprintf(err, err_size,
			 "cannot calibrate what measuring a run time adds to it, which is not "
			 "taken off the cost: %s",
			 strerror(-code));
}

/*
 * The programs for the other kind of uprobe are not loaded: a kernel may refuse them, as one
 * without BTF refuses those for tracepoints.
 */
static int load_programs(enum uprobe_kind kind, bool tracepoints, struct calibrate **ret_skel)
{
	struct calibrate *skel = calibrate__open();
	int err = -errno;

	if (!skel)
		return err ? err : -ENOMEM;
	bpf_program__set_autoload(skel->progs.on_hit__multi, kind == UPROBE_MULTI);
	bpf_program__set_autoload(skel->progs.on_hit__perf, kind == UPROBE_PERF);
	bpf_program__set_autoload(skel->progs.on_enter__btf, tracepoints);
	bpf_program__set_autoload(skel->progs.on_exit__btf, tracepoints);
	err = bpf_program__set_expected_attach_type(skel->progs.on_hit__multi,
						    (enum bpf_attach_type)UPROBE_MULTI_ATTACH_TYPE);
	if (!err)
		err = calibrate__load(skel);
	if (err) {
		calibrate__destroy(skel);
		return err;
	}
	*ret_skel = skel;
	return 0;
}

static void calibrate_all(enum uprobe_kind kind, const struct calibrate *skel,
			  struct meter_calibration *cal, char *err, size_t err_size)
{
	int prog = bpf_program__fd(kind == UPROBE_MULTI ? skel->progs.on_hit__multi :
							  skel->progs.on_hit__perf);
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
	struct other_work work = { .bytes = (size_t)(cache > 0 ? cache : CACHE_BYTES) / 2 };

	work.memory = calloc(1, work.bytes);
	if (!work.memory) {
		snprintf(err, err_size, "cannot calibrate: out of memory");
		return;
	}
	calibrate_readings(skel, cal, err, err_size);
	calibrate_uprobes(kind, prog, &work, cal, err, err_size);
	if (bpf_program__fd(skel->progs.on_enter__btf) >= 0)
		calibrate_tracepoints(skel, &work, cal, err, err_size);
	free((void *)work.memory);
}

int meter_calibrate(enum uprobe_kind kind, struct meter_calibration *ret_cal, char *err,
		    size_t err_size)
{
	struct meter_calibration cal = { 0 };
	struct calibrate *skel = NULL;
	int stats, code;

	snprintf(err, err_size, "%s", "");
	stats = meter_enable_stats();
	if (stats < 0) {
		snprintf(err, err_size, "cannot enable BPF statistics: %s", strerror(-stats));
		return stats;
	}
	close(stats);
	code = load_programs(kind, true, &skel);
	if (code) {
		snprintf(err, err_size, "cannot load the calibration programs: %s",
			 strerror(-code));
		code = load_programs(kind, false, &skel);
	}
	if (code)
		return code;
	calibrate_all(kind, skel, &cal, err, err_size);
	calibrate__destroy(skel);
	if (cal.has_emulated || cal.has_stepped || cal.has_tracepoint)
		*ret_cal = cal;
	else
		code = -EOPNOTSUPP;
	return code;
}
