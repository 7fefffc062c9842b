/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_dump.c: a wire_dump record as a line of JSON. Written by hand, not through jansson: stamps
 * are unsigned 64-bit numbers that must come out to the last digit. Nothing is recomputed but
 * differences of what the record holds: a checker has to be able to disagree.
 */
#include "sink_dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"
#include "text.h"

#define NAME_MAX_BYTES 1024

static const char *const root_names[WIRE_ROOTS] = {
	[WIRE_ROOT_BRICK] = "brick", [WIRE_ROOT_CLIENT] = "client",         [WIRE_ROOT_APP] = "app",
	[WIRE_ROOT_LOCAL] = "local", [WIRE_ROOT_BACKGROUND] = "background",
};

/* "s" in quotes; what text_sanitize() leaves needs no other escapes than these two. */
static void put_string(FILE *out, const char *s)
{
	char clean[NAME_MAX_BYTES];

	fputc('"', out);
	for (const char *c = text_sanitize(clean, sizeof(clean), s); *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', out);
		fputc(*c, out);
	}
	fputc('"', out);
}

static void put_name(FILE *out, const char *key, const char *name, unsigned int number)
{
	fprintf(out, "\"%s\":", key);
	if (name)
		put_string(out, name);
	else
		fprintf(out, "\"%u\"", number);
}

static const char *bool_name(unsigned int v)
{
	return v ? "true" : "false";
}

static int put_frame(FILE *out, const struct wire_dump *head, const struct wire_dump_frame *f,
		     unsigned int i, const struct sink_dump_names *names)
{
	/* Negative where the accounting went wrong: shown as it is. */
	int64_t incl = (int64_t)(f->end - f->begin);
	int64_t self = (int64_t)(f->end - f->begin - f->covered);

	if (f->parent != REQUEST_NO_FRAME && f->parent >= head->n_frames)
		return -EBADMSG;
	fprintf(out, "%s{\"i\":%u,\"stack\":%u,\"addr\":\"0x%" PRIx64 "\",\"parent\":%d,",
		i ? "," : "", i, f->stack, (uint64_t)f->addr,
		f->parent == REQUEST_NO_FRAME ? -1 : (int)f->parent);
	put_name(out, "xlator", names->layer(names->arg, head->target, f->layer), f->layer);
	fprintf(out, ",\"begin\":%" PRIu64 ",\"end\":%" PRIu64 ",", (uint64_t)f->begin,
		(uint64_t)f->end);
	put_name(out, "op", names->op(names->arg, f->op), f->op);
	fprintf(out, ",\"copy_root\":%s,\"on_thread\":%s",
		bool_name(f->flags & WIRE_FRAME_COPY_ROOT),
		bool_name(f->flags & WIRE_FRAME_ON_THREAD));
	fprintf(out,
		",\"begin_raw\":%" PRIu64 ",\"end_raw\":%" PRIu64 ",\"self\":%" PRId64
		",\"incl\":%" PRId64,
		(uint64_t)f->begin_raw, (uint64_t)f->end_raw, self, incl);
	fprintf(out, ",\"bytes\":%" PRIu64 ",\"failed\":%s", (uint64_t)f->bytes,
		bool_name(f->failed));
	fprintf(out, ",\"counted\":%s,\"derived\":%s,\"clipped\":%s,\"open\":%s,\"tail\":%s}",
		bool_name(f->flags & WIRE_FRAME_COUNTED), bool_name(f->flags & WIRE_FRAME_DERIVED),
		bool_name(f->flags & WIRE_FRAME_CLIPPED), bool_name(f->flags & WIRE_FRAME_OPEN),
		bool_name(f->flags & WIRE_FRAME_TAIL));
	return 0;
}

