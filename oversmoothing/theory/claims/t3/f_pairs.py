"""T3f: which pairs tie, and the rank of the limit: 2 when both eigenvalues are not real."""

from fractions import Fraction
from itertools import pairwise

import sympy as sp

from oversmoothing.theory.claims.t3.e_what_breaks import C4
from oversmoothing.theory.depth.ratios import exact_state
from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.proofs.instances import AA, AM
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, spectra, verdict
from oversmoothing.theory.verdict.exact_comparison import exact_dominance

# H has h = -3/2 +- i with the non-orthogonal eigenvectors of a shear; -1/10 beside it.
_H_PAIR = exact.matrix("-1/2 -2 0; 1 -5/2 0; 0 0 -1/10")
_H_NORMAL = exact.matrix("-3/2 -1 0; 1 -3/2 0; 0 0 -1/10")
# A = 1 pi^T + N: pi = (1/2, 1/4, 1/4), N1 = 0, pi^T N = 0, spec N = {(1 +- 3i)/16, 0}; not normal.
_S = sp.Matrix([[1, 1, 0], [1, -1, 1], [1, -1, -1]])


def _frobenius(X: Matrix) -> Fraction:
    return sum(exact.squared_norms(X), Fraction(0))


def _second_symmetric(X: Matrix) -> Fraction:
    """sum_{i<j} sigma_i^2 sigma_j^2, from the traces of the Gram matrix and of its square."""
    gram = exact.product(exact.transposed(X), X)
    return (_frobenius(X) ** 2 - _frobenius(gram)) / 2


def _skew_attention() -> Matrix:
    block = sp.diag(1, sp.Matrix([[1, -3], [3, 1]]) / 16)
    A = _S * block * _S.inv()
    return [[Fraction(int(A[i, j].p), int(A[i, j].q)) for j in range(3)] for i in range(3)]


def _rank_two_profiles() -> None:
    """[3; instance] Quantitatively (sigma_1 sigma_2)^2 of Re(s v w^T) is det Gram(p, q) det Gram(r,
    t) = |s|^4 (|v|^4 - |v^T v|^2)(|w|^4 - |w^T w|^2)/16: the same for every L."""
    # X_0 = Re(v w^T) in the dominant subspace: X_L has rank 2, sigma_1 sigma_2 = c |mu|^(2L).
    A, H = _skew_attention(), _H_PAIR
    assert all(min(row) > 0 and sum(row) == 1 for row in A)
    # v = Re/Im columns 2, 3 of _S; w = (1, 0) + i... from (H - h) w = 0: w = (2, 1 - i, 0).
    p, q = [[int(_S[i, k]) for i in range(3)] for k in (1, 2)]
    X0 = [[Fraction(2 * a), Fraction(a + b), Fraction(0)] for a, b in zip(p, q, strict=True)]
    start = _second_symmetric(X0)
    assert start > 0
    states = exact_state(A, H, X0, [0, 1, 2, 3, 8, 30])
    # h = -3/2 + i and a = (1 - 3i)/16: |mu|^2, the determinant of I + H (x) A on that plane.
    h, a = (Fraction(-3, 2), Fraction(1)), (Fraction(1, 16), Fraction(-3, 16))
    size = spectra.squared_modulus(h, a)
    ratios = []
    for depth, X in states.items():
        assert to_flint(X).rank() == 2
        assert _second_symmetric(X) == start * size ** (2 * depth)
        ratios.append(_frobenius(X) ** 2 / _second_symmetric(X))
    assert len(set(ratios)) == len(ratios), "both not normal: sigma_2/sigma_1 oscillates"


def _normal_is_constant() -> None:
    """[4; instance] sigma_1^2 + sigma_2^2 = (|s|^2 |v|^2 |w|^2 + Re(s^2 v^T v w^T w))/2. So for
    generic g sigma_2/sigma_1 and the effective rank of Z_L are constant in L iff v^T v = 0 or w^T w
    = 0 or mu is real, in particular if A or H is normal; otherwise they oscillate: Re(z e^(2iL
    theta)) constant in L with z = g^2 v^T v w^T w and Re z, Im z != 0 forces e^(2i theta) = 1."""
    # H normal (w^T w = 0): sigma_2/sigma_1 of the same plane is constant.
    p, q = [[int(_S[i, k]) for i in range(3)] for k in (1, 2)]
    X0 = [[Fraction(a), Fraction(b), Fraction(0)] for a, b in zip(p, q, strict=True)]
    states = exact_state(_skew_attention(), _H_NORMAL, X0, [0, 1, 2, 3, 8, 30])
    assert len({_frobenius(X) ** 2 / _second_symmetric(X) for X in states.values()}) == 1


