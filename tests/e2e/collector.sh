#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 120
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions run through ok
#
# What the collector itself takes, and whether its own account of that can be
# believed: its memory stays small, its CPU time is what /proc says, and a target that
# did next to nothing is not charged for what the rest of the host did.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

rss_kib=32768

# field FILE EXPRESSION: of the JSON document, as `d`; of several, the last one.
field()
{
	python3 - "$1" "$2" <<-'PY'
	import json, sys
	decoder, text, docs = json.JSONDecoder(), open(sys.argv[1]).read().strip(), []
	while text:
	    document, end = decoder.raw_decode(text)
	    docs.append(document)
	    text = text[end:].lstrip()
	d = docs[-1]
	print(eval(sys.argv[2]))
	PY
}

# cpu_ns PID: CPU time of a process's threads.
cpu_ns() { cat "/proc/$1/task/"*/schedstat 2>/dev/null | awk '{ ns += $1 } END { print ns + 0 }'; }

# observe NAME COMMAND...: runs it; NAME.seen gets a line every tenth of a second: the
# time in seconds, CPU time in ns, largest resident size in KiB.
observe()
{
	local seen=$BED_DIR/$1.seen pid rss cpu now _

	shift
	"$@" &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		rss=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status" 2>/dev/null)
		read -r now _ </proc/uptime
		cpu=$(cpu_ns "$pid") # 0: it has ended since
		[ -z "$rss" ] || [ "$cpu" = 0 ] || echo "$now $cpu $rss" >>"$seen"
		sleep 0.1
	done
	wait "$pid"
}

# used NAME FROM TO: CPU time in ms between FROM and TO seconds before the end.
used()
{
	awk -v from="$2" -v to="$3" '
		{ at[NR] = $1; cpu[NR] = $2 }
		END {
			for (i = 1; i <= NR; i++) {
				if (at[i] <= at[NR] - from)
					first = cpu[i]
				if (at[i] <= at[NR] - to)
					last = cpu[i]
			}
			print (last - first) / 1e6
		}' "$BED_DIR/$1.seen"
}

peak_rss() { tail -n 1 "$BED_DIR/$1.seen" | cut -d' ' -f3; }

# agrees NAME REPORT: its own CPU time, as it says, is at least what was used well within
# the window, and at most what was ever used.
agrees()
{
	local said

	said=$(field "$2" 'd["cost"]["own_pct"] * d["window"]["secs"] * 10')
	between "$said" "$(used "$1" 4 1)" "$(used "$1" 1000 0)" \
		"$1: /proc confirms its CPU time (ms)"
}

for name in 1 2; do
	bed_brick "b$name" || bail_out "no brick"
	bed_client "c$name" "b$name" || bail_out "no client"
done
bed_fio "$BED_C1_MNT" load --time_based --runtime=60 --rw=randrw --size=4m &
load=$!
bed_on_exit kill "$load"
sleep 1

# One busy brick: memory and CPU time.
report=$BED_DIR/one.json
ok "attached to a busy brick" observe one "$BRICKTOP" attach "$BED_B1_PID" -d 6s --json -o "$report"
between "$(peak_rss one)" 1000 $rss_kib "resident memory in KiB"
is "$(field "$report" 'd["lost"]["total"] - d["lost"]["wakes"]')" 0 "nothing was lost"
busy=$(field "$report" 'd["cost"]["target_pct"]')
between "$busy" 0.01 100 "a busy brick paid something"
is "$(field "$report" 'd["cost"]["uprobe_hits"] + d["cost"]["tracepoint_hits"]')" \
	"$(field "$report" 'd["cost"]["probe_hits"]')" "the hits of both kinds are all hits"

core=$(field "$report" 'd["cost"]["core_pct"]')
between "$(field "$report" 'd["cost"]["own_pct"]')" 0 "$core" "own CPU time is a part of the cost"
agrees one "$report"

# In the memory mode there is nothing but its own CPU time.
report=$BED_DIR/memory.json
ok "the memory mode" observe memory "$BRICKTOP" attach "$BED_B1_PID" -d 6s --memory-only --json \
	-o "$report"
between "$(peak_rss memory)" 1000 $rss_kib "resident memory in KiB"
is "$(field "$report" 'd["cost"]["probe_hits"]')" 0 "no probe was hit"
is "$(field "$report" 'd["cost"]["target_pct"]')" 0.0 "the target paid nothing"
is "$(field "$report" 'd["cost"]["own_pct"] == d["cost"]["core_pct"]')" True \
	"all that it cost is its own CPU time"
agrees memory "$report"

# trickle NAME: attaches to the brick that has little to do, a few writes a second.
trickle()
{
	bed_fio "$BED_C2_MNT" "trickle-$1" --rw=randwrite --size=1m --rate_iops=50 \
		--time_based --runtime=6 &
	sleep 1
	ok "$1: attached to a quiet brick" "$BRICKTOP" attach "$BED_B2_PID" -d 4s --json \
		-o "$BED_DIR/$1.json"
	wait $!
	between "$(field "$BED_DIR/$1.json" 'd["cost"]["uprobe_hits"]')" 1 2000 "$1: it is quiet"
	between "$(field "$BED_DIR/$1.json" 'd["cost"]["target_pct"]')" 0.01 90 \
		"$1: it pays a part of what it used"
}

# While the one is busy, the other pays for its own hits alone: as large a part of its time as when
# there is nobody else, but for what a busy machine does to both. Charged with the host's hits, many
# times its own, it would pay all that it used.
trickle beside
kill "$load" && wait "$load" 2>/dev/null
trickle alone
between "$(field "$BED_DIR/beside.json" 'd["cost"]["tracepoint_hits"]')" 1 1e9 \
	"the host's system calls are counted"
alone=$(field "$BED_DIR/alone.json" 'd["cost"]["target_pct"]')
between "$(field "$BED_DIR/beside.json" "d['cost']['target_pct'] / $alone")" 0 2.5 \
	"the quiet brick pays no more beside a busy one than alone ($alone %)"
done_testing
