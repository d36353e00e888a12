"""T5c: the effective rank near 1, to second order and with bounds."""

from fractions import Fraction

import flint
import numpy as np
import sympy as sp

from oversmoothing.theory.claims.t5.b_rank_rate import from_eigenvectors
from oversmoothing.theory.depth import rates, rates_measured as measured
from oversmoothing.theory.numbers.balls import at_precision, to_ball
from oversmoothing.theory.proofs.kit import Claim, by, certain, draw, exact, is_zero

_PRECISION = 400


def _third_order() -> sp.Expr:
    """[2; general] One eps = sigma_2/sigma_1: E = eps log(1/eps), S = eps; E^2/(2(1+S)) = E^2/2 -
    O(eps E^2), so erank - 1 = eps (1 + log 1/eps) + (1/2) eps^2 log^2 eps + O(eps^3 log^3 eps)."""
    # l = log(1/eps) held as a symbol: nothing is of order eps^2 l or eps^2.
    eps, ell = sp.symbols("epsilon ell", positive=True)
    erank = (1 + eps) * sp.exp(eps * ell / (1 + eps))
    second = 1 + eps * (1 + ell) + eps**2 * ell**2 / 2
    third = eps**3 * (ell**3 / 6 - ell**2 / 2)
    return sp.expand(sp.series(erank, eps, 0, 4).removeO() - second - third)


def _exponential_series() -> None:
    """[1; fixed size] With y = E/(1+S) >= 0 (all s_i <= 1): erank - 1 = S + E + (1+S)(e^y - 1 - y),
    a series with positive terms E^k/(k! (1+S)^(k-1)), k >= 2."""
    S, E, t = sp.symbols("S E t", positive=True)
    series = sp.series(sp.exp(t), t, 0, 5).removeO().subs(t, E / (1 + S))
    expected = 1 + S + sum(E**k / (sp.factorial(k) * (1 + S) ** (k - 1)) for k in range(1, 5))
    assert is_zero(sp.together((1 + S) * series - expected))


def _third_value_matters() -> None:
    """[3; instance] Several: the same with S and E; sum over i >= 3 of s_i (1 + log 1/s_i) =
    o(eps^2 log^2 eps) is exactly what makes the formula in eps alone second-order correct."""
    # sigma_3 = eps^(3/2): its own first-order term exceeds (1/2) eps^2 log^2 eps by far.
    for exponent in (8, 16, 32):
        eps = 10.0**-exponent
        third = eps**1.5
        own = third * (1 - np.log(third))
        assert own > 10 * 0.5 * eps**2 * np.log(eps) ** 2


def _excess(s: list[flint.arb]) -> flint.arb:
    """erank - 1 of singular values in the ratios 1 : s, from the definition."""
    p = [x / (1 + sum(s, flint.arb(0))) for x in (flint.arb(1), *s)]
    return (-sum((x * x.log() for x in p), flint.arb(0))).exp() - 1


def _law(values: list[Fraction]) -> None:
    """The two bounds in balls at 400 bits."""
    with at_precision(_PRECISION):
        s = [to_ball(v) for v in values]
        S, E = sum(s, flint.arb(0)), -sum((x * x.log() for x in s), flint.arb(0))
        excess, slack = _excess(s), flint.arb(2) ** -300
        assert excess + slack > S + E + E * E / (2 * (1 + S)), "below the lower bound"
        assert excess - slack < S + E + E * E / 2 * E.exp(), "above the upper bound"
    assert (
        abs(rates.effective_rank_excess([float(v) for v in values]) / float(excess.mid()) - 1)
        < 1e-12
    )


