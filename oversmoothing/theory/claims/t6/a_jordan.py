"""T6a: the Jordan structure of I + H (x) A from that of H and of A."""

from collections import Counter
from fractions import Fraction
from itertools import product as pairs

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.depth.rates import block_sizes, jordan_type, kronecker_jordan_sizes
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact
from oversmoothing.theory.spectra.algebraic import factors


def jordan_block(size: int, value: Fraction) -> Matrix:
    shift = [[Fraction(int(j == i + 1)) for j in range(size)] for i in range(size)]
    return exact.plus(shift, exact.identity(size), value)


def _character() -> None:
    """[1; instance] Z acts as the raising operator of sl_2 on V_p (x) V_q (one block of size p is,
    in a suitable basis, the raising operator of the irreducible V_p). By complete reducibility V_p
    (x) V_q is a sum of irreducibles, fixed by their characters: [p][q] = [p+q-1] + [p-1][q-1], so
    by induction [p+q-1] + [p+q-3] + ... + [|p-q|+1]. One block of each of these sizes."""
    P, Q, t = sp.symbols("P Q t", positive=True)
    unit = t - 1 / t
    left = (P - 1 / P) * (Q - 1 / Q) / unit**2
    right = (P * Q / t - t / (P * Q)) / unit + (P / t - t / P) * (Q / t - t / Q) / unit**2
    assert sp.simplify(sp.together(left - right)) == 0


def _exponential() -> None:
    """[1; fixed size] h, a != 0: J_p(h) = h exp(N'), N' = log(I + N/h) = (N/h)(unit), again one
    nilpotent block of size p; likewise J_q(a) = a exp(N''). So J_p(h) (x) J_q(a) = h a exp(Z), Z =
    N' (x) I + I (x) N'', and exp(Z) - I = Z (unit) has the Jordan type of Z."""
    h, a = sp.symbols("h a", nonzero=True)
    N, M = (sp.Matrix(k, k, lambda i, j: int(j == i + 1)) for k in (3, 2))
    log_h = N / h - (N / h) ** 2 / 2
    log_a = M / a
    Z = sp.kronecker_product(log_h, sp.eye(2)) + sp.kronecker_product(sp.eye(3), log_a)
    series, power = sp.eye(6), sp.eye(6)
    for k in range(1, 6):
        power = power * Z
        series += power / sp.factorial(k)
    target = sp.kronecker_product(sp.eye(3) + N / h, sp.eye(2) + M / a)
    assert (series - target).applyfunc(sp.simplify) == sp.zeros(6, 6)


def _nilpotent_ranks() -> None:
    """[1; instance] h = a = 0: (N_p (x) N_q)^k has rank (p-k)(q-k), k <= min: p + q - 2k + 1 blocks
    of size at least k, so 2 of each size below min(p, q) and |p-q|+1 of size min(p, q)."""
    p, q, k = sp.symbols("p q k")
    assert sp.expand((p - k + 1) * (q - k + 1) - (p - k) * (q - k) - (p + q - 2 * k + 1)) == 0
    assert sp.expand((p + q - 2 * k + 1) - (p + q - 2 * (k + 1) + 1)) == 2


def _sizes_add_up() -> None:
    """[instance] The sizes add up to p q in all cases."""
    for p, q in pairs(range(1, 9), range(1, 9)):
        for h_zero, a_zero in pairs((False, True), repeat=2):
            assert sum(kronecker_jordan_sizes(p, h_zero, q, a_zero)) == p * q


def _growth() -> None:
    """[2; instance] J_s(mu)^L has entries C(L, k) mu^(L-k), k < s: norm of order L^(s-1) |mu|^L for
    mu != 0. So ||(I + H (x) A)^L|| is of order rho^L L^(s-1), s the largest block at modulus rho >
    0; blocks at mu = 0 are gone after s layers."""
    # The corner of J_s(mu)^L is C(L, s-1) mu^(L-s+1), the largest entry in L: s = 3, L = 1..12.
    mu = Fraction(3, 2)
    for L in range(1, 13):
        corner = exact.power(jordan_block(3, mu), L)[0][2]
        assert corner == (Fraction(L * (L - 1), 2) * mu ** (L - 2) if L >= 2 else 0)


def _table(effort: by.Effort) -> by.Settled:
    """All p, q <= 4 with h, a zero or not, by exact Jordan forms."""
    for p, q in pairs(range(1, 5), range(1, 5)):
        for h, a in pairs((Fraction(0), Fraction(-3, 2)), (Fraction(0), Fraction(1, 3))):
            M = exact.kronecker(jordan_block(p, h), jordan_block(q, a))
            (factor,), expected = factors(M), kronecker_jordan_sizes(p, h == 0, q, a == 0)
            found = sorted(factor.jordan)
            if found != sorted(expected):
                yield f"J_{p}({h}) (x) J_{q}({a}): {found}, predicted {expected}"
            yield True


def _law(A: Matrix, H: Matrix) -> None:
    """The whole Jordan type of I + H (x) A against the exact one of that matrix."""
    predicted = block_sizes(jordan_type(A, H))
    found: Counter[int] = Counter()
    for factor in factors(exact.plus_identity(exact.kronecker(H, A))):
        for size in factor.jordan:
            found[size] += factor.degree
    assert dict(sorted(found.items())) == predicted, f"{dict(found)} is not {predicted}"


_VALUES = st.sampled_from([Fraction(x) for x in ("0", "1", "-1", "1/2", "-2")])
_DEFECTIVE = draw.lists(st.tuples(_VALUES, st.integers(1, 3)), 1, 2).flatmap(
    draw.with_jordan_blocks
)

CLAIM = Claim(
    name="T6a",
    clauses=(
        "J_p(h) (x) J_q(a) has Jordan blocks p+q-1, p+q-3, ..., |p-q|+1 if h, a != 0; p copies "
        "of size q if a = 0 != h; q copies of size p if h = 0 != a; |p-q|+1 of size min(p, q) "
        "and 2 of each smaller size if h = a = 0.",
        "||(I + H (x) A)^L|| is of order rho^L L^(s-1), s the largest block at modulus rho > 0.",
    ),
    latex=r"J_p(h)\otimes J_q(a)\sim\bigoplus_{k=0}^{\min(p,q)-1}J_{p+q-1-2k}(ha)\quad(ha\ne0)",
    source="classical (Aitken, Roth, Littlewood; Clebsch-Gordan); its use here is ours",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "sl_2 characters, and ranks of powers",
            "[1] In Jordan bases of H and of A, H (x) A is the direct sum of the J_p(h) (x) "
            "J_q(a), and I + H (x) A shifts each by 1: blocks of all pairs are united, those with "
            "equal 1 + h a at one eigenvalue.",
            _exponential,
            _character,
            "[1] a = 0, h != 0: (J_p(h) (x) N_q)^k = J_p(h)^k (x) N_q^k has rank p (q-k): p blocks"
            " of size q. h = 0, a != 0: q blocks of size p.",
            _nilpotent_ranks,
            _sizes_add_up,
            _growth,
        ),
        by.Certified("all p, q <= 4 by exact Jordan forms", _table),
        by.searched("the whole Jordan type of I + H (x) A", _law, _DEFECTIVE, _DEFECTIVE),
    ),
)
