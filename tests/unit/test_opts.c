/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_opts.c: command lines that are right, and those that are not: each of the latter has an
 * error of one line that names the culprit, exit code 2, and nothing was printed.
 */
#include "opts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define SECOND 1000000000ULL

static struct opts opts;
static char *text;
static int code;

/* Parse the words of a line (separated by blanks; '' is an empty word). */
static int parse(const char *line)
{
	static char copy[4096];
	char *argv[128], *rest = NULL;
	int argc = 0;

	free(text);
	text = NULL;
	code = -1;
	memset(&opts, 0, sizeof(opts));
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &rest); w && argc < 127; w = strtok_r(NULL, " ", &rest))
		argv[argc++] = strcmp(w, "''") == 0 ? w + 2 : w;
	argv[argc] = NULL;
	return opts_parse(argc, argv, &opts, &text, &code);
}

static void accepted(const char *line)
{
	is_int(parse(line), 0, "accepted: %s", line);
	ok(!text && code == OPTS_EXIT_OK, "and nothing is said");
	if (text)
		diag("%s", text);
}

static void refused(const char *line, const char *culprit)
{
	is_int(parse(line), 1, "refused: %s", line);
	is_int(code, OPTS_EXIT_USAGE, "with exit code 2");
	ok(text && !strchr(text, '\n'), "and one line of text");
	ok(text && strstr(text, culprit), "that mentions %s", culprit);
	if (text && !strstr(text, culprit))
		diag("%s", text);
}

static void test_attach(void)
{
	accepted("bricktop attach perfvol");
	is_int(opts.command, OPTS_ATTACH, "attach");
	is_str(opts.target, "perfvol", "its target");
	ok(opts.duration_ns == 10 * SECOND, "ten seconds");
	ok(opts.interval_ns == 0 && !opts.json && !opts.all && !opts.memory_only &&
		   !opts.split_tails && !opts.dump_path && !opts.out_path,
	   "everything else is off");
	accepted("bricktop attach -d 30 --json --split-tails --interval=500ms /bricks/b1");
	ok(opts.duration_ns == 30 * SECOND, "a bare number is seconds");
	ok(opts.interval_ns == SECOND / 2, "times have units");
	ok(opts.json && opts.split_tails, "flags");
	accepted("bricktop attach /bricks/b1 -d1m");
	ok(opts.duration_ns == 60 * SECOND, "options may follow the target");
	accepted("bricktop attach --all --dump-requests 100=req.jsonl -o out.txt");
	ok(opts.all && !opts.target, "--all needs no target");
	is_int((long long)opts.dump_requests, 100, "requests to dump");
	is_str(opts.dump_path, "req.jsonl", "and where to");
	is_str(opts.out_path, "out.txt", "the report's file");
	accepted("bricktop attach --dump-requests 1=a=b vol");
	is_str(opts.dump_path, "a=b", "a file's name may hold '='");
	accepted("bricktop attach vol --layers none");
	ok(opts.layers_off, "layers are left out");
	accepted("bricktop attach vol --layers=all --memory-only");
	ok(!opts.layers_off, "none is");
	ok(opts.budget_pct <= 0, "no budget");
	accepted("bricktop attach vol --budget 7.25");
	ok(opts.budget_pct == 7.25, "a budget");
	accepted("bricktop attach vol --budget=100%");
	ok(opts.budget_pct == 100, "with a sign");
	accepted("bricktop attach -- --json");
	is_str(opts.target, "--json", "after -- everything is a target");
	accepted("bricktop attach -o - vol --memory-only");
	ok(!opts.out_path && opts.memory_only, "- is standard output");
}

static void test_slow(void)
{
	accepted("bricktop attach vol --slow 10ms");
	ok(opts.slow_ns == SECOND / 100 && !opts.slow_ppm, "slow from a time on");
	is_str(opts.slow, "10ms", "as it was said");
	accepted("bricktop attach vol --slow=0");
	ok(opts.slow && !opts.slow_ns && !opts.slow_ppm, "0: everything is slow");
	accepted("bricktop attach vol --slow p99.9");
	is_int(opts.slow_ppm, 999000, "slow by a share");
	accepted("bricktop attach vol --slow p50");
	is_int(opts.slow_ppm, 500000, "without decimals");
	accepted("bricktop attach vol --slow p5.0001");
	is_int(opts.slow_ppm, 50001, "with four of them");
	accepted("bricktop attach vol");
	ok(!opts.slow, "nothing is slow unless asked for");
}

static void test_list_and_stuck(void)
{
	accepted("bricktop list");
	is_int(opts.command, OPTS_LIST, "list");
	accepted("bricktop list --json");
	ok(opts.json, "as JSON");
	accepted("bricktop stuck");
	ok(opts.command == OPTS_STUCK && !opts.target, "stuck needs no target");
	accepted("bricktop stuck --json 4211");
	is_str(opts.target, "4211", "but takes one");
	accepted("bricktop stuck --all");
	ok(opts.all, "or --all");
	accepted("bricktop doctor --json");
	ok(opts.command == OPTS_DOCTOR && opts.json, "doctor needs nothing");
}

