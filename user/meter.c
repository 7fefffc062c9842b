// SPDX-License-Identifier: Apache-2.0
/*
 * meter.c: measures bricktop itself. Calibration attaches counting programs to two functions of
 * this executable and to one system call and times calls of them in thread CPU time, so that other
 * load on the machine does not count; the programs' own run time, which the kernel knows, is taken
 * off.
 */
#include "meter.h"

#include "calibrate.skel.h"
#include "util_tracefs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S        1000000000ULL
#define OWN_EXECUTABLE  "/proc/self/exe"
#define BATCH_CALLS     250
#define EMULATED_CALLS  20000
#define EMULATED_CPU_NS 20000000ULL
#define STEPPED_CALLS   2000
#define STEPPED_CPU_NS  10000000ULL
#define SYSCALL_CALLS   10000
#define SYSCALL_CPU_NS  8000000ULL
#define TRACED_SYSCALL  "pread64"

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

/* Fails with EBADF at once, in the middle of the tracepoints' way through the kernel. */
static void call_traced_syscall(void)
{
	syscall(SYS_pread64, -1, NULL, 0, 0);
}

/* The cheapest system call that is not traced. */
static void call_other_syscall(void)
{
	syscall(SYS_getppid);
}

static int read_clock(clockid_t clock, uint64_t *ret_ns)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return -errno;
	*ret_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return 0;
}

static uint64_t thread_cpu_ns(void)
{
	uint64_t ns = 0;

	read_clock(CLOCK_THREAD_CPUTIME_ID, &ns);
	return ns;
}

struct timing {
	uint64_t calls, cpu_ns;
};

/* Call func max_calls times, or until it took max_ns of CPU time. */
static struct timing time_calls(void (*func)(void), uint64_t max_calls, uint64_t max_ns)
{
	uint64_t start = thread_cpu_ns();
	struct timing timing = { 0, 0 };
	unsigned int i;

	while (timing.calls < max_calls && timing.cpu_ns < max_ns) {
		for (i = 0; i < BATCH_CALLS; i++)
			func();
		timing.calls += BATCH_CALLS;
		timing.cpu_ns = thread_cpu_ns() - start;
	}
	return timing;
}

static double per_call_ns(const struct timing *timing)
{
	return (double)timing->cpu_ns / (double)timing->calls;
}

/*
 * (calls with the hook - programs' run time) - (calls without), never below 0: of a hook that costs
 * next to nothing noise could make less than nothing.
 */
static double overhead_ns(const struct timing *without, const struct timing *with, uint64_t run_ns)
{
	double ns = per_call_ns(with) - per_call_ns(without) - (double)run_ns / (double)with->calls;

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

static int calibrate_uprobe(enum uprobe_kind kind, int prog_fd, void (*func)(void),
			    uint64_t max_calls, uint64_t max_ns, double *ret_ns, char *err,
			    size_t err_size)
{
	struct uprobe_site site = { .path = OWN_EXECUTABLE };
	struct uprobe_links links = { 0 };
	struct meter_prog before = { 0 }, after = { 0 };
	struct timing without, with;
	int code;

	code = own_offset(func, &site.offset);
	if (code) {
		snprintf(err, err_size, "cannot calibrate: no own mapping in /proc/self/maps: %s",
			 strerror(-code));
		return code;
	}
	without = time_calls(func, max_calls, max_ns);
	code = uprobe_attach(kind, prog_fd, getpid(), false, &site, 1, &links, err, err_size);
	if (code)
		return code;
	func(); /* the first hit breaks the page's sharing: not typical */
	code = meter_read_prog(prog_fd, &before);
	with = time_calls(func, max_calls, max_ns);
	if (!code)
		code = meter_read_prog(prog_fd, &after);
	uprobe_links_close(&links);
	if (!code && after.hits - before.hits != with.calls)
		code = -EIO; /* a probe that misses hits would make them look cheap */
	if (code) {
		snprintf(err, err_size, "cannot calibrate uprobes: hits and calls differ: %s",
			 strerror(-code));
		return code;
	}
	*ret_ns = overhead_ns(&without, &with, after.run_ns - before.run_ns);
	return 0;
}

/* Attach a program to a tracepoint, host-wide: BPF programs on tracepoints know no pid. fd or
 * -errno */
static int attach_tracepoint(int prog_fd, const char *category, const char *name)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_TRACEPOINT };
	int id, fd, code;

	id = util_tracefs_event_id(category, name);
	if (id < 0)
		return id;
	attr.config = (uint64_t)id;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		code = -errno;
		close(fd);
		return code;
	}
	return fd;
}

