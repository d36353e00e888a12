"""What the claims of arxiv_2510_22026.md execute."""

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, search, vanishes


# N-2510.22026-layers
def post() -> list[sp.Expr]:
    q = sp.Symbol("q", positive=True)
    s = sp.sqrt(q / 2)
    c = sp.sqrt(1 - q / 2)
    moved = [sp.Matrix([c, sign * s]) + sp.Matrix([c, 0]) for sign in (1, -1)]
    squared = moved[0].dot(moved[0])
    vanishes(squared - moved[1].dot(moved[1]))
    return [1 - moved[0].dot(moved[1]) / squared - q / (4 - 3 * q / 2)]


@search(
    st.tuples(st.integers(2, 4), st.integers(1, 3)).flatmap(
        lambda size: st.tuples(draw.states(*size), draw.lists(draw.states(*size), 1, 4))
    )
)
def law_layers(X: Matrix, branches: list[Matrix]) -> None:
    """Whatever the branch sees of each token, even attention moves all tokens by one vector."""
    start, n = exact.centred(X), len(X)
    for Z in branches:
        X = exact.plus(X, exact.product(exact.uniform(n), Z))
        equal(exact.centred(X), start)


# N-2510.22026-speed
def apart() -> list[sp.Expr]:
    t = sp.Symbol("t")
    x = sp.Matrix([sp.Function(f"x{k}", real=True)(t) for k in range(3)])
    a = sp.Matrix(sp.symbols("a1:4", real=True))
    r = sp.sqrt(x.dot(x))
    moving = dict(zip(x.diff(t), a, strict=True))
    theta = x / r
    radius = r.diff(t).subs(moving) - theta.dot(a)
    direction = theta.diff(t).subs(moving) - (a - theta * theta.dot(a)) / r
    return [radius, *direction]
