/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_meter_stats.c: the kernel's statistics by a child process: descriptors come, keep them on,
 * and it is gone when nobody wants any more. Needs root.
 */
#include "meter_stats.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "tap.h"

static void test_descriptors(void)
{
	struct meter_stats ms;
	int first, second;

	is_int(meter_stats_start(&ms), 0, "a child is started");
	first = meter_stats_enable(&ms);
	second = meter_stats_enable(&ms);
	ok(first >= 0 && second >= 0 && first != second, "two descriptors: %d, %d", first, second);
	close(first);
	close(second);
	kill(ms.child, SIGKILL);
	ok(meter_stats_enable(&ms) < 0, "none of one that was killed");
	meter_stats_end(&ms);
	ok(kill(ms.child, 0) != 0, "nothing is left of it");
	ok(meter_stats_enable(&ms) < 0, "none of nobody");
	meter_stats_end(&ms);
	is_int(meter_stats_start(&ms), 0, "another one");
	meter_stats_end(&ms);
	ok(kill(ms.child, 0) != 0, "it ends when nobody wants it");
}

static void test_stopped(void)
{
	struct meter_stats ms;

	is_int(meter_stats_start(&ms), 0, "a child that will be stopped");
	kill(ms.child, SIGSTOP);
	ok(meter_stats_enable(&ms) < 0, "it does not answer, which is not waited for");
	ok(kill(ms.child, 0) != 0, "and is gone: no answer is left to come");
	ok(meter_stats_enable(&ms) == -EPERM, "none of nobody");
	meter_stats_end(&ms);
}

int main(void)
{
	if (geteuid() != 0) {
		skip("statistics", "needs root");
	} else {
		test_descriptors();
		test_stopped();
	}
	return tap_done();
}
