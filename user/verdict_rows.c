/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_rows.c: the table of causes. A row says whose self time it explains, what may be named,
 * with which evidence, and what to look at next. Rows know neither each other nor how they are
 * ranked. The first row that claims a layer has it.
 */
#include <stdio.h>
#include <string.h>

#include "text.h"
#include "verdict_priv.h"

static bool is_kind(const struct snap_layer *l, const char *kind)
{
	return !strcmp(l->kind, kind);
}

static bool starts(const char *s, const char *begin)
{
	return !strncmp(s, begin, strlen(begin));
}

static void add(struct verdict_list *list, const struct verdict_finding *f)
{
	if (list->n < VERDICT_MAX_FINDINGS && f->share > 0)
		list->f[list->n++] = *f;
}

/* ---- whose self time --------------------------------------------------- */

static bool is_queue(const struct snap_layer *l)
{
	return is_kind(l, "xlator") && strstr(l->type, "performance/io-threads");
}

/*
 * storage/posix, alone or with xlators that wind by tail in every brick of the releases that do so.
 * With any other in its group the time may be that one's.
 */
static bool is_posix(const struct snap_layer *l)
{
	static const char *const quiet[] = { "features/access-control", "features/upcall",
					     "features/read-only", "features/worm",
					     "features/barrier" };
	const char *type = l->type;

	if (!is_kind(l, "xlator"))
		return false;
	while (*type) {
		size_t len = strcspn(type, "+"), i = 0;

		if (len == strlen("storage/posix") && starts(type, "storage/posix"))
			return true;
		while (i < sizeof(quiet) / sizeof(quiet[0]) &&
		       (strlen(quiet[i]) != len || strncmp(type, quiet[i], len) != 0))
			i++;
		if (i == sizeof(quiet) / sizeof(quiet[0]))
			return false;
		type += len + (type[len] == '+');
	}
	return false;
}

static bool is_remote(const struct snap_layer *l)
{
	return is_kind(l, "xlator") && strstr(l->type, "protocol/client");
}

static bool is_xlator(const struct snap_layer *l)
{
	return is_kind(l, "xlator");
}

static bool is_inode_lock(const struct snap_layer *l)
{
	return is_kind(l, "xfs") && strstr(l->id, "lock wait");
}

static bool is_log(const struct snap_layer *l)
{
	return is_kind(l, "xfs") && strstr(l->id, "log ");
}

static bool is_throttle(const struct snap_layer *l)
{
	return is_kind(l, "throttle");
}

static bool is_page_read(const struct snap_layer *l)
{
	return is_kind(l, "writeback") && strstr(l->id, "read");
}

static bool is_writeback(const struct snap_layer *l)
{
	return is_kind(l, "writeback");
}

static bool is_block_held(const struct snap_layer *l)
{
	return is_kind(l, "block") && strstr(l->id, "held");
}

static bool is_block_queue(const struct snap_layer *l)
{
	return is_kind(l, "block") && strstr(l->id, "queue");
}

static bool is_block(const struct snap_layer *l)
{
	return is_kind(l, "block");
}

/* Submitting is its thread's work: as of a system call only its sleeping is a wait. */
static bool is_submission(const struct snap_layer *l)
{
	return is_kind(l, "aio") && strstr(l->id, "submit");
}

/* Of an operation what lies in none of its parts; its result waits for no I/O any more. */
static bool is_aio(const struct snap_layer *l)
{
	return is_kind(l, "aio") && !is_submission(l) && !strstr(l->id, "reap");
}

/* Seen inside system calls only, and after I/O; of everything else the kernel's own sums tell. */
static bool is_cpu(const struct snap_layer *l)
{
	return is_kind(l, "sched");
}

static bool is_syscall(const struct snap_layer *l)
{
	return is_kind(l, "syscall") || is_kind(l, "xfs") || is_submission(l) || is_posix(l);
}

static bool is_any(const struct snap_layer *l)
{
	(void)l;
	return true;
}

