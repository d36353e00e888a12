"""T5b: the rate of sigma_2/sigma_1 is r_sigma, of 1 - |cos| its square."""

from fractions import Fraction

import numpy as np
import sympy as sp

from oversmoothing.theory.claims.lemmas import ANGLE
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.depth.rates import angle_rate, rank_rate, rank_rate_over_pairs
from oversmoothing.theory.numbers.rational import to_float
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, is_zero
from oversmoothing.theory.spectra.spectrum import attention_spectrum


def from_eigenvectors(values: str, vectors: str) -> Matrix:
    """sum_i a_i v_i v_i^T/||v_i||^2 over orthogonal v_i, the rows of `vectors`."""
    V = exact.matrix(vectors)
    sizes = [a / exact.dot(v, v) for a, v in zip(map(Fraction, values.split()), V, strict=True)]
    return exact.product(exact.transposed(V), exact.diagonal(sizes), V)


def _minor_coefficient() -> None:
    """[1; fixed size] Let lambda = mu_ij mu_kl attain the maximum. The monomial c_ij c_kl has in
    that minor the coefficient lambda^L and nothing else (the couplings cannot produce it), so the
    polynomial that multiplies lambda^L is not 0 for generic C_0, equal products or repeated
    eigenvalues or not. The leading part of the minor is then L^m (rho^2 r_sigma)^L times a
    trigonometric polynomial that is not identically 0: limsup |minor|^(1/L) = rho^2 r_sigma."""
    # In a 2 x 2 minor of C_L with Jordan couplings, c_11 c_22 keeps the coefficient (mu_11 mu_22)^L
    # exactly: the couplings bring in entries from below and from the right only.
    c = sp.Matrix(2, 2, sp.symbols("c0:4"))
    m = sp.symbols("m0:4")
    x, y, z, u, v = sp.symbols("x y z u v")
    first = m[0] * c[0, 0] + x * c[0, 1] + y * c[1, 0] + z * c[1, 1]
    second = [m[2] * c[1, 0] + v * c[1, 1], m[3] * c[1, 1]]
    G = sp.Matrix([[first, m[1] * c[0, 1] + u * c[1, 1]], second])
    found = sp.Poly(sp.expand(G.det()), *c).coeff_monomial(c[0, 0] * c[1, 1])
    assert is_zero(found - m[0] * m[3])


def _law(a_values: list[Fraction], h_values: list[Fraction]) -> None:
    a, h = [float(x) for x in a_values], [float(x) for x in h_values]
    assert abs(rank_rate(a, h) - rank_rate_over_pairs(a, h)) < 1e-12
    if len(h) == 1 or not a:
        assert rank_rate(a, h) == 0


def _slope_law(A: Matrix, value: draw.Known, seed: int) -> None:
    """limsup over a window of (log sigma_2/sigma_1)/L, in balls, against r_sigma."""
    H, values = value
    predicted = rank_rate(attention_spectrum(to_float(A)).values, [float(v) for v in values])
    X0 = draw.general_state(seed, len(A), len(H))
    depths = range(600, 606) if predicted > 0.05 else range(20, 23)
    found = [measured.second_compound(X) for X in measured.states(A, H, X0, depths).values()]
    logs = [measured.log(s) / L for s, L in zip(found, depths, strict=True) if s > 0]
    if predicted < 1e-6:
        assert all(x < -5 for x in logs), "sigma_2/sigma_1 should vanish at once"
        return
    tolerance = 0.05 if predicted > 0.05 else 1.2
    assert abs(max(logs) - np.log(predicted)) < tolerance, f"{np.exp(max(logs))} is not {predicted}"


_PAIRWISE = from_eigenvectors("1 1/2 1/10", "1 1 1; 1 -2 1; 1 0 -1")
_ZERO_ENTRIES = from_eigenvectors("1 -1/4 -1/8 1/2", "1 1 1 1; 1 -1 0 0; 0 0 1 -1; 1 1 -1 -1")


def _exceptions() -> None:
    """[instance] the exceptional cases"""
    # Both matrices are positive and row-stochastic, and r_sigma = 11/12 for the second.
    for A in (_PAIRWISE, _ZERO_ENTRIES):
        assert given.is_positive(A)
    a, h = [-0.25, -0.125, 0.5], [-0.5, -0.25]
    assert abs(rank_rate(a, h) - 11 / 12) < 1e-15


Case = tuple[Matrix, Matrix, Matrix]


def _slope(
    what: str,
    predicted: float,
    measure: measured.Measure,
    case: Case,
    depths: tuple[int, int] = (400, 800),
    tolerance: float = 1e-6,
) -> by.Measurement:
    return by.Measurement(what, predicted, measured.slope(measure, *case, depths), tolerance)


