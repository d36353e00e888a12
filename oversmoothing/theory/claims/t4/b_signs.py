"""T4b: one real dominant pair: rank collapse without smoothing, with both signs of the cosine."""

from fractions import Fraction

import numpy as np
from hypothesis import assume

from oversmoothing.theory.claims.t4.far_states import cosines, far_state, radii
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.depth.rates import rank_rate
from oversmoothing.theory.numbers.rational import Matrix, to_float
from oversmoothing.theory.proofs.checks import BITS
from oversmoothing.theory.proofs.instances import A3, CAUSAL_MEANS
from oversmoothing.theory.proofs.kit import Claim, Status, by, certain, draw, exact, given, spectra
from oversmoothing.theory.spectra.spectrum import attention_spectrum
from oversmoothing.theory.verdict.exact_comparison import exact_dominance


def mean_cosine(plus: int, minus: int) -> Fraction:
    """Mean off-diagonal cosine of plus tokens at +1 and minus at -1: ((n+ - n-)^2 - n)/(n(n-1))."""
    n = plus + minus
    return Fraction((plus - minus) ** 2 - n, n * (n - 1))


def _converse() -> None:
    """[5; instance] Converse (A row-stochastic, 1 simple, reducible): if pi_k = 0 for some k, the
    set T of transient tokens is not empty, A maps vectors supported on T to such vectors, and A_TT
    >= 0 has a Perron vector v >= 0: a one-signed eigenvector of A at a value < 1. So pi > 0 is
    exactly what step 5 needs."""
    _causal()


def _causal() -> None:
    """pi = (1, 0, 0): transient tokens 2, 3; v = (0, 1, 2) >= 0 and (0, 0, 1) are eigenvectors."""
    assert spectra.stationary(CAUSAL_MEANS) == [1, 0, 0]
    for value, v in (("1/2", exact.column("0 1 2")), ("1/3", exact.column("0 0 1"))):
        assert exact.product(CAUSAL_MEANS, v) == exact.scaled(value, v)


def _law(A: Matrix, value: tuple[Matrix, list[Fraction]], seed: int) -> None:
    H, _ = value
    found = exact_dominance(A, H)
    assert found.comparison == -1, "h in [-1, 0) must not smooth"
    assume(given.single_pair(found))
    a = attention_spectrum(to_float(A)).values
    h = np.linalg.eigvals(to_float(H))
    values, vectors = np.linalg.eig(to_float(A))
    moduli = np.abs(1 + np.outer(values, h))
    v = vectors[:, int(np.argmax(moduli.max(axis=1)))].real
    assume(np.abs(v).min() > 1e-3)
    X0 = draw.general_state(seed, len(A), len(H))
    second = np.sort(moduli.ravel())[-2] / radii(found)[1]
    X = far_state(A, H, X0, float(second), 14)
    found_cosines = cosines(X)
    signs = np.sign(v)
    assert np.allclose(found_cosines, np.outer(signs, signs), atol=1e-5), "cos is not sign(v_k v_l)"
    assert len(H) == 1 or rank_rate(a, h) < 1
    n, plus = len(A), int(np.count_nonzero(signs > 0))
    assert 0 < plus < n, "the dominant eigenvector has one sign"
    mean = (found_cosines.sum() - n) / (n * (n - 1))
    assert abs(mean - float(mean_cosine(plus, n - plus))) < 1e-5


def _certify(effort: by.Effort) -> by.Settled:
    """A3, H = diag(-1/2, -1/3): v = (-1, -1, 7), cosines 1, -1, -1 at 2000 layers."""
    X0 = exact.matrix("1 2; 3 1; -2 5")
    X = measured.states(A3, exact.diagonal("-1/2 -1/3"), X0, [2000], BITS)[2000]
    certain(measured.cosine(X, 0, 1, BITS) > 1 - 2.0**-40)
    certain(measured.cosine(X, 0, 2, BITS) < -1 + 2.0**-40)
    certain(measured.effective_rank_excess(X, BITS) < 2.0**-20)
    certain(measured.hfc_lfc(X, BITS) > 1.4645)
    yield True


_INSIDE = draw.fractions(Fraction(-9, 10), Fraction(-1, 10), 10)

CLAIM = Claim(
    name="T4b",
    clauses=(
        "NON_SMOOTHING with one simple dominant pair (a, h), X_0 outside a hyperplane: both are "
        "real, mu = 1 + ha > 0, X_L/mu^L tends to a rank-1 matrix v u^T, erank -> 1,",
        "cos(x_k, x_l) -> sign(v_k v_l) where v_k v_l != 0;",
        "v has entries of both signs, so some cosine tends to -1.",
        "The mean off-diagonal cosine tends to ((n+ - n-)^2 - n)/(n(n-1)) where no v_k is 0: "
        "(n-4)/n with one negative token, so a mean near 1 does not certify convergence.",
        "Both signs occur in every real eigenvector off consensus exactly if pi > 0: not under a"
        " causal mask.",
    ),
    latex=r"X_L/\mu^L\to c\,vu^\top,\quad \cos(x_k,x_l)\to\operatorname{sign}(v_kv_l),\quad "
    r"\pi^\top v=0",
    source="ours, on the angle convergence of arXiv 2401.04301; positivity of mu and the converse "
    "for pi sharpen it",
    on_record=Status.WRITTEN,
    hypotheses=(
        given.IRREDUCIBLE,
        given.TWO_TOKENS,
        given.NON_SMOOTHING,
        given.ONE_REAL_PAIR,
        given.GENERIC,
    ),
    evidence=(
        by.Formal("T4b_signs.pair_real", (1,)),
        by.Formal("T1f_limits.rank_one_limit", (1,)),
        # Of eta(p) = -p log p and of the exponential only their limits at 0 and 1.
        by.Formal("T4b_signs.rank_collapses", (1,)),
        by.Formal("T4b_signs.cosines_tend", (2, 3)),
        by.Formal("Farthest.both_signs", (3,)),
        by.Formal("T4b_signs.mean_cosine", (4,)),
        by.written(
            "projectors, and pi^T v = 0",
            "[1] The dominant pair is unique and (conj a, conj h) has the same modulus: both are "
            "real. A real mu = 1 + ha <= 0 would be beaten by 1 + h, as -1 <= a < 1.",
            "[1] Every other block has a smaller modulus, nilpotent parts included: X_L/mu^L -> "
            "(w^T X_0 z) v u^T with w^T X_0 z != 0 outside a hyperplane; by Weyl erank -> 1.",
            "[2, 4] Token k: x_k/mu^L -> (w^T X_0 z) v_k u, so cos(x_k, x_l) -> sign(v_k v_l), and "
            "the mean over k != l of s_k s_l is ((sum s)^2 - n)/(n(n-1)).",
            "[3, 5] pi > 0, v != 0 and (1 - a) pi^T v = 0: the terms pi_k v_k sum to 0 without all "
            "being 0, so v has entries of both signs, and some cosine tends to -1.",
            _converse,
        ),
        by.Certified("A3 at 2000 layers", _certify),
        by.searched(
            "cosines and their mean at far depths",
            _law,
            draw.attention(2, 4),
            draw.with_spectrum(_INSIDE, 1, 3),
            draw.SEEDS,
            at=lambda A, value, seed: (A, value[0]),
        ),
    ),
    further="tokens with v_k = 0 follow their own next mode; rates are T5b",
)
