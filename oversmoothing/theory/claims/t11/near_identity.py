"""T11.2: attention near the identity smooths, but at depths of order 1/(share of mixing)."""

from fractions import Fraction

import flint
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t7.oscillation import dobrushin
from oversmoothing.theory.numbers.balls import at_precision, to_ball
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, verdict

_DEPTHS = {2: 2069, 4: 207230, 6: 20723263}


def _rate(h: Fraction, share: Fraction) -> Fraction:
    return (1 + h * (1 - share)) / (1 + h)


def _spectrum() -> None:
    """[1; instance] A is (1-s) on the vectors orthogonal to 1 and 1 on 1; both spaces are
    orthogonal, so P X_L = (1 + h(1-s))^L P X_0 and LFC_L = (1 + h)^L LFC_0: the ratio is r^L times
    that of X_0."""
    for share in (Fraction(1, 100), Fraction(1, 10**6)):
        for n in (2, 5):
            found = verdict(A=exact.flat(1 - share, n), H=exact.matrix("1/2"))
            assert found.verdict == "SMOOTHING" and found.attention is not None
            assert found.rate is not None
            rate = float(_rate(Fraction(1, 2), share))
            # rho_Q and rho_C are rounded once each, their quotient once more.
            assert abs(found.rate - rate) <= 3 * 2.0**-53 * rate


def _dobrushin() -> None:
    """[4; instance] Rows i and k of A differ in two places by 1-s each: tau = (1-s)."""
    for n in (2, 3, 5):
        assert dobrushin(exact.flat("6/7", n)) == Fraction(6, 7)


def _depths() -> None:
    """[2, 3; instance] x <= -log(1-x) <= x/(1-x) for 0 <= x < 1: equal at 0, and the derivatives
    are 1 <= 1/(1-x) <= 1/(1-x)^2. The first L with r^L <= eps is ceil(log(1/eps)/-log(1-x)).
    Executed in balls for the three depths."""
    for exponent, depth in _DEPTHS.items():
        with at_precision(256):
            log = to_ball(_rate(Fraction(1, 2), Fraction(1, 10**exponent))).log()
            goal = flint.arb(1000).log()
            assert depth * log < -goal < (depth - 1) * log, exponent
            x = to_ball(Fraction(1, 3) / 10**exponent)
            assert (1 / x - 1) * goal <= depth <= goal / x + 1, exponent


def _law(n: int, share: Fraction, h: Fraction, entries: list[list[int]], depth: int) -> None:
    A, X = exact.flat(1 - share, n), exact.from_integers(entries[:n])
    hfc, lfc = exact.squared_norms(X)
    assume(lfc != 0)
    moved = exact.squared_norms(exact.layer(A, exact.diagonal([h, h]), X, depth))
    assert moved[0] * lfc == _rate(h, share) ** (2 * depth) * hfc * moved[1]
    assert verdict(A=A, H=[[h]]).verdict == "SMOOTHING"


def _mixes(A: Matrix) -> bool:
    return A[0][-1] > 0 and exact.flat(1 - A[0][-1] * len(A), len(A)) == A


def _scalar(H: Matrix) -> bool:
    return H[0][0] > 0 and exact.identity(len(H), H[0][0]) == H


CLAIM = Claim(
    name="T11.2",
    clauses=(
        "A = (1-s) I + s 11^T/n, 0 < s <= 1, H = h I, h > 0: SMOOTHING with HFC/LFC = r^L times "
        "its value at the start for EVERY X_0, r = (1 + h(1-s))/(1 + h) = 1 - x, x = h s/(1 + "
        "h).",
        "The first depth with r^L <= eps lies between (1/x - 1) log(1/eps) and log(1/eps)/x + 1:",
        "for h = 1/2, eps = 1/1000 it is 2069, 207230, 20723263 at s = 1e-2, 1e-4, 1e-6.",
        "Dobrushin's coefficient is tau = 1 - s: certificates that use it fade as s -> 0.",
    ),
    latex=r"r = \frac{1+h(1-s)}{1+h},\qquad "
    r"L(\varepsilon)\approx\frac{1+h}{hs}\log\frac1\varepsilon",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(
        given.TWO_TOKENS,
        given.Hypothesis(
            "A = (1-s) I + s 11^T/n with 0 < s <= 1",
            lambda case: _mixes(case.A),
            (given.case("1 0; 0 1"), given.case("1/2 1/2; 1/4 3/4")),
        ),
        given.Hypothesis(
            "H = h I with h > 0",
            lambda case: _scalar(case.H),
            (given.case(H="-1"), given.case(H="1 0; 0 2")),
        ),
    ),
    evidence=(
        by.written("one repeated eigenvalue", _spectrum, _depths, _dobrushin),
        # One step of log(1/(1-x)): its derivative 1/(1-x) lies between 1 and 1/(1-x)^2.
        by.for_all(
            "1 <= 1/(1-x) <= 1/(1-x)^2 on [0, 1)",
            given="0 <= x; x < 1; y*(1 - x) == 1",
            then="1 <= y and y <= y**2",
            at="x=1/2, y=2",
            covers=(2,),
        ).unless("without x < 1", without="x < 1", at="x=2, y=-1"),
        by.searched(
            "the ratio of every X_0 in fractions",
            _law,
            st.integers(2, 4),
            draw.fractions(Fraction(1, 12), 1),
            draw.fractions(Fraction(1, 12), 3),
            draw.lists(draw.lists(st.integers(-9, 9), 2), 4),
            st.integers(0, 6),
            at=lambda n, share, h, *_: (exact.flat(1 - share, n), [[h]]),
        ),
    ),
)
