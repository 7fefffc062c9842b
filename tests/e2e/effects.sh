#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
# shellcheck disable=SC2016,SC2153,SC2317 # jq and eval; bed.sh sets BED_<NAME>_*; ok calls
#
# What passed through each xlator besides time: errors and bytes, row by row. Second
# sources: the failed replies that the process counts itself at each xlator and fop, the
# request as a whole, fio, and check_dump.py, which finds the way of an error anew. And
# where they cannot be known (calls that another thread made, copied stacks) they must be
# null, never 0.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/e2e.sh
. tests/lib/load.sh
. tests/lib/graph.sh
e2e_begin

# fail_all MNT: everything that can be asked in vain.
fail_all()
{
	local i

	mkdir "$1/vain" && cd "$1/vain" && mkdir full && touch full/a here || return 1
	for ((i = 0; i < 5; i++)); do
		stat "none$i"
		rm "none$i"
		getfattr -n user.none here
		setfattr -x user.none here
		rmdir full
		mkdir full
		ln here full/a
		mv none full/b
		python3 -c 'import os; os.rename("full", "here")'
		python3 -c 'import os; os.listxattr("none")'
		cat none/none
	done >/dev/null 2>&1
	true
}

# rows_with NAME CONDITION: in how many of a report's rows of xlators that holds.
rows_with()
{
	measure_get "$1" "[.ops[] | . as \$op | .layers[] | select(.kind == \"xlator\" and ($2))] |
		length"
}

# counts_are NAME: the report against the process's own counts, failures included.
counts_are()
{
	python3 tests/lib/check_counts.py "$BED_DIR/$1".{before,after,json} \
		--volume "$BED_VOLUME" "${@:2}"
}

# dumped NAME OP PATH: how many requests of a dump are about that, and are they names in it.
dumped()
{
	local gfid

	gfid=$(getfattr --absolute-names -n glusterfs.gfid.string --only-values "$3")
	jq -r --arg op "$2" --arg gfid "$gfid" \
		'select(.op == $op and .gfid == $gfid) | .entry' "$BED_DIR/$1.dump" |
		sort | uniq -c | xargs
}

fio_total()
{
	for job in "$BED_DIR"/data-{4k,128k}.json; do
		sed -n '/^{/,$p' "$job"
	done | jq -s "[.[].jobs[].$1.io_bytes] | add"
}

test_data()
{
	local op

	ok "attached to brick and client" eval 'measure_begin b1 "$BED_B1_PID" &&
		measure_begin c1 "$BED_C1_PID"'
	ok "fio" load_data "$BED_C1_MNT" data
	ok "both reports" eval 'measure_end c1 && measure_end b1'
	for op in read write; do
		is "$(measure_get b1 "op(\"$op\") | [.layers[] | select(.kind == \"xlator\") |
			.bytes] | unique | join(\" \")")" "$(fio_total "$op")" \
			"brick: each xlator's ${op}s are fio's, to the byte"
	done
	is "$(rows_with b1 '.depth > 0 and .bytes != null and $op.op != "read" and
		$op.op != "write"')" 0 "brick: no bytes of what moves none"
	is "$(rows_with c1 '.depth > 0 and .bytes != null')" 0 \
		"client: its threads move none: bytes are the request's alone"
}

test_failures()
{
	ok "attached again" eval \
		'measure_begin b1 "$BED_B1_PID" --dump-requests 20000="$BED_DIR/b1.dump" &&
		measure_begin c1 "$BED_C1_PID"'
	ok "in vain" eval '(fail_all "$BED_C1_MNT") && load_meta "$BED_C1_MNT"'
	ok "both reports again" eval 'measure_end c1 && measure_end b1'
	ok "brick: every xlator's failed replies are those that it counts" \
		counts_are b1 --chain --min-failed 200
	ok "client: likewise" counts_are c1 --chain --min-failed 200
	ok "brick: the dump says the same" dump_ok b1 --expect-failed --max-unsplit 0
	is "$(jq -r 'select(.gfid == null) | .op' "$BED_DIR/b1.dump")" "" \
		"brick: the dump knows what each request is about"
	is "$(dumped b1 setxattr "$BED_C1_MNT/names/name3")" "1 false" \
		"brick: a setxattr by its file's gfid"
	is "$(dumped b1 mkdir "$BED_C1_MNT/vain")" "1 true" \
		"brick: what is not there yet, or never, by its directory's"
	is "$(rows_with b1 '.errors == null and .count == $op.count')" 0 \
		"brick: only where an xlator makes several calls, none is known"
}

# What posix-aio's own thread completes counts for the request that waits for it.
test_aio()
{
	{ bed_brick aio --linux-aio && bed_client caio --direct-io aio; } || bail_out "no posix-aio"
	load_data_prepare "$BED_CAIO_MNT" aio --bs=4000 --direct=0
	ok "posix-aio: measured" eval 'measure_attach aio "$BED_AIO_PID" &&
		load_data "$BED_CAIO_MNT" aio --bs=4000 --direct=0 && measure_finish aio'
	is "$(measure_get aio 'op("write") | .bytes > 0')" true "posix-aio: a request has bytes"
	is "$(rows_with aio '($op.op | IN("read", "write")) and .depth > 0 and
		.bytes != $op.bytes')" 0 "posix-aio: its xlators have moved as many"
}

# Replicate writes in copied stacks: what failed in them, their original does not know.
test_replicate()
{
	{ bed_brick r1 && bed_brick r2 && bed_client afr --kind replicate r1 r2; } ||
		bail_out "no replicate"
	ok "replicate: measured" eval 'measure_attach repl "$BED_AFR_PID" \
		--dump-requests 20000="$BED_DIR/repl.dump" && (fail_all "$BED_AFR_MNT") &&
		measure_finish repl'
	ok "replicate: the dump says the same" dump_ok repl --expect-failed --expect-copies \
		--min-requests 50
	is "$(measure_get repl "$(row rmdir client-0) | .errors")" null \
		"replicate: of a copied stack errors are not known"
	is "$(measure_get repl "$(row lookup client-1) | .errors")" null \
		"replicate: nor which of two children failed"
	is "$(measure_get repl "$(row rmdir replicate-0) | .errors")" \
		"$(measure_get repl 'op("rmdir").errors')" "replicate: its own are"
}

{ bed_brick b1 && bed_client c1 b1; } || bail_out "no brick"
load_data_prepare "$BED_C1_MNT" data || bail_out "no files"
test_data
test_failures
test_aio
test_replicate
done_testing
