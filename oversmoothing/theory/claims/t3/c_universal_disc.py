"""T3c: |h + 1/2| <= 1/2, h != 0 is exactly where consensus loses whatever the positive A is."""

from fractions import Fraction

from hypothesis import assume

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, spectra, verdict
from oversmoothing.theory.verdict.dominance import in_universal_disc

# By conjugation y >= 0 and v >= 0; then a and conj a differ by the sign of y v, and -2 y v is the
# better one. The left side is |1+h|^2 - |1 + h conj a|^2 (T3b).
LOSES = (
    by.for_all(
        "Q14: in the universal disc one of a, conj a beats consensus",
        given="u*u + v*v < 1; x*x + y*y + x <= 0; x < 0; y >= 0; v >= 0",
        then="(x*x+y*y)*(1-u*u-v*v) + 2*x*(1-u) - 2*y*v < 0",
        at="x=-1/2, y=1/2, u=0, v=1/2",
        covers=(1,),
    )
    .unless(
        "radius .55 about -1/2 (even on the real line)",
        without="u*u + v*v < 1; x*x + y*y + x <= 0; x < 0; y >= 0; v >= 0",
        given="u*u < 1; (x+1/2)**2 <= 121/400; x < 0; y == 0; v == 0",
        at="x=-21/20, y=0, u=99/100, v=0",
    )
    .unless(
        "Re h in [-1, 0) (even for a = 0)",
        without="u*u + v*v < 1; x*x + y*y + x <= 0",
        given="u == 0; v == 0; -1 <= x",
        at="x=-1/2, y=1, u=0, v=0",
    )
    .unless(
        "a alone, without its conjugate",
        then="(x*x+y*y)*(1-u*u-v*v) + 2*x*(1-u) + 2*y*v < 0",
        at="x=-1/2, y=1/2, u=1/2, v=3/4",
    )
)


def _needed() -> None:
    """[5; instance] Neither condition can be dropped."""
    # 1 in spec K makes h = 0; beyond norm 1, K = [[0, -11/10], [11/10, 0]] leaves the disc.
    assert not spectra.in_disc(exact.matrix("0 0; 0 -1/2"))
    outside = exact.matrix("-1/2 -11/20; 11/20 -1/2")
    assert not spectra.in_disc(outside)
    assert verdict(A=exact.flat(Fraction(19, 20), 2), H=outside).verdict == "SMOOTHING"


def _law(h: spectra.Gaussian, point: spectra.Gaussian) -> None:
    (x, y), (u, v) = h, point
    consensus = spectra.squared_modulus(h, 1)
    if in_universal_disc_exact(x, y):
        assert max(spectra.squared_modulus(h, (u, s * v)) for s in (1, -1)) > consensus
        return
    size = x * x + y * y
    assume(size > 0)
    a = -x / size if x <= 0 else Fraction(0)
    assert 0 <= a < 1 and spectra.squared_modulus(h, a) < consensus


def in_universal_disc_exact(x: Fraction, y: Fraction) -> bool:
    """|h + 1/2| <= 1/2, h != 0."""
    return bool(x or y) and x * x + y * y + x <= 0


def _code_law(*h: Fraction) -> None:
    """`in_universal_disc` is the same set, on eighths (exact in binary64)."""
    x, y = (Fraction(round(8 * t), 8) for t in h)
    assert in_universal_disc(complex(float(x), float(y))) == in_universal_disc_exact(x, y)


def _matrix_law(
    attention: tuple[Matrix, list[spectra.Gaussian]], points: list[spectra.Gaussian]
) -> None:
    A, a_values = attention
    values = [(x, s * y) for x, y in points for s in (1, -1)]
    assert spectra.by_moduli(values, a_values) == "NON_SMOOTHING"
    x, y = points[0]
    assert verdict(A=A, H=[[x, -y], [y, x]]).verdict == "NON_SMOOTHING"


_INSIDE = draw.gaussian_points(1).filter(lambda h: in_universal_disc_exact(*h))

