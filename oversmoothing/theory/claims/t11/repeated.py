"""T11.3: repeated eigenvalues change neither the verdict nor how exactly it is decided."""

from fractions import Fraction

import flint
from hypothesis import strategies as st

from oversmoothing.theory.numbers.balls import at_precision, to_ball
from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, verdict
from oversmoothing.theory.spectra.algebraic import factors

_A = exact.flat("2/5", 4)


def _golden() -> None:
    """[1, 2; instance] P A = a P for this A, so P X' = P X + a h P X = (1 + h a) P X. If |1 + h a|
    > |1 + h|, X_L/(1 + h a)^L -> P X_0, of rank min(n-1, d) for generic X_0: the maximum matching
    of T4c between n-1 copies of a and d copies of h."""
    # A = .4 I + .15 11^T, H = -1/2 I_5: limit rank 3 = min(n - 1, d); distinct h: rank 1.
    assert _A[0][:2] == [Fraction(11, 20), Fraction(3, 20)]
    five = verdict(A=_A, H=exact.diagonal(["-1/2"] * 5))
    two = verdict(A=_A, H=exact.diagonal("-1/2 -1/2"))
    distinct = verdict(A=_A, H=exact.diagonal("-1/2 -2/5"))
    assert {v.verdict for v in (five, two, distinct)} == {"NON_SMOOTHING"}
    assert (five.limit_rank, two.limit_rank, distinct.limit_rank) == (3, 2, 1)
    assert verdict(A=_A, H=exact.diagonal("1/2 1/2")).limit_rank == 1


def _multiplicity() -> None:
    """[1; instance] Exactly, multiplicities come from factorising the characteristic polynomial,
    and Jordan sizes from ranks: no eigenvalue is ever separated from its copy."""
    (one, other) = sorted(factors(_A), key=lambda f: f.multiplicity)
    assert (one.multiplicity, other.multiplicity, other.jordan) == (1, 3, (1, 1, 1))


def _balls_refuse() -> None:
    """[3; instance] Enclosures of simple eigenvalues are disjoint, so they cannot exist here."""
    # Simple eigenvalues cannot be isolated where they repeat; asked for multiple ones, yes.
    with at_precision(128):
        matrix = flint.acb_mat(to_flint(_A))
        try:
            matrix.eig()
        except ValueError:
            pass
        else:
            raise AssertionError("balls separated a repeated eigenvalue")
        values = matrix.eig(multiple=True)
        near = to_ball(Fraction(2, 5))
        assert sum(bool(v.real.overlaps(near)) for v in values) == 3


@st.composite
def _cases(pick: st.DrawFn) -> tuple[int, Fraction, Fraction, Matrix, int]:
    n, d = pick(st.integers(2, 4)), pick(st.integers(1, 4))
    share = pick(draw.fractions(Fraction(1, 12), Fraction(11, 12)))
    return n, share, pick(draw.fractions(-2, 2)), pick(draw.states(n, d)), pick(st.integers(0, 5))


def _law(n: int, share: Fraction, h: Fraction, X: Matrix, depth: int) -> None:
    """P X_L = (1 + h a)^L P X_0: HFC keeps its rank for ever, unless 1 + h a = 0."""
    moved = exact.layer(exact.flat(1 - share, n), exact.diagonal([h] * len(X[0])), X, depth)
    factor = (1 + h * (1 - share)) ** depth
    assert exact.centred(moved) == exact.scaled(factor, exact.centred(X))
    if factor != 0:
        assert to_flint(exact.centred(moved)).rank() == to_flint(exact.centred(X)).rank()


@given.condition("an eigenvalue of A or of H repeats", given.case())
def _repeats(instance: given.Instance) -> bool:
    return any(f.multiplicity > 1 for M in (instance.A, instance.H) for f in factors(M))


CLAIM = Claim(
    name="T11.3",
    clauses=(
        "Repeated semisimple eigenvalues need no special case: exact verdicts stay exact, and "
        "the asymptotic rank is that of T4c with eigenvalues counted with multiplicity.",
        "For A = a I + (1-a) 11^T/n and H = h I, P X_L = (1 + h a)^L P X_0: if NON_SMOOTHING the"
        " limit of X_L has the rank of P X_0, min(n-1, d) for generic X_0.",
        "Ball arithmetic for simple eigenvalues refuses such matrices; exact arithmetic, or "
        "balls that allow multiple eigenvalues, must be asked.",
    ),
    latex=r"A = aI + (1-a)\tfrac{1}{n}\mathbf 1\mathbf 1^\top,\; H = hI:\quad "
    r"PX_L = (1+ha)^L PX_0",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.TWO_TOKENS, _repeats),
    evidence=(
        by.written("multiples of the identity", _golden, _multiplicity, _balls_refuse),
        by.searched(
            "HFC of every X_0 in fractions",
            _law,
            _cases(),
            at=lambda n, share, h, X, depth: (
                exact.flat(1 - share, n),
                exact.diagonal([h] * len(X[0])),
                X,
            ),
        ),
    ),
)
