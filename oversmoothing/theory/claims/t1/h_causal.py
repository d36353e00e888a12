"""T1h: a causal mask shows its spectrum on the diagonal, and its first token is all of pi."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from oversmoothing.theory.numbers.rational import to_fractions
from oversmoothing.theory.proofs.kit import CAUSAL, Claim, Matrix, by, draw, exact, given, spectra
from oversmoothing.theory.spectra.spectrum import attention_spectrum


def _on_the_diagonal(A: Matrix) -> bool:
    """det(x - A) is the product of x - A_ii."""
    diagonal = exact.diagonal(A[i][i] for i in range(len(A)))
    return bool(exact.characteristic(A) == exact.characteristic(diagonal))


def _stationary() -> None:
    """[2; instance] e_1^T A is the first row, e_1^T: so pi = e_1, which is unique as 1 is simple,
    and delta^2 = (1 - 1/n)^2 + (n - 1)/n^2 = 1 - 1/n. c = x_1."""
    pi = spectra.stationary(CAUSAL)
    assert pi == [1, 0, 0] and spectra.squared_deviation(pi) == Fraction(2, 3)


def _attained() -> None:
    """[3; instance] The proof of T1f up to the strict inequality uses only pi^T A = pi^T and pi^T 1
    = 1: HFC/LFC >= 1/(sqrt n delta) = 1/sqrt(n-1) for states with x_1 = 0. v = (0, 1, ..., 1)
    attains it, and is a mode iff all A_i1, i > 1, are equal."""
    # v = (0, 1, 1) is a mode of CAUSAL at 1/2, and its ratio is exactly 1/sqrt 2.
    v = exact.matrix("0; 1; 1")
    assert exact.layer(CAUSAL, exact.matrix("1"), v) == exact.matrix("0; 3/2; 3/2")
    hfc, lfc = exact.squared_norms(v)
    assert hfc / lfc == Fraction(1, 2)


def _first_token() -> None:
    """[3; instance] c' = c (I + W) says that the first token sees only itself. (T1b, T1c, T1d,
    T1e.)"""
    X = exact.layer(CAUSAL, exact.matrix("-1/2 1; 0 1/3"), exact.matrix("1 2; 3 5; 0 1"), 3)
    Y = exact.layer(exact.matrix("1"), exact.matrix("-1/2 1; 0 1/3"), exact.matrix("1 2"), 3)
    assert X[0] == Y[0]


@st.composite
def _causal(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    """A causal A from integer weights, and a state whose first row is 0 (pi^T X = 0)."""
    A = pick(draw.causal_attention(6))
    return A, [[Fraction(0)] * 2, *pick(draw.states(len(A), 2))[1:]]


def _law(A: Matrix, X: Matrix) -> None:
    n = len(A)
    assert _on_the_diagonal(A)
    assert all(0 < A[i][i] <= 1 for i in range(n)) and A[0][0] == 1
    assert all(A[i][i] < 1 for i in range(1, n))
    pi = spectra.stationary(A)
    assert pi == [1] + [0] * (n - 1) and spectra.squared_deviation(pi) == 1 - Fraction(1, n)
    assert exact.weighted_mean(pi, X) == [0, 0]
    hfc, lfc = exact.squared_norms(X)
    assert (n - 1) * hfc >= lfc


def _read_off() -> None:
    """[1; instance] det(x - A) of a triangular A is the product of x - A_ii. A_11 = 1 as row 1 has
    one entry; for i > 1 0 < A_ii = 1 - sum_{j<i} A_ij < 1. So 1 is simple."""
    # The spectrum that the theory reports for a causal A is its diagonal without the first 1.
    A = np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]])
    found = attention_spectrum(A).values
    assert sorted(found.real) == [0.5, 0.5] and not found.imag.any()
    assert _on_the_diagonal(to_fractions(A.tolist(), "A"))


CLAIM = Claim(
    name="T1h",
    clauses=(
        "For a causal mask (A lower triangular, A_ij > 0 for j <= i, A 1 = 1) the spectrum is "
        "the diagonal: real, in (0, 1], A_11 = 1 and A_ii < 1 for i > 1.",
        "The eigenvalue 1 is simple, pi = e_1 and delta = sqrt(1 - 1/n): the mean that evolves "
        "by itself is the first token.",
        "T1b-T1e hold; the floor of T1f is 1/sqrt(n-1), with >= instead of >, and some causal A "
        "have a mode that attains it. A > 0 fails: statements that use pi > 0 do not carry over.",
    ),
    latex=r"A_{ij}=0\ (j>i)\implies \operatorname{spec}(A)=\{A_{ii}\}\subset(0,1],\quad \pi=e_1,"
    r"\quad \delta=\sqrt{1-1/n}",
    source="ours: decoders, which the hypothesis A > 0 of arXiv 2401.04301 excludes",
    on_record=by.WRITTEN,
    hypotheses=(given.CAUSAL_MASK, given.TWO_TOKENS),
    evidence=(
        by.written("triangular matrices", _read_off, _stationary, _first_token, _attained),
        by.searched(
            "spectrum, pi, delta and the floor in fractions", _law, _causal(), at=given.of_state
        ),
    ),
)
