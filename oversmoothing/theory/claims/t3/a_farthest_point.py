"""T3a: the dominant eigenvalue of A is the one farthest from -1/h, a vertex of their hull."""

from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.proofs.kit import Claim, by, draw, exact, given, spectra


def _distance(h: spectra.Gaussian, a: spectra.Gaussian) -> Fraction:
    """|h|^2 |a + 1/h|^2."""
    (x, y), (u, v) = h, a
    size = x * x + y * y
    return size * ((u + x / size) ** 2 + (v - y / size) ** 2)


def _law(h: spectra.Gaussian, points: list[spectra.Gaussian], weights: list[int]) -> None:
    assume(any(h) and sum(weights[: len(points)]) > 0)
    values = [spectra.squared_modulus(h, a) for a in points]
    assert values == [_distance(h, a) for a in points]
    # A mixture of the points is never farther, and strictly nearer unless it is one of them.
    used = weights[: len(points)]
    u, v = (exact.dot(map(Fraction, used), part) / sum(used) for part in zip(*points, strict=True))
    inside = u, v
    mixed = spectra.squared_modulus(h, inside)
    assert mixed <= max(values)
    assert mixed < max(values) or inside in points


def _real_line() -> None:
    """[1; instance] |1 + ha| = |h| |a + 1/h| since 1 + ha = h (a + 1/h)."""
    # For h = -3/2 and the real a = 1/2, 1: z = 2/3 is nearer to 1/2, so consensus wins (T2b).
    h, zero = (Fraction(-3, 2), Fraction(0)), Fraction(0)
    assert _distance(h, (Fraction(1), zero)) == Fraction(1, 4)
    assert _distance(h, (Fraction(1, 2), zero)) == Fraction(1, 16)


@given.condition("every eigenvalue of H considered is non-zero", given.case(H="0"))
def _nonsingular(instance: given.Instance) -> bool:
    return not any(value.is_zero for value in spectra.spectrum(instance.H))


CLAIM = Claim(
    name="T3a",
    clauses=(
        "For h != 0 and z = -1/h: |1+ha| = |h| |a - z|.",
        "So the dominant eigenvalue of A for this h is the point of spec(A) farthest from -1/h, "
        "every dominant one is a vertex of the convex hull of spec(A),",
        "and consensus wins iff -1/h lies in the farthest-point Voronoi cell of 1.",
    ),
    latex=r"|1+ha| = |h|\,\big|a-(-\tfrac1h)\big|",
    source="ours",
    on_record=by.MACHINE,
    hypotheses=(_nonsingular,),
    evidence=(
        by.Formal("Farthest.distance", (1,)),
        by.Formal("Farthest.farthest", (2,)),
        by.Formal("Farthest.voronoi", (3,)),
        # A = |a - z|^2, B = |b - z|^2, D = |a - b|^2: |ra + (1-r)b - z|^2 = rA + (1-r)B - r(1-r)D.
        by.for_all(
            "a point strictly between a != b is strictly closer to z than one of them",
            given="0 < r; r < 1; D > 0",
            then="r*A + (1-r)*B - r*(1-r)*D < A or r*A + (1-r)*B - r*(1-r)*D < B",
            at="A=1, B=0, D=1, r=1/2",
            covers=(2,),
        ).unless("a = b admitted", without="D > 0", given="D >= 0"),
        by.written(
            "from distances to hulls",
            _real_line,
            "[2] The largest of |1+ha| over spec(A) is therefore at a point farthest from z. If "
            "that point a were no vertex of the hull K, it would lie strictly between two "
            "different points of K; |. - z| is convex, so on K it is at most its maximum R over "
            "spec(A), and by the query a would be at distance < R.",
            "[3] |1+h| > |1+ha_i| for all i < n says that 1 is farther from z than every other "
            "a_i: the definition of the open farthest-point cell of 1. 1 is itself a vertex: every"
            " other a_i has |a_i| <= 1, a_i != 1.",
        ),
        by.searched(
            "in fractions",
            _law,
            draw.gaussian_points(),
            draw.lists(draw.gaussian_points(1), 1, 5),
            draw.lists(st.integers(0, 4), 5),
        ),
    ),
)
