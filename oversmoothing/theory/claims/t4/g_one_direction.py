"""T4g: one large direction (a sink): what it does to rank, ratio, cosines, and what lies behind."""

from fractions import Fraction

import flint
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw

_BITS = 512


def with_sink(Z: Matrix, size: Fraction, u: list[Fraction], v: list[Fraction]) -> Matrix:
    """Z + size u v^T."""
    return [
        [z + size * x * y for z, y in zip(row, v, strict=True)] for row, x in zip(Z, u, strict=True)
    ]


def _sigma(X: Matrix) -> list[flint.arb]:
    return measured.singular_values(flint.arb_mat(to_flint(X)), _BITS)


def _entropy(values: list[sp.Expr]) -> sp.Expr:
    total = sum(values)
    return -sum(x / total * sp.log(x / total) for x in values)


def _grouping() -> object:
    """[1; fixed size] The p_i = sigma_i/sum sigma of X are p = p_1 and (1-p) times those of X': the
    entropy is eta(p) + (1-p) times that of X' (grouping), so erank(X) = e^eta(p)
    erank(X')^(1-p)."""
    a, b, c = sp.symbols("a b c", positive=True)
    p = a / (a + b + c)
    eta = -p * sp.log(p) - (1 - p) * sp.log(1 - p)
    found = _entropy([a, b, c]) - eta - (1 - p) * _entropy([b, c])
    return sp.simplify(sp.expand_log(sp.expand(found), force=True))


def _triangular() -> object:
    """[3; fixed size] In bases whose first vectors are u and v, X_s = [s + alpha, b^T; c, C], C =
    (I-uu^T) Z (I-vv^T) without its zero row and column. X_s = L diag(s + alpha, C - c b^T/(s +
    alpha)) R with unit triangular L, R -> I."""
    t, b1, b2, c1, c2 = sp.symbols("t b1 b2 c1 c2", nonzero=True)
    C = sp.Matrix(2, 2, sp.symbols("k0:4"))
    b, c = sp.Matrix([[b1, b2]]), sp.Matrix([c1, c2])
    X = sp.Matrix(sp.BlockMatrix([[sp.Matrix([[t]]), b], [c, C]]))
    L = sp.Matrix(sp.BlockMatrix([[sp.eye(1), sp.zeros(1, 2)], [c / t, sp.eye(2)]]))
    R = sp.Matrix(sp.BlockMatrix([[sp.eye(1), b / t], [sp.zeros(2, 1), sp.eye(2)]]))
    D = sp.diag(t, C - c * b / t)
    return (X - L * D * R).applyfunc(sp.simplify)


def _ratio() -> object:
    """[3; fixed size] X_s/s -> u v^T, of which LFC^2 = (1^T u)^2/n = q and HFC^2 = 1 - q: the ratio
    tends to sqrt(1/q - 1); q = 1/n for u = e_k gives sqrt(n-1). At q = 0 LFC is that of Z at every
    s and HFC grows without end: infinity."""
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


def _law(seed: int, sizes: tuple[int, int], size: Fraction) -> None:
    """Interlacing, of drawn integers; a ball that is certainly larger would refute it."""
    n, d = sizes
    Z, directions = draw.general_state(seed, n, d, 9), draw.general_state(seed + 1, 2, n + d, 5)
    X = with_sink(Z, size, directions[0][:n], directions[1][:d])
    whole, clean = _sigma(X), _sigma(Z)
    with at_precision(_BITS):
        for above, below in ((clean, whole), (whole, clean)):
            assert not any(y > x for x, y in zip(above, below[1:], strict=False))


