"""T10: what interval certificates decide, and why no enclosure certifies a tie."""

from fractions import Fraction

import numpy as np
import sympy as sp

from oversmoothing.theory.certificates.certified_radii import certified_dominance
from oversmoothing.theory.numbers.rational import to_float
from oversmoothing.theory.proofs.kit import AA, Claim, Matrix, by, draw, given, verdict


def _isolated() -> sp.Expr:
    """[2; instance] Replace H by H + e I, so h_j by h_j + e. |1 + h + e|^2 - |1 + (k + e) a|^2 is a
    polynomial in e with leading coefficient 1 - |a|^2 > 0, for every pair of a consensus mode h and
    a mode (k, a) of the quotient. Were the largest of both sides equal on an interval of e, one
    such pair would tie at infinitely many e, which no such polynomial does. So every neighbourhood
    of a tie holds cases without one."""
    x, y, p, q, u, v, e = sp.symbols("x y p q u v e", real=True)
    gap = (1 + x + e) ** 2 + y**2 - (1 + (p + e) * u - q * v) ** 2 - ((p + e) * v + q * u) ** 2
    return sp.Poly(sp.expand(gap), e).coeff_monomial(e**2) - (1 - u**2 - v**2)


def _rounded() -> None:
    """[3; instance] h = -4/3 ties for a = 1/2; the binary64 number next to -4/3 lies above it and
    is NON_SMOOTHING, and is certified to be."""
    assert verdict(A=AA, H=[[Fraction(-4, 3)]]).verdict == "TIE"
    assert Fraction(-4 / 3) > Fraction(-4, 3)
    found = verdict(A=to_float(AA), H=[[-4 / 3]], certified=True)
    assert (found.verdict, found.status) == ("NON_SMOOTHING", "certified")


def _law(attention: tuple[Matrix, Fraction], e: Fraction) -> None:
    A, a = attention
    h = -2 / (1 + a)
    assert verdict(A=A, H=[[h]]).verdict == "TIE" != verdict(A=A, H=[[h + e]]).verdict


def _certify(effort: by.Effort) -> by.Settled:
    """Small binary64 cases: what is certified is what the same numbers give exactly."""
    rng = np.random.default_rng([10, effort.seed])
    for _ in range(12):
        # Multiples of 1/16 with row sums 1, and of 1/8: the floats are the fractions.
        weights = rng.multinomial(12, [1 / 4] * 4, size=4) + 1
        A = [[Fraction(int(k), 16) for k in row] for row in weights]
        H = [[Fraction(int(k), 8) for k in row] for row in rng.integers(-24, 12, size=(3, 3))]
        found = certified_dominance(to_float(A), to_float(H)).verdict
        if found == "UNDECIDED":
            yield False
        else:
            agree = found == verdict(A=A, H=H).verdict
            yield agree or f"A = {by.show(A)}, H = {by.show(H)}: {found}"


CLAIM = Claim(
    name="T10",
    clauses=(
        "Let R be enclosed in balls of positive radius and similar to B by a certified inverse. "
        "The Gershgorin discs of R, radii rounded outwards, cover spec(B), and a connected "
        "component of k discs holds k eigenvalues; so intervals for rho_C and rho_Q that do not "
        "meet decide SMOOTHING or NON_SMOOTHING.",
        "No such certificate decides a TIE: for positive A, n >= 2, every neighbourhood of a tie"
        " holds cases without one.",
        "Ties need exact input: h = -4/3, a = 1/2 is a TIE, and its nearest binary64 number is "
        "NON_SMOOTHING.",
    ),
    latex=r"\operatorname{spec}(B)\subset\bigcup_i\overline D\Big(R_{ii},\sum_{j\ne i}|R_{ij}|"
    r"\Big),\qquad R=V^{-1}BV",
    source="ours; Gershgorin (1931) for the discs",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.written(
            "what an enclosure can say",
            "[1] For an eigenvector x of R with largest entry x_i, (r - R_ii) x_i = sum_(j != i) "
            "R_ij x_j: |r - R_ii| <= sum |R_ij|. Along R_t = diag + t (R - diag) the discs grow "
            "with t and eigenvalues move continuously: a component keeps its k eigenvalues. Larger"
            " radii only widen the discs; B and R are similar.",
            "[1] Each multiplier 1 + h a then lies in a known set, so rho_C and rho_Q lie in known"
            " intervals; where these are disjoint, the order of the true numbers is decided.",
            _isolated,
            "[2] A certificate from balls of positive radius around (A, H) holds for all of a "
            "neighbourhood; by the last step it cannot say TIE.",
            _rounded,
        ),
        by.Certified("certified verdicts against exact ones, in binary64", _certify),
        by.searched(
            "two tokens at their threshold, and beside it",
            _law,
            draw.two_token_attention(),
            draw.fractions(-1, 1).filter(bool),
            at=lambda attention, e: (attention[0], [[e]]),
        ),
    ),
    further="The queries for all reals (Q1-Q18) stand in T1-T8, each with its false neighbours.",
)
