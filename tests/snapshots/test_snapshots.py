"""The answers of the project are those of the snapshots: values to rounding, words aside."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.snapshots.take import SNAPSHOTS, kept

# Another LAPACK rounds otherwise: simple eigenvalues at these sizes move by some 1e-14. What holds
# a Jordan block, whose eigenvalues move by a root of eps, is UNDECIDED or decided in fractions.
RELATIVE, ABSOLUTE = 1e-7, 1e-9


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """Where two answers differ by more than rounding."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = [f"{where}: {key} is not in both" for key in sorted(old.keys() ^ new.keys())]
        for key in sorted(old.keys() & new.keys()):
            found += differences(old[key], new[key], f"{where}.{key}")
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            line
            for k, (a, b) in enumerate(zip(old, new, strict=True))
            for line in differences(a, b, f"{where}[{k}]")
        ]
    if isinstance(old, bool) or isinstance(new, bool):
        return [] if old is new else [f"{where}: {old!r} -> {new!r}"]
    a, b = number(old), number(new)
    if a is not None and b is not None:
        close = math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        return [] if close else [f"{where}: {old!r} -> {new!r}"]
    return [] if old == new else [f"{where}: {old!r} -> {new!r}"]


def number(value: Any) -> float | None:
    """A JSON number, or a hexadecimal one of a certificate; None for anything else."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and value.lstrip("-").startswith("0x"):
        return float.fromhex(value)
    return None


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_answers_are_those_of_the_snapshot(name: str) -> None:
    old, new = kept(name), SNAPSHOTS[name]()
    assert len(old) == len(new)
    found = [
        line
        for k, (a, b) in enumerate(zip(old, new, strict=True))
        for line in differences(a, b, f"{name} {k}")
    ]
    assert not found, f"{len(found)} differences: " + "; ".join(found[:10])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": 1.0}, {"a": 1.0 + 1e-6}),
        ({"a": "SMOOTHING"}, {"a": "TIE"}),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}),
        ({"a": None}, {"a": 0.0}),
        ({"a": True}, {"a": 1}),
        ({"a": 1}, {"a": 1, "b": None}),
        ({"a": "0x1.0p0"}, {"a": "0x1.00001p0"}),
    ],
)
def test_a_difference_is_seen(old: Any, new: Any) -> None:
    assert differences(old, new)
