#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 1200
#
# tests/e2e/verdict.sh with what BRICKTOP_SEED draws: three rounds of all cases, also of
# those that take long.
: "${BRICKTOP_SEED:=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"
: "${VERDICT_ROUNDS:=3}"
export BRICKTOP_SEED VERDICT_ROUNDS
export VERDICT_CASES="xlator pool sleepers cpu hogs held device_brick fsync lock_brick"
VERDICT_CASES+=" throttle_brick lock log throttle throttle_uring device queue file"
VERDICT_CASES+=" libaio io_uring healthy busy few idler"
exec "$(dirname "$0")/../e2e/verdict.sh"
