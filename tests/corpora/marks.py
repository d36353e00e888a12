"""What is known to be wrong in a recorded answer, and what is right, computed apart from it.

A mark lets an answer be mended: a field that bears one may be as recorded or as is right. `take`
computes the marks anew, so that a field that was mended bears none.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import mpmath

from tests.corpora.cases import Rows, case
from tests.corpora.comparing import tolerances_of, within
from tests.corpora.theory import near_tie

# Of eigenvalues that differ by 1e-40, and of Jordan blocks of side 4, 20 digits are left.
WORKED_IN = 250
BESIDE_EXACT = "a float beside 'exact': not the exact value rounded once"
GROUPED = (
    "heads in groups share their values, so that H of these 32 features has rank 16: the "
    "eigenvectors of its 16 eigenvalues 0 are those that rounding takes"
)
Mark = dict[str, Any]


def marks(corpus: str, name: str, answer: Any) -> dict[str, Mark]:
    """By field: the reason, and what is right where it is known."""
    if (corpus, name) == ("inspect", "llama"):
        return {"layers.condition_V_H": {"known_wrong": GROUPED}}
    if corpus not in ("verdicts", "near_ties") or answer["status"] != "exact":
        return {}
    found = {}
    given = case(int(name)) if corpus == "verdicts" else near_tie(int(name))
    table = tolerances_of(corpus, name, answer)
    for field, right in right_radii(given["A"], given["H"]).items():
        if answer[field] is not None and not within(
            table, (field,), answer[field], right, answer, answer
        ):
            found[field] = {"known_wrong": BESIDE_EXACT, "right": right}
    return found


def right_radii(A: Iterable[Iterable[Any]], H: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """rho_C, rho_Q, their difference and quotient from 250 digits, each rounded once."""
    rows = [[Fraction(x) for x in row] for row in A]
    if len(rows) == 1:
        return {}
    # B'_ij = A_ij - A_nj has the eigenvalues of A but one 1 (T1c).
    quotient = [[x - y for x, y in zip(row[:-1], rows[-1], strict=False)] for row in rows[:-1]]
    with mpmath.workdps(WORKED_IN):
        a, h = eigenvalues(quotient), eigenvalues([[Fraction(x) for x in row] for row in H])
        consensus = max(abs(1 + y) for y in h)
        quotients = max(abs(1 + y * x) for y in h for x in a)
        margin = consensus - quotients
        if abs(margin) < mpmath.mpf(10) ** (-WORKED_IN // 5):
            margin, quotients = mpmath.mpf(0), consensus
        found = {"rho_consensus": consensus, "rho_quotient": quotients, "margin": margin}
        if consensus or quotients:
            found["rate"] = quotients / consensus if consensus else mpmath.inf
        return {name: "inf" if mpmath.isinf(x) else float(x) for name, x in found.items()}


def eigenvalues(M: Rows) -> list[Any]:
    matrix = mpmath.matrix([[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in M])
    if len(M) == 1:
        return [matrix[0, 0]]
    return list(mpmath.eig(matrix, left=False, right=False))
