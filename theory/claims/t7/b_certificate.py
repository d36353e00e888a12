"""T7b: a floor for HFC/LFC under any attention that changes, even with the state."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from oversmoothing.theory.claims.t7.oscillation import (
    ADVERSARIES,
    adversary,
    contraction_to,
    dobrushin,
    mean,
    oscillation,
    rotations,
    squared_diameter,
)
from oversmoothing.theory.depth.ratios import exact_state, squared_norms
from oversmoothing.theory.layer.golden import golden_case
from oversmoothing.theory.numbers.exact_matrix import (
    applied,
    diagonal,
    matrix,
    plus,
    product,
    transposed,
)
from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.proofs import strategies as draw
from oversmoothing.theory.proofs.claim import Claim, Hypothesis, Instance, Status
from oversmoothing.theory.proofs.evidence import Searched
from oversmoothing.theory.proofs.exact_spectrum import spectral_projector, spectrum, within
from oversmoothing.theory.proofs.for_all import for_all
from oversmoothing.theory.proofs.hypotheses import TWO_TOKENS
from oversmoothing.theory.proofs.written import written
from oversmoothing.theory.spectra.algebraic import factors

# h stands for |h_l|, u for |m|/osc, K for the bound. k = 1 - 1/n is the largest distance in total
# variation between the mean row of A and the uniform one.


# r = ||I + S||, w = sum ||W_h||.


# tau from logits: S the tokens on which p > q; s = |S|/n, R = e^(2B) the largest ratio in a row.


def _hfc_floor(X: Matrix, bound: Fraction, n: int, factor: Fraction = Fraction(1)) -> None:
    """HFC/LFC >= 1/(K sqrt(2n)), as squares; factor: kappa(V)^2."""
    hfc, lfc = squared_norms(X)
    assert hfc * 2 * n * bound * bound * factor >= lfc


# --------------------------------------------------------------------------- one feature at a time


def _one_step_law(A: Matrix, entries: list[int], kind: int, tau: Fraction, h: Fraction) -> None:
    """Both one-step inequalities, on drawn and on adversarial A."""
    x = [Fraction(e) for e in entries[: len(A)]]
    A = contraction_to(A if kind == ADVERSARIES else adversary(x, kind), tau)
    t, n = dobrushin(A), len(x)
    y = [a + h * b for a, b in zip(x, applied(A, x), strict=True)]
    assert oscillation(applied(A, x)) <= t * oscillation(x)
    assert oscillation(y) >= (1 - abs(h) * t) * oscillation(x)
    k = 1 - Fraction(1, n)
    assert abs(mean(y)) <= abs(1 + h) * abs(mean(x)) + abs(h) * k * oscillation(x)


_Layer = tuple[Fraction, int, Matrix]


@st.composite
def _one_feature(draw_from: Any) -> tuple[list[Fraction], Fraction, Fraction, list[_Layer]]:
    """x_0 (often of mean 0), tau, s and layers (h in [-s, 0], which adversary, a drawn A)."""
    n = draw_from(st.integers(2, 4))
    entries = draw_from(st.lists(st.integers(-9, 9), min_size=n, max_size=n))
    shift = draw_from(st.sampled_from([0, 1])) * Fraction(sum(entries), n)
    tau = draw_from(st.just(Fraction(0)) | draw.fractions(0, 1, 8).filter(lambda t: t < 1))
    reach = 2 / (1 + tau) - 1
    s = 1 + reach * draw_from(st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(9, 10)]))
    sizes = st.just(Fraction(1)) | draw.fractions(0, 1, 6)
    layer = st.tuples(
        sizes.map(lambda f: -s * f), st.integers(0, ADVERSARIES), draw.attention(n, n)
    )
    layers = draw_from(st.lists(layer, min_size=1, max_size=6))
    return [entry - shift for entry in entries], tau, s, layers


def _feature_law(x: list[Fraction], tau: Fraction, s: Fraction, layers: list[_Layer]) -> None:
    assume(oscillation(x) > 0)
    n = len(x)
    k = 1 - Fraction(1, n)
    bound = max(abs(mean(x)) / oscillation(x), k * s / (2 - s * (1 + tau)))
    for h, kind, drawn_A in layers:
        A = contraction_to(drawn_A if kind == ADVERSARIES else adversary(x, kind), tau)
        x = [a + h * b for a, b in zip(x, applied(A, x), strict=True)]
        assert abs(mean(x)) <= bound * oscillation(x)
        _hfc_floor([[e] for e in x], bound, n)


# -------------------------------------------------------------- several features, several heads


@st.composite
def _common_basis(draw_from: Any) -> tuple[Matrix, Matrix, Fraction, list[Any]]:
    """X_0, an orthogonal V, tau and layers of two heads, W = V diag(h) V^T with sum |h| <= 1."""
    n = draw_from(st.integers(2, 3))
    X0 = draw_from(draw.states(n, 2))
    V = draw_from(rotations())
    tau = draw_from(draw.fractions(0, 1, 6).filter(lambda t: t < 1))
    pair = st.tuples(draw.fractions(0, 1, 4), draw.fractions(0, 1, 4))
    layers = draw_from(
        st.lists(
            st.tuples(pair, pair, draw.attention(n, n), st.integers(0, ADVERSARIES - 1)),
            min_size=1,
            max_size=5,
        )
    )
    return X0, V, tau, layers


def _basis_law(X: Matrix, V: Matrix, tau: Fraction, layers: list[Any]) -> None:
    n = len(X)
    features = transposed(product(X, V))
    assume(all(oscillation(y) > 0 or mean(y) == 0 for y in features))
    assume(any(oscillation(y) > 0 for y in features))
    k = 1 - Fraction(1, n)
    start = max(abs(mean(y)) / oscillation(y) for y in features if oscillation(y) > 0)
    bound = max(start, k / (1 - tau))
    for sizes, shares, A, kind in layers:
        # Head 1 has a share of |h_j| <= 1, head 2 the rest, feature by feature.
        first = diagonal((-p * q for p, q in zip(sizes, shares, strict=True)))
        second = diagonal((-p * (1 - q) for p, q in zip(sizes, shares, strict=True)))
        heads = [contraction_to(A, tau), contraction_to(adversary(features[0], kind), tau)]
        step = X
        for attention, values in zip(heads, (first, second), strict=True):
            step = plus(step, product(attention, X, V, values, transposed(V)))
        X = step
        features = transposed(product(X, V))
        for y in features:
            assert abs(mean(y)) <= bound * oscillation(y)
        _hfc_floor(X, bound, n)


def _skew_basis() -> None:
    """Several features, W_l = V diag(h_l) V^-1: Y = XV has Y' = Y + A Y diag(h_l), feature by
    feature. A feature with osc = 0 and m = 0 stays 0. With K = max(u_0 over the features,
    k/(1-tau)): LFC(Y)^2 = n sum m_j^2 <= n K^2 sum osc_j^2 <= 2n K^2 HFC(Y)^2. X = Y V^-1 changes
    HFC and LFC by factors between the extreme singular values of V^-1: HFC/LFC >= 1/(kappa(V) K
    sqrt(2n))."""
    # Not orthogonal: V = [[1, 1], [0, 1]], kappa(V)^2 = (3 + sqrt 5)^2/4 < 7.
    V, inverse = matrix("1 1; 0 1"), matrix("1 -1; 0 1")
    X = matrix("1 2; 3 -5; 2 2")
    A = matrix("1/2 1/4 1/4; 1/4 1/2 1/4; 1/4 1/4 1/2")
    tau, k = dobrushin(A), Fraction(2, 3)
    features = transposed(product(X, V))
    bound = max(max(abs(mean(y)) / oscillation(y) for y in features), k / (1 - tau))
    for layer in range(12):
        values = diagonal([Fraction(-1, 1 + layer), Fraction(-layer, 12)])
        X = plus(X, product(A, X, V, values, inverse))
        _hfc_floor(X, bound, 3, Fraction(7))


def _convex_tau() -> None:
    """Several heads with that basis, all h_(h,j) <= 0 and s_j = sum_h |h_(h,j)| <= 1: sum_h h_(h,j)
    A_h = -s_j B_j with B_j a weighted mean of the A_h: row-stochastic, and tau(B_j) <= tau as tau
    is convex. So feature j is a single head with -s_j."""
    # tau of a weighted mean of attention matrices is at most the largest.
    A, B = matrix("1 0; 1/4 3/4"), matrix("1/2 1/2; 1/3 2/3")
    for w in (Fraction(1, 3), Fraction(5, 8)):
        mixed = plus([[w * x for x in row] for row in A], [[(1 - w) * x for x in row] for row in B])
        assert dobrushin(mixed) <= w * dobrushin(A) + (1 - w) * dobrushin(B)


# ---------------------------------------------------------------------------------- matrix form


@st.composite
def _matrix_layers(draw_from: Any) -> tuple[Matrix, Fraction, Fraction, Fraction, list[Any]]:
    """X_0, tau, p, q and layers W = -V diag(s) V^T, s in [p, q], p > tau q, q(1+tau) < 2."""
    n = draw_from(st.integers(2, 3))
    tau = draw_from(draw.fractions(0, 1, 6).filter(lambda t: t < 1))
    q = 2 / (1 + tau) * draw_from(st.sampled_from([Fraction(k, 8) for k in range(1, 8)]))
    p = q * (tau + (1 - tau) * draw_from(st.sampled_from([Fraction(k, 4) for k in range(1, 5)])))
    spread = st.tuples(draw.fractions(0, 1, 4), draw.fractions(0, 1, 4))
    values = spread.map(lambda f: [p + (q - p) * x for x in f])
    layers = draw_from(
        st.lists(
            st.tuples(rotations(), values, draw.attention(n, n), st.integers(0, ADVERSARIES)),
            min_size=1,
            max_size=5,
        )
    )
    return draw_from(draw.states(n, 2)), tau, p, q, layers


def _matrix_law(X: Matrix, tau: Fraction, p: Fraction, q: Fraction, layers: list[Any]) -> None:
    n = len(X)
    assume(squared_diameter(X) > 0)
    r = max(1 - p, q - 1)
    k = 1 - Fraction(1, n)

    def squared_mean(Z: Matrix) -> Fraction:
        return sum((mean(column) ** 2 for column in transposed(Z)), Fraction(0))

    # max(u_0, .)^2 in fractions.
    bound = max(squared_mean(X) / squared_diameter(X), (k * q / (1 - tau * q - r)) ** 2)
    for V, values, drawn_A, kind in layers:
        assert p > tau * q and q * (1 + tau) < 2
        A = drawn_A if kind == ADVERSARIES else adversary(transposed(X)[0], kind)
        W = product(V, diagonal(-s for s in values), transposed(V))
        before = squared_diameter(X)
        X = plus(X, product(contraction_to(A, tau), X, W))
        assert squared_diameter(X) >= (1 - tau * q) ** 2 * before
        assert squared_mean(X) <= bound * squared_diameter(X)
        hfc, lfc = squared_norms(X)
        assert hfc * 2 * n * bound >= lfc


def _sharp_in_p() -> None:
    """One head, W symmetric, spec in [-q, -p], 0 < p <= q: r = max(1-p, |1-q|), w = q. r + tau q <
    1 iff p > tau q and q(1+tau) < 2. For q <= 1 the bound is q k/(p - tau q). p > tau q is sharp
    uniformly in X_0."""
    # n = 2, a = tau, W = -diag(q, p), X_0 = [[1, 1], [-1, 1]]: HFC/LFC = ((1-tau q)/(1-p))^L.
    A, tau, q = matrix("3/4 1/4; 1/4 3/4"), Fraction(1, 2), Fraction(1)
    assert dobrushin(A) == tau
    for p in (Fraction(2, 5), Fraction(1, 2), Fraction(3, 5)):
        for depth in (1, 4, 30):
            X = exact_state(A, diagonal([-q, -p]), matrix("1 1; -1 1"), [depth])[depth]
            hfc, lfc = squared_norms(X)
            assert hfc / lfc == ((1 - tau * q) / (1 - p)) ** (2 * depth)


def _sharp_in_q() -> None:
    """Beyond -1: for h in [-s, 0], 1 <= s < 2/(1+tau), the same with K = max(u_0, k s/(2 -
    s(1+tau))). At s = 2/(1+tau) it must end: h = -2/(1+a) ties and below it smooths, for a = tau
    (T2b)."""
    # n = 2, a = tau = 1/2, one feature: 2/(1+tau) = 4/3 ties (GT3), 3/2 smooths (GT4).
    assert golden_case("GT3").verdict == "TIE" and [[Fraction(-4, 3)]] == golden_case("GT3").H
    assert golden_case("GT4").verdict == "SMOOTHING" and [[Fraction(-3, 2)]] == golden_case("GT4").H
    assert dobrushin(golden_case("GT4").A) == Fraction(1, 2)
    # In between, h = -5/4: the old hypothesis |h| <= 1 fails, the certificate holds.
    assert Fraction(5, 4) * (1 + Fraction(1, 2)) < 2


def _attained() -> None:
    """The mean row w of A is a probability vector at total variation at most k = 1 - 1/n from the
    uniform one (for a set S of tokens w(S) - |S|/n <= 1 - 1/n), so |mean(Ax) - m| <= k osc(x), and
    ||mean(AX) - m|| <= k diam(X). The bound is attained."""
    # tau = 0, h = -1, all attend to token 1: u jumps to 1 - 1/n in one layer.
    for n in (2, 3, 7):
        A = [[Fraction(int(j == 0)) for j in range(n)] for _ in range(n)]
        x = [Fraction(0)] + [Fraction(1)] * (n - 1)
        assert dobrushin(A) == 0
        y = [a - b for a, b in zip(x, applied(A, x), strict=True)]
        assert abs(mean(y)) == (1 - Fraction(1, n)) * oscillation(y)


def _logits_attained() -> None:
    """tau from logits: in a row within a factor R = e^(2B), p(S) <= sR/(sR + 1-s) and q(S) >= s/(s
    + R(1-s)) for |S| = sn, and the query gives tau <= (R-1)/(R+1) = tanh B, attained for n = 2."""
    # Two tokens, logits (B, -B) and (-B, B): tau = tanh B. In fractions with R = e^(2B).
    for R in (Fraction(1), Fraction(4), Fraction(100)):
        A = [[R / (R + 1), 1 / (R + 1)], [1 / (R + 1), R / (R + 1)]]
        assert dobrushin(A) == (R - 1) / (R + 1)


def _causal() -> None:
    """Causal: every row has A_i1 >= 1/(1 + (n-1)R) >= 1/(nR), and TV(p, q) = 1 - sum_j min(p_j,
    q_j) <= 1 - 1/(1 + (n-1)R) <= 1 - e^(-2B)/n; the former is attained."""
    # Lower triangular, entries of a row within a factor R: tau <= 1 - 1/(1 + (n-1)R).
    for n in (2, 3, 5):
        for R in (Fraction(1), Fraction(3)):
            A = [
                [(R if j else Fraction(1)) / (1 + i * R) if j <= i else Fraction(0)
                 for j in range(n)]
                for i in range(n)
            ]  # fmt: skip
            assert dobrushin(A) == 1 - 1 / (1 + (n - 1) * R) <= 1 - 1 / (n * R)


_PROOF = written(
    "certificate",
    "For rows p, q of A: p - q = TV (alpha - beta) with probability vectors alpha, beta "
    "and TV <= tau(A). So |(p - q) x| <= tau osc(x), and for rows x_j in any norm ||(p - "
    "q) X|| <= tau diam(X).",
    _attained,
    "One feature, x' = x + hAx, h in [-1, 0]: osc(x') >= osc(x) - |h| osc(Ax) >= (1 - "
    "|h| tau) osc(x) > 0, and m' = (1+h) m + h (mean(Ax) - m) gives |m'| <= |1+h||m| + "
    "|h| k osc(x). With u = |m|/osc: u' <= (|1+h| u + |h| k)/(1 - |h| tau).",
    "By Q17 u <= K implies u' <= K if K >= k/(1-tau): u_L <= K = max(u_0, k/(1-tau)) "
    "for all L, whatever the A_l, also computed from X_l. As osc(x) <= sqrt 2 ||x - m||, "
    "HFC/LFC = ||x - m||/(sqrt n |m|) >= 1/(sqrt(2n) K).",
    _sharp_in_q,
    _skew_basis,
    _convex_tau,
    "Matrix form, X' = X + sum_h A_h X W_h, S = sum W_h, w = sum ||W_h||, r = ||I+S||: on "
    "the pair of rows that attains diam(X) step 1 gives diam(X') >= (1 - tau w) diam(X), "
    "and m' = m(I+S) + sum (mean(A_h X) - m) W_h gives ||m'|| <= r ||m|| + k w diam(X). If "
    "r + tau w < 1 in every layer, Q17b: u = ||m||/diam obeys u_L <= max(u_0, k w/(1 - tau "
    "w - r)), for any W_h, symmetric or not. diam <= sqrt 2 ||X - 1m||_2 gives the floor.",
    _sharp_in_p,
    _logits_attained,
    _causal,
)


def _contracts(instance: Instance) -> bool:
    return dobrushin(instance.A) < 1


def _diagonalisable(instance: Instance) -> bool:
    return all(max(value.factor.jordan) == 1 for value in spectrum(instance.H))


def _moving_features(instance: Instance) -> bool:
    """P X_0 E^T = 0 only where X_0 E^T = 0, for the spectral projectors E of H."""
    if instance.X0 is None:
        return True
    for factor in factors(instance.H):
        part = product(instance.X0, transposed(spectral_projector(instance.H, factor)))
        hfc, lfc = squared_norms(part)
        if hfc == 0 < lfc:
            return False
    return True


CLAIM = Claim(
    name="T7b-certificate",
    statement="X' = X + A_l X W_l with any row-stochastic A_l, tau(A_l) <= tau < 1, even computed "
    "from X_l. One feature, h_l in [-1, 0], osc(x_0) > 0: u = |m|/osc obeys u_L <= K = max(u_0, "
    "(1-1/n)/(1-tau)) for every L, hence HFC/LFC >= 1/(K sqrt(2n)) >= min(1-tau, 1/u_0)/sqrt(2n). "
    "It holds for h_l in [-s, 0], 1 <= s < 2/(1+tau), with K = max(u_0, (1-1/n)s/(2-s(1+tau))). "
    "Several features: W_l = V diag(h_l) V^-1 with a common real V, feature by feature (osc > 0 "
    "where m != 0), at the price kappa(V). Several heads with that basis: all h <= 0, sum |h| <= 1 "
    "per feature. Any weights: ||I + sum W_h|| <= r, sum ||W_h|| <= w, r + tau w < 1 gives u_L = "
    "||m||/diam <= max(u_0, (1-1/n) w/(1-tau w-r)), which for one symmetric head with spec in [-q, "
    "-p] asks for p > tau q and q(1+tau) < 2. tau <= tanh B for logits with row spread 2B, and tau "
    "<= 1 - e^(-2B)/n if causal. No genericity.",
    latex=r"\frac{\|HFC_L\|}{\|LFC_L\|}\ \ge\ \frac{1}{\sqrt{2n}}"
    r"\min\Big(\frac{1-\tau}{1-1/n},\ \frac1{u_0}\Big)\quad\text{for every }L",
    source="ours; Dobrushin 1956 and Birkhoff 1957 for tau",
    on_record=Status.WRITTEN,
    hypotheses=(
        TWO_TOKENS,
        Hypothesis("tau(A) < 1", _contracts),
        Hypothesis(
            "every eigenvalue of H is real and in [-1, 0]",
            lambda i: within(i.H, lambda h: -1 <= h <= 0),
        ),
        Hypothesis("H is diagonalisable", _diagonalisable),
        Hypothesis("no eigenfeature of X_0 is constant and non-zero", _moving_features),
    ),
    evidence=(
        _PROOF,
        for_all(
            "u K h t k",
            given="0 <= h; h <= 1; 0 <= t; t < 1; 0 <= u; u <= K; K*(1-t) >= k; 0 <= k",
            then="(1-h)*u + h*k <= K*(1-h*t) and 1 - h*t > 0",
            name="Q17: one layer with h in [-1, 0] keeps u <= K, K >= (1 - 1/n)/(1 - tau)",
            at="u=1, K=2, h=1/2, t=1/2, k=1",
        )
        .unless("without 1/(1-tau)", without="K*(1-t) >= k", given="K >= k")
        .unless("h in [-4/3, 0]", without="h <= 1", given="h <= 4/3"),
        for_all(
            "u K h t k s",
            given=(
                "0 <= h; h <= s; 1 <= s; 0 <= t; t < 1; s*(1+t) < 2; 0 <= u; u <= K; 0 <= k",
                "K*(2-s*(1+t)) >= k*s",
            ),
            then="(1-h)*u + h*k <= K*(1-h*t) and (h-1)*u + h*k <= K*(1-h*t) and 1 - h*t > 0",
            name="one layer with h in [-s, 0], 1 <= s < 2/(1+tau), keeps u <= K, K >= k s/(2 - "
            "s(1+tau))",
            at="u=0, K=10, h=1, t=1/2, k=1, s=5/4",
        ).unless("with the bound of s = 1", without="K*(2-s*(1+t)) >= k*s", given="K*(1-t) >= k"),
        for_all(
            "u K r w t k",
            given=(
                "0 <= r; 0 <= w; 0 <= t; r + t*w < 1; 0 <= u; u <= K; 0 <= k",
                "K*(1-t*w-r) >= k*w",
            ),
            then="r*u + k*w <= K*(1-t*w) and 1 - t*w > 0",
            name="Q17b: one layer with ||I+S|| <= r, sum ||W_h|| <= w, r + tau w < 1 keeps u <= "
            "K, K >= k w/(1 - tau w - r)",
            at="u=0, K=8, r=1/4, w=1, t=1/2, k=1",
        ).unless("r <= 1 in place of r + tau w < 1", without="r + t*w < 1", given="r <= 1"),
        for_all(
            "p q s t",
            given="0 < p; p <= s; s <= q; 0 <= t; t < 1; p > t*q; q*(1+t) < 2",
            then="1 - s + t*q < 1 and s - 1 + t*q < 1",
            name="spec(W) in [-q, -p], p > tau q, q (1+tau) < 2: ||I+W|| + tau ||W|| < 1",
            at="p=3/4, q=1, s=1, t=1/2",
        )
        .unless("without q (1+tau) < 2", without="q*(1+t) < 2", at="p=3/2, q=3/2, s=3/2, t=1/2")
        .unless("without p > tau q", without="p > t*q"),
        for_all(
            "s R",
            given="0 < s; s < 1; R >= 1",
            then="(s*R*(s+R*(1-s)) - s*(s*R+1-s))*(R+1) <= (R-1)*(s*R+1-s)*(s+R*(1-s))",
            name="two rows with entries within a factor R: p(S) - q(S) <= (R-1)/(R+1)",
            at="s=1/2, R=4",
        ).unless(
            "half as much",
            then="2*(s*R*(s+R*(1-s)) - s*(s*R+1-s))*(R+1) <= (R-1)*(s*R+1-s)*(s+R*(1-s))",
        ),
        Searched(
            "one layer in fractions, adversarial A among them",
            st.tuples(
                draw.attention(2, 4),
                st.lists(st.integers(-9, 9), min_size=4, max_size=4),
                st.integers(0, ADVERSARIES),
                draw.fractions(0, 1, 8),
                draw.fractions(-2, 0, 8),
            ),
            _one_step_law,
        ),
        Searched("one feature, A computed from the state", _one_feature(), _feature_law),
        Searched("two heads, common eigenbasis", _common_basis(), _basis_law),
        Searched("symmetric weights that do not commute", _matrix_layers(), _matrix_law),
    ),
    further="Weights that do not commute and p <= tau q: T7b-rotation smooths, T7b-volume excludes "
    "it for prescribed weights and generic X_0 above another threshold.",
)
