"""T1e: HFC/LFC and t = HFC/(sqrt n |c|) bound each other, and both bounds are attained."""

from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.proofs.kit import A3, Claim, Matrix, by, draw, exact, given, spectra


def _law(A: Matrix, X: Matrix) -> None:
    """The bounds in fractions: roots are removed by squaring, each side being >= 0."""
    n, pi = len(A), spectra.stationary(A)
    hfc, lfc = exact.squared_norms(X)
    c = n * sum((x * x for x in exact.weighted_mean(pi, X)), Fraction(0))
    assume(hfc > 0)
    spread = n * spectra.squared_deviation(pi) * hfc
    # |sqrt lfc - sqrt c| <= sqrt spread, for sqrt lfc = s m, sqrt c = s c, sqrt spread = k u; that
    # is lfc + c - spread <= 2 sqrt(lfc c).
    left = lfc + c - spread
    assert left <= 0 or left * left <= 4 * lfc * c


@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    """(A, X): X in small integers, or within 1/100 of a consensus state."""
    A = pick(draw.attention(2, 4, zeros=True))
    X = pick(draw.states(len(A), 2))
    near = pick(st.booleans())
    return A, [[100 + x / 1000 for x in row] for row in X] if near else X


def _attained() -> None:
    """[2; instance] Attained. Doubly stochastic A: k = 0, and both bounds are t. Otherwise, for x =
    gamma + s (1/n - pi) (one feature) HFC = s (1/n - pi), m - c = s delta^2, ||HFC|| = |s| delta.
    If c > 0, s > 0 gives the lower bound and small s < 0 the upper one, with equality."""
    pi = spectra.stationary(A3)
    delta = spectra.squared_deviation(pi)
    for s in (Fraction(1), Fraction(-1)):
        X = [[5 + s * (Fraction(1, 3) - p)] for p in pi]
        (c,), (m,) = exact.weighted_mean(pi, X), exact.weighted_mean([Fraction(1, 3)] * 3, X)
        hfc, lfc = exact.squared_norms(X)
        assert hfc == delta and m - c == s * delta and c > 0
        # ratio = u/(s m), bounds u/(s c +- k u), with k u = s delta^2: equal.
        assert lfc == 3 * (c + s * delta) ** 2


@given.condition("c = pi^T X_0 is not 0", given.case(), given.case(X0="1; -1"))
def _given(instance: given.Instance) -> bool:
    if instance.X0 is None:
        return False
    return any(exact.weighted_mean(spectra.stationary(instance.A), instance.X0))


CLAIM = Claim(
    name="T1e",
    clauses=(
        "Let t = ||HFC||/(sqrt n ||c||) and k = sqrt n ||pi - 1/n||, for a state with HFC != 0 "
        "and c != 0. Then 1/(k + 1/t) <= ||HFC||/||LFC||, and ||HFC||/||LFC|| <= 1/(1/t - k) "
        "where 1/t > k.",
        "Both bounds are attained for every A with n >= 2, by every such state where A is doubly"
        " stochastic.",
        "So along any sequence of states HFC/LFC -> 0 iff t -> 0, and for doubly stochastic A "
        "they are equal.",
    ),
    latex=r"\frac{1}{k+1/t}\;\le\;\frac{\|\mathrm{HFC}\|}{\|\mathrm{LFC}\|}\;\le\;\frac{1}{1/t-k}"
    r"\quad(1/t>k),\qquad k=\sqrt n\,\|\pi-\tfrac1n\mathbf 1\|",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC, given.NOT_FLAT, _given),
    evidence=(
        by.Formal("T1f_floor.mean_against_pi_mean", ()),
        by.written(
            "the triangle inequality",
            "[1] m - c = (1/n - pi)^T HFC (T1d), so ||m - c|| <= delta ||HFC||_F: in each feature "
            "this is Cauchy-Schwarz, and the squares add up. Hence | ||m|| - ||c|| | <= delta "
            "||HFC||.",
            "[1] ||LFC|| = ||1 m||_F = sqrt n ||m||. With s = sqrt n and u = ||HFC||: s ||c|| - k "
            "u <= ||LFC|| <= s ||c|| + k u. Divide u by these: the bounds, as 1/t = s ||c||/u; "
            "where 1/t > k the lower end is positive, so LFC != 0.",
            "[3] If HFC/LFC -> 0 then k + 1/t -> infinity, so t -> 0; if t -> 0 then 1/t > k from "
            "some point on and the upper bound tends to 0. Where k = 0 both bounds are t.",
            _attained,
        ),
        # u = ||HFC||, m = ||m||, c = ||c||, s = sqrt n, k = s delta: the ratio is u/(s m).
        by.for_all(
            "u/(s m) lies between 1/(k + 1/t) and 1/(1/t - k)",
            given="0 < s; 0 < u; 0 <= m; 0 <= c; 0 <= k; s*m <= s*c + k*u; s*m >= s*c - k*u",
            then="u*(k*u + s*c) >= u*s*m and Implies(s*c > k*u, m > 0 and u*(s*c - k*u) <= u*s*m)",
            at="s=2, u=1, m=1, c=1, k=1/2",
            covers=(1,),
        )
        .unless(
            "without k below: HFC/LFC >= t", then="u*s*c >= u*s*m", at="s=1, u=1, m=2, c=1, k=1"
        )
        .unless(
            "without k above: HFC/LFC <= t", then="u*s*c <= u*s*m", at="s=1, u=1, m=1, c=2, k=1"
        ),
        by.searched(
            "the bounds in fractions, near consensus and far from it",
            _law,
            _cases(),
            at=given.of_state,
        ),
    ),
)
