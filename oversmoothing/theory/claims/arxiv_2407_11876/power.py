"""Without a residual a layer is a step of power iteration: rank one, and its special case."""

from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.proofs.kit import Claim, by, draw, equal, exact, spectra


def _top(values: list[Fraction]) -> Fraction:
    """The eigenvalue of largest modulus; filtered where it is 0 or there are two."""
    ordered = sorted(map(abs, values))
    assume(ordered[-1] > (ordered[-2] if len(ordered) > 1 else 0))
    return max(values, key=abs)


def _law(attention: draw.Known, weights: draw.Known, x: list[int]) -> None:
    """X_L is made of blocks (a h)^L E_a X E_h^T, and the one of both tops has rank one at most."""
    (A, left), (H, right) = attention, weights
    a, h = _top(left), _top(right)
    n, d = len(A), len(H)
    X = exact.from_integers([x[i * d : (i + 1) * d] for i in range(n)])
    top = spectra.block(A, a, X, H, h)
    assert to_flint(top).rank() <= 1
    pairs = [(b, k) for b in {*left} for k in {*right}]
    assert all(abs(b * k) < abs(a * h) for b, k in pairs if (b, k) != (a, h))
    for depth in (0, 1, 4):
        moved = exact.product(exact.power(A, depth), X, exact.transposed(exact.power(H, depth)))
        found = exact.zeros(n, d)
        for b, k in pairs:
            found = exact.plus(found, spectra.block(A, b, X, H, k), (b * k) ** depth)
        equal(moved, found)


CLAIM = Claim(
    name="N-2407.11876-power",
    clauses=(
        "X' = A X W, any square A and W = H^T: vec(X_L) = (H (x) A)^L vec(X_0), a power iteration "
        "(abstract: over-smoothing is a special case of it; this form is our reading).",
        "Let A and H have one simple eigenvalue of largest modulus each, real and not 0: a with A "
        "v = a v, and h with H u = h u. Then X_L/(a h)^L tends to s v u^T, s != 0 for X_0 outside "
        "a hyperplane: rank one, whatever the other eigenvalues are.",
        "Tokens become equal iff v is a multiple of 1. So over-smoothing is the case A 1 = a 1 of "
        "rank collapse; any other v, as D^(1/2) 1 of a normalised graph, ends in tokens of one "
        "direction and unequal length.",
    ),
    latex=r"\frac{A^LX_0W^L}{(ah)^L}\to s\,vu^\top,\qquad Av=av,\ Hu=hu",
    source="arXiv 2407.11876, abstract; the form and the conditions are ours",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "one dominant eigenvalue of a Kronecker product",
            "[1] vec(A X W) = (H (x) A) vec(X) (T1a).",
            "[2] The eigenvalues of H (x) A are all products a_i h_j (Schur forms), so a h is "
            "simple and alone of largest modulus, with the eigenvector v u^T (A v u^T W = a h v "
            "u^T). The rest of X_L is o(|a h|^L), and s = (l^T X_0 r)/((l^T v)(r^T u)), l and r "
            "the left eigenvectors: s = 0 is a hyperplane.",
            "[3] HFC(v u^T) = (v - mean of v) u^T is 0 iff v is constant.",
        ),
        by.searched(
            "all blocks of drawn spectra, exactly",
            _law,
            draw.value_projections(3),
            draw.value_projections(3),
            draw.lists(st.integers(-9, 9), 9),
        ),
    ),
    further="Ties in modulus keep more than rank one: N-2308.16800-every. With a residual the "
    "operator is I + H (x) A and the order is of |1 + h a|: T4c.",
)
