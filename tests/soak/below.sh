#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 1200
#
# The ground truth of the layers below a system call (tests/e2e/below_*.sh), BELOW_ROUNDS
# times (3), each with numbers of threads, sizes and limits that another seed draws.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh

RANDOM=$((${BRICKTOP_SEED:-$(od -An -N4 -tu4 /dev/urandom)} % 32768))
for ((round = 0; round < ${BELOW_ROUNDS:-3}; round++)); do
	export BELOW_SEED=$RANDOM
	for test in aio block pages waits; do
		ok "below_$test.sh with BELOW_SEED=$BELOW_SEED" bash "tests/e2e/below_$test.sh"
	done
done
done_testing
