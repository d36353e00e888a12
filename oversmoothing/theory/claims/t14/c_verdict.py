"""T14c: the verdict with several closed classes, generic and for one X_0."""

import math
from fractions import Fraction

from oversmoothing.theory.claims.t14.a_families import families, reducible
from oversmoothing.theory.proofs import strategies
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, verdict

_HALF = exact.matrix("1/2")


def _generic() -> None:
    """[1; instance] The quotient by consensus keeps m - 1 of the 1's, so |1 + h| stands on both
    sides and rho_Q >= rho_C: never SMOOTHING for generic X_0; TIE where no other |1 + h a| exceeds
    rho_C. (T1c.)"""
    A = exact.matrix("1/2 1/2 0 0; 1/2 1/2 0 0; 0 0 1/2 1/2; 0 0 1/2 1/2")
    assert verdict(A=A, H=_HALF).verdict == "TIE"
    assert verdict(A=A, H=exact.matrix("-1/2")).verdict == "NON_SMOOTHING"


def _one_state() -> None:
    """[2, 3; instance] For one X_0: if R_L (T14b) grows more slowly than the class means, HFC/LFC
    follows sum_k w_k c_k(L). It tends to 0 iff the differences c_k - c_l grow more slowly than the
    means themselves; in particular where the class means agree."""
    A = exact.matrix("1/2 1/2 0 0; 1/2 1/2 0 0; 0 0 1/2 1/2; 0 0 1/2 1/2")
    even = verdict(A=A, H=_HALF, X0=exact.matrix("1; 3; 0; 4"))
    assert (even.verdict_x0, even.tends_to) == ("SMOOTHING", "zero")
    odd = verdict(A=A, H=_HALF, X0=exact.matrix("1; 3; 0; 6"))
    assert (odd.verdict_x0, odd.tends_to) == ("TIE", "constant")
    # Class means 2 and 3 on two tokens each.
    assert odd.limit is not None and abs(odd.limit - 1 / 5) < 1e-15
    alone = verdict(A=exact.identity(9), H=_HALF, X0=exact.column(" ".join(["0"] * 8 + ["1"])))
    assert alone.limit is not None and abs(alone.limit - math.sqrt(8)) < 1e-14


def _law(A: Matrix, h: Fraction, seed: int) -> None:
    """h > 0: R_L grows by |1 + h a| < 1 + h, and the limit is that of the absorbed class means."""
    X = strategies.general_state(seed, len(A), 1, 20)
    pi, W = families(A)
    c = [row[0] for row in exact.product(pi, X)]
    found = verdict(A=A, H=[[h]], X0=X)
    ends = [sum((w * x for w, x in zip(row, c, strict=True)), Fraction(0)) for row in W]
    mean = sum(ends, Fraction(0)) / len(ends)
    spread = sum((x - mean) ** 2 for x in ends)
    if not any(c):
        return
    if not spread:
        assert found.verdict_x0 in ("SMOOTHING", "TRIVIAL") and found.tends_to == "zero"
    elif not mean:
        assert found.tends_to == "infinity" and found.verdict_x0 == "TIE"
    else:
        assert found.verdict_x0 == "TIE" and found.tends_to == "constant"
        expected = math.sqrt(spread / (len(ends) * mean**2))
        assert found.limit is not None and math.isclose(found.limit, expected, rel_tol=1e-12)


CLAIM = Claim(
    name="T14c",
    clauses=(
        "With several closed classes the verdict for generic X_0 is never SMOOTHING: it is TIE "
        "if no |1 + h a| over the other eigenvalues a exceeds rho_C = max |1 + h|, else "
        "NON_SMOOTHING.",
        "For one X_0 the growth of P X_L is compared with that of the class means: SMOOTHING "
        "where the differences between tokens grow more slowly, TIE where they grow alike, else "
        "NON_SMOOTHING.",
        "Where the class means lead, all by one real simple h, HFC/LFC tends to ||P y||/(sqrt n "
        "|mean y|) with y = sum_k w_k c_k u, u the right eigenvector of W for h: as long as the "
        "classes differ in it, they keep HFC/LFC from 0.",
    ),
    latex=r"\frac{\|HFC_L\|}{\|LFC_L\|}\to\frac{\|Py\|}{\sqrt n\,|\overline y|},\qquad "
    r"y=\sum_k w_k\,(\pi_k^\top X_0)\cdot u",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written("T1c and T14b", _generic, _one_state),
        by.searched(
            "limits of drawn states, exactly",
            _law,
            reducible(),
            draw.fractions(Fraction(1, 4), 3, 4),
            draw.SEEDS,
            at=lambda A, h, seed: (A, [[h]]),
        ),
    ),
)
