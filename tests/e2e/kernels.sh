#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 900
#
# Another kernel than the one at hand: every BPF object, and every variant in it, is
# taken by a stock Debian kernel, on which more variants exist than most machines that
# run this allow (fentry, kprobe). Loading only; make matrix attaches, on more kernels.
# The kernel is downloaded once (tools/vmrun), and boots without any acceleration.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/kernel.sh

kernel=6.12

# without_variant: what is off and has no variant, STEP__OTHER, that was loaded.
without_variant()
{
	local name

	sed -n 's/.* - \([^ ]*\) is off: .*/\1/p' <<<"$KERNEL_OUT" | while read -r name; do
		[[ $name == *__* ]] && grep -q -- "- ${name%%__*}__[^ ]* loads" <<<"$KERNEL_OUT" ||
			echo "$name"
	done
}

# XFS, FUSE and loop devices are modules there, and their types come with them.
kernel_run "$kernel" 800 sh -c "modprobe -a xfs fuse loop;
	exec '$KERNEL_BUILD/tests/unit/test_load'"
status=$?
kernel_relay "$kernel" "$status"
like "$KERNEL_OUT" 'loaded [1-9][0-9]* of [0-9]+ programs' "$kernel: programs were loaded"
is "$(without_variant)" '' "$kernel: what is off there has another variant"
done_testing
