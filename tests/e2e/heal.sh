#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2016,SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions and $ go
# through ok
#
# Self-heal beside users: a brick misses writes, comes back, and one client heals it
# while another one writes. On the brick and in the healing process what the heal does
# is internal, to the file, and users' rows hold the users' operations and no more.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

# in rounds: what a process does for the first time is found while it does it
ROUNDS=3
FILES=$((3 * ROUNDS))

# count NAME ROOT ORIGIN OP: operations in those rows, 0 where there is none.
count()
{
	measure_get "$1" '[.ops[] | select((.root | test("^('"$2"')$")) and .origin == "'"$3"'" and
		.op == "'"$4"'" and .source == "walk").count] | add // 0'
}

# healed ROUND SINK SOURCE: the files that a brick missed are there, whole, as on a brick
# that missed nothing.
healed()
{
	ls -l "$BED_HEALER_MNT/old$1" >/dev/null
	cat "$BED_HEALER_MNT/old$1"/* >/dev/null
	[ "$(cd "$2/old$1" && stat -c '%n %b' -- *)" = "$(cd "$3/old$1" && stat -c '%n %b' -- *)" ]
}

# heal SINK SOURCE: round by round.
heal()
{
	local i

	for ((i = 0; i < ROUNDS; i++)); do
		bed_poll 20 healed "$i" "$(bed_get "$1" PATH)" "$(bed_get "$2" PATH)" || return 1
		sleep 1.5
	done
}

# miss BRICK MNT: files that BRICK misses.
miss()
{
	local i

	for ((i = 0; i < ROUNDS; i++)); do
		mkdir "$2/old$i" || return 1
	done
	{ mkdir "$2/new" && bed_stop "$1" KILL; } || return 1
	for ((i = 0; i < FILES; i++)); do
		head -c 131072 /dev/urandom >"$2/old$((i % ROUNDS))/file$i" || return 1
	done
	bed_start "$1"
}

created() { measure_e0 "$1" "$BED_DIR/now" && jq .created "$BED_DIR/now"; }

# quiet PID: nobody asks it for anything, as clients do for a while after their start.
quiet()
{
	local was

	was=$(created "$1") && sleep 1 && [ "$(created "$1")" = "$was" ]
}

# watch SINK: from here on everything counts, on that brick and in the healer.
watch()
{
	local pid

	pid=$(bed_get "$1" PID)
	bed_poll 20 quiet "$pid" && measure_begin brick "$pid" &&
		measure_begin healer "$BED_HEALER_PID"
}

judge_brick()
{
	local kind=$1

	is "$(count brick brick user write)" "$(bed_fio_count "$kind" write)" \
		"$kind, brick: users' writes are fio's"
	is "$(count brick brick internal mknod)" "$FILES" \
		"$kind, brick: files that the heal makes are internal"
	is "$(count brick brick user mknod)" 0 "$kind, brick: and none is a user's"
	between "$(count brick brick internal write)" "$FILES" 1000 \
		"$kind, brick: what the heal writes is internal"
	between "$(count brick brick internal inodelk)" "$FILES" 10000 \
		"$kind, brick: what the heal locks is internal"
	# for each client that connects a brick looks its root up by itself
	ok "$kind, brick: both together are what the process counts" \
		python3 tests/lib/check_counts.py "$BED_DIR"/brick.{before,after,json} \
		--volume "$BED_VOLUME" --expect write --expect mknod --inner lookup=2
}

judge_healer()
{
	local kind=$1

	is "$(count healer 'client|background' user write)" 0 "$kind, healer: no write is a user's"
	is "$(count healer 'client|background' user mknod)" 0 \
		"$kind, healer: nor is a file that the heal makes"
	between "$(count healer background internal write)" 1 1000 \
		"$kind, healer: what the heal writes is internal, in the background"
	between "$(count healer client user read)" 1 10000 \
		"$kind, healer: what its user reads is a user's"
	is "$(count healer client internal read)" 0 "$kind, healer: and not internal"
}

test_origin()
{
	local kind=$1 bricks=("${@:2}") sink=$2 source=$3

	{ bed_client writer --kind "$kind" "${bricks[@]}" &&
		miss "$sink" "$BED_WRITER_MNT"; } || bail_out "no $kind"
	# from now on they know all bricks
	{ bed_client user --kind "$kind" --cluster "$NO_HEAL" "${bricks[@]}" &&
		bed_client healer --kind "$kind" --cluster "$HEAL" "${bricks[@]}"; } ||
		bail_out "no clients"
	ok "$kind: brick and healer are watched" watch "$sink"
	bed_fio "$BED_USER_MNT/new" "$kind" --rw=write --size=2m --numjobs=2 &
	ok "$kind: healed" heal "$sink" "$source"
	wait $!
	sleep 1.5
	ok "$kind: measured" eval 'measure_end healer && measure_end brick'
	judge_brick "$kind"
	judge_healer "$kind"
}

for brick in r1 r2 d1 d2 d3; do
	bed_brick "$brick" --async || bail_out "no bricks"
done
for brick in r1 r2 d1 d2 d3; do
	bed_wait "$brick" || bail_out "no bricks"
done
NO_HEAL='data-self-heal off' HEAL='data-self-heal on metadata-self-heal on entry-self-heal on'
test_origin replicate r1 r2
for client in writer user healer; do
	bed_stop "$client"
done
NO_HEAL='background-heals 0' HEAL='background-heals 8'
test_origin disperse d1 d2 d3
done_testing
