"""Pre-LN with bounded weights does not grow exponentially: tokens whose variance is (1 + L)^2."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L
from oversmoothing.theory.proofs.kit import J2, Matrix, by, equal, exact, given

_X0 = exact.matrix("1 -1; 2 -2")


def _normalised(X: Matrix) -> Matrix:
    """LayerNorm of two features: (1, -1) where the first is the larger, as here."""
    assert all(x > y for x, y in X)
    return exact.from_integers([[1, -1]] * len(X))


def _layers() -> None:
    """Two features: LayerNorm takes (t, -t), t > 0, to (1, -1). With W = I every layer adds (1, -1)
    to both tokens, whatever A is: the first token is (1 + L, -1 - L), of variance (1 + L)^2."""
    X = _X0
    for layer in range(1, 6):
        X = exact.plus(X, exact.product(J2, _normalised(X)))
        equal(X[0], [1 + layer, -1 - layer])


def _rate() -> None:
    """log of (1 + L)^2 over L tends to 0: no exponential growth."""
    equal(sp.limit(sp.log((1 + L) ** 2) / L, L, sp.oo), 0)


CLAIM = by.refuted(
    name="N-2502.05795-growth",
    statement="The output variance of Pre-LN grows exponentially with depth (abstract), for "
    "weights that are the same in every layer (our reading: the conditions on the weights were not "
    "at hand).",
    latex=r"X_{l+1}=X_l+A\,\mathrm{LN}(X_l)\,W\implies "
    r"\liminf_L\tfrac1L\log\operatorname{Var}(x_L)>0",
    source="arXiv 2502.05795, abstract, our reading for weights that do not change",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.NOT_FLAT),
    title="one direction, added again and again",
    at=((J2, exact.identity(2), _X0),),
    steps=(_layers, _rate),
    repaired_by="N-2502.05795-at-most",
)
