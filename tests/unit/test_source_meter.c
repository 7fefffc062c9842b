// SPDX-License-Identifier: Apache-2.0
/*
 * test_source_meter.c: hits of a child process that calls a probed function as often as it is told,
 * with a clock of the test's own: counted to the hit whether the kernel's statistics are on or not,
 * and run times that go on from what was sampled. Needs root.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procmem.h"
#include "source_priv.h"
#include "tap.h"

#define MS 1000000ULL

__attribute__((noinline, noclone)) static void probed(void *frame)
{
	__asm__ volatile("" : : "r"(frame) : "memory");
}

struct bed {
	struct source *src;
	struct source_probes probes;
	pid_t child;
	int orders, done;
};

static void obey(int orders, int done)
{
	unsigned int n, i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(orders, &n, sizeof(n)) == (ssize_t)sizeof(n)) {
		for (i = 0; i < n; i++)
			probed(NULL);
		if (write(done, "", 1) != 1)
			break;
	}
	_exit(0);
}

static void hit(const struct bed *b, unsigned int n)
{
	char byte;

	if (write(b->orders, &n, sizeof(n)) != (ssize_t)sizeof(n) || read(b->done, &byte, 1) != 1)
		exit(1);
}

static void open_bed(struct bed *b)
{
	struct source_config config = { .n_targets = 1, .layers_off = ~0ULL };
	struct uprobe_site site = { .path = "/proc/self/exe", .cookie = WIRE_SITE_TOP };
	struct wire_proc proc = { .root = WIRE_ROOT_BRICK };
	const struct wire_layout layout = { 0 };
	uint64_t at = (uint64_t)(uintptr_t)probed;
	struct procmaps maps = { 0 };
	const struct procmap *map;
	int orders[2], done[2];
	char err[256] = "";

	memset(b, 0, sizeof(*b));
	if (pipe(orders) || pipe(done) || source_open(&config, &b->src, err, sizeof(err)) ||
	    procmaps_load(getpid(), &maps)) {
		diag("%s", err);
		exit(1);
	}
	b->child = fork();
	if (!b->child)
		obey(orders[0], done[1]);
	b->orders = orders[1];
	b->done = done[0];
	map = procmaps_find(&maps, at);
	site.offset = map ? at - map->start + map->offset : 0;
	procmaps_free(&maps);
	source_set_proc(b->src, b->child, &proc, &layout);
	is_int(source_probe_callbacks(b->src, b->child, &site, 1, &b->probes, err, sizeof(err)), 0,
	       "a function of the child is probed");
}

static void close_bed(struct bed *b)
{
	source_probes_close(&b->probes);
	kill(b->child, SIGKILL);
	waitpid(b->child, NULL, 0);
	source_close(b->src);
}

static struct meter_interval ask(struct bed *b, uint64_t now_ns)
{
	struct meter_interval interval = { 0 };

	source_meter(b->src, now_ns, &interval);
	return interval;
}

static void test_samples(void)
{
	struct meter_interval in;
	double price_ns;
	struct bed b;

	open_bed(&b);
	source_meter_look(b.src, 1000 * MS);
	ok(b.src->stats_fd >= 0, "the first look begins a sample");
	in = ask(&b, 1000 * MS);
	is_int((long long)in.emulated_hits, 0, "nothing was hit yet");
	hit(&b, 200);
	in = ask(&b, 1050 * MS);
	is_int((long long)in.emulated_hits, 200, "200 hits");
	ok(in.uprobe_run_ns > 0 && !in.not_counted, "took some time");
	source_meter_look(b.src, 1150 * MS);
	ok(b.src->stats_fd >= 0, "so few hits do not end the sample");
	hit(&b, 1000);
	source_meter_look(b.src, 1200 * MS);
	is_int(b.src->stats_fd, -1, "many do");
	in = ask(&b, 1250 * MS);
	is_int((long long)in.emulated_hits, 1000, "which are counted all the same");
	price_ns = (double)in.uprobe_run_ns / 1000;
	hit(&b, 500);
	in = ask(&b, 1300 * MS);
	is_int((long long)in.emulated_hits, 500, "so are those outside of any sample");
	is_int((long long)(in.uprobe_run_ns / 500), (long long)price_ns,
	       "at the price of those inside");
	source_meter_look(b.src, 1999 * MS);
	is_int(b.src->stats_fd, -1, "for the rest of the second");
	source_meter_look(b.src, 2001 * MS);
	ok(b.src->stats_fd >= 0, "then the next sample begins");
	hit(&b, 100);
	source_forget_proc(b.src, b.child);
	hit(&b, 7);
	in = ask(&b, 2100 * MS);
	is_int((long long)in.emulated_hits, 100, "hits of a process that was forgotten are kept");
	close_bed(&b);
}

/* A probe that was hit before its price is known is told when it is. */
static void test_unpriced(void)
{
	struct meter_interval in;
	struct bed b;

	open_bed(&b);
	hit(&b, 30);
	in = ask(&b, 10 * MS);
	is_int((long long)in.emulated_hits, 0, "hits before the first sample wait for their price");
	is_int((long long)in.uprobe_hits, 30, "but are counted");
	source_meter_look(b.src, 20 * MS);
	hit(&b, 10);
	in = ask(&b, 30 * MS);
	is_int((long long)in.emulated_hits, 40, "and are told with the first that have one");
	is_int((long long)in.uprobe_hits, 10, "counted once");
	ok(in.uprobe_run_ns > 0, "at that");
	close_bed(&b);
}

int main(void)
{
	if (geteuid()) {
		skip("the meter of the live source", "loading programs needs root");
		return tap_done();
	}
	test_samples();
	test_unpriced();
	return tap_done();
}
