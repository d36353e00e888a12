"""v3's clip to [-1, 0] for tied layers: a floor for HFC/LFC, without dominance of lambda_1^A."""

import math
from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.proofs.kit import Claim, by, draw, equal, exact, given, is_zero, spectra


def _norm(X: Matrix) -> float:
    return math.sqrt(float(sum((x * x for row in X for x in row), Fraction(0))))


def _law(value: draw.Known, numbers: list[int], A: Matrix) -> None:
    H, kinds = value
    n, d = len(A), len(H)
    X = exact.from_integers(numbers[i * 3 : i * 3 + d] for i in range(n))
    Pi = exact.transposed(spectra.projector(H, Fraction(0)))
    frozen = exact.product(exact.centred(X), Pi)
    assume(not is_zero(frozen))
    pi = spectra.stationary(A)
    c = [exact.weighted_mean(pi, X)]
    bound = sum(_norm(spectra.projector(H, h)) for h in {*kinds}) * _norm(c)
    k = math.sqrt(n * float(spectra.squared_deviation(pi)))
    inverse_t = math.sqrt(n) * bound * _norm(Pi) / _norm(frozen)
    assume(k + inverse_t > 0)
    for _ in range(12):
        X = exact.layer(A, H, X)
        equal(exact.product(exact.centred(X), Pi), frozen)
        hfc, lfc = exact.squared_norms(X)
        assert lfc == 0 or math.sqrt(float(hfc / lfc)) * (k + inverse_t) >= 1 - 1e-12


CLAIM = Claim(
    name="P-2401.04301v3-clip-tied",
    clauses=(
        "v3's H = V diag(clip(psi, [-1, 0])) V^-1 prevents oversmoothing when one A > 0 and one "
        "H act in every layer: liminf HFC/LFC > 0 for X_0 outside a proper subspace.",
        "Where 0 is an eigenvalue, HFC_L Pi_0 = HFC_0 Pi_0 for every L (Pi_0^T the spectral "
        "projector of H at 0), and HFC/LFC has an explicit positive floor if that is not 0;",
        "lambda_1^A need not dominate.",
    ),
    latex=r"H = V\,\mathrm{diag}(\mathrm{clip}(\psi,[-1,0]))\,V^{-1} \implies "
    r"\liminf \mathrm{HFC}/\mathrm{LFC} > 0",
    source="arXiv 2401.04301 v3, reparameterisation (public summary), for tied layers",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.EIGENBASIS_H, given.CLOSED),
    evidence=(
        by.written(
            "what a zero eigenvalue keeps",
            "[1] Without the eigenvalue 0 the spectrum lies in [-1, 0): "
            "P-2401.04301v3-control-negative.",
            "[1, 2] Let 0 be an eigenvalue, E_0 its spectral projector, Pi_0 = E_0^T. H E_0 = 0 "
            "(diagonalisable), so W Pi_0 = 0 and X' Pi_0 = X Pi_0: HFC_L Pi_0 = HFC_0 Pi_0, hence "
            "||HFC_L|| >= ||HFC_0 Pi_0|| / ||Pi_0|| for every L.",
            "[1, 2] c_L = c_0 (I + W)^L is the sum of (1 + h)^L c_0 E_h^T with |1 + h| <= 1, so "
            "||c_L|| <= K ||c_0||, K the sum of ||E_h|| over the eigenvalues.",
            "[1, 2] So t >= t_* = ||HFC_0 Pi_0|| / (||Pi_0|| sqrt(n) K ||c_0||) for every L, and "
            "HFC/LFC >= 1/(k + 1/t_*) > 0 by T1e, k = sqrt(n) ||pi - 1/n||, if HFC_0 Pi_0 != 0: "
            "outside a proper subspace.",
            "[3] No dominance is needed: at h = 0 the multiplier is 1 for lambda_1^A as for every "
            "other eigenvalue of A.",
        ),
        by.searched(
            "the frozen part and the floor, X_0 with HFC_0 Pi_0 != 0",
            _law,
            draw.with_spectrum(draw.fractions(-1, 0), 0, 2, Fraction(0)),
            draw.lists(st.integers(-9, 9), 9),
            draw.attention(2, 3),
            at=lambda value, numbers, A: (A, value[0]),
        ),
    ),
    further="The floor needs neither positivity nor a real spectrum of A. Defective H: "
    "P-2401.04301v1-control; special X_0: P-2401.04301v3-control-every-state; weights that differ "
    "by layer: P-2401.04301v3-clip-untied.",
)
