"""Claims about one X_0: the modes that it contains, by Krylov vectors."""

from fractions import Fraction
from typing import Any

import flint

from oversmoothing.theory.checker.depth import check_depth
from oversmoothing.theory.checker.generic import NON_ZERO, check_genericity
from oversmoothing.theory.checker.operators import operators
from oversmoothing.theory.checker.reading import Check, Given, Matrix, NotACertificate
from oversmoothing.theory.checker.spectra import maximum
from oversmoothing.theory.checker.ties import TIE_BITS, tie_bits

# Largest n and d for which Krylov vectors are computed exactly.
KRYLOV_SIZE = 8


def check_x0(given: Given, claim: dict[str, Any]) -> Check:
    """The coefficient of the dominant mode in X_0, the verdict for X_0, and the depth from which
    HFC/LFC <= eps.

    The modes that a start contains are the roots of its minimal polynomial under the operator:
    computed exactly from its Krylov vectors, without eigenvectors. Where the matrices are too large
    for that, or a softmax, a non-zero coefficient settles the verdict.
    """
    if given.X0 is None:
        raise NotACertificate("a claim about X_0 needs X0")
    words = []
    generic = False
    if "genericity" in claim:
        found = check_genericity(given, claim["genericity"], str(claim["verdict"]))
        if not found.accepted:
            return found
        generic = claim["genericity"]["status"] == NON_ZERO
        words.append(found.words)
    if "verdict_x0" in claim:
        found = _check_verdict_x0(given, claim, generic)
        if not found.accepted:
            return found
        words.append(found.words)
    if "depth" in claim:
        found = _check_depth(given, claim)
        words.append(found.words)
    return Check(found.accepted, "; ".join(words) if found.accepted else found.words)


def _check_verdict_x0(given: Given, claim: dict[str, Any], generic: bool) -> Check:
    stated, X = claim["verdict_x0"], given.X0
    assert X is not None
    if given.A is not None and given.H and max(given.n, given.d) <= KRYLOV_SIZE:
        found = verdict_of(given.A, given.H, X)
    elif not any(map(any, X)):
        found = "UNDEFINED"
    else:
        flat = all(row == X[0] for row in X)
        found = ("TRIVIAL" if flat else str(claim["verdict"])) if generic else None
    if found is None or found != stated:
        return Check(False, f"for this X_0 the verdict is {found}, not {stated}")
    return Check(True, f"{found} for this X_0")


def _check_depth(given: Given, claim: dict[str, Any]) -> Check:
    try:
        depth, eps = int(claim["depth"]), Fraction(str(claim["eps"]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise NotACertificate(f"depth or eps is malformed ({error})") from error
    if depth < 0 or eps <= 0 or claim.get("verdict_x0") not in ("SMOOTHING", "TRIVIAL"):
        return Check(False, "a certified depth needs a smoothing X_0, depth >= 0 and eps > 0")
    if given.A is None or not given.H or given.X0 is None:
        return Check(False, "a depth is confirmed for A and H in fractions or binary64 only")
    return check_depth(given.A, given.H, given.X0, depth, eps)


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


def verdict_of(A: Matrix, H: Matrix, X: Matrix) -> str | None:
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
