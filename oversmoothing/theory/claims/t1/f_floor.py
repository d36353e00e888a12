"""T1f: without consensus HFC/LFC has a floor: the limit of a non-smoothing layer is never 0."""

from hypothesis import assume, strategies as st

from oversmoothing.theory.ask import verdict
from oversmoothing.theory.depth.ratios import squared_norms
from oversmoothing.theory.numbers.exact_matrix import matrix, weighted_mean
from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.proofs.instances import A3
from oversmoothing.theory.proofs.kit import Claim, Status, by, draw, given, spectra


@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    """Positive A and a state X with pi^T X = 0."""
    A = pick(draw.attention(2, 5))
    X = pick(draw.states(len(A), 2))
    c = weighted_mean(spectra.stationary(A), X)
    return A, [[x - y for x, y in zip(row, c, strict=True)] for row in X]


def _law(A: Matrix, X: Matrix) -> None:
    n, pi = len(A), spectra.stationary(A)
    hfc, lfc = squared_norms(X)
    assume(any(map(any, X)))
    assert lfc <= n * spectra.squared_deviation(pi) * hfc
    assert (n - 1) * hfc > lfc
    assert (lfc == 0) == (not any(map(sum, zip(*X, strict=True))))


def _measure(effort: by.Effort) -> by.Measurements:
    """GT11 at two depths: the error of the limit shrinks like the second mode, (3/4)/(9/10)."""
    limit = 8 * 2**0.5 / 5
    for depth in (200, 400):
        found = verdict(A=A3, H=matrix("-1/2"), X0=matrix("1; 2; 4"), depth=[depth])
        value = found.hfc_lfc[depth].value
        assert value is not None
        # X_0 has coefficients of order 10 in the modes at 1/2 and at 1.
        tolerance = 100 * (5 / 6) ** depth + 16 * 2.0**-52 * limit
        yield by.Measurement(f"HFC/LFC of GT11 at L = {depth}", limit, value, tolerance)


@given.condition("X_0 has no consensus part: pi^T X_0 = 0", given.case(), given.case(X0="1; 2"))
def _no_consensus(instance: given.Instance) -> bool:
    return instance.X0 is not None and not any(
        weighted_mean(spectra.stationary(instance.A), instance.X0)
    )


CLAIM = Claim(
    name="T1f",
    clauses=(
        "Let A > 0, n >= 2, and X != 0 with pi^T X = 0. Then HFC/LFC >= 1/(sqrt n delta) > "
        "1/sqrt(n-1), delta = ||pi - 1/n||.",
        "Such is every mode without consensus, real, complex or of a Jordan block; and HFC/LFC "
        "is infinite iff 1^T X = 0.",
        "The floor is attained for every A that is not doubly stochastic.",
        "Hence for generic X_0 a NON_SMOOTHING layer has liminf HFC/LFC >= 1/(sqrt n delta).",
        "With one real simple dominant mode v u^T the limit is ||P v||/(sqrt n |mean v|), finite"
        " iff 1^T v != 0.",
        "If A is doubly stochastic every mode has 1^T v = 0 and HFC/LFC -> infinity.",
        "For n >= 3, outside a null set of A (one matrix has row sums 1 and only lines through it "
        "that meet this set in finitely many points), no eigenvector has mean 0 (n = 2: exactly "
        "the doubly stochastic A have one).",
    ),
    latex=r"\pi^\top X = 0 \implies \frac{\|\mathrm{HFC}\|}{\|\mathrm{LFC}\|}\ge"
    r"\frac{1}{\sqrt n\,\|\pi-\frac1n\mathbf 1\|} > \frac{1}{\sqrt{n-1}}",
    source="ours",
    on_record=Status.MACHINE,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.NOT_FLAT, _no_consensus),
    evidence=(
        by.Formal("T1f_floor.floor", (1,)),
        by.Formal("T1f_floor.delta_bound", (1,)),
        by.Formal("T1f_modes.floor", (1, 2)),
        by.Formal("T1f_modes.delta_bound", (1,)),
        by.Formal("T1f_modes.mode_no_consensus", (2,)),
        by.Formal("T1f_modes.floor_attained", (3,)),
        by.Formal("Verdicts.liminf_floor", (4,)),
        by.Formal("T1f_limits.mode_ratio", (5,)),
        by.Formal("T1f_limits.doubly_stochastic", (6,)),
        by.Formal("T1f_mean0.mean_0_rare", (7,)),
        by.Formal("T1f_mean0.mean_0_two_tokens", (7,)),
        by.Formal("Modes.mode_limit", ()),
        by.Formal("Limits.tends_cosine", ()),
        by.written(
            "Cauchy-Schwarz against pi",
            "[2] If (A - a)^k v = 0 with a != 1, then 0 = pi^T (A - a)^k v = (1 - a)^k pi^T v.",
            "[1, 2] pi^T X = 0: by T1d ||m|| <= delta ||HFC||, so ||LFC|| <= sqrt n delta ||HFC||, "
            "and HFC = 0 only if X = 0. n delta^2 = n |pi|^2 - 1 < n - 1.",
            "[3] Attained by v = 1 - P pi/delta^2: pi^T v = 0, LFC = sqrt n and HFC = 1/delta.",
            "[4, 6] HFC grows like rho_Q^L for generic X_0 and c = pi^T X no faster than a smaller "
            "power; so t -> infinity and T1e gives liminf HFC/LFC >= 1/k, k = 0 where A is doubly "
            "stochastic.",
            "[5] X_L/mu^L -> s v u^T with s != 0, where HFC/LFC is continuous; u cancels.",
            "[7] A v = a v and 1^T v = 0 give 1^T A^k v = 0 for all k: the determinant of the rows "
            "1^T A^k, k < n, is 0, a polynomial in A, not 0 where each token attends to the one "
            "before it. n = 2: v is a multiple of (1, -1), an eigenvector iff columns sum to 1.",
        ),
        by.searched("the floor in fractions, pi^T X = 0", _law, _cases(), at=given.of_state),
        by.Simulated("the limit of GT11 in balls", _measure),
    ),
    further="Ties are T4d: there t stays bounded and the floor does not apply.",
)
