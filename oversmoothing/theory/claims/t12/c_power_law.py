"""T12c: a looped Pre-LN block near consensus moves HFC/LFC like a power of the number of loops."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.t12.looped import slopes, small_block
from oversmoothing.theory.proofs.kit import Claim, by, draw


def _jacobian(x: sp.Matrix, eps: sp.Expr) -> sp.Matrix:
    """J_N of LayerNorm (T8c)."""
    d = x.rows
    C = sp.eye(d) - sp.ones(d) / d
    s = sp.sqrt((C * x).dot(C * x) / d + eps)
    return (C - (C * x) * (C * x).T / (d * s**2)) / s


def _scales() -> sp.Matrix:
    """[1; instance] r J_N(r x) with r^2 eps is J_N(x) with eps: so r J_N(r u + w) with eps is that
    at u + w/r with eps/r^2, which tends to J_N(u) with eps = 0."""
    x, r = sp.Matrix([1, 2, 4]), sp.Symbol("r", positive=True)
    return r * _jacobian(r * x, r**2 / 3) - _jacobian(x, sp.Rational(1, 3))


def _kernel() -> sp.Matrix:
    """[4; fixed size] With eps = 0 the norm does not see the length of u: J_N(u) u = 0, so K(v^)
    v^ = 0 and 0 is an eigenvalue of K."""
    u = sp.Matrix(sp.symbols("x y z", real=True))
    return _jacobian(u, sp.Integer(0)) * u


@st.composite
def _drawn(pick: st.DrawFn) -> tuple[Fraction, Fraction, list[Fraction], list[Fraction]]:
    """r_0, c, kappa_i for features 2 to 4, and what these add to feature 1."""
    three = draw.lists(draw.fractions(-2, 2), 3)
    positive = draw.fractions(0, 3).filter(bool)
    return pick(positive), pick(positive), pick(three), pick(three)


def _law(r: Fraction, c: Fraction, kappas: list[Fraction], first: list[Fraction]) -> None:
    """RMSNorm with eps = 0, d = 4, along (r, 0, 0, 0), and B with the rows (c, first)/2 and
    diag(kappas)/2: the derivative of x + B N(x), by the quotient rule, exactly."""
    B = [[c, *first]] + [[Fraction(0)] * i + [k] + [Fraction(0)] * (3 - i)
                         for i, k in enumerate(kappas, 1)]  # fmt: skip
    v, delta, grown = r, [Fraction(1)] * 4, [Fraction(1)] * 3
    for _ in range(4):
        s = v / 2
        moved = [delta[0] / s - v * (v * delta[0]) / (4 * s**3), *(x / s for x in delta[1:])]
        delta = [
            x + sum((b * y for b, y in zip(row, moved, strict=True)), Fraction(0)) / 2
            for x, row in zip(delta, B, strict=True)
        ]
        grown = [g * (1 + k / v) for g, k in zip(grown, kappas, strict=True)]
        v += c * v / s / 2
    assert (v, delta[1:]) == (r + 4 * c, grown)


def _measured(effort: by.Effort) -> by.Measurements:
    """Three tokens, 400 to 800 loops."""
    for seed in (0, 3):
        predicted, measured = slopes(small_block("pre", False, seed), seed)
        yield by.Measurement(f"weights {seed}", predicted, measured, 0.015)


CLAIM = Claim(
    name="T12c",
    clauses=(
        "v' = v + G(v) for the equal tokens of a looped Pre-LN block, LayerNorm or RMSNorm with "
        "any eps, FFN continuously differentiable: far out G(v) = G^(v/|v|) + O(1/|v|), and small "
        "differences (T12b) have delta' = (I + (K(v/|v|) + o(1))/|v|) delta, K(u) = J_phi(N u) |u|"
        " J_N(u) with eps = 0, near every direction that N is defined at.",
        "If |v_t| -> inf, v_t/|v_t| -> v^, and G^(v^) != 0, then G^(v^) = c v^ with c > 0, and "
        "|v_t|/t -> c.",
        "Then, kappa = max Re spec K(v^): every delta has limsup log|delta_t|/log t <= kappa/c, "
        "and from some loop on all but those of a proper subspace have the limit kappa/c. So at "
        "first order log(HFC/LFC)/log t -> kappa/c - 1: differences fall behind consensus if kappa"
        " < c, overtake it if kappa > c.",
        "kappa >= 0: HFC/LFC never falls faster than 1/t^(1 + o(1)) for generic small differences, "
        "and without an FFN it falls like 1/t (K = 0, as in T8f).",
        "On a ray, G homogeneous of degree 0 and v_0 = r_0 v^: |v_t| = r_0 + c t, and delta_t is "
        "of order t^(kappa/c) (log t)^(m-1), m the largest Jordan block of K with that real part.",
    ),
    latex=r"\frac{\mathrm{HFC}}{\mathrm{LFC}}=t^{\kappa/c-1+o(1)},\qquad "
    r"\kappa=\max\operatorname{Re}\operatorname{spec}K(\hat v),\quad G(\hat v)=c\,\hat v",
    source="ours",
    on_record=by.WRITTEN,
    setting="logits from the content alone; |v^| = 1",
    evidence=(
        by.written(
            "a linear system in log time",
            "[1] N(v) = N_0(v/|v|) + O(1/|v|^2), N_0 with eps = 0, of degree 0; c' = v + W^T N(v) "
            "is off v by a bounded term, so N(c') = N_0(v/|v|) + O(1/|v|), and by T8c J_N(c') is "
            "J_N0(v/|v|)/|v| + O(1/|v|^2); J_phi is continuous. T12b: nothing else stands across.",
            _scales,
            "[2] G(v_t) -> G^(v^); so do its means (v_t - v_0)/t. The limit is not 0, and v_t/|v_t|"
            " tends to its direction: G^(v^) = |G^(v^)| v^.",
            "[3] delta' = (I + s_t (K + E_t)) delta, s_t = 1/|v_t|, E_t -> 0, sum of s_t up to t ~"
            " (log t)/c. In a real Jordan basis with small off-diagonals let + be the part with Re"
            " = kappa, - the rest, whose Re <= l < kappa. For small e > 0 and late t: ||delta'|| "
            "<= (1 + s (kappa + 2e)) ||delta||, the bound above.",
            "[3] Where |delta_-| <= |delta_+| that stays so (below), and |delta_+| grows by 1 + s "
            "(kappa - 2e) at least. A delta that never comes there has limsup at most (l + 3e)/c. "
            "These make up a subspace that misses the cone, so a proper one, for every small e.",
            _kernel,
            "[4] Generic |delta_t| >= t^(kappa/c - o(1)), LFC ~ sqrt(n) c t.",
            "[5] In a Jordan basis the product over s < t of I + K/(r_0 + c s) is, by T8f's "
            "quotient of Gamma functions at K in place of a, t^(K/c) times an invertible matrix "
            "that converges (if no factor is singular).",
        ),
        by.for_all(
            "[3] the cone",
            given="0 < s; 0 < e; 0 <= q; q <= p; l + 4*e <= k; 0 <= 1 + s*(l+e); P >= (1 + s*(k-e)"
            ")*p - s*e*p; Q <= (1 + s*(l+e))*q + s*e*p",
            then="Q <= P",
            at="s=1/10, e=1/10, q=1, p=1, l=0, k=1, P=2, Q=1",
        ).unless("k = l", without="l + 4*e <= k", given="l <= k"),
        by.searched("four loops along a ray, by the quotient rule in fractions", _law, _drawn()),
        by.Simulated("the slope of a looped block", _measured),
    ),
    further="Which directions v_t/|v_t| converges to, and from where; T12c-attraction has one case",
)
