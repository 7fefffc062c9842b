# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# kernel.sh: tests on another kernel than this one's: what runs in the guest speaks
# TAP, and its results become results of the test that started it. Sourced after
# tap.sh; owns no kernel (tools/vmrun does) and judges nothing.

KERNEL_BUILD=${BRICKTOP_BUILD:-$PWD/build}

# kernel_run KERNEL SECONDS COMMAND...: in a guest, in this folder, as root; the build
# folder is there too. Its stdout, all TAP, is left in KERNEL_OUT; the status is its
# own, or vmrun's: 124 too slow, 125 no such guest.
kernel_run()
{
	local kernel=$1 secs=$2 share=()

	shift 2
	case $KERNEL_BUILD/ in "$PWD"/*) ;; *) share=(-w "$KERNEL_BUILD") ;; esac
	KERNEL_OUT=$(tools/vmrun -v -k "$kernel" -t "$secs" ${share[@]+"${share[@]}"} -- \
		env BRICKTOP_BUILD="$KERNEL_BUILD" "$@" 2>"$KERNEL_BUILD/vmrun-$kernel.err")
}

# kernel_relay NAME STATUS: each result of KERNEL_OUT as one of this test's, and one
# more for the whole: as many as planned, and a status that goes with them. Skips are
# failures: which kernel runs is known, so is what it has.
kernel_relay()
{
	local name=$1 status=$2 line text n=0 bad=0 plan=-

	while IFS= read -r line; do
		text="$name: ${line#*ok * - }"
		case $line in
		'ok '*' # SKIP '*) n=$((n + 1)) bad=1 && fail "$text" ;;
		'ok '*) n=$((n + 1)) && pass "$text" ;;
		'not ok '*) n=$((n + 1)) bad=1 && fail "$text" ;;
		1..*) plan=${line#1..} ;;
		'#'*) diag "$name: ${line#\#}" ;;
		esac
	done <<<"$KERNEL_OUT"
	is "$plan" "$n" "$name: all planned tests ran" ||
		diag "$(grep -v '^vmrun: console' "$KERNEL_BUILD/vmrun-$name.err" | tail -n 20)"
	[ "$bad" = 1 ] || is "$status" 0 "$name: the guest ended well"
}
