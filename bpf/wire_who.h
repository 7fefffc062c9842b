/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * wire_who.h: a part of wire.h, which includes it and whose rules hold: whose a request is, and how
 * much each file and each application got.
 */
#ifndef BRICKTOP_WIRE_WHO_H
#define BRICKTOP_WIRE_WHO_H

/* What a request is about: how the 16 bytes of wire_who.file are to be read. */
enum wire_file {
	WIRE_FILE_NONE,  /* not known, or no file at all; the bytes are 0 */
	WIRE_FILE_GFID,  /* the file's gfid */
	WIRE_FILE_ENTRY, /* a name that is not known as a file (yet); the directory's gfid */
	WIRE_FILE_INODE, /* of a process that is no GlusterFS: number and device (__u64 each) */
};

/* Which file and which application a request is of. */
struct wire_who {
	__u8 file[16];
	__u64 client; /* brick: address of the client_t that it came from; else 0 */
	__s32 pid;    /* of the application, where that runs; negative: GlusterFS's own */
	__u32 uid;
	__u8 kind;    /* enum wire_file */
	__u8 has_app; /* 1: client, pid and uid are known */
	__u8 pad[6];
};
_Static_assert(sizeof(struct wire_who) == 40, "wire_who");

/*
 * Maps "files" and "apps": what one file, one application got, of a target's requests (those that
 * others wait for), or of the calls of a process that is no GlusterFS. The least recently used are
 * pushed out: what is missing is the difference to the target's slots.
 */
#define WIRE_FILES 8192
#define WIRE_APPS  1024

enum wire_use_table { WIRE_USES_FILES, WIRE_USES_APPS, WIRE_USE_TABLES };

/* Map "uses_made", by target: rows made so far; those that are not there have been pushed out. */
struct wire_uses_made {
	__u64 rows[WIRE_USE_TABLES];
};

enum wire_use_class {
	WIRE_USE_READ,
	WIRE_USE_WRITE,
	WIRE_USE_SYNC,
	WIRE_USE_OTHER,
	WIRE_USE_CLASSES,
};

/* An application: a process at its client; of a plain process a thread, and client is 0. */
struct wire_app {
	__u64 client;
	__s32 pid;
	__u32 uid;
};

struct wire_use_key {
	__u8 id[16]; /* wire_who.file, or a struct wire_app */
	__u16 target;
	__u8 kind; /* enum wire_file; of an application 1: it is known */
	__u8 pad[5];
};
_Static_assert(sizeof(struct wire_use_key) == 24, "wire_use_key");

struct wire_use {
	__u64 born_ns; /* CLOCK_MONOTONIC; another one: pushed out since, and counts anew */
	__u64 count[WIRE_USE_CLASSES], sum_ns[WIRE_USE_CLASSES]; /* inclusive */
	__u64 max_ns, bytes, errors;
	__u8 last[16]; /* of a file: the struct wire_app that used it last; of a thread: its name */
};
_Static_assert(sizeof(struct wire_use) == 112, "wire_use");

#endif
