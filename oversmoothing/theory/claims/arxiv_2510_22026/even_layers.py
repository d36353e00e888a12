"""Even attention in layers: Pre-LN brings cosines to 1 like 1/L^2, Post-LN like 4^-L."""

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, vanishes


def _law(X: Matrix, branches: list[Matrix]) -> None:
    """Whatever the branch sees of each token, even attention moves all tokens by one vector."""
    start, n = exact.centred(X), len(X)
    for Z in branches:
        X = exact.plus(X, exact.product(exact.uniform(n), Z))
        equal(exact.centred(X), start)


def _post() -> list[sp.Expr]:
    """[2; general] Any two unit tokens lie in a plane as (c, s) and (c, -s), c^2 + s^2 = 1, q = 2
    s^2. X + A X = (2c, s), (2c, -s), of squared length 4 - 3 s^2 = 4 - 3q/2; divided by it, q' =
    q/(4 - 3q/2)."""
    q = sp.Symbol("q", positive=True)
    s = sp.sqrt(q / 2)
    c = sp.sqrt(1 - q / 2)
    moved = [sp.Matrix([c, sign * s]) + sp.Matrix([c, 0]) for sign in (1, -1)]
    squared = moved[0].dot(moved[0])
    vanishes(squared - moved[1].dot(moved[1]))
    return [1 - moved[0].dot(moved[1]) / squared - q / (4 - 3 * q / 2)]


CLAIM = Claim(
    name="N-2510.22026-layers",
    clauses=(
        "Even attention, A = 11^T/n. Pre-LN, X' = X + A N(X) W, any W, N any map of single tokens: "
        "HFC(X_L) = HFC(X_0), exactly, and all tokens move by one vector. With |N(x) W| <= c two "
        "tokens that both have at most the length r_0 have 1 - cos >= (D^2 - (r - r')^2)/(2 (r_0 + "
        "c L)^2), D their distance, r and r' their lengths at L.",
        "Post-LN, X' = N(X + A X), N(x) = x/|x|, two tokens of cosine 1 - q: q' = q/(4 - 3q/2).",
        "So for 0 < q_0 < 2 Post-LN has q_L -> 0 with q_(L+1)/q_L -> 1/4, geometric;",
        "and for equal lengths Pre-LN has q_L >= D^2/(2 (r_0 + c L)^2), no faster than 1/L^2.",
    ),
    latex=r"\text{Pre-LN: }\mathrm{HFC}(X_L)=\mathrm{HFC}(X_0);\qquad "
    r"\text{Post-LN: }q'=\frac{q}{4-\tfrac32q}",
    source="ours, for arXiv 2510.22026 (abstract), in layers",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "one vector for all tokens",
            "[1] All rows of 11^T/n Z are equal, so HFC does not change; |x_i| grows by at most c "
            "a layer. D^2 = r^2 + r'^2 - 2 r r' cos gives 1 - cos = (D^2 - (r - r')^2)/(2 r r').",
            _post,
            "[3] By the query q falls while it is positive, to a limit with q = q/(4 - 3q/2), "
            "which below 2 is 0; there q'/q = 1/(4 - 3q/2) -> 1/4.",
            "[4] (1) with r = r'.",
        ),
        by.for_all(
            "q' < q and q' > 0",
            given="0 < q; q < 2; p*(4 - 3/2*q) == q",
            then="0 < p and p < q",
            at="q=1, p=2/5",
            covers=(3,),
        ).unless("antipodal tokens stay", without="q < 2", given="q <= 2", at="q=2, p=2"),
        by.searched(
            "HFC under any branch, exactly",
            _law,
            st.tuples(st.integers(2, 4), st.integers(1, 3)).flatmap(
                lambda size: st.tuples(draw.states(*size), draw.lists(draw.states(*size), 1, 4))
            ),
        ),
    ),
    further="Attention that is not even moves HFC as well, by T1c's block; then Pre-LN's speed is "
    "not set by lengths alone.",
)
