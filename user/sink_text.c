/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_text.c: a window as a person reads it at 3 in the morning: which target, may these figures
 * be believed, where the time goes, then every operation with its layers, and last what was not
 * seen. Nothing is hidden; what was not measured prints '-'.
 */
#include "sink_text.h"

#include <inttypes.h>
#include <string.h>

#include "gluster_layout.h"
#include "sink_devices.h"
#include "sink_foot.h"
#include "sink_slow.h"
#include "sink_table.h"
#include "sink_uses.h"
#include "sink_verdict.h"
#include "text.h"

/* ---- one target: head -------------------------------------------------- */

/* A device or a mount: no process is followed, the table of devices is the report. */
static bool is_host(const struct snap_target *t)
{
	return t->pid <= 0 && (!strcmp(t->kind, "device") || !strcmp(t->kind, "xfs"));
}

static void put_header(FILE *out, const struct snapshot *snap, const struct snap_target *t,
		       const struct sink_style *st)
{
	struct sink_flow flow;
	char buf[32];

	sink_fmt_colour(out, st, SINK_BOLD);
	sink_fmt_flow_resume(&flow, out, st, 0, 2);
	sink_fmt_flow_item(&flow, 0, "%s %s", t->kind, t->name[0] ? t->name : "-");
	sink_fmt_colour(out, st, SINK_PLAIN);
	if (t->pid > 0)
		sink_fmt_flow_item(&flow, 2, "pid %d", t->pid);
	if (t->device[0])
		sink_fmt_flow_item(&flow, 2, "%s on %s", t->fstype[0] ? t->fstype : "file system",
				   t->device);
	if (t->n_procs)
		sink_fmt_flow_item(&flow, 2, "%u process%s with open files", t->n_procs,
				   t->n_procs == 1 ? "" : "es");
	if (snap->window_secs > 0)
		sink_fmt_flow_item(&flow, 3, "%.1f s", snap->window_secs);
	if (!snap->memory_only || t->cost.target_pct.valid)
		sink_fmt_flow_item(&flow, 3, "cost %s",
				   sink_fmt_pct(buf, sizeof(buf), t->cost.target_pct));
	if (!snap->memory_only) {
		sink_fmt_flow_item(&flow, 3, "lost %s",
				   sink_fmt_u64(buf, sizeof(buf), t->lost.total));
		if (!is_host(t))
			sink_fmt_flow_item(&flow, 3, "sum check %s",
					   sink_fmt_pct(buf, sizeof(buf), t->sum_check_pct));
	}
	if (t->version[0] && strcmp(t->version, "-") != 0)
		sink_fmt_flow_item(&flow, 3, "GlusterFS %s", t->version);
	sink_fmt_flow_end(&flow);
	if (t->gone && t->gone_after_secs.valid)
		fprintf(out, "  the process ended after %.1f s\n", t->gone_after_secs.v);
	else if (t->gone)
		fputs("  the process had ended before this window\n", out);
	if (t->restarts > 0)
		fprintf(out, "  restarted %u time%s; followed to its new pid\n", t->restarts,
			t->restarts == 1 ? "" : "s");
}

/* ---- one target: what costs most --------------------------------------- */

enum section { SECTION_USER, SECTION_INTERNAL, SECTION_BACKGROUND, SECTION_LOCAL, SECTIONS };

static enum section op_section(const struct snap_op *op)
{
	if (strcmp(op->root, "background") == 0)
		return SECTION_BACKGROUND;
	if (strcmp(op->root, "local") == 0)
		return SECTION_LOCAL;
	return strcmp(op->origin, "internal") == 0 ? SECTION_INTERNAL : SECTION_USER;
}

static double op_total_ns(const struct snap_op *op)
{
	return op->incl.valid ? op->incl.mean * (double)op->count : 0;
}

/* Time of all users' requests of a target together, in ns. */
static double users_total_ns(const struct snap_target *t)
{
	double total = 0;

	for (size_t i = 0; i < t->n_ops; i++)
		if (op_section(&t->ops[i]) == SECTION_USER)
			total += op_total_ns(&t->ops[i]);
	return total;
}

