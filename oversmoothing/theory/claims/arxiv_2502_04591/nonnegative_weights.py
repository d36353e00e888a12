"""Non-negative weights of any size: attention alone makes tokens equal in proportion."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.t7 import dobrushin
from oversmoothing.theory.proofs.kit import AA, Claim, Matrix, by, draw, equal, exact, given

Layers = list[tuple[Matrix, Matrix]]


def _law(X: Matrix, layers: Layers) -> None:
    eps, tau = min(min(map(min, A)) for A, _ in layers), Fraction(1)
    for A, W in layers:
        X, tau = exact.product(A, X, W), tau * dobrushin(A)
        hfc, lfc = exact.squared_norms(X)
        assert hfc * (2 * eps) ** 2 <= tau**2 * lfc


@st.composite
def _networks(pick: st.DrawFn) -> tuple[Matrix, Layers]:
    if pick(st.booleans()):
        # Two tokens that mostly look at themselves: the bound is nearly attained.
        eps = pick(draw.inside(0, 1)) / 2
        return exact.column("1 0"), [([[1 - eps, eps], [eps, 1 - eps]], exact.identity(1))]
    n, d = pick(st.integers(1, 4)), pick(st.integers(1, 2))
    weights = draw.lists(draw.lists(draw.fractions(0, 9, 4), d), d)
    layers = pick(draw.lists(st.tuples(draw.attention(n, n), weights), 1, 4))
    return exact.from_integers(pick(draw.lists(draw.lists(st.integers(0, 9), d), n))), layers


def _signed() -> None:
    """[3; instance] A = [[3/4, 1/4], [1/4, 3/4]], X_0 = I: A^L (1, -1) = 2^-L (1, -1), so with W_l
    = I before the last layer and rows (1, 0), (-1, 0) in it X_L has mean 0. L = 1 to 5."""
    X, last = exact.identity(2), exact.matrix("1 0; -1 0")
    for depth in range(1, 6):
        X = exact.product(AA, X)
        equal(
            exact.product(X, last), exact.scaled(Fraction(1, 2**depth), exact.matrix("1 0; -1 0"))
        )
        equal(exact.squared_norms(exact.product(X, last))[1], 0)


CLAIM = Claim(
    name="N-2502.04591-nonnegative",
    clauses=(
        "X_l = A_l X_(l-1) W_l, no residual, A_l row-stochastic with all entries at least eps > 0 "
        "and changing at will, W_l >= 0 entrywise of any size, X_0 >= 0, X_L != 0: HFC/LFC <= "
        "tau(A_1) ... tau(A_L)/(2 eps) <= (1 - n eps)^L/(2 eps), tau Dobrushin's. A ReLU after "
        "any layer changes nothing.",
        "So the numerical rank is at most 1 + (1 - n eps)^(2L)/(4 eps^2): it tends to 1 "
        "geometrically, whatever the norms of the weights. (Numerical rank 1 for non-negative "
        "weights without a bound on them: abstract of v3, with many activations; our reading.)",
        "The signs are needed: with W_l of both signs there are, at every depth, an X_0 >= 0 and "
        "weights with HFC/LFC infinite.",
    ),
    latex=r"W_l\ge0,\ X_0\ge0:\qquad\frac{\mathrm{HFC}}{\mathrm{LFC}}\le"
    r"\frac{(1-n\epsilon)^L}{2\epsilon}",
    source="arXiv 2502.04591 v3, non-negative weights (abstract), our reading; the bound is ours",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE.said("A of each layer is row-stochastic and entrywise positive"),),
    evidence=(
        by.written(
            "column by column",
            "[1] Column k of X_L is A_L ... A_1 y with y = X_0 w >= 0, w a column of W_1 ... W_L. "
            "Entries of A_1 y are at least eps sum y >= eps osc(y), and means of them stay so, "
            "while osc falls to prod tau osc(y) at most (N-2312.06182-changing-bound).",
            "[1] The column's HFC is at most sqrt(n) osc/2 (Popoviciu), its LFC at least sqrt(n) "
            "times its least entry; sum the squares over the columns. All states are >= 0. tau "
            "<= 1 - n eps, as rows share eps in each column.",
            "[2] N-2502.04591-rank.",
            _signed,
        ),
        by.searched(
            "up to four layers in fractions",
            _law,
            _networks(),
            at=lambda X, layers: given.of_attention(layers[0][0]),
        ),
    ),
    further="With a residual the weights decide (T2d, T7c).",
)