def _generic_start() -> None:
    """[3; instance] Both not real. sv = p + iq, w = r + it: Re(s v w^T) = p r^T - q t^T = [p,
    -q][r, t]^T has rank exactly 2, as p, q and r, t are independent (2): rank collapse to 1 fails
    for every L."""
    # From a generic X_0 the exact dominant pairs are (h, a), Im h Im a < 0, and the rank is 2.
    H = _H_NORMAL
    found = exact_dominance(C4, H)
    assert found.comparison == -1 and len(found.quotient) == 2
    for mode in found.quotient:
        assert mode.attention is not None
        a, h = complex(mode.attention.ball(64).mid()), complex(mode.value.ball(64).mid())
        assert a.imag * h.imag < 0
    X0 = exact.matrix("1 2 1; 3 5 -1; -1 4 2; 2 -3 1")
    result = verdict(A=C4, H=H, X0=X0)
    assert result.limit_rank == 2
    X = exact.layer(C4, H, X0, 160)
    # sigma_2^2/sigma_1^2 >= e_2/||X||^4 stays away from 0.
    assert _second_symmetric(X) / _frobenius(X) ** 2 > Fraction(1, 100)


def _real_feature() -> None:
    """[2; instance] h real, a not: Z_L = 2 Re(s v) w^T has rank 1 and never vanishes (2). pi^T v =
    0, so by T1f HFC/LFC -> [1/(sqrt n delta), inf] along the oscillation ||P Re(sv)||/(sqrt n |Re(s
    mean v)|). It is infinite only where Re(s mean v) = 0: for all L if A is doubly stochastic (mean
    v = 0); if mean v != 0 and arg mu is a rational multiple of pi the phases are finitely many and
    for generic g none is hit; otherwise they are dense and limsup = inf."""
    A, H = _skew_attention(), [[Fraction(-1)]]
    X0 = exact.matrix("1; 2; 4")
    states = exact_state(A, H, X0, list(range(40, 60)))
    ratios = [exact.squared_ratio(X) for X in states.values()]
    # n delta^2 = n |pi|^2 - 1 = 1/8 for pi = (1/2, 1/4, 1/4).
    floor = 1 / Fraction(1, 8)
    assert min(ratios) > floor * (1 - Fraction(1, 10**6))
    rises = [b > a for a, b in pairwise(ratios)]
    assert True in rises and False in rises


def _real_token() -> None:
    """[2; instance] h not real, a real: Z_L = 2 v Re(s w)^T has rank 1, its feature direction
    rotates; a = 1 has v = 1, so HFC/LFC -> 0 and all cosines tend to 1."""
    H = exact.matrix("1/2 -1; 1 1/2")
    assert verdict(A=AA, H=H).verdict == "SMOOTHING"
    first, second = (exact.layer(AA, H, exact.matrix("1 2; 3 5"), L) for L in (80, 81))
    for X in (first, second):
        assert _second_symmetric(X) < _frobenius(X) ** 2 / 10**12
        assert exact.dot(*X) > 0
    turn = first[0][0] * second[0][1] - first[0][1] * second[0][0]
    assert turn**2 * 100 > _frobenius(first) * _frobenius(second)


def _negative_multiplier() -> None:
    """[2; instance] h and a real: Z_L has rank 1. 1 + ha < 0: it alternates."""
    states = exact_state(AM, exact.matrix("3"), exact.matrix("1; -1"), [1, 2, 3])
    mu = Fraction(-5, 4)
    assert mu == 1 + 3 * Fraction(-3, 4)
    assert [X[0][0] for X in states.values()] == [mu, mu**2, mu**3]


def _law(h: spectra.Gaussian, a: spectra.Gaussian) -> None:
    (x, y), (u, v) = h, a
    first, second = spectra.squared_modulus(h, a), spectra.squared_modulus(h, (u, -v))
    assert first == spectra.squared_modulus((x, -y), (u, -v))
    assert first - second == -4 * y * v


def _winner_law(A: Matrix, value: tuple[Matrix, complex]) -> None:
    H, _ = value
    for mode in exact_dominance(A, H).quotient:
        assert mode.attention is not None
        if mode.value.is_real or mode.attention.is_real:
            continue
        a, h = mode.attention.ball(64).imag, mode.value.ball(64).imag
        assert a * h < 0


