#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 1800
# shellcheck disable=SC2317 # functions are called by others
#
# The GlusterFS releases that Debian carries, live: for each a brick and a client,
# both as a container would run them, so that their programs and libraries are seen
# only through /proc/PID/root. bricktop must find them, know their release, account
# for every request to the nanosecond, agree with what the processes count
# themselves, and name a request that hangs. The findings become RESULTS.md.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/bed.sh
. tests/lib/measure.sh

all_versions='9.2 10.3 11.1'
versions=${VERSIONS:-$all_versions}
[ "$versions" != none ] || skip_all 'VERSIONS=none'
roots=${BRICKTOP_BUILD:-$PWD/build}/matrix
dumped=400

bed_init || skip_all 'no GlusterFS bricks can be made here'

# ---- the table ---------------------------------------------------------------

ROWS=()
declare -A CELL

# cell ROW TEXT: what was found of the version at hand.
cell()
{
	[[ " ${ROWS[*]/%/|} " == *" $1| "* ]] || ROWS+=("$1")
	CELL[$1,$version]=$2
}

# print_table: only ratios and counts, so that it can be compared between machines.
print_table()
{
	local row v

	echo '<!-- SPDX-License-Identifier: Apache-2.0 -->'
	echo '# GlusterFS releases that bricktop was run on'
	echo
	echo "Written by \`make matrix\`: $TAP_COUNT checks, $TAP_FAILED of them failed." \
		'Each release'
	echo 'runs from its own Debian packages, brick and client in a root folder and mount'
	echo 'namespace of their own; the same job of random 4 KiB reads and writes for all.'
	echo
	printf '| | %s |\n' "${versions// / | }"
	printf '|---|%s\n' "$(for v in $versions; do printf -- '---|'; done)"
	for row in "${ROWS[@]}"; do
		printf '| %s |' "$row"
		for v in $versions; do
			printf ' %s |' "${CELL[$row,$v]:--}"
		done
		printf '\n'
	done
}

# ---- processes of another release ----------------------------------------------

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

# start_client NAME [OPTION]... BRICK: its mount exists only in its own mount
# namespace.
start_client()
{
	local name=$1 mnt=$BED_DIR/$1.mnt

	bed_client_volfile "$@" >"$BED_DIR/$name.vol" || return 1
	mkdir -p "$mnt"
	bed_set "$name" LOG "$BED_DIR/$name.log"
	bed_launch "$name" glusterfs -N -f "$BED_DIR/$name.vol" -l "$BED_DIR/$name.log" "$mnt"
	bed_set "$name" MNT "/proc/$(bed_get "$name" PID)/root$mnt"
	bed_poll "$BED_TIMEOUT_SECS" answers "$name" || bed_fail "$name" 'does not answer'
}

answers() { [ "$(stat -f -c %T "$(bed_get "$1" MNT)" 2>/dev/null)" = fuseblk ]; }

# ---- measuring -----------------------------------------------------------------

# check_counts ROLE NAME: counts equal fio's, all requests add up, nothing is lost.
check_counts()
{
	local role=$1 walk=walk-$2 what="$version $1" op count coverage='' sums=''

	is "$(measure_get "$walk" .target.version)" "$version" "$what: the release is recognised"
	is "$(measure_get "$walk" .target.pid)" "$(bed_get "$2" PID)" "$what: the right process"
	for op in read write; do
		count=$(measure_get "$walk" "op(\"$op\") | .count")
		is "$count" "$(bed_fio_count "load$version" "$op")" "$what: every $op is counted"
		cell "fio's ${op}s" "$(bed_fio_count "load$version" "$op")"
		cell "${op}s counted, $role" "$count"
		coverage+="$(measure_get "$walk" "op(\"$op\") | .coverage_pct") "
		sums+="$(measure_get "$walk" "op(\"$op\") | .sum_check_pct") "
	done
	is "$coverage" '100 100 ' "$what: covers all requests"
	is "$sums" '100 100 ' "$what: all requests add up"
	is "$(measure_get "$walk" .lost.total)" 0 "$what: nothing is lost"
	cell "coverage % (read, write), $role" "${coverage% }"
	cell "requests that add up %, $role" "${sums% }"
	cell "lost, $role" "$(measure_get "$walk" .lost.total)"
	is "$(measure_get "$walk" '.seen | "\(.files_pct) \(.apps_pct)"')" '100 100' \
		"$what: of all it is known for which file and application"
	like "$(measure_get "$walk" .files[0].path)" '^/load' "$what: and the file's path"
	cell "time by file and application %, $role" \
		"$(measure_get "$walk" '.seen | "\(.files_pct) \(.apps_pct)"')"
}

