// SPDX-License-Identifier: Apache-2.0
/* test_text.c: hostile names made harmless; numbers as people read them; durations as they write
 * them. */
#include <errno.h>
#include <math.h>

#include "tap.h"
#include "text.h"

static void check_clean(const char *src, const char *want, const char *what)
{
	char buf[256];

	is_str(text_sanitize(buf, sizeof(buf), src), want, "%s", what);
}

static void test_sanitize(void)
{
	char buf[8];

	check_clean("perfvol-posix", "perfvol-posix", "plain");
	check_clean("b\xc3\xa4r \xe6\xbc\xa2 \xf0\x9f\x98\x80",
		    "b\xc3\xa4r \xe6\xbc\xa2 \xf0\x9f\x98\x80", "other scripts stay");
	check_clean("a\033[2Jb\r\n\tc\x7f", "a?[2Jb???c?", "controls and escapes");
	check_clean("\xc2\x9b"
		    "31m",
		    "?31m", "C1: an 8-bit CSI");
	check_clean("a\xe2\x80\xae"
		    "b\xe2\x81\xa6",
		    "a?b?", "bidi override and isolate");
	check_clean("a\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", "a???", "invisible code points");
	check_clean("\xf3\xa0\x81\x81", "?", "tag characters");
	check_clean("\xc0\xaf", "??", "overlong slash");
	check_clean("\xed\xa0\x80", "???", "surrogate");
	check_clean("\xf4\x90\x80\x80", "????", "beyond unicode");
	check_clean("x\xe2\x82", "x??", "cut sequence at the end");
	check_clean("\xff\xfe", "??", "no utf-8 at all");
	check_clean("\xef\xbf\xbf", "?", "noncharacter");
	is_str(text_sanitize(buf, 3, "\xe6\xbc\xa2x"), "", "no half character");
	is_str(text_sanitize(buf, 4, "\xe6\xbc\xa2x"), "\xe6\xbc\xa2", "cut at a boundary");
	buf[0] = 'k';
	text_sanitize(buf, 0, "abc");
	ok(buf[0] == 'k', "no room: nothing is written");
	is_str(text_sanitize(buf, 1, "abc"), "", "room for the end alone");
}

static void check_duration(double ns, const char *want)
{
	char buf[32];

	is_str(text_duration(buf, sizeof(buf), ns), want, "%g ns", ns);
	ok(strlen(buf) <= 7, "fits 7 columns");
}

static void test_numbers(void)
{
	char buf[32];

	check_duration(0, "0.0us");
	check_duration(800, "0.8us");
	check_duration(71400, "71us");
	check_duration(9960, "10us");
	check_duration(999400, "999us");
	check_duration(999600, "1.0ms");
	check_duration(4.1e6, "4.1ms");
	check_duration(2.3e9, "2.3s");
	check_duration(250e9, "250s");
	check_duration(86400e9, "86400s");
	check_duration(1e30, ">1e6s");
	check_duration(-1, "-");
	check_duration(NAN, "-");
	check_duration(INFINITY, "-");
	is_str(text_bytes(buf, sizeof(buf), 268e6), "268MB", "bytes");
	is_str(text_bytes(buf, sizeof(buf), 512), "512B", "few bytes");
	is_str(text_bytes(buf, sizeof(buf), 4096), "4.1kB", "a page");
	is_str(text_bytes(buf, sizeof(buf), NAN), "-", "unknown bytes");
	is_str(text_count(buf, sizeof(buf), 2151), "2,151", "thousands separator");
	is_str(text_count(buf, sizeof(buf), 999.7), "1,000", "rounded up to it");
	is_str(text_count(buf, sizeof(buf), 12345), "12k", "tens of thousands");
	is_str(text_count(buf, sizeof(buf), 9999.6), "10k", "rounded up to them");
	is_str(text_count(buf, sizeof(buf), 7), "7", "a few");
	is_str(text_count(buf, sizeof(buf), 3.14), "3.1", "a fraction");
	is_str(text_count(buf, sizeof(buf), -2), "-", "no count");
}

static void check_parse(const char *text, int want_err, uint64_t want_ns)
{
	uint64_t ns = 42;
	int err = text_parse_duration(text, 1000000000, &ns);

	is_int(err, want_err, "'%s'", text);
	is_int((long long)ns, (long long)(want_err ? 42 : want_ns), "its value");
}

static void test_parse(void)
{
	check_parse("10", 0, 10000000000);
	check_parse("10s", 0, 10000000000);
	check_parse("250ms", 0, 250000000);
	check_parse("1m", 0, 60000000000);
	check_parse("2h", 0, 7200000000000);
	check_parse("7us", 0, 7000);
	check_parse("9ns", 0, 9);
	check_parse("1.5s", 0, 1500000000);
	check_parse("0", 0, 0);
	check_parse("", -EINVAL, 0);
	check_parse("-1s", -EINVAL, 0);
	check_parse("+1", -EINVAL, 0);
	check_parse(" 1", -EINVAL, 0);
	check_parse("1 s", -EINVAL, 0);
	check_parse("1.s", -EINVAL, 0);
	check_parse("10x", -EINVAL, 0);
	check_parse("nan", -EINVAL, 0);
	check_parse("99999999999999999999", -ERANGE, 0);
	check_parse("18446744073709551615", -ERANGE, 0);
	check_parse("9999999999h", -ERANGE, 0);
}

int main(void)
{
	test_sanitize();
	test_numbers();
	test_parse();
	return tap_done();
}
