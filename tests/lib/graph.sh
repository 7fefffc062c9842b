# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# graph.sh: one investigation of one process of any graph: the usual load, a dump of its
# requests, and the two judges, none of which shares code with bricktop: check_dump.py
# adds the requests up again, check_counts.py holds the report against what the process
# counted itself. Sourced after bed.sh, measure.sh and load.sh.

ONLY_DATA=

# settle NAME MNT [FIO OPTION]...: every kind of request once, and time for discovery to
# probe what it saw; then the process's own counts, from which on nothing may lack.
settle()
{
	{ [ -n "$ONLY_DATA" ] || load_meta "$2/warm"; } &&
		bed_fio "$2/warm" "$1-warm" --rw=randrw --size=256k --fsync=16 "${@:3}" &&
		sleep 2.5 && measure_e0 "$(bed_get "$1" TARGET)" "$BED_DIR/$1.mid"
}

# investigate NAME PID MNT [FIO OPTION]...: a settled measurement with a dump around the
# usual load, or the data part of it alone with ONLY_DATA. What is delayed by up to a
# second (unlocking, post-operations) is waited for.
investigate()
{
	mkdir "$3/warm" "$3/load" && load_data_prepare "$3/load" "$1" "${@:4}" &&
		measure_begin "$1" "$2" --dump-requests 20000="$BED_DIR/$1.dump" &&
		settle "$1" "$3" "${@:4}" && load_data "$3/load" "$1" "${@:4}" &&
		{ [ -n "$ONLY_DATA" ] || load_meta "$3/load"; } &&
		sleep 1.5 && measure_end "$1"
}

dump_ok() { python3 tests/lib/check_dump.py "$BED_DIR/$1.dump" --min-requests 300 "${@:2}"; }

judge()
{
	python3 tests/lib/check_counts.py "$BED_DIR/$1".{before,after,json} \
		--mid "$BED_DIR/$1.mid" --volume "$BED_VOLUME" "${@:2}"
}

# row NAME OP XLATOR: that layer of users' requests; xlators that share a frame are
# named together.
row() { printf 'op("%s") | .layers[] | select(.kind == "xlator" and (.id | endswith("%s")))' "$@"; }
