"""T5d: depths from which smoothing is certain, and floors that hold at every depth."""

from collections.abc import Iterable
from fractions import Fraction

import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.depth.bounds import certified_depth, power_depth, ratio_floor
from oversmoothing.theory.depth.bounds_in_balls import certified_depth_in_balls
from oversmoothing.theory.depth.rates_measured import random_case
from oversmoothing.theory.depth.ratios import ball_ratios
from oversmoothing.theory.numbers.exact_matrix import matrix
from oversmoothing.theory.numbers.rational import Matrix, to_float
from oversmoothing.theory.proofs.instances import A3
from oversmoothing.theory.proofs.kit import Claim, Status, by, draw, given, is_zero, spectra

_DIAGONALISABLE = given.Hypothesis(
    "A and H are diagonalisable",
    lambda case: spectra.diagonalisable(case.A) and spectra.diagonalisable(case.H),
    (given.case(H="0 1; 0 0"), *given.EIGENBASIS_A.violated),
)


def _left_eigenvector_bound() -> None:
    """[2; fixed size] Floor: w^T A = a_i w^T, i < n, w^T 1 = 0 so w^T X = w^T HFC, and w^T X_L z =
    mu_ij^L w^T X_0 z; |w^T HFC z| <= ||w|| ||HFC||_2 ||z||."""
    a, h = sp.symbols("a h", real=True)
    p, q = sp.symbols("p q", real=True)
    # A = S diag(1, a) S^-1 with S = [[1, p], [1, p - 1]]: rows of S^-1 are left eigenvectors.
    S, U = sp.Matrix([[1, p], [1, p - 1]]), sp.Matrix([[1, q], [0, 1]])
    A, H = S * sp.diag(1, a) * S.inv(), U * sp.diag(h, 3 * h) * U.inv()
    X = sp.Matrix(2, 2, sp.symbols("x0:4", real=True))
    w, z = S.inv()[1, :], U.inv()[0, :]
    assert is_zero(w * sp.ones(2, 1))
    assert is_zero(w * (X + A * X * H.T) * z.T - (1 + h * a) * (w * X * z.T))
    assert is_zero(sp.ones(1, 2).T - S[:, 0])


def _kappa_multiplies() -> None:
    """[1; fixed size] vec(Y_L) = (I + H (x) B)^L vec(Y_0) and the eigenvector matrix is V_H (x)
    V_B, of condition number kappa(V_H) kappa(V_B): ||HFC_L||_F = ||Y_L||_F <= kappa(V_H) kappa(V_B)
    rho_Q^L ||HFC_0||_F. Q orthonormal is used in the first equality."""
    # The 2-norm of a Kronecker product is the product: (V (x) U)* (V (x) U) = V*V (x) U*U.
    V, U = (sp.Matrix(2, 2, sp.symbols(f"{name}0:4", real=True)) for name in "vu")
    left = sp.kronecker_product(V, U)
    assert is_zero((left.T * left - sp.kronecker_product(V.T * V, U.T * U)).applyfunc(sp.expand))


@st.composite
def _drawn(draw_: st.DrawFn) -> tuple[Matrix, Matrix, Matrix, Fraction]:
    A = draw_(draw.attention(2, 4))
    values = draw_(st.lists(draw.fractions(-3, 2, 6), min_size=1, max_size=3, unique=True))
    H = draw_(draw.with_jordan_blocks([(v, 1) for v in values]))
    eps = draw_(st.sampled_from([Fraction(1, k) for k in (2, 20, 1000, 10**9)]))
    return A, H, draw_(draw.states(len(A), len(H))), eps


def _above(A: Matrix, H: Matrix, X0: Matrix, eps: float, depths: Iterable[int]) -> list[int]:
    """The depths at which HFC/LFC, in balls, is not at most eps."""
    ratios = ball_ratios(A, H, X0, spectra.stationary(A), depths)
    return [L for L, r in ratios.items() if r.value is None or r.value > eps]


def _law(A: Matrix, H: Matrix, X0: Matrix, eps: Fraction) -> None:
    found = certified_depth_in_balls(A, H, X0, eps)
    assume(found is not None and found.depth < 5000)
    assert found is not None
    depths = [found.depth + k for k in (0, 1, 2, 7, 40)]
    assert not _above(A, H, X0, float(eps) * (1 + 1e-12), depths), "not smoothed"


def _floor_law(A: Matrix, H: Matrix, X0: Matrix, _: Fraction) -> None:
    assume(not given.consensus(X0))
    depths = [0, 1, 2, 5, 20, 60]
    bounds = ratio_floor(to_float(A), to_float(H), to_float(X0), depths)
    ratios = ball_ratios(A, H, X0, spectra.stationary(A), depths)
    for (depth, ratio), bound in zip(ratios.items(), bounds, strict=True):
        assume(ratio.value is not None)
        assert ratio.value is not None
        assert ratio.value >= bound * (1 - 1e-6) - 1e-13, f"below the floor at layer {depth}"


