#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bricktop: timeout 180
#
# tests/e2e/stuck.sh with a request held for half a minute.
export BRICKTOP_HOLD_SECS=30
exec "$(dirname "$0")/../e2e/stuck.sh"
