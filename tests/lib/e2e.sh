# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e.sh: how every end-to-end test on a bed begins: TAP, the bed, how bricktop is run
# beside it, and whether any of it is possible here. It owns no bed and judges
# nothing. Sourced first, from the top of the tree; other libraries follow it:
#
#   cd "$(dirname "$0")/../.." || exit 1
#   . tests/lib/e2e.sh
#   . tests/lib/load.sh
#   e2e_begin
#   e2e_needs strace            # beside what all of them do

E2E_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tests/lib/tap.sh
. "$E2E_LIB/tap.sh"
# shellcheck source=tests/lib/bed.sh
. "$E2E_LIB/bed.sh"
# shellcheck source=tests/lib/measure.sh
. "$E2E_LIB/measure.sh"
# shellcheck source=tests/lib/attach.sh
. "$E2E_LIB/attach.sh"

# e2e_needs PROGRAM...: where one is missing the whole test is skipped.
e2e_needs()
{
	local program

	for program in "$@"; do
		command -v "$program" >/dev/null || skip_all "no $program here"
	done
}

# e2e_begin: an empty bed; where there can be none the whole test is skipped. jq and python3
# read every report.
e2e_begin()
{
	local why

	why=$(bed_missing) && skip_all "$why"
	e2e_needs jq python3
	bed_init || bail_out "no test bed"
}

# client_is_back MNT: it answers with more than attributes that it remembers, and
# without a write.
client_is_back()
{
	# shellcheck disable=SC2016
	timeout 5 bash -c ': >"$1"' bash "$1/ping" 2>/dev/null
}
