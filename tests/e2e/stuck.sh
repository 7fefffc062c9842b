#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 120
# shellcheck disable=SC2153,SC2317 # bed.sh sets BED_<NAME>_*; functions are called through ok
#
# One write is held by debug/delay-gen for BRICKTOP_HOLD_SECS (12): `bricktop stuck`
# must name it: operation, xlator, file, the application's pid, and its age, by a
# clock of our own, while nothing is put into the kernel or the process. Reports
# show it as the oldest in flight, and the walk shows its whole length, although it
# began long before the probes were in.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin
e2e_needs strace

hold=${BRICKTOP_HOLD_SECS:-12}

now() { awk '{ print $1 }' /proc/uptime; }

# minus A B [MORE]: A - B - MORE, decimals.
minus() { awk -v a="$1" -v b="$2" -v c="${3:-0}" 'BEGIN { print a - b - c }'; }

# Writes once, directly, when told to; says when it began.
start_writer()
{
	python3 - "$BED_C1_MNT/held file" "$BED_DIR/began" <<-'PY' &
	import mmap, os, sys
	fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o644)
	block = mmap.mmap(-1, 4096)
	with open(sys.argv[2] + ".part", "w") as began:
	    began.write(open("/proc/uptime").read().split()[0])
	os.rename(sys.argv[2] + ".part", sys.argv[2])
	os.pwrite(fd, block, 0)
	PY
	writer=$!
	writer_start=$(bed_start_time "$writer")
	bed_on_exit bed_end "$writer" "$writer_start"
	bed_poll 10 test -s "$BED_DIR/began" && began=$(cat "$BED_DIR/began")
}

# The held write as JSON, alone in its process.
held() { jq -e '.processes[0].requests[] | select(.op == "write")' "$BED_DIR/stuck.json"; }

is_held() { "$BRICKTOP" stuck "$BED_B1_PATH" --json >"$BED_DIR/stuck.json" && held; }

field() { held | jq -r ".$1"; }

# age_is_true SECS BEFORE AFTER NAME [ROUNDING]: within a second of what our clock says,
# and it can be no older than the write. BEFORE and AFTER were taken around the look.
age_is_true()
{
	between "$1" "$(minus "$2" "$began" 1)" "$(minus "$3" "$began" "-${5:-0.02}")" "$4"
}

traced()
{
	strace -f -qq -e trace=bpf,perf_event_open,ptrace -e signal=none -o "$BED_DIR/trace" \
		"$BRICKTOP" "$@" >"$BED_DIR/stuck.json"
}

test_json()
{
	local before after

	before=$(now)
	ok "stuck, under strace" traced stuck "$BED_B1_PATH" --json
	after=$(now)
	is "$(cat "$BED_DIR/trace")" '' "nothing is put into the kernel"
	ok "nor into the process's code" tests/lib/check_text.py "$BED_B1_PID"
	is "$(jq '.processes | length' "$BED_DIR/stuck.json")" 1 "one process"
	is "$(jq '.processes[0].pid' "$BED_DIR/stuck.json")" "$BED_B1_PID" "this brick's"
	is "$(jq -r '.processes[0].requests[0].op' "$BED_DIR/stuck.json")" write "it stands first"
	is "$(held | jq -s length)" 1 "and is the only write"
	is "$(field xlator)" dg "in the xlator that holds it"
	is "$(field file)" "/held file" "its file"
	is "$(field app_pid)" "$writer" "the application"
	is "$(field volume)" "$BED_B1_VOLUME" "the volume"
	is "$(field origin)" user "a user's request"
	is "$(field uid)" 0 "the application's user"
	age_is_true "$(minus "$(field age_us)e-6" 0)" "$before" "$after" "its age"
	age_is_true "$(minus "$(field frame_age_us)e-6" 0)" "$before" "$after" \
		"and how long it sits there"
}

test_text()
{
	local before after text age

	before=$(now)
	text=$("$BRICKTOP" stuck "$BED_B1_VOLUME")
	after=$(now)
	note "$text"
	text=$(grep -A 1 write <<<"$text")
	like "$text" " dg " "the text names the xlator"
	like "$text" "/held file" "the file"
	like "$text" "(^| )$writer( |$)" "the application's pid"
	age=$(grep -oE '[0-9]+\.?[0-9]*s' <<<"$text" | head -n 1)
	age_is_true "${age%s}" "$before" "$after" "and the age" 0.5
}

# oldest_is_true BEFORE AFTER NAME: what the report says of the oldest request.
oldest_is_true()
{
	is "$(jq -r '.oldest | "\(.op) \(.xlator) \(.file) \(.app_pid)"' "$BED_DIR/report")" \
		"write dg /held file $writer" "$3: the oldest in flight is the held write"
	age_is_true "$(jq '.oldest.age_us / 1e6' "$BED_DIR/report")" "$1" "$2" "$3: its age"
}

test_reports()
{
	local before

	before=$(now)
	ok "a report from memory" "$BRICKTOP" attach "$BED_B1_PATH" -d 500ms --memory-only \
		--json -o "$BED_DIR/report"
	oldest_is_true "$before" "$(now)" "from memory"
	before=$(now)
	ok "a report of the probes" "$BRICKTOP" attach "$BED_B1_PATH" -d 500ms --json \
		-o "$BED_DIR/report"
	oldest_is_true "$before" "$(now)" "of the probes"
	like "$("$BRICKTOP" attach "$BED_B1_PATH" -d 200ms)" \
		"oldest [^"$'\n'"]*write, [0-9.]+s in dg[^"$'\n'"]*/held file[^"$'\n'"]*$writer" \
		"and as text"
}

# A window over the end of the wait: the request counts, with all of its time.
test_end()
{
	wait "$writer"
	is $? 0 "the write succeeds"
	nok "no write is in flight any more" is_held
	ok "a report over its end" measure_end whole
	is "$(measure_get whole 'op("write") | .count')" 1 "it is counted once"
	between "$(measure_get whole 'op("write") | .layers[] |
		select(.id | split("+") | index(["dg"])) | .self_us.max / 1e6')" \
		"$hold" "$(minus "$hold" -1)" \
		"the xlator that held it has all of the wait as its own time"
}

delay="delay-percentage 100 enable WRITE delay-duration ${hold}000000"
{ bed_brick b1 --at posix "dg debug/delay-gen $delay" && bed_client c1 b1; } ||
	bail_out "no brick"
start_writer || bail_out "no writer"
bed_poll 5 is_held >/dev/null || bail_out "no write is held"
test_json
measure_begin whole "$BED_B1_PID" || bail_out "cannot attach"
test_text
test_reports
test_end
done_testing
