"""The variance of independent logits at which a row of attention concentrates."""

import sympy as sp

from oversmoothing.theory.proofs.kit import Claim, by

_Z, _SIGMA = sp.symbols("z sigma", positive=True)


def _density(x: sp.Expr) -> sp.Expr:
    return sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)


def _cancels() -> sp.Expr:
    """[2; general] e^(sigma^2/2 - z sigma) phi(sigma - z)/phi(z) = 1, so the bounds leave (1 +
    z^2)/(z (sigma - z)) of the product n e^(sigma^2/2 - t) P(N < -(sigma - z))."""
    left = sp.exp(_SIGMA**2 / 2 - _Z * _SIGMA) * _density(_SIGMA - _Z) / _density(_Z)
    return sp.simplify(left) - 1


def _completes() -> sp.Expr:
    """[2; general] The mean of e^l over l <= t, l of variance sigma^2: x sigma - x^2/2 is
    sigma^2/2 - (x - sigma)^2/2, so it is e^(sigma^2/2) P(N <= t/sigma - sigma)."""
    x = sp.Symbol("x")
    return x * _SIGMA - x**2 / 2 - (_SIGMA**2 / 2 - (x - _SIGMA) ** 2 / 2)


def _limit() -> None:
    """[2; general] For z = sqrt(2 b), sigma = sqrt(s b), b = log n -> infinity, that tends to
    sqrt 2/(sqrt s - sqrt 2)."""
    b, more = sp.symbols("b more", positive=True)
    z, gap = sp.sqrt(2 * b), more * sp.sqrt(b)
    assert sp.simplify(sp.limit((1 + z**2) / (z * gap), b, sp.oo) - sp.sqrt(2) / more) == 0


CLAIM = Claim(
    name="N-2505.24333-threshold",
    clauses=(
        "n independent Gaussian logits of variance s log n, a their softmax, s > 0 fixed. If s < "
        "2, max a -> 0 in probability, faster than n^(-r) for every r < (1 - sqrt(s/2))^2.",
        "If s > 2, max a does not tend to 0: with some k(s) > 0, P(max a >= k) >= 1/3 for all "
        "large n.",
        "So 2 log n is the critical variance of the logits, the freezing of the random energy "
        "model. (Two regimes of the variance, by that model: abstract of v1; our reading, as "
        "its normalisation of queries and keys was not at hand.)",
    ),
    latex=r"\operatorname{Var}(l_j)=s\log n:\qquad s<2\implies\max_ja_j\to0,\qquad "
    r"s>2\implies\max_ja_j\not\to0",
    source="arXiv 2505.24333, attention as a random energy model (abstract), our reading; the "
    "model is Derrida's",
    on_record=by.WRITTEN,
    setting="independent logits, as in that model; those of trained queries and keys are not",
    evidence=(
        by.written(
            "counting logits above a level",
            "[1] P(max l > (1+e) sqrt(2 s) log n) <= n P(N > (1+e) sqrt(2 log n)) -> 0 for e > 0 "
            "(union bound). The number of l_j >= s log n is binomial with the mean n P(N >= "
            "sqrt(s log n)), at least c n^(1-s/2)/sqrt(log n) -> infinity as s < 2: by Chebyshev "
            "it is at least half of it, with probability -> 1.",
            "[1] Then sum_j e^(l_j) >= (c/2) n^(1+s/2)/sqrt(log n), and max a <= n^(-q + e') with "
            "q = 1 + s/2 - sqrt(2 s) = (1 - sqrt(s/2))^2, which is positive by the query; e' is as "
            "small as e.",
            "[2] Let n P(l > t) = 1, t = z sigma, sigma^2 = s log n; z <= sqrt(2 log n) < sigma, "
            "z/sqrt(2 log n) -> 1. Above t: no logit with probability -> 1/e, more than 8 with at "
            "most 1/8 (Markov).",
            "[2] The logits below t give E of sum e^(l_j - t) at most n e^(sigma^2/2 - t) P(N < "
            "-(sigma - z)); by Mills P(N > y) <= phi(y)/y, and n = 1/P(N > z) <= (1 + z^2)/(z "
            "phi(z)).",
            _completes,
            _cancels,
            _limit,
            "[2] So it is at most some C for large n, and above 8 C with at most 1/8. With at "
            "least 1 - 1/e - 1/4 > 1/3, less a part that tends to 0, sum_j e^(l_j) <= (8 + 8 C) "
            "e^(max l): k = 1/(8 + 8 C).",
            "[3] Clauses 1 and 2.",
        ),
        by.for_all(
            "the exponent, x = sqrt(s/2)",
            given="x >= 0; x != 1",
            then="2*x - 1 - x*x < 0",
            at="x=1/2",
            covers=(1,),
        ).unless("s = 2 too", without="x != 1"),
    ),
    further="At s = 2 itself, and for logits that depend on each other, nothing is said.",
)
