/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.h: the smallest TAP producer that C unit tests need: one result a line, the plan at the end.
 * Owns the numbering of one test program; knows nothing of what is tested. Each check returns
 * whether it held, so that a test can stop where going on makes no sense. End main with `return
 * tap_done();`.
 */
#ifndef BRICKTOP_TAP_H
#define BRICKTOP_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct tap_state {
	unsigned int count, failed;
};

/* One state per test program: a test is one translation unit. */
static struct tap_state tap_state __attribute__((unused));

__attribute__((unused, format(printf, 1, 2))) static void diag(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("# ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
}

__attribute__((unused, format(printf, 3, 0))) static bool
tap_result(bool good, const char *directive, const char *fmt, va_list ap)
{
	tap_state.count++;
	tap_state.failed += !good;
	printf("%sok %u - ", good ? "" : "not ", tap_state.count);
	vprintf(fmt, ap);
	printf("%s\n", directive);
	fflush(stdout);
	return good;
}

__attribute__((unused, format(printf, 2, 3))) static bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_result(good, "", fmt, ap);
	va_end(ap);
	return good;
}

__attribute__((unused, format(printf, 3, 4))) static bool is_int(long long got, long long want,
								 const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_result(got == want, "", fmt, ap);
	va_end(ap);
	if (got != want)
		diag("got %lld, want %lld", got, want);
	return got == want;
}

__attribute__((unused, format(printf, 3, 4))) static bool is_str(const char *got, const char *want,
								 const char *fmt, ...)
{
	bool good = got && want ? strcmp(got, want) == 0 : got == want;
	va_list ap;

	va_start(ap, fmt);
	tap_result(good, "", fmt, ap);
	va_end(ap);
	if (!good)
		diag("got \"%s\", want \"%s\"", got ? got : "(null)", want ? want : "(null)");
	return good;
}

/* What cannot be tested here, and why: counted as passed, named as skipped. */
__attribute__((unused)) static void skip(const char *what, const char *reason)
{
	tap_state.count++;
	printf("ok %u - %s # SKIP %s\n", tap_state.count, what, reason);
	fflush(stdout);
}

/* Print the plan; the program's exit status. */
__attribute__((unused)) static int tap_done(void)
{
	printf("1..%u\n", tap_state.count);
	return tap_state.failed ? 1 : 0;
}

#endif
