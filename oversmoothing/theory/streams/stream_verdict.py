"""Do tokens oversmooth in several mixed residual streams, and do the streams become one (T13)?

One way, as for one stream: exactly on fractions, else from balls around both spectra, UNDECIDED
where these overlap.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import islice
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.exact import to_float
from oversmoothing.theory.numbers.rounding import around, at_precision, to_ball
from oversmoothing.theory.spectra.algebraic import Eigenvalue, eigenvalues, factors
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.streams.stream_answer import (
    StreamMode,
    StreamVerdict,
    reason_of,
    safe_band,
)
from oversmoothing.theory.streams.stream_modes import (
    EXACT_DEGREE,
    EnclosedRadii,
    agreement_depth,
    differences_alone,
    enclosed_radii,
    exact_modes,
    largest_modulus,
    lone_family,
    may_outgrow,
)
from oversmoothing.theory.streams.streams import Mixing, Streams
from oversmoothing.theory.support.errors import CloseRootsError, InputError
from oversmoothing.theory.support.sizes import Complex
from oversmoothing.theory.verdict import stages
from oversmoothing.theory.verdict.by_discs import CellDiscs, cell_discs
from oversmoothing.theory.verdict.by_fractions import Leading
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of_sign

_BITS = 256


def stream_verdict(case: Streams, certified: bool = False, agree_to: float = 1e-6) -> StreamVerdict:
    """The verdict: exact on fractions of moderate size, else estimated, or certified where asked.

    Raises `InputError` unless 0 < agree_to < 1.
    """
    asked, layer, mixing = case.asked, case.layer, case.mixing
    known: dict[str, Any] = {"agree_to": agree_to, "band": safe_band(asked)}
    if "row-stochastic" in mixing.kinds and mixing.keeps_equal_streams is not None:
        known["agree_from"] = agreement_depth(mixing, agree_to)
    degree = int(asked.active[0].degree()) * layer.d * max(1, layer.n - 1)
    exact = case.in_fractions() if degree <= EXACT_DEGREE else None
    try:
        if exact is not None and (layer.decidable or not certified or layer.exact):
            return _exactly(exact, known)
        return verdict_from_balls(case, certified, known)
    except CloseRootsError as error:
        return StreamVerdict(Outcome.UNDECIDED, "exact", None, None, f"{error}.", **known)


def _exactly(case: Streams, known: dict[str, Any]) -> StreamVerdict:
    A, H, mixing = case.layer.rational_A, case.layer.rational_H, case.asked
    dominance = exact_modes(A, H, mixing)
    outcome = Outcome.TRIVIAL if case.layer.n == 1 else outcome_of_sign(dominance.comparison)
    rho_c, rho_q = (float(dominance.radius(side).mid()) for side in (True, False))
    if outcome is Outcome.TIE:
        rho_q = rho_c
    modes = _named(dominance, case)
    shown = f"{{:.{12 if outcome is Outcome.UNDECIDED else 6}g}}".format
    disagreement, one = _agreement(case, dominance.dominant())
    reason = reason_of(outcome, shown(rho_c), shown(rho_q), modes)
    return StreamVerdict(
        outcome, "exact", rho_c, None if case.layer.n == 1 else rho_q, reason, tuple(modes),
        disagreement, one, **known,
    )  # fmt: skip


def _named(dominance: Leading[Eigenvalue], case: Streams) -> list[StreamMode]:
    """The dominant modes with their pairs (h, a) and the mix of streams in them."""
    mixing = case.asked
    idle = {x.key for x in mixing.idle_values}
    sides = [("consensus", dominance.consensus), ("quotient", dominance.quotient)]
    if dominance.comparison:
        sides = [sides[0 if dominance.comparison > 0 else 1]]
    h_values = eigenvalues(factors(case.layer.rational_H))
    a_values = eigenvalues(factors(rational_quotient(case.layer.rational_A)))
    modes: list[StreamMode] = []
    for side, values in sides:
        for x in values:
            mu = x.ball(_BITS)
            if x.key in idle:
                entry = StreamMode("idle", complex(mu.mid()), None, None, None)
                if entry not in modes:
                    modes.append(entry)
                continue
            h, a = _pair(mixing, mu, h_values, a_values if side == "quotient" else None)
            streams = _mix(mixing, mu) if case.start == "generic" else None
            modes.append(StreamMode(side, complex(mu.mid()), h, a, streams))
    return modes


def _pair(
    mixing: Mixing, mu: flint.acb, h_values: list[Eigenvalue], a_values: list[Eigenvalue] | None
) -> tuple[complex, complex]:
    """(h, a) with h a nearest to t = u(mu)/v(mu); a = 1 for consensus."""
    with at_precision(_BITS):
        u, v = (flint.acb_poly(part) for part in mixing.active)
        t = (u(mu) / v(mu)).mid()
        ones = [flint.acb(1)] if a_values is None else [a.ball(_BITS) for a in a_values]
        pairs = [(h.ball(_BITS), a) for h in h_values for a in ones]
        h, a = min(pairs, key=lambda pair: float(abs(pair[0].mid() * pair[1].mid() - t).mid()))
    return complex(h.mid()), complex(a.mid())


def _mix(mixing: Mixing, mu: flint.acb) -> tuple[complex, ...]:
    """The eigenvector of R + t p q^T at mu, its largest entry 1."""
    with at_precision(_BITS):
        entries = [flint.acb_poly(e)(mu) for e in mixing.pattern]
        top = max(entries, key=lambda e: float(abs(e).mid()))
        parts = (complex((e / top).mid()) for e in entries)
        # Without the dust that 256 bits leave of what is real.
        return tuple(complex(z.real, 0.0 if abs(z.imag) < 1e-30 else z.imag) for z in parts)


def _agreement(case: Streams, dominant: list[Eigenvalue]) -> tuple[float | None, bool | None]:
    """The rate of differences between streams, and whether it is below that of the state (T13a).

    Differences x_k - x_l have all eigenvalues of a family R + t p q^T but that of the vector 1,
    where 1 is an eigenvector: in every family if R 1 = c 1 and p is a multiple of 1 or H = 0 (what
    is left are the eigenvalues of R without one c), or if R 1 = c 1 and q^T 1 = 0; else in one at
    most.
    """
    mixing, H, A = case.mixing, case.layer.rational_H, case.layer.rational_A
    if case.start == "equal" or mixing.streams == 1 or not dominant or mixing.in_doubt:
        return None, None
    rest = differences_alone(mixing, H)
    if rest is not None:
        values, decided = largest_modulus(rest)
        rate = _modulus(values[0])
        both, sure = largest_modulus([values[0], dominant[0]])
        less = len(both) == 1 and both[0] is dominant[0] if decided and sure else None
        # Equal, or larger only where no branch sees it.
        return rate, None if less is False and may_outgrow(mixing, H, A, dominant) else less
    always = mixing.common_row_sum if sum(mixing.q) == 0 else None
    lone = lone_family(mixing)
    if always is not None:
        same = flint.fmpq(always.numerator, always.denominator)
        here = (mixing.idle // flint.fmpq_poly([-same, 1]))(same) != 0
    elif lone is not None:
        u, v = mixing.active
        same, t = (flint.fmpq(x.numerator, x.denominator) for x in lone)
        here = u.degree() > 0 and u(same) == t * v(same)
    else:
        return _modulus(dominant[0]), False
    others = [
        x
        for x in dominant
        if not (here and x.factor.degree == 1 and x.factor.rational_root == same)
    ]
    # Whether that mode is dominant alone: what comes next is not looked for.
    unsure = len(others) < len(dominant) and may_outgrow(mixing, H, A, dominant)
    return (_modulus(others[0]), None if unsure else False) if others else (None, None)


def _modulus(x: Eigenvalue) -> float:
    return float(abs(x.ball(128)).mid())


# Pairs (h, a) whose eigenvalues are enclosed for an estimate, the largest ones.
_LEADING = 64
# Bits of a radius from which it is a number; below that its enclosure is said.
_BITS_KNOWN = 10


def verdict_from_balls(case: Streams, certified: bool, known: dict[str, Any]) -> StreamVerdict:
    """Estimated, or certified; known: fields of the answer that are known already."""
    mixing, layer = case.asked, case.layer
    cell = cell_discs(layer)
    outcome, radii = Outcome.UNDECIDED, None
    for radii in _certified(case) if certified else [_estimated(mixing, cell)]:
        outcome = radii.outcome()
        if outcome is not Outcome.UNDECIDED:
            break
    status = "certified" if certified else "estimated"
    if radii is None:
        reason = (
            "spec(A) or spec(H) was not enclosed: too large, or eigenvectors not proved "
            "independent."
        )
        return StreamVerdict(outcome, status, None, None, reason, **known)
    rho_c, rho_q = _known(radii.rho_consensus), _known(radii.rho_quotient)
    mode = _leading_mode(mixing, cell.attention, cell.value, radii, outcome)
    reason = reason_of(outcome, _words(radii.rho_consensus), _words(radii.rho_quotient), mode)
    if outcome is Outcome.UNDECIDED:
        reason = (
            f"rounding leaves it open: rho_C = {radii.rho_consensus.str(12)} and rho_Q = "
            f'{radii.rho_quotient.str(12)} overlap. Write the entries as fractions ("-4/3") for '
            "an exact decision."
        )
    if layer.n == 1:
        outcome = Outcome.TRIVIAL
    rate, one = _agreement_in_balls(case, radii)
    return StreamVerdict(
        outcome, status, rho_c, None if layer.n == 1 else rho_q, reason, tuple(mode), rate, one,
        **known,
    )  # fmt: skip


def _known(radius: flint.arb) -> float | None:
    """The middle of a ball; None where rounding leaves no digit of it."""
    return None if radius.rel_accuracy_bits() < _BITS_KNOWN else float(radius.mid())


def _words(radius: flint.arb) -> str:
    known = _known(radius)
    if known is not None:
        return f"{known:.6g}"
    low, high = max(0.0, float(radius.lower())), float(radius.upper())
    return f"{0.99 * low:.3g} to {1.01 * high:.3g}"  # outwards, by more than printing rounds


def _certified(case: Streams) -> Iterator[EnclosedRadii]:
    """Finer and finer radii from spectra enclosed in balls."""
    layer = case.layer
    if stages.ball_side(layer) > stages.BALL_SIZE:
        return
    zeros = bool(stages.value_core(layer)[1])
    a_boxes: Any = stages.attention_boxes(layer) if layer.n > 1 else iter([[]] * 4)
    # A causal A comes as one endless enclosure.
    for boxes, value in islice(zip(a_boxes, stages.value_spectra(layer), strict=False), 4):
        yield enclosed_radii(case.asked, boxes, value.boxes, zeros)


def _estimated(mixing: Mixing, cell: CellDiscs) -> EnclosedRadii:
    """From discs in float64; the pairs far below the largest, by values in floats, are left out."""
    attention, value = cell.attention, cell.value
    if not np.isfinite(value.centres).all():
        raise InputError("H has an eigenvalue beyond the range of binary64 (1.8e308): scale it")
    one = (attention.radii == 0) & (attention.centres == 1)
    zero = (value.radii == 0) & (value.centres == 0)
    a, h = _balls(attention), _balls(value)
    everything = [h[j] for j in np.flatnonzero(~zero)]
    radii = enclosed_radii(mixing, [], everything, bool(zero.any()), bool(one.any()))
    i, j = np.nonzero(np.outer(~one, ~zero))
    moduli = _float_radii(mixing, attention.centres[i] * value.centres[j])
    order = np.argsort(-moduli, kind="stable")[:_LEADING]
    rest = enclosed_radii(
        mixing, [], [h[q] * a[p] for p, q in zip(i[order], j[order], strict=True)]
    )
    return replace(radii, quotient=rest.consensus)


def _families(mixing: Mixing, t: Complex) -> Complex:
    """R + t p q^T for each t."""
    outer = np.outer(to_float([mixing.p])[0], to_float([mixing.q])[0])
    return to_float(mixing.R) + t[..., None, None] * outer


def _float_radii(mixing: Mixing, t: Complex) -> Any:
    """rho(R + t p q^T) for each t, in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        whole = _families(mixing, t)
    if not np.isfinite(whole).all():
        raise InputError("H times p and q is beyond the range of binary64 (1.8e308): scale H")
    scaled, power = _scaled(whole)
    with np.errstate(over="ignore"):  # an eigenvalue may be beyond the floats where no entry is
        return np.ldexp(np.abs(np.linalg.eigvals(scaled)).max(-1), power)


