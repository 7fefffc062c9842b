#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 600
#
# tests/e2e/delay.sh: twenty requests delayed among a hundred thousand, for longer than a busy
# machine holds others up: as many as are shown.
export DELAY_CASES=slow SLOW_REQUESTS=100000 SLOW_DELAYED=20 SLOW_DELAY_MS=500 SLOW_LIMIT_MS=400
exec "$(dirname "$0")/../e2e/delay.sh"
