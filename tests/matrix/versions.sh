#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 1800
# shellcheck disable=SC2317 # functions are called by others
#
# The GlusterFS releases that Debian carries, live: for each a brick and a client,
# both as a container would run them, so that their programs and libraries are seen
# only through /proc/PID/root. bricktop must find them, know their release, and
# account for every request, with no option changed.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/bed.sh

BRICKTOP=${BRICKTOP:-build/bricktop}
versions=${VERSIONS:-9.2 10.3 11.1}
roots=${BRICKTOP_BUILD:-$PWD/build}/matrix
secs=4

bed_init || skip_all 'no GlusterFS bricks can be made here'

# json QUERY: of the newest report
json() { jq -r "$1" "$BED_DIR/report.json" 2>&1; }

# run_inside VERSION: from now on glusterfsd and glusterfs are that release's.
run_inside()
{
	local bin=$BED_DIR/bin-$1 program

	mkdir -p "$bin"
	for program in glusterfsd glusterfs; do
		cat >"$bin/$program" <<-SCRIPT
			#!/bin/sh
			exec "$PWD/tools/gluster-chroot" run "$roots/$1" -b "$BED_DIR" -- \\
				/usr/sbin/$program "\$@"
		SCRIPT
		chmod +x "$bin/$program"
	done
	PATH=$bin:$host_path
}

# start_client NAME BRICK: its mount exists only in its own mount namespace.
start_client()
{
	local name=$1 mnt=$BED_DIR/$1.mnt

	bed_client_volfile "$name" "$2" >"$BED_DIR/$name.vol" || return 1
	mkdir -p "$mnt"
	bed_set "$name" LOG "$BED_DIR/$name.log"
	bed_launch "$name" glusterfs -N -f "$BED_DIR/$name.vol" -l "$BED_DIR/$name.log" "$mnt"
	bed_set "$name" MNT "/proc/$(bed_get "$name" PID)/root$mnt"
	bed_poll "$BED_TIMEOUT_SECS" answers "$name" || bed_fail "$name" 'does not answer'
}

answers() { [ "$(stat -f -c %T "$(bed_get "$1" MNT)" 2>/dev/null)" = fuseblk ]; }

# load CLIENT: reads and writes for longer than a report takes, in the background.
load()
{
	bed_fio "$(bed_get "$1" MNT)" "load-$1" --rw=randrw --time_based --runtime=$((secs + 4)) &
	load_pid=$!
	sleep 1.5
}

# check_report NAME VERSION ROOT: what a report must say, whatever the release.
check_report()
{
	local name=$1 version=$2 root=$3 pid op row

	pid=$(bed_get "$name" PID)
	# shellcheck disable=SC2024
	"$BRICKTOP" attach "$pid" -d "$secs" --json >"$BED_DIR/report.json" 2>"$BED_DIR/report.err"
	is $? 0 "$version $root: attach ends well" || diag "$(cat "$BED_DIR/report.err")"
	is "$(json .target.version)" "$version" "$version $root: the release is recognised"
	is "$(json .target.pid)" "$pid" "$version $root: the process is the right one"
	for op in read write; do
		row=".ops[] | select(.root == \"$root\" and .origin == \"user\")"
		row="$row | select(.op == \"$op\")"
		between "$(json "$row | .count")" 100 100000000 "$version $root: ${op}s are counted"
		between "$(json "$row | .coverage_pct")" 99 101 "$version $root: ${op}s are covered"
		between "$(json "$row | .sum_check_pct")" 99 100 "$version $root: ${op}s add up"
	done
	between "$(json '.lost.total')" 0 0 "$version $root: nothing is lost"
}

check_version()
{
	local version=$1 volume=vol${1//./}

	if ! tools/gluster-chroot "$version" "$roots/$version" \
		>"$BED_DIR/build.log" 2>&1; then
		fail "$version: its packages can be had"
		diag "$(tail -n 5 "$BED_DIR/build.log")"
		return
	fi
	run_inside "$version"
	if ! bed_brick "b$version" --volume "$volume" ||
		! start_client "c$version" "b$version"; then
		fail "$version: a brick and a client run"
		return
	fi
	pass "$version: a brick and a client run"
	"$BRICKTOP" list >"$BED_DIR/list" 2>&1
	is $? 0 "$version: list ends well"
	like "$(grep -F "$volume" "$BED_DIR/list")" "$(bed_get "b$version" PATH)" \
		"$version: list shows the brick in its container"
	load "c$version"
	check_report "b$version" "$version" brick
	like "$(json '.ops[0].layers[].type' | paste -sd ' ')" \
		'performance/io-threads.*storage/posix' \
		"$version brick: layers in the graph's order"
	wait "$load_pid"
	is $? 0 "$version brick: the load was not disturbed"
	load "c$version"
	check_report "c$version" "$version" client
	wait "$load_pid"
	is $? 0 "$version client: the load was not disturbed"
	bed_stop "c$version" && bed_stop "b$version"
}

host_path=$PATH
for version in $versions; do
	check_version "$version"
done
done_testing
