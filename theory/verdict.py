"""The verdict: does X -> X + A X W oversmooth, and why (T1-T4, T6b).

Exact input is decided exactly (theory.decide_exactly); binary64 input numerically, with UNDECIDED
wherever rounding could turn the answer (theory.decide_numerically).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from theory.case import Case, make_case
from theory.certificates.verdicts import certify_case, certify_head
from theory.checks import check_square, one_of
from theory.decide_exactly import EXACT_SIZE, decide_exactly
from theory.decide_numerically import decide_numerically
from theory.errors import InputError
from theory.rational import rows_of
from theory.spectrum import head_spectrum, value_projection_spectrum
from theory.verdict_object import Verdict

__all__ = ["Verdict", "case_verdict", "check_depths", "verdict"]


def verdict(
    *,
    A: Any,
    H: Any = None,
    W: Any = None,
    X0: Any = None,
    depth: int | Iterable[int] = (),
    certified: bool = False,
) -> Verdict:
    """Does X' = X + A X W oversmooth? Exactly one of H = W^T and W; matrices by keyword only.

    A [n, n] row-stochastic; H or W [d, d], or W = (W_V, W_proj) with shapes [d, r] and [r, d], the
    factors of one head, whose d - r zero eigenvalues are then known exactly. X0 [n, d] and depths
    (layer counts) are optional. Entries that are all strings, integers or Fractions are decided
    exactly, others in binary64. certified: enclose the radii rigorously (status "certified"; a
    verdict in fractions stays "exact"); what cannot be enclosed is UNDECIDED. Raises `InputError`
    on illegal input.
    """
    depths = check_depths(depth)
    given = one_of(H, W)
    if given == "W" and isinstance(W, tuple) and len(W) == 2:
        return _head_verdict(A, W[0], W[1], X0, depths, certified)
    transposed = H if given == "H" else _transpose(W)
    return case_verdict(make_case(A, transposed, X0), depths, certified)


def _transpose(W: Any) -> Any:
    return [list(column) for column in zip(*rows_of(W, "W"), strict=True)]


def check_depths(depth: int | Iterable[int]) -> list[int]:
    """Depths as a sorted list of distinct integers >= 0. Raises `InputError` otherwise."""
    values = list(depth) if isinstance(depth, Iterable) else [depth]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"depth {value!r} must be an integer >= 0: a number of layers")
    return sorted({int(value) for value in values})


def _head_verdict(
    A: Any, W_V: Any, W_proj: Any, X0: Any, depths: list[int], certified: bool
) -> Verdict:
    first, second = np.asarray(W_V, dtype=np.float64), np.asarray(W_proj, dtype=np.float64)
    if first.ndim != 2 or second.shape != first.shape[::-1]:
        raise InputError(
            f"W = (W_V, W_proj) has shapes {list(first.shape)} and {list(second.shape)}; a head "
            "needs [d, r] and [r, d]"
        )
    H = check_square((first @ second).T, name="(W_V W_proj)^T")
    case = make_case(np.asarray(A, dtype=np.float64), H, X0)
    found = decide_numerically(case, depths, head_spectrum(first, second))
    return certify_head(case, found, (first, second)) if certified else found


def case_verdict(case: Case, depths: list[int], certified: bool = False) -> Verdict:
    """The verdict on a validated case, exactly where the input is exact and not too large."""
    if case.exact and max(case.n, case.d) <= EXACT_SIZE:
        return decide_exactly(case, depths)
    found = decide_numerically(case, depths, value_projection_spectrum(case.H))
    return certify_case(case, found) if certified else found