static int calibrate_tracepoint(int enter_fd, int exit_fd, struct meter_calibration *cal)
{
	struct timing traced[2], other[2];
	struct meter_prog before[2] = { 0 }, after[2] = { 0 };
	uint64_t run_ns, hits;
	int enter, leave = -EBADF, code;

	traced[0] = time_calls(call_traced_syscall, SYSCALL_CALLS, SYSCALL_CPU_NS);
	other[0] = time_calls(call_other_syscall, SYSCALL_CALLS, SYSCALL_CPU_NS);
	enter = attach_tracepoint(enter_fd, "syscalls", "sys_enter_" TRACED_SYSCALL);
	if (enter >= 0)
		leave = attach_tracepoint(exit_fd, "syscalls", "sys_exit_" TRACED_SYSCALL);
	if (leave < 0) {
		code = enter < 0 ? enter : leave;
		goto out_close;
	}
	other[1] = time_calls(call_other_syscall, SYSCALL_CALLS, SYSCALL_CPU_NS);
	code = meter_read_prog(enter_fd, &before[0]);
	code = code ? code : meter_read_prog(exit_fd, &before[1]);
	traced[1] = time_calls(call_traced_syscall, SYSCALL_CALLS, SYSCALL_CPU_NS);
	code = code ? code : meter_read_prog(enter_fd, &after[0]);
	code = code ? code : meter_read_prog(exit_fd, &after[1]);
	/* Other processes may have added hits; fewer would mean that the hook does not fire. */
	hits = after[1].hits - before[1].hits;
	if (!code && (hits == 0 || hits < traced[1].calls))
		code = -EIO;
	if (code)
		goto out_close;
	/* Their share of the run time: by our share of the hits. */
	run_ns = (after[0].run_ns - before[0].run_ns + after[1].run_ns - before[1].run_ns) *
		 traced[1].calls / hits;
	cal->tracepoint_ns = overhead_ns(&traced[0], &traced[1], run_ns) / 2;
	cal->bystander_ns = overhead_ns(&other[0], &other[1], 0);
	cal->has_tracepoint = true;

out_close:
	if (leave >= 0)
		close(leave);
	if (enter >= 0)
		close(enter);
	return code;
}

/* The programs for the other kind of uprobe are not loaded: a kernel may refuse them. */
static int load_programs(enum uprobe_kind kind, struct calibrate **ret_skel)
{
	struct calibrate *skel = calibrate__open();
	int err = -errno;

	if (!skel)
		return err ? err : -ENOMEM;
	bpf_program__set_autoload(skel->progs.on_hit__multi, kind == UPROBE_MULTI);
	bpf_program__set_autoload(skel->progs.on_hit__perf, kind == UPROBE_PERF);
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
	int code;

	cal->has_emulated = !calibrate_uprobe(kind, prog, meter_emulated_site, EMULATED_CALLS,
					      EMULATED_CPU_NS, &cal->emulated_ns, err, err_size);
	cal->has_stepped = !calibrate_uprobe(kind, prog, meter_stepped_site, STEPPED_CALLS,
					     STEPPED_CPU_NS, &cal->stepped_ns, err, err_size);
	code = calibrate_tracepoint(bpf_program__fd(skel->progs.on_enter__tp),
				    bpf_program__fd(skel->progs.on_exit__tp), cal);
	if (code)
		snprintf(err, err_size, "cannot calibrate tracepoint 'sys_enter_%s': %s",
			 TRACED_SYSCALL, strerror(-code));
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
	code = load_programs(kind, &skel);
	if (code) {
		snprintf(err, err_size, "cannot load the calibration programs: %s",
			 strerror(-code));
		goto out_stats;
	}
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

void meter_compute(const struct meter_calibration *cal, const struct meter_interval *interval,
		   struct meter_cost *ret_cost)
{
	struct meter_cost cost = { 0 };
	bool known = (cal->has_emulated || !interval->emulated_hits) &&
		     (cal->has_stepped || !interval->stepped_hits) &&
		     (cal->has_tracepoint || !interval->tracepoint_hits);
	double total;

	if (cal->has_emulated)
		cost.trap_ns += (uint64_t)(cal->emulated_ns * (double)interval->emulated_hits);
	if (cal->has_stepped)
		cost.trap_ns += (uint64_t)(cal->stepped_ns * (double)interval->stepped_hits);
	if (cal->has_tracepoint)
		cost.trap_ns += (uint64_t)(cal->tracepoint_ns * (double)interval->tracepoint_hits);
	cost.bpf_ns = interval->bpf_run_ns;
	cost.own_ns = interval->own_cpu_ns;
	total = (double)cost.trap_ns + (double)cost.bpf_ns + (double)cost.own_ns;
	if (known && interval->wall_ns) {
		cost.has_core = true;
		cost.core_pct = 100 * total / (double)interval->wall_ns;
	}
	if (known && interval->has_target && interval->target_cpu_ns) {
		cost.has_target = true;
		cost.target_pct = 100 * total / (double)interval->target_cpu_ns;
	}
	*ret_cost = cost;
}
