"""What the claims of t4.md execute; one room: the chapter."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product as pairs

import flint
import numpy as np
import sympy as sp
from hypothesis import assume, strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from oversmoothing.theory.claims.lemmas import with_state
from oversmoothing.theory.depth import recurrence as measured
from oversmoothing.theory.depth.bounds import rank_rate
from oversmoothing.theory.depth.ratios import ball_ratios, exact_state
from oversmoothing.theory.numbers.exact import to_flint, to_float
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.proofs.kit import Matrix, by, draw, exact, given, is_zero, search, spectra
from oversmoothing.theory.spectra.layer_discs import attention_spectrum
from oversmoothing.theory.verdict.by_fractions import ExactDominance, exact_dominance


# far_states
def far_state(A: Matrix, H: Matrix, X0: Matrix, rate: float, digits: float = 12) -> flint.arb_mat:
    """X_L at a depth where rate^L is about 10^-digits (polynomial factors not counted)."""
    assume(rate < 0.98)
    depth = 12 if rate == 0 else max(12, math.ceil(digits * math.log(10) / -math.log(rate)))
    return measured.states(A, H, X0, [depth])[depth]


def cosines(X: flint.arb_mat) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """All pairwise cosines [n, n], with their signs."""
    n = X.nrows()
    rows = [[measured.cosine(X, i, k) for k in range(n)] for i in range(n)]
    return np.array([[float(x.mid()) for x in row] for row in rows])


def radii(dominance: ExactDominance) -> tuple[float, float]:
    """(rho_C, rho_Q) as floats."""
    return float(dominance.radius(True).mid()), float(dominance.radius(False).mid())


def term_rank(pattern: Sequence[Sequence[bool]]) -> int:
    """Maximum matching of a bipartite graph."""
    matching = maximum_bipartite_matching(csr_matrix(np.array(pattern)), perm_type="column")
    return int(np.count_nonzero(matching >= 0))


# T4a
@search(draw.exact_cases(3, 2), at="A H X0")
def law_a(A: Matrix, H: Matrix, X0: Matrix) -> None:
    assume(len(A) > 1)
    dominance = exact_dominance(A, H)
    assume(dominance.comparison == 1)
    rho_c, rho_q = radii(dominance)
    assume(rho_q / rho_c < 0.98 and given.contains_both_radii(A, H, X0))
    X = far_state(A, H, X0, rho_q / rho_c, 20)
    assert cosines(X).min() > 1 - 1e-6, "a pair of tokens does not point the same way"
    assert float(measured.hfc_lfc(X).mid()) < 1e-6, "HFC/LFC does not vanish"
    assert float(measured.effective_rank_excess(X).mid()) < 1e-3, "erank does not tend to 1"


# T4b
def mean_cosine(plus: int, minus: int) -> Fraction:
    """Mean off-diagonal cosine of plus tokens at +1 and minus at -1: ((n+ - n-)^2 - n)/(n(n-1))."""
    n = plus + minus
    return Fraction((plus - minus) ** 2 - n, n * (n - 1))


_INSIDE = draw.fractions(Fraction(-9, 10), Fraction(-1, 10), 10)


@search(with_state(draw.attention(2, 4), draw.with_spectrum(_INSIDE, 1, 3), 10**9), at="A H")
def law_b(A: Matrix, H: Matrix, values_H: list[Fraction], X0: Matrix) -> None:
    dominance = exact_dominance(A, H)
    assert dominance.comparison == -1, "h in [-1, 0) must not smooth"
    assume(given.single_pair(dominance))
    a = attention_spectrum(to_float(A))
    h = np.linalg.eigvals(to_float(H))
    values, vectors = np.linalg.eig(to_float(A))
    moduli = np.abs(1 + np.outer(values, h))
    v = vectors[:, int(np.argmax(moduli.max(axis=1)))].real
    assume(np.abs(v).min() > 1e-3)
    second = np.sort(moduli.ravel())[-2] / radii(dominance)[1]
    X = far_state(A, H, X0, float(second), 14)
    found_cosines = cosines(X)
    signs = np.sign(v)
    assert np.allclose(found_cosines, np.outer(signs, signs), atol=1e-5), "cos is not sign(v_k v_l)"
    assert len(H) == 1 or rank_rate(a, h) < 1
    n, plus = len(A), int(np.count_nonzero(signs > 0))
    assert 0 < plus < n, "the dominant eigenvector has one sign"
    mean = (found_cosines.sum() - n) / (n * (n - 1))
    assert abs(mean - float(mean_cosine(plus, n - plus))) < 1e-5


# T4c
Pattern = list[list[bool]]
# What is not generic. A = 2/5 I + 3/20 11^T, H = -I_5/2, X_0 = x y^T: all 20 coefficients are not
# 0, and the rank is 1, for ever. A = J2, H = diag(0, -2): rank 1 at even depths, 2 at odd ones.
_RANK_ONE = (
    exact.flat(Fraction(2, 5), 4),
    exact.identity(5, Fraction(-1, 2)),
    exact.from_integers([p * q for q in (1, 2, 3, 4, 5)] for p in (1, -3, 2, 5)),
)
_ALTERNATING = (exact.J2, exact.diagonal("0 -2"), exact.matrix("2 2; 0 0"))


def dominant_pattern(a: list[Fraction], h: list[Fraction]) -> Pattern:
    """Which pairs (i, j), with multiplicity, have the largest |1 + h_j a_i|."""
    top = max(abs(1 + x * y) for x in a for y in h)
    return [[abs(1 + x * y) == top for y in h] for x in a]


def generic_minors() -> None:
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


def rank_one_start() -> None:
    A, H, X = _RANK_ONE
    V = exact.matrix("1 1 1 1; 1 -1 0 0; 1 1 -2 0; 1 1 1 -3")
    assert all(all(row) for row in exact.product(V, X))
    pattern = dominant_pattern([Fraction(2, 5)] * 3 + [Fraction(1)], [Fraction(-1, 2)] * 5)
    assert term_rank(pattern) == 3
    assert all(to_flint(exact.layer(A, H, X, depth)).rank() == 1 for depth in range(1, 7))


def liminf_is_zero() -> None:
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
    assert exact.characteristic(exact.ROTATING) == flint.fmpq_poly([-1, 3, -12, 10]) / 10


# Many pairs of these tie.
_A_VALUES = [*map(Fraction, ["1", "1/2", "0", "-1/2", "-1", "1/3"])]
_H_VALUES = [*map(Fraction, ["-4", "-3", "-2", "-3/2", "-1", "-4/3", "0", "1", "2"])]
# A need not be stochastic here, so the shared predicates, which ask for consensus, do not serve.
NOT_ALL_ZERO_C = given.Hypothesis(
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
SEMISIMPLE_C = given.Hypothesis(
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
def generic(case: given.Instance) -> bool:
    if case.X0 is None:
        return True
    a, h = spectra.values(case.A), spectra.values(case.H)
    top = max(abs(1 + x * y) for x in a for y in h)
    leading = exact.zeros(len(a), len(h))
    for x, y in {(x, y) for x in a for y in h if abs(1 + x * y) == top}:
        leading = exact.plus(leading, spectra.block(case.A, x, case.X0, case.H, y))
    return int(to_flint(leading).rank()) == term_rank(dominant_pattern(a, h))


@search(
    with_state(
        draw.with_spectrum(st.sampled_from(_A_VALUES), 1, 4),
        draw.with_spectrum(st.sampled_from(_H_VALUES), 1, 3),
        10**6,
    ),
    at="A H X0",
)
def law_c(A: Matrix, a: list[Fraction], H: Matrix, h: list[Fraction], X0: Matrix) -> None:
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


# T4d
def collapse() -> None:
    # AQ, H = diag(-4, -1): the first feature is (-3)^L 3/2 +- 3^L/2, the second dies out.
    H, X = exact.diagonal("-4 -1"), exact.matrix("2 1; 1 3")
    states = exact_state(exact.AQ, H, X, [40, 41])
    for depth, state in states.items():
        assert abs(exact.squared_ratio(state) - Fraction(1, 9)) < Fraction(1, 10**6)
        x, y = state
        inner, squares = exact.dot(x, y), exact.dot(x, x) * exact.dot(y, y)
        assert inner > 0 and 1 - inner**2 / squares < Fraction(1, 10**6), f"depth {depth}"


def unbounded() -> None:
    # ROTATING, h = -2: |1 - 2a|^2 = 16/25 + 9/25 = 1 = |1 + h|^2, multipliers (4 -+ 3i)/5. The mean
    # is (-1)^L c + m_L with m_{L+2} = (8/5) m_{L+1} - m_L of amplitude M > |c| and a phase that is
    # no rational multiple of pi: LFC comes as near to 0 as one likes, HFC does not.
    H, X0 = exact.matrix("-2"), exact.column("3 -2 -1/2")
    pi = spectra.stationary(exact.ROTATING)
    (c,) = exact.weighted_mean(pi, X0)
    states = exact_state(exact.ROTATING, H, X0, list(range(12)))
    parts = [sum(x[0] for x in state) / 3 - (-1) ** depth * c for depth, state in states.items()]
    for first, second, third in zip(parts, parts[1:], parts[2:], strict=False):
        assert third == Fraction(8, 5) * second - first
    cosine = Fraction(4, 5)
    amplitude = (parts[0] ** 2 + parts[1] ** 2 - 2 * cosine * parts[0] * parts[1]) / (1 - cosine**2)
    assert amplitude > c**2 > 0
    # (4 + 3i)/5 is no algebraic integer, hence no root of unity.
    x = sp.Symbol("x")
    w = sp.Rational(4, 5) + sp.Rational(3, 5) * sp.I
    assert sp.expand((x - w) * (x - sp.conjugate(w)) - (x**2 - sp.Rational(8, 5) * x + 1)) == 0
    # And in numbers: the ratio exceeds 1000 within 2000 layers, and falls below 6 again.
    ratios = [r.value for r in ball_ratios(exact.ROTATING, H, X0, pi, range(1, 2000)).values()]
    present = [r for r in ratios if r is not None]
    assert max(present) > 1000 and min(present[1000:]) < 6


@search(
    draw.two_token_attention(), draw.states(2, 1), at=lambda A, a, X0: (A, [[-2 / (1 + a)]], X0)
)
def law_d(A: Matrix, a: Fraction, X0: Matrix) -> None:
    """h = -2/(1+a) ties; the ratio is exactly what the projectors say, at every depth."""
    h = -2 / (1 + a)
    assume(given.contains_both_radii(A, [[h]], X0))
    # X_L = (1+h)^L E_1 X_0 + (1+ha)^L E_a X_0, and 1 + ha = -(1+h) > 0.
    one, two = (exact.product(spectra.projector(A, x), X0) for x in (Fraction(1), a))
    states = exact_state(A, [[h]], X0, [4, 5, 20, 21])
    for depth, state in states.items():
        S = exact.plus(two, one, (-1) ** depth)
        assert 1 + h * a == -(1 + h) > 0
        hfc, lfc = exact.squared_norms(state)
        expected_hfc, expected_lfc = exact.squared_norms(S)
        assert hfc * expected_lfc == lfc * expected_hfc and hfc > 0, "the ratio is not of period 2"


# T4e
def defective_content() -> None:
    # H = [[0, 1], [0, 0]], A = J2: X_0 on the second feature drives L^1, on the first L^0.
    H, first, second = exact.matrix("0 1; 0 0"), exact.matrix("1 0; 2 0"), exact.matrix("0 1; 0 2")
    assert exact.layer(exact.J2, H, first, 8) == first
    early, late = (
        exact.squared_norms(exact.layer(exact.J2, H, second, depth))[1] for depth in (4, 8)
    )
    assert late > 3 * early


def crossing(start: list[Fraction], h: float, kind: type[np.floating], limit: int) -> int | None:
    """First layer at which HFC/LFC < 1 on A3 when every operation rounds in this format."""
    A = [[kind(float(x)) for x in row] for row in exact.A3]
    x = [kind(float(v)) for v in start]
    factor = kind(h)
    for depth in range(1, limit):
        mixed = [row[0] * x[0] + row[1] * x[1] + row[2] * x[2] for row in A]
        x = [v + factor * m for v, m in zip(x, mixed, strict=True)]
        mean = (float(x[0]) + float(x[1]) + float(x[2])) / 3
        hfc = math.sqrt(sum((float(v) - mean) ** 2 for v in x))
        if hfc < math.sqrt(3) * abs(mean):
            return depth
    return None


def reinjection(effort: by.Effort) -> by.Measurements:
    """h = 1/2 on A3 from X_0 with pi^T X_0 = 0: exactly, HFC/LFC stays above the floor 1.46; in
    floats it crosses 1 after about log(1/eps)/log(rho/rho') layers."""
    pi, per_layer = spectra.stationary(exact.A3), math.log(1.5 / 1.25)
    for first in ((1, 2), (3, -1), (0, 1)):
        start = [*map(Fraction, first), -(pi[0] * first[0] + pi[1] * first[1]) / pi[2]]
        hfc, lfc = exact.squared_norms(
            exact.layer(exact.A3, exact.matrix("1/2"), [[x] for x in start], 300)
        )
        above = float(hfc > Fraction(1464, 1000) ** 2 * lfc)
        yield by.Measurement(f"{first}, exactly: above the floor at layer 300", 1.0, above, 0)
        for kind, bits, name in ((np.float32, 24, "float32"), (np.float64, 53, "float64")):
            layer = float(crossing(start, 0.5, kind, 600) or 0)
            what = f"{first}, {name}: layer of re-injection"
            yield by.Measurement(what, bits * math.log(2) / per_layer, layer, 20)
    # Exchanging the tokens and the sign commutes with every rounded operation: never.
    x, y = 1.0, -1.0
    for _ in range(1000):
        x, y = x + 0.5 * (0.75 * x + 0.25 * y), y + 0.5 * (0.75 * y + 0.25 * x)
    yield by.Measurement("antisymmetric X_0, symmetric A: mean after 1000 layers", 0.0, x + y, 0)


@search(
    draw.two_token_attention(),
    draw.value_projections(3),
    draw.lists(st.integers(-3, 3), 6),
    at="A H",
)
def law_e(A: Matrix, a: Fraction, H: Matrix, h: list[Fraction], present: list[int]) -> None:
    """Real h; present: which blocks X_0 contains."""
    rng = np.random.default_rng(7)
    X0 = exact.zeros(2, len(h))
    kept: dict[bool, list[Fraction]] = {True: [], False: []}
    for weight, (y, x) in zip(present, pairs(sorted(set(h)), (Fraction(1), a)), strict=False):
        raw = exact.from_integers(rng.integers(1, 1000, (2, len(h))))
        block = spectra.block(A, x, raw, H, y)
        if weight and not is_zero(block):
            kept[x == 1].append(abs(1 + x * y))
            X0 = exact.plus(X0, block, weight)
    assume(kept[True] and kept[False])
    top_c, top_q = max(kept[True]), max(kept[False])
    content = given.content(A, H, X0)
    assert content.comparison == (top_c > top_q) - (top_c < top_q), "the present modes decide"
    assume(top_c != top_q)
    if top_c > top_q:
        assume(top_q / top_c < Fraction(4, 5))
        X = measured.states(A, H, X0, [150])[150]
        assert float(measured.hfc_lfc(X).mid()) < 1e-6, "it should smooth"
    else:
        assume(top_c / top_q < Fraction(4, 5))
        deviation = spectra.squared_deviation(spectra.stationary(A))
        floor_squared = 1 / (2 * deviation or Fraction(1, 10**6))
        hfc, lfc = exact.squared_norms(exact.layer(A, H, X0, 150))
        assert lfc == 0 or hfc / lfc > floor_squared * Fraction(9, 10), "below the floor"


NOT_ZERO = given.Hypothesis(
    "X_0 is not 0", lambda case: case.X0 is None or not is_zero(case.X0), (given.case(X0="0; 0"),)
)


# T4f
def four() -> None:
    cases = (
        (exact.AA, "1/2 5/4 5/6"),
        (exact.AA, "-1/2 3/4 3/2"),
        (exact.AA, "-3/2 1/4 1/2"),
        (exact.AM, "-4 4 4/3"),
    )
    for A, numbers in cases:
        X, (h, difference, ratio) = exact.column("1 2"), map(Fraction, numbers.split())
        for _ in range(8):
            Z = exact.layer(A, [[h]], X)
            assert Z[0][0] - Z[1][0] == difference * (X[0][0] - X[1][0])
            assert exact.squared_ratio(Z) == ratio**2 * exact.squared_ratio(X)
            X = Z


@search(draw.exact_cases(3, 2), at="A H X0")
def law_f(A: Matrix, H: Matrix, X0: Matrix) -> None:
    assume(len(A) > 1 and given.contains_both_radii(A, H, X0))
    rho = radii(exact_dominance(A, H))[1]
    assume(rho > 0 and abs(rho - 1) > 0.02)
    depths = [300, 600] if rho > 0.3 else [30, 60]
    states = measured.states(A, H, X0, depths)
    gaps = [measured.log(measured.hfc_norm(X)) for X in states.values()]
    assert (gaps[1] < gaps[0]) == (rho < 1), f"rho_Q = {rho}, log ||HFC|| = {gaps}"


# T4g
_BITS = 512


def _sigma(X: Matrix) -> list[flint.arb]:
    return measured.singular_values(flint.arb_mat(to_flint(X)), _BITS)


def _entropy(values: list[sp.Expr]) -> sp.Expr:
    total = sum(values)
    return -sum(x / total * sp.log(x / total) for x in values)


def grouping() -> object:
    a, b, c = sp.symbols("a b c", positive=True)
    p = a / (a + b + c)
    eta = -p * sp.log(p) - (1 - p) * sp.log(1 - p)
    gap = _entropy([a, b, c]) - eta - (1 - p) * _entropy([b, c])
    return sp.simplify(sp.expand_log(sp.expand(gap), force=True))


def triangular() -> object:
    t, b1, b2, c1, c2 = sp.symbols("t b1 b2 c1 c2", nonzero=True)
    C = sp.Matrix(2, 2, sp.symbols("k0:4"))
    b, c = sp.Matrix([[b1, b2]]), sp.Matrix([c1, c2])
    X = sp.Matrix(sp.BlockMatrix([[sp.Matrix([[t]]), b], [c, C]]))
    L = sp.Matrix(sp.BlockMatrix([[sp.eye(1), sp.zeros(1, 2)], [c / t, sp.eye(2)]]))
    R = sp.Matrix(sp.BlockMatrix([[sp.eye(1), b / t], [sp.zeros(2, 1), sp.eye(2)]]))
    D = sp.diag(t, C - c * b / t)
    return (X - L * D * R).applyfunc(sp.simplify)


def ratio() -> object:
    u = sp.Matrix(sp.symbols("u0:4", real=True))
    v = sp.Matrix(sp.symbols("v0:3", real=True))
    X, J = u * v.T, sp.ones(4, 4) / 4
    q = sum(u) ** 2 / 4
    low, high = J * X, X - J * X
    return [
        sp.expand((low.T * low).trace() - q * v.dot(v)),
        sp.expand((high.T * high).trace() - (u.dot(u) - q) * v.dot(v)),
        sp.Rational(1, 1) / sp.Rational(1, 4) - 1 - 3,
    ]


@search(draw.SEEDS, st.integers(2, 5), st.integers(2, 5), draw.fractions(-50, 50))
def law_g(seed: int, n: int, d: int, size: Fraction) -> None:
    """Interlacing, of drawn integers; a ball that is certainly larger would refute it."""
    Z, directions = draw.general_state(seed, n, d, 9), draw.general_state(seed + 1, 2, n + d, 5)
    u, v = directions[0][:n], directions[1][:d]
    X = exact.plus(Z, exact.product([[x] for x in u], [v]), size)
    whole, clean = _sigma(X), _sigma(Z)
    with at_precision(_BITS):
        for above, below in ((clean, whole), (whole, clean)):
            assert not any(y > x for x, y in zip(above, below[1:], strict=False))