@given.condition(
    "one dominant pair up to conjugation, of simple eigenvalues", given.case(H="-1/2 0; 0 -1/2")
)
def _one_pair(instance: given.Instance) -> bool:
    modes = exact_dominance(instance.A, instance.H).dominant()
    factors = [value.factor for m in modes for value in (m.value, m.attention) if value is not None]
    simple = all(factor.multiplicity == 1 for factor in factors)
    return simple and len({mode.structural for mode in modes}) == 1


_PROOF = by.written(
    "rank and cosines of the limit",
    "[2, 3, 4] Let the dominant pairs be (h, a), (conj h, conj a) only, h and a simple. mu = 1 + "
    "ha is then a simple eigenvalue of I + H (x) A with right eigenvector v w^T (Av = av, Hw = "
    "hw), and X_L/rho^L = Z_L + o(1) with Z_L = g v w^T mu^L/rho^L plus its conjugate (once, if "
    "all is real); g != 0 for X_0 outside a proper subspace. Let s = g e^(iL arg mu), so Z_L = 2 "
    "Re(s v w^T), or s v w^T.",
    "[2, 3] A vector of a non-real eigenvalue of a real matrix has independent real and imaginary "
    "part: v and conj v belong to different eigenvalues. The same holds for sv, s != 0.",
    _negative_multiplier,
    _real_feature,
    _real_token,
    _generic_start,
    _rank_two_profiles,
    _normal_is_constant,
    "[3] Rows k and l of Z_L are independent iff Im(conj v_k v_l) != 0, since their determinant in"
    " the basis r, t is -|s|^2 Im(conj v_k v_l), free of the phase. Then |cos| of the pair stays "
    "below 1 uniformly (s ranges over a circle). Such a pair exists, else v would be a multiple of"
    " a real vector.",
)

CLAIM = Claim(
    name="T3f",
    clauses=(
        "(h, a) and (conj h, conj a) tie; |1+ha|^2 - |1+h conj a|^2 = -4 Im h Im a, so of the "
        "other two the dominant one has Im h Im a < 0.",
        "With one dominant pair up to conjugation, of simple eigenvalues, and generic X_0: h or "
        "a real gives a limit of rank 1 (rotating token pattern if a is not real, with HFC/LFC "
        "oscillating in [1/(sqrt n delta), inf]; rotating feature if h is not real; a = 1 "
        "smooths with cos -> 1).",
        "h and a both not real: rank exactly 2 for every L, sigma_1 sigma_2/rho^(2L) tends to a "
        "constant, and |cos| of the tokens k, l with Im(conj v_k v_l) != 0 stays below 1.",
        "The effective rank is then constant iff v^T v = 0 or w^T w = 0 (A or H normal) or 1 + "
        "ha is real; otherwise it oscillates.",
    ),
    latex=r"|1+ha|^2-|1+h\bar a|^2=-4\,\operatorname{Im}h\operatorname{Im}a,\qquad "
    r"h,a\notin\mathbb R\implies \operatorname{rank}\lim=2",
    source="ours, limiting the rank-collapse statement of arXiv 2401.04301",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, _one_pair),
    evidence=(
        # h = x + iy, a = u + iv; both conjugate: y and v change their signs, and nothing else does.
        by.for_all(
            "|1+ha|^2 - |1 + h conj a|^2 = -4 Im h Im a",
            then="(1+x*u-y*v)**2 + (x*v+y*u)**2 - (1+x*u+y*v)**2 - (y*u-x*v)**2 == -4*y*v",
            at="x=0, y=0, u=0, v=0",
            covers=(1,),
        ).unless(
            "with the opposite sign",
            then="(1+x*u-y*v)**2 + (x*v+y*u)**2 - (1+x*u+y*v)**2 - (y*u-x*v)**2 == 4*y*v",
        ),
        # Rows k, l of Re(s v w^T) in the basis Re w, Im w have coefficients (Re s v_k, -Im s v_k).
        by.for_all(
            "the determinant of two rows does not see the phase s, |s| = 1",
            given="s*s + t*t == 1",
            then="(s*a - t*b)*(s*d + t*c) - (s*c - t*d)*(s*b + t*a) == a*d - b*c",
            at="a=1, b=0, c=0, d=1, s=1, t=0",
            covers=(3,),
        ).unless("for every s", without="s*s + t*t == 1", at="a=1, b=0, c=0, d=1, s=2, t=0"),
        _PROOF,
        by.searched(
            "the moduli in fractions", _law, draw.gaussian_points(), draw.gaussian_points()
        ),
        by.searched(
            "the exact dominant pairs",
            _winner_law,
            draw.attention(3, 4),
            draw.with_complex_pair(),
            at=lambda A, value: (A, value[0]),
        ),
    ),
    further="Several dominant pairs are the matching problem of T4c.",
)