def _certify(effort: by.Effort) -> by.Settled:
    """Twelve seeded systems, eps = 1e-3: L* (balls, float64, powers) against the true depth."""
    for seed in range(12):
        A, H, X0 = random_case(seed, 3 + seed % 3, 1 + seed % 3, Fraction(3, 2))
        found = certified_depth_in_balls(A, H, X0, Fraction(1, 1000))
        if found is None:
            yield False
            continue
        floats = to_float(A), to_float(H), to_float(X0)
        above = _above(A, H, X0, 1e-3, range(found.depth + 60))
        actual = max(above, default=-1) + 1
        for other in (found, certified_depth(*floats, 1e-3), power_depth(*floats, 1e-3)):
            if other is not None and other.depth < actual:
                yield f"seed {seed}: certified {other.depth}, actual {actual}"
        yield True


def _defective(effort: by.Effort) -> by.Settled:
    """A defective H: no kappa, but powers certify; the transient is real."""
    H, X0 = matrix("1/2 2; 0 1/2"), matrix("1 2; 3 5; -2 1")
    floats = to_float(A3), to_float(H), to_float(X0)
    if certified_depth(*floats, 1e-3) is not None:
        yield "a defective H was given a condition number"
    found = power_depth(*floats, 1e-3)
    if found is None:
        yield False
        return
    bad = _above(A3, H, X0, 1e-3, range(found.depth, found.depth + 40))
    yield f"HFC/LFC > 1/1000 at layer {bad[0]} >= {found.depth}" if bad else True


CLAIM = Claim(
    name="T5d",
    clauses=(
        "A, H diagonalisable, SMOOTHING, z^T c_0^T != 0 for a left eigenvector z of H at a "
        "dominant h (or at any h with |1+h| > rho_Q, r = rho_Q/|1+h| then): HFC/LFC <= eps for "
        "ALL L >= L* = ceil(log(K(1 + k eps)/eps)/log(1/r)), K = kappa(V_H) kappa(V_B) ||HFC_0||"
        " ||z||/(sqrt n |z^T c_0^T|), k = sqrt n delta, B = Q^T A Q with orthonormal Q; L* = 1 "
        "if r = 0, never below 0.",
        "In either verdict ||HFC_L|| >= |mu_ij|^L |w_i^T X_0 z_j|/(||w_i|| ||z_j||).",
        "Defective A or H: the same with powers of I + H (x) B in place of the kappas.",
    ),
    latex=r"L^*(\varepsilon)=\left\lceil\frac{\log\big(K(1+k\varepsilon)/\varepsilon\big)}"
    r"{\log(1/r)}\right\rceil\;\Rightarrow\;\frac{\|HFC_L\|}{\|LFC_L\|}\le\varepsilon\;\;"
    r"\forall L\ge L^*",
    source="ours",
    on_record=Status.WRITTEN,
    hypotheses=(
        given.ROW_STOCHASTIC,
        given.TWO_TOKENS,
        given.SMOOTHING,
        given.GENERIC,
        _DIAGONALISABLE,
    ),
    evidence=(
        by.written(
            "left eigenvectors below, condition numbers above",
            "[1] ||c_L|| >= |1+h|^L |z^T c_0^T|/||z|| for every left eigenvector z of H (T4a), "
            "diagonalisable or not; any h with |1+h| > rho_Q serves, and the best of them is "
            "taken.",
            _kappa_multiplies,
            "[1] So t_L <= K r^L with K = kappa(V_H) kappa(V_B) ||HFC_0|| ||z||/(sqrt n |z^T "
            "c_0^T|). By T1e HFC/LFC <= 1/(1/t - k), which is <= eps if t <= eps/(1 + k eps) "
            "(query): K r^L (1 + k eps) <= eps iff L >= log(K(1 + k eps)/eps)/log(1/r), and then "
            "for all larger L. r = 0: T = 0 (diagonalisable), so one layer suffices.",
            _left_eigenvector_bound,
            "[2] ||c_L|| <= kappa(V_H) rho_C^L ||c_0||, so 1/t has an upper bound and T1e's left "
            "side gives HFC/LFC >= 1/(k + 1/t) at every L, in either verdict.",
            "[3] Where kappa is huge or infinite: ||T^(qp+j)|| <= ||T^p||^q ||T^j||, so t_L <= K' "
            "s^L/|1+h|^L with s = ||T^p||^(1/p), K' the same with max_{j<p} ||T^j||/s^j for the "
            "kappas.",
        ),
        by.for_all(
            "t <= K r^L and K r^L (1 + k eps) <= eps give HFC/LFC <= eps through "
            "ratio (1/t - k) <= 1",
            given=(
                "t > 0; k >= 0; eps > 0; t*(1 + k*eps) <= eps; ratio >= 0",
                "ratio*(1 - k*t) <= t",
            ),
            then="ratio <= eps",
            at="t=1/10, k=1, eps=1/2, ratio=1/10",
            covers=(1,),
        )
        .unless("the factor 1 + k eps dropped", without="t*(1 + k*eps) <= eps", given="t <= eps")
        .unless("1 - k eps instead", without="t*(1 + k*eps) <= eps", given="t*(1 - k*eps) <= eps"),
        by.searched(
            "L* in balls against ratios in balls",
            _law,
            _drawn(),
            at=lambda A, H, X0, eps: (A, H, X0),
        ),
        by.searched("floors at every depth", _floor_law, _drawn()),
        by.Certified("twelve seeded systems, in balls, float64 and by powers", _certify),
        by.Certified("a defective H", _defective),
    ),
    further="K is usually large by the kappas: a smaller one from the numerical range of H (x) B",
)