static int put_part(FILE *out, const struct wire_dump *head, const struct wire_span *s,
		    unsigned int i, const struct sink_dump_names *names)
{
	const struct wire_span_part *p = &s->part[i];

	if (p->parent_part != REQUEST_NO_PART && p->parent_part >= s->n_parts)
		return -EBADMSG;
	fprintf(out, "%s{", i ? "," : "");
	put_name(out, "layer", names->layer(names->arg, head->target, p->layer), p->layer);
	fputc(',', out);
	put_name(out, "sub", names->sub(names->arg, p->layer, p->sub), p->sub);
	fprintf(out, ",\"parent\":%d,\"calls\":%u,\"self\":%" PRIu64 ",\"incl\":%" PRIu64 "}",
		p->parent_part == REQUEST_NO_PART ? -1 : (int)p->parent_part, p->calls,
		(uint64_t)p->self_ns, (uint64_t)p->incl_ns);
	return 0;
}

static int put_span(FILE *out, const struct wire_dump *head, const struct wire_span *s,
		    unsigned int i, const struct sink_dump_names *names)
{
	const struct wire_span_part *first = &s->part[0];

	if (s->n_parts == 0 || s->n_parts > WIRE_SPAN_PARTS)
		return -EBADMSG;
	if (s->frame != REQUEST_NO_FRAME && s->frame >= head->n_frames)
		return -EBADMSG;
	fprintf(out, "%s{\"frame\":%d,", i ? "," : "",
		s->frame == REQUEST_NO_FRAME ? -1 : (int)s->frame);
	put_name(out, "layer", names->layer(names->arg, head->target, first->layer), first->layer);
	fputc(',', out);
	put_name(out, "sub", names->sub(names->arg, first->layer, first->sub), first->sub);
	fprintf(out, ",\"begin\":%" PRIu64 ",\"end\":%" PRIu64 ",\"self\":%" PRIu64,
		(uint64_t)s->begin, (uint64_t)s->end, (uint64_t)first->self_ns);
	fprintf(out, ",\"bytes\":%" PRIu64 ",\"file\":%" PRIu64 ",\"claimed\":%s,\"failed\":%s",
		(uint64_t)s->bytes, (uint64_t)s->file, bool_name(s->claimed), bool_name(s->failed));
	if (s->joined)
		fprintf(out, ",\"joined\":\"0x%" PRIx64 "\"", (uint64_t)s->joined);
	fputs(",\"parts\":[", out);
	for (unsigned int p = 0; p < s->n_parts; p++) {
		int err = put_part(out, head, s, p, names);

		if (err)
			return err;
	}
	fputs("]}", out);
	return 0;
}

/* All that is remembered of a frame's address, of earlier uses too, in order of the ring. */
static int put_marks(FILE *out, const struct wire_dump *head, const struct wire_dump_marks *m,
		     unsigned int i, const struct sink_dump_names *names)
{
	const char *comma = "";

	if (m->frame >= head->n_frames)
		return -EBADMSG;
	fprintf(out, "%s{\"frame\":%u,", i ? "," : "", m->frame);
	put_name(out, "this", names->layer(names->arg, head->target, m->this_layer), m->this_layer);
	fprintf(out, ",\"made\":%" PRIu64 ",\"kept\":[", (uint64_t)m->entries.n);
	for (unsigned int k = 0; k < WIRE_TAIL_MARKS; k++) {
		if (!m->entries.mark[k].time)
			continue;
		fprintf(out, "%s{", comma);
		put_name(out, "xlator", names->layer(names->arg, head->target, m->layer[k]),
			 m->layer[k]);
		fprintf(out, ",\"time\":%" PRIu64 "}", (uint64_t)m->entries.mark[k].time);
		comma = ",";
	}
	fputs("]}", out);
	return 0;
}

/* What the reply and the stack say of a request that failed. raiser null: nobody can tell. */
static void put_error(FILE *out, const struct wire_dump *head, const struct sink_dump_names *names)
{
	fprintf(out, ",\"errno\":%d,\"stack_error\":%d,", head->op_errno, head->stack_error);
	if (!head->raiser_known)
		fputs("\"raiser\":null", out);
	else if (!head->raiser)
		fputs("\"raiser\":\"\"", out);
	else
		put_name(out, "raiser", names->layer(names->arg, head->target, head->raiser),
			 head->raiser);
}

