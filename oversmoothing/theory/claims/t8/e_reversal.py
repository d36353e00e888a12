"""T8e: when gamma -> -gamma turns the verdict of a Pre-LN layer with frozen attention."""

from collections.abc import Sequence
from fractions import Fraction

from oversmoothing.theory.proofs.instances import AA, AM
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, spectra, verdict
from oversmoothing.theory.verdict.dominance import real_verdict


def reach(a_values: list[spectra.Gaussian]) -> Fraction:
    """max 2 (1 - Re a_i)/(1 - |a_i|^2): -h, h > 0, does not beat some a_i iff h is at most that."""
    return max(2 * (1 - u) / (1 - u * u - v * v) for u, v in a_values)


def _turns(
    h: Sequence[spectra.Number], opposite: Sequence[spectra.Number], a: Sequence[spectra.Number]
) -> bool:
    """Whether the two spectra of H have different verdicts."""
    return spectra.by_moduli(h, a) != spectra.by_moduli(opposite, a)


def _real_law(size: Fraction, a_values: list[Fraction]) -> None:
    a = min(a_values)
    for h in (size, -size):
        assert _turns([h], [-h], a_values) == (0 < abs(h) <= 2 / (1 + a))
        centred = _turns([h, 0], [-h, 0], a_values)
        assert centred == (0 < abs(h) <= max(Fraction(2), 2 / (1 + a)))
        q, p = sorted((h, Fraction(0)))
        assert spectra.by_moduli([h, 0], a_values) == real_verdict(q, p, a)


def _complex_law(h: Fraction, a: spectra.Gaussian, w: Fraction) -> None:
    u, v = a
    a_values = [(u, v), (u, -v), (w, Fraction(0))]
    s = reach(a_values)
    for size in (h, s, s + Fraction(1, 50)):
        assert _turns([size], [-size], a_values) == (0 < size <= s)
        centred = _turns([size, 0], [-size, 0], a_values)
        assert centred == (0 < size <= max(Fraction(2), s))


def _matrix_law(attention: tuple[Matrix, list[spectra.Gaussian]], h: Fraction) -> None:
    """W^T = [[2h, 0], [0, 0]] gives W^T C = [[h, -h], [0, 0]], with the eigenvalues h and 0."""
    A, a_values = attention
    H = [[h, -h], [Fraction(0), Fraction(0)]]
    differ = verdict(A=A, H=H).verdict != verdict(A=A, H=exact.scaled(-1, H)).verdict
    assert differ == (0 < abs(h) <= max(Fraction(2), reach(a_values)))


def _symmetric_spectrum() -> None:
    """[5; instance] A spectrum with q = -p: T2d depends on p and q only."""
    for p in (Fraction(1, 2), Fraction(3), Fraction(9)):
        H, opposite = exact.diagonal([p, -p]), exact.diagonal([-p, p])
        assert verdict(A=AM, H=H).verdict == verdict(A=AM, H=opposite).verdict


def _examples() -> None:
    """[2; instance] The multiplier 1 + 0 a = 1 belongs to consensus and to the quotient alike, so
    with C: rho_C = max(|1+h|, 1), rho_Q = max(|1+h a_i|, 1)."""
    # a = 1/2: bare 4/3, with C 2. Between them C alone turns the verdict, into a tie.
    A, h = AA, Fraction(3, 2)
    assert verdict(A=A, H=[[h]]).verdict == verdict(A=A, H=[[-h]]).verdict == "SMOOTHING"
    assert verdict(A=A, H=[[h, -h], [Fraction(0), Fraction(0)]]).verdict == "SMOOTHING"
    assert verdict(A=A, H=[[-h, h], [Fraction(0), Fraction(0)]]).verdict == "TIE"


@given.condition(
    "H has exactly one non-zero eigenvalue, and it is real",
    given.case(H="0"),
    given.case(H="1 0; 0 2"),
)
def _one_real_value(instance: given.Instance) -> bool:
    values = [value for value in spectra.spectrum(instance.H) if not value.is_zero]
    return len(values) == 1 and values[0].is_real


