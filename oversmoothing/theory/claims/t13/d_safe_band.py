"""T13d: which h never smooth under a mixing, and that a rotation of streams leaves no such band."""

from fractions import Fraction

import flint

from oversmoothing.theory.proofs.kit import AA, Claim, by, exact


def _rotation() -> None:
    """[4; general] R the rotation with cosine 24/25, p = 1, q = 1/2 each, h = -1, A with a = 1/2:
    det(x - R - t p q^T) = x^2 - (48/25 + t) x + 1 + 24 t/25. For t = -1 it is negative at 4/5, so
    rho_C > 4/5; for t = -1/2 its roots are a complex pair with the squared modulus 13/25 <
    16/25."""
    R, half = exact.matrix("24/25 -7/25; 7/25 24/25"), exact.matrix("1/2 1/2; 1/2 1/2")
    assert AA[0][0] - AA[1][0] == Fraction(1, 2)
    assert exact.product(exact.transposed(R), R) == exact.identity(2)
    consensus, rest = (
        exact.characteristic(exact.plus(R, half, t)) for t in (Fraction(-1), Fraction(-1, 2))
    )
    assert consensus(_value(4, 5)) < 0
    assert rest[0] == _value(13, 25) < _value(16, 25)
    assert rest[1] * rest[1] < 4 * rest[0]


def _value(p: int, q: int) -> flint.fmpq:
    """p/q as FLINT has it."""
    return flint.fmpq(p, q)


CLAIM = Claim(
    name="T13d",
    clauses=(
        "Mixings of T13c, kappa != 0, A > 0. If every eigenvalue has |kappa h_j + 1/2| <= 1/2, "
        "h_j != 0 (real: kappa h_j in [-1, 0)), then rho_Q >= rho_C: never SMOOTHING.",
        "If moreover max_j |1 + kappa h_j| >= iota, then NON_SMOOTHING, for every A > 0.",
        "For a single real h and n = 2 both are sharp: beyond kappa h < -1 some A smooths or ties, "
        "and for -1 <= kappa h < -(1 - iota), as for iota >= 1, some A > 0 ties. So the strict "
        "band is [-(1 - iota)/kappa, 0): for s >= 2 it is empty for R = I, and for R = 11^T/s it "
        "is [-1/kappa, 0).",
        "Other mixings have no such band: under an orthogonal R, p = 1, q = 1/s, even h = -1 "
        "smooths for some A > 0.",
    ),
    latex=r"-(1-\iota)\le\kappa h<0\implies\rho_Q>\rho_C\ \text{for every }A>0",
    source="ours",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "one stream, and a floor under it",
            "[1, 2] By T3c some i < n has |1 + kappa h_j a_i| > |1 + kappa h_j|, for each j. With "
            "T13c rho_C = max(iota, max_j |1 + kappa h_j|) and rho_Q is at least iota and more than"
            " max_j |1 + kappa h_j|: rho_Q >= rho_C, strictly if that maximum is at least iota.",
            "[3] kappa h < -1: a = -1/(kappa h) in (0, 1) gives rho_Q = iota <= rho_C. -1 <= kappa "
            "h < -(1 - iota): |1 + kappa h| < iota, and a close to 1 has |1 + kappa h a| <= iota, "
            "too: both radii are iota. iota >= 1 is such a case for every kappa h in [-1, 0).",
            _rotation,
        ),
    ),
    further="A band for H under mixings that share no eigenvector with p or q",
)
