"""T13a: the spectrum of several streams, family by family, and what stands in every family."""

from typing import Any

import flint
from hypothesis import strategies as st

from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact

Vector = list[Any]


def _outer(p: Vector, q: Vector) -> Matrix:
    return [[x * y for y in q] for x in p]


def _families(psi: Any, R: Matrix, p: Vector, q: Vector) -> Any:
    """prod over the roots t of psi of det(x - R - t p q^T), from chi and N."""
    chi = exact.characteristic(R)
    N = chi - exact.characteristic(exact.plus(R, _outer(p, q)))
    total, power = flint.fmpq_poly([0]), flint.fmpq_poly([1])
    for c in reversed(psi.coeffs()):
        total, power = total * chi + c * power, power * N
    return total


def _law(A: Matrix, H: Matrix, R: Matrix, p: Vector, q: Vector) -> None:
    n, d = len(A), len(H)
    whole = exact.plus(
        exact.kronecker(R, exact.identity(n * d)),
        exact.kronecker(_outer(p, q), exact.kronecker(H, A)),
    )
    consensus = _families(exact.characteristic(H), R, p, q)
    B = rational_quotient(A)
    rest = flint.fmpq_poly([1])
    if B:
        rest = _families(exact.characteristic(exact.kronecker(H, B)), R, p, q)
    assert exact.characteristic(whole) == consensus * rest


@st.composite
def _mixing(pick: st.DrawFn) -> tuple[Matrix, Vector, Vector]:
    s = pick(st.integers(1, 3))
    vector = draw.lists(draw.fractions(-2, 2, 4), s)
    return pick(draw.lists(vector, s)), pick(vector), pick(vector)


CLAIM = Claim(
    name="T13a",
    clauses=(
        "s streams x_k' = sum_l R_kl x_l + p_k A (sum_l q_l x_l) W: the layer is R (x) I + (p q^T)"
        " (x) H (x) A, and its eigenvalues are those of all R + h_j a_i p q^T, with multiplicity.",
        "Consensus of tokens is invariant, differences between tokens are autonomous: rho_C = "
        "max_j rho(R + h_j p q^T), rho_Q = max over i < n, j of rho(R + a_i h_j p q^T).",
        "det(x - R - t p q^T) = chi(x) - t N(x), chi = det(x - R), N = q^T adj(x - R) p. The roots "
        "of gcd(chi, N) are idle: eigenvalues for every t. Where none of the others exceeds them, "
        "rho_C = rho_Q.",
        "At an eigenvalue x that chi does not vanish at, the streams stand in the proportions "
        "adj(x - R) p.",
        "Differences between streams have all eigenvalues of R + t p q^T but that of the vector 1, "
        "if 1 is an eigenvector of it: for all t if R 1 = c 1 and (p is a multiple of 1 or q^T 1 ="
        " 0), else for one t at most.",
    ),
    latex=r"\rho_C=\max_j\rho(R+h_j\,pq^\top),\qquad \rho_Q=\max_{i<n,\,j}\rho(R+a_ih_j\,pq^\top)",
    source="ours, on hyper-connections",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "triangular attention and H",
            "[1] Column by column vec(A X W) = (H (x) A) vec(X) (T1a). With H (x) A = U T U*, T "
            "triangular with the diagonal h_j a_i (T1a), the layer is similar to R (x) I + (p q^T)"
            " (x) T: ordered by the entries of T it is block triangular with the diagonal blocks R"
            " + h_j a_i p q^T.",
            "[2] By T1b and T1c, for the branch, and since R and p q^T act on streams alone: on 1 "
            "(x) R^d, A is 1; on differences to the last token it is B'.",
            "[3] The matrix determinant lemma; where chi(x) = N(x) = 0 the polynomial vanishes for"
            " every t.",
            "[4] (x - R) adj(x - R) p = chi(x) p = t N(x) p = t p q^T adj(x - R) p, and adj(x - R)"
            " p is not 0 unless p is, for then chi = t N = 0.",
            "[5] The map x -> (x_k - x_s) has the kernel 1 (x) anything; what of it R + t p q^T "
            "keeps is all of it where 1 is an eigenvector, R 1 + t (q^T 1) p being a multiple of 1,"
            " and 0 elsewhere. Of two such t the difference makes (q^T 1) p a multiple of 1, and "
            "then R 1 is one.",
        ),
        by.searched(
            "characteristic polynomials of the whole layer in fractions",
            lambda A, H, mixing: _law(A, H, *mixing),
            draw.attention(1, 3, zeros=True),
            st.integers(1, 2).flatmap(
                lambda d: draw.lists(draw.lists(draw.fractions(-2, 2, 4), d), d)
            ),
            _mixing(),
        ),
    ),
    further="Jordan blocks at a tie, and the verdict for one X_0",
)