_QUERIES = (
    by.for_all(
        "Q18: h > 0 smooths, and -h does not beat a iff h <= 2 (1-Re a)/(1-|a|^2)",
        given="u*u + v*v < 1; h > 0",
        then="(1+h)**2 > (1+h*u)**2 + (h*v)**2 and (1+h)**2 > 1 and Iff((1-h)**2 <= "
        "(1-h*u)**2 + (h*v)**2, h*(1-u*u-v*v) <= 2*(1-u))",
        at="h=1, u=0, v=1/2",
        covers=(2, 3),
    )
    .unless(
        "by the real part of a alone",
        then="Iff((1-h)**2 <= (1-h*u)**2 + (h*v)**2, h*(1+u) <= 2)",
        at="h=9/4, u=0, v=1/2",
    )
    .unless(
        "up to h = 2 for every a",
        then="Iff((1-h)**2 <= (1-h*u)**2 + (h*v)**2, h <= 2)",
        at="h=3/2, u=1/2, v=0",
    )
    .unless(
        "open at the end",
        then="Iff((1-h)**2 <= (1-h*u)**2 + (h*v)**2, h*(1-u*u-v*v) < 2*(1-u))",
        at="h=4/3, u=1/2, v=0",
    ),
    by.for_all(
        "with C the modulus 1 is on both sides, and -h does not beat it iff h <= 2",
        given="h > 0",
        then="Iff((1-h)**2 <= 1, h <= 2)",
        at="h=1",
        covers=(2, 3),
    ).unless("h < 2", then="Iff((1-h)**2 <= 1, h < 2)", at="h=2"),
    by.for_all(
        "with C the side -h is a tie if a >= 0 and h <= 2",
        given=(by.EIGENVALUE, "h > 0; a >= 0; h <= 2"),
        then="(1-h)**2 <= 1 and (1-h*a)**2 <= 1",
        at="h=1, a=1/2",
        covers=(4,),
    ).unless("a >= -1/2", without="a >= 0", given="a >= -1/2"),
    by.for_all(
        "with C the side -h is non-smoothing iff a < 0 and h < 2/(1+a)",
        given=(by.EIGENVALUE, "h > 0"),
        then="Iff((1-h*a)**2 > (1-h)**2 and (1-h*a)**2 > 1, a < 0 and h*(1+a) < 2)",
        at="h=1, a=-1/2",
        covers=(2,),
    ).unless(
        "whatever the sign of a",
        then="Iff((1-h*a)**2 > (1-h)**2 and (1-h*a)**2 > 1, h*(1+a) < 2)",
        at="h=1, a=1/2",
    ),
)

CLAIM = Claim(
    name="T8e-reversal",
    clauses=(
        "Pre-LN with frozen A and one scale s: H_eff = W^T diag(gamma) C/s, C = I - 11^T/d, and "
        "gamma -> -gamma turns H_eff into -H_eff.",
        "Let h be its one non-zero eigenvalue, real, and s_A = max over i < n of 2(1 - Re "
        "a_i)/(1-|a_i|^2), which is 2/(1+a_1) for real spec(A). Without C (a bare h) the "
        "verdicts of h and -h differ iff 0 < |h| <= s_A; with C, which adds the eigenvalue 0, "
        "iff 0 < |h| <= max(2, s_A).",
        "The side |h| smooths, and beyond these ranges both do;",
        "with C, real spec(A), a_1 >= 0 and |h| <= 2, the side -|h| is a TIE.",
        "A spectrum with p = -q (real) never turns.",
    ),
    latex=r"\mathrm{verdict}(h)\ne\mathrm{verdict}(-h)\iff "
    r"0<|h|\le\max\Big(2,\tfrac{2}{1+a_1}\Big)",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, _one_real_value),
    evidence=(
        *_QUERIES,
        by.written(
            "from pairs to layers",
            "[1] H_eff is linear in gamma; C 1 = 0 gives it the eigenvalue 0.",
            _examples,
            "[2] max over i of conditions h <= 2(1 - Re a_i)/(1-|a_i|^2) is h <= s_A; for real a "
            "that bound is 2/(1+a), largest at a_1. With C -h smooths neither where h <= s_A nor "
            "where h <= 2.",
            _symmetric_spectrum,
        ),
        by.searched(
            "real spectra in fractions", _real_law, draw.fractions(0, 8), draw.attention_spectra()
        ),
        by.searched(
            "complex spectra in fractions, the boundary among them",
            _complex_law,
            draw.fractions(0, 8),
            draw.gaussian_disc(),
            draw.inside(-1, 1),
        ),
        by.searched(
            "the exact verdict on matrices with H 1 = 0",
            _matrix_law,
            draw.circulant_attention(),
            draw.fractions(-6, 6),
            at=lambda attention, h: (attention[0], [[h, -h], [Fraction(0), Fraction(0)]]),
        ),
    ),
    further="Several non-zero eigenvalues: compare the two verdicts by T2d or T3.",
)
