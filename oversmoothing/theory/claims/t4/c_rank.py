"""T4c: the general rank law: asymptotic rank is the maximum matching of the dominant pairs."""

from fractions import Fraction

import flint
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.t4.far_states import term_rank
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.depth.rates import rank_rate
from oversmoothing.theory.depth.ratios import exact_state
from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.rational import Matrix, to_flint
from oversmoothing.theory.proofs.instances import J2, ROTATING
from oversmoothing.theory.proofs.kit import Claim, by, certain, draw, exact, given, is_zero, spectra

Pattern = list[list[bool]]

# What is not generic. A = 2/5 I + 3/20 11^T, H = -I_5/2, X_0 = x y^T: all 20 coefficients are not
# 0, and the rank is 1, for ever. A = J2, H = diag(0, -2): rank 1 at even depths, 2 at odd ones.
_RANK_ONE = (
    exact.flat(Fraction(2, 5), 4),
    exact.identity(5, Fraction(-1, 2)),
    exact.from_integers([p * q for q in (1, 2, 3, 4, 5)] for p in (1, -3, 2, 5)),
)
_ALTERNATING = (J2, exact.diagonal("0 -2"), exact.matrix("2 2; 0 0"))


def dominant_pattern(a: list[Fraction], h: list[Fraction]) -> Pattern:
    """Which pairs (i, j), with multiplicity, have the largest |1 + h_j a_i|."""
    top = max(abs(1 + x * y) for x in a for y in h)
    return [[abs(1 + x * y) == top for y in h] for x in a]


def _generic_minors() -> None:
    """[1; instance] rank G_L <= k, the maximum matching of D, for every L: k lines cover D
    (Koenig), and a matrix supported on k lines has rank at most k. By Weyl sigma_{k+1}(X_L)/rho^L
    -> 0."""
    # Every 2 x 3, 3 x 3 pattern: the rank of independent entries on it is its maximum matching.
    for n, d in ((2, 3), (3, 3)):
        for code in range(1, 2 ** (n * d), 1 if n == 2 else 7):
            pattern = [[bool(code >> (i * d + j) & 1) for j in range(d)] for i in range(n)]
            # Distinct primes stand for independent entries; a minor is a sum of distinct monomials.
            entries = [
                [sp.prime(9 * i + 7 * j + 3) * pattern[i][j] for j in range(d)] for i in range(n)
            ]
            k = term_rank(pattern)
            assert to_flint(exact.from_integers(entries)).rank() == k


def _law(attention: draw.Known, value: draw.Known, seed: int) -> None:
    (A, a), (H, h) = attention, value
    X0 = draw.general_state(seed, len(a), len(h), 10**6)
    blocks = {(x, y): spectra.block(A, x, X0, H, y) for x in set(a) for y in set(h)}

    def total(depth: int, chosen: list[tuple[Fraction, Fraction]]) -> Matrix:
        result = exact.zeros(len(a), len(h))
        for x, y in chosen:
            result = exact.plus(result, blocks[x, y], (1 + x * y) ** depth)
        return result

    assert total(3, list(blocks)) == exact_state(A, H, X0, [3])[3], "projectors do not give X_3"
    pattern = dominant_pattern(a, h)
    rank = term_rank(pattern)
    rho = max(abs(1 + x * y) for x, y in blocks)
    assert rho > 0 or rank == min(len(a), len(h))
    top = [pair for pair in blocks if abs(1 + pair[0] * pair[1]) == rho]
    # Dominant real phases are 0 or pi: two leading matrices, exactly.
    for depth in (2, 3):
        if rho > 0:
            assert to_flint(total(depth, top)).rank() == rank, f"rank is not the matching {rank}"
    moduli = [float(x) for x in a], [float(y) for y in h]
    if rho > 0 and 1 in a:
        rest = list(moduli[0])
        rest.remove(1.0)
        assert (rank_rate(rest, moduli[1]) < 1 - 1e-12) == (rank <= 1), "r_sigma < 1 is not rank 1"