static void put_op_shares(FILE *out, const struct snap_target *t, const struct sink_style *st)
{
	double total = users_total_ns(t);
	size_t users = 0;
	struct sink_flow flow;
	char pct[32];

	for (size_t i = 0; i < t->n_ops; i++)
		users += op_section(&t->ops[i]) == SECTION_USER && t->ops[i].incl.valid;
	if (users < 2 || !(total > 0))
		return;
	sink_fmt_flow_begin(&flow, out, st, "time of all requests:", 2);
	flow.fresh = false;
	for (size_t i = 0; i < t->n_ops; i++) {
		struct snap_num share = { 100 * op_total_ns(&t->ops[i]) / total, true };

		if (op_section(&t->ops[i]) == SECTION_USER && t->ops[i].incl.valid)
			sink_fmt_flow_item(&flow, 2, "%s %s", t->ops[i].op,
					   sink_fmt_pct(pct, sizeof(pct), share));
	}
	sink_fmt_flow_end(&flow);
}

/* ---- one operation ----------------------------------------------------- */

static void put_op_head(FILE *out, const struct snap_op *op, const struct sink_style *st)
{
	const struct snap_dist *d = &op->incl;
	bool quantiles = d->valid && d->has_quantiles;
	struct sink_flow flow;
	char buf[32];

	sink_fmt_colour(out, st, SINK_BOLD);
	sink_fmt_flow_resume(&flow, out, st, 0, 4);
	sink_fmt_flow_item(&flow, 0, "%s", op->op);
	sink_fmt_colour(out, st, SINK_PLAIN);
	if (op->rate_hz.valid)
		sink_fmt_flow_item(&flow, 3, "%s op/s",
				   sink_fmt_count(buf, sizeof(buf), true, op->rate_hz.v));
	if (op->has_bytes && op->rate_hz.valid && op->count > 0)
		sink_fmt_flow_item(
			&flow, 2, "%s/s",
			text_bytes(buf, sizeof(buf),
				   op->rate_hz.v * (double)op->bytes / (double)op->count));
	else if (op->has_bytes)
		sink_fmt_flow_item(&flow, 2, "%s", text_bytes(buf, sizeof(buf), (double)op->bytes));
	sink_fmt_flow_item(&flow, 3, "mean %s", sink_fmt_ns(buf, sizeof(buf), d->valid, d->mean));
	if (op->source == SNAP_FROM_WALK) {
		sink_fmt_flow_item(&flow, 2, "p50 %s",
				   sink_fmt_ns(buf, sizeof(buf), quantiles, d->p50));
		sink_fmt_flow_item(&flow, 2, "p99 %s",
				   sink_fmt_ns(buf, sizeof(buf), quantiles, d->p99));
		sink_fmt_flow_item(&flow, 2, "max %s",
				   sink_fmt_ns(buf, sizeof(buf), quantiles, d->max));
	}
	sink_fmt_flow_end(&flow);
}

/* Which requests the own times are of, and whether these were like the others. */
static void put_op_covered(FILE *out, const struct snap_op *op, const struct sink_style *st)
{
	uint64_t covered = op->count - op->uncovered;
	struct snap_num pct = { 0 };
	struct sink_flow flow;
	char buf[32], mean[32];

	if (!op->uncovered)
		return;
	pct = (struct snap_num){ 100.0 * (double)covered / (double)op->count, true };
	sink_fmt_flow_begin(&flow, out, st, "  ", 4);
	sink_fmt_flow_item(&flow, 0, "own times, and all below the xlators, of %s of the calls:",
			   sink_fmt_pct(buf, sizeof(buf), pct));
	sink_fmt_flow_item(&flow, 1, "%s, mean %s", sink_fmt_u64(buf, sizeof(buf), covered),
			   sink_fmt_ns(mean, sizeof(mean), covered > 0,
				       snapshot_covered_mean_ns(op)));
	sink_fmt_flow_end(&flow);
}