def _measure(effort: by.Effort) -> by.Measurements:
    sigma, worst = measured.sigma_ratio, measured.worst_angle_gap
    spaced = _PAIRWISE, exact.diagonal("1/2 3/10"), exact.matrix("1 2; 3 -1; -2 7")
    zeros = _ZERO_ENTRIES, exact.diagonal("-1/2 -1/4"), exact.matrix("1 2; 3 -1; -2 7; 5 1")
    two, three = ([0.5, 0.1], [0.5, 0.3]), ([-0.25, -0.125, 0.5], [-0.5, -0.25])
    # Tokens 1 and 3 see (1, 0, -1) alone: (1.05 * 1.3/1.5 ... )/1.5, computed from mu.
    faster = max(1.03 / 1.5, 1.05 * 1.3 / 1.5**2) ** 2
    only, every = "over tokens with v_k != 0: (7/9)^2", "over all tokens: (33/34)^2"
    yield from [
        _slope("sigma_2/sigma_1, eigenvectors (1,-2,1), (1,0,-1)", rank_rate(*two), sigma, spaced),
        _slope("worst 1 - |cos| there", angle_rate(*two), worst, spaced),
        _slope(
            "1 - |cos| of tokens 1 and 3, faster",
            faster,
            lambda X, *, bits: measured.angle_gap(X, 0, 2, bits),
            spaced,
        ),
        # Dominant v = (1, -1, 0, 0): among tokens 1, 2 only v = 1 and (1, 1, -1, -1) turn x.
        _slope("sigma_2/sigma_1, v = (1,-1,0,0)", rank_rate(*three), sigma, zeros),
        _slope(
            f"1 - |cos| {only}, not r_sigma^2",
            (7 / 9) ** 2,
            lambda X, *, bits: measured.angle_gap(X, 0, 1, bits),
            zeros,
        ),
        _slope(
            f"1 - |cos| {every}, not r_sigma^2", (33 / 34) ** 2, worst, zeros, (1600, 3200), 1e-4
        ),
    ]
    for seed, n, d in ((1, 4, 3), (3, 3, 3), (5, 2, 2)):
        A, H, X0 = measured.random_case(seed, n, d, Fraction(1, 2))
        spectra = attention_spectrum(to_float(A)).values, np.linalg.eigvals(to_float(H))
        for what, rate, measure in (
            ("sigma_2/sigma_1", rank_rate, sigma),
            ("1 - |cos|", angle_rate, worst),
        ):
            name = f"random case {seed}, n = {n}, d = {d}: {what}"
            yield _slope(name, rate(*spectra), measure, (A, H, X0), tolerance=5e-3)


CLAIM = Claim(
    name="T5b",
    clauses=(
        "Generic X_0: limsup (sigma_2/sigma_1)^(1/L) = r_sigma = max over i != k, j != l of "
        "|mu_ij mu_kl|/rho^2 (multiplicity counted; no diagonalisability, no uniqueness),",
        "and with (I, J) any dominant pair it is max{max |mu_ij|/rho over i != I, j != J; max "
        "|mu_Ij| over j != J times max |mu_iJ| over i != I, over rho^2}.",
        "If all dominant pairs share one simple real a whose eigenvector has no zero entry, "
        "always so in SMOOTHING, the largest 1 - |cos| has rate r_sigma^2;",
        "a single pair may be faster.",
        "d = 1 or n = 1: r_sigma = 0.",
    ),
    latex=r"\limsup_L(\sigma_2/\sigma_1)^{1/L}=r_\sigma,\qquad "
    r"\limsup_L\big(\max_{k,l}1-|\cos_{kl}|\big)^{1/L}=r_\sigma^2",
    source="ours; that all v_k != 0 is needed corrects an earlier 'over pairs with v_k v_l != 0'",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC, given.TWO_TOKENS, given.NOT_ALL_ZERO, given.GENERIC),
    evidence=(
        by.written(
            "minors as exponential polynomials",
            "[1] Jordan bases V of A, U of H, X_0 = V C_0 U^T, generic C_0. Entry (i, j) of C_L is"
            " mu_ij^L c_ij plus multiples of c_kl, k >= i, l >= j in the same blocks, exponential "
            "polynomials in L of the same base mu_ij.",
            "[1, 5] sigma_1 sigma_2 = ||X_L ^ X_L|| is, up to constants, the largest |2 x 2 minor|"
            " of C_L: (i, k), i != k, against (j, l), j != l. Each minor is an exponential "
            "polynomial whose bases are mu_ij mu_kl and mu_il mu_kj, all of modulus <= rho^2 "
            "r_sigma. So sigma_1 sigma_2 <= C L^m (rho^2 r_sigma)^L. For n = 1 or d = 1 there is "
            "no minor.",
            _minor_coefficient,
            "[1] sigma_1^(1/L) -> rho (a left eigenvector pair of mu, |mu| = rho, bounds it "
            "below). So limsup (sigma_2/sigma_1)^(1/L) = r_sigma; lim, where one phase leads. No "
            "diagonalisability, no uniqueness is needed.",
            "[2] Closed form, (I, J) any pair of largest modulus: let (i, j), (k, l) differ in "
            "both indices. If one of them differs from (I, J) in both, the product is at most its "
            "modulus times rho, attained with (I, J) itself. Otherwise each shares an index with "
            "(I, J) (or is it), and they cannot share the same one: they are (I, l) and (k, J).",
            ANGLE.covering(3),
            "[3, 4] If all dominant pairs share one simple real a with v_k != 0 for every k "
            "(SMOOTHING: a = 1, v = 1), every ||x_k|| is between rho^L/C and C L^m rho^L. Then max"
            " (1 - |cos|) is (sigma_2/sigma_1)^2 up to such factors: limsup of its L-th root is "
            "r_sigma^2. A single pair of tokens may be faster.",
        ),
        by.searched(
            "closed form against all pairs of pairs",
            _law,
            draw.lists(draw.fractions(-1, 1, 4), 0, 4),
            draw.lists(draw.fractions(-3, 2, 4), 1, 4),
        ),
        by.searched(
            "sigma_2/sigma_1 at 600 layers, in balls",
            _slope_law,
            draw.attention(2, 3),
            draw.with_spectrum(draw.fractions(-2, 2, 4), 2, 3),
            draw.SEEDS,
            at=lambda A, value, seed: (A, value[0]),
        ),
        by.written("v_k = 0 breaks r_sigma^2", _exceptions),
        by.Simulated("slopes between 400 and 800 layers", _measure),
    ),
    further="lim instead of limsup for complex leading products: needs a lower bound for linear "
    "forms in logarithms",
)
