"""What the claims on LayerNorm and rank share: exact ranks of tokens, normalised or not."""

from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.proofs.kit import Matrix, exact


def rank(X: Matrix) -> int:
    """The linear rank."""
    return int(to_flint(X).rank()) if X else 0


def affine_rank(X: Matrix) -> int:
    """The dimension of the affine hull of the rows."""
    return rank(exact.differences(X))


def centred_rows(X: Matrix) -> Matrix:
    """X C: every token without the mean of its features."""
    return exact.transposed(exact.centred(exact.transposed(X)))
