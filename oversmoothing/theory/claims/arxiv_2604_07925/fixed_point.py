"""Pure Sinkhorn attention need not collapse: a state that two layers, and all, leave as it is."""

import sympy as sp

from oversmoothing.theory.proofs.kit import AA, by, equal, exact, given, is_zero

_H, _X0 = exact.diagonal("2 1"), exact.matrix("1 1; -1 1")


def _attention() -> None:
    """Tokens (1, 1), (-1, 1), logits m x_i1 x_j1 with m = (ln 3)/2: exp of them is sqrt 3 and 1/
    sqrt 3, in the proportion 3 to 1. Divided by its row sums it is A, with rows (3, 1)/4 and (1,
    3)/4: doubly stochastic, so Sinkhorn's, and the softmax of the same logits too."""
    m = sp.log(3) / 2
    K = sp.Matrix(2, 2, lambda i, j: sp.exp(m * (1 if i == j else -1)))
    found = K / (K[0, 0] + K[0, 1])
    assert is_zero(
        [
            sp.nsimplify(sp.simplify(x)) - sp.Rational(str(y))
            for x, y in zip(found, [entry for row in AA for entry in row], strict=True)
        ]
    )


def _fixed() -> None:
    """W = diag(2, 1): A X W = X, as the first feature is the eigenvector of 1/2 and the second
    that of 1. Every layer leaves X as it is, of rank 2, with two equal singular values."""
    equal(exact.product(AA, _X0, exact.transposed(_H)), _X0)
    equal(exact.product(exact.transposed(_X0), _X0), exact.identity(2, 2))


CLAIM = by.refuted(
    name="N-2604.07925-always",
    statement="Pure self-attention with Sinkhorn's normalisation, X' = S(X) X W: rank decays to "
    "one doubly exponentially with depth (abstract), whatever W and the start (our reading: the "
    "bound's conditions were not at hand).",
    latex=r"X_{l+1}=S(X_l)X_lW\implies \operatorname{res}(X_L)\le C\,q^{3^L},\ q<1",
    source="arXiv 2604.07925, abstract, our reading without conditions",
    wording="our reading of the abstract; the hypotheses of the paper's bound were not at hand (a "
    "bound like that of arXiv 2103.03404 says nothing of a fixed point)",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.NOT_FLAT),
    title="a fixed point of rank 2",
    at=((AA, _H, _X0),),
    steps=(_attention, _fixed),
    repaired_by="N-2604.07925-two-tokens",
    further="The fixed point is not stable: differences a little smaller collapse, a little larger "
    "grow.",
)
