// SPDX-License-Identifier: Apache-2.0
/*
 * meter.c: measures bricktop itself. Calibration attaches the smallest programs to two functions of
 * this executable and to the system calls' tracepoints, and times calls in thread CPU time, so that
 * other load on the machine does not count; the programs' own run time, which the kernel knows, is
 * taken off.
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
#define BATCHES        20
#define EMULATED_BATCH 5 /* calls */
#define STEPPED_BATCH  2
#define SYSCALL_BATCH  5
#define SYSCALLS       4 /* in a row, as a thread makes them while it serves a request */
#define CACHE_LINE     64
#define CACHE_BYTES    (1 << 20) /* where the size of the second-level cache is not known */

/*
 * The two functions that are probed: the first starts with an instruction that the kernel emulates
 * (on x86-64 a push, as nearly all real sites), the second with one that it single-steps. In
 * assembly, so that no compiler flag puts another instruction (endbr64, a stack adjustment) in
 * front.
 */
void meter_emulated_site(void);
void meter_stepped_site(void);

#if defined(__x86_64__)
#define EMULATED_BODY "push %rbp\n pop %rbp\n ret\n"
#define STEPPED_BODY  "mov %rdi, %rax\n ret\n"
#elif defined(__aarch64__)
#define EMULATED_BODY "nop\n ret\n"
#define STEPPED_BODY  "mov x0, x0\n ret\n"
#else
#error "meter.c: which instructions does this architecture emulate under a uprobe?"
#endif

/* clang-format off */
__asm__(".pushsection .text\n"
	".balign 16\n"
	".global meter_emulated_site\n .hidden meter_emulated_site\n"
	".type meter_emulated_site, %function\n"
	"meter_emulated_site:\n " EMULATED_BODY
	".size meter_emulated_site, . - meter_emulated_site\n"
	".balign 16\n"
	".global meter_stepped_site\n .hidden meter_stepped_site\n"
	".type meter_stepped_site, %function\n"
	"meter_stepped_site:\n " STEPPED_BODY
	".size meter_stepped_site, . - meter_stepped_site\n"
	".popsection\n");
/* clang-format on */

/* The cheapest system call, some times: all pay the same for the tracepoints. */
static void make_syscalls(void)
{
	int i;

	for (i = 0; i < SYSCALLS; i++)
		syscall(SYS_getppid);
}

static int read_clock(clockid_t clock, uint64_t *ret_ns)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return -errno;
	*ret_ns = (uint64_t)ts.tv_sec * CLOCK_NS_PER_SEC + (uint64_t)ts.tv_nsec;
	return 0;
}

/* Programs that a call runs into, each so many times. */
struct hooks {
	int fd[2];
	unsigned int n, hits;
};

struct timing {
	double call_ns; /* of a call, its hooks' run time taken off */
	double run_ns;  /* the hooks' run time in a call, each program's hits together */
	bool missed;    /* fewer hits than calls: a hook that misses would look cheap */
};

/* Run time of one hit of a program, since it was last asked. */
static double hit_run_ns(int prog_fd, unsigned int calls, struct meter_prog *seen, bool *missed)
{
	struct meter_prog now = *seen;
	uint64_t hits, run_ns;

	if (meter_read_prog(prog_fd, &now))
		*missed = true;
	hits = now.hits - seen->hits; /* on tracepoints those of other processes, too */
	run_ns = now.run_ns - seen->run_ns;
	*seen = now;
	if (hits < calls || !hits)
		*missed = true;
	return hits ? (double)run_ns / (double)hits : 0;
}

static int compare_calls(const void *a, const void *b)
{
	const struct timing *x = a, *y = b;

	return (x->call_ns > y->call_ns) - (x->call_ns < y->call_ns);
}

/*
 * Other work to be done between two calls. A process that is hit some thousand times a second uses
 * its caches for itself in between: the way through the kernel is then two to three times as long
 * as in a loop. Half of the second-level cache stands for that.
 */
struct other_work {
	volatile char *memory; /* NULL: none */
	size_t bytes;
};

static void do_other_work(const struct other_work *work)
{
	size_t i;

	for (i = 0; work->memory && i < work->bytes; i += CACHE_LINE)
		work->memory[i]++;
}

/* CPU time of one batch. Reading the clock takes some, with hooks and without. */
static uint64_t time_batch(void (*func)(void), unsigned int batch, const struct other_work *work)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID), sum = 0;
	unsigned int i;

	for (i = 0; i < batch; i++) {
		if (work->memory) {
			do_other_work(work);
			start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		}
		func();
		if (work->memory || i == batch - 1)
			sum += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	}
	return sum;
}

