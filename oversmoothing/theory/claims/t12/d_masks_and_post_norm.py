"""T12d: loops with masks and positions in the logits, and looped Post-LN blocks."""

from fractions import Fraction

from oversmoothing.theory.claims.t12.looped import slopes, small_block
from oversmoothing.theory.proofs.kit import Claim, by, exact


def _not_invariant() -> None:
    """[4; instance] X' = X + P0 with rows of P0 that differ: equal tokens come to differ."""
    X, P0 = exact.matrix("1 2; 1 2"), exact.matrix("1 0; -1 0")
    assert exact.squared_norms(X)[0] == 0
    assert exact.squared_norms(exact.plus(X, P0))[0] == Fraction(2)


def _measured(effort: by.Effort) -> by.Measurements:
    """Three tokens under a causal mask, moved in the last one."""
    for seed in (0, 3):
        predicted, measured = slopes(small_block("pre", True, seed), seed)
        yield by.Measurement(f"Pre-LN, weights {seed}: a power", predicted, measured, 0.015)
    for causal in (False, True):
        predicted, measured = slopes(small_block("post", causal, 0), 0)
        words = f"Post-LN, {'causal' if causal else 'content alone'}: a rate"
        yield by.Measurement(words, predicted, measured, 2e-3)


CLAIM = Claim(
    name="T12d",
    clauses=(
        "Pre-LN, masks and positions in the logits: consensus stays invariant; if A_b(1 v^T) tends "
        "to A^ with the direction (a mask alone: it is constant), T12c and T12c-attraction hold "
        "with K: D -> D J'^T J_phi^T + A^ D J^T W across consensus, J and J' being |u| J_N(u) of "
        "the two norms: for one head kappa = max over i < n of max Re spec(J_phi J' + a_i W^T J), "
        "a_i of A^; under a causal mask a_i = A^_ii. Attention then has a part across consensus.",
        "Post-LN: the stream is bounded. If c_t -> c* and T is the derivative of the block at 1 "
        "c*^T across consensus, rho(T) > 0, every small difference has limsup log|delta_t|/t <= "
        "log rho(T), and from some loop on all but those of a proper subspace have that limit: "
        "HFC/LFC is geometric for c* != 0, no power. On a cycle of p points: the product along it, "
        "and its p-th root.",
        "If rho(T) < 1 and the derivative of g at c* has its radius below 1, too, every X near 1 "
        "c*^T collapses geometrically.",
        "A term within the block that differs between tokens (added positions, rows of attention "
        "with different sums): consensus is not invariant, and none of this holds.",
    ),
    latex=r"\kappa=\max_{i<n}\max\operatorname{Re}\operatorname{spec}\,(J_\varphi J'+a_iW^\top J)"
    r";\qquad \text{Post-LN: } \frac1t\log\frac{\mathrm{HFC}}{\mathrm{LFC}}\to\log\rho(T)",
    source="ours",
    on_record=by.WRITTEN,
    setting="blocks as in T12b but for the logits",
    evidence=(
        by.written(
            "the same two factors with a_i, and a linearisation that converges",
            "[1] T8g: the derivative of any row-stochastic attention drops out at consensus. T8c's "
            "Pre-LN factors with a_i multiply to I + (K + O(1/|v|))/|v|, and T12c uses no more. "
            "Lower triangular A^: T7e.",
            "[2] The last norm is bounded (T8f). delta' = (T + E_t) delta with E_t -> 0: T12c (3) "
            "with the moduli in the place of the real parts, |delta_+| growing by rho - e at "
            "least, |delta_-| by sigma + e at most. A cycle: the same for f^p.",
            "[3] The derivative of the block at 1 c*^T is block triangular with T and that of g "
            "(T8c): its radius is below 1, and f contracts near 1 c*^T in some norm.",
            _not_invariant,
        ),
        by.Simulated("slopes of looped blocks", _measured),
    ),
    further="Whether c_t converges for a given Post-LN block: trained ones may turn for ever",
)
