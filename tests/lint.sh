#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: parallel
# bricktop: timeout 1800
# shellcheck disable=SC2317 # functions are called through ok
#
# What can be said about the sources without running them. LINT=full adds what
# takes minutes: clang-tidy and gcc's analyzer.
cd "$(dirname "$0")/.." || exit 1
. tests/lib/tap.sh

build=${BRICKTOP_BUILD:-build}
shopt -s nullglob
work=$(mktemp) || exit 1
trap 'rm -f "$work"' EXIT

# A linter's opinion depends on its version: only the one we format with counts.
format_version=14

# scripts: every shell script of ours, whatever its name.
scripts()
{
	local f

	git -c safe.directory='*' ls-files -co --exclude-standard 2>/dev/null >"$work"
	while IFS= read -r f; do
		[ -f "$f" ] || continue
		case $f in
		*.sh) echo "$f" ;;
		tools/* | .ci/*) ! head -n 1 "$f" | grep -q '^#!/bin/\(ba\)\?sh' || echo "$f" ;;
		esac
	done <"$work"
}

check_format()
{
	clang-format --dry-run -Werror --ferror-limit=20 "$@"
}

# Of gcc 12 two warnings are mostly wrong: leaks (pointers kept in a structure of the
# caller) and uninitialized values (set by a callee that returned 0). The address
# sanitizer, under which all unit tests run, and -Wmaybe-uninitialized find real ones.
analyze()
{
	gcc -std=gnu11 -D_GNU_SOURCE -DBRICKTOP_VERSION='"lint"' -I"$build" -Iuser -I. \
		-O1 -fanalyzer -Wno-analyzer-malloc-leak \
		-Wno-analyzer-use-of-uninitialized-value -Werror -c -o /dev/null "$1"
}

ok 'layers, sizes, licences and headers (tools/check-layers)' tools/check-layers

mapfile -t list < <(scripts)
ok 'shellcheck finds nothing in the shell scripts' \
	shellcheck -x --source-path=SCRIPTDIR:. "${list[@]}"

ok 'mandoc finds nothing in the manual page' mandoc -T lint -W warning user/bricktop.8

sources=(user/*.[ch] user/tui/*.[ch] bpf/*.[ch] tests/*.h tests/*/*.[ch] tools/*.[ch])
if clang-format --version 2>/dev/null | grep -q "version $format_version\."; then
	ok 'sources are formatted (make format)' check_format "${sources[@]}"
else
	skip "needs clang-format $format_version" 'sources are formatted (make format)'
fi

python_files=(tests/*.py tests/*/*.py tools/run-tests tools/check-layers)
ok 'python scripts compile' python3 -c '
import sys
for path in sys.argv[1:]:
    compile(open(path, encoding="utf-8").read(), path, "exec")' "${python_files[@]}"

if [ "${LINT:-fast}" = full ]; then
	for f in user/*.c user/tui/*.c; do
		ok "clang-tidy: $f" clang-tidy --quiet -p . "$f"
		ok "gcc -fanalyzer: $f" analyze "$f"
	done
fi
done_testing
