"""What a paper reports beside what is found here, with a tolerance and a verdict.

A figure of the paper has one more name than others, `compared`: from its table, a list of
`Comparison`. A paper's value is typed in, and nowhere else is a number; where the paper's own
value, its models or its data are not at hand the verdict says that it cannot be checked, and why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

import pandas as pd

from oversmoothing.simulations.drawing.wording import signed

REPRODUCED, DIFFERS, UNCHECKED = "reproduced", "differs", "cannot be checked"
SAME_SIGN = "same sign, far from the paper's accuracy"
VERDICTS = (REPRODUCED, SAME_SIGN, DIFFERS, UNCHECKED)
# Points of test error within which a model of ours is as accurate as the paper's.
NEAR = 3.0


@dataclass(frozen=True)
class Comparison:
    """what: the number or statement. paper: as it is reported, typed in. tolerance: how far ours
    may be, in words. verdict: one of VERDICTS. why: what it rests on."""

    what: str
    paper: str
    ours: str
    tolerance: str
    verdict: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.what}: the paper {self.paper}, here {self.ours} (tolerance: {self.tolerance}): "
            f"{self.verdict}, {self.why}."
        )


def number(
    what: str, paper: float, ours: float, tolerance: float, why: str, digits: str = ".2f"
) -> Comparison:
    """Of two numbers that mean the same thing: reproduced where they are within the tolerance."""
    near = abs(paper - ours) <= tolerance
    words = f"{paper:{digits}}", f"{ours:{digits}}", f"{tolerance:.3g}"
    return Comparison(what, *words, REPRODUCED if near else DIFFERS, why)


def sign(
    what: str, paper: str, found: tuple[float, float, float], positive: bool, why: str
) -> Comparison:
    """Of a statement about a sign; found: a mean and the ends of its 95 % interval.

    Reproduced where the whole interval has the sign, differs where it has the other one; an
    interval with zero in it, or none, decides nothing.
    """
    mean, low, high = found
    ours = f"{signed(mean)} [{signed(low)}, {signed(high)}]"
    if not (math.isfinite(low) and math.isfinite(high)):
        ours, verdict, why = signed(mean), UNCHECKED, f"{why}; there is no interval"
    elif low <= 0 <= high:
        verdict, why = UNCHECKED, f"{why}; the interval holds both signs"
    else:
        verdict = REPRODUCED if (low > 0) == positive else DIFFERS
    return Comparison(what, paper, ours, "the whole interval has one sign", verdict, why)


def at_accuracy(found: Comparison, ours: float, paper: float) -> Comparison:
    """A comparison of models whose test errors are ours and the paper's, in per cent: beyond NEAR
    points what would be reproduced has the same sign alone. NaN where an error is not known."""
    if found.verdict != REPRODUCED or abs(ours - paper) <= NEAR:
        return found
    why = f"{found.why}; test error {ours:.1f} %, the paper's {paper:.1f} %"
    return replace(found, verdict=SAME_SIGN, why=why)


def unchecked(what: str, paper: str, why: str, ours: str = "-") -> Comparison:
    """What there is nothing here to hold against."""
    return Comparison(what, paper, ours, "-", UNCHECKED, why)


def in_words(found: Iterable[Comparison]) -> str:
    """A line each, for a caption."""
    return "\n".join(str(each) for each in found)


def counted(found: Iterable[Comparison]) -> str:
    """'2 reproduced, 1 cannot be checked'."""
    verdicts = [each.verdict for each in found]
    return ", ".join(f"{verdicts.count(name)} {name}" for name in VERDICTS if name in verdicts)


def as_table(found: Iterable[Comparison]) -> pd.DataFrame:
    """A row each."""
    return pd.DataFrame([asdict(each) for each in found])
