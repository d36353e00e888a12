"""T9a: without a residual connection HFC/LFC falls like |lambda_2|^L, whatever H is."""

import math

from hypothesis import strategies as st

from oversmoothing.theory.claims.t9.systems import JORDAN, ROUNDING, SYSTEMS, WINDOW, slope
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import A3, AA, Claim, Matrix, by, draw, exact, given, spectra


def _bare_layers(A: Matrix, H: Matrix, X: Matrix, depth: int) -> Matrix:
    """A^L X W^L in fractions."""
    return exact.product(exact.power(A, depth), X, exact.power(exact.transposed(H), depth))


def _law(case: tuple[Matrix, Matrix, Matrix], depth: int) -> None:
    """Y_L = B'^L Y_0 W^L and c_L = c_0 W^L: for two tokens t falls by |lambda_2| where W is h."""
    A, H, X = case
    moved, pi = _bare_layers(A, H, X, depth), spectra.stationary(A)
    apart, means = exact.differences(X), [exact.weighted_mean(pi, X)]
    assert exact.differences(moved) == _bare_layers(rational_quotient(A), H, apart, depth)
    assert [exact.weighted_mean(pi, moved)] == _bare_layers(exact.identity(1), H, means, depth)


def _decoupled() -> None:
    """[1; instance] As in T1c and T1d, with A X W in place of X + A X W: Y_L = B^L Y_0 W^L and c_L
    = c_0 W^L, the powers of H (x) B on vec Y_0 and of H on c_0^T."""
    _law((A3, exact.matrix("1 2; -1/2 1/3"), exact.matrix("1 2; 3 5; 0 -1")), 5)


def _special_state() -> None:
    """[2; instance] Generic is needed: A = [[3, 1], [1, 3]]/4, H = diag(1, 1/4), X_0 = [[1, 1],
    [-1, 1]] has HFC/LFC = 2^L exactly, though lambda_2 = 1/2."""
    for depth in (1, 2, 7):
        X = _bare_layers(AA, exact.diagonal("1 1/4"), exact.matrix("1 1; -1 1"), depth)
        hfc, lfc = exact.squared_norms(X)
        assert hfc / lfc == 4**depth


def _nilpotent() -> None:
    """[instance] For a nilpotent H, X_L = 0 from L = d on: nothing is defined."""
    assert _bare_layers(AA, exact.matrix("0 1; 0 0"), exact.matrix("1 2; 3 5"), 2) == exact.matrix(
        "0 0; 0 0"
    )


def _measure(effort: by.Effort) -> by.Measurements:
    for name, (A, H, second, _, block) in SYSTEMS.items():
        # The Jordan block adds the same power of L to HFC and to LFC.
        tolerance = JORDAN if block > 1 else ROUNDING
        yield by.Measurement(name, math.log(second), slope(measured.hfc_lfc, A, H), tolerance)


CLAIM = Claim(
    name="T9a",
    clauses=(
        "Without a residual connection, X' = A X W with A > 0, n >= 2 and H not nilpotent: for "
        "generic X_0, (HFC/LFC)^{1/L} -> |lambda_2|, the largest |a_i| other than a = 1, "
        "whatever H is (complex, repeated or defective; A too). So consensus always dominates.",
        "Generic is needed: for X_0 whose pi-mean misses the largest h the ratio can even diverge.",
    ),
    latex=r"X_L = A^LX_0W^L:\qquad \lim_{L\to\infty}\Bigl(\frac{\|\mathrm{HFC}_L\|}"
    r"{\|\mathrm{LFC}_L\|}\Bigr)^{1/L} = |\lambda_2(A)|",
    source="ours; cf. arXiv 2103.03404, where attention without skip connections loses rank",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.NOT_NILPOTENT),
    evidence=(
        by.written(
            "two spectral radii",
            _decoupled,
            "[1] Let T be a matrix with spectral radius rho. ||T^L v||^{1/L} has limsup <= rho "
            "(Gelfand). With w^T T = mu w^T, |mu| = rho: ||T^L v|| >= rho^L |w^T v|/||w||, and w^T"
            " v != 0 outside a null set. So for generic v ||T^L v||^{1/L} -> rho.",
            "[1] rho(H (x) B) = rho(H) |lambda_2| and rho(H) > 0. So ||HFC_L||^{1/L} -> rho(H) "
            "|lambda_2| and ||c_L||^{1/L} -> rho(H), and t_L^{1/L} -> |lambda_2|. If lambda_2 = 0,"
            " B is nilpotent and HFC_L = 0 from L = n - 1 on.",
            "[1] |lambda_2| < 1 as A > 0 (Perron), so t -> 0, and by T1e HFC/LFC is t (1 + O(t)): "
            "the same rate.",
            _special_state,
            _nilpotent,
        ),
        by.searched(
            "differences and pi-mean of every X_0 run apart, exactly",
            _law,
            draw.exact_cases(),
            st.integers(0, 6),
            at=lambda case, depth: case,
        ),
        by.Simulated(f"slope of log HFC/LFC {WINDOW}", _measure),
    ),
)
