"""Claims about one X_0: the modes that it contains, by Krylov vectors."""

from typing import Any

import flint

from oversmoothing.theory.checker.depth import check_depth
from oversmoothing.theory.checker.generic import check_genericity
from oversmoothing.theory.checker.krylov import minimal_polynomial
from oversmoothing.theory.checker.moduli import Modes, Pair, Sides
from oversmoothing.theory.checker.operators import systems
from oversmoothing.theory.checker.reading import Check, Given, Matrix
from oversmoothing.theory.checker.schema import Claim
from oversmoothing.theory.checker.spectra import TIE_SIZE, exact, has_polynomial, maximum
from oversmoothing.theory.checker.ties import tied

# Side of the largest operator whose powers are computed.
DEPTH_SIDE = 64


def check_x0(given: Given, claim: Claim) -> Check:
    """The coefficient of the dominant mode in X_0, the verdict for X_0, and the depth from which
    HFC/LFC <= eps.

    The modes that a start contains are the roots of its minimal polynomial under the operator:
    computed exactly from its Krylov vectors, without eigenvectors. Where the matrices are too large
    for that, or a softmax, a non-zero coefficient settles the verdict.
    """
    words = []
    if claim.coefficient is not None:
        found = check_genericity(given, claim.coefficient, claim.verdict == "SMOOTHING")
        if not found.accepted:
            return found
        words.append(found.words)
    if claim.verdict_x0 is not None:
        found = _check_verdict_x0(given, claim)
        if not found.accepted:
            return found
        words.append(found.words)
    if claim.depth is not None and claim.eps is not None:
        if given.A is None or not given.H or given.X0 is None:
            return Check(
                False, "a depth is confirmed for A and H in fractions or binary64 only", beyond=True
            )
        within = all(has_polynomial(M, TIE_SIZE) for M in (given.A, given.H))
        if (given.n - 1) * given.d > DEPTH_SIDE or not within:
            return Check(
                False, f"a depth is confirmed up to (n - 1) d = {DEPTH_SIDE} only", beyond=True
            )
        found = check_depth(given.A, given.H, given.X0, claim.depth, claim.eps)
        if not found.accepted:
            return found
        words.append(found.words)
    return Check(True, "; ".join(words))


def _check_verdict_x0(given: Given, claim: Claim) -> Check:
    stated, X = claim.verdict_x0, given.X0
    assert X is not None
    found = None
    if not any(map(any, X)):
        found = "UNDEFINED"
    elif claim.coefficient is not None:
        # The dominant mode stays for ever, so that the state never becomes 0.
        found = "TRIVIAL" if len(set(map(tuple, X))) == 1 else claim.verdict
    elif given.A is not None and all(has_polynomial(M, TIE_SIZE) for M in (given.A, given.H)):
        found = verdict_of(given.A, given.H, X)
    if found is None:
        return Check(False, "the modes of this X_0 could not be confirmed", beyond=True)
    if found != stated:
        return Check(False, f"for this X_0 the verdict is {found}, not {stated}")
    return Check(True, f"{found} for this X_0")


def verdict_of(A: Matrix, H: Matrix, X: Matrix) -> str | None:
    """The verdict over the modes that X_0 contains; None where it takes too long to tell."""
    if not any(map(any, X)):
        return "UNDEFINED"
    value = exact(H)
    polynomials = [minimal_polynomial(T, value, start) for T, start in systems(A, X)]
    if polynomials[0] is None or polynomials[1] is None:
        return None
    on_c, on_q = (_roots(polynomial, 160) for polynomial in polynomials)
    # Minimal polynomials: x^k stands for what is 0 after k layers.
    if all(root == 0 for root in on_c + on_q):
        return "UNDEFINED"
    if not on_q:
        return "TRIVIAL"
    if not on_c:
        return "NON_SMOOTHING"

    def order(*precisions: int) -> str | None:
        """Which of the largest roots is larger, where so many bits tell."""
        for bits in precisions:
            with flint.ctx.workprec(bits):
                tops = [maximum([abs(x) for x in _roots(p, bits)]) for p in polynomials]
            if tops[0] > tops[1]:
                return "SMOOTHING"
            if tops[0] < tops[1]:
                return "NON_SMOOTHING"
        return None

    def chosen(sides: Sides, bits: int) -> Sides:
        """The modes that may be a largest root of the minimal polynomial of their side."""
        return (
            _among(sides[0], _largest(_roots(polynomials[0], bits), bits)),
            _among(sides[1], _largest(_roots(polynomials[1], bits), bits)),
        )

    found = order(160, 2560)
    if found is not None:
        return found
    tie = tied(Modes(A, H), chosen)
    if isinstance(tie, tuple):
        return "TIE"
    return order(40960) if tie is None else None


def _roots(polynomial: Any, bits: int) -> list[Any]:
    with flint.ctx.workprec(bits):
        return [root for root, _ in polynomial.complex_roots()]


def _largest(roots: list[Any], bits: int) -> list[Any]:
    with flint.ctx.workprec(bits):
        top = maximum([abs(root) for root in roots])
        return [root for root in roots if not abs(root) < top]


def _among(pairs: list[Pair], roots: list[Any]) -> list[Pair]:
    return [pair for pair in pairs if any(pair.multiplier.overlaps(root) for root in roots)]
