/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opts.c: one argp per command. argp is kept from printing and from exiting (no errors, no help, no
 * exit), so that the same function serves the program, the unit tests and the fuzzer.
 */
#include "opts.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "text.h"

#define NS_PER_SEC       1000000000ULL
#define DURATION_DEFAULT (10 * NS_PER_SEC)
#define DURATION_MIN     (NS_PER_SEC / 10)
#define DURATION_MAX     (366ULL * 86400 * NS_PER_SEC)
#define BUDGET_MIN_PCT   0.1
#define DUMP_MAX         1000000
#define ARGS_MAX         4096

enum {
	KEY_ALL = 0x100,
	KEY_BUDGET,
	KEY_DUMP,
	KEY_INTERVAL,
	KEY_JSON,
	KEY_LAYERS,
	KEY_MEMORY_ONLY,
	KEY_SLOW,
	KEY_SPLIT_TAILS,
	KEY_VERSION,
};

struct parse {
	struct opts opts;
	const char *command;
	char error[1024]; /* the first one; "" */
	bool help, version;
};

/* clang-format off */
#define COMMON_OPTIONS \
	{ "help", 'h', NULL, 0, "print this help", -1 }, \
	{ "version", KEY_VERSION, NULL, 0, "print bricktop's version", -1 }, \
	{ 0 }
/* clang-format on */

static const struct argp_option attach_options[] = {
	{ "duration", 'd', "TIME", 0,
	  "measure for so long (10s): 250ms, 30s, 5m; a bare number is seconds", 0 },
	{ "interval", KEY_INTERVAL, "TIME", 0,
	  "print a report every so long, each of its own window", 0 },
	{ "all", KEY_ALL, NULL, 0, "attach to everything that 'bricktop list' shows", 0 },
	{ "json", KEY_JSON, NULL, 0,
	  "print JSON: one document per target, one line each with --all or --interval", 0 },
	{ "output", 'o', "FILE", 0, "write the reports to FILE", 0 },
	{ "memory-only", KEY_MEMORY_ONLY, NULL, 0,
	  "put no probe in: means from the processes' own statistics", 0 },
	{ "layers", KEY_LAYERS, "LIST", 0,
	  "of the layers below the xlators these alone: syscall,xfs ..., all or none", 0 },
	{ "budget", KEY_BUDGET, "PCT", 0,
	  "cost the target at most so much of its CPU time: layers take turns off", 0 },
	{ "split-tails", KEY_SPLIT_TAILS, NULL, 0,
	  "tell apart xlators that share a frame, by entry probes (costs more)", 0 },
	{ "dump-requests", KEY_DUMP, "N=FILE", 0,
	  "write the first N whole requests, every frame and span, to FILE as JSON lines", 0 },
	{ "slow", KEY_SLOW, "TIME|pNN", 0,
	  "keep operations whole that take 10ms or longer, or longer than 99.9 % of their like "
	  "(p99.9), and print the slowest as trees",
	  0 },
	COMMON_OPTIONS
};

static const struct argp_option list_options[] = { { "json", KEY_JSON, NULL, 0, "print JSON", 0 },
						   COMMON_OPTIONS };

static const struct argp_option doctor_options[] = { { "json", KEY_JSON, NULL, 0, "print JSON", 0 },
						     COMMON_OPTIONS };

static const struct argp_option stuck_options[] = {
	{ "all", KEY_ALL, NULL, 0, "every GlusterFS process (the default without TARGET)", 0 },
	{ "json", KEY_JSON, NULL, 0, "print JSON", 0 },
	COMMON_OPTIONS
};

static const char top_help[] =
	"Usage: bricktop COMMAND [OPTION...] [TARGET]\n"
	"Where a running GlusterFS brick or client spends its time: per operation, every layer's\n"
	"own time and its inclusive time.\n"
	"\n"
	"  attach TARGET   measure for 10 seconds, then print a report and detach\n"
	"  list            what can be attached to here\n"
	"  stuck [TARGET]  requests in flight now, oldest first; without any probe\n"
	"  doctor          what works with this kernel and these privileges, and why not\n"
	"\n"
	"TARGET is a volume, a brick's path, a mount point, a process id or a device, as\n"
	"'bricktop list' shows them.\n"
	"\n"
	"  bricktop COMMAND --help   a command's options\n"
	"  bricktop --version        print bricktop's version\n"
	"\n"
	"Exit status: 0 all went well, 1 it could not be done, 2 wrong usage,\n"
	"77 not possible here.\n";

