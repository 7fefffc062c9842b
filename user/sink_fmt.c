/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_fmt.c: how text looks on the terminal there is. Widths are counted in columns, not bytes,
 * and without the C library's wcwidth(), which knows nothing beyond ASCII before setlocale() was
 * called.
 */
#include "sink_fmt.h"

#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

#define COLUMNS_MIN     20
#define COLUMNS_DEFAULT 100
#define COLUMNS_MAX     400
#define TEXT_MAX_BYTES  4608 /* longest field of any contract, and some words around it */
#define REPLACEMENT     '?'
#define NS_PER_SEC      1000000000LL

void sink_fmt_detect(int fd, struct sink_style *ret_style)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	bool dumb = !term || !*term || !strcmp(term, "dumb");
	bool terminal = isatty(fd) == 1;
	struct winsize ws = { 0 };

	ret_style->columns = COLUMNS_DEFAULT;
	if (terminal && ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0)
		ret_style->columns = ws.ws_col;
	ret_style->colour = terminal && !dumb && !(no_color && *no_color);
	ret_style->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int sink_fmt_status(FILE *out)
{
	errno = 0;
	if (fflush(out) != 0 || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

unsigned int sink_fmt_columns(const struct sink_style *st)
{
	if (st->columns < COLUMNS_MIN)
		return COLUMNS_MIN;
	return st->columns > COLUMNS_MAX ? COLUMNS_MAX : st->columns;
}

/* One character of valid UTF-8; the terminator gives 0 bytes. */
static unsigned int next_char(const char *s, uint32_t *ret_code)
{
	unsigned char c = (unsigned char)*s;
	unsigned int len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	uint32_t code = len == 1 ? c : c & (0xffU >> (len + 1));

	*ret_code = c;
	if (!c)
		return 0;
	for (unsigned int i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 1;
		code = code << 6 | (s[i] & 0x3f);
	}
	*ret_code = code;
	return len;
}

static unsigned int char_columns(const struct sink_style *st, uint32_t code)
{
	static const struct {
		uint32_t first, last;
		unsigned int columns;
	} ranges[] = {
		{ 0x0300, 0x036f, 0 },   { 0x1100, 0x115f, 2 },   { 0x2e80, 0xa4cf, 2 },
		{ 0xac00, 0xd7a3, 2 },   { 0xf900, 0xfaff, 2 },   { 0xfe00, 0xfe0f, 0 },
		{ 0xfe30, 0xfe6f, 2 },   { 0xff00, 0xff60, 2 },   { 0xffe0, 0xffe6, 2 },
		{ 0x1f300, 0x1faff, 2 }, { 0x20000, 0x3fffd, 2 },
	};

	if (!st->utf8)
		return 1; /* printed as one '?' */
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return ranges[i].columns;
	return 1;
}

static unsigned int clean_width(const struct sink_style *st, const char *s)
{
	unsigned int width = 0, len;
	uint32_t code;

	for (; (len = next_char(s, &code)) > 0; s += len)
		width += char_columns(st, code);
	return width;
}

unsigned int sink_fmt_width(const struct sink_style *st, const char *s)
{
	char clean[TEXT_MAX_BYTES];

	return clean_width(st, text_sanitize(clean, sizeof(clean), s));
}

/* Print as much of s as fits into max columns; returns the columns used. */
static unsigned int put_clean(FILE *out, const struct sink_style *st, const char *s,
			      unsigned int max)
{
	unsigned int width = 0, len;
	uint32_t code;

	for (; (len = next_char(s, &code)) > 0; s += len) {
		unsigned int columns = char_columns(st, code);

		if (width + columns > max)
			break;
		width += columns;
		if (code < 0x80 || st->utf8)
			fwrite(s, 1, len, out);
		else
			fputc(REPLACEMENT, out);
	}
	return width;
}

void sink_fmt_text(FILE *out, const struct sink_style *st, const char *s)
{
	char clean[TEXT_MAX_BYTES];

	put_clean(out, st, text_sanitize(clean, sizeof(clean), s), TEXT_MAX_BYTES);
}

static void put_spaces(FILE *out, unsigned int n)
{
	while (n-- > 0)
		fputc(' ', out);
}

static void put_cell(FILE *out, const struct sink_style *st, const char *s, unsigned int width,
		     bool right)
{
	char clean[TEXT_MAX_BYTES];
	unsigned int used;

	text_sanitize(clean, sizeof(clean), s);
	used = clean_width(st, clean);
	if (used > width && width > 0) {
		used = put_clean(out, st, clean, width - 1) + 1;
		fputc('~', out);
		put_spaces(out, width - used);
		return;
	}
	if (right)
		put_spaces(out, width - used);
	put_clean(out, st, clean, width);
	if (!right)
		put_spaces(out, width - used);
}

void sink_fmt_left(FILE *out, const struct sink_style *st, const char *s, unsigned int width)
{
	put_cell(out, st, s, width, false);
}

void sink_fmt_right(FILE *out, const struct sink_style *st, const char *s, unsigned int width)
{
	put_cell(out, st, s, width, true);
}

void sink_fmt_bar(FILE *out, const struct sink_style *st, struct snap_num pct, unsigned int width)
{
	static const char *const eighths[] = { "",       "\u258f", "\u258e", "\u258d",
					       "\u258c", "\u258b", "\u258a", "\u2589" };
	double v = pct.valid && pct.v > 0 ? pct.v / 100 * width : 0;
	bool over = v > width;
	unsigned int full, part, used;

	if (!isfinite(v) || over)
		v = width;
	/* ASCII bars have no eighths: half a step and more is a step, and what is there is seen. */
	full = (unsigned int)(st->utf8 ? v : v + 0.5);
	part = st->utf8 ? (unsigned int)((v - full) * 8) : 0;
	if (!st->utf8 && full == 0 && v * 10 >= 1)
		full = 1;
	used = over && width > 0 ? width - 1 : full;
	for (unsigned int i = 0; i < used; i++)
		fputs(st->utf8 ? "\u2588" : "#", out);
	if (over && width > 0) {
		fputc('+', out);
		used++;
	} else if (part > 0) {
		fputs(eighths[part], out);
		used++;
	}
	put_spaces(out, width - used);
}

void sink_fmt_colour(FILE *out, const struct sink_style *st, enum sink_colour colour)
{
	static const char *const codes[] = {
		[SINK_PLAIN] = "\033[0m",
		[SINK_BOLD] = "\033[1m",
		[SINK_WARM] = "\033[33m",
		[SINK_HOT] = "\033[1;31m",
	};

	if (st->colour)
		fputs(codes[colour], out);
}

char *sink_fmt_ns(char *buf, size_t size, bool valid, double ns)
{
	if (valid && isfinite(ns))
		return text_duration(buf, size, ns);
	snprintf(buf, size, "-");
	return buf;
}

char *sink_fmt_pct(char *buf, size_t size, struct snap_num pct)
{
	double v = pct.v;

	/* A check that fails once in 10,000 must not be rounded to one that holds. */
	if (v < 100 && v > 99.9)
		v = 99.9;
	if (!pct.valid || !isfinite(v))
		snprintf(buf, size, "-");
	else if (v > 0 && v < 0.05)
		snprintf(buf, size, "<0.1 %%"); /* little is not nothing */
	else if (v == 0 || fabs(v) >= 100)
		snprintf(buf, size, "%.0f %%", v);
	else
		snprintf(buf, size, "%.1f %%", v);
	return buf;
}

char *sink_fmt_count(char *buf, size_t size, bool valid, double value)
{
	if (!valid || !isfinite(value))
		snprintf(buf, size, "-");
	else if (value < 100 && value != floor(value))
		snprintf(buf, size, "%.1f", value);
	else
		text_count(buf, size, value);
	return buf;
}

char *sink_fmt_u64(char *buf, size_t size, uint64_t value)
{
	char digits[24];
	size_t n = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	size_t o = 0;

	for (size_t i = 0; i < n && o + 2 < size; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			buf[o++] = ',';
		buf[o++] = digits[i];
	}
	if (size > 0)
		buf[o] = '\0';
	return buf;
}

char *sink_fmt_known(char *buf, size_t size, bool valid, uint64_t value)
{
	if (valid)
		return sink_fmt_u64(buf, size, value);
	snprintf(buf, size, "-");
	return buf;
}

char *sink_fmt_time(char *buf, size_t size, int64_t wall_ns)
{
	time_t secs = (time_t)(wall_ns / NS_PER_SEC);
	char date[32];
	struct tm tm;

	snprintf(buf, size, "%s", "");
	if (wall_ns <= 0 || !gmtime_r(&secs, &tm))
		return buf;
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf, size, "%s.%03dZ", date, (int)(wall_ns % NS_PER_SEC / 1000000));
	return buf;
}

void sink_fmt_flow_begin(struct sink_flow *flow, FILE *out, const struct sink_style *st,
			 const char *lead, unsigned int indent)
{
	unsigned int used = clean_width(st, lead);

	*flow = (struct sink_flow){ .out = out, .st = st, .indent = indent, .fresh = true };
	fputs(lead, out);
	if (used < indent)
		put_spaces(out, indent - used);
	flow->col = used < indent ? indent : used;
}

void sink_fmt_flow_resume(struct sink_flow *flow, FILE *out, const struct sink_style *st,
			  unsigned int col, unsigned int indent)
{
	*flow = (struct sink_flow){ .out = out, .st = st, .indent = indent, .col = col };
	flow->fresh = col == 0;
}

void sink_fmt_flow_item(struct sink_flow *flow, unsigned int gap, const char *fmt, ...)
{
	char item[TEXT_MAX_BYTES], clean[TEXT_MAX_BYTES];
	unsigned int width;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(item, sizeof(item), fmt, ap);
	va_end(ap);
	text_sanitize(clean, sizeof(clean), item);
	width = clean_width(flow->st, clean);
	if (flow->fresh)
		gap = 0;
	if (!flow->fresh && flow->col + gap + width > sink_fmt_columns(flow->st)) {
		fputc('\n', flow->out);
		put_spaces(flow->out, flow->indent);
		flow->col = flow->indent;
		gap = 0;
	}
	put_spaces(flow->out, gap);
	flow->col += gap + put_clean(flow->out, flow->st, clean, TEXT_MAX_BYTES);
	flow->fresh = false;
}

void sink_fmt_flow_words(struct sink_flow *flow, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (len)
			sink_fmt_flow_item(flow, 1, "%.*s", (int)len, text);
		text += len + (text[len] == ' ');
	}
}

void sink_fmt_flow_end(struct sink_flow *flow)
{
	fputc('\n', flow->out);
}