/* ---- what may be named ------------------------------------------------- */

/* All layers that the row claims, each by itself. */
static void find_each(const struct verdict_case *c, const struct verdict_row *row,
		      struct verdict_list *list)
{
	for (size_t i = 0; i < c->n_piles; i++) {
		const struct verdict_pile *p = &c->piles[i];
		struct verdict_finding f = { .row = row, .pile = p, .own_ns = p->self_ns };

		if (verdict_row_of(p->layer) != row)
			continue;
		f.share = verdict_share(c, p->self_ns, p->below_ns);
		add(list, &f);
	}
}

/* All layers that the row claims, together; the pile is the largest of them. */
static struct verdict_finding sum_claimed(const struct verdict_case *c,
					  const struct verdict_row *row)
{
	struct verdict_finding f = { .row = row };
	double below_ns = 0;

	for (size_t i = 0; i < c->n_piles; i++) {
		const struct verdict_pile *p = &c->piles[i];

		if (verdict_row_of(p->layer) != row)
			continue;
		if (!f.pile || p->self_ns > f.pile->self_ns)
			f.pile = p;
		f.own_ns += p->self_ns;
		below_ns += p->below_ns;
	}
	f.share = verdict_share(c, f.own_ns, below_ns);
	return f;
}

static void find_together(const struct verdict_case *c, const struct verdict_row *row,
			  struct verdict_list *list)
{
	struct verdict_finding f = sum_claimed(c, row);

	add(list, &f);
}

/* What layers account for in which threads of the pool, or of a process without, wait. */
static double waits_ns(const struct verdict_case *c)
{
	double ns = 0;

	for (size_t i = 0; i < c->n_piles; i++)
		if (verdict_row_of(c->piles[i].layer)->waits)
			ns += c->iot ? c->piles[i].below_ns : c->piles[i].self_ns;
	return ns;
}

/* System calls do work, too: only the part in which their threads sleep is a wait for something. */
static void find_asleep(const struct verdict_case *c, const struct verdict_row *row,
			struct verdict_list *list)
{
	struct verdict_finding f = sum_claimed(c, row);
	double asleep = verdict_asleep(c, waits_ns(c));

	f.share *= asleep;
	f.own_ns *= asleep;
	add(list, &f);
}

/*
 * What threads that wait for a CPU explain of the queue is the CPU's. Where the pool is not short,
 * neither is what threads explain that hold requests: that is those layers'.
 */
static void find_queue(const struct verdict_case *c, const struct verdict_row *row,
		       struct verdict_list *list, bool is_short)
{
	struct verdict_finding f = { .row = row, .own_ns = c->queue_ns };
	double threads = c->iot ? c->iot->mean_n.v : 0, held = 0;

	if (verdict_pool_is_short(c) != is_short || !(c->total_ns > 0))
		return;
	for (size_t i = 0; i < c->n_piles && !f.pile; i++)
		if (is_queue(c->piles[i].layer))
			f.pile = &c->piles[i];
	if (!is_short && threads > 0 && !c->remote)
		held = verdict_held(c) < threads ? verdict_held(c) / threads : 1;
	f.share = c->queue_ns / c->total_ns * (1 - verdict_starved(c)) * (1 - held);
	add(list, &f);
}

static void find_short_pool(const struct verdict_case *c, const struct verdict_row *row,
			    struct verdict_list *list)
{
	find_queue(c, row, list, true);
}

static void find_other_queue(const struct verdict_case *c, const struct verdict_row *row,
			     struct verdict_list *list)
{
	find_queue(c, row, list, false);
}

static void find_cpu(const struct verdict_case *c, const struct verdict_row *row,
		     struct verdict_list *list)
{
	struct verdict_finding f = sum_claimed(c, row);