# check_memory ROLE NAME: the same requests by the process's own statistics.
check_memory()
{
	local role=$1 op mean ratio own

	for op in read write; do
		mean=$(measure_get "walk-$2" "op(\"$op\") | .incl_us.mean")
		own=$(measure_get "memory-$2" "op(\"$op\") | .incl_us.mean")
		ratio=$(awk -v a="$mean" -v b="$own" 'BEGIN { if (b > 0) printf "%.4f", a / b }')
		between "$ratio" 0.98 1.02 \
			"$version $role: ${op}s take as long as it says itself" ||
			diag "walk $mean us, memory $own us"
		cell "mean $op, walk / memory, $role" "$ratio"
	done
}

# check_dump ROLE NAME: whole requests, added up again by an independent checker.
check_dump()
{
	local out

	out=$(tests/lib/check_dump.py "$BED_DIR/$2.dump" --min-requests 200 \
		--expect-op read --expect-op write "${@:3}" 2>&1)
	is $? 0 "$version $1: whole requests add up to the nanosecond" || diag "$out"
	cell "requests re-added, $1" "$(wc -l <"$BED_DIR/$2.dump")"
	cell "mismatches, $1" "$(sed -n 's/^mismatches: //p' <<<"$out")"
}

# check_syscalls BRICK: one pread64 for each read, one pwrite64 for each write.
check_syscalls()
{
	local op calls='' n

	for op in read write; do
		n=$(measure_get "walk-$1" "op(\"$op\") | layer(\"p${op}64\") | .count")
		is "$n" "$(bed_fio_count "load$version" "$op")" \
			"$version brick: p${op}64 below posix"
		calls+="$n "
	done
	cell 'pread64, pwrite64 below posix' "${calls% }"
}

check_load()
{
	local b=b$version c=c$version name mnt job=(--size=2m --numjobs=2)

	mnt=$(bed_get "$c" MNT)
	bed_fio_prepare "$mnt" "load$version" "${job[@]}"
	for name in "$b" "$c"; do
		measure_attach "memory-$name" "$(bed_get "$name" PID)" --memory-only
		measure_attach "walk-$name" "$(bed_get "$name" PID)" --dump-requests \
			"$dumped=$BED_DIR/$name.dump"
	done
	ok "$version: the load runs" bed_fio "$mnt" "load$version" "${job[@]}" --rw=randrw
	for name in "$b" "$c"; do
		ok "$version $name: attach ends well" measure_finish "walk-$name"
		ok "$version $name, from memory: attach ends well" measure_finish "memory-$name"
	done
	check_counts brick "$b"
	check_counts client "$c"
	check_memory brick "$b"
	check_memory client "$c"
	check_dump brick "$b" --expect-xlator posix --expect-spans
	check_dump client "$c" --expect-xlator client-0
	check_syscalls "$b"
	like "$(measure_get "walk-$b" 'op("write") | .layers[].type' | paste -sd ' ')" \
		'performance/io-threads.*storage/posix' \
		"$version brick: layers in the graph's order"
}

# All kinds of operations, which come back through callbacks of their own.
all_kinds()
{
	cd "$1" || return 1
	mkdir -p d/e && echo text >d/f && cat d/f && ln d/f d/g && ln -s f d/s && readlink d/s &&
		mv d/g d/h && chmod 600 d/f && touch d/f && truncate -s 100 d/f && sync d/f &&
		setfattr -n user.a -v b d/f && getfattr -d d/f && setfattr -x user.a d/f &&
		mknod d/p p && fallocate -o 0 -l 8192 d/f && fallocate -p -o 0 -l 4096 d/f &&
		stat -f . && ls -lR . && ! cat d/none && flock d/f true && rm -r d
}

