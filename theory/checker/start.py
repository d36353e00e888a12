"""Claims about one X_0: the modes that it contains, by Krylov vectors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint

from theory.checker.depth import check_depth
from theory.checker.operators import operators
from theory.checker.reading import Check, NotACertificate
from theory.checker.spectra import maximum
from theory.checker.ties import TIE_BITS, tie_bits


def check_x0(
    A: list[list[Fraction]], H: list[list[Fraction]], given: dict[str, Any], claim: dict[str, Any]
) -> Check:
    """The verdict over the modes of X_0, and the depth from which HFC/LFC <= eps.

    The modes that a start contains are the roots of its minimal polynomial under the operator:
    computed exactly from its Krylov vectors, without eigenvectors.
    """
    try:
        kind = given["numbers"]
        X = [
            [Fraction(x) if kind == "fractions" else Fraction(float.fromhex(x)) for x in row]
            for row in given["X0"]
        ]
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise NotACertificate(f"X0 is malformed ({error})") from error
    if len(X) != len(A) or any(len(row) != len(H) for row in X):
        raise NotACertificate("X0 has the wrong shape")
    found = verdict_of(A, H, X)
    if found is None or found != claim.get("verdict_x0"):
        return Check(False, f"for this X_0 the verdict is {found}, not {claim.get('verdict_x0')}")
    if "depth" not in claim:
        return Check(True, f"{found} for this X_0")
    try:
        depth, eps = int(claim["depth"]), Fraction(str(claim["eps"]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise NotACertificate(f"depth or eps is malformed ({error})") from error
    if depth < 0 or eps <= 0 or found not in ("SMOOTHING", "TRIVIAL"):
        return Check(False, "a certified depth needs a smoothing X_0, depth >= 0 and eps > 0")
    return check_depth(A, H, X, depth, eps)


def _moduli_of_start(operator: Any, start: Any, bits: int) -> list[Any]:
    """|root| of the minimal polynomial of a vector under an operator (none for the zero vector)."""
    vectors = [start]
    rank = 0
    while True:
        table = flint.fmpq_mat([[v.entries()[i] for v in vectors] for i in range(start.nrows())])
        if table.rank() == rank:
            break
        rank += 1
        vectors.append(operator * vectors[-1])
    if rank == 0:
        return []
    # v_rank = sum of x_k v_k, from the normal equations of the independent columns.
    left = flint.fmpq_mat([[v.entries()[i] for v in vectors[:-1]] for i in range(start.nrows())])
    x = (left.transpose() * left).solve(left.transpose() * vectors[-1]).entries()
    polynomial = flint.fmpq_poly([-entry for entry in x] + [1])
    with flint.ctx.workprec(bits):
        roots: list[Any] = polynomial.numer().complex_roots()
        return [abs(root) for root, _ in roots]


def verdict_of(
    A: list[list[Fraction]], H: list[list[Fraction]], X: list[list[Fraction]]
) -> str | None:
    """The verdict over the modes that X_0 contains; None where balls of 2560 bits cannot tell."""
    if not any(map(any, X)):
        return "UNDEFINED"
    parts = operators(A, H, X)
    if parts is None:
        return None
    consensus, c, block, y = parts
    needed = tie_bits(A, H)
    last = int(needed) + 256 if needed <= TIE_BITS else 2560
    for bits in (160, 2560, last):
        on_c = _moduli_of_start(consensus, c, bits)
        on_q = [] if block is None else _moduli_of_start(block, y, bits)
        with flint.ctx.workprec(bits):
            alive = [m for m in (*on_c, *on_q) if not m.contains(0)]
            if not alive:
                return "UNDEFINED"
            if not on_q:
                return "TRIVIAL"
            if not on_c:
                return "NON_SMOOTHING"
            top_c, top_q = maximum(on_c), maximum(on_q)
            if top_c > top_q:
                return "SMOOTHING"
            if top_c < top_q:
                return "NON_SMOOTHING"
    # The moduli agree to the bits at which two of them that differ would have shown it.
    return "TIE" if last > needed else None
