"""T1g: symmetric logits make the spectrum of attention real, positive semidefinite ones put it in
[0, 1]."""

from fractions import Fraction
from math import factorial

import flint
import numpy as np
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.rational import normalised_rows, to_flint
from oversmoothing.theory.proofs.kit import AQ, C3, Claim, Matrix, by, draw, exact, given, spectra


def _bias() -> sp.Expr:
    """[2; fixed size] The logit (x_i W_Q + b)(x_j W_K + e)^T is x_i M x_j^T + f_j + a term of i
    alone, f_j = b W_K^T x_j^T. The last cancels in softmax over j. So A = D^-1 S F, S =
    exp(symmetric part) entrywise, F = diag(e^{f_j}), D the row sums of S F."""
    x, y = sp.Matrix([sp.symbols("x1:3")]), sp.Matrix([sp.symbols("y1:3")])
    Q = sp.Matrix(2, 2, lambda i, j: sp.Symbol(f"q{i}{j}"))
    K = sp.Matrix(2, 2, lambda i, j: sp.Symbol(f"k{i}{j}"))
    b, e = sp.Matrix([sp.symbols("b1:3")]), sp.Matrix([sp.symbols("e1:3")])
    logit = ((x * Q + b) * (y * K + e).T)[0]
    column, row = (b * K.T * y.T)[0], (x * Q * e.T)[0] + (b * e.T)[0]
    return sp.expand(logit - (x * Q * K.T * y.T)[0] - column - row)


def _not_semidefinite() -> None:
    """[instance] Symmetric alone is not enough for [0, 1]: K = [[1, 3], [3, 1]] has a_1 = -1/2."""
    assert exact.characteristic(AQ) == flint.fmpq_poly([flint.fmpq(-1, 2), flint.fmpq(-1, 2), 1])


def _needed() -> None:
    """[instance] Without symmetry the spectrum need not be real: the circulant (1/10, 4/5,
    1/10)."""
    assert not spectra.is_real(C3)


def _equal_tokens() -> None:
    """[4; instance] S is singular iff some c != 0 has sum_ij c_i c_j e^{<z_i, z_j>} = 0, z_i =
    M^{1/2} x_i. That sum is sum_k |sum_i c_i z_i^{(x)k}|^2/k!, so then sum_i c_i <z_i, z>^k = 0 for
    all k and z, hence sum_i c_i e^{<z_i, z>} = 0 for all z; exponentials of distinct z_i are
    independent, so two z_i are equal. Two equal z_i give S two equal rows, so it is singular."""
    A = _normalised(exact.matrix("4 4 1; 4 4 1; 1 1 2"), [1, 1, 1])
    assert to_flint(A).det() == 0


def _normalised(S: Matrix, g: list[int]) -> Matrix:
    """A_ij = S_ij g_j / sum_k S_ik g_k."""
    return normalised_rows(exact.product(S, exact.diagonal(g)))


