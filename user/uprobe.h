/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uprobe.h: attach a loaded BPF program to addresses of a process's files. Owns the links' file
 * descriptors; knows neither what the program does nor why the addresses were chosen.
 *
 * Two kinds, and a program belongs to one of them, by its load-time expected_attach_type:
 * - uprobe-multi links (kernel 6.6): many sites in one link, detached in one go (30-40 ms). The
 * program must have been loaded with expected_attach_type UPROBE_MULTI_ATTACH_TYPE.
 * - perf uprobes (cookies: 5.15): one link a site; detaching costs about 100 ms a site. The program
 *   must have been loaded without it.
 *
 * Kernels 6.6 to 6.9 compare a multi link's pid with the thread, not with the process: hits then
 * come from the main thread only. Attaching succeeds all the same, so the caller must ask for proof
 * (hits from a second thread) and otherwise close the links and use perf uprobes.
 */
#ifndef BRICKTOP_UPROBE_H
#define BRICKTOP_UPROBE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* BPF_TRACE_UPROBE_MULTI of linux/bpf.h since 6.6; for bpf_program__set_expected_attach_type(). */
enum { UPROBE_MULTI_ATTACH_TYPE = 48 };

enum uprobe_kind {
	UPROBE_MULTI,
	UPROBE_PERF,
};

struct uprobe_site {
	const char *path; /* as this process can open it: /proc/PID/root/... for another's file */
	uint64_t offset;  /* in the file: elf_vaddr_to_offset() */
	uint64_t cookie;  /* what bpf_get_attach_cookie() returns in a hit */
};

/* Zeroed is empty. Links live until uprobe_links_close(), or until this process dies. */
struct uprobe_links {
	int *fds;
	size_t n, max;
};

/*
 * Attach prog_fd to n sites, at the instruction itself. pid: all threads of that process; 0: every
 * process that maps the files. The links are added to *links; where one site fails, none of this
 * call stays. 0 or -errno (-ENOENT: no file, -ESRCH: no process, -EINVAL: no such place in the
 * file, a program loaded for the other kind, or UPROBE_MULTI on a kernel before 6.6, ...) and a
 * line in err.
 */
int uprobe_attach(enum uprobe_kind kind, int prog_fd, pid_t pid, const struct uprobe_site *sites,
		  size_t n, struct uprobe_links *links, char *err, size_t err_size);

/* Detach everything; *links is empty afterwards and may be used again. */
void uprobe_links_close(struct uprobe_links *links);

#endif
