// SPDX-License-Identifier: Apache-2.0
/*
 * meter.c: measures bricktop itself. Calibration attaches the smallest programs to two functions of
 * this executable and to the system calls' tracepoints, and times calls in thread CPU time, so that
 * other load on the machine does not count; the programs' own run time, which the kernel knows, is
 * taken off, less what knowing it adds.
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
#define RUNS           51 /* of a program that is run by hand */
#define SYSCALLS       4  /* in a row, as a thread makes them while it serves a request */
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
	double call_ns; /* of a call */
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

static int compare_ns(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts what it is given. */
static double median_ns(double *ns, size_t n)
{
	qsort(ns, n, sizeof(*ns), compare_ns);
	return ns[n / 2];
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

/* Call func in BATCHES batches; the medians. */
static struct timing time_calls(void (*func)(void), unsigned int batch,
				const struct other_work *work, const struct hooks *hooks)
{
	double call_ns[BATCHES], run_ns[BATCHES] = { 0 };
	struct timing timing = { .missed = false };
	struct meter_prog seen[2] = { { 0 } };
	unsigned int b, i;

	for (i = 0; i < hooks->n; i++)
		hit_run_ns(hooks->fd[i], 0, &seen[i], &timing.missed);
	timing.missed = false;
	for (b = 0; b < BATCHES; b++) {
		call_ns[b] = (double)time_batch(func, batch, work) / batch;
		for (i = 0; i < hooks->n; i++)
			run_ns[b] += hooks->hits *
				     hit_run_ns(hooks->fd[i], batch, &seen[i], &timing.missed);
	}
	timing.call_ns = median_ns(call_ns, BATCHES);
	timing.run_ns = median_ns(run_ns, BATCHES);
	return timing;
}

static const struct hooks no_hooks = { .n = 0 };

/*
 * Calls with hooks: run times while the kernel counts them, and the calls' own while it does not,
 * as it does not for most of the time.
 */
static struct timing time_hooked(void (*func)(void), unsigned int batch,
				 const struct other_work *work, const struct hooks *hooks)
{
	int stats = meter_enable_stats();
	struct timing timing;

	if (stats < 0)
		return (struct timing){ .missed = true };
	timing = time_calls(func, batch, work, hooks);
	close(stats);
	timing.call_ns = time_calls(func, batch, work, &no_hooks).call_ns;
	return timing;
}

/* Never below 0: of what costs next to nothing noise could make less than nothing. */
static double above_zero(double ns)
{
	return ns > 0 ? ns : 0;
}

/* What the hits of one call cost beyond their programs' own run time. */
static double overhead_ns(const struct timing *without, const struct timing *with, double run_ns)
{
	return above_zero(with->call_ns - without->call_ns - run_ns);
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

/* hooks: NULL while nothing is attached. */
static void time_sites(const struct other_work *work, const struct hooks *hooks,
		       struct timing *ret_emulated, struct timing *ret_stepped)
{
	/* the first hits break the page's sharing: not typical */
	meter_emulated_site();
	meter_stepped_site();
	if (!hooks) {
		*ret_emulated = time_calls(meter_emulated_site, EMULATED_BATCH, work, &no_hooks);
		*ret_stepped = time_calls(meter_stepped_site, STEPPED_BATCH, work, &no_hooks);
	} else {
		*ret_emulated = time_hooked(meter_emulated_site, EMULATED_BATCH, work, hooks);
		*ret_stepped = time_hooked(meter_stepped_site, STEPPED_BATCH, work, hooks);
	}
}

static void calibrate_uprobes(enum uprobe_kind kind, int prog_fd, const struct other_work *work,
			      struct meter_calibration *cal, char *err, size_t err_size)
{
	const struct hooks hooks = { .fd = { prog_fd }, .n = 1, .hits = 1 };
	struct uprobe_links links = { 0 };
	struct timing emulated[2], stepped[2];

	time_sites(work, NULL, &emulated[0], &stepped[0]);
	if (attach_sites(kind, prog_fd, &links, err, err_size))
		return;
	time_sites(work, &hooks, &emulated[1], &stepped[1]);
	uprobe_links_close(&links);
	if (emulated[1].missed || stepped[1].missed)
		snprintf(err, err_size, "cannot calibrate uprobes: fewer hits than calls");
	cal->has_emulated = !emulated[1].missed;
	cal->emulated_ns = overhead_ns(&emulated[0], &emulated[1],
				       above_zero(emulated[1].run_ns - cal->empty_ns));
	cal->has_stepped = !stepped[1].missed;
	cal->stepped_ns = overhead_ns(&stepped[0], &stepped[1],
				      above_zero(stepped[1].run_ns - cal->empty_ns));
}

/* How dear a hit of the tracepoints is, of calls without them and with them. */
static void price_tracepoints(const struct hooks *hooks, const struct timing *without,
			      const struct timing *with, const struct timing *traced,
			      struct meter_calibration *cal)
{
	unsigned int hits = hooks->n * hooks->hits;

	cal->has_tracepoint = true;
	cal->filter_ns = above_zero(with->run_ns / hits - cal->empty_ns);
	cal->tracepoint_ns = overhead_ns(without, with, hits * cal->filter_ns) / hits;
	cal->count_ns = cal->filter_ns + above_zero(traced->call_ns - with->call_ns) / hits;
}

/* The clock is read by a system call as well: between two readings lies one more than was made. */
static void calibrate_tracepoints(const struct calibrate *skel, const struct other_work *work,
				  struct meter_calibration *cal, char *err, size_t err_size)
{
	const struct hooks hooks = { .fd = { bpf_program__fd(skel->progs.on_enter__btf),
					     bpf_program__fd(skel->progs.on_exit__btf) },
				     .n = 2,
				     .hits = SYSCALLS + 1 };
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	struct timing call[3];
	int enter, leave;

	make_syscalls();
	call[0] = time_calls(make_syscalls, SYSCALL_BATCH, work, &no_hooks);
	enter = bpf_raw_tracepoint_open(NULL, hooks.fd[0]);
	leave = enter < 0 ? enter : bpf_raw_tracepoint_open(NULL, hooks.fd[1]);
	if (leave >= 0) {
		call[1] = time_hooked(make_syscalls, SYSCALL_BATCH, work, &hooks);
		call[2] = call[1];
		if (!bpf_prog_test_run_opts(bpf_program__fd(skel->progs.on_trace), &opts))
			call[2] = time_calls(make_syscalls, SYSCALL_BATCH, work, &no_hooks);
	}
	if (leave < 0)
		snprintf(err, err_size, "cannot calibrate tracepoint '%s': %s",
			 enter < 0 ? "sys_enter" : "sys_exit", strerror(-leave));
	else if (call[1].missed)
		snprintf(err, err_size, "cannot calibrate tracepoints: fewer hits than calls");
	if (leave >= 0 && !call[1].missed)
		price_tracepoints(&hooks, &call[0], &call[1], &call[2], cal);
	if (leave >= 0)
		close(leave);
	if (enter >= 0)
		close(enter);
}

/*
 * Programs that are run by hand: what one that does nothing takes by the kernel's statistics, and
 * what one finds between two readings of the clock. The second reading finds the way to the clock
 * in the caches, wherever the hit comes from: back to back is as in a busy process.
 */
static int run_by_hand(const struct calibrate *skel, double *ret_empty_ns, double *ret_clock_ns)
{
	int nothing = bpf_program__fd(skel->progs.on_nothing);
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	double empty_ns[RUNS], clock_ns[RUNS];
	struct meter_prog seen = { 0 };
	bool missed = false;
	unsigned int i;
	int err;

	for (i = 0; i < RUNS; i++) {
		err = bpf_prog_test_run_opts(nothing, &opts);
		if (err)
			return err;
		empty_ns[i] = hit_run_ns(nothing, 1, &seen, &missed);
		err = bpf_prog_test_run_opts(bpf_program__fd(skel->progs.on_clock), &opts);
		if (err)
			return err;
		clock_ns[i] = opts.retval;
	}
	if (missed)
		return -ENODATA;
	*ret_empty_ns = median_ns(empty_ns, RUNS);
	*ret_clock_ns = median_ns(clock_ns, RUNS);
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

void meter_target_since(struct meter_target *now, const struct meter_target *before)
{
	now->emulated_hits -= before->emulated_hits;
	now->stepped_hits -= before->stepped_hits;
	now->tracepoint_hits -= before->tracepoint_hits;
	now->tracepoint_work_ns -= before->tracepoint_work_ns;
	now->timed_hits -= before->timed_hits;
}

static double hits_ns(const struct meter_calibration *cal, uint64_t emulated, uint64_t stepped,
		      uint64_t tracepoint)
{
	return cal->emulated_ns * (double)emulated + cal->stepped_ns * (double)stepped +
	       cal->tracepoint_ns * (double)tracepoint;
}

/* A run time of so many hits, less what measuring added to each: 0 where that is not known. */
static double own_run_ns(uint64_t run_ns, uint64_t hits, double added_ns)
{
	return above_zero((double)run_ns - (double)hits * added_ns);
}

static double uprobes_run_ns(const struct meter_calibration *cal, const struct meter_interval *in)
{
	return own_run_ns(in->uprobe_run_ns, in->emulated_hits + in->stepped_hits, cal->empty_ns);
}

static double target_paid_ns(const struct meter_calibration *cal, const struct meter_interval *in)
{
	const struct meter_target *t = &in->target;
	uint64_t all = in->emulated_hits + in->stepped_hits;
	uint64_t own = t->emulated_hits + t->stepped_hits;
	double ns = hits_ns(cal, t->emulated_hits, t->stepped_hits, t->tracepoint_hits);

	/* the two counts are not read at once: own may be a few ahead */
	if (all)
		ns += uprobes_run_ns(cal, in) * (own < all ? (double)own / (double)all : 1);
	return ns + cal->count_ns * (double)t->tracepoint_hits +
	       own_run_ns(t->tracepoint_work_ns, t->timed_hits, cal->clock_ns);
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
		     interval->uprobe_hits <= interval->emulated_hits + interval->stepped_hits &&
		     has_prices(cal, interval->emulated_hits, interval->stepped_hits,
				interval->tracepoint_hits);
	bool known_target =
		known && has_prices(cal, t->emulated_hits, t->stepped_hits, t->tracepoint_hits) &&
		(t->has_tracepoints || !interval->tracepoint_hits);

	cost.trap_ns = (uint64_t)hits_ns(cal, interval->emulated_hits, interval->stepped_hits,
					 interval->tracepoint_hits);
	cost.bpf_ns = (uint64_t)(uprobes_run_ns(cal, interval) +
				 own_run_ns(interval->tracepoint_run_ns, interval->tracepoint_hits,
					    cal->empty_ns));
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
