"""What HFC/LFC tends to under the remedy, and the floor that it breaks."""

import math
from fractions import Fraction
from typing import Any

from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.arxiv_2312_06182.escalating import AFTER, BEFORE, operator, step
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.proofs.kit import A3, Claim, by, draw, equal, exact, given


def _factor(h: Fraction, a: Fraction, tau: Fraction, place: str) -> Fraction:
    value = abs(1 - tau * (1 + h) / (h * (1 - a)))
    return value / abs(1 - tau) if place == AFTER else value


def _law(attention: Any, h: Any, tau: Any, place: Any) -> None:
    """Two tokens: the mode is an eigenvector of the composed layer, with the predicted ratio."""
    A, a = attention
    p, q = A[0][1], A[1][0]
    assume(h != 0 and p != q and (place == BEFORE or tau != 1))
    mu, weight = 1 + h * a, (1 - tau if place == AFTER else Fraction(1))
    assume(mu != (1 - tau) * (1 + h))
    kappa = weight * h * (q - p) / (mu - (1 - tau) * (1 + h))
    X = [[kappa + 1], [kappa - 1]]
    equal(step(A, [[h]], X, tau, place), exact.scaled(mu, X))
    hfc, lfc = exact.squared_norms(X)
    equal(hfc * (p - q) ** 2, lfc * _factor(h, a, tau, place) ** 2 * (p + q) ** 2)


def _below_the_floor() -> None:
    """[3; instance] Below the floor: A = [[1/2, 1/2], [1/4, 3/4]], h = 1, tau = 2/5. |1 - tau| 2 =
    6/5 < 5/4, no smoothing; the modes (4, 6) before and (2, 4) after, both times 5/4, have ratios
    1/5 and 1/3, below 1 = 1/sqrt(n - 1). As tau falls to 1 - r = 3/8, F = |1 - 8 tau/3| falls to
    0."""
    A, h, tau = exact.matrix("1/2 1/2; 1/4 3/4"), Fraction(1), Fraction(2, 5)
    equal(abs(1 - tau) * (1 + h) < 1 + h / 4, True)
    for place, X in ((BEFORE, exact.column("4 6")), (AFTER, exact.column("2 4"))):
        equal(step(A, [[h]], X, tau, place), exact.scaled(Fraction(5, 4), X))
        hfc, lfc = exact.squared_norms(X)
        equal(hfc / lfc, Fraction(1, 25) if place == BEFORE else Fraction(1, 9))


def _measured(effort: by.Effort) -> by.Measurements:
    # Eigenvalues of A 1, 1/2, 1/5; h = -1/2: dominant a = 1/5, limit 8 sqrt2/5 without remedy.
    start, h, a = exact.matrix("1; 2; 4"), Fraction(-1, 2), Fraction(1, 5)
    cases = ("0", AFTER), ("1/2", AFTER), ("1/2", BEFORE), ("1", BEFORE), ("3/2", AFTER)
    for tau, place in cases:
        t = Fraction(tau)
        predicted = math.log(8 * math.sqrt(2) / 5 * float(_factor(h, a, t, place)))
        state = measured.powers(operator(A3, [[h]], t, place), start, [400])[400]
        found = measured.log(measured.hfc_lfc(state))
        yield by.Measurement(f"log of the limit, tau = {tau} {place}", predicted, found, 1e-9)


CLAIM = Claim(
    name="N-2312.06182-remedy-limit",
    clauses=(
        "Where the remedy prevents smoothing (|1 - tau| < r) and one real simple pair (a, h) "
        "dominates, HFC/LFC tends to F times ||P v||/(sqrt(n) |mean v|), the limit that the mode"
        " v of A has without remedy: F = |1 - tau (1+h)/(h (1-a))| before the update, the same "
        "over |1 - tau| after it (infinite at tau = 1).",
        "For h in [-1, 0) and tau in [0, 2] the remedy never lowers the limit;",
        "for h > 0 it can fall to any positive value near the tie, below the floor 1/sqrt(n-1) "
        "that holds without remedy (T1f).",
    ),
    latex=r"\lim\frac{\mathrm{HFC}}{\mathrm{LFC}} = \Bigl|1-\frac{\tau(1+h)}{h(1-a)}\Bigr|\,"
    r"\frac{\|Pv\|}{\sqrt n\,|\bar v|}\ \Bigl(\times\tfrac{1}{|1-\tau|}\ \text{after}\Bigr)",
    source="ours, for the remedy of arXiv 2312.06182 v2 (a summary)",
    on_record=by.WRITTEN,
    hypotheses=(
        given.POSITIVE,
        given.TWO_TOKENS,
        given.Hypothesis(
            "H has one eigenvalue h != 0 (d = 1; for several, the dominant one)",
            lambda case: len(case.H) == 1 and case.H[0][0] != 0,
            (given.case(H="0"), given.case(H="1 0; 0 1")),
        ),
    ),
    evidence=(
        by.written(
            "the lifted mode",
            "[1] Let u be H's eigenvector, H u = h u, and 1 kappa + y the token side, P A y = a y,"
            " mu = 1 + h a. By N-2312.06182-remedy, (1 kappa + y) u^T is an eigenvector for mu iff"
            " mu kappa = w ((1+h) kappa' + h b A y), b = 1^T/n: after, w = 1 - tau and kappa' = "
            "kappa; before, w = 1 and kappa' = (1 - tau) kappa.",
            "[1] So kappa = w h (b A y) / (mu - (1 - tau)(1 + h)); the denominator is not 0, as "
            "|mu| = rho_Q > |1 - tau| rho_C. At tau = 0 it is h (a - 1): kappa_0 = -(b A y)/(1 - "
            "a), the mean of A's own eigenvector v = 1 kappa_0 + y.",
            "[1] kappa_0/kappa = (mu - (1-tau)(1+h)) / (w h (a-1)) = (1 - tau (1+h)/(h (1-a)))/w. "
            "The pair dominates alone, so X_L/mu^L tends to s (1 kappa + y) u^T with s != 0 for "
            "X_0 outside a proper subspace, and HFC/LFC = ||y||/(sqrt(n) |kappa|).",
            _below_the_floor,
        ),
        by.for_all(
            "for h in [-1, 0) and tau in [0, 2] the limit is at least the one at tau = 0",
            given=(by.EIGENVALUE, "-1 <= h; h < 0; 0 <= tau; tau <= 2"),
            then="(h*(1-a) - tau*(1+h))**2 >= (1-tau)**2 * (h*(1-a))**2 and "
            "(h*(1-a) - tau*(1+h))**2 >= (h*(1-a))**2",
            at="h=-1/2, a=0, tau=1/2",
            covers=(2,),
        ).unless("h > 0 too", without="-1 <= h; h < 0", given="h != 0; -1 <= h"),
        by.searched(
            "two tokens, in fractions",
            _law,
            draw.two_token_attention(),
            draw.fractions(-3, 3),
            draw.fractions(-1, 3),
            st.sampled_from([AFTER, BEFORE]),
            at=lambda attention, h, *_: (attention[0], [[h]]),
        ),
        by.Simulated("the limit, three tokens", _measured),
    ),
    further="The floor with remedy, one feature: HFC/LFC >= 1/(sqrt(n) ||l||), l = w h b A P "
    "((1-tau)(1+h) - 1 - h P A P)^-1, depends on h and tau; without remedy l = pi - 1/n.",
)
