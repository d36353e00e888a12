"""The verdict: does X -> X + A X W oversmooth, and why (T1-T4, T6b).

Exact input is decided exactly (theory.verdict.exact_verdict); binary64 input numerically, with
UNDECIDED wherever rounding could turn the answer (theory.verdict.float_verdict).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from oversmoothing.theory.certificates.certified_verdict import certify_case
from oversmoothing.theory.layer.case import Case, make_case
from oversmoothing.theory.layer.checks import one_of
from oversmoothing.theory.numbers.rational import rows_of
from oversmoothing.theory.spectra.spectrum import head_spectrum, value_projection_spectrum
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.exact_verdict import EXACT_SIZE, decide_exactly
from oversmoothing.theory.verdict.float_verdict import decide_numerically

__all__ = ["Verdict", "case_verdict", "check_depths", "verdict"]


def verdict(
    *,
    A: Any = None,
    logits: Any = None,
    H: Any = None,
    W: Any = None,
    X0: Any = None,
    depth: int | Iterable[int] = (),
    certified: bool = False,
) -> Verdict:
    """Does X' = X + A X W oversmooth? Exactly one of A and logits, and of H = W^T and W.

    Matrices go by keyword only: A [n, n] row-stochastic, or the logits [n, n] whose softmax it is
    (-inf masks); H or W [d, d], or W = (W_V, W_proj) with shapes [d, r] and [r, d], the factors of
    one head, whose d - r zero eigenvalues are then known exactly. X0 [n, d] and depths (layer
    counts) are optional. Entries that are all strings, integers or Fractions are decided exactly
    (except logits), others in binary64. certified: enclose the radii rigorously (status
    "certified"; a verdict in fractions stays "exact"); what cannot be enclosed is UNDECIDED.
    Raises `InputError` on illegal input.
    """
    depths = check_depths(depth)
    if one_of(H, W) == "W" and isinstance(W, tuple) and len(W) == 2:
        return case_verdict(make_case(A, None, X0, logits=logits, factors=W), depths, certified)
    transposed = H if W is None else _transpose(W)
    return case_verdict(make_case(A, transposed, X0, logits=logits), depths, certified)


def _transpose(W: Any) -> Any:
    return [list(column) for column in zip(*rows_of(W, "W"), strict=True)]


def check_depths(depth: int | Iterable[int]) -> list[int]:
    """Depths as a sorted list of distinct integers >= 0. Raises `InputError` otherwise."""
    values = list(depth) if isinstance(depth, Iterable) else [depth]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"depth {value!r} must be an integer >= 0: a number of layers")
    return sorted({int(value) for value in values})


def case_verdict(case: Case, depths: list[int], certified: bool = False) -> Verdict:
    """The verdict on a validated case, exactly where the input is exact and not too large."""
    if case.exact and max(case.n, case.d) <= EXACT_SIZE:
        return decide_exactly(case, depths)
    known = case.factors
    value = value_projection_spectrum(case.H) if known is None else head_spectrum(*known)
    found = decide_numerically(case, depths, value)
    return certify_case(case, found) if certified else found
