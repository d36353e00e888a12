"""T11.8: a state without the dominant mode follows the modes it contains."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.proofs.instances import AA
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, spectra, verdict
from oversmoothing.theory.verdict.exact_comparison import exact_dominance


def _golden() -> None:
    """[2, 3; instance] A block that starts at 0 stays 0, so the arguments on moduli apply to the
    others. GT14: the pairs present are (h, a) = (0, 1) and (-1, 1/2), with multipliers 1 and
    1/2."""
    # All h in [-1, 0], generic verdict TIE, and this X_0 smooths: HFC/LFC = 2^-L.
    A, H, X = AA, exact.diagonal("0 -1"), exact.matrix("1 1; 1 -1")
    found = verdict(A=A, H=H, X0=X, depth=[1, 2, 10])
    assert (found.verdict, found.verdict_x0, found.tends_to) == ("TIE", "SMOOTHING", "zero")
    for depth in (1, 2, 10):
        assert found.hfc_lfc[depth].squared == Fraction(1, 4**depth)


def _opposite() -> None:
    """[3; instance] The other way round: 1^T X_0 = 0 for symmetric A and h > 0."""
    # h = 1/2 smooths for generic X_0; a state of mean 0 has no consensus part at all.
    found = verdict(A=AA, H=exact.matrix("1/2"), X0=exact.matrix("1; -1"), depth=[64])
    assert (found.verdict, found.verdict_x0) == ("SMOOTHING", "NON_SMOOTHING")
    assert found.tends_to == "infinity"


def _blocks() -> None:
    """[1; instance] E_i (A X W) E_j^T = A (E_i X E_j^T) W, as E_i commutes with A and E_j with H:
    each block is invariant, and on it the layer is 1 + h_j a_i plus a nilpotent map. The projectors
    add up to the identity."""
    # X_L is the sum over pairs of mu^L E_i X_0 E_j^T, for AA and H = diag(1, -1/2).
    H, X = exact.diagonal("1 -1/2"), exact.matrix("1 2; 3 5")
    total = exact.zeros(2, 2)
    for a in (Fraction(1), Fraction(1, 2)):
        for h in (Fraction(1), Fraction(-1, 2)):
            total = exact.plus(total, spectra.block(AA, a, X, H, h), (1 + h * a) ** 7)
    assert total == exact.layer(AA, H, X, 7)


@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Fraction, list[Fraction], list[int], list[int]]:
    """A with a known mode v = (p, -q), H diagonal, X_0 = 1 c^T + v y^T with drawn zeros."""
    A, a = pick(draw.two_token_attention())
    values = pick(draw.lists(draw.fractions(-3, 2, 4), 1, 2))
    entries = draw.lists(st.integers(-2, 2), len(values))
    return A, a, values, pick(entries), pick(entries)


def _state(A: Matrix, c: list[int], y: list[int]) -> Matrix:
    return [[x + v * z for x, z in zip(c, y, strict=True)] for v in (A[0][1], -A[1][0])]


def _law(A: Matrix, a: Fraction, values: list[Fraction], c: list[int], y: list[int]) -> None:
    X = _state(A, c, y)
    consensus = [abs(1 + h) for h, x in zip(values, c, strict=True) if x]
    quotient = [abs(1 + h * a) for h, z in zip(values, y, strict=True) if z]
    found = verdict(A=A, H=exact.diagonal(values), X0=X, depth=[6])
    if not any(consensus) and not any(quotient):
        expected = "UNDEFINED"
    elif not any(y):
        expected = "TRIVIAL"
    elif not consensus or max(quotient) > max(consensus):
        expected = "NON_SMOOTHING"
    else:
        expected = "TIE" if max(quotient) == max(consensus) else "SMOOTHING"
    assert found.verdict_x0 == expected
    hfc, lfc = exact.squared_norms(exact.layer(A, exact.diagonal(values), X, 6))
    assert (found.hfc_lfc[6].squared or 0) == (hfc / lfc if lfc else 0)


@given.condition("X_0 is given and lacks the dominant modes", given.case(), given.case(X0="1; 3"))
def _misses(instance: given.Instance) -> bool:
    X = instance.X0
    if X is None or not any(map(any, X)):
        return False
    found = given.content(instance.A, instance.H, X)
    generic = exact_dominance(instance.A, instance.H)
    tops = [x for x in (found.consensus, found.quotient) if x is not None]
    largest = max(float(generic.radius(side).mid()) for side in (True, False))
    return found.vanishes or found.comparison != generic.comparison or max(tops) < largest


CLAIM = Claim(
    name="T11.8",
    clauses=(
        "X_L is the sum over pairs of eigenvalues of blocks that start at E_i X_0 E_j^T (E the "
        "spectral projectors) and never mix.",
        "So for a given X_0 every statement on dominance holds with the spectrum replaced by the"
        " pairs with E_i X_0 E_j^T != 0,",
        "and the verdict for that X_0 may differ from the generic one: all h in [-1, 0] and "
        "HFC/LFC = 2^-L, or h > 0 and HFC/LFC = infinity.",
    ),
    latex=r"X_L = \sum_{i,j} (1+h_ja_i+D)^L\,E_iX_0E_j^\top,\qquad D \text{ nilpotent}",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC, _misses),
    evidence=(
        by.written("spectral projectors commute with the layer", _blocks, _golden, _opposite),
        by.searched(
            "verdict_x0 over the modes put into X_0, exactly",
            _law,
            _cases(),
            at=lambda A, a, values, c, y: (A, exact.diagonal(values), _state(A, c, y)),
        ),
    ),
    further="In floating point rounding puts the missing mode back after about log(1/eps) over the "
    "gap of the logarithms of the radii (T4e): an observation, no theorem.",
)