	f.pile = NULL;
	f.at_most = verdict_is_plain(c) && !verdict_times_lack(c);
	if (!verdict_times_lack(c) && f.share < verdict_starved(c)) {
		f.share = verdict_starved(c);
		f.own_ns = c->runnable_ns;
	}
	add(list, &f);
}

/*
 * The file with most time. What is in no known file may all be one other's. Names that were never
 * files are no file.
 */
static void find_file(const struct verdict_case *c, const struct verdict_row *row,
		      struct verdict_list *list)
{
	struct verdict_finding f = { .row = row };
	double next = 1 - c->t->files_pct.v / 100;

	if (!c->t->n_files || !c->t->files_pct.valid || c->t->files[0].kind == SNAP_FILE_ENTRY ||
	    !c->t->files[0].use.share_pct.valid)
		return;
	f.file = &c->t->files[0];
	f.share = f.file->use.share_pct.v / 100;
	f.own_ns = f.file->use.total_ns;
	if (c->t->n_files > 1 && c->t->files[1].use.share_pct.v / 100 > next)
		next = c->t->files[1].use.share_pct.v / 100;
	f.lead = f.share - next;
	add(list, &f);
}

/* ---- evidence ---------------------------------------------------------- */

static void explain_pool(const struct verdict_case *c, const struct verdict_finding *f,
			 struct snap_cause *cause)
{
	(void)f;
	if (!c->iot) {
		verdict_say(cause, "%.1f requests are queued at a time", verdict_queued(c));
		return;
	}
	verdict_say(cause,
		    "%.1f requests are queued at a time, for %.1f threads that hold %.1f others",
		    verdict_queued(c), c->iot->mean_n.v, verdict_held(c));
	if (!verdict_pool_is_short(c))
		verdict_say(cause,
			    "io-threads makes another thread only when more requests are "
			    "queued than it has threads: a larger thread-count changes nothing");
}

static void explain_cpu(const struct verdict_case *c, const struct verdict_finding *f,
			struct snap_cause *cause)
{
	const struct snap_pool *worst = NULL;
	double secs = c->window_ns / 1e9;

	if (verdict_times_lack(c))
		verdict_say(cause, "inside its calls they waited %.2f s for a CPU, of %.2f s",
			    f->own_ns / 1e9, c->total_ns / 1e9);
	else if (f->at_most)
		verdict_say(cause, "also between its calls: the layer sched, which tells that "
				   "apart, is off");
	verdict_say(cause, "its threads waited %.1f s for a CPU and ran %.1f s, in %.1f s",
		    c->runnable_ns / 1e9, c->oncpu_ns / 1e9, secs);
	for (size_t i = 0; i < c->t->n_pools; i++) {
		const struct snap_pool *p = &c->t->pools[i];

		if (p->runnable_ns.valid && (!worst || p->runnable_ns.v > worst->runnable_ns.v))
			worst = p;
	}
	if (worst && worst->runnable_pct.valid)
		verdict_say(cause,
			    "most of it %s (%u): on CPU %.0f %%, waiting for one %.0f %% of "
			    "their time",
			    worst->name, worst->n, worst->oncpu_pct.v, worst->runnable_pct.v);
}

/* io_uring has what sleeps done by workers of the kernel, writes to one file one after another. */
static void explain_workers(const struct verdict_case *c, struct snap_cause *cause)
{
	for (size_t i = 0; i < c->n_piles; i++)
		if (c->has_uring && is_throttle(c->piles[i].layer))
			verdict_say(cause,
				    "workers were held back by dirty pages (throttle) for %.0f %% "
				    "of the window: writes to the same file wait for them",
				    100 * c->piles[i].self_ns / c->window_ns);
}

static void explain_aio(const struct verdict_case *c, const struct verdict_finding *f,
			struct snap_cause *cause)
{
	explain_workers(c, cause);
	verdict_say(cause, "in no request to a block device that is known: a sync, I/O in the page "
			   "cache that the kernel's own threads do, or a device that takes bios");
	verdict_explain_device(c, f, cause);
}

