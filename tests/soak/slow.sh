#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 600
#
# tests/e2e/delay.sh: twenty requests delayed among a hundred thousand.
export DELAY_CASES=slow SLOW_REQUESTS=100000 SLOW_DELAYED=20
exec "$(dirname "$0")/../e2e/delay.sh"
