"""LayerNorm can raise the affine rank of the tokens: three on a line leave it."""

from oversmoothing.theory.claims.arxiv_2604_23681.normalising import affine_rank, centred_rows
from oversmoothing.theory.proofs.kit import by, equal, exact, given

_X0 = exact.matrix("1 -1 0; 2 0 -2; 0 -2 2")
_DIVISORS = exact.diagonal("1 1/2 1/2")
NOT_CONSTANT = given.Hypothesis(
    "no token has equal features: LayerNorm is defined without an epsilon",
    lambda case: case.X0 is not None and all(len(set(row)) > 1 for row in case.X0),
    (given.case(X0="1 1; 1 2"), given.case()),
)


def _line() -> None:
    """The tokens (1, -1, 0), (2, 0, -2), (0, -2, 2) have mean 0 each and lie on a line: both
    differences to the first are multiples of (1, 1, -2). The affine rank is 1."""
    equal(centred_rows(_X0), _X0)
    equal(affine_rank(_X0), 1)


def _normalised() -> None:
    """Their squared lengths are 2, 8, 8, so LayerNorm (gamma 1, beta 0, no epsilon) divides by 1,
    2, 2 times one number and gives a multiple of (1, -1, 0), (1, 0, -1), (0, -1, 1): affine rank
    2. They are corners of a triangle."""
    normalised = exact.product(_DIVISORS, _X0)
    equal(normalised, exact.matrix("1 -1 0; 1 0 -1; 0 -1 1"))
    equal([sum(x * x for x in row) for row in normalised], [2, 2, 2])
    equal(affine_rank(normalised), 2)


CLAIM = by.refuted(
    name="N-2604.23681-affine-rank",
    statement="Layer normalisation preserves the affine rank of the tokens exactly (abstract; that "
    "the affine rank is the dimension of the affine hull, and the norm has gamma 1 and no epsilon, "
    "is our reading).",
    latex=r"\dim\operatorname{aff}\{\mathrm{LN}(x_1),\dots,\mathrm{LN}(x_n)\}="
    r"\dim\operatorname{aff}\{x_1,\dots,x_n\}",
    source="arXiv 2604.23681, abstract, our reading of 'affine rank'",
    wording="our reading of the abstract; how the paper defines the affine rank and the norm was "
    "not at hand",
    hypotheses=(NOT_CONSTANT,),
    title="three tokens on a line",
    at=((exact.uniform(3), exact.identity(3), _X0),),
    steps=(_line, _normalised),
    repaired_by="N-2604.23681-linear-rank",
    further="A small epsilon changes nothing: the three points then depend on it continuously and "
    "are no longer on a line from some epsilon down.",
)
