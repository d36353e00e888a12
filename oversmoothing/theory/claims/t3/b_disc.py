"""T3b: consensus loses to a exactly for h in an open disc D(a) with 0 on its boundary."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, given, spectra, verdict

_FORM = "(x*x+y*y)*(1-u*u-v*v) + 2*(x*(1-u) + y*v)"
_CONSENSUS = "(1+x)**2 + y**2"
_MODE = "(1+x*u-y*v)**2 + (x*v+y*u)**2"


def _law(h: spectra.Gaussian, a: spectra.Gaussian) -> None:
    (x, y), (u, v) = h, a
    g = 1 - u * u - v * v
    centre, radius = (-(1 - u) / g, -v / g), ((1 - u) ** 2 + v * v) / g**2
    distance = (x - centre[0]) ** 2 + (y - centre[1]) ** 2
    consensus = spectra.squared_modulus(h, 1)
    mode = spectra.squared_modulus(h, a)
    assert (consensus < mode) == (distance < radius)
    assert (consensus == mode) == (distance == radius)
    assert centre[0] ** 2 + centre[1] ** 2 == radius, "0 lies on the boundary"


def _matrix_law(
    attention: tuple[Matrix, list[spectra.Gaussian]], h: spectra.Gaussian, s: Fraction
) -> None:
    (A, a_values), (x, y) = attention, h
    # [[x, -y], [y, x]] in the basis (1, 0), (s, 1).
    H = [[x + s * y, -y * (1 + s * s)], [y, x - s * y]]
    expected = spectra.by_moduli([(x, y), (x, -y)], a_values)
    assert verdict(A=A, H=H).verdict == expected


CLAIM = Claim(
    name="T3b",
    clauses=(
        "For |a| < 1: |1+h| < |1+ha| iff |h|^2 (1-|a|^2) + 2 Re(h(1-a)) < 0 iff h lies in the "
        "open disc D(a) of centre -(1 - conj a)/(1-|a|^2) and radius |1-a|/(1-|a|^2), with 0 on "
        "its boundary; equality holds exactly on the circle.",
        "D(a) is the interval (-2/(1+a), 0) for real a and h, and (-2(1-Re a)/(1-|a|^2), 0) for "
        "real h.",
        "Consensus loses for h iff h lies in the union of D(a_i), i < n; the verdict compares "
        "rho_C and rho_Q over all n d pairs.",
    ),
    latex=r"|1+h|<|1+ha| \iff "
    r"\Big|h+\tfrac{1-\bar a}{1-|a|^2}\Big| < \tfrac{|1-a|}{1-|a|^2}",
    source="ours",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.Formal("T3b_disc.disc_form_sign", (1,)),
        by.Formal("T3b_disc.disc_of_a_whole", (1,)),
        by.Formal("T3b_disc.disc_real", (2,)),
        by.Formal("T3b_disc.disc_real_h", (2,)),
        by.Formal("T3b_disc.loses_in_union", (3,)),
        by.Formal("T3b_disc.verdict_over_pairs", (3,)),
        by.Formal("T3c_disc.disc_of_a", ()),
        by.for_all(
            "Q13: |1+h|^2 - |1+ha|^2 = |h|^2 (1-|a|^2) + 2 Re(h(1-a))",
            then=f"{_CONSENSUS} - ({_MODE}) == {_FORM}",
            at="x=0, y=0, u=0, v=0",
            covers=(1,),
        ).unless(
            "conj a for a", then=f"{_CONSENSUS} - ({_MODE}) == {_FORM.replace('+ y*v', '- y*v')}"
        ),
        # Centre -(1 - conj a)/g and radius |1-a|/g, multiplied out by g = 1 - |a|^2.
        by.for_all(
            "the form is negative exactly in the open disc D(a), zero on its circle",
            given="g > 0",
            then="Iff(g*(x*x+y*y) + 2*(x*(1-u)+y*v) < 0, (g*x+1-u)**2 + (g*y+v)**2 < (1-u)**2 + "
            "v**2) and Iff(g*(x*x+y*y) + 2*(x*(1-u)+y*v) == 0, (g*x+1-u)**2 + (g*y+v)**2 == "
            "(1-u)**2 + v**2)",
            at="x=0, y=0, u=0, v=0, g=1",
            covers=(1, 3),
        ).unless(
            "centre -(1-a)/g",
            then="Iff(g*(x*x+y*y) + 2*(x*(1-u)+y*v) < 0, (g*x+1-u)**2 + (g*y-v)**2 < (1-u)**2 + "
            "v**2)",
            at="x=0, y=1/2, u=0, v=-1/2, g=3/4",
        ),
        by.for_all(
            "real h, complex a: D(a) meets the real line in (-2 (1-Re a)/(1-|a|^2), 0)",
            given="u*u + v*v < 1",
            then="Iff((1+h)**2 < (1+h*u)**2 + (h*v)**2, h < 0 and h*(1-u*u-v*v) > -2*(1-u))",
            at="h=-1, u=0, v=1/2",
            covers=(2,),
        ).unless(
            "by the real part of a alone",
            then="Iff((1+h)**2 < (1+h*u)**2 + (h*v)**2, h < 0 and h*(1+u) > -2)",
            at="h=-2, u=0, v=1/2",
        ),
        by.searched("in fractions", _law, draw.gaussian_points(), draw.gaussian_disc()),
        by.searched(
            "the verdict over all pairs against the exact one on matrices",
            _matrix_law,
            draw.circulant_attention(),
            draw.gaussian_points(3),
            st.integers(-2, 2).map(Fraction),
            at=lambda attention, h, s: given.of_attention(attention[0]),
        ),
    ),
)
