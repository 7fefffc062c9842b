#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2153 # bed.sh sets BED_<NAME>_*
# shellcheck disable=SC2317,SC2016 # functions are called through ok; $ of jq
#
# Reading a large directory: one request makes some thousands of file calls in one
# frame. Each of them is entered by itself, in the row of that frame and in none of
# the process's own, and the request adds up to the nanosecond like any other.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

FILES=5000
PASSES=3

make_files()
{
	python3 - "$BED_C1_MNT/large" "$FILES" <<-'PY'
	import os, sys
	os.mkdir(sys.argv[1])
	for i in range(int(sys.argv[2])):
	    open(f"{sys.argv[1]}/file-{i:05}", "w").close()
	PY
}

# read_all COMMAND...: how many lines it has for the directory.
read_all() { "$@" | wc -l; }

# dumped FILTER: of the dump, over all spans of readdirp's requests.
dumped()
{
	jq -s "[.[] | select(.op == \"readdirp\") | .spans[]] | $1" "$BED_DIR/large.dump"
}

{ bed_brick b1 && bed_client c1 b1 && make_files; } || bail_out "no brick"
ok "measured" measure_begin large "$BED_B1_PID" --dump-requests 1000="$BED_DIR/large.dump"
is "$(read_all ls -l "$BED_C1_MNT/large")" $((FILES + 1)) "ls -l reads it"
is "$(read_all find "$BED_C1_MNT/large" -type f -size -1)" "$FILES" "find reads it"
is "$(read_all ls -lU "$BED_C1_MNT/large")" $((FILES + 1)) "ls -l reads it again"
ok "ends well" measure_end large

is "$(measure_get large .lost.ledger)" 0 "no request is unsplit"
is "$(measure_get large '.lost | .total - .wakes')" 0 "nothing is lost"
is "$(measure_get large 'op("readdirp") | .sum_check_pct')" 100 "the sum check holds"
is "$(measure_get large 'op("readdirp") | .coverage_pct')" 100 "all requests are seen"
ok "requests add up" python3 tests/lib/check_dump.py "$BED_DIR/large.dump" \
	--max-unsplit 0 --expect-op readdirp --expect-spans
between "$(jq -s 'map(select(.op == "readdirp") | .spans | length) | max' "$BED_DIR/large.dump")" \
	1024 4096 "calls of the largest request"
is "$(dumped 'map(select(.frame < 0)) | length')" 0 "all calls are the requests'"

# Every file's attributes are read in every pass; each call is one entry in its row.
for call in newfstatat llistxattr lgetxattr; do
	n=$(dumped "map(select(.sub == \"$call\")) | length")
	between "$n" $((FILES * PASSES)) $((FILES * PASSES * 8)) "$call: calls of the requests"
	is "$(measure_get large "op(\"readdirp\") | layer(\"$call\") | .count")" "$n" \
		"$call: each is entered once"
done
is "$(measure_get large '[.ops[] | select(.root == "local" and .op == "llistxattr")] | length')" \
	0 "none of them is taken for the brick's own"
done_testing
