# SPDX-License-Identifier: Apache-2.0
"""Arms that take turns: each slice with a tool attached lies between two with nothing attached, in
reversed order every other round. A ratio is an arm's figure over the mean of its two neighbours':
what changes slowly is in all three. The machine has short fits as well, so slices are short and
many, and of the ratios' logarithms the trimmed mean is taken, with the interval that resampling
gives it. Knows neither what is measured nor under which load.
"""
import math
import os

from sample import Bricktop, trimmed_interval

NONE = "none"


def wanted(arms):
    """Those of the arms that COST_ARMS names, by commas; all where it names none."""
    names = [name for name in os.environ.get("COST_ARMS", "").split(",") if name]
    return {name: arm for name, arm in arms.items() if not names or name in names}


def with_bricktop(measure, target, work, secs, args=(), env=None):
    """A slice with bricktop: its figures, and what bricktop said that it took of the target's CPU
    time in those seconds, in %; None where it says nothing."""
    tool = Bricktop(target, work, secs, args, env)
    tool.wait_report()
    figures = measure()
    tool.interrupt()
    # the last report is of what is left of its interval: it counts by its length
    said = tool.lines()[1:]
    lost = sum(report["lost"]["total"] for report in said)
    if lost:
        print(f"# lost in this slice: {lost}")
    shares = [(report["cost"]["target_pct"], report["window"]["secs"]) for report in said]
    if not shares or any(share is None for share, _ in shares):
        return figures, None
    return figures, sum(share * secs for share, secs in shares) / sum(secs for _, secs in shares)


def percent(logs):
    """Middle, low and high of these logarithms, as what there is more, in %."""
    return tuple(100 * (math.exp(log) - 1) for log in trimmed_interval(logs))


class Arms:
    """measure() gives the figures of a slice: {what: number}; an arm does so with its tool attached
    and gives (figures, what the tool said of its own cost in % or None)."""

    def __init__(self, measure, arms):
        self.measure, self.arms = measure, arms
        self.slices, self.ratios, self.said = {}, {}, {}

    def run(self, rounds):
        arms = list(self.arms.items())
        for number in range(rounds):
            before = self.note(NONE, self.measure())
            for name, arm in arms if number % 2 == 0 else arms[::-1]:
                figures, said = arm()
                self.note(name, figures)
                after = self.note(NONE, self.measure())
                self.ratios.setdefault(name, []).append(
                    {what: math.log(2 * value / (before[what] + after[what]))
                     for what, value in figures.items()})
                if said is not None:
                    self.said.setdefault(name, []).append(said)
                before = after
            print(f"# round {number + 1} of {rounds}", flush=True)

    def note(self, name, figures):
        self.slices.setdefault(name, []).append(figures)
        return figures

    def values(self, name, what):
        return [figures[what] for figures in self.slices[name]]

    def mean(self, name, what):
        values = self.values(name, what)
        return sum(values) / len(values)

    def overhead(self, name, what):
        """In %, what this figure of an arm is more than without it: middle, low and high."""
        return percent([ratio[what] for ratio in self.ratios[name]])

    def beside(self, name, other, what):
        """The same, of one arm against another one of the same rounds."""
        return percent([one[what] - two[what]
                        for one, two in zip(self.ratios[name], self.ratios[other])])

    def said_pct(self, name):
        """What the tool said, as overhead: of what there would be without it. None: nothing."""
        if name not in self.said:
            return None
        share = sum(self.said[name]) / len(self.said[name]) / 100
        return 100 * share / (1 - share)
