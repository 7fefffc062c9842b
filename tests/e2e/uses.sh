#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2016,SC2153,SC2317 # jq and eval; bed.sh sets BED_<NAME>_*; ok calls
#
# Who used what: files, directories and applications of a brick, of its client and of a
# process that is no GlusterFS. Counts and bytes per file and per uid are fio's own to the
# request; their times add up to those of all operations; paths are those of the moment,
# hostile ones made harmless, and a file that is gone has its gfid.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin jq fio setpriv

NOBODY=65534
HOSTILE=$'evil \e[31m\xff\n'$(printf '%0220d' 7)

# as_user UID COMMAND...: who may pass the bed's own directory all the same.
as_user()
{
	local caps=+dac_override,+dac_read_search

	setpriv --reuid "$1" --regid "$1" --clear-groups --inh-caps "$caps" \
		--ambient-caps "$caps" "${@:2}"
}

# use_fio UID JOB FILE [OPTION]...: as that user, on a file that is laid out.
use_fio()
{
	as_user "$1" fio --name="$2" --filename="$3" \
		--direct=1 --randseed=4711 --thread=1 --ioengine=psync --size=1m --bs=4k \
		--rw=randrw --invalidate=0 --fallocate=none --output-format=json "${@:4}" \
		2>/dev/null | sed -n '/^{/,$p' >"$BED_DIR/$2.json"
}

# fio_sum FILTER JOB...: over fio's own results.
fio_sum()
{
	local filter=$1 job

	shift
	for job in "$@"; do cat "$BED_DIR/$job.json"; done | jq -s "[.[].jobs[] | $filter] | add"
}

# figures "JOB..." -> reads, writes and bytes, as fio has them.
fio_figures()
{
	# shellcheck disable=SC2086 # a list of jobs
	echo "$(fio_sum .read.total_ios $1) $(fio_sum .write.total_ios $1)" \
		"$(fio_sum '.read.io_bytes + .write.io_bytes' $1)"
}

# row NAME TABLE CONDITION: the same of a report's rows.
row_figures()
{
	measure_get "$1" "[.$2[] | select($3)] |
		\"\\(map(.reads) | add) \\(map(.writes) | add) \\(map(.bytes) | add)\""
}

# adds_up NAME TABLE: its rows' time is that of all operations.
adds_up()
{
	measure_get "$1" "([.$2[].total_us] | add) / ([.ops[] | select(.root == \"brick\" or
		.root == \"client\") | .count * .incl_us.mean] | add) | (. - 1 | fabs) < 0.0001"
}

has_size() { [ "$(stat -c %s "$1" 2>/dev/null)" = "$2" ]; }

lay_out()
{
	mkdir "$1/dir" "$1/other" && chmod 777 "$1" "$1/dir" "$1/other" || return 1
	for f in dir/one dir/two other/three; do
		head -c 1M /dev/urandom >"$1/$f" && chmod 666 "$1/$f" || return 1
	done
	sync -f "$1"
}

# use_all MNT: three files by two users; then one is renamed, one deleted. Whoever wrote
# the last one is still there at the report.
use_all()
{
	use_fio 0 root-one "$1/dir/one" &&
		use_fio "$NOBODY" nobody-one "$1/dir/one" --rw=randread &&
		use_fio 0 root-two "$1/dir/two" --bs=64k &&
		use_fio "$NOBODY" nobody-three "$1/other/three" --fsync=8 || return 1
	mv "$1/other/three" "$1/dir/$HOSTILE" || return 1
	GONE=$(getfattr --absolute-names -n glusterfs.gfid.string --only-values "$1/dir/two")
	rm "$1/dir/two"
	as_user 1 python3 -c '
import os, sys, time
print(os.getpid(), flush=True)
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
for i in range(5):
    os.write(fd, b"x" * 1024)
    os.fsync(fd)
time.sleep(60)' "$1/dir/last" >"$BED_DIR/last" &
	bed_poll 10 grep -q . "$BED_DIR/last" && LAST=$(cat "$BED_DIR/last")
	bed_record "pid $LAST $(bed_start_time "$LAST")"
	bed_poll 10 has_size "$1/dir/last" 5120 && sleep 1.5
}