static void put_head(FILE *out, const struct wire_dump *head, const struct sink_dump_names *names)
{
	const char *root = head->root < WIRE_ROOTS ? root_names[head->root] : NULL;

	fputs("{\"schema\":\"bricktop-request/1\",", out);
	put_name(out, "target", names->target(names->arg, head->target), head->target);
	fputc(',', out);
	put_name(out, "op", names->op(names->arg, head->op), head->op);
	fputc(',', out);
	put_name(out, "root", root, head->root);
	fprintf(out, ",\"origin\":\"%s\",\"thread\":%u,",
		head->origin == WIRE_ORIGIN_INTERNAL ? "internal" : "user", head->tid);
	put_name(out, "unsplit", request_unsplit(head), head->unsplit);
	fprintf(out, ",\"covered\":%s", head->uncovered ? "false" : "true");
	fprintf(out, ",\"watermark\":%" PRIu64 ",\"pid\":%u,\"result\":%" PRId64,
		(uint64_t)head->watermark, head->tgid, (int64_t)head->result);
	if (head->result < 0)
		put_error(out, head, names);
}

/* Which file, and for which application; null where it is not known. */
static void put_who(FILE *out, const struct wire_who *who)
{
	char gfid[TEXT_GFID];

	if (who->kind == WIRE_FILE_GFID || who->kind == WIRE_FILE_ENTRY)
		fprintf(out, ",\"gfid\":\"%s\",\"entry\":%s", text_gfid(gfid, who->file),
			bool_name(who->kind == WIRE_FILE_ENTRY));
	else
		fputs(",\"gfid\":null,\"entry\":null", out);
	if (who->has_app)
		fprintf(out, ",\"app_pid\":%d,\"uid\":%u,\"client\":\"0x%" PRIx64 "\"", who->pid,
			who->uid, (uint64_t)who->client);
	else
		fputs(",\"app_pid\":null,\"uid\":null,\"client\":null", out);
}

static int put_record(FILE *out, const struct request *r, const struct sink_dump_names *names)
{
	const struct wire_dump *head = &r->head;
	int err = 0;

	put_head(out, head, names);
	put_who(out, &r->who);
	fputs(",\"frames\":[", out);
	for (unsigned int i = 0; i < head->n_frames && !err; i++) {
		struct wire_dump_frame f;

		request_frame(r, i, &f);
		err = put_frame(out, head, &f, i, names);
	}
	fputs("],\"spans\":[", out);
	for (unsigned int i = 0; i < head->n_spans && !err; i++) {
		struct wire_span s;

		request_span(r, i, &s);
		err = put_span(out, head, &s, i, names);
	}
	fputs("],\"marks\":[", out);
	for (unsigned int i = 0; i < head->n_marks && !err; i++) {
		struct wire_dump_marks m; /* copied out: a record need not be aligned */

		memcpy(&m, r->marks + i * sizeof(m), sizeof(m));
		err = put_marks(out, head, &m, i, names);
	}
	fputs("]}\n", out);
	return err;
}

int sink_dump_write(FILE *out, const void *record, size_t len, const struct sink_dump_names *names)
{
	struct request r;
	char *line = NULL;
	size_t line_len = 0;
	FILE *memory;
	int err = request_open(record, len, &r);

	if (err)
		return err;
	/* Into memory first: a record that turns out bad half-way must not leave half a line. */
	memory = open_memstream(&line, &line_len);
	if (!memory)
		return -ENOMEM;
	err = put_record(memory, &r, names);
	if (fclose(memory) != 0 && !err)
		err = -ENOMEM;
	errno = 0;
	if (!err && fwrite(line, 1, line_len, out) != line_len)
		err = errno ? -errno : -EIO;
	free(line);
	return err;
}