const char *opts_version(void)
{
	return BRICKTOP_VERSION;
}

__attribute__((format(printf, 2, 3))) static error_t fail(struct parse *p, const char *fmt, ...)
{
	char raw[sizeof(p->error)];
	va_list ap;

	if (p->error[0])
		return EINVAL; /* the first error is the one to repair */
	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	text_sanitize(p->error, sizeof(p->error), raw);
	return EINVAL;
}

static error_t parse_time(struct parse *p, const char *option, const char *arg, uint64_t *ret_ns)
{
	uint64_t ns;

	if (text_parse_duration(arg, NS_PER_SEC, &ns) != 0)
		return fail(p, "'%s' is no time for %s: use 250ms, 10s or 5m", arg, option);
	if (ns < DURATION_MIN || ns > DURATION_MAX)
		return fail(p, "%s takes 100ms to a year, not '%s'", option, arg);
	*ret_ns = ns;
	return 0;
}

/* "p99.9" as millionths; 0: it is none between p0 and p100, with up to four decimals. */
static unsigned int parse_share(const char *arg)
{
	unsigned int ppm = 0, unit = 10000;
	const char *c = arg + 1;

	for (; *c >= '0' && *c <= '9' && c < arg + 3; c++)
		ppm = ppm * 10 + (unsigned int)(*c - '0') * 10000;
	if (c == arg + 1)
		return 0;
	if (*c == '.') {
		for (c++; *c >= '0' && *c <= '9' && unit > 1; c++) {
			unit /= 10;
			ppm += (unsigned int)(*c - '0') * unit;
		}
		if (unit == 10000)
			return 0;
	}
	return *c ? 0 : ppm;
}

static error_t parse_slow(struct parse *p, const char *arg)
{
	uint64_t ns = 0;
	unsigned int ppm = 0;

	if (*arg == 'p')
		ppm = parse_share(arg);
	if (!ppm && text_parse_duration(arg, NS_PER_SEC, &ns) != 0)
		return fail(p,
			    "--slow takes a time such as 10ms, or a share such as p99.9, not '%s'",
			    arg);
	if (ns > DURATION_MAX)
		return fail(p, "--slow takes at most a year, not '%s'", arg);
	p->opts.slow = arg;
	p->opts.slow_ns = ns;
	p->opts.slow_ppm = ppm;
	return 0;
}

static error_t parse_dump(struct parse *p, const char *arg)
{
	const char *file = strchr(arg, '=');
	unsigned long n = 0;
	char *end;

	errno = 0;
	if (*arg >= '0' && *arg <= '9')
		n = strtoul(arg, &end, 10);
	if (!file || n == 0 || end != file || errno || !file[1])
		return fail(p, "--dump-requests takes N=FILE, such as 100=requests.jsonl, not '%s'",
			    arg);
	if (n > DUMP_MAX)
		return fail(p, "--dump-requests takes at most %d requests, not '%s'", DUMP_MAX,
			    arg);
	if (strcmp(file + 1, "-") == 0)
		return fail(p, "--dump-requests needs a file: standard output is the report's");
	p->opts.dump_requests = n;
	p->opts.dump_path = file + 1;
	return 0;
}

/* Digits, perhaps with a point and more: the same in every locale. -1: it is no such number. */
static double parse_decimal(const char *text, const char **ret_end)
{
	double value = 0, unit = 1;

	if (*text < '0' || *text > '9')
		return -1;
	for (; *text >= '0' && *text <= '9'; text++)
		value = 10 * value + (*text - '0');
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++)
			value += (unit /= 10) * (*text - '0');
	*ret_end = text;
	return value;
}

static error_t parse_budget(struct parse *p, const char *arg)
{
	const char *end = arg;
	double pct = parse_decimal(arg, &end);

	if (*end == '%')
		end++;
	if (*end || pct < BUDGET_MIN_PCT || pct > 100)
		return fail(p, "--budget takes a percentage of 0.1 to 100, not '%s'", arg);
	p->opts.budget_pct = pct;
	return 0;
}

static error_t parse_layers(struct parse *p, const char *arg)
{
	char why[512];

	return layers_parse(arg, &p->opts.layers_off, why, sizeof(why)) ?
		       fail(p, "--layers: %s", why) :
		       0;
}