static void explain_syscall(const struct verdict_case *c, const struct verdict_finding *f,
			    struct snap_cause *cause)
{
	(void)f;
	if (c->has_threads)
		verdict_say(cause,
			    "outside of the layers that are waits, threads are asleep in %.0f %% "
			    "of the time that they hold requests",
			    100 * verdict_asleep(c, waits_ns(c)));
	if (verdict_sees_below(c))
		verdict_say(cause, "in no layer that was looked at: a lock of the kernel, such as "
				   "a directory's, or another file system's own waits");
	else
		verdict_say(cause, "no layer below the system call was seen: file system, page "
				   "cache and device are in it");
}

static void explain_file(const struct verdict_case *c, const struct verdict_finding *f,
			 struct snap_cause *cause)
{
	const struct snap_use *use = &f->file->use;
	const struct snap_app *app = &f->file->last;
	char mean[16];

	verdict_say(cause, "%.0f %% of all requests' time in %.0f %% of the requests, %s each",
		    100 * f->share, 100 * (double)use->count / (double)c->requests,
		    text_duration(mean, sizeof(mean), use->total_ns / (double)use->count));
	if (f->file->slowdown.valid)
		verdict_say(cause,
			    "%.1f times as long as the same requests took of the other %llu files",
			    f->file->slowdown.v, (unsigned long long)(c->t->n_all_files - 1));
	if (app->pid > 0)
		verdict_say(cause, "used last by pid %lld%s%s%s, uid %u", (long long)app->pid,
			    app->comm[0] ? " (" : "", app->comm, app->comm[0] ? ")" : "", app->uid);
}

static void explain_group(const struct verdict_case *c, const struct verdict_finding *f,
			  struct snap_cause *cause)
{
	(void)c;
	if (strchr(f->pile->layer->id, '+'))
		verdict_say(cause, "these xlators share a frame: --split-tails tells them apart");
}

/* ---- the table --------------------------------------------------------- */