check_kinds()
{
	local role name rows

	for name in "b$version" "c$version"; do
		measure_attach "kinds-$name" "$(bed_get "$name" PID)"
	done
	# the mount is reached through /proc, so its users must be gone before it ends
	ok "$version: operations of all kinds" all_kinds_apart "$(bed_get "c$version" MNT)"
	for role in brick client; do
		name=${role:0:1}$version
		measure_finish "kinds-$name"
		is "$(measure_get "kinds-$name" '[.ops[] |
			select(.root == "brick" or .root == "client") |
			select(.count == 0 or .coverage_pct != 100) |
			"\(.op) \(.count) \(.coverage_pct)"] | join(", ")')" '' \
			"$version $role: all are covered"
		rows=$(measure_get "kinds-$name" '[.ops[] |
			select(.root == "brick" or .root == "client") | .op] | unique | length')
		between "$rows" 18 59 "$version $role: all kinds are there"
		cell "kinds of operations, all covered, $role" "$rows"
	done
}

all_kinds_apart() { (all_kinds "$@"); }

# Write-behind answers before it writes: its own stacks are found while they run.
check_background()
{
	local name=w$version seen

	start_client "$name" --kind write-behind "b$version" || { fail "$version: $name"; return; }
	measure_attach "walk-$name" "$(bed_get "$name" PID)"
	bed_fio "$(bed_get "$name" MNT)" "behind$version" --direct=0 --rw=write --bs=64k \
		--size=16m --time_based --runtime=5
	ok "$version write-behind client: attach ends well" measure_finish "walk-$name"
	seen=$(measure_get "walk-$name" \
		'[.ops[] | select(.root == "background" and .op == "write") | .count] | add // 0')
	between "$seen" 1 100000000 "$version: write-behind's own writes are seen"
	cell "write-behind's own stacks found" "$([ "$seen" = 0 ] && echo no || echo yes)"
	bed_stop "$name"
}

# ---- a request that hangs ---------------------------------------------------------

# stuck NAME: its oldest fsync in flight, on one line.
stuck()
{
	"$BRICKTOP" stuck "$(bed_get "$1" PID)" --json | jq -r '.processes[].requests[] |
		select(.op == "fsync") | "\(.xlator) \(.file) \(.app_pid) \(.age_us / 1e6 | floor)"'
}

hangs() { [ -n "$(stuck "$1")" ]; }

check_stuck()
{
	local mnt pid name named

	if ! bed_brick "h$version" --volume "held${version//./}" --at iot "hold debug/delay-gen \
delay-duration 6000000 delay-percentage 100 enable fsync" ||
		! start_client "hc$version" "h$version"; then
		fail "$version: a brick that delays"
		return
	fi
	mnt=$(bed_get "hc$version" MNT)
	echo hello >"$mnt/held-file"
	sync "$mnt/held-file" &
	pid=$!
	bed_poll 10 hangs "h$version"
	sleep 1.2
	for name in "hold h$version" "client-0 hc$version"; do
		like "$(stuck "${name#* }")" "^${name% *} /held-file $pid [1-5]\$" \
			"$version: stuck names the request, held in ${name% *}" &&
			named+="${named:+, }${name% *}"
	done
	cell 'stuck: file, application, age; in xlators' "${named:-no}"
	wait "$pid"
	bed_stop "hc$version" && bed_stop "h$version"
}

# ---- one release --------------------------------------------------------------------

check_list()
{
	"$BRICKTOP" list >"$BED_DIR/list" 2>&1
	is $? 0 "$version: list ends well"
	like "$(grep -F "$1" "$BED_DIR/list")" \
		"brick +$1:$(bed_get "b$version" PATH) .* $version " \
		"$version: list shows the brick"
	like "$(grep -F "$1" "$BED_DIR/list")" \
		"client +$1 on $BED_DIR/c$version.mnt .* $version " \
		"$version: list shows the client"
}

check_version()
{
	local volume=vol${version//./}

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
	check_list "$volume"
	check_load
	check_kinds
	check_background
	bed_stop "c$version" && bed_stop "b$version"
	check_stuck
}

host_path=$PATH
for version in $versions; do
	check_version
done
PATH=$host_path
print_table >"$BED_DIR/table"
[ "$versions" != "$all_versions" ] || cp "$BED_DIR/table" tests/matrix/RESULTS.md
cp "$BED_DIR/table" "$roots/table.md"
done_testing
