"""What the claims of arxiv_2407_11876.md execute."""

from fractions import Fraction

from hypothesis import assume

from oversmoothing.theory.claims.lemmas import with_state
from oversmoothing.theory.numbers.exact import to_flint
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, search, spectra


def _top(values: list[Fraction]) -> Fraction:
    """The eigenvalue of largest modulus; filtered where it is 0 or there are two."""
    ordered = sorted(map(abs, values))
    assume(ordered[-1] > (ordered[-2] if len(ordered) > 1 else 0))
    return max(values, key=abs)


@search(with_state(draw.value_projections(3), draw.value_projections(3)))
def law_power(A: Matrix, left: list[Fraction], H: Matrix, right: list[Fraction], X: Matrix) -> None:
    """X_L is made of blocks (a h)^L E_a X E_h^T, and the one of both tops has rank one at most."""
    a, h = _top(left), _top(right)
    n, d = len(A), len(H)
    top = spectra.block(A, a, X, H, h)
    assert to_flint(top).rank() <= 1
    pairs = [(b, k) for b in {*left} for k in {*right}]
    assert all(abs(b * k) < abs(a * h) for b, k in pairs if (b, k) != (a, h))
    for depth in (0, 1, 4):
        moved = exact.product(exact.power(A, depth), X, exact.transposed(exact.power(H, depth)))
        total = exact.zeros(n, d)
        for b, k in pairs:
            total = exact.plus(total, spectra.block(A, b, X, H, k), (b * k) ** depth)
        equal(moved, total)
