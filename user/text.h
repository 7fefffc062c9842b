/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h: text from elsewhere made harmless, and numbers made readable. Pure; owns no state.
 */
#ifndef BRICKTOP_TEXT_H
#define BRICKTOP_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Copy src (NUL-terminated, any bytes) so that it is valid UTF-8 without control characters, escape
 * sequences, bidi marks or invisible code points: each is replaced by '?'. Cut at a character
 * boundary; always terminated. Returns dst.
 */
char *text_sanitize(char *dst, size_t dst_size, const char *src);

/* "0.8us" "71us" "4.1ms" "2.3s" "250s": at most 7 columns. */
char *text_duration(char *buf, size_t size, double ns);
/* "268MB" by powers of 1000, "12k", "2,151" with thousands separators. */
char *text_bytes(char *buf, size_t size, double bytes);
char *text_count(char *buf, size_t size, double value);

/* "f4b1...-...": the 16 bytes of a gfid or another UUID; TEXT_GFID bytes with the NUL. */
#define TEXT_GFID 37
char *text_gfid(char buf[TEXT_GFID], const uint8_t gfid[16]);

/* "10", "10s", "250ms", "1m" -> ns. 0 or -EINVAL/-ERANGE. A bare number is in default_unit_ns. */
int text_parse_duration(const char *s, uint64_t default_unit_ns, uint64_t *ret_ns);

#endif