def _measure(effort: by.Effort) -> by.Measurements:
    """A sink of one token, s = 1e12, on an integer 5 x 4 state."""
    n, d = 5, 4
    Z = draw.general_state(effort.seed, n, d, 9)
    u = [Fraction(k == 2) for k in range(n)]
    v = [Fraction(k == 0) for k in range(d)]
    X = with_sink(Z, Fraction(10**12), u, v)
    balls = flint.arb_mat(to_flint(X))
    excess = float(measured.effective_rank_excess(balls, _BITS).mid())
    yield by.Measurement("erank - 1", 0.0, excess, 1e-8)
    ratio = float(measured.hfc_lfc(balls, _BITS).mid())
    yield by.Measurement("HFC/LFC: sqrt(n-1)", (n - 1) ** 0.5, ratio, 1e-9)
    rest = [[x for k, x in enumerate(row) if k != 0] for i, row in enumerate(Z) if i != 2]
    for i, (found, expected) in enumerate(zip(_sigma(X)[1:], _sigma(rest), strict=True), 1):
        name = f"sigma_{i} without the direction"
        yield by.Measurement(name, float(expected.mid()), float(found.mid()), 1e-8)


CLAIM = Claim(
    name="T4g",
    clauses=(
        "X_s = Z + s u v^T with |u| = |v| = 1, min(n, d) >= 2, q = (1^T u)^2/n; X' is X without "
        "its largest direction, X - sigma_1 u_1 v_1^T. For X of rank 2 or more and p = "
        "sigma_1/sum sigma: erank(X) = e^eta(p) erank(X')^(1-p) exactly, eta(p) = -p log p - "
        "(1-p) log(1-p).",
        "For every s, sigma_(i+2)(Z) <= sigma_i(X_s') = sigma_(i+1)(X_s) <= sigma_i(Z), and no "
        "X_s - R with rank R <= 1 has a smaller sigma_i than X_s'.",
        "For s -> infinity, whatever Z: sigma_i(X_s') -> sigma_i((I-uu^T) Z (I-vv^T)), "
        "erank(X_s) -> 1 and HFC/LFC -> sqrt(1/q - 1), which is infinite at q = 0; for one "
        "token, u = e_k, it is sqrt(n-1), while the cosines of all pairs without k do not depend"
        " on s.",
    ),
    latex=r"\mathrm{erank}(X)=e^{\eta(p)}\,\mathrm{erank}(X')^{1-p},\qquad "
    r"\sigma_{i+2}(Z)\le\sigma_i(X_s')\le\sigma_i(Z),\qquad "
    r"\frac{\mathrm{HFC}}{\mathrm{LFC}}\to\sqrt{1/q-1}",
    source="ours, from the grouping of entropy and Weyl's inequalities, for the effective rank of "
    "Roy and Vetterli (2007)",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "grouping, interlacing and the Schur complement",
            _grouping,
            "[2] Weyl: sigma_(i+1)(P + R) <= sigma_i(P) + sigma_2(R), and sigma_2(R) = 0 for rank "
            "R <= 1. P = Z, R = s u v^T: sigma_(i+1)(X_s) <= sigma_i(Z); P = X_s, R = -s u v^T: "
            "sigma_(i+1)(Z) <= sigma_i(X_s), at i + 1: sigma_(i+2)(Z) <= sigma_(i+1)(X_s). The "
            "singular values of X_s' are sigma_2, sigma_3, ... of X_s, and P = X_s - R: "
            "sigma_(i+1) (X_s) <= sigma_i(X_s - R).",
            _triangular,
            "[3] sigma_i(L D R) lies between sigma_i(D)/(||L^-1|| ||R^-1||) and sigma_i(D) ||L|| "
            "||R||, and both bounds tend to sigma_i(D): sigma_1(X_s)/(s + alpha) -> 1 and "
            "sigma_(i+1)(X_s) -> sigma_i(C). The others are bounded while sigma_1 grows, so all of"
            " their shares tend to 0 and erank(X_s) -> 1.",
            _ratio,
            "[3] u = e_k changes token k alone: the other tokens, hence the cosines of their "
            "pairs, are those of Z.",
        ),
        by.searched(
            "the singular values of Z and Z + s u v^T interlace",
            _law,
            draw.SEEDS,
            st.tuples(st.integers(2, 5), st.integers(2, 5)),
            draw.fractions(-50, 50),
        ),
        by.Simulated("a sink of one token at s = 1e12", _measure),
    ),
    further="several sinks: k large directions shift the indices by k in (ii)",
)
