/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * hist.h: the arithmetic of bricktop's log-linear latency histogram.
 *
 * Owns: which bucket a duration falls into and which duration a bucket stands for. The same text
 * is compiled into the BPF programs, the collector and the unit tests; it must not know maps,
 * layers or the C library. Include it after a header that defines the __u32/__u64 types.
 *
 * 16 sub-buckets for every power of two from 128 ns (2^7) to 2^41 ns: reported at a bucket's
 * middle, a duration is at most 1/32 = 3.125 % off. The first also takes everything below: what is
 * shorter than 136 ns lies in bucket 0, all above 2^41 ns (36 minutes) in the last one.
 */
#ifndef BRICKTOP_HIST_H
#define BRICKTOP_HIST_H

#define HIST_SUB_BITS 4
#define HIST_SUBS     (1 << HIST_SUB_BITS)
#define HIST_MIN_EXP  7
#define HIST_MAX_EXP  41
#define HIST_BUCKETS  ((HIST_MAX_EXP - HIST_MIN_EXP) * HIST_SUBS)

/*
 * floor(log2(v)) for 0 < v < 2^63: BPF has no count-leading-zeros instruction, and a comparison is
 * a branch there, which a processor guesses wrong as often as durations differ. The sign of a
 * difference tells as much.
 */
static inline __u32 hist_log2(__u64 v)
{
	__u32 shift, r;

	r = (0xffffffffULL - v) >> 63 << 5;
	v >>= r;
	shift = (0xffffULL - v) >> 63 << 4;
	v >>= shift;
	r |= shift;
	shift = (0xffULL - v) >> 63 << 3;
	v >>= shift;
	r |= shift;
	shift = (0xfULL - v) >> 63 << 2;
	v >>= shift;
	r |= shift;
	shift = (0x3ULL - v) >> 63 << 1;
	v >>= shift;
	r |= shift;
	return r | (__u32)(v >> 1);
}

/* The bucket of a duration of dur_ns nanoseconds: 0 .. HIST_BUCKETS - 1. */
static inline __u32 hist_bucket(__u64 dur_ns)
{
	__u32 exp;

	if (dur_ns < (1ULL << HIST_MIN_EXP))
		return 0;
	if (dur_ns >= (1ULL << HIST_MAX_EXP))
		return HIST_BUCKETS - 1;
	exp = hist_log2(dur_ns);
	return (exp - HIST_MIN_EXP) * HIST_SUBS +
	       ((dur_ns >> (exp - HIST_SUB_BITS)) & (HIST_SUBS - 1));
}

/* Smallest duration of a bucket, in ns; bucket 0 starts at 0. */
static inline __u64 hist_low_ns(__u32 bucket)
{
	__u32 exp = HIST_MIN_EXP + bucket / HIST_SUBS;

	if (bucket == 0)
		return 0;
	return (__u64)(HIST_SUBS + bucket % HIST_SUBS) << (exp - HIST_SUB_BITS);
}

/* The duration that a bucket is reported as: its middle, in ns. */
static inline __u64 hist_mid_ns(__u32 bucket)
{
	__u32 exp = HIST_MIN_EXP + bucket / HIST_SUBS;

	if (bucket == 0)
		return 1ULL << (HIST_MIN_EXP - 1);
	return hist_low_ns(bucket) + (1ULL << (exp - HIST_SUB_BITS - 1));
}

#endif
