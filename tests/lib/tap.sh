# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# tap.sh: the smallest TAP producer that our shell tests need. It owns the
# numbering and the plan, which is printed last; it knows nothing about what is
# tested. A test sources it, calls ok/is/like/..., and ends with done_testing,
# whose status is the script's: 0 all passed, 1 something failed.

TAP_COUNT=0
TAP_FAILED=0

# diag TEXT: a comment line on stderr, shown by prove while the test runs.
diag()
{
	local line

	while IFS= read -r line; do
		printf '# %s\n' "$line" >&2
	done <<<"$*"
}

# note TEXT: a comment line on stdout, shown by prove -v only.
note()
{
	local line

	while IFS= read -r line; do
		printf '# %s\n' "$line"
	done <<<"$*"
}

tap_result()
{
	local passed=$1 name=$2

	TAP_COUNT=$((TAP_COUNT + 1))
	if [ "$passed" = 1 ]; then
		printf 'ok %d - %s\n' "$TAP_COUNT" "$name"
		return 0
	fi
	TAP_FAILED=$((TAP_FAILED + 1))
	printf 'not ok %d - %s\n' "$TAP_COUNT" "$name"
	diag "failed: $name (${BASH_SOURCE[2]##*/} line ${BASH_LINENO[1]})"
	return 1
}

pass() { tap_result 1 "$1"; }
fail() { tap_result 0 "$1"; }

# tap_run COMMAND...: in this shell, so that what it sets stays set; its output is
# left in TAP_OUTPUT.
tap_run()
{
	local file status

	file=$(mktemp) || return 1
	"$@" >"$file" 2>&1
	status=$?
	TAP_OUTPUT=$(tr -d '\0' <"$file")
	rm -f "$file"
	return "$status"
}

# ok NAME COMMAND [ARG]...: passes where the command succeeds; its output is
# shown only when it fails.
ok()
{
	local name=$1

	shift
	if tap_run "$@"; then
		tap_result 1 "$name"
		return
	fi
	tap_result 0 "$name"
	diag "command: $*"
	diag "$TAP_OUTPUT"
	return 1
}

# nok NAME COMMAND [ARG]...: passes where the command fails.
nok()
{
	local name=$1

	shift
	if ! tap_run "$@"; then
		tap_result 1 "$name"
		return
	fi
	tap_result 0 "$name"
	diag "this command should have failed: $*"
	diag "$TAP_OUTPUT"
	return 1
}

# is GOT WANTED NAME: string equality.
is()
{
	if [ "$1" = "$2" ]; then
		tap_result 1 "$3"
		return
	fi
	tap_result 0 "$3"
	diag "     got: '$1'"
	diag "expected: '$2'"
	return 1
}

isnt()
{
	if [ "$1" != "$2" ]; then
		tap_result 1 "$3"
		return
	fi
	tap_result 0 "$3"
	diag "got '$1', which is what it must not be"
	return 1
}

# like TEXT REGEX NAME: extended regular expression, anywhere in the text.
like()
{
	if [[ $1 =~ $2 ]]; then
		tap_result 1 "$3"
		return
	fi
	tap_result 0 "$3"
	diag "no match of /$2/ in:"
	diag "${1:0:2000}"
	return 1
}

unlike()
{
	if ! [[ $1 =~ $2 ]]; then
		tap_result 1 "$3"
		return
	fi
	tap_result 0 "$3"
	diag "unwanted match of /$2/: '${BASH_REMATCH[0]}'"
	return 1
}

# between GOT LOW HIGH NAME: LOW <= GOT <= HIGH, decimals allowed. A GOT that is
# no number fails: missing data must never pass as 0.
between()
{
	if [[ $1 =~ ^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$ ]] &&
	   awk -v g="$1" -v l="$2" -v h="$3" 'BEGIN { exit !(g >= l && g <= h) }'; then
		tap_result 1 "$4"
		return
	fi
	tap_result 0 "$4"
	diag "got '$1', wanted $2 ... $3"
	return 1
}

# skip REASON NAME [COUNT]: COUNT tests that cannot run here.
skip()
{
	local i

	for ((i = 0; i < ${3:-1}; i++)); do
		TAP_COUNT=$((TAP_COUNT + 1))
		printf 'ok %d - %s # SKIP %s\n' "$TAP_COUNT" "$2" "$1"
	done
}

# skip_all REASON: the whole script cannot run here. Does not return.
skip_all()
{
	printf '1..0 # SKIP %s\n' "$1"
	exit 0
}

bail_out()
{
	printf 'Bail out! %s\n' "$1"
	exit 1
}

# done_testing: prints the plan. A script without any test fails.
done_testing()
{
	printf '1..%d\n' "$TAP_COUNT"
	if [ "$TAP_COUNT" = 0 ]; then
		diag "no test was run"
		exit 1
	fi
	[ "$TAP_FAILED" = 0 ] || diag "$TAP_FAILED of $TAP_COUNT failed"
	exit $((TAP_FAILED > 0))
}
