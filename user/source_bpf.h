/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_bpf.h: the live source of measurements: which processes and xlators the BPF programs know,
 * which probes are in, and what their maps have counted. Owns the loaded objects and all links;
 * knows layers only through layers.def, and GlusterFS only as numbers (addresses, offsets).
 */
#ifndef BRICKTOP_SOURCE_BPF_H
#define BRICKTOP_SOURCE_BPF_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../bpf/wire_slow.h"
#include "meter.h"
#include "model.h"
#include "uprobe.h"

struct source;

struct source_config {
	unsigned int slots; /* histogram slots a shard; 0: default for n_targets */
	unsigned int n_targets;
	unsigned int map_entries; /* at most, of each hash map; 0: as needed */
	bool dump;                /* dump records are wanted */
	uint64_t dump_count;
	bool slow;           /* records of slow operations are wanted */
	uint64_t layers_off; /* set (1 << number) of rows of layers.def that are not wanted */
	bool static_off;  /* no search of the code for top callbacks: discovery alone finds them */
	bool perf_only;   /* perf uprobes even where uprobe-multi works */
	bool multi_blind; /* multi links see no thread of the process, as if on Linux 6.6 */
	bool host_only;   /* no process is followed: only the host tables of layers.def */
	bool devices_off; /* not the table of the host's block devices */
	bool split_tails; /* frames that xlators share are split by probes at entries */
};

/* Load the programs. 0, or -errno and one clear line. */
int source_open(const struct source_config *config, struct source **ret_src, char *err,
		size_t err_size);
void source_close(struct source *src);

/* Tell the programs of a process, and of its xlators; each replaces what was told before. */
int source_set_proc(struct source *src, pid_t tgid, const struct wire_proc *proc,
		    const struct wire_layout *layout);
int source_set_node(struct source *src, pid_t tgid, uint64_t xlator, const struct wire_node *node);
/* An xlator that is no more. */
void source_forget_node(struct source *src, pid_t tgid, uint64_t xlator);
void source_forget_proc(struct source *src, pid_t tgid);

/* A process's probes: top and background callbacks, discovery, fop entries. Zeroed is empty. */
struct source_probes {
	struct uprobe_links callbacks, discovery, entries;
	enum uprobe_kind kind; /* of the links in callbacks; UPROBE_MULTI where any is */
};

/*
 * Probe callbacks (cookie: enum wire_site), or arm discovery at one site. Uprobe-multi where it
 * works, else perf uprobes. 0 or -errno and one clear line.
 */
int source_probe_callbacks(struct source *src, pid_t tgid, const struct uprobe_site *sites,
			   size_t n, struct source_probes *probes, char *err, size_t err_size);
int source_arm_discovery(struct source *src, pid_t tgid, const struct uprobe_site *site,
			 struct source_probes *probes, char *err, size_t err_size);
void source_disarm_discovery(struct source_probes *probes);

/* Probe more fop entries; does nothing useful unless source_splits_tails(). As above. */
int source_probe_entries(struct source *src, pid_t tgid, const struct uprobe_site *sites, size_t n,
			 struct source_probes *probes, char *err, size_t err_size);
bool source_splits_tails(const struct source *src);
void source_probes_close(struct source_probes *probes);

/*
 * From now on use perf uprobes: where a multi link turned out to see one thread only. The caller
 * closes and attaches anew. 0 or -errno.
 */
int source_use_perf(struct source *src, char *err, size_t err_size);
enum uprobe_kind source_kind(const struct source *src);

/* What the process's probes have shown: 0 or -ENOENT. */
int source_get_proc(struct source *src, pid_t tgid, struct wire_proc *ret_proc);

/* Its top callbacks are not searched for in the code. */
bool source_static_off(const struct source *src);

/* Fops of a process's requests that were walked, as a set; discovery looks at `wanted`, 0: all. */
int source_set_wanted(struct source *src, pid_t tgid, uint64_t wanted);
uint64_t source_walked_fops(struct source *src, pid_t tgid);

/* Callbacks that discovery has seen: calls fn for each; stops where fn returns non-zero. */
int source_each_callback(struct source *src,
			 int (*fn)(void *arg, const struct wire_callback_key *key), void *arg);

