"""What one X_0 contains and what it leads to, decided exactly for rational A, H and X_0 (T4, T14).

X_0 contains consensus modes as far as its class means pi_k^T X_L do not vanish, and others as far
as P X_L does not. The verdict for this X_0 compares how fast the two grow, its limits how fast P X
and the mean grow: the same resolvent, the same comparison of moduli.

For `onset`, too: at a root x of multiplicity e the numerators over the denominator have a part of
the order (z - x)^-(k+1) for each k < e, the term C(L, k) x^(L-k) G_k of X_L. Coefficients and
moduli are taken in balls and rounded to binary64; the first layers are looked at in integers.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.depth.onset import Onset, Series, Sides, onset
from oversmoothing.theory.numbers.exact import Heads, Matrix, Number, identity, plus, to_flint
from oversmoothing.theory.numbers.rounding import at_precision, doublings, norm
from oversmoothing.theory.spectra.algebraic import Eigenvalue, squared_modulus
from oversmoothing.theory.verdict.cosines import TokensOfStart
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of_sign
from oversmoothing.theory.verdict.leading import growth_of, leading_rank, ratio_limit
from oversmoothing.theory.verdict.limits import UNKNOWN, ZERO, Limits, infinite
from oversmoothing.theory.verdict.resolvent import (
    LARGEST_WORK,
    OutOfReachError,
    Part,
    Resolvent,
    compare_growth,
    in_integers,
    resolvent,
)


@dataclass(frozen=True)
class Content:
    """The modes of one X_0.

    comparison: 1 consensus larger (or alone), -1 quotient, 0 equal; None where neither is there or
    the two agree further than is compared. vanishes: X_L = 0 from some depth on. at_consensus:
    P X_0 = 0. onset: None where it is not known. sides: consensus and differences, with roots
    scale |mu|.
    """

    comparison: int | None
    vanishes: bool
    at_consensus: bool
    limits: Limits
    onset: Onset | None
    tokens: TokensOfStart
    sides: tuple[Part, Part]
    scale: int

    @property
    def radii(self) -> list[float | None]:
        """The largest |mu| that X_0 contains on each side, None where it contains none."""
        return [None if x.is_zero else growth_of(x, self.scale).rate for x in self.sides]

    @property
    def outcome(self) -> Outcome:
        """The verdict for this X_0 (T4e)."""
        if self.vanishes:
            return Outcome.UNDEFINED
        return Outcome.TRIVIAL if self.at_consensus else outcome_of_sign(self.comparison)


def start_content(
    A: Matrix,
    H: Matrix,
    X0: Matrix,
    begins: bool = True,
    others: Heads = (),
    work: float = LARGEST_WORK,
) -> Content | None:
    """Decompose X_0 (not 0). None where its resolvent takes more than `work`. begins: whether
    `onset` is wanted, which takes longest. others: further heads of the layer."""
    transform = resolvent(A, H, X0, others, work)
    if transform is None:
        return None
    n = len(A)
    whole = transform.part(identity(n))
    hfc = transform.part([[n * x - 1 for x in row] for row in identity(n)])
    mean = transform.part([[Fraction(1)] * n])
    consensus = _consensus(transform, whole, ((A, H), *others))
    comparison = first = None
    behaviour = UNKNOWN
    with suppress(OutOfReachError):
        if hfc.is_zero or consensus.is_zero:
            # X_0 is not 0: it has one of them.
            comparison = 1 if hfc.is_zero else -1
        else:
            comparison = whole.order.compare(consensus.growth.roots[0], hfc.growth.roots[0])
        behaviour = _limits(whole, hfc, mean, (n, len(H)))
        if begins and not whole.dies:
            first = onset_of_start(
                (whole, hfc, mean), changes(A, H, X0, others), behaviour.tends_to
            )
    return Content(
        None if whole.dies else comparison,
        whole.dies,
        hfc.is_zero,
        behaviour,
        first,
        TokensOfStart(transform, (hfc, mean)),
        (consensus, hfc),
        transform.scale,
    )


def fixed_means(heads: Heads) -> Matrix:
    """A basis of the u with u^T A_h = u^T in every head, in integers: of one head one for each
    closed class, whose weights it has up to scale."""
    n = len(heads[0][0])
    table = [[A[j][i] - (i == j) for j in range(n)] for A, _ in heads for i in range(n)]
    kernel, nullity = to_flint(table).numer_denom()[0].nullspace()
    columns = kernel.transpose().tolist()[: int(nullity)]
    return [[Fraction(int(x)) for x in column] for column in columns]


def _consensus(transform: Resolvent, whole: Part, heads: Heads) -> Part:
    """What an X_0 contains of consensus: u^T X_L for the u of `fixed_means`. Without any the
    differences between tokens drive every mean: its modes are those of sum_h H_h, theirs or not."""
    if means := fixed_means(heads):
        return transform.part(means)
    total = reduce(plus, (H for _, H in heads), identity(len(heads[0][1])))
    own = (to_flint(total) * transform.scale).charpoly().numer()
    factors = tuple((f, e) for f, e in whole.factors if (own % f.polynomial).is_zero())
    return Part((), factors, whole.order)


def _limits(whole: Part, hfc: Part, mean: Part, shape: tuple[int, int]) -> Limits:
    if whole.dies:
        return UNKNOWN
    if hfc.dies:
        return replace(ZERO, reached="every" if hfc.is_zero else "some")
    sign = 1 if mean.dies else compare_growth(hfc, mean)
    if sign < 0:
        return ZERO
    rank = leading_rank(whole, shape)
    if sign > 0:
        return infinite(rank, "every" if mean.is_zero else "some" if mean.dies else "")
    return Limits(*ratio_limit(hfc, mean, shape[0]), rank)


# Bits with which logarithms of quotients of moduli are known, and up to which they are looked for.
_KNOWN, _FIRST, _MOST = 60, 128, 2**16
# Logarithms from 2^-_SLOW on are looked at by layers; of smaller ones so many bits are left above
# the point where layers are counted by powers of two, and so much of the count is left open.
_SLOW, _KEPT, _LEFT_OPEN = 960, 50, Fraction(1, 2**20)
# What is this much smaller a step is gone after one.
_GONE = 1e300


def onset_of_start(
    parts: tuple[Part, Part, Part], change: Callable[[int], int], tends_to: str | None
) -> Onset | None:
    """The onset of an X_0 that does not die out. Raises `OutOfReachError`."""
    whole, *_ = parts
    first = whole.growth.roots[0]
    logs = [
        _log_quotient(root, first, whole.order) for root, _ in whole.roots() if not root.is_zero
    ]
    answer = _onset(parts, change, tends_to, 0)
    slowest = max((-_exponent(x) for x in logs if x != 0), default=0)
    if answer is not None or slowest < _SLOW:
        return answer
    # More layers than binary64 counts: by 2^unit of them.
    unit = slowest - _KEPT
    answer = _onset(parts, None, tends_to, unit)
    if answer is None or answer.layer <= 1:
        # Somewhere in the first step.
        return None
    layer = Fraction(int(answer.layer)) * 2**unit
    return Onset(Number(layer * (1 - _LEFT_OPEN), layer * (1 + _LEFT_OPEN)), answer.how)


def _onset(
    parts: tuple[Part, Part, Part],
    change: Callable[[int], int] | None,
    tends_to: str | None,
    unit: int,
) -> Onset | None:
    whole, hfc, mean = parts
    sides = [None if part.dies else series(part, unit) for part in (hfc, mean)]
    drift = 0.0
    if None not in sides:
        first, second = (part.growth.roots[0] for part in (hfc, mean))
        drift = _in_units(_log_quotient(first, second, whole.order), unit)
    every = series(whole, unit)
    moves = [x for x in sides if x is not None and tends_to in ("zero", "infinity")]
    steady = _keeps_its_sign(every, False) and all(_keeps_its_sign(x, True) for x in moves)
    if unit and not steady:
        return None
    return onset(Sides(every, sides[0], sides[1], drift, change), tends_to)


def _keeps_its_sign(part: Series, together: bool) -> bool:
    """Whether the terms that last turn by 0 or pi a layer, leading and others each (or together)
    alike: only then steps of many layers show what each layer does."""
    lasts = part.rate.real > -_GONE / 2
    groups = [lasts] if together else [part.leads, lasts & ~part.leads]
    turns = [part.rate.imag[group] for group in groups]
    return all(len(set(x)) <= 1 and set(x) <= {0.0, math.pi} for x in turns)


def _exponent(x: flint.arb) -> int:
    """e with |x| about 2^e."""
    mantissa, exponent = x.mid().man_exp()
    return int(exponent) + abs(int(mantissa)).bit_length()


def _in_units(x: flint.arb, unit: int) -> float:
    """x 2^unit: what is not 0 stays so, and nothing is infinite."""
    if x == 0:
        return 0.0
    if _exponent(x) + unit > 1000:
        return math.copysign(_GONE, float(x.sgn().mid()))
    with at_precision(64):
        value = float((x * flint.arb(2) ** unit).mid())
    return value or math.copysign(5e-324, float(x.sgn().mid()))


def series(part: Part, exponent: int = 0) -> Series:
    """A part that does not die out as a sum of terms, by steps of 2^exponent layers."""
    growth = part.growth
    first, most = growth.roots[0], part.bits
    # As many bits as it takes.
    for bits in (*doublings(256, most - 1), most):
        with at_precision(bits):
            terms = [
                (root, power, norm(G), G)
                for root, multiplicity in part.roots()
                for power, G in enumerate(_coefficients(part, root, multiplicity, first, bits))
            ]
        if all(size.rel_accuracy_bits() >= _KNOWN for _, _, size, _ in terms):
            break
    rows = []
    with at_precision(bits):
        for root, power, size, G in terms:
            # A lower coefficient may be 0.
            if not size > 0:
                continue
            rate = complex(-math.inf)
            if not root.is_zero:
                # Of the middle: a ball around a negative number meets both ends of the angles.
                turn = (root.ball(bits) * first.ball(bits).conjugate()).mid().arg()
                turned = 0.0 if root == first else float(turn.mid())
                turned = math.pi if turned == -math.pi else turned
                log = _in_units(_log_quotient(root, first, part.order), exponent)
                rate = complex(log, turned)
            # C(2^e t, k) is about 2^(e k) C(t, k).
            log_size = float(size.log().mid()) + exponent * power * math.log(2)
            among = power == growth.power and root in growth.roots
            unit = [complex((x / size).mid()) for x in G]
            rows.append((rate, float(power), log_size, among, unit))
    rates, powers, sizes, leads, units = map(np.array, zip(*rows, strict=True))
    return Series(rates, powers, sizes, leads, lambda w: w @ units, exact=True)


def _log_quotient(first: Eigenvalue, second: Eigenvalue, order: Any) -> flint.arb:
    """log(|first| / |second|), 0 where they are equal. Raises `OutOfReachError`."""
    if not order.compare(first, second):
        return flint.arb(0)
    for bits in doublings(_FIRST, _MOST):
        with at_precision(bits):
            value = (squared_modulus(first, bits) / squared_modulus(second, bits)).log() / 2
            if value.rel_accuracy_bits() >= _KNOWN:
                return value
    raise OutOfReachError


def _coefficients(
    part: Part, root: Eigenvalue, multiplicity: int, first: Eigenvalue, bits: int
) -> Iterator[list[flint.acb]]:
    """G_k x^-k for k = 0 ... multiplicity - 1: over the power of the first mu, also what mu = 0
    leaves at the layer k."""
    x = root.ball(bits)
    unit = first.ball(bits) if root.is_zero else x
    shifted = flint.acb_poly([x, 1])
    below = flint.acb_poly(part.denominator)(shifted)
    columns = []
    for numerator in part.numerators:
        above = flint.acb_poly(numerator)(shifted)
        coefficients: list[flint.acb] = []
        for i in range(multiplicity):
            lower = (c * below[multiplicity + i - j] for j, c in enumerate(coefficients))
            coefficients.append((above[i] - sum(lower, flint.acb(0))) / below[multiplicity])
        columns.append(coefficients)
    for k in range(multiplicity):
        yield [column[multiplicity - 1 - k] / unit**k for column in columns]


def changes(A: Matrix, H: Matrix, X0: Matrix, others: Heads = ()) -> Callable[[int], int]:
    """The sign of HFC/LFC at the next layer less that at this one; 0 where both are infinite.

    With S = ||X_L||^2 and T = ||1^T X_L||^2, n HFC^2 = n S - T and n LFC^2 = T: in integers it is
    the sign of S_(L+1) T_L - S_L T_(L+1).
    """
    step, state = in_integers(A, H, X0, others)
    # Of a state as a vector every d-th entry belongs to one feature.
    d = len(H) // state.ncols()
    ones = flint.fmpz_mat([[int(j % d == i) for j in range(state.nrows())] for i in range(d)])
    known: list[list[flint.fmpz]] = []

    def change(layer: int) -> int:
        nonlocal state
        while len(known) < layer + 2:
            both = state.entries(), (ones * state).entries()
            known.append([sum((x * x for x in entries), flint.fmpz(0)) for entries in both])
            state = step(state)
        (S, T), (then, below) = known[layer : layer + 2]
        gap = then * T - S * below
        return (gap > 0) - (gap < 0)

    return change
