#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: parallel
# bricktop: timeout 120
# shellcheck disable=SC2317 # functions are called through others
#
# The command line where nothing is measured: wrong words, missing privileges,
# outputs that cannot be written. Whatever is wrong, the exit status says which kind
# it is (1 at run time, 2 usage, 77 not possible here), stdout stays empty, and
# stderr holds exactly one line that names the subject.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh

BRICKTOP=${BRICKTOP:-build/bricktop}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0 out='' err=''

# capture COMMAND...: its status, stdout and stderr into those variables.
capture()
{
	"$@" >"$dir/out" 2>"$dir/err" </dev/null
	status=$?
	out=$(cat "$dir/out")
	err=$(cat "$dir/err")
}

# one_line NAME: stderr is one line, in the form that all our messages have.
one_line()
{
	is "$(wc -l <"$dir/err")" 1 "$1: one line on stderr" || diag "$err"
	like "$err" '^bricktop: [^A-Z].*[^.]$' "$1: lower case, no full stop"
	unlike "$err" $'[\001-\010\013-\037\177]' "$1: no control characters"
}

# refused NAME STATUS REGEX ARGUMENT...
refused()
{
	local name=$1 wanted=$2 regex=$3

	shift 3
	capture timeout 30 "$BRICKTOP" "$@"
	is "$status" "$wanted" "$name: exit status"
	is "$out" '' "$name: nothing on stdout"
	one_line "$name"
	like "$err" "$regex" "$name: says what is wrong"
}

informs()
{
	local name=$1 regex=$2

	shift 2
	capture timeout 30 "$BRICKTOP" "$@"
	is "$status" 0 "$name: exit status"
	is "$err" '' "$name: nothing on stderr"
	like "$out" "$regex" "$name: says what was asked for"
}

closed_stdout() { timeout 30 "$BRICKTOP" "$@" >&-; }
full_stdout() { timeout 30 "$BRICKTOP" "$@" >/dev/full; }
closed_stderr() { timeout 30 "$BRICKTOP" "$@" 2>&-; }
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

ok 'the program is there' test -x "$BRICKTOP" || done_testing

informs '--version' '^bricktop [0-9]+\.[0-9]+' --version
informs '--help' 'attach' --help
help=$out
for command in list attach stuck doctor; do
	like "$help" "$command" "--help names $command"
	informs "$command --help" "$command" "$command" --help
	mapfile -t options < <(grep -o -- '--[a-z][a-z-]*' <<<"$out" | sort -u)
	for option in "${options[@]}"; do
		ok "the manual page knows $command $option" \
			grep -qE "^\.It .*Fl Fl ${option#--}( |\$)" user/bricktop.8
	done
done

# ---- usage: status 2 ----------------------------------------------------------
refused 'unknown command' 2 "frobnicate" frobnicate
refused 'unknown option' 2 "frobnicate" --frobnicate
refused 'unknown option of attach' 2 "frobnicate" attach --frobnicate x
refused 'attach without a target' 2 'target' attach
refused 'a duration that is none' 2 "soon" attach -d soon x
refused 'a negative duration' 2 "-1" attach -d -1 x
refused 'a duration of 0' 2 "'?0" attach -d 0 x
refused 'a duration without end' 2 '99999999999999999999' attach -d 99999999999999999999h x
refused 'an option that lacks its value' 2 '-d|duration' attach x -d
refused 'an argument too many' 2 'surplus' list surplus
refused 'an empty word' 2 'empty|target' attach ''

# ---- run time: status 1 -------------------------------------------------------
if [ "$(id -u)" = 0 ]; then
	refused 'a target that is not here' 1 'no-such-volume' attach no-such-volume
	refused 'a target of control characters' 1 'no-such' attach $'no-such\e[31m\n\a'
	refused 'a pid that is not here' 1 '4194304' attach 4194304
	refused 'a path that is not here' 1 '/no/such/path' attach /no/such/path
	refused 'a very long word' 1 '.' attach "$(printf 'x%.0s' {1..60000})"
	mkfifo "$dir/fifo"
	into_fifo=(attach $$ --memory-only -d 100ms -o "$dir/fifo")
	refused 'a FIFO that nobody reads' 1 'fifo.: nobody reads it' "${into_fifo[@]}"
	capture timeout -s INT --preserve-status 0.7 "$BRICKTOP" "${into_fifo[@]}"
	is "$status" 130 'a FIFO that nobody reads: SIGINT ends the wait'
	{ sleep 0.3; timeout 20 cat "$dir/fifo" >"$dir/read"; } &
	informs 'a FIFO whose reader is late' '^$' "${into_fifo[@]}"
	wait $!
	ok 'a FIFO whose reader is late: it gets all' grep -q "pid $$" "$dir/read"
else
	skip 'not root' 'targets that are not here' 37
fi

for way in closed_stdout full_stdout; do
	for word in --help --version; do
		capture $way $word
		is "$status" 1 "$word, $way: exit status"
		one_line "$word, $way"
		like "$err" 'write|output' "$word, $way: says that it cannot write"
	done
done

capture closed_stderr --frobnicate
is "$status" 2 'stderr closed: the exit status still tells'

# ---- not possible here: status 77 -----------------------------------------------
if [ "$(id -u)" = 0 ]; then
	# Where the project lies, other users may not be able to look.
	chmod 755 "$dir"
	install -m 755 "$BRICKTOP" "$dir/bricktop"
	capture setpriv --bounding-set=-all,+sys_ptrace timeout 30 "$BRICKTOP" attach $$ -d 100ms
	is "$status" 77 'a process that no layer can be had of: exit status'
	one_line 'a process that no layer can be had of'
	like "$err" 'nothing could be measured' 'a process that no layer can be had of: is said'
	like "$out" 'off .*CAP_BPF' 'a process that no layer can be had of: the report says why'
	capture nobody timeout 30 "$dir/bricktop" attach 1
	is "$status" 77 'not root: exit status'
	is "$out" '' 'not root: nothing on stdout'
	one_line 'not root'
	like "$err" 'root|privilege|CAP_' 'not root: says which privilege is missing'
	capture nobody timeout 30 "$dir/bricktop" --version
	is "$status" 0 'not root: --version works'
else
	skip 'not root' 'another user' 7
fi
done_testing
