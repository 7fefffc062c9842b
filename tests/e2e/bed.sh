#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# Self-test of the test bed: what the other tests take for granted. Each set-up comes
# up and carries data, counts agree to the request between fio, our delay xlator
# and the program that made the load, and nothing is left behind, even by a script
# that was killed.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

# carries CLIENT: one file written and read back through a mount.
carries()
{
	local mnt

	mnt=$(bed_get "$1" MNT)
	head -c 200000 /dev/urandom >"$BED_DIR/data"
	cp "$BED_DIR/data" "$mnt/data-$1" && sync "$mnt/data-$1" || return 1
	cmp "$BED_DIR/data" "$mnt/data-$1"
}

comm_of() { cat "/proc/$1/task/"*/comm; }

test_kinds()
{
	local brick

	for brick in b1 b2 b3; do
		bed_brick "$brick" --async || return 1
	done
	ok "plain mount" bed_client plain b1
	bed_client wb --kind write-behind b1
	bed_client afr --kind replicate b1 b2
	bed_client ec --kind disperse b1 b2 b3
	for brick in plain wb afr ec; do
		ok "$brick carries data" carries "$brick"
	done
	ok "both replicas hold the file" cmp "$BED_B1_PATH/data-afr" "$BED_B2_PATH/data-afr"
	is "$(stat -c %s "$BED_B3_PATH/data-ec")" 100352 "a disperse brick holds half of the file"
}

test_mux()
{
	ok "two bricks in one process" bed_mux m1 m2
	bed_client c-m1 m1
	bed_client c-m2 m2
	ok "the first carries data" carries c-m1
	ok "the attached one carries data" carries c-m2
	ok "it lies on the attached brick" test -f "$BED_M2_PATH/data-c-m2"
	nok "and not on the first" test -e "$BED_M1_PATH/data-c-m2"
	is "$BED_M1_PID" "$BED_M2_PID" "one pid"
}

test_aio()
{
	bed_brick aio --linux-aio || return 1
	bed_client c-aio --direct-io aio || return 1
	ok "a job through posix-aio" bed_fio "$BED_C_AIO_MNT" aiojob --rw=randrw --bs=4000 \
		--size=400000 --direct=0
	like "$(comm_of "$BED_AIO_PID")" glfs_posixaio "the brick has posix-aio's thread"
}

# Twice our xlator in one graph: 5 ms for every write, high; 2 ms for half of the
# reads, low.
test_delay()
{
	local reads writes

	bed_brick slow --at iot "high delay delay-us 5000 ops writev counter-file $BED_DIR/high" \
		--at posix "low delay delay-us 2000 delay-percent 50 counter-file $BED_DIR/low" \
		--pass 5 || return 1
	bed_client c-slow slow || return 1
	bed_fio_prepare "$BED_C_SLOW_MNT" delayed --size=1m
	writes=$(bed_delay_count "$BED_DIR/high" write seen)
	is "$writes" 256 "laying out 1 MiB takes 256 writes of 4 KiB"
	bed_fio "$BED_C_SLOW_MNT" delayed --size=1m --rw=randrw
	reads=$(bed_fio_count delayed read)
	writes=$((writes + $(bed_fio_count delayed write)))
	is "$(bed_delay_count "$BED_DIR/high" write delayed)" "$writes" "every write was delayed"
	is "$(bed_delay_count "$BED_DIR/high" read seen)" "$reads" "fio's reads are the brick's"
	is "$(bed_delay_count "$BED_DIR/high" read delayed)" 0 "reads were not, up there"
	is "$(bed_delay_count "$BED_DIR/low" read delayed)" $((reads / 2)) "every other read was"
	nok "no counters are not 0 counters" bed_delay_count "$BED_DIR/none" read seen
}

test_hold()
{
	local writer

	bed_brick held --at posix "hold delay ops writev hold-file $BED_DIR/hold" || return 1
	bed_client c-held held || return 1
	: >"$BED_DIR/hold"
	echo x >"$BED_C_HELD_MNT/f" &
	writer=$!
	nok "a held write does not end" bed_poll 1 bed_gone "$writer"
	rm "$BED_DIR/hold"
	ok "until it is let go" bed_poll 5 bed_gone "$writer"
}

test_restart()
{
	local before=$BED_B1_PID

	bed_stop b1 KILL
	ok "a killed brick comes back" bed_start b1
	isnt "$BED_B1_PID" "$before" "under a new pid"
	ok "and its client finds it again" bed_poll 10 carries plain
}

test_stacks()
{
	ok "the stack maker runs" bed_stacks maker rate 50000 count 25000 go-file "$BED_DIR/go" \
		counter-file "$BED_DIR/made"
	: >"$BED_DIR/go"
	made_all() { [ "$(od -An -t u8 "$BED_DIR/made" | tr -s ' ')" = " 25000 25000" ]; }
	ok "it makes and ends exactly as many as asked" bed_poll 5 made_all
}

test_glusterd()
{
	ok "a managed volume" bed_glusterd g1 --set "performance.write-behind off"
	ok "profile is on" bed_gluster volume profile "$BED_G1_VOLUME" start
	BED_FIO_IN=ns bed_fio "$BED_G1_MNT" managed --rw=write --size=1m
	like "$(bed_gluster volume profile "$BED_G1_VOLUME" info)" " 256  +WRITE" \
		"profile counts fio's writes"
	nok "the mount is not seen outside" bed_mounted "$BED_G1_MNT"
}

test_killed()
{
	local dir pid

	mkfifo "$BED_DIR/never"
	# shellcheck disable=SC2016
	bash -c '. "$1"; bed_init && bed_brick k && bed_client ck k && echo "$BED_DIR" >"$2"
		read -rt 60 _' bash tests/lib/bed.sh "$BED_DIR/killed" <>"$BED_DIR/never" &
	pid=$!
	bed_poll 20 test -s "$BED_DIR/killed"
	dir=$(cat "$BED_DIR/killed")
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	ok "a killed script leaves its bed" test -d "$dir"
	bed_sweep "$(dirname "$dir")" 2>/dev/null
	nok "the next one removes it" test -d "$dir"
	nok "with its mounts" grep -qF "$dir" /proc/self/mounts
}

test_kinds || fail "clients of all kinds"
test_mux || fail "multiplexed bricks"
test_aio || fail "posix-aio"
test_delay || fail "delays"
test_hold || fail "held requests"
test_restart || fail "restart"
test_stacks || fail "stack maker"
test_glusterd || fail "managed volume"
test_killed || fail "a killed script"

dir=$BED_DIR
bed_cleanup
nok "nothing is left of the bed" test -e "$dir"
nok "no mount is left" grep -qF "$dir" /proc/self/mounts
nok "no loop device is left" grep -qsF "$dir" /sys/block/loop*/loop/backing_file
done_testing
