// SPDX-License-Identifier: Apache-2.0
/*
 * text.c: text from elsewhere made harmless, and numbers made readable. Pure: no I/O, no locale, no
 * state. Every name that bricktop prints (volumes, paths, xlators, comms) comes from another
 * process and passes through text_sanitize() exactly once, where it enters.
 */
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Code points that show nothing, or that reorder or break the text around them. */
static const struct {
	uint32_t first, last;
} hidden_ranges[] = {
	{ 0x00000, 0x0001f }, /* C0 controls, ESC among them */
	{ 0x0007f, 0x0009f }, /* DEL, C1 controls (0x9b is CSI) */
	{ 0x000ad, 0x000ad }, /* soft hyphen */
	{ 0x0034f, 0x0034f }, /* combining grapheme joiner */
	{ 0x0061c, 0x0061c }, /* arabic letter mark */
	{ 0x0115f, 0x01160 }, /* hangul fillers */
	{ 0x017b4, 0x017b5 }, /* khmer inherent vowels */
	{ 0x0180b, 0x0180f }, /* mongolian selectors */
	{ 0x0200b, 0x0200f }, /* zero width, left-to-right and right-to-left marks */
	{ 0x02028, 0x0202e }, /* line and paragraph separators, embeddings and overrides */
	{ 0x02060, 0x0206f }, /* word joiner, isolates, deprecated format characters */
	{ 0x03164, 0x03164 }, /* hangul filler */
	{ 0x0fdd0, 0x0fdef }, /* noncharacters */
	{ 0x0fe00, 0x0fe0f }, /* variation selectors */
	{ 0x0feff, 0x0feff }, /* byte order mark */
	{ 0x0ffa0, 0x0ffa0 }, /* halfwidth hangul filler */
	{ 0x0fff0, 0x0fffb }, /* interlinear annotations */
	{ 0x1bca0, 0x1bca3 }, /* shorthand format controls */
	{ 0x1d173, 0x1d17a }, /* musical format controls */
	{ 0xe0000, 0xe0fff }, /* tags, more variation selectors */
};

static bool is_hidden(uint32_t cp)
{
	if ((cp & 0xfffe) == 0xfffe)
		return true; /* the last two of each plane are noncharacters */
	for (size_t i = 0; i < sizeof(hidden_ranges) / sizeof(hidden_ranges[0]); i++)
		if (cp >= hidden_ranges[i].first && cp <= hidden_ranges[i].last)
			return true;
	return false;
}

/*
 * Length in bytes of the character at s, 0 where it is no valid UTF-8 (overlong, surrogate, cut).
 * The terminating NUL is no continuation byte, so a cut sequence never reads past it.
 */
static size_t decode_utf8(const unsigned char *s, uint32_t *ret_cp)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t cp;
	size_t len;

	if (s[0] < 0x80) {
		*ret_cp = s[0];
		return 1;
	}
	if ((s[0] & 0xe0) == 0xc0)
		len = 2, cp = s[0] & 0x1f;
	else if ((s[0] & 0xf0) == 0xe0)
		len = 3, cp = s[0] & 0x0f;
	else if ((s[0] & 0xf8) == 0xf0)
		len = 4, cp = s[0] & 0x07;
	else
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (s[i] & 0x3f);
	}
	if (cp < least[len] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	*ret_cp = cp;
	return len;
}

char *text_sanitize(char *dst, size_t dst_size, const char *src)
{
	const unsigned char *s = (const unsigned char *)src;
	size_t out = 0;

	if (!dst_size)
		return dst;
	while (*s) {
		uint32_t cp = 0;
		size_t len = decode_utf8(s, &cp);
		bool bad = !len || is_hidden(cp);
		size_t out_len = bad ? 1 : len;

		if (out + out_len >= dst_size)
			break;
		if (bad)
			dst[out] = '?';
		else
			memcpy(dst + out, s, len);
		out += out_len;
		s += len ? len : 1;
	}
	dst[out] = '\0';
	return dst;
}

/* value in the unit that suits it: one decimal below 10, none above; the unit is stepped after
 * rounding. */
static char *print_scaled(char *buf, size_t size, double value, double step,
			  const char *const *units, size_t n_units)
{
	size_t u = 0;

	while (u + 1 < n_units && value >= step - 0.5) {
		value /= step;
		u++;
	}
	if (value < 9.95 && (u > 0 || value != floor(value)))
		snprintf(buf, size, "%.1f%s", value, units[u]);
	else if (value < 999999.5)
		snprintf(buf, size, "%.0f%s", value, units[u]);
	else
		snprintf(buf, size, ">1e6%s", units[u]);
	return buf;
}

static char *print_unknown(char *buf, size_t size)
{
	snprintf(buf, size, "-");
	return buf;
}

char *text_duration(char *buf, size_t size, double ns)
{
	static const char *const units[] = { "us", "ms", "s" };
	double us = ns / 1000.0;

	if (!isfinite(ns) || ns < 0)
		return print_unknown(buf, size);
	if (us < 9.95) {
		snprintf(buf, size, "%.1fus", us);
		return buf;
	}
	return print_scaled(buf, size, us, 1000.0, units, 3);
}

char *text_bytes(char *buf, size_t size, double bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };

	if (!isfinite(bytes) || bytes < 0)
		return print_unknown(buf, size);
	return print_scaled(buf, size, bytes, 1000.0, units, 7);
}

char *text_count(char *buf, size_t size, double value)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P" };

	if (!isfinite(value) || value < 0)
		return print_unknown(buf, size);
	/* Four digits are still read exactly; beyond, the magnitude is what counts. */
	if (value >= 999.5 && value < 9999.5) {
		unsigned int n = (unsigned int)(value + 0.5);

		snprintf(buf, size, "%u,%03u", n / 1000, n % 1000);
		return buf;
	}
	return print_scaled(buf, size, value, 1000.0, units, 6);
}

char *text_gfid(char buf[TEXT_GFID], const uint8_t g[16])
{
	snprintf(buf, TEXT_GFID,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", g[0], g[1],
		 g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13], g[14],
		 g[15]);
	return buf;
}

static int find_unit(const char *s, uint64_t default_unit_ns, uint64_t *ret_unit_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 },
		{ "us", 1000 },
		{ "ms", 1000000 },
		{ "s", 1000000000ULL },
		{ "m", 60 * 1000000000ULL },
		{ "min", 60 * 1000000000ULL },
		{ "h", 3600 * 1000000000ULL },
	};

	if (!*s) {
		*ret_unit_ns = default_unit_ns;
		return 0;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(s, units[i].name)) {
			*ret_unit_ns = units[i].ns;
			return 0;
		}
	}
	return -EINVAL;
}

int text_parse_duration(const char *s, uint64_t default_unit_ns, uint64_t *ret_ns)
{
	uint64_t whole = 0, unit_ns, part_ns, total_ns;
	double frac = 0, place = 0.1;
	int err;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
			return -ERANGE;
	if (*s == '.') {
		if (!isdigit((unsigned char)*++s))
			return -EINVAL;
		while (isdigit((unsigned char)*s)) {
			frac += (*s++ - '0') * place;
			place /= 10;
		}
	}
	err = find_unit(s, default_unit_ns, &unit_ns);
	if (err)
		return err;
	part_ns = (uint64_t)(frac * (double)unit_ns + 0.5);
	if (__builtin_mul_overflow(whole, unit_ns, &total_ns) ||
	    __builtin_add_overflow(total_ns, part_ns, &total_ns))
		return -ERANGE;
	*ret_ns = total_ns;
	return 0;
}