static error_t parse_word(struct parse *p, const char *word)
{
	if (p->opts.command == OPTS_LIST || p->opts.command == OPTS_DOCTOR)
		return fail(p, "%s takes no target, got '%s'", p->command, word);
	if (p->opts.target)
		return fail(p, "one target at a time: '%s' or '%s' (--all for everything)",
			    p->opts.target, word);
	if (!*word)
		return fail(p, "an empty target; 'bricktop list' shows what there is");
	p->opts.target = word;
	return 0;
}

static const struct argp_option *command_options(enum opts_command command)
{
	return command == OPTS_ATTACH ? attach_options :
	       command == OPTS_LIST   ? list_options :
	       command == OPTS_DOCTOR ? doctor_options :
					stuck_options;
}

/* argp says only that something is wrong; here is what. */
static error_t explain_error(struct parse *p, const char *word)
{
	const char *name = strncmp(word, "--", 2) == 0 ? word + 2 : "";
	const struct argp_option *o;

	for (o = command_options(p->opts.command); o->name; o++)
		if ((strcmp(o->name, name) == 0 || (word[0] == '-' && word[1] == o->key)) && o->arg)
			return fail(p, "option '%s' needs %s; see 'bricktop %s --help'", word,
				    o->arg, p->command);
	return fail(p,
		    "option '%s' is not known, not complete or takes no value; see 'bricktop %s "
		    "--help'",
		    word, p->command);
}

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;

	switch (key) {
	case 'd':
		return parse_time(p, "--duration", arg, &p->opts.duration_ns);
	case KEY_INTERVAL:
		return parse_time(p, "--interval", arg, &p->opts.interval_ns);
	case KEY_DUMP:
		return parse_dump(p, arg);
	case KEY_BUDGET:
		return parse_budget(p, arg);
	case KEY_LAYERS:
		return parse_layers(p, arg);
	case 'o':
		if (!*arg)
			return fail(p, "--output needs a file name");
		p->opts.out_path = strcmp(arg, "-") == 0 ? NULL : arg;
		return 0;
	case KEY_ALL:
		p->opts.all = true;
		return 0;
	case KEY_JSON:
		p->opts.json = true;
		return 0;
	case KEY_MEMORY_ONLY:
		p->opts.memory_only = true;
		return 0;
	case KEY_SLOW:
		return parse_slow(p, arg);
	case KEY_SPLIT_TAILS:
		p->opts.split_tails = true;
		return 0;
	case 'h':
		p->help = true;
		return 0;
	case KEY_VERSION:
		p->version = true;
		return 0;
	case ARGP_KEY_ARG:
		return parse_word(p, arg);
	case ARGP_KEY_ERROR:
		return explain_error(p, state->next > 0 && state->next <= state->argc ?
						state->argv[state->next - 1] :
						"");
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char attach_doc[] =
	"Measure a running brick or client and report, per operation, where its time goes. "
	"What the process's own statistics say is printed at once, before any probe is in. "
	"SIGINT ends the measurement early; the report is still printed."
	"\v"
	"TARGET is a volume, a brick's path, a mount point, a process id or a device; "
	"'bricktop list' shows what there is.";

static const char stuck_doc[] =
	"Show the requests in flight in a GlusterFS process, oldest first, with the xlator that "
	"each sits in. Reads the process's memory; puts no probe in.";

static const char doctor_doc[] =
	"Say what works with this kernel and these privileges, what does not, the reason, and what "
	"is lost by it. Loads small programs, hangs them on this very process, and takes them out "
	"again; also where not run as root."
	"\v"
	"Exit status: 0 all layers work, 1 some do not, 77 none does.";

static struct argp command_argp(enum opts_command command)
{
	static const char *const docs[] = {
		[OPTS_ATTACH] = attach_doc,
		[OPTS_LIST] = "Show what can be attached to: bricks, clients, XFS mounts, devices.",
		[OPTS_STUCK] = stuck_doc,
		[OPTS_DOCTOR] = doctor_doc,
	};
	static const char *const args[] = {
		[OPTS_ATTACH] = "TARGET\n--all",
		[OPTS_LIST] = "",
		[OPTS_STUCK] = "[TARGET]",
		[OPTS_DOCTOR] = "",
	};

	return (struct argp){ .options = command_options(command),
			      .parser = parse_key,
			      .args_doc = args[command],
			      .doc = docs[command] };
}

/* What options may not stand together, and what must be there. */
static void check_opts(struct parse *p)
{
	const struct opts *o = &p->opts;

	if (o->all && o->target)
		fail(p, "either a target or --all, not both");
	else if (o->command == OPTS_ATTACH && !o->target && !o->all)
		fail(p, "attach to what? name a target, or --all; see 'bricktop list'");
	else if (o->memory_only && o->split_tails)
		fail(p, "--split-tails needs probes: not with --memory-only");
	else if (o->memory_only && o->budget_pct > 0)
		fail(p, "--budget is for probes: --memory-only puts none in");
	else if (o->memory_only && o->layers_off)
		fail(p, "--layers needs probes: not with --memory-only");
	else if (o->memory_only && o->dump_path)
		fail(p, "--dump-requests needs probes: not with --memory-only");
	else if (o->memory_only && o->slow)
		fail(p, "--slow needs probes: not with --memory-only");
	else if (o->interval_ns > o->duration_ns)
		fail(p, "--interval is longer than the whole measurement (--duration)");
}

static char *help_text(enum opts_command command, const char *name)
{
	struct argp argp = command_argp(command);
	char *text = NULL, full[64];
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	snprintf(full, sizeof(full), "bricktop %s", name);
	argp_help(&argp, out,
		  ARGP_HELP_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG | ARGP_HELP_POST_DOC, full);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static char *version_text(void)
{
	char *text = NULL;

	return asprintf(&text, "bricktop %s\n", BRICKTOP_VERSION) < 0 ? NULL : text;
}

/* Hand out what was found instead of a command; takes over text. */
static int hand_text(char *text, int exit_code, char **ret_text, int *ret_exit)
{
	if (!text)
		return -ENOMEM;
	*ret_text = text;
	*ret_exit = exit_code;
	return 1;
}

static int parse_command(struct parse *p, int argc, char *const argv[], char **ret_text,
			 int *ret_exit)
{
	struct argp argp = command_argp(p->opts.command);
	char **args = calloc((size_t)argc + 1, sizeof(*args)); /* argp reorders what it is given */
	error_t err;

	if (!args)
		return -ENOMEM;
	memcpy(args, argv, (size_t)argc * sizeof(*args));
	err = argp_parse(&argp, argc, args, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, p);
	free(args);
	if (err == ENOMEM)
		return -ENOMEM;
	if (err && !p->error[0])
		fail(p, "cannot make sense of the options; see 'bricktop %s --help'", p->command);
	if (!p->error[0] && p->help)
		return hand_text(help_text(p->opts.command, p->command), OPTS_EXIT_OK, ret_text,
				 ret_exit);
	if (!p->error[0] && p->version)
		return hand_text(version_text(), OPTS_EXIT_OK, ret_text, ret_exit);
	if (!p->error[0])
		check_opts(p);
	if (p->error[0])
		return hand_text(strdup(p->error), OPTS_EXIT_USAGE, ret_text, ret_exit);
	*ret_text = NULL;
	*ret_exit = OPTS_EXIT_OK;
	return 0;
}

static enum opts_command find_command(const char *word)
{
	static const char *const names[] = {
		[OPTS_ATTACH] = "attach",
		[OPTS_LIST] = "list",
		[OPTS_STUCK] = "stuck",
		[OPTS_DOCTOR] = "doctor",
	};

	for (enum opts_command c = OPTS_ATTACH; c <= OPTS_DOCTOR; c++)
		if (strcmp(word, names[c]) == 0)
			return c;
	return OPTS_NONE;
}

int opts_parse(int argc, char *const argv[], struct opts *ret_opts, char **ret_text, int *ret_exit)
{
	struct parse p = { .opts = { .duration_ns = DURATION_DEFAULT } };
	const char *word = argc > 1 ? argv[1] : "";
	int ret;

	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return hand_text(strdup(top_help), OPTS_EXIT_OK, ret_text, ret_exit);
	if (strcmp(word, "--version") == 0)
		return hand_text(version_text(), OPTS_EXIT_OK, ret_text, ret_exit);
	p.command = word;
	p.opts.command = find_command(word);
	if (argc > ARGS_MAX)
		fail(&p, "more than %d arguments", ARGS_MAX);
	else if (argc < 2)
		fail(&p,
		     "which command? attach, list, stuck or doctor (there is no live screen yet); "
		     "see 'bricktop --help'");
	else if (p.opts.command == OPTS_NONE)
		fail(&p,
		     "there is no command '%s': attach, list, stuck or doctor; see 'bricktop "
		     "--help'",
		     word);
	if (p.error[0])
		return hand_text(strdup(p.error), OPTS_EXIT_USAGE, ret_text, ret_exit);
	ret = parse_command(&p, argc - 1, argv + 1, ret_text, ret_exit);
	if (ret == 0)
		*ret_opts = p.opts;
	return ret;
}