/* Call func in BATCHES batches; the median batch. */
static struct timing time_calls(void (*func)(void), unsigned int batch,
				const struct other_work *work, const struct hooks *hooks)
{
	struct timing timing[BATCHES] = { { 0 } };
	struct meter_prog seen[2] = { { 0 } };
	unsigned int b, i;
	bool missed = false;

	for (i = 0; i < hooks->n; i++)
		hit_run_ns(hooks->fd[i], 0, &seen[i], &missed);
	missed = false;
	for (b = 0; b < BATCHES; b++) {
		timing[b].call_ns = (double)time_batch(func, batch, work) / batch;
		for (i = 0; i < hooks->n; i++)
			timing[b].run_ns +=
				hooks->hits * hit_run_ns(hooks->fd[i], batch, &seen[i], &missed);
		timing[b].call_ns -= timing[b].run_ns;
	}
	qsort(timing, BATCHES, sizeof(timing[0]), compare_calls);
	timing[BATCHES / 2].missed = missed;
	return timing[BATCHES / 2];
}

static const struct hooks no_hooks = { .n = 0 };

/* Never below 0: of a hook that costs next to nothing noise could make less than nothing. */
static double overhead_ns(const struct timing *without, const struct timing *with)
{
	double ns = with->call_ns - without->call_ns;

	return ns > 0 ? ns : 0;
}

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

static void time_sites(const struct other_work *work, const struct hooks *hooks,
		       struct timing *ret_emulated, struct timing *ret_stepped)
{
	/* the first hits break the page's sharing: not typical */
	meter_emulated_site();
	meter_stepped_site();
	*ret_emulated = time_calls(meter_emulated_site, EMULATED_BATCH, work, hooks);
	*ret_stepped = time_calls(meter_stepped_site, STEPPED_BATCH, work, hooks);
}

static void calibrate_uprobes(enum uprobe_kind kind, int prog_fd, const struct other_work *work,
			      struct meter_calibration *cal, char *err, size_t err_size)
{
	const struct hooks hooks = { .fd = { prog_fd }, .n = 1, .hits = 1 };
	struct uprobe_links links = { 0 };
	struct timing emulated[2], stepped[2];

	time_sites(work, &no_hooks, &emulated[0], &stepped[0]);
	if (attach_sites(kind, prog_fd, &links, err, err_size))
		return;
	time_sites(work, &hooks, &emulated[1], &stepped[1]);
	uprobe_links_close(&links);
	if (emulated[1].missed || stepped[1].missed)
		snprintf(err, err_size, "cannot calibrate uprobes: fewer hits than calls");
	cal->has_emulated = !emulated[1].missed;
	cal->emulated_ns = overhead_ns(&emulated[0], &emulated[1]);
	cal->has_stepped = !stepped[1].missed;
	cal->stepped_ns = overhead_ns(&stepped[0], &stepped[1]);
}

/* The clock is read by a system call as well: between two readings lies one more than was made. */
static void calibrate_tracepoints(int enter_fd, int exit_fd, const struct other_work *work,
				  struct meter_calibration *cal, char *err, size_t err_size)
{
	const struct hooks hooks = { .fd = { enter_fd, exit_fd }, .n = 2, .hits = SYSCALLS + 1 };
	struct timing call[2];
	int enter, leave;

	make_syscalls();
	call[0] = time_calls(make_syscalls, SYSCALL_BATCH, work, &no_hooks);
	enter = bpf_raw_tracepoint_open(NULL, enter_fd);
	leave = enter < 0 ? enter : bpf_raw_tracepoint_open(NULL, exit_fd);
	if (leave >= 0)
		call[1] = time_calls(make_syscalls, SYSCALL_BATCH, work, &hooks);
	if (leave < 0)
		snprintf(err, err_size, "cannot calibrate tracepoint '%s': %s",
			 enter < 0 ? "sys_enter" : "sys_exit", strerror(-leave));
	else if (call[1].missed)
		snprintf(err, err_size, "cannot calibrate tracepoints: fewer hits than calls");
	if (leave >= 0 && !call[1].missed) {
		cal->has_tracepoint = true;
		cal->tracepoint_ns = overhead_ns(&call[0], &call[1]) / (2 * hooks.hits);
		cal->filter_ns = call[1].run_ns / (2 * hooks.hits);
	}
	if (leave >= 0)
		close(leave);
	if (enter >= 0)
		close(enter);
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
	int enter = bpf_program__fd(skel->progs.on_enter__btf);
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
	struct other_work work = { .bytes = (size_t)(cache > 0 ? cache : CACHE_BYTES) / 2 };

