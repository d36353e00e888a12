"""Which eigenvector tokens tilt to: with a residual the one of the largest |1 + lambda|."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import POSITIVE_SPECTRUM
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given, spectra


def _law(attention: tuple[Matrix, Fraction], value: draw.Known, x: list[int]) -> None:
    """X_L - mu^L 1 c_0 E^T is made of modes of smaller modulus, exactly."""
    (A, a), (H, kinds) = attention, value
    X = exact.from_integers(x[i * 4 : i * 4 + len(H)] for i in range(2))
    top = max(kinds, key=lambda h: abs(1 + h))
    others = [(b, h) for b in (Fraction(1), a) for h in {*kinds} if b != 1 or h != top]
    assert all(abs(1 + b * h) < abs(1 + top) for b, h in others)
    c = [exact.weighted_mean(spectra.stationary(A), X)]
    row = exact.product(c, exact.transposed(spectra.projector(H, top)))
    for depth in (0, 1, 4):
        rest = exact.scaled((1 + top) ** depth, [row[0], row[0]])
        for b, h in others:
            part = spectra.block(A, b, X, H, h)
            rest = exact.plus(rest, exact.scaled((1 + b * h) ** depth, part))
        equal(exact.layer(A, H, X, depth), rest)


CLAIM = Claim(
    name="N-2605.25619-direction",
    clauses=(
        "Tokens tilt towards the principal eigenvector of F = W_O W_V (abstract). With the same "
        "weights and one A > 0 in every layer and a residual, X' = X + A X F^T, where consensus "
        "dominates and one simple mu = 1 + lambda alone has the largest modulus: X_L/mu^L tends to "
        "s 1 u^T, F u = lambda u, with s != 0 for X_0 outside a hyperplane. So every token tends "
        "to the direction of +-u, the eigenvector of the largest |1 + lambda|.",
        "It is that of the largest |lambda| too if this is attained at a real lambda >= 0 alone.",
        "Without a residual, X' = A X F^T, it is that of the largest |lambda|, if one simple real "
        "lambda alone has it.",
    ),
    latex=r"\frac{X_L}{\mu^L}\to s\,\mathbf 1u^\top,\qquad Fu=\lambda u,\quad "
    r"|1+\lambda|=\max_j|1+\lambda_j|",
    source="ours, for arXiv 2605.25619 (abstract; shared weights)",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.SMOOTHING, given.ONE_REAL_PAIR),
    evidence=(
        by.written(
            "the pi-mean is a power method for I + F",
            POSITIVE_SPECTRUM.covering(1, 3),
            "[1] c_L = c_0 (I + F^T)^L with c = pi^T X (T1d): c_L/mu^L -> (c_0 z) u^T, z the left "
            "eigenvector with z^T u = 1, and c_0 z = 0 is a hyperplane. |mu| = rho_C > rho_Q, so "
            "HFC_L/mu^L -> 0 (T1c) and X_L/mu^L has the limit 1 (c_0 z) u^T.",
            "[3] The same with F^T in the place of I + F^T: HFC grows like |lambda_2(A)| rho(F), "
            "less than c (T9a).",
        ),
        by.for_all(
            "|lambda| <= g real: |1 + lambda| <= 1 + g, with equality at lambda = g alone",
            given="x**2 + y**2 <= g**2; g >= 0",
            then="(1+x)**2 + y**2 <= (1+g)**2 and Iff((1+x)**2 + y**2 == (1+g)**2, x == g and "
            "y == 0)",
            at="x=-1/2, y=0, g=1",
            covers=(2,),
        ).unless("g of either sign", without="g >= 0"),
        by.searched(
            "two tokens: all modes, exactly",
            _law,
            draw.two_token_attention(),
            draw.value_projections(3),
            draw.lists(st.integers(-9, 9), 8),
            at=lambda attention, value, x: (attention[0], value[0]),
        ),
    ),
    further="Where |1 + lambda| and |lambda| disagree: N-2605.25619-modulus. A complex pair of "
    "largest |1 + lambda| makes the direction turn (T3f).",
)
