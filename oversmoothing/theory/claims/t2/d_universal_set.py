"""T2d, corollary (ii): which spectra of H are non-smoothing for every positive A."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import count

from oversmoothing.theory.claims.t3.c_universal_disc import in_universal_disc_exact
from oversmoothing.theory.proofs.kit import Claim, by, draw, exact, given, spectra, verdict


def _flat() -> None:
    """[1; instance] Only if: A_a = aI + (1-a) 11^T/n is positive for 0 <= a < 1, with the
    eigenvalues 1, a, ..., a, for every n >= 2; so rho_Q = max_j |1+h_j a|."""
    for n in (2, 3, 5):
        for a in (Fraction(0), Fraction(1, 2), Fraction(999, 1000)):
            A = exact.flat(a, n)
            assert given.is_positive(A)
            # (A - aI) is (1-a)/n times the matrix of ones, of rank 1 and trace 1 - a.
            assert {A[i][j] - a * int(i == j) for i in range(n) for j in range(n)} == {(1 - a) / n}


def _wide_example() -> None:
    """[instance] The set is wider than [-1, 0) for a whole spectrum: {-6/5, -1/2} is non-smoothing
    for every positive A."""
    # {-6/5, -1/2} leaves [-1, 0), but its maximiser -1/2 does not.
    H = exact.matrix("-6/5 0; 0 -1/2")
    for n in (2, 3):
        for k in range(20):
            assert verdict(A=exact.flat(Fraction(k, 20), n), H=H).verdict == "NON_SMOOTHING"
    A = [[Fraction(1, 50), Fraction(49, 50)], [Fraction(49, 50), Fraction(1, 50)]]
    assert verdict(A=A, H=H).verdict == "NON_SMOOTHING"


def _smoothing_witness(h_values: Sequence[spectra.Number]) -> Fraction:
    """Some a in [0, 1) at which the spectrum is not non-smoothing; a moves towards 1."""
    for k in count():
        a = 1 - Fraction(1, 2**k)
        if spectra.by_moduli(h_values, [a]) != "NON_SMOOTHING":
            return a
    raise AssertionError


def _law(values: list[spectra.Gaussian], points: list[tuple[Fraction, Fraction]]) -> None:
    h_values = [(x, sign * y) for x, y in values for sign in (1, -1)]
    radius = max(spectra.squared_modulus(h, 1) for h in h_values)
    maximisers = [h for h in h_values if spectra.squared_modulus(h, 1) == radius]
    if not any(in_universal_disc_exact(*h) for h in maximisers):
        assert 0 <= _smoothing_witness(h_values) < 1
        return
    for u, v in points:
        assert spectra.by_moduli(h_values, [(u, v), (u, -v)]) == "NON_SMOOTHING"


def _real_law(h_values: list[Fraction]) -> None:
    radius = max((1 + h) ** 2 for h in h_values)
    safe = any((1 + h) ** 2 == radius and -1 <= h < 0 for h in h_values)
    if not safe:
        assert 0 <= _smoothing_witness(h_values) < 1
        return
    for k in range(-99, 100, 9):
        assert spectra.by_moduli(h_values, [Fraction(k, 100)]) == "NON_SMOOTHING"


_PROOF = by.written(
    "the exact set",
    "[1] If: let h be a maximiser of |1+h_j| with |h + 1/2| <= 1/2, h != 0. A positive A with n >="
    " 2 has an eigenvalue a != 1, |a| < 1 (Perron), and conj a with it. By the query on the disc "
    "(T3c) max(|1+ha|, |1+h conj a|) > |1+h| = rho_C, and both belong to the quotient: rho_Q > "
    "rho_C.",
    _flat,
    "[1] Let no maximiser lie in the punctured disc. A maximiser h != 0 has |h|^2 + Re h > 0, and "
    "|1+h|^2 - |1+ha|^2 = (1-a) ((1+a)|h|^2 + 2 Re h), whose bracket tends to 2(|h|^2 + Re h) > 0:"
    " it loses to consensus for a close to 1. h = 0 only ties. Every other h_j has |1+h_j| < rho_C"
    " and so |1+h_j a| < rho_C for a close to 1. There are finitely many: for some a, rho_Q <= "
    "rho_C, and A_a is not NON_SMOOTHING.",
    "[2, 3] For real spectra the disc is [-1, 0) and the maximisers are q = min h_j or p = max h_j"
    " (|1+h| is convex and not constant between them). A = 11^T/n is a witness unless p < 0 and p "
    "+ q < -2; then a close to 1 is (the two queries).",
    _wide_example,
)

CLAIM = Claim(
    name="T2d-ii",
    clauses=(
        "For every n >= 2: W is NON_SMOOTHING for every positive A with n tokens iff some "
        "maximiser of |1+h_j| lies in {|h + 1/2| <= 1/2, h != 0};",
        "for real spectra, in [-1, 0).",
        "For a single real h this set is exactly [-1, 0).",
    ),
    latex=r"\Big(\forall A>0:\ \rho_Q>\rho_C\Big)\iff"
    r"\exists\, h\in\arg\max_j|1+h_j|:\ |h+\tfrac12|\le\tfrac12,\ h\ne0",
    source="ours, sharpening the control statement of arXiv 2401.04301 v3",
    on_record=by.WRITTEN,
    hypotheses=(given.TWO_TOKENS,),
    evidence=(
        _PROOF,
        # p is a maximiser of |1+h| iff p + q >= -2, and q iff p + q <= -2.
        by.for_all(
            "no maximiser in [-1, 0): some a in [0, 1) is not non-smoothing",
            given=(
                "0 <= a; a < 1; q <= p; not (-1 <= p and p < 0 and p + q >= -2)",
                "not (-1 <= q and q < 0 and p + q <= -2)",
                "p + q >= -2 or p >= 0 or (q*(1+a) < -2 and q < -2 - a*p)",
            ),
            then="not (NON_SMOOTHING)",
            at="q=-3, p=-1/2, a=3/4",
            where=by.CORNERS,
            covers=(2,),
        )
        .unless(
            "a maximiser in [-1, 0) admitted",
            without=(
                "not (-1 <= p and p < 0 and p + q >= -2)",
                "not (-1 <= q and q < 0 and p + q <= -2)",
            ),
        )
        .unless(
            "a = 0 is always a witness",
            without="p + q >= -2 or p >= 0 or (q*(1+a) < -2 and q < -2 - a*p)",
        ),
        by.for_all(
            "the last hypothesis holds for every a close enough to 1",
            given=(
                "q <= p; p < 0; p + q < -2; not (-1 <= p and p < 0 and p + q >= -2)",
                "not (-1 <= q and q < 0 and p + q <= -2); 0 < e; e*q > 2*(q + 1)",
                "e*p > 2 + p + q",
            ),
            then="q*(2 - e) < -2 and q < -2 - (1 - e)*p and q < -1",
            at="q=-3, p=-1/2, e=1/10",
            covers=(2,),
        ).unless("whatever e in (0, 1)", without="e*q > 2*(q + 1); e*p > 2 + p + q", given="e < 1"),
        by.searched(
            "complex spectra in fractions",
            _law,
            draw.lists(draw.gaussian_points(2), 1, 3),
            draw.lists(draw.gaussian_disc(), 1, 5),
        ),
        by.searched("real spectra in fractions", _real_law, draw.real_spectra()),
    ),
)
