#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 120
# shellcheck disable=SC2016,SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions and $ go
# through ok
#
# Copies of a request's stack that are gone before its reply. Where two clients share
# files on disperse (healing is such a client, too), eager locks are given up at once,
# and each request locks, asks for sizes and unlocks in copies of its own, each destroyed
# when it is done. All of it belongs to the request that waits for it, none is missing,
# none is there twice: held against what the process counts, xlator by xlator.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/load.sh
e2e_begin

# share: two clients at the same files: neither keeps its locks for long.
share()
{
	local i

	for ((i = 0; i < 40; i++)); do
		cat "$BED_OTHER_MNT"/shared/* >/dev/null
		dd if=/dev/zero of="$BED_USER_MNT/shared/file$((i % 4))" bs=4k count=4 \
			conv=notrunc oflag=direct status=none || return 1
	done
}

# Every lock and every look at a size belongs to the request that waits for it.
test_passages()
{
	local since

	mkdir "$BED_USER_MNT/shared" "$BED_USER_MNT/warm"
	ok "passages: watched" measure_begin user "$BED_USER_PID" \
		--dump-requests 20000="$BED_DIR/user.dump"
	# every kind of passage once, while discovery looks
	ok "passages: warm" eval 'share && load_meta "$BED_USER_MNT/warm" && share'
	sleep 2.5
	since=$(python3 -c 'import time; print(time.monotonic_ns())')
	measure_e0 "$BED_USER_PID" "$BED_DIR/user.mid"
	ok "passages: load" share
	sleep 2
	ok "passages: measured" measure_end user
	ok "passages: nothing is missing, locks are in requests" python3 \
		tests/lib/check_passages.py "$BED_DIR"/user.{mid,after,dump} --since "$since" \
		--xlator client-0 --xlator client-1 --xlator client-2 \
		--within inodelk --within fxattrop
	ok "passages: every request adds up, nothing is there twice" python3 \
		tests/lib/check_dump.py "$BED_DIR/user.dump" --min-requests 300 \
		--max-unsplit 0 --expect-copies
}

for brick in d1 d2 d3; do
	bed_brick "$brick" --async || bail_out "no bricks"
done
{ bed_client user --kind disperse d1 d2 d3 && bed_client other --kind disperse d1 d2 d3; } ||
	bail_out "no clients"
test_passages
done_testing
