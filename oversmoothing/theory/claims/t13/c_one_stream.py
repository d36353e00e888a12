"""T13c: mixings under which several streams have the verdict of one."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact

Vector = list[Fraction]


def _law(R: Matrix, free: Vector, t: Fraction, left: bool) -> None:
    """R 1 = 1 and p = 1, or the transpose: chi_R/(x - 1) (x - 1 - kappa t)."""
    ones = [Fraction(1)] * len(R)
    p, q = (free, ones) if left else (ones, free)
    M = exact.transposed(R) if left else R
    outer = [[x * y for y in q] for x in p]
    kappa = exact.dot(p, q)
    moved = exact.characteristic(exact.plus(M, outer, t))
    one, active = ([[Fraction(1)]], [[1 + kappa * t]])
    assert moved * exact.characteristic(one) == exact.characteristic(M) * exact.characteristic(
        active
    )


@st.composite
def _drawn(pick: st.DrawFn) -> tuple[Matrix, Vector, Fraction, bool]:
    R = pick(draw.attention(1, 4, zeros=True))
    free = pick(draw.lists(draw.fractions(-2, 2, 4), len(R)))
    return R, free, pick(draw.fractions(-3, 3, 4)), pick(st.booleans())


CLAIM = Claim(
    name="T13c",
    clauses=(
        "R p = p or R^T q = q (R = I with any p and q; row-stochastic R with p = 1; "
        "column-stochastic R with q = 1), kappa = q^T p: the eigenvalues of R + t p q^T are those "
        "of R without one 1, and 1 + kappa t.",
        "So with iota the largest modulus of the former, rho_C and rho_Q are the larger of iota "
        "and the radii of one stream with kappa H for H: the verdict is that of this one stream "
        "where the larger of its radii exceeds iota, else TIE.",
        "R = I or orthogonal with such p, q, and s >= 2: iota = 1, so a verdict other than TIE "
        "needs a multiplier beyond 1.",
    ),
    latex=r"\operatorname{spec}(R+t\,pq^\top)=\bigl(\operatorname{spec}(R)\setminus\{1\}\bigr)"
    r"\cup\{1+\kappa t\},\qquad \kappa=q^\top p",
    source="ours; the eigenvalues are Brauer's theorem of 1952",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "a shared eigenvector",
            "[1] R p = p: (x - R)^-1 p = p/(x - 1), so N = chi q^T p/(x - 1) and by T13a the "
            "polynomial is chi (x - 1 - kappa t)/(x - 1). R^T q = q: the same from the left.",
            "[2] T13a with t = h_j a_i: max |1 + kappa h_j a_i| over both sides is what one stream "
            "with kappa H has (T1a).",
            "[3] All eigenvalues of R have modulus 1, and s - 1 >= 1 of them are left.",
        ),
        by.searched("polynomials, from both sides", _law, _drawn()),
    ),
)
