"""Masked attention: tokens come together iff one of them is reached by all."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.t7 import squared_diameter
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given

Parents = list[int]


def _attained() -> sp.Matrix:
    """[4; general] Rows (1, 0, 0), (e, 1-e, 0), (e, 0, 1-e): token 1 is reached in one step, and
    x = (0, 1, -1), of diameter 2, is multiplied by 1 - e."""
    e, x = sp.Symbol("e"), sp.Matrix([0, 1, -1])
    return sp.Matrix([[1, 0, 0], [e, 1 - e, 0], [e, 0, 1 - e]]) * x - (1 - e) * x


def _steps(parents: Parents) -> int:
    """The largest number of steps from a token to token 0."""
    depth = [0]
    for parent in parents:
        depth.append(depth[parent] + 1)
    return max(depth)


def _law(parents: Parents, layers: list[Matrix], X: Matrix) -> None:
    """Edges of the graph: to oneself and to the parent; other weights are at will."""
    r, n = _steps(parents), len(X)
    edges = [(i, i) for i in range(n)] + [(i + 1, p) for i, p in enumerate(parents)]
    eps = min(A[i][j] for A in layers for i, j in edges)
    for first in range(0, len(layers) - r + 1, r):
        whole = exact.identity(n)
        for A in layers[first : first + r]:
            whole = exact.product(A, whole)
        assert min(row[0] for row in whole) >= eps**r
        moved = exact.product(whole, X)
        assert squared_diameter(moved) <= (1 - eps**r) ** 2 * squared_diameter(X)
        assert 2 * exact.squared_norms(moved)[0] <= (n - 1) * squared_diameter(moved)
        X = moved


@st.composite
def _masked(pick: st.DrawFn) -> tuple[Parents, list[Matrix], Matrix]:
    n = pick(st.integers(2, 4))
    parents = [pick(st.integers(0, i)) for i in range(n - 1)]
    layers = []
    for _ in range(2 * _steps(parents)):
        rows = pick(draw.lists(draw.lists(st.integers(0, 3), n), n))
        for i, row in enumerate(rows):
            for j in {i, parents[i - 1] if i else 0}:
                row[j] += pick(st.integers(1, 6))
        layers.append([[Fraction(k, sum(row)) for k in row] for row in rows])
    return parents, layers, pick(draw.states(n, 2))


CLAIM = Claim(
    name="N-2405.18781-masks",
    clauses=(
        "X_L = A_L ... A_1 X_0 W_1 ... W_L, A_l row-stochastic and changing at will (computed "
        "from X_l too), A_ij >= eps > 0 along the edges i -> j of one graph with all self-loops, "
        "in which every token reaches one token c within r >= 1 steps: diam(X_L) <= (1 - "
        "eps^r)^floor(L/r) ||W_1 ... W_L||_2 diam(X_0), and ||HFC_L||_F <= sqrt((n-1)/2) "
        "diam(X_L). (A bound C (1 - eps^r)^(t/r) for such graphs: abstract and memory, our "
        "reading.)",
        "If no token is reached by all, two sets of tokens attend to themselves alone: for every "
        "A_l without weight off the edges, W_l = 1, the state that is 1 on one of them and 0 "
        "elsewhere keeps diameter 1.",
        "A causal mask has c = 1 and r = 1: (1 - eps)^L.",
        "For r = 1 the factor 1 - eps is attained.",
    ),
    latex=r"\operatorname{diam}(X_L)\le(1-\epsilon^r)^{\lfloor L/r\rfloor}\,\|W_1\cdots W_L\|\,"
    r"\operatorname{diam}(X_0)",
    source="arXiv 2405.18781, masked attention (abstract and memory), our reading; 2 to 4 are ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC.said("A of each layer is row-stochastic: A >= 0, A 1 = 1"),),
    evidence=(
        by.written(
            "one column of the product",
            "[1] Each token has a walk of exactly r steps to c, waiting in c by its self-loop, so "
            "column c of r layers' product is at least eps^r. Rows of a stochastic matrix that "
            "share the weight e in one column differ by 1 - e in total variation at most, so it "
            "contracts diameters by 1 - e (as in N-2103.03404-paths); W by ||W||.",
            "[1] sum_i |x_i - m|^2 = (1/(2n)) sum over i, j of |x_i - x_j|^2, n (n-1) terms of at "
            "most diam^2.",
            "[2] Follow edges: every token reaches a strongly connected class that no edge "
            "leaves. If there is one alone, its tokens are reached by all; so there are two. A "
            "row in a closed class averages tokens of that class alone: 1 stays 1, 0 stays 0.",
            "[3] Every row of a causal A has weight on token 1.",
            _attained,
        ),
        by.searched(
            "drawn trees with further edges, in fractions",
            _law,
            _masked(),
            at=lambda parents, layers, X: given.of_attention(layers[0]),
        ),
    ),
    further="With a residual the weights decide again (T14).",
)