_PROOF = by.written(
    "from one pair to matrices",
    "[1] The pair {|1+ha|, |1+h conj a|} is the same for h and conj h, and for a and conj "
    "a: y >= 0 and v >= 0 without loss of generality. So the query, whose left side is "
    "|1+h|^2 - |1+h conj a|^2 (T3b), covers every h in the punctured disc and every |a| < "
    "1.",
    "[1] By hand: |h|^2 <= -x gives |h|^2 (1-|a|^2) + 2x(1-u) - 2yv <= x |1-a|^2 - 2yv < "
    "0, since x < 0 and a != 1.",
    "[4] A real positive A, n >= 2, has eigenvalues a_i, |a_i| < 1, closed under "
    "conjugation. If all h_j are in the disc, the h of rho_C = |1+h| meets some pair a_i, "
    "conj a_i: rho_Q > rho_C, NON_SMOOTHING.",
    "[1, 3] Outside, the witness a in [0, 1) is realised by aI + (1-a) 11^T/n > 0 for "
    "every n >= 2; h = 0 ties with every a.",
    "[2] Re(1/h) + 1 = (|h|^2 + Re h)/|h|^2, and |h + 1/2|^2 - 1/4 = |h|^2 + Re h.",
    "[5] If ||2H+I||_2 <= 1 and Hv = hv, ||v|| = 1, then |2h+1| = ||(2H+I)v|| <= 1, that "
    "is |h + 1/2| <= 1/2; h != 0 as H is nonsingular. With K = 2H + I: H = -(I-K)/2 is "
    "singular iff 1 is in spec K. Symmetric H with spectrum in [-1, 0) are the symmetric "
    "K.",
    _needed,
)

CLAIM = Claim(
    name="T3c",
    clauses=(
        "A non-consensus mode beats consensus for every {a, conj a} in the open unit disc iff |h"
        " + 1/2| <= 1/2 and h != 0,",
        "equivalently Re(1/h) <= -1: the disc with diameter [-1, 0], which is [-1, 0) for real h.",
        "Outside, the real a = max(0, Re(-1/h)) loses.",
        "So if all h_j lie in that disc, every positive A is NON_SMOOTHING.",
        "Sufficient, without eigenvalues: ||2H + I||_2 <= 1 and H nonsingular, that is H = "
        "-(I-K)/2 with ||K||_2 <= 1, 1 not in spec K.",
    ),
    latex=r"\big(\forall |a|<1:\ \max(|1+ha|,|1+h\bar a|)>|1+h|\big)\iff"
    r"|h+\tfrac12|\le\tfrac12,\ h\ne0",
    source="ours, extending the control statement of arXiv 2401.04301 v3 to complex spectra",
    on_record=by.MACHINE,
    hypotheses=(
        given.POSITIVE,
        given.TWO_TOKENS,
        given.Hypothesis(
            "every eigenvalue of H has |h + 1/2| <= 1/2 and h != 0",
            lambda i: spectra.in_disc(i.H),
            (given.case(H="0"), given.case(), given.case(H="-1/2 -1; 1 -1/2")),
        ),
    ),
    evidence=(
        by.Formal("T3c_disc.disc_sufficient", (1,)),
        by.Formal("T3c_disc.disc_necessary", (1,)),
        by.Formal("T3b_disc.disc_inverse", (2,)),
        by.Formal("T3b_disc.disc_of_real", (2,)),
        by.Formal("T3b_disc.disc_witness", (3,)),
        by.Formal("T3_matrix.disc_non_smoothing", (4,)),
        by.Formal("T3_matrix.matrix_form", (5,)),
        by.Formal("T3_matrix.matrix_form_K", (5,)),
        LOSES,
        by.for_all(
            "Q16: outside with Re h <= 0, the real a = Re(-1/h) in [0, 1) loses to consensus",
            given="x <= 0; x*x + y*y + x > 0; a*(x*x + y*y) == -x",
            then="0 <= a < 1 and (1+x)**2 + y**2 > (1+x*a)**2 + (y*a)**2",
            at="x=-1, y=1, a=1/2",
            covers=(1, 3),
        ).unless(
            "on the circle",
            without="x <= 0; x*x + y*y + x > 0",
            given="x < 0; x*x + y*y + x == 0",
            at="x=-1/2, y=1/2, a=1",
        ),
        by.for_all(
            "Q16b: outside with Re h > 0, a = 0 loses to consensus",
            given="x > 0",
            then="(1+x)**2 + y**2 > 1",
            at="x=1, y=0",
            covers=(1, 3),
        ).unless("Re h >= 0", without="x > 0", given="x >= 0"),
        _PROOF,
        by.searched("in fractions", _law, draw.gaussian_points(2), draw.gaussian_disc()),
        by.searched("the set as computed", _code_law, draw.gaussian_points(2)),
        by.searched(
            "the exact verdict on matrices",
            _matrix_law,
            draw.circulant_attention(),
            draw.lists(_INSIDE, 1, 2),
            at=lambda attention, points: (
                attention[0],
                [[points[0][0], -points[0][1]], [points[0][1], points[0][0]]],
            ),
        ),
    ),
)
