"""What LayerNorm does preserve: the linear rank of the tokens without their feature means."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.arxiv_2604_23681.normalising import affine_rank, centred_rows, rank
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact


@st.composite
def _drawn(pick: st.DrawFn) -> tuple[Matrix, list[Fraction], list[Fraction]]:
    """X of low rank often, positive factors for its rows, gamma without zeros."""
    n, k, d = (pick(st.integers(1, 4)) for _ in range(3))
    X = exact.product(pick(draw.states(n, k)), pick(draw.states(k, d)))
    factors = pick(draw.lists(draw.fractions(Fraction(1, 4), 4, 4), n))
    gamma = pick(draw.lists(draw.fractions(-2, 2, 4).filter(bool), d))
    return X, factors, gamma


def _law(X: Matrix, factors: list[Fraction], gamma: list[Fraction]) -> None:
    """Any positive factors of the rows, those of LayerNorm among them."""
    centred = centred_rows(X)
    normalised = exact.product(exact.diagonal(factors), centred, exact.diagonal(gamma))
    found = rank(centred)
    equal(rank(normalised), found)
    for Y in (centred, normalised):
        assert affine_rank(Y) in (found, found - 1)
    assert abs(affine_rank(normalised) - affine_rank(centred)) <= 1


def _both() -> None:
    """[2; general] Both occur: the tokens (1, -1), (2, -2) have rank 1 and affine rank 1, and
    normalised both are (1, -1): affine rank 0. (1, -1, 0), (2, 0, -2), (0, -2, 2) lie on a line,
    and divided by 1, 2, 2 they do not."""
    X = exact.matrix("1 -1; 2 -2")
    equal((rank(X), affine_rank(X)), (1, 1))
    equal(affine_rank(exact.product(exact.diagonal("1 1/2"), X)), 0)
    line = exact.matrix("1 -1 0; 2 0 -2; 0 -2 2")
    equal((rank(line), affine_rank(line)), (2, 1))
    equal(affine_rank(exact.product(exact.diagonal("1 1/2 1/2"), line)), 2)


CLAIM = Claim(
    name="N-2604.23681-linear-rank",
    clauses=(
        "LayerNorm without its bias, LN(X) = D X C diag(gamma), D > 0 diagonal (1 over the "
        "standard deviations, with an epsilon or, where no token has equal features, without), C = "
        "I - 11^T/d, no gamma 0: the linear rank of LN(X) is that of the centred tokens X C.",
        "With r this rank, the affine rank of X C and that of LN(X) are each r or r - 1: they "
        "differ by 1 at most, and do so in either direction.",
        "A bias beta moves the affine hull and not its dimension.",
    ),
    latex=r"\operatorname{rank}\bigl(D\,X\,C\operatorname{diag}(\gamma)\bigr)="
    r"\operatorname{rank}(XC)",
    source="ours, repairing N-2604.23681-affine-rank",
    on_record=by.WRITTEN,
    setting="the gain and the bias are the same for all tokens",
    evidence=(
        by.written(
            "invertible factors",
            "[1] D and diag(gamma) are invertible.",
            "[2] The affine hull of points that span r dimensions has dimension r - 1 or r: its "
            "direction space with one of the points spans all. That gives at most 1 apart.",
            _both,
            "[3] LN(X) + 1 beta^T has the same differences between rows.",
        ),
        by.searched("ranks in fractions, any positive factors", _law, _drawn()),
    ),
    further="HFC = 0 is affine rank 0: LayerNorm can make tokens equal that differ in length "
    "alone, and never parts equal ones.",
)
