#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 240
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# The truth on clients, whose work goes on in copies of a request's stack and behind its
# reply: replicate, disperse, write-behind and distribute. Whole requests are dumped
# and added up again by an independent checker; counts are those of the process itself,
# what runs in the background included.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/load.sh
. tests/lib/graph.sh
e2e_begin

# fio_written JOB...: bytes, from fio's own results.
fio_written()
{
	local job

	for job in "$@"; do
		sed -n '/^{/,$p' "$BED_DIR/$job.json"
	done | jq -s '[.[].jobs[].write.io_bytes] | add'
}

test_replicate()
{
	bed_client afr --kind replicate r1 r2 || bail_out "no replicate"
	ok "replicate: measured" investigate repl "$BED_AFR_PID" "$BED_AFR_MNT"
	ok "replicate: every request adds up" dump_ok repl --max-unsplit 0 --expect-copies \
		--expect-parallel --expect-xlator client-0 --expect-xlator client-1
	ok "replicate: counts are the process's own" judge repl --copies replicate-0
	like "$(measure_get repl "$(row write client-0) | .path")" 'replicate-0/client-0$' \
		"replicate: the children hang under it"
	between "$(measure_get repl "$(row write replicate-0) | .self_us.mean / .incl_us.mean")" \
		0 0.5 "replicate: what its children took is not its own"
	between "$(measure_get repl '[.ops[] | select(.root == "background" and
		.op == "write")] | first.count')" 1 100000 "replicate: the post-op is background"
}

test_disperse()
{
	bed_client ec --kind disperse d1 d2 d3 || bail_out "no disperse"
	ok "disperse: measured" investigate disp "$BED_EC_PID" "$BED_EC_MNT"
	ok "disperse: every request adds up" dump_ok disp --max-unsplit 0 --expect-copies \
		--expect-parallel --expect-xlator client-0 --expect-xlator client-1 \
		--expect-xlator client-2
	ok "disperse: counts are the process's own" judge disp --copies disperse-0
}

test_write_behind()
{
	bed_client wb --kind write-behind w1 || bail_out "no write-behind"
	ok "write-behind: measured" investigate wbh "$BED_WB_PID" "$BED_WB_MNT"
	ok "write-behind: every request adds up" dump_ok wbh --max-unsplit 0 --expect-clipped
	ok "write-behind: counts are the process's own" judge wbh --copies write-behind
	between "$(measure_get wbh '[.ops[] | select(.op == "write" and .root == "background")
		.bytes] | add')" "$(fio_written wbh-4k wbh-128k)" \
		"$(measure_get wbh 'op("write").bytes')" \
		"write-behind: every byte written later is found"
}

test_distribute()
{
	bed_client dht r1 d1 || bail_out "no distribute"
	rm -rf "$BED_R1_PATH"/{warm,load} "$BED_D1_PATH"/{warm,load}
	ok "distribute: measured" investigate dist "$BED_DHT_PID" "$BED_DHT_MNT"
	ok "distribute: every request adds up" dump_ok dist --max-unsplit 0 \
		--expect-xlator client-0 --expect-xlator client-1 --expect-parallel
	ok "distribute: counts are the process's own" judge dist --copies dht
}

for brick in r1 r2 d1 d2 d3 w1; do
	bed_brick "$brick" --async || bail_out "no bricks"
done
for graph in ${GRAPHS:-write_behind replicate disperse distribute}; do
	"test_$graph"
done
done_testing