static void put_op_facts(FILE *out, const struct snap_op *op, const struct sink_style *st)
{
	bool oldest = op->in_flight_oldest_ns.valid && op->in_flight_oldest_ns.v > 0;
	struct sink_flow flow;
	char buf[32];

	sink_fmt_flow_begin(&flow, out, st, "  ", 4);
	sink_fmt_flow_item(&flow, 0, "%s calls", sink_fmt_u64(buf, sizeof(buf), op->count));
	sink_fmt_flow_item(&flow, 3, "errors %s",
			   sink_fmt_known(buf, sizeof(buf), op->has_errors, op->errors));
	sink_fmt_flow_item(&flow, 3, "in flight %s",
			   sink_fmt_count(buf, sizeof(buf), op->in_flight.valid, op->in_flight.v));
	if (oldest)
		sink_fmt_flow_item(&flow, 1, "(oldest %s)",
				   sink_fmt_ns(buf, sizeof(buf), true, op->in_flight_oldest_ns.v));
	if (op->source == SNAP_FROM_WALK) {
		sink_fmt_flow_item(&flow, 3, "coverage %s",
				   sink_fmt_pct(buf, sizeof(buf), op->coverage_pct));
		sink_fmt_flow_item(&flow, 3, "sum check %s",
				   sink_fmt_pct(buf, sizeof(buf), op->sum_check_pct));
	}
	sink_fmt_flow_end(&flow);
	put_op_covered(out, op, st);
}

static const char *means_only_reason(const struct snap_op *op)
{
	for (size_t i = 0; i < op->n_layers; i++)
		if (op->layers[i].reason[0])
			return op->layers[i].reason;
	return "no request of this kind was walked; these are the process's own statistics";
}

/* minor: not worth a table of its layers. */
static int put_op(FILE *out, const struct snap_op *op, bool memory_only, bool minor,
		  const struct sink_style *st)
{
	put_op_head(out, op, st);
	put_op_facts(out, op, st);
	if (op->source == SNAP_FROM_MEMORY && !memory_only) {
		struct sink_flow flow;

		sink_fmt_flow_begin(&flow, out, st, "  ", 4);
		sink_fmt_flow_item(&flow, 0, "means only: %s", means_only_reason(op));
		sink_fmt_flow_end(&flow);
	}
	sink_table_top(out, op, st);
	if (minor)
		return 0;
	if (op->source == SNAP_FROM_MEMORY)
		return sink_table_memory(out, op, st);
	return sink_table_walk(out, op, st);
}

static bool is_local(const struct snap_op *op)
{
	return op_section(op) == SECTION_LOCAL;
}

/*
 * In the first table, which only has to say where to look, operations under 1 % of the time come
 * without their layers.
 */
static bool is_minor(const struct snapshot *snap, const struct snap_target *t,
		     const struct snap_op *op)
{
	if (!snap->memory_only || snap->window_secs > 0)
		return false;
	return op_total_ns(op) < users_total_ns(t) / 100;
}

/*
 * Beside requests they are housekeeping, and one line each will do; where there are none, as of
 * any process that is not GlusterFS's, they are what is asked about, and their layers follow.
 */
static int put_local(FILE *out, const struct snap_target *t, const struct sink_style *st)
{
	sink_table_local(out, t->ops, t->n_ops, is_local, st);
	if (users_total_ns(t) > 0)
		return 0;
	for (size_t i = 0; i < t->n_ops; i++) {
		const struct snap_op *op = &t->ops[i];
		int err;

		if (!is_local(op) || op->n_layers < 2)
			continue;
		fputc('\n', out);
		put_op_head(out, op, st);
		sink_table_top(out, op, st);
		err = sink_table_walk(out, op, st);
		if (err)
			return err;
	}
	return 0;
}

