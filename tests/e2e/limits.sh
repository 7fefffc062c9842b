#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2153 # bed.sh sets BED_<NAME>_*
# shellcheck disable=SC2317,SC2016 # functions are called through ok; $ of jq
#
# Where something is missing: room for histograms and in the other maps, a reader for the
# report, the right to read a process; and where something is there twice: another
# bricktop on the same brick. What is lost is counted and said, what is left is right to
# the request, and nothing is left behind in the brick.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/below.sh
e2e_begin

load() { bed_fio "$BED_C1_MNT" "$1" --size=1m --rw=randrw "${@:2}"; }

# is_fios NAME JOB OP: the report counts as many as fio made.
is_fios()
{
	is "$(measure_get "$1" "op(\"$3\") | .count")" "$(bed_fio_count "$2" "$3")" \
		"$1: ${3}s are fio's"
}

# Rows, of walked operations, that do not agree with the root's count.
wrong_rows()
{
	measure_get "$1" '.ops[] | select(.root == "brick" and .source == "walk") |
		.count as $n | .op as $op | .layers[] |
		select(.kind == "xlator" and .count != $n) | "\($op) \(.id) \(.count) of \($n)"'
}

rows_of() { measure_get "$1" '[.ops[] | select(.source == "walk") | .layers[] |
		select(.state == "on")] | length'; }

test_room()
{
	local slots

	for slots in 1 24; do
		export BRICKTOP_SLOTS=$slots
		ok "$slots histograms: measured" measure_begin "slots$slots" "$BED_B1_PID"
		unset BRICKTOP_SLOTS
		load room
		ok "$slots histograms: ends well" measure_end "slots$slots"
		between "$(measure_get "slots$slots" .lost.map_full)" 256 1e6 \
			"$slots histograms: what found no room is counted"
		is "$(measure_get "slots$slots" '.lost | .total - .wakes - .map_full')" 0 \
			"$slots histograms: nothing else is lost"
		between "$(rows_of "slots$slots")" 1 "$slots" "$slots histograms: that many rows"
		is "$(wrong_rows "slots$slots")" '' "$slots histograms: these rows are right"
		is_fios "slots$slots" room read
		is_fios "slots$slots" room write
	done
	between "$(rows_of slots24)" 17 24 "all the room is used"
}

test_room_text()
{
	export BRICKTOP_SLOTS=8
	attach_start text "$BED_B1_VOLUME" -d 60
	unset BRICKTOP_SLOTS
	load room
	attach_end text
	is "$ATTACH_STATUS" 0 "in words: exit status"
	like "$(cat "$BED_DIR/text.out")" $'\n''lost +[0-9,]+ samples for which no histogram' \
		"in words: what was lost, and why"
	like "$(cat "$BED_DIR/text.out")" '  lost [1-9][0-9,]*  ' "and in the first line"
}

# Maps that hold the xlators but hardly more, and such that do not hold even these.
test_maps()
{
	export BRICKTOP_MAPS=16
	ok "maps of 16: measured" measure_begin maps16 "$BED_B1_PID"
	export BRICKTOP_MAPS=4
	ok "maps of 4: measured" measure_begin maps4 "$BED_B1_PID"
	unset BRICKTOP_MAPS
	load room
	ok "maps of 16: ends well" measure_end maps16
	ok "maps of 4: ends well" measure_end maps4
	for name in maps16 maps4; do
		is_fios $name room read
		is_fios $name room write
	done
	is "$(wrong_rows maps16)" '' "maps of 16: the rows are right"
	is "$(measure_get maps16 '.checks | .walked - .holds')" 0 "maps of 16: the sums hold"
	is "$(measure_get maps4 '.off[] | select(.what == "walk") | .reason')" \
		"cannot fill the BPF maps: they are full" "maps of 4: no walk, and why"
	is "$(measure_get maps4 '[.ops[] | select(.source == "walk")] | length')" 0 \
		"maps of 4: only what the process counts"
}

