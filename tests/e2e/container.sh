#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 240
# shellcheck disable=SC2317 # functions are called through others
#
# Bricks and clients in containers, i.e. with a root folder, mounts and pids of their
# own: bricktop must find them, probe the files that they really have mapped, which
# may be others than the host's at the same path, may be at no path of the host, or
# at no path at all any more, because an upgrade replaced them.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
e2e_needs setpriv

# in_container KIND [OPTION]...: from now on glusterfsd and glusterfs run in one, with
# those options, too.
in_container()
{
	local bin=$BED_DIR/bin-$1 program

	mkdir -p "$bin"
	for program in glusterfsd glusterfs; do
		cat >"$bin/$program" <<-SCRIPT
			#!/bin/sh
			PATH=$host_path
			dir=\$(mktemp -d "$BED_DIR/$1.XXXXXX")
			echo "\$dir" >"$BED_DIR/$1.dir"
			exec "$PWD/tests/lib/container.sh" $1 "\$dir" "$BED_DIR" \\
				"\$(command -v $program)" "\$@" ${@:2}
		SCRIPT
		chmod +x "$bin/$program"
	done
	PATH=$bin:$host_path
}

on_host() { PATH=$host_path; }

# find_inner NAME: _PID is unshare's; from now on it is that of GlusterFS.
find_inner()
{
	bed_set "$1" PID "$(pgrep -P "$(bed_get "$1" PID)" -x 'gluster.*')"
	bed_set "$1" START "$(bed_start_time "$(bed_get "$1" PID)")"
}

# start_brick NAME KIND [OPTION]...
start_brick()
{
	in_container "$2"
	bed_brick "$1" "${@:3}" && find_inner "$1"
	on_host
	bed_set "$1" DIR "$(cat "$BED_DIR/$2.dir")"
}

# mapped PID FILE: how the process has it mapped: path as it sees it.
mapped() { sed -n "s|^.* \(/.*$2.*\)|\1|p" "/proc/$1/maps" | sort -u; }

# is_found NAME WHAT: by its pid of the host, with the path it has inside.
is_found()
{
	is "$("$BRICKTOP" list --json | jq -r --arg path "$(bed_get "$1" PATH)" '.targets[] |
		select(.path == $path) | "\(.kind) \(.pid) \(.version) \(.xlators | join(" "))"')" \
		"brick $(bed_get "$1" PID) $release $2" "$3: list shows the brick by its host pid"
}

# counts NAME CLIENT WHAT: a job's reads and writes, and nobody else's: a brick of the
# host serves another client meanwhile.
counts()
{
	local brick=$1 client=$2 what=$3 op noise

	bed_fio_prepare "$(bed_get "$client" MNT)" job --size=1m
	measure_attach "$brick" "$(bed_get "$brick" PID)" \
		--dump-requests 300="$BED_DIR/$brick.dump" ||
		{ fail "$what: attach"; return; }
	bed_fio "$BED_CHOST_MNT" noise --size=1m --rw=randrw &
	noise=$!
	ok "$what: the load runs" bed_fio "$(bed_get "$client" MNT)" job --size=1m --rw=randrw
	wait "$noise"
	ok "$what: attach ends well" measure_finish "$brick"
	for op in read write; do
		is "$(measure_get "$brick" "op(\"$op\") | .count")" "$(bed_fio_count job "$op")" \
			"$what: every $op is counted"
		is "$(measure_get "$brick" "op(\"$op\") | layer(\"p${op}64\") | .count")" \
			"$(bed_fio_count job "$op")" "$what: with its p${op}64"
		is "$(measure_get "$brick" "op(\"$op\") | .coverage_pct")" 100 \
			"$what: ${op}s are covered"
	done
	is "$(measure_get "$brick" '.lost | .total - .wakes')" 0 "$what: nothing is lost"
	ok "$what: requests add up" tests/lib/check_dump.py "$BED_DIR/$brick.dump" \
		--min-requests 200 --expect-xlator posix --expect-spans
}

