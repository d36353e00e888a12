"""T8f: what is provable of Pre-LN in depth: at most linear growth, and power laws at consensus."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given

# d = 4: z has mean 0 and variance 1; v, u are orthogonal to 1 and z.
_Z, _SIDES = exact.column("1 1 -1 -1"), exact.matrix("1 -1 0 0; 0 0 1 -1")


def _jacobian(s: Fraction) -> Matrix:
    """J_N(c) = (I - 11^T/d - z z^T/d)/s of T8c, gamma = 1, eps = 0."""
    along = exact.scaled(Fraction(1, 4), exact.product(_Z, exact.transposed(_Z)))
    centring = exact.plus(exact.identity(4), exact.uniform(4), -1)
    return exact.scaled(1 / s, exact.plus(centring, along, -1))


def _law(a: Fraction, w: Fraction, s0: Fraction) -> None:
    """(2), (3): the consensus state moves along z by w, a side by 1 + a w/s, 1 and z by 1."""
    c, s, grown = exact.scaled(s0, _Z), s0, Fraction(1)
    directions = [exact.transposed([row]) for row in _SIDES] + [[[Fraction(1)]] * 4, _Z]
    moved = directions
    for _ in range(4):
        step = exact.plus_identity(_jacobian(s), a * w)
        moved = [exact.product(step, d) for d in moved]
        c, grown = exact.plus(c, exact.scaled(w, _Z)), grown * (1 + a * w / s)
        s += w
        equal(c, exact.scaled(s, _Z))
    for side, found in zip(directions, moved, strict=True):
        equal(found, exact.scaled(grown if side in directions[:2] else 1, side))


def _product() -> sp.Expr:
    """[2; general] The product of 1 + a/(l + t) over l < L, t = s_0/w, is G(L + t + a) G(t)/(G(t +
    a) G(L + t)) with the Gamma function G, by induction; by Stirling its modulus is of order
    L^(Re a)."""
    L, t, a = sp.symbols("L t a", positive=True)
    found = sp.gamma(L + t + a) * sp.gamma(t) / (sp.gamma(t + a) * sp.gamma(L + t))
    return sp.gammasimp(found.subs(L, L + 1) / found) - (1 + a / (L + t))


CLAIM = Claim(
    name="T8f",
    clauses=(
        "Pre-LN attention X' = X + A N(X) W with row-stochastic A, computed from X too, and a norm "
        "with ||N(x)|| <= B for every token (LayerNorm: sqrt(d) max|gamma| + ||beta||): max "
        "||x_i|| grows by at most B ||W|| a layer. So HFC and LFC grow at most linearly, never "
        "exponentially.",
        "gamma = 1, beta = 0, eps = 0, W = w I, w > 0, d >= 3, A_b diagonalisable and fixed: at "
        "consensus s_L = s_0 + w L for the deviation s of c, z stays, and the linearisation along "
        "it (T8c) multiplies mode i by 1 + a_i w/s_l across 1 and z, by 1 along them. With a = "
        "max(0, max over i < n of Re a_i) < 1 a generic perturbation has HFC/LFC of order L^(a - "
        "1): a power of depth. Content alone: a = 0, slope -1.",
        "w < 0: then s' = |s - |w|| stays <= max(s_0, |w|), where it is not 0. So the residual's "
        "norm does not grow linearly at consensus for every W.",
    ),
    latex=r"\|x_i^{(L)}\|\le\|x_i^{(0)}\|+LB\|W\|,\qquad \frac{\mathrm{HFC}}{\mathrm{LFC}}\asymp "
    r"L^{\max(0,\max_{i<n}\mathrm{Re}\,a_i)-1}",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC, given.SIMPLE_ONE),
    evidence=(
        by.written(
            "a bounded branch, and a product along the way",
            "[1] Row i of A N(X) is a weighted mean of rows of length at most B; sqrt(n) times the "
            "longest token bounds HFC and LFC.",
            "[2, 3] At c = m 1 + s z the layer adds w z: s' = |s + w|, and z turns if s + w < 0.",
            "[2] T8c: the mode i is multiplied by I + a_i w (I - 11^T/d - z z^T/d)/s_l, which is 1 "
            "+ a_i w/s_l across 1 and z (there is such a direction: d >= 3) and 1 on them.",
            _product,
            "[2] No factor vanishes for generic s_0, so a generic HFC is of order L^a, LFC of "
            "order L; |a_i| <= 1, a_i != 1 for i < n: Re a_i < 1.",
            "[3] |s - |w|| <= max(s, |w|).",
        ),
        by.for_all(
            "w < 0: the deviation stays at most max(s_0, |w|)",
            given="0 <= s; 0 <= m; s <= b; m <= b",
            then="s - m <= b and m - s <= b",
            at="s=1, m=1/2, b=1",
            covers=(3,),
        ).unless("w > 0", then="s + m <= b"),
        by.searched(
            "four layers at consensus, exactly",
            _law,
            draw.fractions(-1, 1),
            draw.fractions(0, 3).filter(bool),
            draw.fractions(0, 3).filter(bool),
        ),
    ),
    further="The rates of nonlinear Pre-LN far from consensus are observations: slope -1 on the "
    "smoothing side, no clean law on the other. There is no theorem.",
)
