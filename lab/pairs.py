#!/usr/bin/env python3
"""Pairs of samples: their ratio, and how far it can be trusted.

This is the estimator of `paritas bench` and `paritas tune`, for the lab's programs; crates/tune/src/measure/pairs.rs
gives the reasons. A pair is one sample of the subject (what is measured) and one of the base (what it is compared with),
back to back, in alternating order. Both modules must compute the numbers in vectors/pairs.json. To check this module, or
to write that file anew:

    lab/pairs.py
    lab/pairs.py --write
"""

import json
import math
import pathlib
import statistics
import sys
from typing import Callable, NamedTuple

# Fewer pairs give no verdict.
FEWEST = 20
# Number of drawings of the bootstrap, neighbouring pairs drawn at a time, and the share left out at either end.
DRAWINGS, BLOCK, TAIL = 1000, 2, 0.0125
# A ratio is known well if the upper end of its interval is at most this many times the lower end.
KNOWN = 1.1
VECTORS = pathlib.Path(__file__).resolve().parent.parent / "vectors" / "pairs.json"


class Ratio(NamedTuple):
    """The speed of the subject as a multiple of its base's: the median, and an interval of 95 % confidence."""

    median: float
    low: float
    high: float
    pairs: int

    @property
    def is_noisy(self) -> bool:
        """Whether the ratio is not known well."""
        return self.pairs < FEWEST or self.high > KNOWN * self.low

    @property
    def verdict(self) -> str:
        """Returns which side is faster, if that can be told."""
        if self.pairs >= FEWEST and self.low > 1:
            return "faster"
        if self.pairs >= FEWEST and self.high < 1:
            return "slower"
        return "too noisy" if self.is_noisy else "level"

    def __str__(self) -> str:
        doubt = ", too noisy" if self.is_noisy else ""
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f}{doubt})"


class Spread(NamedTuple):
    """The times of all samples of one side: half are below the median, a tenth below p10."""

    median: float
    p10: float
    least: float
    most: float


class Pairs:
    """Samples of a subject and its base, taken in pairs."""

    def __init__(self, pairs: list[tuple[float, float]] = ()):
        self.pairs = list(pairs)

    def take(self, subject: Callable[[], float], base: Callable[[], float]) -> tuple[float, float]:
        """Takes one more pair, in the opposite order of the one before; both functions return the time of a run."""
        if len(self.pairs) % 2 == 0:
            first = subject()
            pair = (first, base())
        else:
            first = base()
            pair = (subject(), first)
        self.pairs.append(pair)
        return pair

    def ratio(self) -> Ratio:
        """Returns the speed of the subject as a multiple of its base's, over at least one pair."""
        logs = self.logs()
        values = (statistics.median(logs), *interval(logs))
        return Ratio(*map(math.exp, values), len(logs))

    def median(self) -> float:
        """The median of `ratio`, without drawing an interval."""
        return math.exp(statistics.median(self.logs()))

    def logs(self) -> list[float]:
        return [math.log(base) - math.log(subject) for subject, base in self.pairs]

    def is_open(self, least: int) -> bool:
        """Whether another pair is needed: `least` pairs in any case; then, while the ratio is noisy, `least` more at a
        time, up to four times `least`."""
        taken = len(self.pairs)
        if taken == 0 or taken % least:
            return True
        return taken < 4 * least and 4 * least >= FEWEST and self.ratio().is_noisy

    def subject(self) -> Spread:
        return spread([subject for subject, _ in self.pairs])

    def base(self) -> Spread:
        return spread([base for _, base in self.pairs])


def spread(samples: list[float]) -> Spread:
    ordered = sorted(samples)
    return Spread(statistics.median(ordered), quantile(ordered, 0.1), ordered[0], ordered[-1])


def interval(values: list[float]) -> tuple[float, float]:
    """Returns the bounds between which the medians of drawings lie."""
    count, draw = len(values), random(1)
    doubled = values + values[:BLOCK]
    medians = []
    for _ in range(DRAWINGS):
        drawing = []
        while len(drawing) < count:
            start = next(draw) % count
            drawing += doubled[start : start + BLOCK]
        medians.append(statistics.median(drawing[:count]))
    medians.sort()
    return quantile(medians, TAIL), quantile(medians, 1 - TAIL)


def quantile(ordered: list[float], share: float) -> float:
    return ordered[int(share * (len(ordered) - 1) + 0.5)]


def random(seed: int):
    """Generates SplitMix64 numbers, as in pairs.rs."""
    mask = (1 << 64) - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = seed
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        yield z ^ (z >> 31)


def cases() -> list[dict]:
    """Returns sessions of several lengths: even and odd, too few for a verdict, level, faster, slower and noisy."""
    draw = random(2026)

    def sample(seconds: float, noise: float) -> float:
        preempted = 10 if next(draw) % 20 == 0 else 1
        return round(seconds * preempted * (1 + noise * (next(draw) % 10**6) / 10**6), 9)

    made = []
    for count, ratio, noise in [(1, 2, 0), (2, 1, 0.1), (19, 3, 0.1), (20, 1, 0.01), (21, 1.3, 0.2), (40, 0.6, 0.1), (41, 1, 1)]:
        pairs = Pairs([(sample(0.001 / ratio, noise), sample(0.001, noise)) for _ in range(count)])
        ratio, subject = pairs.ratio(), pairs.subject()
        made.append({"samples": pairs.pairs, "ratio": [ratio.low, ratio.median, ratio.high], "verdict": ratio.verdict,
                     "noisy": ratio.is_noisy, "subject": [subject.least, subject.p10, subject.median, subject.most]})
    return made


def main() -> None:
    lines = ",\n".join(json.dumps(case) for case in cases())
    text = f'{{"version": 1, "cases": [\n{lines}\n]}}\n'
    if sys.argv[1:] == ["--write"]:
        VECTORS.write_text(text)
    elif text != VECTORS.read_text():
        sys.exit("lab/pairs.py computes other numbers than vectors/pairs.json holds")


if __name__ == "__main__":
    main()
