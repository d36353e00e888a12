"""Do tokens oversmooth in several mixed residual streams, and do the streams become one (T13)?

One way, as for one stream: exactly on fractions, else from balls around both spectra, UNDECIDED
where these overlap.
"""

from __future__ import annotations

from typing import Any

import flint

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.algebraic import Eigenvalue, eigenvalues, factors
from oversmoothing.theory.streams.agreement import agreement_depth, differences_alone, lone_family
from oversmoothing.theory.streams.stream_answer import (
    StreamMode,
    StreamVerdict,
    reason_of,
    safe_band,
)
from oversmoothing.theory.streams.stream_modes import EXACT_DEGREE, exact_modes, largest_modulus
from oversmoothing.theory.streams.stream_numerics import verdict_from_balls
from oversmoothing.theory.streams.streams import Mixing, Streams
from oversmoothing.theory.support.errors import CloseRootsError
from oversmoothing.theory.verdict.by_fractions import Leading
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of_sign

_BITS = 256


def stream_verdict(case: Streams, certified: bool = False, agree_to: float = 1e-6) -> StreamVerdict:
    """The verdict: exact on fractions of moderate size, else estimated, or certified where asked.

    Raises `InputError` unless 0 < agree_to < 1.
    """
    asked, layer = case.asked, case.layer
    mixing = case.mixing
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


# ----------------------------------------------------------------------------------------- exact


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
    return StreamVerdict(
        outcome,
        "exact",
        rho_c,
        None if case.layer.n == 1 else rho_q,
        reason_of(outcome, shown(rho_c), shown(rho_q), modes),
        tuple(modes),
        disagreement,
        one,
        **known,
    )


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
        return tuple(_tidy(complex((e / top).mid())) for e in entries)


def _tidy(z: complex) -> complex:
    """Without the dust that 256 bits leave of what is real."""
    return complex(z.real, 0.0 if abs(z.imag) < 1e-30 else z.imag)


def _agreement(case: Streams, dominant: list[Eigenvalue]) -> tuple[float | None, bool | None]:
    """The rate of differences between streams, and whether it is below that of the state (T13a).

    Differences x_k - x_l have all eigenvalues of a family R + t p q^T but that of the vector 1,
    where 1 is an eigenvector: in every family if R 1 = c 1 and p is a multiple of 1 or H = 0 (what
    is left are the eigenvalues of R without one c), or if R 1 = c 1 and q^T 1 = 0; else in one at
    most.
    """
    mixing = case.mixing
    if case.start == "equal" or mixing.streams == 1 or not dominant:
        return None, None
    rest = differences_alone(mixing, case.layer.rational_H)
    if rest is not None:
        values, decided = largest_modulus(rest)
        rate = _modulus(values[0])
        both, sure = largest_modulus([values[0], dominant[0]])
        less = len(both) == 1 and both[0] is dominant[0] if decided and sure else None
        # Equal, or larger only where no branch sees it.
        return rate, less
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
    return (_modulus(others[0]), False) if others else (None, None)


def _modulus(x: Eigenvalue) -> float:
    return float(abs(x.ball(128)).mid())
