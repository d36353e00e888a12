"""Equiangular tokens on the sphere: one equation for their cosine, its limit and its long wait."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, by, draw, equal, exact


def _equation() -> sp.Expr:
    """[1; general] With p = e^(beta g)/Z, 2 p ((1 - g^2) + (n-2)(g - g^2)) is the right side of
    clause 1 for v = 1; the term of the token itself, e^beta/Z (g - g), is 0."""
    n, g, beta = sp.symbols("n g beta")
    p = sp.exp(beta * g) / (sp.exp(beta) + (n - 1) * sp.exp(beta * g))
    moved = 2 * p * ((1 - g**2) + (n - 2) * (g - g**2))
    return moved - 2 * p * (1 - g) * (1 + (n - 1) * g)


def _law(n: int, g: Fraction, same: Fraction, other: Fraction) -> None:
    """d<x_i, x_k>/dt from the matrix of cosines G, any weights same : other in a row."""
    G = [[Fraction(1) if i == k else g for k in range(n)] for i in range(n)]
    total = same + (n - 1) * other
    A = [[(same if i == k else other) / total for k in range(n)] for i in range(n)]
    S = exact.product(A, G)
    for i in range(n):
        for k in range(n):
            moved = S[i][k] - S[i][i] * G[i][k] + S[k][i] - S[k][k] * G[i][k]
            wanted = 2 * other / total * (1 - g) * (1 + (n - 1) * g)
            equal(moved, wanted if i != k else 0)


CLAIM = Claim(
    name="N-2312.10794-equiangular",
    clauses=(
        "n >= 2 unit tokens with x_i' = (I - x_i x_i^T) v sum_j A_ij x_j, A the softmax of beta "
        "<x_i, x_j>, beta >= 0, V = v I. If all cosines between different tokens are one g, they "
        "stay equal, and g' = 2 v e^(beta g) (1 - g)(1 + (n-1) g)/(e^beta + (n-1) e^(beta g)).",
        "v = 1: from -1/(n-1) < g_0 < 1 the cosine rises to 1, one cluster, with log(1 - g)/t -> "
        "-2; at g_0 = -1/(n-1), the vertices of a simplex, the tokens rest. (One cluster from "
        "almost every start: recalled; clusters in long time: abstract. These starts are "
        "a null set.)",
        "v = 1 and g_0 < q < 1: q is not reached before t = (q - g_0) e^(beta (1-q))/n. So at "
        "large beta the tokens stay apart for a time exponential in beta. (Metastability: "
        "recalled, our reading.)",
        "v = -1: from every g_0 < 1 the cosine falls to -1/(n-1): no cluster.",
    ),
    latex=r"\dot g=\frac{2v\,e^{\beta g}(1-g)(1+(n-1)g)}{e^\beta+(n-1)e^{\beta g}}",
    source="arXiv 2312.10794, equiangular tokens (recalled, derived anew), our reading; 3 and 4 "
    "are ours",
    on_record=by.WRITTEN,
    setting="attention alone, continuous in depth; n <= d + 1 at -1/(n-1), n <= d above",
    evidence=(
        by.written(
            "the matrix of cosines",
            "[1] <x_i, x_k>' = v sum_j A_ij (<x_j, x_k> - <x_i, x_j><x_i, x_k>) + the same with i "
            "and k exchanged: an equation for the cosines alone, with a unique solution, that "
            "permutations of the tokens do not change. So equal cosines stay equal.",
            _equation,
            "[2, 4] The right side is locally Lipschitz in g, its zeros in [-1/(n-1), 1] are the "
            "two ends, and between them its sign is that of v by the query: g is monotone, and "
            "its limit is a zero. Near 1, g' = (1 - g)(2 v + o(1)).",
            "[3] For g <= q: e^(beta g)/(e^beta + ...) <= e^(-beta (1-q)), and the other factor is "
            "n/2 at most by the query: g' <= n e^(-beta (1-q)).",
        ),
        by.for_all(
            "the sign between the ends, k = n - 1",
            given="k >= 1; -1 < k*g; g < 1",
            then="(1-g)*(1+k*g) > 0",
            at="k=2, g=0",
            covers=(2, 4),
        ).unless("the simplex too", without="-1 < k*g", given="-1 <= k*g"),
        by.for_all(
            "the factor is n/2 at most",
            given="n >= 2",
            then="2*(1-g)*(1+(n-1)*g) <= n",
            at="n=2, g=0",
            covers=(3,),
        ).unless("n/3", then="3*(1-g)*(1+(n-1)*g) <= n"),
        by.searched(
            "cosines of drawn sizes, any two weights, in fractions",
            _law,
            st.integers(2, 5),
            draw.fractions(-1, 1),
            draw.inside(0, 9),
            draw.inside(0, 9),
        ),
    ),
    further="Starts in general position need other arguments.",
)
