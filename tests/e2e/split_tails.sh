#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 150
# bricktop: parallel
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# Xlators that wind by tail: GlusterFS's own delay-gen, which hands its caller's frame
# on, holds every write for 5 ms below io-threads, above posix. Without --split-tails
# the group carries the delay; with it delay-gen alone does, and what is below has the
# median of a brick that delays nothing. Both count every operation, and the dump says
# how each frame was split. On a client, frames are wound on one thread and unwound on
# another, and distribute over one subvolume is passed through: they are split too.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

checker=tests/lib/check_dump.py
delay_us=5000

# measure RUN CLIENT TARGET [OPTION]...: fio's job under bricktop, attached before it and
# until after it. Leaves RUN.json, RUN.dump and fio's RUN-fio.json in $BED_DIR.
measure()
{
	local run=$1 client=$2 target=$3 pid

	shift 3
	"$BRICKTOP" attach "$@" -d 60s --json -o "$BED_DIR/$run.json" \
		--dump-requests 4000="$BED_DIR/$run.dump" "$target" \
		2>"$BED_DIR/$run.err" &
	pid=$!
	# its dump is there from the start; that probes are in, a request tells
	attached() { touch "$(bed_get "$client" MNT)/tick" && [ -s "$BED_DIR/$run.dump" ]; }
	bed_poll 20 attached || { diag "$(cat "$BED_DIR/$run.err")"; return 1; }
	bed_fio "$(bed_get "$client" MNT)" job --rw=randrw --size=1m || return 1
	mv "$BED_DIR/job.json" "$BED_DIR/$run-fio.json"
	kill -INT "$pid"
	wait "$pid"
}

# row RUN OP PATH EXPRESSION: of the row whose path ends in PATH, with `op` and `row`.
row()
{
	python3 - "$BED_DIR/$1.json" "$2" "$3" "$4" <<-'PY'
	import json, sys

	path, name, end, expression = sys.argv[1:]
	with open(path) as file:
	    report = json.load(file)
	op = next(o for o in report["ops"] if o["op"] == name and o["root"] in ("brick", "client")
	          and o["origin"] == "user")
	row = next((r for r in op["layers"] if ("/" + r["path"]).endswith("/" + end)), None)
	print(eval(expression) if row or "row" not in expression else "no such row")
	PY
}

fio_count()
{
	python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["jobs"][0][sys.argv[2]]["total_ios"])' \
		"$BED_DIR/$1-fio.json" "$2"
}

lost() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["lost"]["marks"])' \
	"$BED_DIR/$1.json"; }

# counts RUN OP FIO-NAME: equal to fio's, every request covered, all of them adding up.
counts()
{
	is "$(row "$1" "$2" '' 'op["count"]')" "$(fio_count "$1" "$2")" "$1: every $2 counted"
	is "$(row "$1" "$2" '' 'op["coverage_pct"]')" 100.0 "$1: all $2s covered"
	is "$(row "$1" "$2" '' 'op["sum_check_pct"]')" 100.0 "$1: all $2s add up"
}

bed_brick slow --async --at posix \
	"dg debug/delay-gen delay-duration $delay_us delay-percentage 100 enable write"
bed_brick plain --async --at posix "dg debug/delay-gen delay-percentage 0 enable write"
bed_client c-slow slow || bail_out "no delaying brick"
bed_client c-plain plain --at top "open-behind performance/open-behind" || bail_out "no plain brick"
for client in c-slow c-plain; do
	# every fop has to be met once before its entries can be chosen
	bed_fio_prepare "$(bed_get "$client" MNT)" job --size=1m
	bed_fio "$(bed_get "$client" MNT)" job --rw=randrw --size=256k
done

ok "without --split-tails" measure whole c-slow "$BED_SLOW_PATH" ||
	diag "$(cat "$BED_DIR/whole.err")"
ok "with --split-tails" measure split c-slow "$BED_SLOW_PATH" --split-tails ||
	diag "$(cat "$BED_DIR/split.err")"
ok "with it, where nothing delays" measure still c-plain "$BED_PLAIN_PATH" --split-tails ||
	diag "$(cat "$BED_DIR/still.err")"
ok "of a client" measure client c-plain "$BED_C_PLAIN_MNT" --split-tails ||
	diag "$(cat "$BED_DIR/client.err")"
for run in whole split still client; do
	counts "$run" write
	counts "$run" read
done

# Where none of the three has a frame of its own, all share access-control's.
all=$(fio_count split write)
is "$(row whole write locks/access-control+dg+posix 'row["count"]')" "$(fio_count whole write)" \
	"whole: the group has every write"
between "$(row whole write locks/access-control+dg+posix 'row["self_us"]["p50"]')" \
	$((delay_us * 96 / 100)) $((delay_us * 3)) "whole: and carries the delay"
is "$(row whole write dg 'row["count"]')" "no such row" "whole: delay-gen has no row"
for path in access-control access-control/dg access-control/dg/posix; do
	is "$(row split write "locks/$path" 'row["count"]')" "$all" "split: $path has every write"
done
for op in read write; do
	is "$(row split $op server 'len([r for r in op["layers"] if "+" in r["id"]])')" 0 \
		"split: no group among the rows of a $op"
done
between "$(row split write dg 'row["self_us"]["mean"]')" $delay_us $((delay_us * 3)) \
	"split: delay-gen carries the delay"
between "$(row split write dg 'row["self_us"]["p50"]')" $((delay_us * 96 / 100)) \
	$((delay_us * 3)) "split: in every write"

# median RUN OP PATH: of the self time, us.
median() { row "$1" "$2" "$3" 'row["self_us"]["p50"]'; }

for layer in posix access-control locks upcall; do
	between "$(awk -v a="$(median split write "$layer")" -v b="$(median still write "$layer")" \
		'BEGIN { print a - b }')" -$((delay_us / 50)) $((delay_us / 50)) \
		"split: the median of $layer moves by less than 2 % of the delay"
done

for path in open-behind open-behind/io-threads io-threads/dht dht/client-0; do
	is "$(row client write "$path" 'row["count"]')" "$(fio_count client write)" \
		"client: $path has every write"
done

for run in split still client; do
	is "$(lost "$run")" 0 "$run: no mark lost"
	ok "$run: the dump adds up" python3 "$checker" --min-requests 200 \
		--expect-tails "$BED_DIR/$run.dump"
	note "$TAP_OUTPUT"
done
ok "whole: the dump adds up" python3 "$checker" --min-requests 200 --max-unsplit 0 \
	"$BED_DIR/whole.dump"
like "$TAP_OUTPUT" "frames split: 0" "whole: nothing was split"
done_testing
