#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 300
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# When callbacks are looked for, and that they are found. On a process whose requests
# and stacks are all met it never is: one hit a request. What xlators make themselves
# is found within a second or two. Where the search of the code is switched off
# (BRICKTOP_DISCOVER) every callback has to be discovered while requests run: until then
# the process's own means stand in for a fop, and say so; after it nothing lacks. And
# where probes turn out to see one thread only, others take over.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
{ bed_brick b1 && bed_client c1 b1; } || bail_out "no set-up"

# attributes SECS: setxattr of the test's file, five times a second: too few to be
# missed among the stacks, so that the fop itself has to be.
attributes()
{
	local end=$((SECONDS + $1))

	while [ "$SECONDS" -lt "$end" ]; do
		setfattr -n user.test -v value "$BED_C1_MNT/file" && sleep 0.2
	done
}

# since_mid FOP: requests that came in since the process was read in the middle.
since_mid()
{
	jq -s --arg f "$1" '[.[] | [.xlators[] | .stats[$f].wound // 0 | select(. > 0)] |
		first // 0] | .[1] - .[0]' "$BED_DIR/$2".{mid,after}
}

reason() { measure_get "$1" "op(\"$2\") | .source, .layers[0].reason" | tr '\n' ' '; }

# test_target NAME PID: setxattr comes only when the first search is long over: it is
# searched for alone. mkdir comes once, and never again: means only.
test_target()
{
	local fop name=$1

	ok "$name: attached" measure_begin "$name" "$2"
	ok "$name: data" bed_fio "$BED_C1_MNT" "$name-load" --rw=randrw --size=1m --fsync=16
	sleep 2.5
	attributes 6
	mkdir "$BED_C1_MNT/$name"
	measure_e0 "$2" "$BED_DIR/$name.mid"
	ok "$name: data again" bed_fio "$BED_C1_MNT" "$name-load" --rw=randrw --size=1m --fsync=16
	attributes 2
	ok "$name: the report" measure_end "$name"
	for fop in read write fsync setxattr; do
		between "$(since_mid "$fop" "$name")" 5 100000 "$name: enough of $fop to tell"
		between "$(measure_get "$name" "op(\"$fop\").count")" \
			"$(since_mid "$fop" "$name")" 100000 \
			"$name: $fop is walked once it was found"
		between "$(measure_get "$name" "op(\"$fop\").coverage_pct")" 5 100 \
			"$name: $fop coverage says that it was not at first"
		like "$(reason "$name" "$fop")" '^walk' "$name: $fop has true figures"
	done
	like "$(reason "$name" mkdir)" "^memory no walk .* own figures" \
		"$name: mkdir has means only, and says why"
	is "$(measure_get "$name" '.lost | .total - .wakes')" 0 "$name: nothing lost"
}

hits() { measure_get "$1" .cost.uprobe_hits; }
walked() { measure_get "$1" .checks.walked; }

# Hits at frames' ends would be five to seven a request.
test_never()
{
	local name load

	for name in b1 c1; do
		ok "$name: attached" measure_begin "never-$name" "$(bed_get "$name" PID)"
		ok "$name: data" bed_fio "$BED_C1_MNT" "$name-load" --rw=randrw --size=2m --fsync=16
		ok "$name: the report" measure_end "never-$name"
		between "$(walked "never-$name")" 512 1e9 "$name: enough requests to tell"
		between "$(hits "never-$name")" "$(walked "never-$name")" \
			"$(($(walked "never-$name") + 32))" "$name: one probe hit a request"
	done
	bed_fio "$BED_C1_MNT" under-load --rw=randrw --size=1m --time_based --runtime=8 &
	load=$!
	sleep 1
	"$BRICKTOP" attach "$BED_B1_PID" --json -d 2 >"$BED_DIR/under.json"
	wait "$load"
	# what hits while layers are attached comes on top; a search makes it three times
	between "$(jq -n "$(hits under) / $(walked under)")" 1 2 \
		"attached under load: one probe hit a request from the first second on"
	is "$(measure_get under '.off | length')" 0 "and no stack is missing"
}

# wound_below NAME XLATOR FOP: calls below an xlator between .before and .after.
wound_below()
{
	jq -s --arg f "$3" --arg x "$2" '[.[] | [.xlators[] | select(.id | endswith($x)) |
		.stats[$f].wound] | add] | .[1] - .[0]' "$BED_DIR/$1".{before,after}
}

# write-behind answers a write and winds it later, in a stack of its own.
test_own()
{
	local found wound load

	bed_client wb --kind write-behind b1 || bail_out "no write-behind"
	bed_fio "$BED_WB_MNT" own-load --rw=randwrite --direct=0 --size=4m --time_based \
		--runtime=10 &
	load=$!
	sleep 1
	ok "own stacks: attached under load" measure_attach own "$BED_WB_PID"
	measure_e0 "$BED_WB_PID" "$BED_DIR/own.before"
	wait "$load"
	ok "own stacks: the report" measure_finish own
	measure_e0 "$BED_WB_PID" "$BED_DIR/own.after"
	found=$(measure_get own '[.ops[] | select(.root == "background" and .op == "write")
		.count] | add')
	wound=$(wound_below own -client-0 write)
	between "$wound" 100 1e9 "own stacks: enough of them to tell"
	between "$(jq -n "$found / $wound")" 0.5 1.5 "own stacks: most of them are in a row"
	like "$(measure_get own '.off[] | select(.what == "call stacks").reason')" \
		'^[1-9][0-9]* of [1-9][0-9]* that ended are in no row' \
		"own stacks: those before they were found are counted"
	is "$(measure_get own '.lost | .total - .wakes')" 0 "own stacks: nothing else is lost"
}

# Multi links are attached to another process, as if the kernel's filter were broken.
test_blind()
{
	export BRICKTOP_UPROBE=blind
	ok "one thread: attached" measure_begin blind "$BED_B1_PID"
	unset BRICKTOP_UPROBE
	ok "one thread: data" bed_fio "$BED_C1_MNT" blind-load --rw=randrw --size=1m
	sleep 2.5
	measure_e0 "$BED_B1_PID" "$BED_DIR/blind.mid"
	ok "one thread: data again" bed_fio "$BED_C1_MNT" blind-load --rw=randrw --size=1m
	ok "one thread: the report" measure_end blind
	like "$(measure_get blind '.off[] | select(.what == "uprobe-multi").reason')" \
		'one thread only; perf uprobes used' "one thread: it is noticed, and said"
	is "$(measure_get blind 'op("write").count')" "$(since_mid write blind)" \
		"one thread: from then on every request is walked"
	between "$(measure_get blind 'op("write").coverage_pct')" 5 95 \
		"one thread: coverage says that they were not at first"
}

touch "$BED_C1_MNT/file"
test_never
test_own
test_blind
export BRICKTOP_DISCOVER=1
test_target brick "$BED_B1_PID"
test_target client "$BED_C1_PID"
done_testing
