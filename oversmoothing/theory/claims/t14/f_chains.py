"""T14f: Jordan growth along chains of tokens: how far p can go, and where it does."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.proofs import strategies
from oversmoothing.theory.proofs.checks import is_zero
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, verdict


def longest_chain(A: Matrix, i: int, a: Fraction) -> int:
    """The most tokens k with A_kk = a on one path of attention from token i, i among them."""
    beyond = [longest_chain(A, k, a) for k in range(i) if A[i][k]]
    return int(A[i][i] == a) + max(beyond, default=0)


def _upper_bound() -> None:
    """[1; instance] A = D + N, D its diagonal: (z - A)^-1 = sum over m of (z - D)^-1 (N (z -
    D)^-1)^m, so entry (i, j) is the sum over paths of attention i -> ... -> j of the product of the
    A_kl along it over the product of z - A_kk. Its pole at a is of order c_i(a) at most, c_i(a) the
    most tokens of diagonal a on one path from i: so is the multiplicity of a for the row e_i^T A^L.
    With the blocks of h, a h != 0, the multiplicity of mu = 1 + h a in x_i(L) is c_i(a) + t(h) - 1
    at most (T6a)."""
    A = exact.matrix("1 0 0 0; 1/2 1/2 0 0; 1/4 1/4 1/2 0; 1/4 1/8 1/8 1/2")
    assert [longest_chain(A, i, Fraction(1, 2)) for i in range(4)] == [0, 1, 2, 3]
    found = verdict(A=A, H=exact.matrix("-1/2"), X0=exact.column("1 3 -2 5")).token_growth
    assert found is not None
    assert [(g.rate, g.power) for g in found if g] == [(0.5, 0), (0.75, 0), (0.75, 1), (0.75, 2)]


def _attained() -> None:
    """[2; instance] Let no token on a path from i to one of diagonal a > 0 have a larger diagonal.
    For the last token j of the longest chain the entries of A^L are sums of products of numbers >=
    0, those that walk the chain and wait at its c tokens among them: (A^L)_ij >= w C(L - m, c - 1)
    a^(L - m), m the length and w the product of the path. The tokens between i and j have
    eigenvalues in [0, a]: such growth takes multiplicity c."""
    A = exact.matrix("1 0 0 0; 1/2 1/2 0 0; 1/2 1/4 1/4 0; 1/4 0 1/4 1/2")
    # 4 -> 3 -> 2: the diagonals 1/2, 1/4, 1/2.
    assert longest_chain(A, 3, Fraction(1, 2)) == 2
    a, rest, one = (exact.plus(A, exact.identity(4, b), -1) for b in ("1/2", "1/4", 1))
    assert not is_zero(exact.product(a, rest, one)[3])
    assert is_zero(exact.product(a, a, rest, one)[3])


def _not_always() -> None:
    """[3; general] Past a token of larger diagonal two routes can cancel: 4 -> 2 and 4 -> 3 -> 2
    with diagonals 1/4, 3/4, 1/4 have A_42 = A_43 A_32 / (3/4 - 1/4), and the chain of two gives p =
    0."""
    A = exact.matrix("1 0 0 0; 3/4 1/4 0 0; 1/8 1/8 3/4 0; 1/8 1/8 1/2 1/4")
    assert longest_chain(A, 3, Fraction(1, 4)) == 2
    a, rest, one = (exact.plus(A, exact.identity(4, b), -1) for b in ("1/4", "3/4", 1))
    assert is_zero(exact.product(a, rest, one)[3])
    found = verdict(A=A, H=exact.matrix("-1/2"), X0=exact.column("1 3 -2 5")).token_growth
    assert found is not None and found[3] is not None
    assert (found[3].rate, found[3].power) == (7 / 8, 0)


_CAUSAL = given.Hypothesis(
    "A is causal: row-stochastic and lower triangular",
    lambda case: (
        given.is_stochastic(case.A) and not any(any(row[i + 1 :]) for i, row in enumerate(case.A))
    ),
    (given.case(),),
)


@st.composite
def chained(draw_from: st.DrawFn) -> Matrix:
    """Causal attention of diagonals 1, then two values; zeros below the diagonal now and then."""
    n = draw_from(st.integers(2, 5))
    rows: Matrix = [[Fraction(1), *[Fraction(0)] * (n - 1)]]
    for i in range(1, n):
        a = draw_from(st.sampled_from([Fraction(1, 2), Fraction(1, 2), Fraction(1, 4)]))
        weights = draw_from(st.lists(st.integers(0, 2), min_size=i, max_size=i).filter(any))
        others = [(1 - a) * Fraction(w, sum(weights)) for w in weights]
        rows.append([*others, a, *[Fraction(0)] * (n - i - 1)])
    return rows


def _law(A: Matrix, block: int, seed: int) -> None:
    """h = -1/2: the smallest diagonal on the paths from i leads with the longest chain at most; the
    bound is attained where that diagonal is 1/2, the largest but for the 1."""
    h = Fraction(-1, 2)
    H = [[h * (k == m) + (m == k + 1) for m in range(block)] for k in range(block)]
    X = strategies.general_state(seed, len(A), block)
    for i, growth in enumerate(given.content(A, H, X).tokens.growth):
        assert growth is not None
        # 1 + h a is exact in binary, and so is a again.
        a = (Fraction(growth.rate) - 1) / h
        assert growth.power <= longest_chain(A, i, a) + block - 2
        seen = [b for b in (Fraction(1, 4), Fraction(1, 2), Fraction(1)) if longest_chain(A, i, b)]
        assert a >= seen[0]
        if seen[0] == Fraction(1, 2):
            assert (a, growth.power) == (seen[0], longest_chain(A, i, a) + block - 2)


CLAIM = Claim(
    name="T14f",
    clauses=(
        "Let A be causal and c_i(a) the largest number of tokens k with A_kk = a on one path of "
        "attention that starts at token i. For every X_0 token i has the multiplier 1 + h a, a h"
        " != 0, with multiplicity c_i(a) + t(h) - 1 at most, t(h) the largest Jordan block of h:"
        " its p is at most that less 1, over its leading pairs.",
        "For generic X_0 this is attained where a > 0 and no token on a path from i to a token "
        "of diagonal a has a larger diagonal;",
        "else contributions of two paths can cancel.",
    ),
    latex=r"p_i+1\le c_i(a)+t(h)-1,\qquad c_i(a)=\max_{\text{paths }i\to\cdots}\#\{k:A_{kk}=a\}",
    source="ours; for the largest eigenvalue after Rothblum (1975)",
    on_record=by.WRITTEN,
    hypotheses=(_CAUSAL,),
    evidence=(
        by.written("resolvents along paths", _upper_bound, _attained, _not_always),
        by.searched(
            "chains of two diagonals and Jordan blocks of H, exactly",
            _law,
            chained(),
            st.integers(1, 2),
            draw.SEEDS,
            at=lambda A, *_: given.of_attention(A),
        ),
    ),
    further="With classes for tokens, and the index of a within each class for 1, the bound should "
    "hold for every reducible A: not written out.",
)
