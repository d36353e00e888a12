"""T7b: weights that change by layer smooth although every single layer sharpens."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import sympy as sp

from oversmoothing.theory.proofs.all_depths import symbolic
from oversmoothing.theory.proofs.kit import AA, Claim, Matrix, by, draw, exact, given, verdict

R = exact.matrix("4/5 -3/5; 3/5 4/5")
X0 = exact.matrix("1 2; 3 5")
_HALF, _COSINE = Fraction(1, 2), Fraction(4, 5)


def weights(values: tuple[Fraction, Fraction], depth: int) -> Iterator[Matrix]:
    """W_l = R^l diag(values) R^-l for l < depth."""
    W = exact.diagonal(values)
    for _ in range(depth):
        yield W
        W = exact.product(R, W, exact.transposed(R))


def states(values: tuple[Fraction, Fraction], depth: int, start: Matrix = X0) -> list[Matrix]:
    """X_0, ..., X_depth under A and the rotating weights."""
    found = [start]
    for W in weights(values, depth):
        found.append(exact.layer(AA, W, found[-1]))
    return found


def frame(values: tuple[Fraction, Fraction], a: Fraction) -> Matrix:
    """(I + a W_0) R: what one layer does in the rotating frame to mode a (a = 1: consensus)."""
    return exact.product(exact.diagonal(1 + a * value for value in values), R)


def _each_layer() -> None:
    """[1; instance] Every layer alone does not smooth."""
    # Alone and repeated, no layer smooths: TIE for {-1, 0}, NON_SMOOTHING for {-1, -1/20}.
    for low, expected in ((Fraction(0), "TIE"), (Fraction(-1, 20), "NON_SMOOTHING")):
        for W in weights((Fraction(-1), low), 6):
            assert exact.transposed(W) == W and verdict(A=AA, W=W).verdict == expected


def _first_ratios() -> None:
    """[2; general] The first two ratios, in fractions."""
    found = [exact.squared_ratio(X) for X in states((Fraction(-1), Fraction(0)), 2)]
    assert found[1:] == [Fraction(10, 49), Fraction(493, 3136)]
    found = [exact.squared_ratio(X) for X in states((Fraction(-1), Fraction(-1, 20)), 2)]
    assert found[1:] == [Fraction(15289, 70756), Fraction(9020237, 51085832)]


def _frame_identity() -> None:
    """[1; instance] A is symmetric: the mode x_1 - x_2 (a = 1/2) and the mean (a = 1) decouple, x'
    = x (I + aW_l). In the frame x_l R^l one layer is the matrix (I + aW_0) R, as R^-l W_l R^l =
    W_0."""
    for low in (Fraction(0), Fraction(-1, 20)):
        values = (Fraction(-1), low)
        turn, frames = exact.identity(2), []
        for X in states(values, 5):
            mode, total = (
                exact.product(exact.matrix("1 -1"), X, turn),
                exact.product(exact.matrix("1 1"), X, turn),
            )
            frames.append((mode, total))
            turn = exact.product(turn, R)
        for (mode, total), (next_mode, next_total) in pairwise(frames):
            assert next_mode == exact.product(mode, frame(values, _HALF))
            assert next_total == exact.product(total, frame(values, Fraction(1)))


def _consensus_exactly() -> None:
    """[1; instance] Consensus: (I + W_0) R = diag(0, 1-p) R maps (s, t) to t(1-p)(sin, cos), so
    ||c_L|| = |c_02| (1-p)^L cos^(L-1) exactly."""
    for low in (Fraction(0), Fraction(-1, 20)):
        for depth, X in list(enumerate(states((Fraction(-1), low), 30)))[1:]:
            # LFC^2 = n ||m||^2 with m_0 = (2, 7/2).
            expected = 2 * Fraction(49, 4) * (1 + low) ** (2 * depth) * _COSINE ** (2 * depth - 2)
            assert exact.squared_norms(X)[1] == expected


def _mode_quadratic() -> None:
    """[1; general] The mode: N = diag(1-a, 1-ap) R has complex eigenvalues of modulus sqrt(D), D =
    (1-a)(1-ap), and conserves a positive definite form up to D: N Q N^T = D Q. D < ((1-p)
    4/5)^2."""
    # N = (I + aW_0)R has N^2 = T N - D, T^2 < 4D: sqrt(D) is the modulus of both eigenvalues.
    for low, T, D in (
        (Fraction(0), Fraction(6, 5), Fraction(1, 2)),
        (Fraction(-1, 20), Fraction(59, 50), Fraction(39, 80)),
    ):
        N = frame((Fraction(-1), low), _HALF)
        assert (N[0][0] + N[1][1], exact.determinant(N)) == (T, D) and T**2 < 4 * D
        # HFC^2 <= K D^L with the conserved form Q: N Q N^T = D Q, positive definite.
        Q = conserved(N)
        assert Q[0][0] > 0 and exact.determinant(Q) > 0
        assert exact.product(N, Q, exact.transposed(N)) == exact.scaled(D, Q)
        # The rate: D < ((1-p) 4/5)^2.
        assert ((1 + low) * _COSINE) ** 2 > D


def conserved(N: Matrix) -> Matrix:
    """Q symmetric with N Q N^T = det(N) Q: exists for complex eigenvalues, unique up to scale."""
    a, b, c = sp.symbols("a b c")
    form = sp.Matrix([[a, b], [b, c]])
    n = symbolic(N)
    equations = list(n * form * n.T - n.det() * form)
    (solution,) = sp.solve([e.subs(a, 1) for e in equations], [b, c], dict=True)
    values = form.subs(a, 1).subs(solution)
    return [[Fraction(int(values[i, j].p), int(values[i, j].q)) for j in (0, 1)] for i in (0, 1)]


def _deep_bound() -> None:
    """[1; instance] So HFC_L^2 <= K D^L for every L, and HFC/LFC <= K' (sqrt D/((1-p) 4/5))^L -> 0
    whenever c_02 != 0."""
    # HFC^2/LFC^2 <= K (D/((1-p)^2 (4/5)^2))^L with K from the conserved form, L = 1..60.
    for low in (Fraction(0), Fraction(-1, 20)):
        N = frame((Fraction(-1), low), _HALF)
        Q, start = conserved(N), exact.product(exact.matrix("1 -1"), X0)
        ((energy,),) = exact.product(start, Q, exact.transposed(start))
        # y Q y^T >= |y|^2 det Q/trace Q, and HFC^2 = |x_1 - x_2|^2/2.
        smallest = exact.determinant(Q) / (Q[0][0] + Q[1][1])
        for depth, X in enumerate(states((Fraction(-1), low), 60)):
            assert (
                exact.squared_norms(X)[0] <= energy * exact.determinant(N) ** depth / smallest / 2
            )


def _general_residual() -> None:
    """[3; general] Any angle, q = 1, mode a: consensus has radius k(1-p), k = |cos|, the mode has
    trace k(2-a-ap) and determinant (1-a)(1-ap)."""
    # Trace and determinant of (I + aW_0)R for W_0 = -diag(1, p), and of consensus.
    a, p, t = sp.symbols("a p t", real=True)
    turn = sp.Matrix([[sp.cos(t), -sp.sin(t)], [sp.sin(t), sp.cos(t)]])
    mode = sp.diag(1 - a, 1 - a * p) * turn
    assert sp.simplify(mode.trace() - sp.cos(t) * (2 - a - a * p)) == 0
    assert sp.simplify(mode.det() - (1 - a) * (1 - a * p)) == 0
    consensus = sp.diag(0, 1 - p) * turn
    assert sp.simplify(consensus.trace() - sp.cos(t) * (1 - p)) == 0 and consensus.det() == 0


def _threshold_law(a: Fraction, p: Fraction, k: Fraction) -> None:
    """A rational angle: smoothing, decided from trace and determinant, needs p < a/(2-a)."""
    consensus, T, D = k * (1 - p), k * (2 - a - a * p), (1 - a) * (1 - a * p)
    if T**2 < 4 * D:
        smooths = consensus**2 > D
    else:
        smooths = 2 * consensus > T and consensus**2 - T * consensus + D > 0
    assert not smooths or p * (2 - a) < a


CLAIM = Claim(
    name="T7b-rotation",
    clauses=(
        "Eigenvalues in [-1, 0] layer by layer do not exclude smoothing: with one fixed A = "
        "[[3/4, 1/4], [1/4, 3/4]] (tau = 1/2) and W_l = R^l diag(-1, -p) R^-l, R the rotation "
        "with cosine 4/5, every layer alone is TIE (p = 0) or NON_SMOOTHING (p = 1/20), yet "
        "HFC/LFC -> 0 for every X_0 whose mean has a non-zero second entry: geometrically at "
        "sqrt(1/2)/(4/5) = .8839 per layer, and at sqrt(.4875)/.76 = .9187.",
        "From X_0 = [[1, 2], [3, 5]] and p = 0, (HFC/LFC)^2 = 10/49, 493/3136 at L = 1, 2.",
        "In this family with q = 1 and a mode 0 < a < 1, some angle smooths iff p < a/(2-a).",
    ),
    latex=r"W_l=-R^l\operatorname{diag}(1,p)R^{-l}:\quad \frac{\|HFC_L\|}{\|LFC_L\|}\le "
    r"K\Big(\frac{\sqrt{(1-a)(1-ap)}}{(1-p)\cos\theta}\Big)^{L}\to0",
    source="ours; limits the clip of arXiv 2401.04301 v3 to tied weights",
    on_record=by.WRITTEN,
    hypotheses=(
        given.Hypothesis(
            "every layer has a symmetric W",
            lambda i: exact.transposed(i.H) == i.H,
            (given.case(H="0 1; 0 0"),),
        ),
        given.CLOSED.said("every layer has spec(W) in [-1, 0]"),
    ),
    evidence=(
        by.written(
            "smoothing by rotation",
            _each_layer,
            _first_ratios,
            _frame_identity,
            _consensus_exactly,
            _mode_quadratic,
            _deep_bound,
            _general_residual,
            "[3] Its radius is at least half its trace, so smoothing needs k(1-p) > k(2-a-ap)/2, "
            "that is p < a/(2-a); conversely then the angle at which the two eigenvalues coincide "
            "smooths, since its radius is half the trace (queries).",
        ),
        # k: the cosine of the angle; T, D: trace and determinant of the rotating frame of mode a.
        by.for_all(
            "p >= a/(2-a): half the trace of the mode is at least the radius of consensus",
            given="0 < a; a < 1; 0 <= p; p < 1; 0 < k; k <= 1; p*(2-a) >= a",
            then="k*(1-p) <= k*(2-a-a*p)/2",
            at="a=1/2, p=1/2, k=1",
            covers=(3,),
        ).unless("p >= a/2 suffices", without="p*(2-a) >= a", given="2*p >= a"),
        by.for_all(
            "p < a/(2-a): at k^2 (2-a-ap)^2 = 4(1-a)(1-ap), k <= 1 and consensus beats the mode",
            given=(
                "0 < a; a < 1; 0 <= p; p < 1; 0 < k; p*(2-a) < a",
                "(k*(2-a-a*p))**2 == 4*(1-a)*(1-a*p)",
            ),
            then="k <= 1 and k*(1-p) > k*(2-a-a*p)/2",
            at="a=3/4, p=0, k=4/5",
            covers=(3,),
        ).unless("p < a", without="p*(2-a) < a", given="p < a", at="a=1/2, p=7/16, k=40/41"),
        by.for_all(
            "the radius of the mode is at least half its trace",
            given=(
                "T >= 0; D >= 0; m >= 0",
                "(T*T >= 4*D and m*m - T*m + D == 0 and 2*m >= T) or (T*T < 4*D and m*m == D)",
            ),
            then="2*m >= T",
            at="T=2, D=1, m=1",
            covers=(3,),
        ).unless(
            "the smaller root",
            without="(T*T >= 4*D and m*m - T*m + D == 0 and 2*m >= T) or (T*T < 4*D and m*m == D)",
            given="m*m - T*m + D == 0",
        ),
        by.searched(
            "the threshold on trace and determinant",
            _threshold_law,
            draw.inside(0, 1),
            draw.below_one(),
            draw.fractions(0, 1, 40).filter(bool),
        ),
    ),
    further="Rotations with one fixed angle are one family: for p between a/(2-a) and tau, and "
    "generic X_0, see T7b-volume; p > tau q suffices by T7b-certificate.",
)
