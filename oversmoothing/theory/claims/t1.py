"""What the claims of t1.md execute."""

from fractions import Fraction

import flint
import numpy as np
import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.exact import normalised_rows
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.proofs.kit import Matrix, by, draw, exact, given, search, spectra


# T1b
@search(draw.exact_cases(), at="A H X")
def law_b(A: Matrix, H: Matrix, X: Matrix) -> None:
    expected = exact.applied(exact.plus_identity(H), X[0])
    assert exact.layer(A, H, [X[0]] * len(A)) == [expected] * len(A)


# T1c
@search(draw.exact_cases(), st.integers(0, 4), at="A H X")
def law_c(A: Matrix, H: Matrix, X: Matrix, depth: int) -> None:
    B = rational_quotient(A)
    if B:
        apart = exact.layer(B, H, exact.differences(X), depth)
        assert apart == exact.differences(exact.layer(A, H, X, depth))
        assert exact.characteristic(A) == exact.characteristic(B) * flint.fmpq_poly([-1, 1])


# T1d
@search(draw.exact_cases(), st.integers(0, 6), at="A H X")
def law_d(A: Matrix, H: Matrix, X: Matrix, depth: int) -> None:
    n, pi = len(A), spectra.stationary(A)
    moved = exact.layer(A, H, X, depth)
    # c_L^T = (I + H)^L c_0^T, exactly.
    c = exact.weighted_mean(pi, moved)
    power = exact.power(exact.plus_identity(H), depth)
    assert c == exact.applied(power, exact.weighted_mean(pi, X))
    mean = exact.weighted_mean([Fraction(1, n)] * n, moved)
    static = exact.weighted_mean([Fraction(1, n) - p for p in pi], exact.centred(moved))
    assert mean == [x + y for x, y in zip(c, static, strict=True)]


# T1e
@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    """(A, X): X in small integers, or within 1/100 of a consensus state."""
    A = pick(draw.attention(2, 4, zeros=True))
    X = pick(draw.states(len(A), 2))
    near = pick(st.booleans())
    return A, [[100 + x / 1000 for x in row] for row in X] if near else X


def attained() -> None:
    pi = spectra.stationary(exact.A3)
    delta = spectra.squared_deviation(pi)
    for s in (Fraction(1), Fraction(-1)):
        X = [[5 + s * (Fraction(1, 3) - p)] for p in pi]
        (c,), (m,) = exact.weighted_mean(pi, X), exact.weighted_mean([Fraction(1, 3)] * 3, X)
        hfc, lfc = exact.squared_norms(X)
        assert hfc == delta and m - c == s * delta and c > 0
        # ratio = u/(s m), bounds u/(s c +- k u), with k u = s delta^2: equal.
        assert lfc == 3 * (c + s * delta) ** 2


@given.condition("c = pi^T X_0 is not 0", given.case(), given.case(X0="1; -1"))
def given_e(instance: given.Instance) -> bool:
    return instance.X0 is not None and any(
        exact.weighted_mean(spectra.stationary(instance.A), instance.X0)
    )


@search(_cases(), at=given.of_state)
def law_e(A: Matrix, X: Matrix) -> None:
    """The bounds in fractions: roots are removed by squaring, each side being >= 0."""
    n, pi = len(A), spectra.stationary(A)
    hfc, lfc = exact.squared_norms(X)
    mean = exact.weighted_mean(pi, X)
    c = n * exact.dot(mean, mean)
    assume(hfc > 0)
    spread = n * spectra.squared_deviation(pi) * hfc
    # |sqrt lfc - sqrt c| <= sqrt spread, for sqrt lfc = s m, sqrt c = s c, sqrt spread = k u; that
    # is lfc + c - spread <= 2 sqrt(lfc c).
    left = lfc + c - spread
    assert left <= 0 or left * left <= 4 * lfc * c


# T1f
@st.composite
def _cases_f(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    """Positive A and a state X with pi^T X = 0."""
    A = pick(draw.attention(2, 5))
    X = pick(draw.states(len(A), 2))
    c = exact.weighted_mean(spectra.stationary(A), X)
    return A, [[x - y for x, y in zip(row, c, strict=True)] for row in X]


@given.condition("X_0 has no consensus part: pi^T X_0 = 0", given.case(), given.case(X0="1; 2"))
def no_consensus(instance: given.Instance) -> bool:
    return instance.X0 is not None and not any(
        exact.weighted_mean(spectra.stationary(instance.A), instance.X0)
    )


@search(_cases_f(), at=given.of_state)
def law_f(A: Matrix, X: Matrix) -> None:
    n, pi = len(A), spectra.stationary(A)
    hfc, lfc = exact.squared_norms(X)
    assume(any(map(any, X)))
    assert lfc <= n * spectra.squared_deviation(pi) * hfc
    assert (n - 1) * hfc > lfc
    assert (lfc == 0) == (not any(map(sum, zip(*X, strict=True))))


# T1g
def bias() -> sp.Expr:
    x, y, b, e = (sp.Matrix([sp.symbols(f"{name}1:3")]) for name in "xybe")
    Q, K = (sp.Matrix(2, 2, sp.symbols(f"{name}0:4")) for name in "qk")
    logit = ((x * Q + b) * (y * K + e).T)[0]
    column, row = (b * K.T * y.T)[0], (x * Q * e.T)[0] + (b * e.T)[0]
    return sp.expand(logit - (x * Q * K.T * y.T)[0] - column - row)


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


def certify_g(effort: by.Effort) -> by.Settled:
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
def reversible(instance: given.Instance) -> bool:
    """Detailed balance pi_i A_ij = pi_j A_ji: A is a normalised symmetric kernel."""
    flow = exact.product(exact.diagonal(spectra.stationary(instance.A)), instance.A)
    return exact.transposed(flow) == flow


def kolmogorov() -> None:
    A = _normalised(exact.matrix("1 2 3; 2 5 1; 3 1 4"), [1, 2, 3])
    pi = spectra.stationary(A)
    S = exact.product(A, exact.diagonal(1 / p for p in pi))
    assert exact.transposed(S) == S


@search(_kernels(), at=lambda S, g: given.of_attention(_normalised(S, g)))
def law_g(S: Matrix, g: list[int]) -> None:
    A = _normalised(S, g)
    assert spectra.is_real(A)
    weight = [c * sum(row) for c, row in zip(g, exact.product(S, exact.diagonal(g)), strict=True)]
    assert spectra.stationary(A) == [w / sum(weight) for w in weight]


# T1h
@st.composite
def _causal(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    """A causal A from integer weights, and a state whose first row is 0 (pi^T X = 0)."""
    A = pick(draw.causal_attention(6))
    return A, [[Fraction(0)] * 2, *pick(draw.states(len(A), 2))[1:]]


@search(_causal(), at=given.of_state)
def law_h(A: Matrix, X: Matrix) -> None:
    n = len(A)
    # det(x - A) is the product of x - A_ii.
    diagonal = exact.diagonal(A[i][i] for i in range(n))
    assert exact.characteristic(A) == exact.characteristic(diagonal)
    assert all(0 < A[i][i] <= 1 for i in range(n)) and A[0][0] == 1
    assert all(A[i][i] < 1 for i in range(1, n))
    pi = spectra.stationary(A)
    assert pi == [1] + [0] * (n - 1) and spectra.squared_deviation(pi) == 1 - Fraction(1, n)
    assert exact.weighted_mean(pi, X) == [0, 0]
    hfc, lfc = exact.squared_norms(X)
    assert (n - 1) * hfc >= lfc