	work.memory = calloc(1, work.bytes);
	if (!work.memory) {
		snprintf(err, err_size, "cannot calibrate: out of memory");
		return;
	}
	calibrate_uprobes(kind, prog, &work, cal, err, err_size);
	if (enter >= 0)
		calibrate_tracepoints(enter, bpf_program__fd(skel->progs.on_exit__btf), &work, cal,
				      err, err_size);
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
	code = load_programs(kind, true, &skel);
	if (code) {
		snprintf(err, err_size, "cannot load the calibration programs: %s",
			 strerror(-code));
		code = load_programs(kind, false, &skel);
	}
	if (code)
		goto out_stats;
	calibrate_all(kind, skel, &cal, err, err_size);
	calibrate__destroy(skel);
	if (cal.has_emulated || cal.has_stepped || cal.has_tracepoint)
		*ret_cal = cal;
	else
		code = -EOPNOTSUPP;

out_stats:
	close(stats);
	return code;
}

int meter_enable_stats(void)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	return fd < 0 ? -errno : fd;
}

int meter_read_prog(int prog_fd, struct meter_prog *ret_prog)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len))
		return -errno;
	ret_prog->run_ns = info.run_time_ns;
	ret_prog->hits = info.run_cnt;
	ret_prog->missed = info.recursion_misses;
	return 0;
}

int meter_own_cpu_ns(uint64_t *ret_ns)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID, ret_ns);
}

/* A process's CPU clock is exact to the ns and keeps what ended threads used; /proc has 10 ms
 * ticks. */
int meter_target_cpu_ns(pid_t pid, uint64_t *ret_ns)
{
	clockid_t clock;
	int code = clock_getcpuclockid(pid, &clock);

	return code ? -code : read_clock(clock, ret_ns);
}

static double hits_ns(const struct meter_calibration *cal, uint64_t emulated, uint64_t stepped,
		      uint64_t tracepoint)
{
	return cal->emulated_ns * (double)emulated + cal->stepped_ns * (double)stepped +
	       cal->tracepoint_ns * (double)tracepoint;
}

static double target_paid_ns(const struct meter_calibration *cal, const struct meter_interval *in)
{
	const struct meter_target *t = &in->target;
	uint64_t all = in->emulated_hits + in->stepped_hits;
	uint64_t own = t->emulated_hits + t->stepped_hits;
	double ns = hits_ns(cal, t->emulated_hits, t->stepped_hits, t->tracepoint_hits);

	/* the two counts are not read at once: own may be a few ahead */
	if (all)
		ns += (double)in->uprobe_run_ns * (own < all ? (double)own / (double)all : 1);
	return ns + cal->filter_ns * (double)t->tracepoint_hits + (double)t->tracepoint_work_ns;
}

/* What was hit has a calibrated price. */
static bool has_prices(const struct meter_calibration *cal, uint64_t emulated, uint64_t stepped,
		       uint64_t tracepoint)
{
	return (cal->has_emulated || !emulated) && (cal->has_stepped || !stepped) &&
	       (cal->has_tracepoint || !tracepoint);
}

void meter_compute(const struct meter_calibration *cal, const struct meter_interval *interval,
		   struct meter_cost *ret_cost)
{
	struct meter_cost cost = { 0 };
	const struct meter_target *t = &interval->target;
	bool known = !interval->not_counted &&
		     has_prices(cal, interval->emulated_hits, interval->stepped_hits,
				interval->tracepoint_hits);
	bool known_target =
		known && has_prices(cal, t->emulated_hits, t->stepped_hits, t->tracepoint_hits) &&
		(t->has_tracepoints || !interval->tracepoint_hits);

	cost.trap_ns = (uint64_t)hits_ns(cal, interval->emulated_hits, interval->stepped_hits,
					 interval->tracepoint_hits);
	cost.bpf_ns = interval->uprobe_run_ns + interval->tracepoint_run_ns;
	cost.own_ns = interval->own_cpu_ns;
	cost.target_ns = (uint64_t)target_paid_ns(cal, interval);
	if (interval->wall_ns) {
		cost.has_own = true;
		cost.own_pct = 100 * (double)cost.own_ns / (double)interval->wall_ns;
	}
	if (interval->has_target && cost.target_ns > interval->target_cpu_ns)
		cost.target_ns = interval->target_cpu_ns;
	if (known && interval->wall_ns) {
		cost.has_core = true;
		cost.core_pct = 100 * (double)(cost.trap_ns + cost.bpf_ns + cost.own_ns) /
				(double)interval->wall_ns;
	}
	if (known_target && interval->has_target && interval->target_cpu_ns) {
		cost.has_target = true;
		cost.target_pct = 100 * (double)cost.target_ns / (double)interval->target_cpu_ns;
	}
	*ret_cost = cost;
}
