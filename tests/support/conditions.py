"""The value of a condition at a point, by 80 digits and none of the verdict's code.

Eigenvalues that a condition has by name (the least of H) come from the characteristic polynomial.
What is below 1e-50 counts as 0: what is compared is algebraic of small degree and height, and no
such number but 0 is so small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import mpmath as mp
import sympy as sp

DIGITS, ZERO = 80, mp.mpf(10) ** -50


@cache
def _evaluator(expression: Any, symbols: tuple[Any, ...]) -> Callable[..., Any]:
    return sp.lambdify(symbols, expression, "mpmath")


def holds(condition: Any, point: Mapping[Any, Any]) -> bool:
    """Whether it holds at rational values of its symbols."""
    with mp.workdps(DIGITS):
        truth = _truth(condition, {s: _number(x) for s, x in point.items()})
    assert truth is not None, f"{condition} hangs on a number that is not real"
    return truth


def _number(x: Any) -> Any:
    return mp.mpf(int(x.p)) / int(x.q) if isinstance(x, sp.Rational) else mp.mpf(x)


def _truth(condition: Any, values: Mapping[Any, Any]) -> bool | None:
    """None where a number is not real: guards beside it decide."""
    if condition in (sp.true, sp.false):
        return bool(condition)
    if isinstance(condition, sp.Not):
        inside = _truth(condition.args[0], values)
        return None if inside is None else not inside
    if isinstance(condition, sp.And | sp.Or):
        deciding = isinstance(condition, sp.Or)
        parts = [_truth(part, values) for part in condition.args]
        return deciding if deciding in parts else None if None in parts else not deciding
    symbols = tuple(sorted(condition.free_symbols, key=str))
    found = _evaluator(condition.lhs - condition.rhs, symbols)(*(values[s] for s in symbols))
    if abs(mp.im(found)) > ZERO:
        return None
    x = mp.re(found)
    sign = 0 if abs(x) < ZERO else 1 if x > 0 else -1
    return {">": sign > 0, "<": sign < 0, ">=": sign >= 0, "<=": sign <= 0,
            "==": sign == 0, "!=": sign != 0}[condition.rel_op]  # fmt: skip


def extremes(names: Mapping[Any, str], A: Any, H: Any) -> dict[Any, Any]:
    """The values of named eigenvalues of rational matrices with real spectra."""
    values = {}
    for symbol, words in names.items():
        M = H if words.endswith("of H") else A
        polynomial = M.charpoly().as_expr()
        x = next(iter(polynomial.free_symbols))
        if M is A:  # without one eigenvalue 1
            polynomial = sp.cancel(polynomial / (x - 1))
        roots = []
        for factor, _ in sp.factor_list(polynomial)[1]:
            roots += [sp.re(root) for root in sp.Poly(factor, x).nroots(n=DIGITS, maxsteps=500)]
        values[symbol] = min(roots) if "least" in words else max(roots)
    return values