static void test_errors(void)
{
	refused("bricktop", "attach, list, stuck or doctor");
	refused("bricktop perfvol", "'perfvol'");
	refused("bricktop --json attach vol", "'--json'");
	refused("bricktop attach", "name a target");
	refused("bricktop attach ''", "empty target");
	refused("bricktop attach a b", "'b'");
	refused("bricktop attach a --all", "not both");
	refused("bricktop attach a --wrong", "'--wrong'");
	refused("bricktop attach a -x", "'-x'");
	refused("bricktop attach a -d", "TIME");
	refused("bricktop attach a --dump-requests", "N=FILE");
	refused("bricktop attach a --json=yes", "'--json=yes'");
	refused("bricktop list vol", "'vol'");
	refused("bricktop list --all", "'--all'");
	refused("bricktop stuck -d 3", "'-d'");
	refused("bricktop doctor x", "doctor takes no target, got 'x'");
	refused("bricktop doctor --all", "'--all'");
	refused("bricktop attach a --memory-only --split-tails", "--split-tails");
	refused("bricktop attach a --memory-only --layers none", "--layers");
	refused("bricktop attach a --layers syscall,bogus", "--layers: 'bogus'");
	refused("bricktop attach a --layers", "LIST");
	refused("bricktop attach a --budget", "PCT");
	refused("bricktop attach a --budget 0", "'0'");
	refused("bricktop attach a --budget 101", "'101'");
	refused("bricktop attach a --budget 5,5", "'5,5'");
	refused("bricktop attach a --budget -1", "'-1'");
	refused("bricktop attach a --budget .5", "'.5'");
	refused("bricktop attach a --budget 1e1", "'1e1'");
	refused("bricktop attach a --budget 99999999999999999999999", "'99999999999999999999999'");
	refused("bricktop attach a --memory-only --budget 5", "--budget");
	refused("bricktop attach a --memory-only --dump-requests 1=f", "--dump-requests");
	refused("bricktop attach a -d 2 --interval 3", "--interval");
	refused("bricktop attach a --memory-only --slow 10ms", "--slow needs probes");
	refused("bricktop attach a --slow", "TIME");
}

static void test_bad_values(void)
{
	static const char *const times[] = { "0",   "-1",        "1x",  "abc",   "''",
					     "1ms", "99999999h", "1e3", "10s10", "nan" };
	static const char *const slow[] = { "x",         "''",    "-1",    "p",        "p0",
					    "p0.0",      "p100",  "p99.",  "p.9",      "p99.9x",
					    "p99.99999", "p99,9", "99.9%", "99999999h" };
	static const char *const dumps[] = { "5",         "=f",   "0=f", "-1=f",
					     "5=",        "5x=f", "x=f", "99999999999999999999=f",
					     "1000001=f", "5=-" };
	char line[128];

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		snprintf(line, sizeof(line), "bricktop attach vol -d %s", times[i]);
		refused(line, "--duration");
	}
	for (size_t i = 0; i < sizeof(dumps) / sizeof(dumps[0]); i++) {
		snprintf(line, sizeof(line), "bricktop attach vol --dump-requests %s", dumps[i]);
		refused(line, "--dump-requests");
	}
	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		snprintf(line, sizeof(line), "bricktop attach vol --slow %s", slow[i]);
		refused(line, "--slow takes");
	}
	refused("bricktop attach a\033[31m b", "a?[31m");
}

static void said(const char *line, const char *what)
{
	is_int(parse(line), 1, "%s", line);
	is_int(code, OPTS_EXIT_OK, "is no error");
	ok(text && strstr(text, what), "says %s", what);
}

static void test_help(void)
{
	static const char *const all[] = { "--duration",    "--interval",      "--all",
					   "--json",        "--output",        "--memory-only",
					   "--split-tails", "--dump-requests", "--slow",
					   "--help",        "--version" };

	said("bricktop --help", "attach TARGET");
	said("bricktop --version", opts_version());
	said("bricktop attach --help", "Usage: bricktop attach");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ok(strstr(text, all[i]) != NULL, "attach --help explains %s", all[i]);
	said("bricktop list --help", "Usage: bricktop list");
	said("bricktop stuck --help", "Usage: bricktop stuck");
	said("bricktop doctor --help", "Usage: bricktop doctor");
	said("bricktop attach --version", opts_version());
	refused("bricktop attach --help --wrong", "'--wrong'");
}

/* argp reorders its arguments; ours are the caller's. */
static void test_argv_unchanged(void)
{
	char *argv[] = { (char[]){ "bricktop" }, (char[]){ "attach" }, (char[]){ "vol" },
			 (char[]){ "--json" }, NULL };
	char *before[5];

	memcpy(before, argv, sizeof(argv));
	free(text);
	text = NULL;
	is_int(opts_parse(4, argv, &opts, &text, &code), 0, "a target before an option");
	ok(memcmp(before, argv, sizeof(argv)) == 0, "argv keeps its order");
	ok(opts.target == argv[2], "the target is the caller's string");
}

int main(void)
{
	test_attach();
	test_slow();
	test_list_and_stuck();
	test_errors();
	test_bad_values();
	test_help();
	test_argv_unchanged();
	free(text);
	return tap_done();
}
