"""Positive spectra oversmooth, also where A is complex."""

from oversmoothing.theory.claims.lemmas import POSITIVE_SPECTRUM
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, given, spectra
from oversmoothing.theory.verdict.exact_comparison import exact_dominance

_ALL_POSITIVE = given.Hypothesis(
    "every eigenvalue of H is real and > 0",
    lambda case: spectra.within(case.H, lambda h: h > 0),
    (given.case(H="0"), given.case(H="1 0; 0 -1")),
)


def _law(A: Matrix, value: draw.Known) -> None:
    assert exact_dominance(A, value[0]).comparison == 1


CLAIM = Claim(
    name="P-2401.04301v3-control-positive",
    clauses=(
        "lambda_j^H in (0, inf) for all j: the family of lambda_n^A dominates and X oversmooths "
        "(a public summary). It holds for every A > 0, complex spectrum included, one A and one "
        "H in every layer, X_0 outside a proper subspace.",
    ),
    latex=r"\lambda_j^H \in (0,\infty)\ \forall j \implies \rho_C > \rho_Q,\ "
    r"\mathrm{HFC}/\mathrm{LFC} \to 0",
    source="arXiv 2401.04301 (public summary; the version of the wording is unknown)",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, _ALL_POSITIVE),
    evidence=(
        by.Formal("Verdicts.v3_control_positive", (1,)),
        by.written(
            "consensus beats every mode",
            POSITIVE_SPECTRUM.covering(1),
            "[1] |1 + h_j a_i| <= 1 + h_j |a_i| < 1 + h_j for i < n (T14d), and 1 + h_j <= rho_C: "
            "rho_Q < rho_C.",
            "[1] So the layer is SMOOTHING, and T4a holds (n = 1: HFC = 0).",
        ),
        by.searched(
            "positive A, decided exactly",
            _law,
            draw.attention(2, 4),
            draw.with_spectrum(draw.fractions(0, 4).filter(bool), 1, 3),
            at=lambda A, value: (A, value[0]),
        ),
    ),
    further="One positive eigenvalue is not enough: P-2401.04301v3-control-some-positive, T2d.",
)
