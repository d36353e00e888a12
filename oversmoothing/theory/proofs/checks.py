"""The checks that steps of proofs execute, each raises where it fails; and which assertions ran.

A state at every depth L at once is a formula in sympy, proved by `induction` over the layers. What
asserts nothing checks nothing: `executed` counts the assertions of a check.
"""

import ast
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from textwrap import shorten
from types import CodeType, FrameType
from typing import Any

import sympy as sp

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.proofs.claim import Hypothesis, Instance

# Of the balls in which states are measured.
BITS = 1536


def entries(value: Any) -> list[Any]:
    """A scalar, a matrix or nested lists as one flat list; None: nothing."""
    if value is None:
        return []
    if isinstance(value, sp.MatrixBase):
        return list(value)
    if isinstance(value, list | tuple):
        return [entry for part in value for entry in entries(part)]
    return [value]


def is_zero(value: Any) -> bool:
    """Whether fractions are 0, or expressions of sympy identically 0, every entry of them.

    Raises ValueError where there are no entries.
    """
    parts = entries(value)
    if not parts:
        raise ValueError("nothing is there to be 0")
    return all(simplified(entry) == 0 for entry in parts)


def simplified(entry: Any) -> Any:
    """An expression of sympy, expanded and simplified as far as it goes; a number as it is."""
    if not isinstance(entry, sp.Basic):
        return entry
    expanded = sp.expand(entry, power_exp=True)
    return expanded if expanded == 0 else sp.simplify(expanded)


def vanishes(value: Any) -> None:
    """Every entry is identically 0."""
    for entry in entries(value):
        left = simplified(entry)
        assert left == 0, f"the residual is {left}, not 0"


def equal(value: object, expected: object) -> None:
    assert value == expected, f"found {value}, expected {expected}"


def meets(hypotheses: Sequence[Hypothesis], case: Instance) -> None:
    """The instance satisfies every hypothesis."""
    unmet = [h.words for h in hypotheses if not h.holds(case)]
    assert not unmet, f"not satisfied: {unmet}"


# ------------------------------------------------------------------------- at all depths at once

L = sp.Symbol("L", integer=True, nonnegative=True)


def symbolic(X: Matrix) -> sp.Matrix:
    """The same matrix in sympy."""
    return sp.Matrix([[sp.Rational(x.numerator, x.denominator) for x in row] for row in X])


def induction(A: Matrix, H: Matrix, X0: Matrix, state: sp.Matrix) -> None:
    """X_L = state(L) for all L: X_0 at L = 0, and one layer takes state(L) to state(L + 1)."""
    a, w, x0 = symbolic(A), symbolic(H).T, symbolic(X0)
    vanishes(state.subs(L, 0) - x0)
    vanishes(state.subs(L, L + 1) - state - a * state * w)


def around(mean: Any, half: Any) -> sp.Matrix:
    """Two tokens of one feature: mean - half and mean + half."""
    return sp.Matrix([mean - half, mean + half])


def squared_ratio(state: sp.Matrix) -> sp.Expr:
    """(HFC/LFC)^2 of a state in sympy, real entries."""
    n = state.rows
    mean = [sum(state[i, j] for i in range(n)) / n for j in range(state.cols)]
    hfc = sum((state[i, j] - mean[j]) ** 2 for i in range(n) for j in range(state.cols))
    return sp.simplify(sp.expand(hfc) / sp.expand(n * sum(m**2 for m in mean)))


def ratio_is(state: sp.Matrix, squared: Any) -> None:
    """(HFC/LFC)^2 of the state is this expression in L."""
    vanishes(squared_ratio(state) - squared)


# ---------------------------------------------------------------------------- what was executed

# Assertions count where they stand in a claim, in the checks that claims share, or in the file of
# the check itself.
_OURS = ("/theory/claims/", "/theory/proofs/checks.py")


@cache
def _asserted_lines(path: str) -> frozenset[int]:
    """The lines of a file on which an assertion stands, whole."""
    try:
        tree = ast.parse(Path(path).read_text("utf-8"))
    except (OSError, SyntaxError):
        return frozenset()
    assertions = (node for node in ast.walk(tree) if isinstance(node, ast.Assert))
    return frozenset(
        k for node in assertions for k in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


def executed(check: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """What the check returns, and how many lines of assertions ran while it did."""
    own = _file(check)
    count = 0

    def within(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "line" and frame.f_lineno in _asserted_lines(frame.f_code.co_filename):
            count += 1
        return within

    def entering(frame: FrameType, event: str, _: Any) -> Any:
        path = frame.f_code.co_filename
        ours = path == own or any(part in path for part in _OURS)
        return within if ours else None

    before = sys.gettrace()
    sys.settrace(entering)
    try:
        return check(*arguments), count
    finally:
        sys.settrace(before)


def raised_at(error: BaseException, check: Any) -> str:
    """Where in the file of the check the error arose: "mine.py, line 12 (`return a / b`): "; empty
    where it arose elsewhere."""
    own = _file(check)
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    if not own or not lines:
        return ""
    return located(Path(own).name, lines[-1])


def located(file: str, frame: traceback.FrameSummary) -> str:
    """ "mine.py, line 12 (`return a / b`): "."""
    return f"{file}, line {frame.lineno} (`{shorten(frame.line or '', 80, placeholder=' ...')}`): "


def stated_at(check: Any) -> str:
    """Where the check begins: "mine.py, line 10: "; empty where nothing says so."""
    code = _code(check)
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}: " if code else ""


def _code(check: Any) -> CodeType | None:
    while hasattr(check, "func"):
        check = check.func
    code = getattr(check, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _file(check: Any) -> str:
    code = _code(check)
    return code.co_filename if code else ""
