"""T12c-attraction: when a looped Pre-LN block really collapses from near consensus."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, exact


def _opposite() -> None:
    """[2; general] RMSNorm with eps = 0, d = 4, W = 0, the FFN z -> (z_1, 0, 0, 0): along (1, 0, 0,
    0) c = 2 and K = 0, so kappa = 0 < c. The tokens (1, 0, 0, 0) and (-2, 0, 0, 0) move by 2 each,
    apart: after t loops they are 1 + 2t and -2 - 2t, with (HFC/LFC)^2 = (3 + 4t)^2."""

    def loop(X: Matrix) -> Matrix:
        moved = []
        for row in X:
            assert not any(row[1:])
            s = abs(row[0]) / 2
            moved.append([row[0] + row[0] / s, *row[1:]])
        return moved

    X = exact.matrix("1 0 0 0; -2 0 0 0")
    for t in range(5):
        assert X[0][0] == 1 + 2 * t
        assert X[1][0] == -2 - 2 * t
        assert exact.squared_ratio(X) == Fraction(3 + 4 * t) ** 2
        X = loop(X)


CLAIM = Claim(
    name="T12c-attraction",
    clauses=(
        "T12c's block, a direction with G^(v^) = c v^, c > 0, kappa < c, and every eigenvalue of D"
        "G^(v^) across v^ of real part less than c: there are R and r > 0 such that from every X, "
        "not at consensus, with ||X|| >= R and X/||X|| within r of 1 v^^T/sqrt n the loop "
        "collapses: X_t/||X_t|| tends to that, HFC/LFC to 0, with limsup log(HFC/LFC)/log t <= "
        "kappa/c - 1.",
        "Other starts may never collapse although kappa < c: there may be more attractors.",
    ),
    latex=r"\kappa<c:\quad \|X_0\|\ge R,\ \Bigl\|\tfrac{X_0}{\|X_0\|}-\tfrac{\mathbf 1\hat v^\top}"
    r"{\sqrt n}\Bigr\|\le r\ \implies\ \limsup_t\frac{\log(\mathrm{HFC}/\mathrm{LFC})}{\log t}\le"
    r"\frac\kappa c-1",
    source="ours",
    on_record=by.WRITTEN,
    setting="logits from the content alone; |v^| = 1",
    evidence=(
        by.written(
            "directions move as a flow in log time",
            "[1] As in T12c, for all tokens: X' = X + F(X/||X||) + O(1/||X||), F differentiable "
            "near u = 1 v^^T/sqrt n, F(u) = sqrt n c u. Directions have U' = U + (T(U) + O(1/||X||)"
            ")/||X||, T(U) = F(U) - <U, F(U)> U, T(u) = 0.",
            "[1] DT(u) across u is DF(u) - sqrt n c. By T12b DF(u) is sqrt n K(v^) on differences "
            "and sqrt n DG^(v^) along consensus: all real parts of DT(u) are negative.",
            "[1] So in a norm made for DT(u) V = |U - u| has V' <= (1 - a/||X||) V + b/||X||^2 near"
            " u, a > 0: V stays small (below), ||X|| grows by at least sqrt n c/2 a loop, and V -> "
            "0, since the sum of 1/||X_t|| diverges and (b/||X||^2)/(a/||X||) -> 0.",
            "[1] Then the mean m over tokens has m/|m| -> v^ and |m|/t -> c. Consensus being "
            "invariant, HFC' = HFC + D HFC, D the mean of the derivatives on the way from 1 m^T to "
            "X, and |m| D -> K(v^) on differences: T12c (3)'s bound above holds for HFC.",
            _opposite,
        ),
        by.for_all(
            "[1] V stays small",
            given="0 < a; a <= r; 0 <= V; V <= e; b <= a*e*r; w*r*r <= (r*r - a*r)*V + b; 0 < r",
            then="w <= e",
            at="a=1, r=2, V=1, e=1, b=1, w=0",
        ).unless("r small", without="b <= a*e*r"),
    ),
    further="How large the set of these starts is: trained blocks with kappa < c have others, too "
    "(clusters), and which one a stream goes to is measured, not proved",
)