def _rank_one_start() -> None:
    """[5; instance] a rank-1 X_0 with all coefficients non-zero"""
    A, H, X = _RANK_ONE
    V = exact.matrix("1 1 1 1; 1 -1 0 0; 1 1 -2 0; 1 1 1 -3")
    assert all(all(row) for row in exact.product(V, X))
    pattern = dominant_pattern([Fraction(2, 5)] * 3 + [Fraction(1)], [Fraction(-1, 2)] * 5)
    assert term_rank(pattern) == 3
    assert all(to_flint(exact.layer(A, H, X, depth)).rank() == 1 for depth in range(1, 7))


def _alternating() -> None:
    """[instance] rank 1 and 2 in turn"""
    for depth in range(8):
        assert to_flint(exact.layer(*_ALTERNATING, depth)).rank() == 1 + depth % 2


def _liminf_is_zero() -> None:
    """[3; instance] sigma_2/sigma_1 has liminf 0 and limsup > 0"""
    # Eigenvalues (1 +- 3i)/10 and h = -1/2, -3/2: det G_L = 2i Im(c w^L), w = (35 + 12i)/37, no
    # root of unity (its minimal polynomial x^2 - (70/37) x + 1 is not integral): L arg w is dense.
    a = sp.Rational(1, 10) + sp.Rational(3, 10) * sp.I
    first, second = 1 - a / 2, 1 - 3 * a / 2
    assert sp.expand(first * sp.conjugate(first) - second * sp.conjugate(second)) == 0
    square = sp.Rational(37, 40)
    assert sp.expand(first * sp.conjugate(first)) == square
    w = sp.expand(first * sp.conjugate(second) / square)
    assert sp.expand((w - (35 + 12 * sp.I) / 37) * (w - (35 - 12 * sp.I) / 37)) == 0
    x = sp.Symbol("x")
    assert sp.expand((x - w) * (x - sp.conjugate(w)) - (x**2 - sp.Rational(70, 37) * x + 1)) == 0
    assert exact.characteristic(ROTATING) == flint.fmpq_poly([-1, 3, -12, 10]) / 10


def _certify_swing(effort: by.Effort) -> by.Settled:
    """sigma_2/sigma_1 in that case passes below 1/50 and above 1/4 between 3000 and 3100 layers."""
    H, X0 = exact.diagonal("-1/2 -3/2"), exact.matrix("1 2; 3 5; -2 1")
    found = measured.states(ROTATING, H, X0, range(3000, 3100), 512)
    ratios = [measured.sigma_ratio(X, 2, 512) for X in found.values()]
    with at_precision(512):
        certain(any(r < 0.02 for r in ratios))
        certain(any(r > 0.25 for r in ratios))
    yield from (True, True)


# Many pairs of these tie.
_A_VALUES = [*map(Fraction, ["1", "1/2", "0", "-1/2", "-1", "1/3"])]
_H_VALUES = [*map(Fraction, ["-4", "-3", "-2", "-3/2", "-1", "-4/3", "0", "1", "2"])]

# A need not be stochastic here, so the shared predicates, which ask for consensus, do not serve.
_NOT_ALL_ZERO = given.Hypothesis(
    "rho > 0: I + H (x) A is not nilpotent",
    lambda case: (
        not is_zero(
            exact.power(
                exact.plus_identity(exact.kronecker(case.H, case.A)), len(case.A) * len(case.H)
            )
        )
    ),
    given.NOT_ALL_ZERO.violated,
)
_SEMISIMPLE = given.Hypothesis(
    "the dominant eigenvalues of I + H (x) A are semisimple (here: A and H diagonalisable)",
    lambda case: spectra.diagonalisable(case.A) and spectra.diagonalisable(case.H),
    given.SEMISIMPLE.violated,
)


@given.condition(
    "X_0 outside a null set: its part in the dominant pairs has the rank of their matching "
    "(decided here for rational spectra)",
    given.Instance(*_RANK_ONE),
    given.Instance(*_ALTERNATING),
)
def _generic(case: given.Instance) -> bool:
    if case.X0 is None:
        return True
    a, h = spectra.values(case.A), spectra.values(case.H)
    top = max(abs(1 + x * y) for x in a for y in h)
    leading = exact.zeros(len(a), len(h))
    for x, y in {(x, y) for x in a for y in h if abs(1 + x * y) == top}:
        leading = exact.plus(leading, spectra.block(case.A, x, case.X0, case.H, y))
    return int(to_flint(leading).rank()) == term_rank(dominant_pattern(a, h))


