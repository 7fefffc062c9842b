// SPDX-License-Identifier: Apache-2.0
/*
 * eh_frame.c: a bounded parser of .eh_frame, for the one thing wanted of it: where functions start
 * and end. Call frame instructions are not looked at. The bytes are foreign and untrusted: each
 * entry is confined to its own length, and one that makes no sense is passed over.
 */
#include "eh_frame.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CIE_AUG   16 /* letters of a CIE's augmentation string that are looked at */
#define MIN_FDE_BYTES 12 /* length, CIE pointer, and two addresses of at least two bytes */

/* DW_EH_PE_*: how .eh_frame writes addresses (LSB, section "DWARF Extensions"). */
enum {
	PE_FORMAT = 0x0f,
	PE_ABSPTR = 0x00,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_APPLICATION = 0x70,
	PE_PCREL = 0x10,
	PE_INDIRECT = 0x80,
};

/* Offsets are relative to the section; bad stays set once a read failed. */
struct frame_cursor {
	const unsigned char *data;
	uint64_t at, end;
	bool bad;
};

static uint64_t take_bytes(struct frame_cursor *cur, unsigned int n)
{
	uint64_t value = 0;

	if (cur->bad || cur->at > cur->end || n > cur->end - cur->at) {
		cur->bad = true;
		return 0;
	}
	memcpy(&value, cur->data + cur->at, n);
	cur->at += n;
	return value;
}

/* LEB128, signed or not: only its length matters here, or its value where it is small. */
static uint64_t take_leb(struct frame_cursor *cur)
{
	uint64_t value = 0, byte;
	unsigned int shift;

	for (shift = 0; shift < 64; shift += 7) {
		byte = take_bytes(cur, 1);
		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cur->bad = true;
	return 0;
}

/* An address or a length in one of the DW_EH_PE formats; sign-extended where the format says so. */
static uint64_t take_encoded(struct frame_cursor *cur, unsigned int encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return take_bytes(cur, 8);
	case PE_UDATA4:
		return take_bytes(cur, 4);
	case PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)take_bytes(cur, 4);
	case PE_UDATA2:
		return take_bytes(cur, 2);
	case PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)take_bytes(cur, 2);
	default:
		cur->bad = true;
		return 0;
	}
}

/* Narrow the cursor to the entry at cur->at: its end, and where its id word starts. */
static bool open_entry(struct frame_cursor *cur, uint64_t *ret_id_at, uint64_t *ret_id)
{
	uint64_t len = take_bytes(cur, 4);
	bool is_64 = len == 0xffffffff;

	if (is_64)
		len = take_bytes(cur, 8);
	if (cur->bad || len == 0 || len > cur->end - cur->at)
		return false;
	cur->end = cur->at + len;
	*ret_id_at = cur->at;
	*ret_id = take_bytes(cur, is_64 ? 8 : 4);
	return !cur->bad;
}

/* How the FDEs of the CIE at an offset write their addresses. 0 or -EINVAL. */
static int read_cie_encoding(struct frame_cursor cur, unsigned int *ret_encoding)
{
	char aug[MAX_CIE_AUG] = "";
	unsigned int version, i;
	uint64_t id_at, id;

	if (!open_entry(&cur, &id_at, &id) || id != 0)
		return -EINVAL;
	version = (unsigned int)take_bytes(&cur, 1);
	for (i = 0; i < MAX_CIE_AUG; i++) {
		aug[i] = (char)take_bytes(&cur, 1);
		if (!aug[i])
			break;
	}
	if (i == MAX_CIE_AUG)
		return -EINVAL;
	take_leb(&cur); /* code and data alignment factors, return address register */
	take_leb(&cur);
	if (version == 1)
		take_bytes(&cur, 1);
	else
		take_leb(&cur);
	*ret_encoding = PE_ABSPTR;
	if (aug[0] != 'z')
		return cur.bad || aug[0] ? -EINVAL : 0;
	take_leb(&cur);
	for (i = 1; aug[i] && !cur.bad; i++) {
		if (aug[i] == 'R')
			*ret_encoding = (unsigned int)take_bytes(&cur, 1);
		else if (aug[i] == 'L')
			take_bytes(&cur, 1);
		else if (aug[i] == 'P')
			take_encoded(&cur, (unsigned int)take_bytes(&cur, 1));
		else if (!strchr("SB", aug[i]))
			return -EINVAL;
	}
	return cur.bad ? -EINVAL : 0;
}

/* The function of one FDE; the cursor stands behind its CIE pointer. */
static bool read_fde(struct frame_cursor *cur, unsigned int encoding, uint64_t section_vaddr,
		     struct elf_range *ret_range)
{
	uint64_t at = cur->at, start, len;

	start = take_encoded(cur, encoding);
	len = take_encoded(cur, encoding & PE_FORMAT);
	if (cur->bad || (encoding & PE_INDIRECT))
		return false;
	if ((encoding & PE_APPLICATION) == PE_PCREL)
		start += section_vaddr + at;
	else if (encoding & PE_APPLICATION)
		return false;
	if (len == 0 || len > UINT64_MAX - start)
		return false;
	ret_range->start = start;
	ret_range->end = start + len;
	return true;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct elf_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static size_t sort_ranges(struct elf_range *funcs, size_t n)
{
	size_t i, kept = 0;

	if (n)
		qsort(funcs, n, sizeof(*funcs), compare_ranges);
	for (i = 0; i < n; i++) {
		if (kept == 0 || funcs[kept - 1].start != funcs[i].start)
			funcs[kept++] = funcs[i];
	}
	return kept;
}

int eh_frame_parse(const unsigned char *data, size_t len_bytes, uint64_t vaddr,
		   struct elf_range **ret_funcs, size_t *ret_n)
{
	const struct frame_cursor section = { .data = data, .end = len_bytes };
	struct frame_cursor cur = section, cie = section;
	size_t max = len_bytes / MIN_FDE_BYTES + 1, n = 0;
	struct elf_range *funcs;
	unsigned int encoding;
	uint64_t id_at, id;

	if (!len_bytes)
		return -ENOENT;
	funcs = malloc(max * sizeof(*funcs));
	if (!funcs)
		return -ENOMEM;
	while (n < max && open_entry(&cur, &id_at, &id)) {
		/* The id of an FDE is the distance back to its CIE; that of a CIE is 0. */
		if (id != 0 && id <= id_at) {
			cie.at = id_at - id;
			if (!read_cie_encoding(cie, &encoding) &&
			    read_fde(&cur, encoding, vaddr, &funcs[n]))
				n++;
		}
		cur.at = cur.end;
		cur.end = section.end;
		cur.bad = false;
	}
	n = sort_ranges(funcs, n);
	if (n == 0) {
		free(funcs);
		return -ENOENT;
	}
	*ret_funcs = funcs;
	*ret_n = n;
	return 0;
}
