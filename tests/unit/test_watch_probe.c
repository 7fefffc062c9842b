// SPDX-License-Identifier: Apache-2.0
/*
 * test_watch_probe.c: whether the probes see all threads of a process, told from who hit them and
 * from what the process counts itself. Probing real ones is for the end-to-end tests.
 */
#include "watch_priv.h"

#include "../tap.h"

#define PID 4211

static enum watch_threads judge(__u32 first, __u32 other, __u64 hits, uint64_t completed)
{
	struct wire_proc proc = { .first_tid = first, .other_tid = other, .probe_hits = hits };

	return watch_judge_threads(PID, &proc, completed);
}

int main(void)
{
	is_int(judge(0, 0, 0, 0), WATCH_THREADS_UNKNOWN, "nothing has happened yet");
	is_int(judge(0, 0, 0, 99), WATCH_THREADS_UNKNOWN, "nor has enough");
	is_int(judge(0, 0, 0, 100), WATCH_THREADS_ONE, "many requests, no hit");
	is_int(judge(PID, 0, 10, 1000), WATCH_THREADS_ONE, "some hits, of the main thread");
	is_int(judge(PID, 0, 49, 100), WATCH_THREADS_ONE, "not half of what there is");
	is_int(judge(PID, 0, 50, 100), WATCH_THREADS_UNKNOWN, "half: its work is on that thread");
	is_int(judge(PID, 0, 1000, 1000), WATCH_THREADS_UNKNOWN, "a process of one thread");
	is_int(judge(PID + 1, 0, 1, 1000), WATCH_THREADS_ALL, "a hit of another thread");
	is_int(judge(PID, PID + 7, 2, 1000), WATCH_THREADS_ALL, "a second thread after the first");
	is_int(judge(PID + 1, 0, 1, 0), WATCH_THREADS_ALL, "one hit is enough for that");
	return tap_done();
}