/* Attach the layers of layers.def that are on. What cannot be attached goes to the model as "off".
 */
void source_attach_layers(struct source *src, struct model *m);
/*
 * Switch the attached layers that a budget sheds off or on again: which requests they saw whole,
 * the programs know. Takes some ms. 0, or -errno and one clear line: not all came back; the rest is
 * off then, too.
 */
int source_switch_layers(struct source *src, bool on, char *err, size_t err_size);
/*
 * Switch the walk itself off or on again: its probes stay, and a hit of one costs little but its
 * trap.
 * The layers have to be off before it is, and on after it. 0 or -errno.
 */
int source_switch_walk(struct source *src, bool on);
bool source_walks(const struct source *src);
/* There are any, and they are on (as long as nobody has switched them off). */
bool source_has_shed(const struct source *src);
/* One of them, by its number in layers.def. 0, or -errno and one clear line. */
int source_attach_layer(struct source *src, unsigned int number, char *err, size_t err_size);

/* Operations of libaio are seen, and joined to the frames that wait for them. */
bool source_sees_aio(const struct source *src);

/*
 * Feed the rows of the host's block devices. 0, or -errno: -ENOENT where they are not looked at.
 */
int source_feed_devices(struct source *src, struct model *m);
bool source_sees_devices(const struct source *src);

/*
 * Feed the tables of files and applications, and show each application to see(). 0 or -errno:
 * -ENOENT where they are not loaded.
 */
int source_feed_uses(struct source *src, struct model *m,
		     void (*see)(void *arg, const struct wire_use_key *key,
				 const struct wire_use *use),
		     void *arg);

/*
 * The window ends: finished spans that no request has claimed are entered as their process's own.
 * Only once, right before the last source_feed(): requests still in flight lose their spans by it.
 */
void source_flush_spans(struct source *src);

/* Detach all layers. */
void source_detach(struct source *src);

/*
 * Feed slots, losses and checks of targets 0 .. n_targets - 1. What was lost of nobody knows whose
 * is the target's where there is only one, else unassigned. 0 or -errno.
 */
int source_feed(struct source *src, struct model *m, unsigned int n_targets);
/* Of a target, or WIRE_MAX_TARGETS: of nobody knows whose. */
void source_read_losses(struct source *src, unsigned int target, __u64 ret_losses[WIRE_LOSSES]);
void source_read_checks(struct source *src, unsigned int target, __u64 ret_checks[WIRE_CHECKS]);

/*
 * Run times and the host's tracepoint hits are sampled: wants to be called a few dozen times a
 * second, to begin and to end the samples.
 */
void source_meter_look(struct source *src, uint64_t now_ns);

/*
 * The right to switch the statistics on is about to be given up (rights.h): from now on a child
 * process does it. Where it cannot be started, run times and the host's hits are not known any
 * more.
 */
void source_part_statistics(struct source *src);

/* The window begins: what source_meter() tells is counted from here. */
void source_meter_start(struct source *src, uint64_t now_ns);

/*
 * Cost since the last call (or source_meter_start()): BPF run time and hits, host-wide, into
 * *interval; all uprobe hits as emulated ones. Those are counted, the rest is estimated from the
 * samples.
 */
void source_meter(struct source *src, uint64_t now_ns, struct meter_interval *interval);

/* What one uprobe hit takes in its program, in ns, by the samples so far; 0: not known. */
double source_uprobe_run_ns(const struct source *src);

/* What a process's own threads have run into since source_set_proc(). 0 or -ENOENT. */
int source_meter_target(struct source *src, pid_t tgid, struct meter_target *ret_paid);
uint64_t source_recursion_misses(struct source *src);

/* Limits of slow operations, one entry a target, to be written; NULL where none are wanted. */
struct wire_slow *source_slow(const struct source *src);
/* A layer's number in the model; 0: an xlator of which nothing is known yet. */
__u16 source_real_layer(const struct source *src, __u16 layer);

/* Ring of whole requests: its epoll descriptor (-1 where none are wanted), and its consumer. */
int source_ring_fd(const struct source *src);
int source_poll_ring(struct source *src, int (*fn)(void *arg, const void *record, size_t len_bytes),
		     void *arg);

#endif
