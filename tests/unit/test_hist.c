/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_hist.c: the histogram's arithmetic, from the very text that the BPF programs compile: at
 * every bucket's edges, and against the definition in floating point at random durations (fixed
 * seed).
 */
#include <linux/types.h>
#include <math.h>
#include <stdint.h>

#include "../../bpf/hist.h"
#include "../tap.h"

#define RANDOM_DURATIONS 2000000

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Every bucket begins where it says, ends one below the next, and its middle lies in it. */
static void test_edges(void)
{
	unsigned int low_bad = 0, high_bad = 0, mid_bad = 0, order_bad = 0, error_bad = 0;

	for (__u32 b = 0; b < HIST_BUCKETS; b++) {
		uint64_t low = hist_low_ns(b), next = hist_low_ns(b + 1), mid = hist_mid_ns(b);

		low_bad += hist_bucket(low) != b;
		high_bad += hist_bucket(next - 1) != b;
		mid_bad += hist_bucket(mid) != b;
		order_bad += next <= low;
		if (b == 0)
			continue;
		/* The durations furthest from the middle are the edges. */
		error_bad += (double)(mid - low) / (double)low > 1.0 / 32;
		error_bad += (double)(next - 1 - mid) / (double)(next - 1) > 1.0 / 32;
	}
	is_int(low_bad, 0, "every bucket holds its lower edge");
	is_int(high_bad, 0, "every bucket holds the last nanosecond below the next");
	is_int(mid_bad, 0, "every bucket holds its middle");
	is_int(order_bad, 0, "lower edges grow");
	is_int(error_bad, 0, "from 136 ns on the middle is at most 3.125 %% off, at both edges");
}

static void test_extremes(void)
{
	is_int(HIST_BUCKETS, 544, "544 buckets");
	is_int(hist_bucket(0), 0, "0 ns lies in bucket 0");
	is_int(hist_bucket(127), 0, "127 ns lies in bucket 0");
	is_int(hist_bucket(135), 0, "so does the first sixteenth of the first power of two");
	is_int(hist_bucket(136), 1, "136 ns lies in bucket 1");
	is_int((long long)hist_mid_ns(0), 64, "bucket 0 stands for 64 ns");
	is_int(hist_bucket((1ULL << 41) - 1), HIST_BUCKETS - 1, "2^41 - 1 lies in the last bucket");
	is_int(hist_bucket(1ULL << 41), HIST_BUCKETS - 1, "2^41 lies in the last bucket");
	is_int(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1, "so does the largest word");
}

static void test_log2(void)
{
	unsigned int bad = 0;

	for (unsigned int e = 0; e < 63; e++) {
		uint64_t v = 1ULL << e;

		bad += hist_log2(v) != e;
		bad += hist_log2(v | (v - 1)) != e;
		bad += e > 0 && hist_log2(v - 1) != e - 1;
	}
	is_int(bad, 0, "log2 is right around all 63 powers of two");
}

/* The definition: 16 equal parts between two powers of two. */
static unsigned int defined_bucket(uint64_t ns)
{
	int exp;
	double part;

	if (ns < 128)
		return 0;
	if (ns >= 1ULL << 41)
		return HIST_BUCKETS - 1;
	part = (frexp((double)ns, &exp) - 0.5) * 32;
	return (unsigned int)(exp - 1 - 7) * 16 + (unsigned int)part;
}

static void test_random(void)
{
	uint64_t state = 88172645463325252ULL;
	unsigned int bad = 0, error_bad = 0, order_bad = 0;

	for (unsigned int i = 0; i < RANDOM_DURATIONS; i++) {
		/* Each magnitude as often as any other, to beyond the last bucket. */
		uint64_t ns = next_random(&state) >> (next_random(&state) % 42 + 21);
		uint64_t other = next_random(&state) >> (next_random(&state) % 42 + 21);
		__u32 b = hist_bucket(ns);

		bad += b != defined_bucket(ns);
		if (ns >= 136 && ns < 1ULL << 41)
			error_bad += fabs((double)hist_mid_ns(b) - (double)ns) / (double)ns >
				     0.03125;
		order_bad += ns <= other ? b > hist_bucket(other) : b < hist_bucket(other);
	}
	is_int(bad, 0, "%d random durations: the bucket of the definition", RANDOM_DURATIONS);
	is_int(error_bad, 0, "and an error of at most 3.125 %%");
	is_int(order_bad, 0, "and a longer duration never in a lower bucket");
}

int main(void)
{
	test_extremes();
	test_log2();
	test_edges();
	test_random();
	return tap_done();
}
