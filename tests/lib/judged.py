# SPDX-License-Identifier: Apache-2.0
"""judged.py: how the checkers of this folder say what they found. It judges nothing itself."""


def show(findings):
    """Print each (is it well, text); -> the exit status, 1 where one is not."""
    bad = 0
    for well, text in findings:
        print(("" if well else "WRONG: ") + text)
        bad += not well
    return 1 if bad else 0