# Sixteen operations in flight, and room for four. What is pushed out completes as one that nothing
# is known of: it is counted as lost, or as begun before bricktop came.
test_maps_below()
{
	local layer seen made

	below_mount x 300m || { skip "no XFS" "operations that find no room" 6; return; }
	dd if=/dev/zero of="$BED_X_MNT/file" bs=1M count=8 status=none
	export BRICKTOP_MAPS=4
	ok "room for 4 operations: fio" below_async tight "$BED_X_MNT/file" --size=8m \
		--io_size=1m --bs=4k --rw=randrw --direct=1 --iodepth=16
	unset BRICKTOP_MAPS
	for layer in aio io_uring; do
		seen=$(jq --arg layer "$layer " '[.ops[] | select(.op | startswith($layer)) |
			.count] | add // 0' "$BED_DIR/tight.json")
		made=$(below_fio_job tight "$layer" '.read.total_ios + .write.total_ios')
		between "$seen" 1 $((made - 1)) "room for 4 operations: some of $layer's are seen"
		between "$(jq --argjson seen "$seen" '$seen + .lost.map_full + .lost.begun_before' \
			"$BED_DIR/tight.json")" "$made" 1e6 \
			"room for 4 operations: the others of $layer are counted"
	done
	diag "lost: $(jq -c .lost "$BED_DIR/tight.json")"
	ok "room for 4 operations: what is seen adds up" below_adds_up tight
}

test_two()
{
	ok "a bricktop" measure_begin one "$BED_B1_PID"
	ok "another one on the same brick" measure_begin two "$BED_B1_PID"
	ok "and a third" attach_start three "$BED_B1_VOLUME" -d 60
	load room --rate_iops=100,100 &
	sleep 1
	attach_end three
	is "$ATTACH_STATUS" 0 "the third ends in between"
	wait $!
	ok "the one ends" measure_end one
	ok "the other ends" measure_end two
	for name in one two; do
		is_fios $name room read
		is_fios $name room write
		is "$(measure_get $name '.lost | .total - .wakes')" 0 "$name: nothing is lost"
		is "$(measure_get $name 'op("write") | .coverage_pct')" 100 "$name: coverage"
	done
	ok "no instruction is left in the brick" attach_clean "$BED_B1_PID"
}

# unwritable NAME COMMAND...: exit status 1 and one line about it.
unwritable()
{
	local name=$1 err

	shift
	err=$("$@" 2>&1 >"${unwritable_to:-/dev/full}")
	is $? 1 "$name: exit status"
	like "$err" '^bricktop: [^'$'\n'']*(write|output)[^'$'\n'']*$' "$name: one line about it"
	ok "$name: no instruction is left in the brick" attach_clean "$BED_B1_PID"
}

into_nobody() { "$BRICKTOP" "$@" > >(:); }
closed() { "$BRICKTOP" "$@" >&-; }

test_output()
{
	unwritable "attach, device full" "$BRICKTOP" attach "$BED_B1_VOLUME" -d 1
	unwritable "attach as JSON, device full" "$BRICKTOP" attach "$BED_B1_VOLUME" -d 1 --json
	unwritable "attach, stdout closed" closed attach "$BED_B1_VOLUME" -d 1
	unwritable "attach, reader gone" into_nobody attach "$BED_B1_VOLUME" -d 1
	unwritable "attach, no such folder" "$BRICKTOP" attach "$BED_B1_VOLUME" -d 1 -o /no/such/x
	unwritable "list, device full" "$BRICKTOP" list
	unwritable "stuck, device full" "$BRICKTOP" stuck "$BED_B1_VOLUME"
}

# As who may not read other users' processes. $BED_DIR/bricktop is within their reach.
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$BED_DIR/bricktop" "$@"; }
powerless() { setpriv --bounding-set=-sys_ptrace "$BED_DIR/bricktop" "$@"; }

test_rights()
{
	local command err

	chmod 755 "$BED_DIR"
	install -m 755 "$BRICKTOP" "$BED_DIR/bricktop"
	for command in "attach $BED_B1_VOLUME" "attach --all" "stuck $BED_B1_VOLUME" stuck; do
		# shellcheck disable=SC2086
		err=$(nobody $command 2>&1)
		is $? 77 "not root: $command: exit status"
		like "$err" '^bricktop: [^'$'\n'']*root[^'$'\n'']*$' "not root: $command: one line"
	done
	like "$(nobody list)" "process $BED_B1_PID may not be read: run as root" \
		"not root: list says why"
	err=$(powerless attach "$BED_B1_PID" 2>&1)
	is $? 77 "unreadable memory: exit status"
	like "$err" "$BED_B1_PID may not be read: this needs CAP_SYS_PTRACE" \
		"unreadable memory: says which right is missing"
	unlike "$err" $'\n' "unreadable memory: in one line"
	like "$(powerless list)" "$BED_B1_PID may not be read: this needs CAP_SYS_PTRACE" \
		"unreadable memory: list says why"
}

{ bed_brick b1 && bed_client c1 b1; } || bail_out "no brick"
load room || bail_out "no load"
test_room
test_room_text
test_maps
test_maps_below
test_two
test_output
test_rights
done_testing
