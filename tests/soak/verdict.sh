#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 1200
#
# tests/e2e/verdict.sh with what BRICKTOP_SEED draws, three rounds of it.
: "${BRICKTOP_SEED:=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"
export BRICKTOP_SEED
export VERDICT_ROUNDS=3
export VERDICT_CASES="xlator pool sleepers cpu throttled fsync healthy"
exec "$(dirname "$0")/../e2e/verdict.sh"
