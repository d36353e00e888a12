"""The verdict on binary64 input: UNDECIDED wherever rounding could turn it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.depth.closed_form import closed_form
from oversmoothing.theory.depth.ratios import BALL_SIZE, Ratio, numerical_ratios
from oversmoothing.theory.depth.ratios_at_depths import ratios_at
from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.numbers.rational import exact_stationary
from oversmoothing.theory.spectra.radii import Interval
from oversmoothing.theory.spectra.spectrum import Spectrum, attention_spectrum
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict import expansion as numerical
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.float_comparison import compare
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, agreed
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of
from oversmoothing.theory.verdict.words import (
    AT_CONSENSUS,
    ONE_TOKEN,
    ZERO_STATE,
    compared,
    limit_words,
    number,
    repeated_one,
)

# Depth beyond which a state too large for balls is evaluated in its eigenbases, not iterated.
ITERATED_DEPTH = 5000


def decide_numerically(case: Case, depths: list[int], value: Spectrum) -> Verdict:
    attention = attention_spectrum(case.A)
    name, consensus, quotient = compare(attention, value)
    rho_c: float | None = consensus.middle
    rho_q: float | None = quotient.middle
    if name is Outcome.TIE:
        rho_q = rho_c
    classes = len(closed_classes(case.A))
    reason = _numerical_reason(name, attention, value, consensus, quotient)
    behaviour, verdict_x0 = UNKNOWN, None
    if case.n == 1:
        name, rho_q = Outcome.TRIVIAL, None
        reason = ONE_TOKEN
        if rho_c:
            behaviour = Limits("zero", 0.0, 1)
    elif classes > 1:
        reason += repeated_one(classes)
    if case.X0 is not None:
        flat = bool((case.X0[0] == case.X0).all())
        if not case.X0.any():
            name, verdict_x0 = Outcome.UNDEFINED, Outcome.UNDEFINED
            behaviour = UNKNOWN
            reason = ZERO_STATE
        else:
            behaviour, verdict_x0, note = numerical_for_x0(case, flat)
            reason += note
    elif case.n > 1 and name is not Outcome.UNDECIDED:
        behaviour = _generic_numerical_limits(case)
    if name not in (Outcome.TRIVIAL, Outcome.UNDEFINED):
        reason += limit_words(behaviour, case.X0 is not None)
    return Verdict(
        name,
        "numerical",
        rho_c,
        rho_q,
        reason,
        behaviour.tends_to,
        behaviour.limit,
        behaviour.limit_rank,
        verdict_x0,
        {} if case.X0 is None else _numerical_ratios(case, depths),
        case.X0 is not None,
        attention,
        value,
    )


def _numerical_ratios(case: Case, depths: list[int]) -> dict[int, Ratio]:
    if (case.n - 1) * case.d <= BALL_SIZE:
        A, H, X0 = case.rational_A, case.rational_H, case.rational_X0
        assert X0 is not None
        classes = [list(map(int, members)) for members in closed_classes(case.A)]
        return ratios_at(case, A, H, X0, exact_stationary(A, classes), depths)
    assert case.X0 is not None
    return _floating_ratios(case, case.X0, depths)


def _floating_ratios(case: Case, X0: NDArray[np.float64], depths: list[int]) -> dict[int, Ratio]:
    """By iteration, and by the closed form beyond ITERATED_DEPTH where the eigenbases allow it."""
    deep = [depth for depth in depths if depth > ITERATED_DEPTH]
    found: dict[int, Ratio] = {}
    try:
        for state in closed_form(A=case.A, H=case.H, X0=X0, depths=deep):
            log = state.log_hfc_lfc
            value = math.inf if log > 709 else math.exp(log)
            found[state.depth] = Ratio(None, None) if math.isnan(log) else Ratio(value, log)
    except InputError:
        deep = []
    shallow = [depth for depth in depths if depth not in found]
    return dict(sorted((found | numerical_ratios(case.A, case.H, X0, shallow)).items()))


def _generic_numerical_limits(case: Case) -> Limits:
    rng = np.random.default_rng(2401_04301)
    found = []
    for _ in range(2):
        expansion = numerical.expand(case.A, case.H, rng.standard_normal((case.n, case.d)))
        if expansion is None:
            return UNKNOWN
        found.append(numerical.expansion_limits(expansion))
    return agreed(found[0], found[1])


def numerical_for_x0(case: Case, flat: bool) -> tuple[Limits, Outcome, str]:
    assert case.X0 is not None
    expansion = numerical.expand(case.A, case.H, case.X0)
    if expansion is None:
        return (
            UNKNOWN,
            Outcome.TRIVIAL if flat else Outcome.UNDECIDED,
            " The eigenvectors are too ill-conditioned to say which modes this X_0 contains.",
        )
    behaviour = numerical.expansion_limits(expansion)
    if flat:
        return behaviour, Outcome.TRIVIAL, AT_CONSENSUS
    rho_c, rho_q = numerical.present_radii(expansion)
    # Never 0: of two radii that came out as 0 neither is known to be.
    doubt = max(64 * expansion.error, 1e-12) * max(rho_c, rho_q) + np.finfo(np.float64).tiny
    return behaviour, outcome_of(rho_c - rho_q - doubt, rho_c - rho_q + doubt), ""


def _numerical_reason(
    name: Outcome,
    attention: Spectrum,
    value: Spectrum,
    consensus: Interval,
    quotient: Interval,
) -> str:
    if quotient.index is None or consensus.index is None:
        return ""
    if name is Outcome.UNDECIDED:
        return (
            f"rounding decides: rho_C = {consensus.middle:.12g} +- "
            f"{(consensus.high - consensus.low) / 2:.1e} and rho_Q = {quotient.middle:.12g} +- "
            f"{(quotient.high - quotient.low) / 2:.1e} overlap. Write the entries as fractions "
            '("-4/3") for an exact decision; for a head of rank r < d pass W=(W_V, W_proj).'
        )
    i, j = quotient.index
    h_c, h_q = value.values[consensus.index[1]], value.values[j]
    return compared(
        name,
        consensus.middle,
        quotient.middle,
        f"h = {number(complex(h_c))}, a = 1",
        f"h = {number(complex(h_q))}, a = {number(complex(attention.values[i]))}",
    )
