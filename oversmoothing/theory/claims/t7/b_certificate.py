"""T7b: a floor for HFC/LFC under any attention that changes, even with the state."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.t7 import adversarial_layers as adversarial
from oversmoothing.theory.claims.t7.oscillation import ADVERSARIES, dobrushin, mean, oscillation
from oversmoothing.theory.layer.golden import golden_case
from oversmoothing.theory.proofs.kit import AA, Claim, by, draw, exact, given, spectra
from oversmoothing.theory.spectra.algebraic import factors


def _sharp_in_p() -> None:
    """[5; instance] One head, W symmetric, spec in [-q, -p], 0 < p <= q: r = max(1-p, |1-q|), w =
    q. r + tau q < 1 iff p > tau q and q(1+tau) < 2. For q <= 1 the bound is q k/(p - tau q). p >
    tau q is sharp uniformly in X_0."""
    # n = 2, a = tau, W = -diag(q, p), X_0 = [[1, 1], [-1, 1]]: HFC/LFC = ((1-tau q)/(1-p))^L.
    tau, q = Fraction(1, 2), Fraction(1)
    assert dobrushin(AA) == tau
    for p in (Fraction(2, 5), Fraction(1, 2), Fraction(3, 5)):
        for depth in (1, 4, 30):
            X = exact.layer(AA, exact.diagonal([-q, -p]), exact.matrix("1 1; -1 1"), depth)
            assert exact.squared_ratio(X) == ((1 - tau * q) / (1 - p)) ** (2 * depth)


def _sharp_in_q() -> None:
    """[2; instance] Beyond -1: for h in [-s, 0], 1 <= s < 2/(1+tau), the same with K = max(u_0, k
    s/(2 - s(1+tau))). At s = 2/(1+tau) it must end: h = -2/(1+a) ties and below it smooths, for a =
    tau (T2b)."""
    # n = 2, a = tau = 1/2, one feature: 2/(1+tau) = 4/3 ties (GT3), 3/2 smooths (GT4).
    assert golden_case("GT3").verdict == "TIE" and [[Fraction(-4, 3)]] == golden_case("GT3").H
    assert golden_case("GT4").verdict == "SMOOTHING" and [[Fraction(-3, 2)]] == golden_case("GT4").H
    assert dobrushin(golden_case("GT4").A) == Fraction(1, 2)
    # In between, h = -5/4: the old hypothesis |h| <= 1 fails, the certificate holds.
    assert Fraction(5, 4) * (1 + Fraction(1, 2)) < 2


def _attained() -> None:
    """[1, 2; instance] The mean row w of A is a probability vector at total variation at most k = 1
    - 1/n from the uniform one (for a set S of tokens w(S) - |S|/n <= 1 - 1/n), so |mean(Ax) - m| <=
    k osc(x), and ||mean(AX) - m|| <= k diam(X). The bound is attained."""
    # tau = 0, h = -1, all attend to token 1: u jumps to 1 - 1/n in one layer.
    for n in (2, 3, 7):
        A = [[Fraction(int(j == 0)) for j in range(n)] for _ in range(n)]
        x = [Fraction(0)] + [Fraction(1)] * (n - 1)
        assert dobrushin(A) == 0
        y = [a - b for a, b in zip(x, exact.applied(A, x), strict=True)]
        assert abs(mean(y)) == (1 - Fraction(1, n)) * oscillation(y)


def _logits_attained() -> None:
    """[6; instance] tau from logits: in a row within a factor R = e^(2B), p(S) <= sR/(sR + 1-s) and
    q(S) >= s/(s + R(1-s)) for |S| = sn, and the query gives tau <= (R-1)/(R+1) = tanh B, attained
    for n = 2."""
    # Two tokens, logits (B, -B) and (-B, B): tau = tanh B. In fractions with R = e^(2B).
    for R in (Fraction(1), Fraction(4), Fraction(100)):
        A = [[R / (R + 1), 1 / (R + 1)], [1 / (R + 1), R / (R + 1)]]
        assert dobrushin(A) == (R - 1) / (R + 1)


def _causal() -> None:
    """[6; instance] Causal: every row has A_i1 >= 1/(1 + (n-1)R) >= 1/(nR), and TV(p, q) = 1 -
    sum_j min(p_j, q_j) <= 1 - 1/(1 + (n-1)R) <= 1 - e^(-2B)/n; the former is attained."""
    # Lower triangular, entries of a row within a factor R: tau <= 1 - 1/(1 + (n-1)R).
    for n in (2, 3, 5):
        for R in (Fraction(1), Fraction(3)):
            A = [
                [(R if j else Fraction(1)) / (1 + i * R) if j <= i else Fraction(0)
                 for j in range(n)]
                for i in range(n)
            ]  # fmt: skip
            assert dobrushin(A) == 1 - 1 / (1 + (n - 1) * R) <= 1 - 1 / (n * R)


_PROOF = by.written(
    "certificate",
    "[1, 5] For rows p, q of A: p - q = TV (alpha - beta) with probability vectors alpha, beta and"
    " TV <= tau(A). So |(p - q) x| <= tau osc(x), and for rows x_j in any norm ||(p - q) X|| <= "
    "tau diam(X).",
    _attained,
    "[1] One feature, x' = x + hAx, h in [-1, 0]: osc(x') >= osc(x) - |h| osc(Ax) >= (1 - |h| tau)"
    " osc(x) > 0, and m' = (1+h) m + h (mean(Ax) - m) gives |m'| <= |1+h||m| + |h| k osc(x). With "
    "u = |m|/osc: u' <= (|1+h| u + |h| k)/(1 - |h| tau).",
    "[1] By Q17 u <= K implies u' <= K if K >= k/(1-tau): u_L <= K = max(u_0, k/(1-tau)) for all "
    "L, whatever the A_l, also computed from X_l. As osc(x) <= sqrt 2 ||x - m||, HFC/LFC = ||x - "
    "m||/(sqrt n |m|) >= 1/(sqrt(2n) K).",
    _sharp_in_q,
    "[3] Several features, W_l = V diag(h_l) V^-1: Y = XV has Y' = Y + A Y diag(h_l), feature by "
    "feature. A feature with osc = 0 and m = 0 stays 0. With K = max(u_0 over the features, "
    "k/(1-tau)): LFC(Y)^2 = n sum m_j^2 <= n K^2 sum osc_j^2 <= 2n K^2 HFC(Y)^2. X = Y V^-1 "
    "changes HFC and LFC by factors between the extreme singular values of V^-1: HFC/LFC >= "
    "1/(kappa(V) K sqrt(2n)).",
    "[4] Several heads with that basis, all h_(h,j) <= 0 and s_j = sum_h |h_(h,j)| <= 1: sum_h "
    "h_(h,j) A_h = -s_j B_j with B_j a weighted mean of the A_h: row-stochastic, and tau(B_j) <= "
    "tau as tau is convex. So feature j is a single head with -s_j.",
    "[5] Matrix form, X' = X + sum_h A_h X W_h, S = sum W_h, w = sum ||W_h||, r = ||I+S||: on the "
    "pair of rows that attains diam(X) step 1 gives diam(X') >= (1 - tau w) diam(X), and m' = "
    "m(I+S) + sum (mean(A_h X) - m) W_h gives ||m'|| <= r ||m|| + k w diam(X). If r + tau w < 1 in"
    " every layer, Q17b: u = ||m||/diam obeys u_L <= max(u_0, k w/(1 - tau w - r)), for any W_h, "
    "symmetric or not. diam <= sqrt 2 ||X - 1m||_2 gives the floor.",
    _sharp_in_p,
    _logits_attained,
    _causal,
)


@given.condition("no eigenfeature of X_0 is constant and non-zero", given.case(H="-1/2", X0="2; 2"))
def _moving_features(instance: given.Instance) -> bool:
    """P X_0 E^T = 0 only where X_0 E^T = 0, for the spectral projectors E of H."""
    if instance.X0 is None:
        return True
    for factor in factors(instance.H):
        part = exact.product(
            instance.X0, exact.transposed(spectra.spectral_projector(instance.H, factor))
        )
        hfc, lfc = exact.squared_norms(part)
        if hfc == 0 < lfc:
            return False
    return True


_QUERIES = (
    # h stands for |h_l|, u for |m|/osc, K for the bound. k = 1 - 1/n is the largest distance
    # in total variation between the mean row of A and the uniform one.
    by.for_all(
        "Q17: one layer with h in [-s, 0], 1 <= s < 2/(1+tau), keeps u <= K, K >= k s/(2 - "
        "s(1+tau)), which is k/(1 - tau) at s = 1",
        given=(
            "0 <= h; h <= s; 1 <= s; 0 <= t; t < 1; s*(1+t) < 2; 0 <= u; u <= K; 0 <= k",
            "K*(2-s*(1+t)) >= k*s",
        ),
        then="(1-h)*u + h*k <= K*(1-h*t) and (h-1)*u + h*k <= K*(1-h*t) and 1 - h*t > 0",
        at="u=0, K=10, h=1, t=1/2, k=1, s=5/4",
        covers=(1, 2, 3, 4),
    )
    .unless("with the bound of s = 1", without="K*(2-s*(1+t)) >= k*s", given="K*(1-t) >= k")
    .unless("without 1/(1-tau)", without="K*(2-s*(1+t)) >= k*s", given="s == 1; K >= k")
    .unless("h in [-4/3, 0]", without="h <= s", given="s == 1; h <= 4/3"),
    # r = ||I + S||, w = sum ||W_h||.
    by.for_all(
        "Q17b: one layer with ||I+S|| <= r, sum ||W_h|| <= w, r + tau w < 1 keeps u <= "
        "K, K >= k w/(1 - tau w - r)",
        given=("0 <= r; 0 <= w; 0 <= t; r + t*w < 1; 0 <= u; u <= K; 0 <= k", "K*(1-t*w-r) >= k*w"),
        then="r*u + k*w <= K*(1-t*w) and 1 - t*w > 0",
        at="u=0, K=8, r=1/4, w=1, t=1/2, k=1",
        covers=(5,),
    ).unless("r <= 1 in place of r + tau w < 1", without="r + t*w < 1", given="r <= 1"),
    by.for_all(
        "spec(W) in [-q, -p], p > tau q, q (1+tau) < 2: ||I+W|| + tau ||W|| < 1",
        given="0 < p; p <= s; s <= q; 0 <= t; t < 1; p > t*q; q*(1+t) < 2",
        then="1 - s + t*q < 1 and s - 1 + t*q < 1",
        at="p=3/4, q=1, s=1, t=1/2",
        covers=(5,),
    )
    .unless("without q (1+tau) < 2", without="q*(1+t) < 2", at="p=3/2, q=3/2, s=3/2, t=1/2")
    .unless("without p > tau q", without="p > t*q"),
    # tau from logits: S the tokens on which p > q; s = |S|/n, R = e^(2B) the largest ratio.
    by.for_all(
        "two rows with entries within a factor R: p(S) - q(S) <= (R-1)/(R+1)",
        given="0 < s; s < 1; R >= 1",
        then="(s*R*(s+R*(1-s)) - s*(s*R+1-s))*(R+1) <= (R-1)*(s*R+1-s)*(s+R*(1-s))",
        at="s=1/2, R=4",
        covers=(6,),
    ).unless(
        "half as much",
        then="2*(s*R*(s+R*(1-s)) - s*(s*R+1-s))*(R+1) <= (R-1)*(s*R+1-s)*(s+R*(1-s))",
    ),
)

CLAIM = Claim(
    name="T7b-certificate",
    clauses=(
        "X' = X + A_l X W_l with any row-stochastic A_l, tau(A_l) <= tau < 1, even computed from"
        " X_l. One feature, h_l in [-1, 0], osc(x_0) > 0: u = |m|/osc obeys u_L <= K = max(u_0, "
        "(1-1/n)/(1-tau)) for every L, hence HFC/LFC >= 1/(K sqrt(2n)) >= min(1-tau, "
        "1/u_0)/sqrt(2n).",
        "It holds for h_l in [-s, 0], 1 <= s < 2/(1+tau), with K = max(u_0, "
        "(1-1/n)s/(2-s(1+tau))).",
        "Several features: W_l = V diag(h_l) V^-1 with a common real V, feature by feature (osc "
        "> 0 where m != 0), at the price kappa(V).",
        "Several heads with that basis: all h <= 0, sum |h| <= 1 per feature.",
        "Any weights: ||I + sum W_h|| <= r, sum ||W_h|| <= w, r + tau w < 1 gives u_L = "
        "||m||/diam <= max(u_0, (1-1/n) w/(1-tau w-r)), which for one symmetric head with spec "
        "in [-q, -p] asks for p > tau q and q(1+tau) < 2.",
        "tau <= tanh B for logits with row spread 2B, and tau <= 1 - e^(-2B)/n if causal. No "
        "genericity.",
    ),
    latex=r"\frac{\|HFC_L\|}{\|LFC_L\|}\ \ge\ \frac{1}{\sqrt{2n}}"
    r"\min\Big(\frac{1-\tau}{1-1/n},\ \frac1{u_0}\Big)\quad\text{for every }L",
    source="ours; Dobrushin 1956 and Birkhoff 1957 for tau",
    on_record=by.MACHINE,
    hypotheses=(
        given.ROW_STOCHASTIC,
        given.TWO_TOKENS,
        given.Hypothesis(
            "tau(A) < 1", lambda case: dobrushin(case.A) < 1, (given.case("1 0; 0 1"),)
        ),
        given.CLOSED,
        given.EIGENBASIS_H,
        _moving_features,
    ),
    evidence=(
        by.Formal("T7b_certificate.certificate", (1,)),
        by.Formal("T7b_certificate.floor", (1,)),
        by.Formal("T7b_matrix.beyond_minus_one", (2,)),
        by.Formal("T7b_features.features", (3, 4)),
        by.Formal("T7b_matrix.matrix_certificate", (5,)),
        by.Formal("T7b_symmetric.matrix_floor", (5,)),
        by.Formal("T7b_symmetric.asks", (5,)),
        by.Formal("T7b_symmetric.symmetric_head", (5,)),
        by.Formal("T7b_features.tau_logits", (6,)),
        by.Formal("T7b_features.tau_causal", (6,)),
        _PROOF,
        *_QUERIES,
        by.searched(
            "one layer in fractions, adversarial A among them",
            adversarial.one_step,
            draw.attention(2, 4),
            draw.lists(st.integers(-9, 9), 4),
            st.integers(0, ADVERSARIES),
            draw.fractions(0, 1, 8),
            draw.fractions(-2, 0, 8),
        ),
        by.searched(
            "one feature, A computed from the state",
            adversarial.feature_law,
            adversarial.one_feature(),
        ),
        by.searched(
            "two heads, common eigenbasis", adversarial.basis_law, adversarial.common_basis()
        ),
        by.searched(
            "symmetric weights that do not commute",
            adversarial.matrix_law,
            adversarial.matrix_layers(),
        ),
    ),
    further="Weights that do not commute and p <= tau q: T7b-rotation smooths, T7b-volume excludes "
    "it for prescribed weights and generic X_0 above another threshold.",
)
