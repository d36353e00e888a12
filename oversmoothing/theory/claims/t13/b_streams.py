"""T13b: residual streams mixed by a row-stochastic R come to agree, whatever the branch."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.t7.oscillation import dobrushin, oscillation, squared_diameter
from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given

Layer = tuple[Matrix, list[Fraction], list[Fraction]]


def _streams(R: Matrix, X: Matrix, p: list[Fraction], branch: list[Fraction]) -> Matrix:
    """One layer: every row of X is a stream, all of its tokens and features in one vector."""
    moved = exact.product(R, X)
    return [
        [x + weight * b for x, b in zip(row, branch, strict=True)]
        for row, weight in zip(moved, p, strict=True)
    ]


def _quotient_alone() -> None:
    """[3; instance] The branch leaves the difference of two streams: differences to one stream
    follow B', B'_kl = R_kl - R_sl, which has the eigenvalues of R without one 1 (T1c)."""
    R, X = exact.matrix("1/2 1/4 1/4; 0 1 0; 1/3 1/3 1/3"), exact.matrix("1 2; 3 -5; 2 2")
    after = _streams(R, X, [Fraction(1)] * 3, [Fraction(7), Fraction(-4)])
    assert exact.differences(after) == exact.product(rational_quotient(R), exact.differences(X))


@st.composite
def _drawn(pick: st.DrawFn) -> tuple[Matrix, list[Layer]]:
    """A state of 2 to 4 streams and 1 to 4 layers (R, p, the branch)."""
    s = pick(st.integers(2, 4))
    vector = draw.lists(draw.fractions(-3, 3, 4), 2)
    weights = st.one_of(st.just([Fraction(1)] * s), draw.lists(draw.fractions(-2, 2, 4), s))
    layer = st.tuples(draw.attention(s, s, zeros=True), weights, vector)
    return pick(draw.states(s, 2)), pick(draw.lists(layer, 1, 4))


def _law(X: Matrix, layers: list[Layer]) -> None:
    """The largest entry of a difference, as a norm: in it all is rational."""
    for R, p, branch in layers:
        before, X = X, _streams(R, X, p, branch)
        size = max(map(abs, branch))
        spread = [max(map(oscillation, exact.transposed(Y))) for Y in (before, X)]
        assert spread[1] <= dobrushin(R) * spread[0] + oscillation(p) * size
        if oscillation(p) == 0:
            assert squared_diameter(X) <= dobrushin(R) ** 2 * squared_diameter(before)
        if squared_diameter(before) == 0 == oscillation(p):
            assert squared_diameter(X) == 0


CLAIM = Claim(
    name="T13b",
    clauses=(
        "s residual streams x_k' = sum_l R_kl x_l + p_k b, R row-stochastic, b any branch "
        "(attention, feed-forward blocks, norms, computed from all streams). p = 1: equal streams "
        "stay equal,",
        "and with b = A (sum_l q_l x_l) W they follow one stream X' = X + A X W with W scaled by "
        "q^T 1.",
        "p = 1: the differences between streams follow R alone, whatever b: those to one stream "
        "have the matrix R_kl - R_1l, whose eigenvalues are those of R without one 1.",
        "R_l and b_l that change from layer to layer and follow the state, p = 1: in any norm the "
        "largest distance between two streams at L is at most tau(R_1) ... tau(R_L) times that at "
        "0.",
        "Any p: in one layer it becomes at most tau(R) times it + (max p - min p) ||b||.",
    ),
    latex=r"\max_{k,l}\|x_k - x_l\|\ \text{at } L\ \le\ \prod_{m\le L}\tau(R_m)\ "
    r"\max_{k,l}\|x_k - x_l\|\ \text{at } 0\qquad(p = \mathbf 1)",
    source="ours, on hyper-connections; a doubly stochastic R is one case",
    on_record=by.MACHINE,
    setting="A stands for R in the instances that the search draws",
    hypotheses=(given.ROW_STOCHASTIC.said("R is row-stochastic: R >= 0 and R 1 = 1"),),
    evidence=(
        by.Formal("T13_streams.equal_streams", (1,)),
        by.Formal("T13_streams.as_one_stream", (2,)),
        by.Formal("T13_streams.differences_follow_R", (3,)),
        by.Formal("T13_streams.streams_agree", (4,)),
        by.Formal("T13_streams.streams_step", (5,)),
        by.written(
            "R acts on streams as attention on tokens",
            "[1, 2] R 1 = 1 keeps x in every stream, and p = 1 adds the same b to each; with equal "
            "streams sum_l q_l x_l = (q^T 1) x.",
            _quotient_alone,
            "[4, 5] For rows r, r' of R the difference of the new streams is (r - r') X + (p_k - "
            "p_l) b, and ||(r - r') X|| <= tau(R) max ||x_k - x_l|| (T7b-certificate, step 1).",
            "[4] p = 1 leaves the first term; induction over the layers.",
        ),
        by.searched(
            "up to four layers of 2 to 4 streams in fractions",
            _law,
            _drawn(),
            at=lambda X, layers: (layers[0][0], [[Fraction(1)]], X),
        ),
    ),
    further="Which H are safe for a given mixing, and what p other than 1 does to redundancy",
)
