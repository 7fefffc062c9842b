#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2153 # bed.sh sets BED_<NAME>_*
# shellcheck disable=SC2016 # $ of jq
#
# What is left where not everything can be had: no right to load programs, a brick that
# comes and goes among others, a file for dumps that is too slow. There is a report, of
# what there was to measure, it says what is missing, and the exit status does where
# something was asked for that is not there. And reports in a row: no request falls
# between two of them.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
e2e_begin

load() { bed_fio "$BED_C1_MNT" "$1" --size=4m --rw=randrw "${@:2}"; }

# jq_of NAME FILTER: over all documents of a report.
jq_of() { jq -rs "$2" "$BED_DIR/$1.out"; }

# without_bpf NAME ARGUMENT...: attach with the right to read the brick, and no other.
without_bpf()
{
	local name=$1

	shift
	setpriv --bounding-set=-bpf,-perfmon,-sys_admin --inh-caps=-bpf,-perfmon,-sys_admin \
		"$BRICKTOP" attach "$@" >"$BED_DIR/$name.out" 2>"$BED_DIR/$name.err" </dev/null
}

test_no_rights()
{
	load job &
	without_bpf norights "$BED_B1_PID" --json -d 3
	is $? 0 "no right to load programs: exit status"
	wait $!
	is "$(cat "$BED_DIR/norights.err")" '' "no right: no complaint: a report it is"
	like "$(jq_of norights '.[0].off[] | select(.what == "walk").reason')" \
		'CAP_BPF and CAP_PERFMON' "no right: the report says what is missing"
	is "$(jq_of norights '[.[0].ops[].source] | unique | .[]')" memory \
		"no right: all that it shows is the process's own"
	between "$(jq_of norights '[.[0].ops[] | select(.op == "write").count] | add')" 1 1e6 \
		"no right: what was done is in it"
	without_bpf nodump "$BED_B1_PID" --json -d 1 --dump-requests "5=$BED_DIR/nodump.dump"
	is $? 1 "no right, and dumps are wanted: exit status"
	like "$(cat "$BED_DIR/nodump.err")" '^bricktop: no request could be dumped[^'$'\n'']*$' \
		"no right, and dumps are wanted: one line"
	is "$(jq_of nodump length)" 1 "no right, and dumps are wanted: a report all the same"
}

# A brick is killed while another one is measured with it.
test_all()
{
	attach_start all --all --json -d 60 || {
		fail "all: attached"
		return
	}
	bed_end "$BED_B2_PID" "$BED_B2_START"
	load job
	attach_end all
	is "$ATTACH_STATUS" 0 "all, and one brick dies: exit status"
	is "$(jq_of all '[.[].target.pid | select(. == '"$BED_B1_PID"' or . == '"$BED_B2_PID"')] |
		length')" 2 "all: both bricks are shown"
	is "$(jq_of all 'map(.lost_unassigned.total) | unique | join(" ")')" 0 \
		"all: nothing is lost of nobody knows whom"
	is "$(jq_of all 'map(.lost.recursion) | unique | map(tostring) | join(" ")')" null \
		"all: whose recursion it is nobody knows"
	for op in read write; do
		is "$(jq_of all '[.[] | select(.target.pid == '"$BED_B1_PID"').ops[] |
			select(.op == "'$op'" and .root == "brick" and .origin == "user").count] |
			add')" "$(bed_fio_count job $op)" "all: ${op}s of the one that lives"
	done
}

test_dumps()
{
	local reader missing all

	mkfifo "$BED_DIR/slow"
	# somebody holds it open, and reads when all is over
	{
		until [ -e "$BED_DIR/read-on" ]; do sleep 0.1; done
		cat
	} <"$BED_DIR/slow" >"$BED_DIR/slow.read" &
	reader=$!
	attach_start slow "$BED_B1_PID" -d 60 --dump-requests 1000000="$BED_DIR/slow" || {
		fail "slow dumps: attached"
		kill $reader
		return
	}
	load job --size=16m
	sleep 0.5
	kill -INT "$BED_SLOW_PID"
	sleep 0.5
	: >"$BED_DIR/read-on"
	attach_wait slow
	wait $reader
	is "$ATTACH_STATUS" 1 "dumps that find no room: exit status"
	like "$ATTACH_ERR" '^bricktop: [0-9]+ of [0-9]+ dumped requests are missing[^'$'\n'']*$' \
		"dumps that find no room: one line"
	read -r _ missing _ all _ <<<"$ATTACH_ERR"
	is "$(grep -c . "$BED_DIR/slow.read")" $((all - missing)) \
		"dumps that find no room: the others are there"
	mkfifo "$BED_DIR/unread"
	timeout 20 "$BRICKTOP" attach "$BED_B1_PID" -d 1 --dump-requests 5="$BED_DIR/unread" \
		>/dev/null 2>"$BED_DIR/unread.err"
	is $? 1 "dumps that nobody reads: exit status"
	like "$(cat "$BED_DIR/unread.err")" 'unread.: nobody reads it' \
		"dumps that nobody reads: said"
	"$BRICKTOP" attach "$BED_B1_PID" -d 1 --dump-requests 5="$BED_DIR/few" \
		>/dev/null 2>"$BED_DIR/few.err"
	is $? 0 "fewer requests than wanted: exit status"
	like "$(cat "$BED_DIR/few.err")" '^bricktop: [0-4] of 5 requests were dumped' \
		"fewer requests than wanted: said"
}

test_intervals()
{
	attach_start rows "$BED_B1_PID" --json -d 60 --interval 300ms || {
		fail "rows: attached"
		return
	}
	load job --rate_iops=400,400
	attach_end rows
	is "$ATTACH_STATUS" 0 "reports in a row: exit status"
	between "$(jq_of rows length)" 3 200 "reports in a row: several"
	for op in read write; do
		is "$(jq_of rows '[.[].ops[] | select(.op == "'$op'" and .root == "brick" and
			.origin == "user" and .source == "walk").count] | add')" \
			"$(bed_fio_count job $op)" "reports in a row: all ${op}s, each once"
	done
}

{ bed_brick b1 && bed_client c1 b1 && bed_brick b2; } || bail_out "no brick"
load job || bail_out "no load"
test_no_rights
test_intervals
test_dumps
test_all
done_testing
