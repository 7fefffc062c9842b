#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 1200
#
# How stable verdicts are: what one seed draws, five times each.
export VERDICT_ROUNDS=1 VERDICT_REPEATS=5
exec "$(dirname "$0")/verdict.sh"
