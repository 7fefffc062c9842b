#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 240
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# The truth on every kind of brick: whole requests are dumped with their raw stamps and
# added up again by a checker that shares no code with bricktop; counts are those of the
# processes themselves. The recipe's brick, posix-aio, two bricks in one process.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/load.sh
. tests/lib/graph.sh
e2e_begin

test_brick()
{
	{ bed_brick b1 && bed_client c1 b1; } || bail_out "no brick"
	ok "recipe brick: measured" investigate brick "$BED_B1_PID" "$BED_C1_MNT"
	ok "recipe brick: every request adds up" dump_ok brick --max-unsplit 0 --expect-spans \
		--expect-watermark --expect-op rename --expect-xlator posix
	ok "recipe brick: counts are the process's own" judge brick --chain --max-unaccounted 8
}

# joined OP: passages of posix's operations, and of those of the kernel's under it.
joined()
{
	local below

	below=$(measure_get aio "op(\"$1\") | [.layers[] | select(.id == \"aio $1\")] |
		map(.count) | add")
	is "$below" "$(measure_get aio "op(\"$1\") | .count")" \
		"posix-aio: each $1 waits for one operation of the kernel's"
	between "$(measure_get aio "op(\"$1\") | [.layers[] | select(.type | endswith(
		\"storage/posix\")) | .self_us.mean / .incl_us.mean] | max")" 0 0.5 \
		"posix-aio: of a $1 little is posix's own"
}

# Completions come on a thread of their own, which did not make the call.
test_aio()
{
	{ bed_brick aio --linux-aio && bed_client caio --direct-io aio; } || bail_out "no posix-aio"
	# 10.3 opens with O_DIRECT for aligned requests only: these are never aligned
	ONLY_DATA=1
	ok "posix-aio: measured" investigate aio "$BED_AIO_PID" "$BED_CAIO_MNT" --bs=4000 --direct=0
	ONLY_DATA=
	ok "posix-aio: every request adds up" dump_ok aio --max-unsplit 0 --expect-xlator posix \
		--expect-joined
	ok "posix-aio: counts are the process's own" judge aio --chain
	is "$(measure_get aio '.off[] | select(.what == "asynchronous I/O").reason')" '' \
		"posix-aio: nothing of it is off"
	joined read
	joined write
}

# mux_ops NUMBER: calls that became one request each, as that mount's process counts.
mux_ops()
{
	jq -s '[.[] | .xlators[] | select(.id | endswith("-client-0")) | .stats |
		map_values(.wound)] | .[0] as $old | .[1] | to_entries |
		map({(.key): (.value - ($old[.key] // 0))}) | add |
		{read, write, create, fsync, unlink, mkdir, setxattr, symlink}' \
		"$BED_DIR/mount$1".{before,after}
}

# mux_report NUMBER: the same from bricktop's report of that brick.
mux_report()
{
	measure_get mux"$1" '[.ops[] | select(.root == "brick")] | map({(.op): .count}) | add |
		{read, write, create, fsync, unlink, mkdir, setxattr, symlink}'
}

mux_load() { load_data "$(bed_get "c$1" MNT)" "mux${1#m}" && load_meta "$(bed_get "c$1" MNT)"; }

# One bricktop for each of them: what goes to the other brick is not its business, and
# no loss either.
test_mux()
{
	local i

	{ bed_mux m1 m2 && bed_client cm1 m1 && bed_client cm2 m2; } || bail_out "no two bricks"
	for i in 1 2; do
		load_data_prepare "$(bed_get "cm$i" MNT)" "mux$i"
		measure_e0 "$(bed_get "cm$i" PID)" "$BED_DIR/mount$i.before"
		TARGET=$(bed_get "m$i" PATH) ok "two bricks: attached to number $i" \
			measure_begin "mux$i" "$BED_M1_PID" \
			--dump-requests 20000="$BED_DIR/mux$i.dump"
	done
	mux_load m1 >/dev/null &
	mux_load m2 && wait $!
	for i in 1 2; do
		ok "two bricks: measured number $i" measure_end "mux$i"
		measure_e0 "$(bed_get "cm$i" PID)" "$BED_DIR/mount$i.after"
		is "$(mux_report "$i")" "$(mux_ops "$i")" \
			"two bricks: number $i was asked what its mount asked"
		ok "two bricks: every request of number $i adds up" dump_ok "mux$i" --max-unsplit 0
		is "$(measure_get "mux$i" '[.ops[].coverage_pct | select(. != null and . != 100)] |
			length')" 0 "two bricks: coverage of number $i is 100"
		is "$(measure_get "mux$i" '.lost | .total - .wakes')" 0 \
			"two bricks: number $i lost nothing"
	done
}

for graph in ${GRAPHS:-brick aio mux}; do
	"test_$graph"
done
done_testing