# Same names as the host's, other files: those must be probed.
test_copies()
{
	local server

	start_brick copy copies || return 1
	bed_client ccopy copy || return 1
	server=$(mapped "$BED_COPY_PID" 'protocol/server\.so')
	ok 'the host has a module of the same path' test -f "$server"
	isnt "$(stat -c %d:%i "$server")" "$(stat -c %d:%i "/proc/$BED_COPY_PID/root$server")" \
		'but it is another file'
	nok 'the host has no libglusterfs of that path' test -e \
		"$(mapped "$BED_COPY_PID" 'libglusterfs\.so')"
	is_found copy "$graph" 'copied files'
	counts copy ccopy 'copied files'
}

# An upgrade puts other files in the place of those that run. These are the wrong
# ones on purpose: who reads them finds no server, or none that it can read.
test_replaced()
{
	local so other

	other=$(dirname "$(glusterfsd --print-xlatordir)")/rpc-transport/socket.so
	for so in "$BED_COPY_DIR"/lib/*.so.0 "$BED_COPY_DIR"/modules/*/xlator/*/*.so; do
		cp "$other" "$so.new" && mv "$so.new" "$so"
	done
	like "$(mapped "$BED_COPY_PID" 'protocol/server\.so')" '\(deleted\)$' \
		'the module is deleted by now'
	like "$(mapped "$BED_COPY_PID" 'libglusterfs\.so')" '\(deleted\)$' 'and the library'
	is_found copy "$graph" 'replaced files'
	counts copy ccopy 'replaced files'
}

# The numbers of what is mapped are the lower layer's, those of its name the overlay's.
test_overlay()
{
	start_brick over overlay || return 1
	bed_client cover over || return 1
	is_found over "$graph" 'overlay'
	counts over cover 'overlay'
}

has_dropped() { [ $((0x$(awk '/^CapEff/ { print $2 }' "/proc/$1/status") >> 21 & 1)) = 0 ]; }

# A container that was restarted is another one, with other files, which are opened with the
# rights that are left by then. What the command line says is what is known of it without any.
restart_brick()
{
	bed_stop over KILL
	in_container overlay --volfile-id "$BED_OVER_VOLUME.host" --brick-name "$BED_OVER_PATH"
	bed_start over && find_inner over
	on_host
}

# watch_restart NAME: attached to it; its rights are given up before the brick is killed.
watch_restart()
{
	ok "$1: attached" attach_start "$1" "$BED_OVER_PATH" -d 60 --json || return 1
	bed_fio "$BED_COVER_MNT" job --size=1m --rw=randrw
	ok "$1: CAP_SYS_ADMIN is given up" bed_poll 10 has_dropped "$(bed_get "$1" PID)"
	ok "$1: the brick is killed and comes back" restart_brick
}

# figure NAME FILTER: of its report.
figure() { jq -r "$2" "$BED_DIR/$1.out"; }

test_followed()
{
	local before

	watch_restart again || return 1
	before=$(bed_fio_count job write)
	ok 'again: it is probed' bed_poll 20 attach_probed "$BED_OVER_PID" || return 1
	ok 'again: its client is back' bed_poll 20 client_is_back "$BED_COVER_MNT"
	bed_fio "$BED_COVER_MNT" job --size=1m --rw=randrw
	attach_end again
	is "$ATTACH_STATUS $ATTACH_ERR" '0 ' 'again: it ends well'
	is "$(figure again '"\(.target.pid) \(.target.restarts) \([.off[].what] | join(" "))"')" \
		"$BED_OVER_PID 1 " 'again: new pid, restarted once, nothing is off'
	is "$(figure again '[.ops[] | select(.root == "brick" and .op == "write" and
		.origin == "user") | .count] | add')" $((before + $(bed_fio_count job write))) \
		'again: writes of both processes'
}

# Who starts bricktop without CAP_CHECKPOINT_RESTORE has it work as long as there is
# CAP_SYS_ADMIN, and told afterwards why it does not.
test_not_followed()
{
	local real=$BRICKTOP without why="may not be opened: this needs CAP_CHECKPOINT_RESTORE"

	cat >"$BED_DIR/without" <<-SCRIPT
		#!/bin/sh
		exec setpriv --bounding-set -checkpoint_restore "$real" "\$@"
	SCRIPT
	chmod +x "$BED_DIR/without"
	BRICKTOP=$BED_DIR/without
	watch_restart without
	BRICKTOP=$real
	sleep 3
	attach_end without
	is "$ATTACH_STATUS" 1 'without: nobody was left'
	like "$(figure without '.off[] | select(.what == "following").reason')" \
		"process $BED_OVER_PID.* $why\$" 'without: the report says why'
	without="setpriv --bounding-set -checkpoint_restore,-sys_admin $real"
	like "$($without list)" " $BED_OVER_PID .*"$'\n'".* $why" 'without: list has it, and why'
	is "$($without attach "$BED_OVER_PID" 2>&1)" \
		"bricktop: process $BED_OVER_PID: its libglusterfs $why" 'without: attach says it'
}

# stuck_fsync PID: its fsync in flight: xlator, file, application.
stuck_fsync()
{
	"$BRICKTOP" stuck "$1" --json | jq -r '.processes[] | "\(.pid) \(.requests[] |
		select(.op == "fsync") | "\(.xlator) \(.file) \(.app_pid)")"'
}

is_stuck() { [ -n "$(stuck_fsync "$1")" ]; }

# Client and application in a pid namespace: GlusterFS knows the latter by its pid
# in there, bricktop the former by that on the host.
test_pids()
{
	local app

	start_brick held copies --at iot "hold debug/delay-gen delay-duration 4000000 \
delay-percentage 100 enable fsync" || return 1
	bed_client_volfile chheld held >"$BED_DIR/chheld.vol"
	mkdir "$BED_DIR/chheld.mnt"
	in_container copies
	bed_launch chheld glusterfs -N -f "$BED_DIR/chheld.vol" -l "$BED_DIR/chheld.log" \
		"$BED_DIR/chheld.mnt"
	on_host
	bed_poll 10 grep -qs 'Final graph' "$BED_DIR/chheld.log"
	find_inner chheld
	like "$(grep NSpid "/proc/$BED_CHHELD_PID/status")" '	1$' 'the client is pid 1 in there'
	bed_poll 10 mounted_inside
	# shellcheck disable=SC2016
	nsenter -t "$BED_CHHELD_PID" -m -p bash -c 'echo $$ >"$1/app"; echo data >"$1/mnt/in-there"
		exec sync "$1/mnt/in-there"' bash "$BED_DIR/inner" &
	app=$!
	bed_poll 10 is_stuck "$BED_HELD_PID"
	is "$(stuck_fsync "$BED_HELD_PID")" \
		"$BED_HELD_PID hold /in-there $(cat "$BED_DIR/inner/app")" \
		'stuck names the request that the brick holds'
	is "$(stuck_fsync "$BED_CHHELD_PID")" \
		"$BED_CHHELD_PID client-0 /in-there $(cat "$BED_DIR/inner/app")" \
		'and the client, by its pid on this host'
	wait "$app"
}

mounted_inside()
{
	[ "$(stat -f -c %T "/proc/$BED_CHHELD_PID/root$BED_DIR/chheld.mnt" 2>/dev/null)" = fuseblk ]
}

host_path=$PATH
release=$(glusterfsd --version | sed -n '1s/^glusterfs //p')
graph='server io-stats io-threads upcall locks access-control posix'
mkdir "$BED_DIR/inner"
ln -s ../chheld.mnt "$BED_DIR/inner/mnt"
{ bed_brick host && bed_client chost host &&
	bed_fio_prepare "$BED_CHOST_MNT" noise --size=1m; } || bail_out 'no brick'
test_copies || fail 'a brick on copied files'
test_replaced || fail 'a brick on replaced files'
if grep -qw overlay /proc/filesystems; then
	test_overlay || fail 'a brick on an overlay'
	test_followed || fail 'a brick on an overlay that comes back'
	test_not_followed || fail 'one that cannot be followed'
else
	skip 'this kernel has no overlayfs' 'a brick on an overlay'
fi
test_pids || fail 'client and application in a container'
done_testing