static int put_ops(FILE *out, const struct snapshot *snap, const struct snap_target *t,
		   const struct sink_style *st)
{
	static const char *const titles[SECTIONS] = {
		[SECTION_INTERNAL] = "-- internal: GlusterFS's own requests (heal, rebalance)",
		[SECTION_BACKGROUND] =
			"-- background: work that no request waits for (write-behind, "
			"post-op)",
		[SECTION_LOCAL] = "-- local: file operations that no request claimed",
	};

	for (int section = 0; section < SECTIONS; section++) {
		bool titled = false;

		for (size_t i = 0; i < t->n_ops; i++) {
			int err;

			if ((int)op_section(&t->ops[i]) != section)
				continue;
			fputc('\n', out);
			if (!titled && titles[section]) {
				sink_fmt_text(out, st, titles[section]);
				if (section == SECTION_LOCAL && sink_foot_layers_were_off(&t->cost))
					sink_fmt_text(out, st, "; seen while layers were on");
				fputs("\n\n", out);
			}
			titled = true;
			err = section == SECTION_LOCAL ? put_local(out, t, st) :
							 put_op(out, &t->ops[i], snap->memory_only,
								is_minor(snap, t, &t->ops[i]), st);
			if (err || section == SECTION_LOCAL)
				return err;
		}
	}
	return 0;
}

/* ---- one target, all of them ------------------------------------------- */

static bool sees_calls(const struct snapshot *snap)
{
	for (size_t i = 0; i < snap->n_off; i++)
		if (strcmp(snap->off[i].what, "syscall") == 0)
			return false;
	return true;
}

/* A plain process has no requests, and keeps no count of its calls. */
static void put_no_ops(FILE *out, const struct snapshot *snap, const struct snap_target *t)
{
	const char *why = "no operation finished in this window";

	if (strcmp(t->kind, "process") != 0)
		why = snap->memory_only ? "no operation was counted" : why;
	else if (snap->memory_only)
		why = "not a GlusterFS brick or client: nothing is known without probes";
	else if (sees_calls(snap))
		why = "it made no file operation in this window";
	else
		why = "its file operations were not looked at: syscall is off";
	fprintf(out, "\n  %s\n", why);
}

static int put_target(FILE *out, const struct snapshot *snap, int target,
		      const struct sink_style *st)
{
	const struct snap_target *t = &snap->targets[target];
	int err;

	put_header(out, snap, t, st);
	put_op_shares(out, t, st);
	if (t->n_ops == 0 && !is_host(t))
		put_no_ops(out, snap, t);
	err = put_ops(out, snap, t, st);
	if (err)
		return err;
	sink_slow_text(out, &t->slow, st);
	sink_uses_text(out, t, st);
	sink_verdict_threads(out, t, st);
	sink_foot_target(out, snap, target, st);
	sink_verdict_causes(out, t, st);
	return 0;
}

static int put_targets(FILE *out, const struct snapshot *snap, const struct sink_style *st)
{
	for (size_t i = 0; i < snap->n_targets; i++) {
		int err;

		if (i > 0)
			fputc('\n', out);
		err = put_target(out, snap, (int)i, st);
		if (err)
			return err;
	}
	if (snap->n_targets == 0)
		fputs("nothing was measured: there was no target\n", out);
	sink_devices_text(out, snap, st);
	sink_foot_all(out, snap, st);
	return sink_fmt_status(out);
}

int sink_text_memory(FILE *out, const struct snapshot *snap, const struct sink_style *st)
{
	struct sink_flow flow;

	sink_fmt_flow_resume(&flow, out, st, 0, 2);
	sink_fmt_flow_item(&flow, 0, "from the process's own memory, no probe is in:");
	if (snap->window_secs > 0)
		sink_fmt_flow_item(&flow, 1, "statistics of these %.1f s", snap->window_secs);
	else
		sink_fmt_flow_item(&flow, 1, "statistics since its counters began");
	sink_fmt_flow_end(&flow);
	sink_fmt_flow_resume(&flow, out, st, 0, 2);
	sink_fmt_flow_item(&flow, 0,
			   "~ is an estimate: a layer's mean less the means of the layers "
			   "below it;");
	sink_fmt_flow_item(&flow, 1, "too small where those run in parallel");
	sink_fmt_flow_end(&flow);
	if (!(snap->window_secs > 0))
		fputs("operations under 1 % of the time stand without their layers\n", out);
	fputc('\n', out);
	return put_targets(out, snap, st);
}

int sink_text_report(FILE *out, const struct snapshot *snap, const struct sink_style *st)
{
	if (snap->memory_only)
		return sink_text_memory(out, snap, st);
	return put_targets(out, snap, st);
}
