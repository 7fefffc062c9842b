#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# Callbacks that the search of the code did not find: here it is switched off
# (BRICKTOP_DISCOVER), so that every one has to be discovered while requests run. Until
# then the process's own means stand in for a fop, and say so; after it nothing lacks.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/bed.sh
. tests/lib/measure.sh

why=$(bed_missing) && skip_all "$why"
bed_init || bail_out "no test bed"
{ bed_brick b1 && bed_client c1 b1; } || bail_out "no set-up"
export BRICKTOP_DISCOVER=1

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
	ok "$name: data" bed_fio "$BED_C1_MNT" "$name" --rw=randrw --size=1m --fsync=16
	sleep 2.5
	attributes 6
	mkdir "$BED_C1_MNT/$name"
	measure_e0 "$2" "$BED_DIR/$name.mid"
	ok "$name: data again" bed_fio "$BED_C1_MNT" "$name" --rw=randrw --size=1m --fsync=16
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
	is "$(measure_get "$name" .lost.total)" 0 "$name: nothing lost"
}

touch "$BED_C1_MNT/file"
test_target brick "$BED_B1_PID"
test_target client "$BED_C1_PID"
done_testing
