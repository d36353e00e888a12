"""The golden cases: small examples with exact answers, each a landmark of the theory.

GT4 smooths although h < 0, GT5 does not although some h > 0, GT12 is a tie that a Jordan block
decides, GT19 a tie in which every cosine still tends to 1.
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any

from oversmoothing.theory.layer.layer import Entries, Layer, read_layer
from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.support.errors import unknown


@dataclass(frozen=True)
class GoldenCase:
    """A layer and X_0 in fractions and what is known of them (see `golden.json`)."""

    id: str
    layer: Layer
    start: Entries
    expected: dict[str, Any]

    @property
    def A(self) -> Matrix:
        """[n, n], in fractions."""
        return self.layer.rational_A

    @property
    def H(self) -> Matrix:
        """[d, d], in fractions."""
        return self.layer.rational_H

    @property
    def X0(self) -> Matrix:
        """[n, d], in fractions."""
        return self.start.fractions

    @property
    def verdict(self) -> str:
        """The verdict that is on record."""
        return str(self.expected["verdict"])

    def squared_ratio(self, depth: int) -> Fraction:
        """(HFC/LFC)^2 at a depth for which it is on record (1, 2, 5)."""
        return Fraction(self.expected["hfc_lfc_squared"][str(depth)])


@cache
def golden_cases() -> dict[str, GoldenCase]:
    """All golden cases by name."""
    data = json.loads(
        resources.files("oversmoothing.theory.claims").joinpath("golden.json").read_text("utf-8")
    )
    cases = {}
    for entry in data:
        name = entry.pop("id")
        layer, start = read_layer(*(entry.pop(key) for key in ("A", "H", "X0")))
        assert start is not None
        cases[name] = GoldenCase(name, layer, start, entry)
    return cases


def golden_case(name: str) -> GoldenCase:
    """One golden case. Raises `InputError` naming the known ones.

    >>> import oversmoothing
    >>> case = oversmoothing.golden_case("GT4")
    >>> case.layer.rational_H
    [[Fraction(-3, 2)]]
    """
    try:
        return golden_cases()[name.upper()]
    except KeyError:
        todo = f"--example takes {', '.join(golden_cases())}."
        raise unknown("example", name, golden_cases(), todo) from None
