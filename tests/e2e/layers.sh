#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 120
# shellcheck disable=SC2317 # functions are called through others
#
# No layer is silent: under the demo's load every row of layers.def has samples, those of
# asynchronous operations under a fio that makes some, as a brick does where it is told to; and
# every xlator of the brick's graph is met in some operation. A layer that cannot be
# had here is a skip with bricktop's own reason, so that the list of expected skips
# shows it. Dirty pages are kept few meanwhile (vm.dirty_bytes, put back at the end), or
# nothing would wait for them.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/below.sh
e2e_begin

demo=

DIRTY=/proc/sys/vm/dirty
declare -A dirty=()

# few_dirty: of each limit's bytes and ratio the one that is not in use reads 0.
few_dirty()
{
	local limit unit

	for limit in bytes ratio background_bytes background_ratio; do
		unit=$(cat "${DIRTY}_$limit") || return 1
		[ "$unit" = 0 ] || dirty[$limit]=$unit
	done
	echo 16384 >"${DIRTY}_background_bytes" && echo 65536 >"${DIRTY}_bytes"
}

end_demo()
{
	local limit

	for limit in "${!dirty[@]}"; do
		echo "${dirty[$limit]}" >"${DIRTY}_$limit"
	done
	[ -z "$demo" ] || { kill "$demo" && wait "$demo"; } 2>/dev/null
}
bed_on_exit end_demo

demo_is_up() { [ -f "$BED_DIR/env" ] || ! kill -0 "$demo" 2>/dev/null; }

# This load waits for no page: below_pages.sh has one that does.
NOT_HERE=writeback

# rows: "title kind subs" of every row of layers.def.
rows()
{
	sed -n 's/^LAYER(//p' user/layers.def | tr -d '" )' |
		awk -F, '{ print $3, $4, $8 }'
}

# samples KIND [ID]: how many passages a layer of this kind has, in all operations; of a
# table of the host, what was counted in it.
samples()
{
	case $1 in
	host) jq '[.devices[].ops[].count] | add // 0' "$BED_DIR/report" ;;
	# of aio and of io_uring the same kind
	aio) below_sum async "$2 read" count "$2 read" ;;
	*) jq --arg kind "$1" --arg id "${2-}" '[.ops[].layers[] |
		select(.kind == $kind and ($id == "" or .id == $id)) | .count] | add // 0' \
		"$BED_DIR/report" ;;
	esac
}

test_rows()
{
	local title kind subs reason n=0

	while read -r title kind subs; do
		reason=$(jq -r --arg t "$title" '.off[] | select(.what == $t) | .reason' \
			"$BED_DIR/report")
		if [ -n "$reason" ]; then
			skip "$reason" "layer $title has samples"
			[ "$title" = $NOT_HERE ] || n=$((n + 1))
			continue
		fi
		[ "$title" != $NOT_HERE ] || continue
		[ "$subs" = NULL ] || [ "$kind" = aio ] || title=
		between "$(samples "$kind" "$title")" 1 1e12 "layer ${title:-$kind} has samples"
		n=$((n + 1))
	done < <(rows)
	is "$(jq -r '.off[].what' "$BED_DIR/report" | grep -vxFf <(rows | cut -d ' ' -f 1))" '' \
		"nothing else is off"
	# the table as it is: a row that was not read above was not judged
	is "$n" "$(grep '^LAYER(' user/layers.def | grep -vc "\"$NOT_HERE\", \"$NOT_HERE\"")" \
		"every row but $NOT_HERE was judged"
}

# An xlator stands alone or in a group, "a+b".
test_xlators()
{
	local id graph

	graph=$("$BRICKTOP" list --json |
		jq -r --arg path "$DEMO_BRICK_PATH" \
			'.targets[] | select(.path == $path) | .xlators[]')
	ok "the graph has xlators" test "$(wc -l <<<"$graph")" -gt 5
	for id in $graph; do
		between "$(jq --arg id "$id" '[.ops[] | select(.source == "walk") | .layers[] |
			select((.id | split("+") | index([$id])) != null and .state == "on") |
			.count] | add // 0' "$BED_DIR/report")" 1 1e12 "xlator $id has samples"
	done
}

# What the load is known to do must be there, user's operations and the brick's own.
test_ops()
{
	local op

	for op in read write fsync create lookup unlink flush; do
		between "$(jq --arg op "$op" '[.ops[] | select(.root == "brick" and
			.source == "walk" and .origin == "user" and .op == $op) |
			.count] | add // 0' "$BED_DIR/report")" 1 1e12 "$op was walked"
	done
	between "$(jq '[.ops[] | select(.root == "local") | .count] | add // 0' \
		"$BED_DIR/report")" 1 1e12 "file operations of no request are there"
}

tools/demo-brick --env "$BED_DIR/env" --pass 2 \
	--at iot "dg debug/delay-gen delay-percentage 0" >"$BED_DIR/demo.out" 2>&1 &
demo=$!
bed_poll 60 demo_is_up
if ! [ -f "$BED_DIR/env" ]; then
	cat "$BED_DIR/demo.out" >&2
	bail_out "the demo does not come up"
fi
# shellcheck disable=SC1091
. "$BED_DIR/env"
ok "few pages may be dirty" few_dirty
ok "a report" "$BRICKTOP" attach "$DEMO_VOLUME" -d 6 --json -o "$BED_DIR/report"
below_mount x 300m || bail_out "no XFS"
dd if=/dev/zero of="$BED_X_MNT/file" bs=1M count=1 conv=fsync 2>/dev/null || bail_out "no file"
ok "and one of asynchronous operations" below_async async "$BED_X_MNT/file" --size=1m --bs=4k \
	--rw=randread --direct=1 --iodepth=4
test_rows
test_xlators
test_ops
done_testing
