#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 5400
#
# bricktop on the kernels that Debian carries, each booted by tools/vmrun: all objects
# and variants load and fire, a brick's report comes out, and what doctor says of the
# layers is what the report shows. The findings become KERNELS.md.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/kernel.sh

all_kernels='6.1 6.12 6.18'
kernels=${KERNELS:-$all_kernels}
[ "$kernels" != none ] || skip_all 'KERNELS=none'
found=$KERNEL_BUILD/matrix/kernels
mkdir -p "$found" || exit 1

# print_table: rows in the order of the first kernel that has them.
print_table()
{
	local k row

	echo '<!-- SPDX-License-Identifier: Apache-2.0 -->'
	echo '# Kernels that bricktop was run on'
	echo
	echo "Written by \`make matrix\`: $TAP_COUNT checks, $TAP_FAILED of them failed. Stock"
	echo 'Debian kernels in QEMU without acceleration, this userland, a brick and a client,'
	echo 'the same job for all. No time in here means anything.'
	echo
	printf '| | %s |\n' "${kernels// / | }"
	printf '|---|%s\n' "$(for k in $kernels; do printf -- '---|'; done)"
	for k in $kernels; do cut -f 1 "$found/$k.cells" 2>/dev/null; done | awk '!seen[$0]++' |
		while IFS= read -r row; do
			printf '| %s |' "$row"
			for k in $kernels; do
				printf ' %s |' "$(awk -F '\t' -v r="$row" '$1 == r { v = $2 }
					END { print v == "" ? "-" : v }' "$found/$k.cells")"
			done
			printf '\n'
		done
}

for kernel in $kernels; do
	rm -f "$found/$kernel.cells"
	kernel_run "$kernel" 1700 env BRICKTOP="${BRICKTOP:-$KERNEL_BUILD/bricktop}" \
		tests/lib/kernel_guest.sh "$found/$kernel.cells"
	kernel_relay "$kernel" $?
done
print_table >"$KERNEL_BUILD/matrix/kernels.md"
[ "$kernels" != "$all_kernels" ] || cp "$KERNEL_BUILD/matrix/kernels.md" tests/matrix/KERNELS.md
done_testing
