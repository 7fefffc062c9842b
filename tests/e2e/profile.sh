#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 240
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# What only a managed volume can show: for the same requests, the means and counts of
# `gluster volume profile`; a client whose graph is switched while bricktop is attached
# and requests run; a brick whose switch fails, which must change nothing.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/load.sh
. tests/lib/graph.sh
e2e_begin
e2e_needs glusterd
bed_glusterd g1 --set "performance.write-behind off" --set "performance.quick-read off" \
	--set "performance.io-cache off" --set "performance.read-ahead off" ||
	bail_out "no managed volume"
BED_FIO_IN=ns
MNT=/proc/$BED_NS_PID/root$BED_G1_MNT

# profile_rows: "FOP CALLS MEAN_US", cumulative.
profile_rows()
{
	bed_gluster volume profile "$BED_VOLUME" info cumulative | awk '
		$3 == "us" || $3 == "ns" {
			print tolower($NF), $(NF - 1), $3 == "ns" ? $2 / 1000 : $2
		}'
}

test_profile()
{
	local fop calls mean n=0

	load_data_prepare "$BED_G1_MNT" prof
	ok "profile on" bed_gluster volume profile "$BED_VOLUME" start
	ok "profile cleared" bed_gluster volume profile "$BED_VOLUME" info clear
	ok "attached to the brick" measure_begin brick "$BED_G1_BRICK_PID"
	ok "fio" load_data "$BED_G1_MNT" prof
	ok "names and attributes" load_meta "$MNT"
	ok "the report" measure_end brick
	profile_rows >"$BED_DIR/profile"
	while read -r fop calls mean; do
		case $fop in *forget | release*) continue ;; esac
		is "$(measure_get brick "[.ops[] | select(.root == \"brick\" and .op == \"$fop\")
			.count] | add")" "$calls" "$fop: $calls calls by profile"
		n=$((n + 1))
		[ "$calls" -ge 20 ] || continue
		between "$(measure_get brick "[.ops[] | select(.root == \"brick\" and
				.op == \"$fop\") | layer(\"io-stats\").incl_us.mean] |
				first / $mean")" \
			0.98 1.02 "$fop: its mean is profile's, within 2 %"
	done <"$BED_DIR/profile"
	between "$n" 15 60 "operations compared"
	is "$(measure_get brick '.lost | .total - .wakes')" 0 "nothing lost"
}

# root_ended NAME FOP: requests that the mount answered, whichever graph served them.
root_ended()
{
	jq -s --arg f "$2" '[.[] | (.xlators[0].stats[$f].ended // 0)] | .[1] - .[0]' \
		"$BED_DIR/$1".{before,after}
}

graph_of() { measure_e0 "$BED_G1_PID" "$BED_DIR/now" && jq -r .graph "$BED_DIR/now"; }
switched() { [ "$(graph_of)" != "$1" ]; }

test_switch()
{
	local old fop

	old=$(graph_of)
	load_data_prepare "$BED_G1_MNT" switch
	ok "attached to the client" measure_begin client "$BED_G1_PID" \
		--dump-requests 1000000="$BED_DIR/client.dump"
	bed_fio "$BED_G1_MNT" running --rw=randwrite --size=4m --time_based --runtime=4 &
	sleep 0.5
	ok "write-behind switched on" bed_gluster volume set "$BED_VOLUME" \
		performance.write-behind on
	ok "the client has another graph" bed_poll 10 switched "$old"
	wait $!
	ok "requests after it" load_data "$BED_G1_MNT" switch
	sleep 0.2
	ok "the client's report" measure_end client
	for fop in read write create; do
		is "$(measure_get client "[.ops[] | select(.root == \"client\" and
			.op == \"$fop\").count] | add // 0")" "$(root_ended client "$fop")" \
			"$fop: each request before and after the switch"
	done
	between "$(measure_get client "$(row write write-behind).count")" 500 10000000 \
		"the new graph's xlator has its row"
	is "$(measure_get client .lost.unknown_xlator)" 0 "no xlator was unknown"
	ok "every request of both graphs adds up" dump_ok client --max-unsplit 0 \
		--expect-xlator write-behind
	is "$(jq -r '[.frames[].xlator, .marks[].this, .raiser // empty] |
		.[] | select(test("^[0-9]+$"))' "$BED_DIR/client.dump" | sort | uniq -c)" '' \
		"each xlator in them has its name"
	# of lookup, open and fsync the client made some by itself, to move its open files
	for fop in read write create flush; do
		is "$(measure_get client "op(\"$fop\").coverage_pct")" 100 "$fop: coverage"
	done
}

test_failed_switch()
{
	ok "attached to the brick again" measure_begin failed "$BED_G1_BRICK_PID"
	ok "requests" bed_fio "$BED_G1_MNT" before --rw=randrw --size=1m
	ok "a translator added to the brick" bed_gluster volume set "$BED_VOLUME" \
		debug.delay-gen posix
	sleep 1.5
	ok "requests after it" bed_fio "$BED_G1_MNT" behind --rw=randrw --size=1m
	ok "the report" measure_end failed
	ok "counts and means as if nothing had been" python3 tests/lib/check_counts.py \
		"$BED_DIR"/failed.{before,after,json} --volume "$BED_VOLUME"
	is "$(measure_get failed '[.ops[].layers[] | select(.id | contains("delay"))] | length')" \
		0 "the translator is not shown"
}

for part in ${PARTS:-profile switch failed_switch}; do
	"test_$part"
done
done_testing