CLAIM = Claim(
    name="T4c",
    clauses=(
        "For X_0 outside a null set and semisimple dominant eigenvalues, the asymptotic rank of "
        "X_L (sigma_{k+1}/sigma_1 -> 0, limsup sigma_k/sigma_1 > 0 and bounded below on a "
        "relatively dense set of depths) is the maximum matching of the bipartite graph of "
        "dominant pairs (i, j), eigenvalues with multiplicity.",
        "sigma_2/sigma_1 -> 0 iff r_sigma < 1 iff no two dominant pairs differ in both indices.",
        "liminf sigma_k/sigma_1 may be 0;",
        "it is positive if all dominant phases are rational multiples of pi, or if some k x k "
        "part of the graph has one perfect matching.",
        "Non-zero coefficients in an eigenbasis do not make X_0 generic.",
    ),
    latex=r"\operatorname{rank}_\infty=\nu\{(i,j):|\mu_{ij}|=\rho\},\qquad "
    r"\sigma_2/\sigma_1\to0\iff r_\sigma=\max_{i\ne k,\,j\ne l}|\mu_{ij}\mu_{kl}|/\rho^2<1",
    source="ours; A need not even be stochastic",
    on_record=by.WRITTEN,
    hypotheses=(_NOT_ALL_ZERO, _SEMISIMPLE, _generic),
    evidence=(
        by.written(
            "minors, matchings and almost periodicity",
            "[1] Let V, U hold bases adapted to the generalised eigenspaces of A and of H, X_0 = V"
            " C U^T: a linear bijection between complex X_0 and complex C. Blocks of smaller "
            "modulus are o(rho^L), nilpotent parts included; on a dominant block the nilpotent "
            "part of I + H (x) A is 0 (semisimple). So X_L/rho^L = V G_L U^T + o(1), G_L = [c_ij "
            "e^(i L theta_ij)] on the set D of dominant pairs and 0 elsewhere, i and j counted "
            "with multiplicity.",
            _generic_minors,
            "[1] Take rows and columns of a maximum matching. The k-minor of G_L is a polynomial "
            "in the independent c_ij; distinct matchings give distinct monomials, each with a "
            "coefficient of modulus 1: nothing cancels, repeated eigenvalues included.",
            "[1] At L = 0 that minor is a non-zero polynomial in C, hence in X_0, and real X_0 are"
            " Zariski dense: it is not 0 outside a null set. As a function of L it is almost "
            "periodic, so its almost-periods with error |value at 0|/2 make it bounded below on a "
            "relatively dense set.",
            "[1] The k-th compound of V G_L U^T has norm >= const |minor| and = sigma_1 ... "
            "sigma_k; sigma_1, ..., sigma_{k-1} are bounded by const rho^L. So sigma_k >= const "
            "rho^L there: limsup sigma_k/sigma_1 > 0.",
            "[2] k = 1 iff no two pairs of D differ in both indices (two such pairs are a "
            "matching), iff r_sigma = max over i != k, j != l of |mu_ij mu_kl|/rho^2 < 1. So "
            "sigma_2/sigma_1 -> 0 iff r_sigma < 1.",
            "[4] liminf sigma_k/sigma_1 > 0 where every phase is a rational multiple of pi (G_L is"
            " then periodic and each of its finitely many values has generic rank k), and also "
            "where some k x k sub-pattern of D has a single perfect matching (its minor has "
            "constant modulus).",
        ),
        by.searched(
            "rank of the leading matrix, exactly, against the matching",
            _law,
            draw.with_spectrum(st.sampled_from(_A_VALUES), 1, 4),
            draw.with_spectrum(st.sampled_from(_H_VALUES), 1, 3),
            draw.SEEDS,
            at=lambda attention, value, seed: (
                attention[0],
                value[0],
                draw.general_state(seed, len(attention[1]), len(value[1]), 10**6),
            ),
        ),
        by.written(
            "generic means outside a null set: exact exceptions, and a liminf of 0",
            _rank_one_start,
            _alternating,
            _liminf_is_zero,
        ),
        by.Certified("the swing of sigma_2/sigma_1 with an irrational phase", _certify_swing),
    ),
    further="defective dominant eigenvalues: only the exponent r_sigma survives (T5b)",
)
