"""The oracle itself: by hand, against brute iteration in integers, and that it stands alone."""

from __future__ import annotations

import ast
import sys
from fractions import Fraction
from math import isclose, isnan, sqrt
from pathlib import Path

import pytest

from .depths import log_ratio, norms, states
from .draw import as_read, draw
from .moduli import TooHard
from .named import NAMED
from .system import System
from .truth import truth

# What holds the project against the oracle, and nothing else, may import the project.
_MEETS_THE_PROJECT = {"compare.py", "__main__.py"}
_TWO = [["3/4", "1/4"], ["1/4", "3/4"]]
_THREE = [["4/5", "1/10", "1/10"], ["3/10", "3/5", "1/10"], ["1/2", "1/5", "3/10"]]
_FLAT = [["1/2", "1/2"], ["1/2", "1/2"]]
_TURN = [["1/10", "4/5", "1/10"], ["1/10", "1/10", "4/5"], ["4/5", "1/10", "1/10"]]
_START = [[1, 2], [3, 5]]


def test_it_imports_the_standard_library_and_itself() -> None:
    for path in Path(__file__).parent.glob("*.py"):
        if path.name in _MEETS_THE_PROJECT or path.name.startswith("test_"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                assert name.split(".")[0] in sys.stdlib_module_names, f"{path.name}: {name}"


@pytest.mark.parametrize(
    ("A", "H", "X0", "verdict", "verdict_x0", "tends_to", "limit", "rank"),
    [
        (_TWO, [["1/2"]], [[1], [2]], "SMOOTHING", "SMOOTHING", "zero", 0, 1),
        (_TWO, [["-1/2"]], [[1], [2]], "NON_SMOOTHING", "NON_SMOOTHING", "infinity", None, 1),
        (_TWO, [["-4/3"]], [[1], [2]], "TIE", "TIE", "constant", 1 / 3, 1),
        (_THREE, [["-1/2"]], [[1], [2], [4]], "NON_SMOOTHING", "NON_SMOOTHING", "constant",
         8 * sqrt(2) / 5, 1),
        (_FLAT, [["-1/2", -2], [2, "-1/2"]], _START, "SMOOTHING", "SMOOTHING", "zero", 0, 1),
        (_FLAT, [[0, 1], [0, 0]], _START, "TIE", "TIE", "zero", 0, 1),
        (_TWO, [[0, 0], [0, -1]], [[1, 1], [1, -1]], "TIE", "SMOOTHING", "zero", 0, 1),
        (_TURN, [["1/5", "-3/2"], ["3/2", "1/5"]], [[1, 0], [2, 3], [4, 1]], "NON_SMOOTHING",
         "NON_SMOOTHING", "infinity", None, 2),
        ([[0, 1], [1, 0]], [["-1/2"]], [[1], [3]], "NON_SMOOTHING", "NON_SMOOTHING", "infinity",
         None, 1),
        ([[0, 1, 0], [0, "1/2", "1/2"], [0, 1, 0]], [[1]], [[1], [1], [1]], "SMOOTHING", "TRIVIAL",
         "zero", 0, 1),
        ([[1]], [[-1]], [[3]], "TRIVIAL", "UNDEFINED", None, None, None),
        (_TWO, [[-1]], [[2], [2]], "NON_SMOOTHING", "UNDEFINED", None, None, None),
        (_TWO, [[-1]], [[0], [0]], "UNDEFINED", "UNDEFINED", None, None, None),
    ],
)  # fmt: skip
def test_by_hand(A, H, X0, verdict, verdict_x0, tends_to, limit, rank) -> None:
    A, H, X0 = ([[Fraction(x) for x in row] for row in M] for M in (A, H, X0))
    found = truth(A, H, X0)
    assert (found.verdict, found.verdict_x0) == ({verdict}, {verdict_x0})
    assert (found.tends_to, found.limit_rank) == (tends_to, rank)
    if tends_to == "constant":
        low, high = found.limit
        assert low <= high and isclose(low, limit, rel_tol=1e-12)
    elif tends_to == "zero":
        assert found.limit == 0


@pytest.mark.parametrize("index", range(120))
def test_brute_iteration_shows_what_the_oracle_says(index: int) -> None:
    case = draw(7, index)
    A, H, X0 = as_read(case)
    try:
        found = truth(A, H, X0)
    except TooHard:
        pytest.skip("too hard for the oracle")
    system = System(A, H)
    early, late = range(200, 212), range(400, 412)
    if case.numbers == "rounded" or any(
        x.denominator > 10**4 for M in (A, H, X0) for row in M for x in row
    ):
        pytest.skip("its limits show at other depths")
    reached = states(system, X0, [*early, *late])
    before, logs = ([log_ratio(*norms(reached[L])) for L in depths] for depths in (early, late))
    if found.tends_to is None:
        assert all(map(isnan, logs))
        return
    assert not any(map(isnan, logs))
    slow = 1e-3
    if found.tends_to == "zero":
        assert max(logs) == -float("inf") or max(logs) < max(before) - slow / 10
    elif found.tends_to == "infinity":
        assert min(logs) == float("inf") or min(logs) > min(before) + slow / 10
    elif found.tends_to == "constant":
        low, high = found.limit
        gap = [
            abs(x - log_ratio((low * high).numerator, (low * high).denominator))
            for x in (*logs, *before)
        ]
        assert max(gap[:12]) < max(1e-9, max(gap[12:])), gap
    else:
        assert max(logs) - min(logs) > 1e-9


def test_the_named_cases_have_answers() -> None:
    for case in NAMED:
        assert truth(*as_read(case)).verdict
