"""A hypothesis against its runs: the mean paired difference, its interval, and what that says.

Pairs are of one seed: the same images in the same order, the same draw of everything but what
differs. The interval is Student's over the seeds. It is no statement on other data, sizes or
recipes, and with three seeds it is wide: open is a common answer and an honest one. Hypotheses are
judged one by one; no correction is made for their number.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.experiments.study.protocol import Choice, Hypothesis, Protocol

VERDICTS = ("supported", "refuted", "open", "no runs", "withdrawn")


@dataclass(frozen=True)
class Difference:
    """Mean of m paired differences and its interval; the ends are NaN for m = 1, all for m = 0."""

    mean: float
    low: float
    high: float
    m: int


def difference(values: list[float], confidence: float) -> Difference:
    """Of paired differences, by Student's t with m - 1 degrees; no spread, no width."""
    m = len(values)
    if m == 0 or not np.isfinite(values).all():
        return Difference(math.nan, math.nan, math.nan, m)
    return Difference(*mean_interval(values, fewest=2, confidence=confidence), m)


def verdict(found: Difference, predicts: str, margin: float) -> str:
    """Supported or refuted where the whole interval says so, else open; no runs without any."""
    low, high = found.low, found.high
    if found.m == 0:
        return "no runs"
    if math.isnan(low):
        return "open"
    if predicts == "within":
        if -margin < low and high < margin:
            return "supported"
        return "refuted" if high < -margin or low > margin else "open"
    if predicts == "greater":
        low, high, margin = -high, -low, -margin
    if high < margin:
        return "supported"
    return "refuted" if low > margin else "open"


def paired(hypothesis: Hypothesis, chosen: Protocol, table: pd.DataFrame) -> list[float]:
    """The difference of each seed that has all of its runs."""
    known = hypothesis.measure in table
    values = dict(zip(table["run"], table[hypothesis.measure], strict=True)) if known else {}

    def value(choice: Choice | None, seed: int) -> float:
        if choice is None:
            return 0.0
        return float(values[chosen.run(choice, seed).name])

    found = []
    for seed in chosen.seeds:
        try:
            own = value(hypothesis.first, seed) - value(hypothesis.second, seed)
            own -= value(hypothesis.less_first, seed) - value(hypothesis.less_second, seed)
        except KeyError:
            continue
        found.append(own - (hypothesis.value or 0.0))
    return found


def adjudicated(chosen: Protocol, studies: list[str], table: pd.DataFrame) -> pd.DataFrame:
    """A row a hypothesis of these studies: what it says, the difference, the interval, verdict, and
    what became of it since. One that was withdrawn has its interval and no other verdict."""
    rows = []
    for each in chosen.hypotheses:
        if each.study not in studies:
            continue
        found = difference(paired(each, chosen, table), chosen.confidence)
        rows.append(
            {
                "name": each.name,
                "study": each.study,
                "says": each.says,
                "measure": each.measure,
                "predicts": each.predicts,
                "margin": each.margin,
                "difference": found.mean,
                "low": found.low,
                "high": found.high,
                "seeds": found.m,
                "verdict": "withdrawn"
                if each.withdrawn
                else verdict(found, each.predicts, each.margin),
                "note": each.note,
            }
        )
    return pd.DataFrame(rows)