judge_files()
{
	local name=$1

	is "$(row_figures "$name" files '.path == "/dir/one"')" \
		"$(fio_figures 'root-one nobody-one')" "$name: a file's requests are fio's"
	is "$(row_figures "$name" files ".gfid == \"$GONE\"")" "$(fio_figures root-two)" \
		"$name: so are those of one that was deleted"
	is "$(measure_get "$name" ".files[] | select(.gfid == \"$GONE\") | .path")" null \
		"$name: which has no path any more"
	is "$(row_figures "$name" files '.path // "" | startswith("/dir/evil ?[31m??000")')" \
		"$(fio_figures nobody-three)" "$name: and of one that was renamed, harmless"
	is "$(measure_get "$name" '[.files[] | select(.path // "" | startswith("/dir/evil")) |
		.syncs] | add')" "$(fio_sum .sync.total_ios nobody-three)" "$name: its syncs"
	is "$(measure_get "$name" '.files[] | select(.path == "/dir/last" and .writes > 0) |
		"\(.writes) \(.syncs) \(.bytes)"')" "5 5 5120" \
		"$name: one that was made while it was looked on"
	is "$(measure_get "$name" '.directories[0].path')" /dir "$name: its directory comes first"
	is "$(measure_get "$name" '.seen.files_pct')" 100 "$name: no time is missing"
	is "$(adds_up "$name" files)" true "$name: the files' times are the operations'"
}

judge_apps()
{
	local name=$1

	is "$(row_figures "$name" apps ".uid == $NOBODY and .reads + .writes > 0")" \
		"$(fio_figures 'nobody-one nobody-three')" "$name: one user's requests are fio's"
	is "$(row_figures "$name" apps '.uid == 0 and .reads + .writes > 0')" \
		"$(fio_figures 'root-one root-two')" "$name: and the other's"
	is "$(measure_get "$name" ".apps[] | select(.app_pid == $LAST) | \"\\(.comm) \\(.uid)\"")" \
		"python3 1" "$name: a process that is there has its name"
	is "$(adds_up "$name" apps)" true "$name: the applications' times are the operations'"
}

test_gluster()
{
	ok "files laid out" lay_out "$BED_C1_MNT"
	ok "attached to brick and client" eval 'measure_attach b1 "$BED_B1_PID" &&
		measure_attach c1 "$BED_C1_PID"'
	ok "used" use_all "$BED_C1_MNT"
	ok "both reports" eval 'measure_finish c1 && measure_finish b1'
	for name in b1 c1; do
		judge_files "$name"
		judge_apps "$name"
	done
	like "$(measure_get b1 ".apps[] | select(.app_pid == $LAST) | .client")" \
		"PID:$BED_C1_PID-HOST:" "b1: and the client that it came through"
	is "$(measure_get c1 '[.apps[].client | select(.)] | length')" 0 "c1: there is none"
}

# A process that waits, then makes known calls on two files, and holds one open.
plain_process()
{
	python3 -c '
import os, sys
held = os.open(sys.argv[1] + "/held", os.O_CREAT | os.O_RDWR)
closed = os.open(sys.argv[1] + "/closed", os.O_CREAT | os.O_RDWR)
print("ready", flush=True)
sys.stdin.readline()
for i in range(40):
    os.pwrite(held, b"x" * 512, i * 512)
    os.pread(held, 100, 0)
for i in range(7):
    os.write(closed, b"y" * 1000)
os.fsync(closed)
os.close(closed)
print("over", flush=True)
sys.stdin.readline()' "$1" <"$BED_DIR/go" >"$BED_DIR/said" &
	PLAIN=$!
	bed_record "pid $PLAIN $(bed_start_time "$PLAIN")"
}