static const struct verdict_row rows[] = {
	{
		.id = "io-threads-pool",
		.what = "requests queue for a thread of io-threads",
		.claims = is_queue,
		.find = find_short_pool,
		.explain = explain_pool,
		.needs_threads = true,
		.no_tail = true,
		.is_lack = true,
		.next = "its threads are all in use and the queue is longer than the pool: "
			"raise performance.io-thread-count, and "
			"performance.low-prio-threads, which is the most of them that reads, "
			"writes and fsyncs get",
	},
	{
		.id = "io-threads-queue",
		.what = "requests wait in the queue of io-threads",
		.find = find_other_queue,
		.explain = explain_pool,
		.needs_threads = true,
		.is_lack = true,
		.next = "what its threads do below (threads, layers): one that is held, a "
			"CPU that is missing, the queue's own lock",
	},
	{
		.id = "cpu",
		.what = "threads wait for a CPU",
		.claims = is_cpu,
		.find = find_cpu,
		.explain = explain_cpu,
		.needs_threads = true,
		.is_lack = true,
		.next = "a CPU quota of the process's cgroup (cpu.stat: nr_throttled), other "
			"processes on these CPUs (top), time that a hypervisor takes (st)",
	},
	{
		.id = "inode-lock",
		.what = "requests wait for an inode's lock in XFS",
		.claims = is_inode_lock,
		.find = find_together,
		.waits = true,
		.is_lack = true,
		.next = "which files: writers of one file take turns; spread them over files "
			"or shards",
	},
	{
		.id = "log",
		.what = "requests wait for the log of XFS: @",
		.claims = is_log,
		.find = find_together,
		.waits = true,
		.is_lack = true,
		.next = "log grant: the log is too small for so many changes (mkfs.xfs -l "
			"size); log iclog and log cil: syncs wait for the device that the "
			"log is on",
	},
	{
		.id = "throttle",
		.what = "writers are held back until dirty pages are written",
		.claims = is_throttle,
		.find = find_together,
		.waits = true,
		.is_lack = true,
		.next = "vm.dirty_bytes and vm.dirty_background_bytes against what the "
			"device writes in a second",
	},
	{
		.id = "page-read",
		.what = "requests wait for pages that are being read",
		.claims = is_page_read,
		.find = find_together,
		.waits = true,
		.next = "what the page cache cannot hold: memory of the host and of the "
			"process's cgroup, sizes of the files",
	},
	{
		.id = "writeback",
		.what = "requests wait for pages that are being written",
		.claims = is_writeback,
		.find = find_together,
		.waits = true,
		.next = "who writes the same files: a sync waits behind their pages, too; a "
			"smaller vm.dirty_background_bytes starts writing earlier",
	},
	{
		.id = "block-held",
		.what = "I/O is held back before the block layer takes it",
		.claims = is_block_held,
		.find = find_together,
		.explain = verdict_explain_device,
		.waits = true,
		.is_lack = true,
		.next = "an I/O limit of the process's cgroup (/proc/PID/cgroup; its io.max or "
			"blkio.throttle.*_device), or no free request of the device "
			"(/sys/block/*/queue/nr_requests)",
	},
	{
		.id = "block-queue",
		.what = "I/O waits in the queue of the block device",
		.claims = is_block_queue,
		.find = find_together,
		.explain = verdict_explain_device,
		.waits = true,
		.is_lack = true,
		.next = "the device's scheduler and depth (/sys/block/*/queue), others who "
			"use it (iostat -x)",
	},
	{
		.id = "device",
		.what = "requests wait for the block device: @",
		.claims = is_block,
		.find = find_together,
		.explain = verdict_explain_device,
		.waits = true,
		.next = "iostat -x: its utilization and await, others who use it; its health "
			"(smartctl)",
	},
	{
		.id = "aio",
		.what = "asynchronous I/O does not complete: @",
		.claims = is_aio,
		.find = find_together,
		.explain = explain_aio,
		.waits = true, /* no thread of the process works on it */
		.unexplained = true,
		.next = "the devices that it ends on (devices, iostat -x), and what the kernel's "
			"own threads wait for: cat /proc/PID/task/*/stack, a few times (iou-wrk)",
	},
	{
		.id = "remote",
		.what = "requests wait for the brick and the network: @",
		.claims = is_remote,
		.find = find_each,
		.next = "attach to the brick at the same time: what it does not have is the "
			"network's",
	},
	{
		.id = "syscall",
		.what = "requests sleep in system calls, most in @",
		.claims = is_syscall,
		.find = find_asleep,
		.explain = explain_syscall,
		.needs_threads = true,
		.unexplained = true,
		.next = "what they sleep in: cat /proc/PID/task/*/stack, a few times; the file "
			"system and the device (dmesg, iostat -x); bricktop doctor: the layers "
			"below system calls that work here",
	},
	{
		.id = "file",
		.what = "one file takes the time: @",
		.find = find_file,
		.explain = explain_file,
		.is_apart = true,
		.next = "who uses it (applications): writers of one file take turns; locks on it "
			"(statedump), how it lies on the device (xfs_bmap -v)",
	},
	{
		.id = "xlator",
		.what = "the xlator @ takes the time",
		.claims = is_xlator,
		.find = find_each,
		.explain = explain_group,
		.next = "its options (gluster volume get), locks that its requests wait for "
			"(statedump), its CPU time (perf top -p PID)",
	},
	{
		.id = "layer",
		.what = "the layer @ takes the time",
		.claims = is_any,
		.find = find_each,
		.next = "the layer's own documentation",
	},
};

const struct verdict_row *verdict_row_at(size_t i)
{
	return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

const struct verdict_row *verdict_row_of(const struct snap_layer *layer)
{
	size_t i = 0;

	while (!rows[i].claims || !rows[i].claims(layer))
		i++; /* the last one claims everything */
	return &rows[i];
}
