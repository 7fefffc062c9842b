/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_text.c: text of bounded length for names, groups and paths. Owns where a name that is too
 * long is cut: never inside a UTF-8 character, so that what was valid stays valid for the sinks.
 */
#include <string.h>

#include "model_priv.h"

/* How many of src's bytes fit into room without splitting a character. */
static size_t fitting_bytes(const char *src, size_t room)
{
	size_t len = strnlen(src, room + 1), back = 0;

	if (len <= room)
		return len;
	len = room;
	while (len > 0 && back < 3 && ((unsigned char)src[len] & 0xc0) == 0x80) {
		len--;
		back++;
	}
	return len;
}

void model_text_add(char *dst, size_t dst_size, const char *src)
{
	size_t used = strnlen(dst, dst_size), n;

	if (used + 1 >= dst_size)
		return;
	n = fitting_bytes(src, dst_size - used - 1);
	memcpy(dst + used, src, n);
	dst[used + n] = '\0';
}

void model_text_set(char *dst, size_t dst_size, const char *src)
{
	dst[0] = '\0';
	model_text_add(dst, dst_size, src);
}

void model_text_add_number(char *dst, size_t dst_size, unsigned int number)
{
	char digits[12];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	model_text_add(dst, dst_size, digits + at);
}

const char *model_root_name(enum wire_root root)
{
	static const char *const names[WIRE_ROOTS] = {
		[WIRE_ROOT_BRICK] = "brick",
		[WIRE_ROOT_CLIENT] = "client",
		[WIRE_ROOT_APP] = "app",
		[WIRE_ROOT_LOCAL] = "local",
		[WIRE_ROOT_BACKGROUND] = "background",
	};

	return (unsigned int)root < WIRE_ROOTS ? names[root] : "-";
}
