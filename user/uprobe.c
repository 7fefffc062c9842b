// SPDX-License-Identifier: Apache-2.0
/*
 * uprobe.c: uprobe-multi and perf uprobe links by the system calls themselves, since the libbpf and
 * the kernel headers we build with are older than uprobe-multi.
 */
#include "uprobe.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rights.h"

#define UPROBE_TYPE_FILE "/sys/bus/event_source/devices/uprobe/type"

/*
 * BPF_LINK_CREATE's part of union bpf_attr as of kernel 6.6 (include/uapi/linux/bpf.h). The union
 * is longer in newer headers; the kernel takes any length whose unknown rest is zero.
 */
struct link_create_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

_Static_assert(sizeof(struct link_create_multi) == 64, "layout of the kernel's uprobe_multi");

static int push_link(struct uprobe_links *links, int fd)
{
	int *grown;
	size_t max;

	if (links->n == links->max) {
		max = links->max ? links->max * 2 : 16;
		grown = realloc(links->fds, max * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		links->fds = grown;
		links->max = max;
	}
	links->fds[links->n++] = fd;
	return 0;
}

static void close_since(struct uprobe_links *links, size_t kept)
{
	while (links->n > kept)
		close(links->fds[--links->n]);
}

void uprobe_links_close(struct uprobe_links *links)
{
	close_since(links, 0);
	free(links->fds);
	*links = (struct uprobe_links){ 0 };
}

static int explain(int code, const struct uprobe_site *site, size_t n, char *err, size_t err_size)
{
	char rights[128];
	const char *why = rights_why_not(code, rights, sizeof(rights));

	if (!why && code == -EINVAL)
		why = "no instruction of that file, or a kernel without this kind of uprobe";
	else if (!why && code == -ESRCH)
		why = "the process is gone";
	else if (!why)
		why = strerror(-code);
	snprintf(err, err_size, "cannot probe '%s' at 0x%llx%s: %s", site->path,
		 (unsigned long long)site->offset, n > 1 ? " and other places" : "", why);
	return code;
}

/* All sites are of one file. Returns the link's fd or -errno. */
static int create_multi(int prog_fd, pid_t pid, const struct uprobe_site **sites, size_t n)
{
	struct link_create_multi attr = { 0 };
	uint64_t *words;
	size_t i;
	int fd;

	words = malloc(2 * n * sizeof(*words));
	if (!words)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		words[i] = sites[i]->offset;
		words[n + i] = sites[i]->cookie;
	}
	attr.prog_fd = (uint32_t)prog_fd;
	attr.attach_type = UPROBE_MULTI_ATTACH_TYPE;
	attr.path = (uint64_t)(uintptr_t)sites[0]->path;
	attr.offsets = (uint64_t)(uintptr_t)words;
	attr.cookies = (uint64_t)(uintptr_t)(words + n);
	attr.cnt = (uint32_t)n;
	attr.pid = (uint32_t)pid;
	fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		fd = -errno;
	free(words);
	return fd;
}

static int compare_paths(const void *a, const void *b)
{
	const struct uprobe_site *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

static int attach_multi(int prog_fd, pid_t pid, const struct uprobe_site *sites, size_t n,
			struct uprobe_links *links, char *err, size_t err_size)
{
	const struct uprobe_site **sorted;
	size_t i, from, kept = links->n;
	int code = 0, fd;

	sorted = malloc(n * sizeof(*sorted));
	if (!sorted)
		return explain(-ENOMEM, sites, n, err, err_size);
	for (i = 0; i < n; i++)
		sorted[i] = &sites[i];
	qsort(sorted, n, sizeof(*sorted), compare_paths);
	for (from = 0; from < n && !code; from = i) {
		for (i = from + 1; i < n && !strcmp(sorted[i]->path, sorted[from]->path);)
			i++;
		fd = create_multi(prog_fd, pid, sorted + from, i - from);
		code = fd < 0 ? fd : push_link(links, fd);
		if (code && fd >= 0)
			close(fd);
		if (code)
			explain(code, sorted[from], i - from, err, err_size);
	}
	if (code)
		close_since(links, kept);
	free(sorted);
	return code;
}

/* The uprobe PMU's type number, or -errno. */
static int read_perf_type(void)
{
	FILE *file = fopen(UPROBE_TYPE_FILE, "re");
	char line[32] = "", *end;
	long type;

	if (!file)
		return -errno;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	type = strtol(line, &end, 10);
	return end != line && type >= 0 && type <= INT32_MAX ? (int)type : -EINVAL;
}

/* Returns the link's fd or -errno. The link keeps the perf event, which needs no fd of its own. */
static int create_perf(int prog_fd, pid_t pid, const struct uprobe_site *site, int type)
{
	struct perf_event_attr perf = { 0 };
	union bpf_attr attr;
	int event, fd;

	perf.size = sizeof(perf);
	perf.type = (uint32_t)type;
	perf.config1 = (uint64_t)(uintptr_t)site->path;
	perf.config2 = site->offset;
	/* The breakpoint goes into the address space of pid, so all its threads hit it. */
	event = (int)syscall(SYS_perf_event_open, &perf, pid ? pid : -1, pid ? -1 : 0, -1,
			     PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)prog_fd;
	attr.link_create.target_fd = (uint32_t)event;
	attr.link_create.attach_type = BPF_PERF_EVENT;
	attr.link_create.perf_event.bpf_cookie = site->cookie;
	fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0) {
		fd = -errno;
	} else if (ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) {
		int code = -errno;

		close(fd);
		fd = code;
	}
	close(event);
	return fd;
}

static int attach_perf(int prog_fd, pid_t pid, const struct uprobe_site *sites, size_t n,
		       struct uprobe_links *links, char *err, size_t err_size)
{
	size_t i, kept = links->n;
	int type, fd, code = 0;

	type = read_perf_type();
	if (type < 0) {
		snprintf(err, err_size, "cannot read '%s': %s: this kernel has no perf uprobes",
			 UPROBE_TYPE_FILE, strerror(-type));
		return type;
	}
	for (i = 0; i < n; i++) {
		fd = create_perf(prog_fd, pid, &sites[i], type);
		code = fd < 0 ? fd : push_link(links, fd);
		if (!code)
			continue;
		if (fd >= 0)
			close(fd);
		close_since(links, kept);
		return explain(code, &sites[i], 1, err, err_size);
	}
	return 0;
}

int uprobe_attach(enum uprobe_kind kind, int prog_fd, pid_t pid, const struct uprobe_site *sites,
		  size_t n, struct uprobe_links *links, char *err, size_t err_size)
{
	if (n == 0)
		return 0;
	if (kind == UPROBE_MULTI)
		return attach_multi(prog_fd, pid, sites, n, links, err, err_size);
	return attach_perf(prog_fd, pid, sites, n, links, err, err_size);
}