@st.composite
def _kernels(pick: st.DrawFn) -> tuple[Matrix, list[int]]:
    n = pick(st.integers(1, 4))
    S = [[Fraction(0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            S[i][j] = S[j][i] = Fraction(pick(st.integers(1, 9)))
    return S, pick(draw.lists(st.integers(1, 5), n))


def _law(S: Matrix, g: list[int]) -> None:
    A = _normalised(S, g)
    assert spectra.is_real(A)
    weight = [c * sum(row) for c, row in zip(g, exact.product(S, exact.diagonal(g)), strict=True)]
    assert spectra.stationary(A) == [w / sum(weight) for w in weight]


@st.composite
def _gram(pick: st.DrawFn) -> tuple[Matrix, int, list[int]]:
    """Integer tokens, a degree, and column factors."""
    n, d = pick(st.integers(1, 4)), pick(st.integers(1, 2))
    X = pick(draw.lists(draw.lists(st.integers(-2, 2), d), n))
    L = [[Fraction(sum(x * y for x, y in zip(a, b, strict=True))) for b in X] for a in X]
    return L, pick(st.integers(1, 6)), pick(draw.lists(st.integers(1, 5), n))


def _semidefinite_law(L: Matrix, degree: int, _: list[int]) -> None:
    """sum_k L^k/k! entrywise is positive semidefinite: its charpoly has alternating signs."""
    K = [
        [sum((x**k / factorial(k) for k in range(degree + 1)), Fraction(0)) for x in row]
        for row in L
    ]
    signs = exact.characteristic(K).coeffs()
    n = len(L)
    assert all(c * (-1) ** (n - k) >= 0 for k, c in enumerate(signs))


def _certify(effort: by.Effort) -> by.Settled:
    """softmax of X X^T + column terms for distinct integer tokens: spec(A) in (0, 1], in balls."""
    rng = np.random.default_rng(effort.seed)
    for _ in range(12):
        n = int(rng.integers(2, 6))
        X = rng.choice(25, size=n, replace=False)
        points = [(int(x) // 5 - 2, int(x) % 5 - 2) for x in X]
        f = [int(k) for k in rng.integers(-2, 3, size=n)]
        with at_precision(512):
            S = [[flint.arb(a * c + b * d).exp() for c, d in points] for a, b in points]
            minors = [flint.arb_mat([row[:k] for row in S[:k]]).det() for k in range(1, n + 1)]
            g = [flint.arb(k).exp() for k in f]
            sums = [sum((s * c for s, c in zip(row, g, strict=True)), flint.arb(0)) for row in S]
            A = [
                [s * c / t for s, c in zip(row, g, strict=True)]
                for row, t in zip(S, sums, strict=True)
            ]
            values = flint.acb_mat(A).eig(nonstop=True)
        if any(m <= 0 for m in minors) or any(v.real < 0 or v.real > 1 for v in values):
            yield f"tokens {points}, column terms {f}"
        inside = all(v.real > 0 and v.imag.contains(0) for v in values)
        yield inside and all(m > 0 for m in minors)


@given.condition(
    "A comes from symmetric logits and a column term",
    given.case("1/10 4/5 1/10; 1/10 1/10 4/5; 4/5 1/10 1/10"),
)
def _reversible(instance: given.Instance) -> bool:
    """Detailed balance pi_i A_ij = pi_j A_ji: A is a normalised symmetric kernel."""
    flow = exact.product(exact.diagonal(spectra.stationary(instance.A)), instance.A)
    return exact.transposed(flow) == flow


def _symmetrised() -> None:
    """[1, 2; instance] With R = (D F)^{1/2}: R A R^-1 = D^-1/2 F^1/2 S F^1/2 D^-1/2, which is
    symmetric. So spec(A) is real and A is diagonalisable. sum_i e^{f_i} D_i A_ij = sum_i e^{f_i}
    S_ij e^{f_j} = e^{f_j} D_j by the symmetry of S: pi_i is proportional to e^{f_i} D_i."""
    _law(exact.matrix("1 2 3; 2 5 1; 3 1 4"), [1, 2, 3])


def _kolmogorov() -> None:
    """[instance] Such A are exactly the reversible ones, pi_i A_ij = pi_j A_ji: then A = S diag(pi)
    with S_ij = A_ij/pi_j symmetric."""
    A = _normalised(exact.matrix("1 2 3; 2 5 1; 3 1 4"), [1, 2, 3])
    pi = spectra.stationary(A)
    S = exact.product(A, exact.diagonal(1 / p for p in pi))
    assert exact.transposed(S) == S


CLAIM = Claim(
    name="T1g",
    clauses=(
        "If W_Q W_K^T and the position term are symmetric, A = D^-1 K with K = exp(logits) "
        "symmetric and D its row sums: A is similar to the symmetric D^-1/2 K D^-1/2, its "
        "spectrum is real and pi is proportional to the row sums.",
        "Query and key biases add a row term, which softmax cancels, and a column term f_j: the "
        "spectrum is still real, and pi_i is proportional to e^{f_i} times row sum i of "
        "e^{logits}.",
        "If W_Q W_K^T = M and the position term are moreover positive semidefinite, spec(A) lies"
        " in [0, 1], with column terms too;",
        "a_1 > 0 iff A is nonsingular, which holds (no position term) iff all M^{1/2} x_i differ.",
    ),
    latex=r"K=K^\top \implies A=D^{-1}K\sim D^{-1/2}KD^{-1/2},\quad \pi\propto D\mathbf 1;\qquad "
    r"\text{logits}\succeq 0 \implies \operatorname{spec}(A)\subset[0,1]",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, _reversible),
    evidence=(
        by.written(
            "a symmetric similar matrix",
            _bias,
            _symmetrised,
            _kolmogorov,
            "[3] Entrywise products of positive semidefinite matrices are so (Schur), so S = sum_k"
            " L^{(k)}/k! is, for L positive semidefinite and L^{(k)} its entrywise power (L^{(0)} "
            "= 11^T). R A R^-1 = G^T S G then is positive semidefinite, and |a_i| <= 1 for every "
            "row-stochastic A: spec(A) in [0, 1].",
            _equal_tokens,
            _not_semidefinite,
            _needed,
        ),
        by.searched(
            "symmetric kernels with column terms: real roots, pi, exactly",
            _law,
            _kernels(),
            at=lambda S, g: given.of_attention(_normalised(S, g)),
        ),
        by.searched(
            "entrywise exponential series of Gram matrices are positive semidefinite, exactly",
            _semidefinite_law,
            _gram(),
        ),
        by.Certified("softmax of distinct integer tokens in balls", _certify),
    ),
)