def _coefficient(effort: by.Effort) -> by.Measurements:
    with at_precision(_PRECISION):
        for digits in (8, 40):
            eps = flint.arb(10) ** -digits
            excess, ell = _excess([eps]), -eps.log()
            second = (excess - eps * (1 + ell)) / (eps * eps * ell * ell)
            first = excess / (eps * (1 + ell))
            for what, expected, found in (
                ("first order", 1.0, first),
                ("second coefficient", 0.5, second),
            ):
                yield by.Measurement(
                    f"{what}, eps = 1e-{digits}", expected, float(found.mid()), 1e-6
                )
    A = from_eigenvectors("1 1/2 1/10", "1 1 1; 1 -2 1; 1 0 -1")
    H, start = exact.diagonal("1/2 3/10"), exact.matrix("1 2; 3 -1; -2 7")
    for depth, tolerances in ((24, (0.03, 1e-3)), (60, (1e-5, 1e-9))):
        X = measured.states(A, H, start, [depth])[depth]
        ratio, excess = measured.sigma_ratio(X), measured.effective_rank_excess(X)
        certain(excess > 0)
        for order, tolerance in zip((1, 2), tolerances, strict=True):
            expanded = rates.effective_rank_excess_expanded([float(ratio.mid())], order)
            name = f"a trajectory, layer {depth}: erank - 1 over its expansion to order {order}"
            yield by.Measurement(name, 1.0, float(excess.mid()) / expanded, tolerance)
    # erank - 1 = C r^L (1 + L log(1/r) + const): the rate is reached like 1/L.
    slope = measured.slope(measured.effective_rank_excess, A, H, start, (2000, 4000), 16384)
    rate = rates.rank_rate([0.5, 0.1], [0.5, 0.3]) * 2 ** (1 / 2000)
    yield by.Measurement("slope of erank - 1: r_sigma 2^(1/2000)", rate, slope, 1e-5)


CLAIM = Claim(
    name="T5c",
    clauses=(
        "With s_i = sigma_i/sigma_1 (i >= 2), S = sum s_i, E = sum s_i log(1/s_i): erank = (1+S)"
        " e^(E/(1+S)) exactly, and S + E + E^2/(2(1+S)) <= erank - 1 <= S + E + (E^2/2)e^E.",
        "For two singular values erank - 1 = eps(1 + log 1/eps) + (1/2) eps^2 log^2 eps + "
        "O(eps^3 log^3 eps);",
        "the same to o(eps^2 log^2 eps) if sum_{i>=3} s_i log(1/s_i) = o(eps^2 log^2 eps), not "
        "if sigma_3 = eps^(3/2).",
        "erank - 1 is of order L log(1/r_sigma) r_sigma^L where sigma_2/sigma_1 is of order "
        "r_sigma^L.",
    ),
    latex=r"\mathrm{erank}-1=\varepsilon\big(1+\log\tfrac1\varepsilon\big)"
    r"+\tfrac12\varepsilon^2\log^2\varepsilon+O(\varepsilon^3\log^3\tfrac1\varepsilon)",
    source="ours, for the effective rank of Roy and Vetterli (2007); the bounds and the error term "
    "sharpen it",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "the entropy in closed form",
            "[1] p_i = s_i/(1+S), s_1 = 1, S = sum over i >= 2 of s_i, E = sum s_i log(1/s_i): the"
            " entropy is log(1+S) + E/(1+S), so erank = (1+S) e^(E/(1+S)), exactly, for any number"
            " of values.",
            _exponential_series,
            "[1] y^2/2 <= e^y - 1 - y <= (y^2/2) e^y (Taylor with remainder), hence S + E + "
            "E^2/(2(1+S)) <= erank - 1 <= S + E + (E^2/2) e^E.",
            _third_order,
            _third_value_matters,
            "[4] eps <= s-sum: eps(1 + log 1/eps) <= S + E <= (m-1) eps (1 + log 1/eps) once eps "
            "<= 1 (x(1 + log 1/x) increases on (0, 1]). Where C^-1 r_sigma^L <= eps_L <= C "
            "r_sigma^L, erank - 1 is of order L log(1/r_sigma) r_sigma^L.",
        ),
        by.searched(
            "both bounds for up to five singular values",
            _law,
            draw.lists(draw.fractions(0, 1, 997).filter(lambda x: x > 0), 1, 5),
        ),
        by.Simulated("coefficients, and a trajectory", _coefficient),
    ),
)