def _scaled(matrices: Complex) -> tuple[Complex, Any]:
    """Each matrix times 2^-power, near 1: LAPACK's products overflow where entries are near the
    largest float."""
    power = np.frexp(np.maximum(np.abs(matrices).max((-2, -1)), np.finfo(float).tiny))[1]
    return matrices * np.ldexp(1.0, -power)[..., None, None], power


def _balls(discs: Discs) -> list[flint.acb]:
    """For each disc a ball around its component, which holds an eigenvalue."""
    balls = [
        around(flint.acb(complex(z)), float(r))
        for z, r in zip(discs.centres, discs.radii, strict=True)
    ]
    return [
        reduce(flint.acb.union, (balls[j] for j in np.flatnonzero(discs.component == c)))
        for c in discs.component
    ]


def _leading_mode(
    mixing: Mixing, attention: Discs, value: Discs, radii: EnclosedRadii, outcome: Outcome
) -> list[StreamMode]:
    """The mode that decides, as float64 has it."""
    if outcome not in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING):
        return []
    side = "consensus" if outcome is Outcome.SMOOTHING else "quotient"
    a = np.ones(1, dtype=complex) if side == "consensus" else attention.centres
    t = a[:, None] * value.centres[None, :]
    i, j = divmod(int(np.argmax(_float_radii(mixing, t))), t.shape[1])
    scaled, power = _scaled(_families(mixing, t[i, j]))
    values, vectors = np.linalg.eig(scaled)
    k = int(np.argmax(np.abs(values)))
    top = complex(np.ldexp(values[k].real, power), np.ldexp(values[k].imag, power))
    w = vectors[:, k] / vectors[np.argmax(np.abs(vectors[:, k])), k]
    return [
        StreamMode(
            side, top, complex(value.centres[j]), complex(a[i]), tuple(complex(x) for x in w)
        )
    ]


def _agreement_in_balls(case: Streams, radii: EnclosedRadii) -> tuple[float | None, bool | None]:
    mixing = case.mixing
    if case.start == "equal" or mixing.streams == 1 or mixing.in_doubt:
        return None, None
    top = radii.rho_consensus.max(radii.rho_quotient)
    H = case.layer.rational_H
    rest = differences_alone(mixing, H)
    if rest is None:
        # 1 is an eigenvector of one family at most, which rounding cannot name.
        special = lone_family(mixing) is not None or sum(mixing.q) == 0
        return (None, None) if special else (float(top.mid()), False)
    values = largest_modulus(rest)[0]
    rate = abs(values[0].ball(128))
    # What equal streams have: where it is as large, a Jordan block may outgrow the differences.
    equal = radii.consensus.max(radii.quotient)
    idle = not any(map(any, H))  # nothing but R acts
    if radii.zero or sum(mixing.q) == 0 or idle:
        equal = equal.max(abs(to_ball(mixing.common_row_sum or Fraction(0))))
    apart = rate > equal or (idle and not may_outgrow(mixing, H, [[Fraction(1)]], values))
    one = True if rate < top else False if rate >= top and apart else None
    return float(rate.mid()), one