test_plain()
{
	local dir=$BED_DIR/b1.xfs/plain inode

	mkdir -p "$dir" && mkfifo "$BED_DIR/go"
	plain_process "$dir"
	exec 9>"$BED_DIR/go"
	ok "a process that is no GlusterFS" bed_poll 10 grep -q ready "$BED_DIR/said"
	ok "attached" measure_attach plain "$PLAIN" --slow 0
	echo go >&9
	ok "its calls" bed_poll 10 grep -q over "$BED_DIR/said"
	ok "its report" measure_finish plain
	inode=$(stat -c %i "$dir/held")
	is "$(row_figures plain files ".inode == $inode")" "40 40 24480" "by inode: one file"
	is "$(measure_get plain ".files[] | select(.inode == $inode) | .app_pid")" "$PLAIN" \
		"and who used it last"
	is "$(measure_get plain ".files[] | select(.inode == $inode) | \"\\(.path) \\(.dev)\"")" \
		"$dir/held $(stat -c '%Hd:%Ld' "$dir/held")" "which it holds: its path and device"
	is "$(measure_get plain ".files[] | select(.inode == $(stat -c %i "$dir/closed")) |
		\"\\(.writes) \\(.syncs) \\(.bytes) \\(.path)\"")" "7 1 7000 null" \
		"another, that it has closed"
	is "$(measure_get plain "[.slow[] | select(.ino == $inode) |
		\"\\(.file.path) \\(.file.gfid)\"] | unique[]")" "$dir/held null" \
		"its slowest calls have the path, too"
	is "$(measure_get plain "[.slow[] | select(.ino == $(stat -c %i "$dir/closed")) |
		.file] | unique[]")" null "and those of the other have none"
	is "$(measure_get plain '.apps[] | "\(.app_pid) \(.uid) \(.comm)"')" \
		"$PLAIN 0 python3" "its one thread"
	is "$(measure_get plain '.seen.apps_pct')" 100 "and all of its time"
	exec 9>&-
}

# A process that reads one byte of each of many files, and after each one of the same file:
# more than the table of files holds. Now and then it rests, so that it is looked at meanwhile.
many_files()
{
	python3 -c '
import os, sys, time
hot = os.open(sys.argv[1] + "/hot", os.O_CREAT | os.O_RDWR)
os.pwrite(hot, b"x", 0)
def cold(i):
    fd = os.open(sys.argv[1] + "/%d" % i, os.O_CREAT | os.O_RDWR)
    os.pread(fd, 1, 0)
    os.close(fd)
print("ready", flush=True)
sys.stdin.readline()
for i in range(int(sys.argv[2])):
    cold(i)
    os.pread(hot, 1, 0)
    if i % 3000 == 2999:
        time.sleep(1.2)
print("over", flush=True)
sys.stdin.readline()' "$1" "$2" <"$BED_DIR/go" >"$BED_DIR/said" &
	MANY=$!
	bed_record "pid $MANY $(bed_start_time "$MANY")"
}

# What a full table pushes out is said, and is no other file's.
test_pushed_out()
{
	local dir=$BED_DIR/b1.xfs/many n=12000 room seen

	# each CPU may have taken 128 more
	room=$((8192 + 128 * (1 + $(sed 's/.*-//' /sys/devices/system/cpu/possible))))

	mkdir -p "$dir"
	: >"$BED_DIR/said"
	many_files "$dir" "$n"
	exec 9>"$BED_DIR/go"
	ok "a process with many files" bed_poll 10 grep -q ready "$BED_DIR/said"
	ok "attached" measure_attach many "$MANY"
	echo go >&9
	ok "its calls" bed_poll 60 grep -q over "$BED_DIR/said"
	ok "its report" measure_finish many
	is "$(measure_get many ".files[] | select(.inode == $(stat -c %i "$dir/hot")) | .reads")" \
		"$n" "the file that is used all the time keeps its place: its reads are all there"
	seen=$(measure_get many .seen.files)
	between "$seen" 1000 $((n + 2)) "$n files: none was seen twice"
	between "$(measure_get many .seen.files_pushed_out)" $((n + 1 - room)) "$n" \
		"how many the table has pushed out is said, whether they were seen or not"
	ok "the time of those that are known is a part of the whole" \
		eval "measure_get many '.seen.files_pct > 1 and .seen.files_pct < 100' |
			grep -qx true"
	exec 9>&-
}

{ bed_brick b1 && bed_client c1 b1; } || bail_out "no brick"
test_gluster
test_plain
test_pushed_out
done_testing
