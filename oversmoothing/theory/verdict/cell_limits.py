"""Limits of HFC/LFC and the asymptotic rank that hold for every case that rounds to the same
floats, from the modes that may lead (T4, T5a).

The leading modes are one direction of tokens times whatever H does, or one of H times what A does:
in both the ratio of HFC and LFC is that of the tokens' directions. What needs more than that, and
means that may be 0, are left open.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import flint
import numpy as np

from oversmoothing.theory.layer.attention import cyclic_groups, stationary_distribution
from oversmoothing.theory.layer.cell import RoundingCell, cell_of
from oversmoothing.theory.layer.layer import Entries, Layer
from oversmoothing.theory.numbers.rounding import at_precision, largest, norm
from oversmoothing.theory.spectra.blocks import Block, enclose_in_balls
from oversmoothing.theory.spectra.heads import ManyHeads
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.by_cells import Mode, Modes, Side, lasts, modes_of
from oversmoothing.theory.verdict.disc_limits import (
    UNKNOWN,
    ZERO,
    Decided,
    Limits,
    agreed,
    infinite,
)
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.leading import ball_rank

# A limit is a number where the cell leaves so little (relative) of it open.
_KNOWN = 1e-7

Vector = list[flint.acb]
_Item = TypeVar("_Item")


def limits_in_balls(modes: Modes, outcome: Outcome) -> Limits:
    """What the whole cell has in common; None where its cases differ or may do so."""
    if outcome is Outcome.SMOOTHING:
        return ZERO
    common: Limits | None = None
    for top in modes.leading():
        limits = _of_leading(modes, top) if top else UNKNOWN
        common = limits if common is None else agreed(common, limits)
    common = common or UNKNOWN
    if min(modes.cell.case.n, modes.cell.case.d) == 1 and lasts(modes.all_modes()):
        # A state of one feature has no other rank.
        return replace(common, limit_rank=1)
    return common


def _of_leading(modes: Modes, top: list[Mode]) -> Limits:
    limits = _by_directions(modes, top)
    if limits.tends_to is None and all(_without_mean(modes, mode.attention) for mode in top):
        return infinite(limits.limit_rank)
    return limits


def _by_directions(modes: Modes, top: list[Mode]) -> Limits:
    sides = _distinct([mode.attention for mode in top])
    values = _distinct([mode.value for mode in top])
    if (
        len(sides) == 1
        and sides[0].consensus
        and len(sides[0].block) == len(modes.cell.case.classes) == 1
    ):
        return ZERO
    one_value = len(values) == 1 and values[0].real and len(values[0]) == 1
    # Where one h = 0 leads, its part of X_0 stays as it is, whatever A does.
    still = len(top) == 1 and len(values[0]) == 1 and values[0].value == 0
    if len(sides) == 1 and not sides[0].consensus and not still:
        limits = _of_one_side(modes, top, sides[0])
        if limits.limit_rank is not None or not one_value:
            return limits
    if one_value:
        return _of_one_value(modes, top)
    if len(values) == 1 and _one_feature(top, sides, values[0]):
        return Limits(None, None, 1)
    conjugate = len(values) == 2 and values[0].columns == values[1].conjugate
    paired = conjugate and (all(side.consensus for side in sides) or len(top) == 2)
    return _of_pair(modes, top) if paired else UNKNOWN


def _distinct(items: Sequence[_Item]) -> list[_Item]:
    kinds: list[_Item] = []
    for item in items:
        if not any(item is known for known in kinds):
            kinds.append(item)
    return kinds


def _of_one_side(modes: Modes, top: list[Mode], side: Side) -> Limits:
    """X_L goes like v y_L^T: HFC/LFC tends to ||P v|| / (sqrt(n) |mean v|), rank 1."""
    if not side.block.real:
        return UNKNOWN
    v = _direction(modes, side)
    if v is None:
        return UNKNOWN
    # Of a block of several real eigenvalues one leads only where nothing turns beside it, and h is
    # not 0, with which all of them stay.
    if len(side.block) > 1 and not all(
        mode.value.real
        and len(mode.value) == 1
        and not mode.value.value.contains(0)
        and not mode.multiplier.contains(0)
        for mode in top
    ):
        return UNKNOWN
    return _constant(v)


def _one_feature(top: list[Mode], sides: list[Side], value: Block) -> bool:
    """Whether one real h of a block leads, with one eigenvector: rank 1, whatever A does.

    Then |1 + h a| has a slope in h, and no second h of the block has the same modulus.
    """
    pair = len(sides) == 2 and sides[0].block.columns == sides[1].block.conjugate
    if not (pair or len(sides) == 1) or not value.real or _chain(value) is None:
        return False
    slopes = (mode.attention.a.real + value.value.real * abs(mode.attention.a) ** 2 for mode in top)
    return not any(slope.contains(0) for slope in slopes)


def _chain(block: Block) -> Vector | None:
    """A ball around the eigenvectors of T, up to scale; None where it has several.

    (T - s) y = 0 with the first row and the last column apart: T is triangular, with its chain
    below the diagonal where it has several eigenvalues, and y_m = 1.
    """
    m, T = len(block), block.T
    if m == 1:
        return [flint.acb(1)]
    rows = [[T[p][q] - (block.value if p == q else 0) for q in range(m)] for p in range(1, m)]
    left = flint.acb_mat([row[:-1] for row in rows])
    right = flint.acb_mat([[-row[-1]] for row in rows])
    try:
        return [*left.solve(right).entries(), flint.acb(1)]
    except ZeroDivisionError:
        return None


def _direction(modes: Modes, side: Side) -> Vector | None:
    """The tokens of the eigenvectors of a block."""
    if len(side.block) > 1 and not modes.A.triangular:
        return None
    y = _chain(side.block)
    if y is None:
        return None
    columns = side.block.columns
    return [
        sum((row[c] * x for c, x in zip(columns, y, strict=True)), flint.acb(0))
        for row in modes.A.basis
    ]


def _without_mean(modes: Modes, side: Side) -> bool:
    """Whether the tokens of a side have the mean 0 exactly: a root of unity, by the zeros of A."""
    case = modes.cell.case
    if len(side.block) > 1 or side.consensus or case.n != sum(map(len, case.classes)):
        return False
    for members in case.classes:
        groups = cyclic_groups(case.positive, members)
        if len({len(group) for group in groups}) > 1:
            continue
        for k in range(1, len(groups)):
            s = 1 - (flint.acb(flint.fmpq(2 * k, len(groups)))).exp_pi_i()
            holders = [block for block in modes.A.blocks if block.value.overlaps(s)]
            if len(holders) == 1 and holders[0] is side.block:
                return True
    return False


def _constant(v: Vector) -> Limits:
    mean, spread = _parts(v)
    if mean.contains(0) or not any(not x.contains(0) for x in spread):
        return Limits(None, None, 1)
    limit = norm(spread) / (abs(mean) * flint.arb(len(v)).sqrt())
    known = limit.rad() <= _KNOWN * limit.mid()
    return Limits("constant", float(limit.mid()) if known else None, 1)


def _parts(v: Vector) -> tuple[flint.acb, Vector]:
    """The mean of the entries, and what they are beside it."""
    mean = sum(v, flint.acb(0)) / len(v)
    return mean, [x - mean for x in v]


def _of_one_value(modes: Modes, top: list[Mode]) -> Limits:
    """X_L goes like w_L u^T, u the eigenvector of a real h: rank 1, and w_L decides."""
    first = top[0]
    alike = all(mode.attention.consensus for mode in top)
    if alike or all(mode.multiplier == 1 for mode in top):
        if modes.coefficients is None:
            # Of several closed classes generic X_0 has other means: a constant that depends on it.
            return Limits("constant" if alike else None, None, 1)
        w = modes.fixed_states([mode.attention for mode in top], first.value)
        return _constant([row[0] for row in w])
    pair = len(top) == 2 and top[0].attention.block.columns == top[1].attention.block.conjugate
    return replace(_of_pair(modes, top), limit_rank=1) if pair else Limits(None, None, 1)


def _of_pair(modes: Modes, top: list[Mode]) -> Limits:
    """Re(mu^L w u^T), w from one side or from all of a = 1: rank 2 where neither w nor u is real
    up to a factor.

    ||HFC||^2 and ||LFC||^2 turn differently where (w.w)(u.u) / (|w|^2 |u|^2) differs between P w
    and the mean of w in the place of w: that is what e^(2 i L phase) comes with.
    """
    mode = top[0]
    half = [x for x in top if x.value is mode.value]
    half = half if all(x.attention.consensus for x in half) else [mode]
    if not mode.sure:
        return UNKNOWN
    u = [row[mode.value.columns[0]] for row in modes.H.basis]
    if modes.coefficients is None and mode.attention.consensus:
        # Several closed classes, of which generic X_0 has means w with no phase in common.
        several = _is_complex(u) and len(modes.cell.case.classes) > 1
        around = sum((x * x for x in u), flint.acb(0))
        turns = several and not around.contains(0) and not _quarter_turn(mode)
        return Limits("oscillates" if turns else None, None, 2 if several else None)
    w = [row[0] for row in modes.fixed_states([x.attention for x in half], mode.value)]
    rank = 2 if _is_complex(w) and _is_complex(u) else None
    mean, spread = _parts(w)
    # Phases of a quarter turn make e^(2 i L phase) real; of real mu there is nothing that turns.
    if _quarter_turn(mode):
        return Limits(None, None, rank)
    around = sum((x * x for x in spread), flint.acb(0)) / norm(spread) ** 2
    gap = (around - mean * mean / abs(mean) ** 2) * sum((x * x for x in u), flint.acb(0))
    # Not finite where the mean or the spread may be 0.
    turns = gap.is_finite() and not gap.contains(0)
    return Limits("oscillates" if turns else None, None, rank)


def _quarter_turn(mode: Mode) -> bool:
    return bool(mode.multiplier.real.contains(0) or mode.multiplier.imag.contains(0))


def _is_complex(v: Vector) -> bool:
    """Whether it is no multiple of a real vector."""
    return any(not (x * y.conjugate()).imag.contains(0) for x in v for y in v)


# Balls of so many bits lose next to nothing beside the rounding of the input.
_BITS = 192
# Beyond this side the balls would take longer than a verdict in floats is worth.
LARGEST_SIDE = 32


def decided_in_cell(case: Layer, start: Entries | None) -> Decided:
    """For generic X_0 (None), or for a start that is not at consensus."""
    outcome, limits = Outcome.UNDECIDED, UNKNOWN
    if max(case.n, case.d) > LARGEST_SIDE or case.n == 1:
        return Decided(outcome, limits)
    with at_precision(_BITS):
        for modes in modes_of(RoundingCell(case), None if start is None else start.floats):
            if outcome is Outcome.UNDECIDED:
                outcome = modes.outcome()
            limits = merged(limits, second=limits_in_balls(modes, outcome))
            known = outcome, limits.tends_to, limits.limit_rank
            if {Outcome.UNDECIDED, None}.isdisjoint(known):
                break
    return Decided(outcome, limits)


def merged(first: Limits, second: Limits) -> Limits:
    """What either knows, what the first knows first; a limit only to the same tends_to."""
    known = first if first.tends_to is not None else second
    limit = known.limit
    if limit is None and known.tends_to == second.tends_to:
        limit = second.limit
    rank = first.limit_rank if first.limit_rank is not None else second.limit_rank
    return Limits(known.tends_to, limit, rank)


# Rows of the operator of several heads whose eigenvectors are looked at in balls.
_OPERATOR = 64


def limits_of_heads(case: ManyHeads, X0: Array | None) -> Limits:
    """What generic X_0 (None), or this one, leads to for all heads that round to these, where
    consensus does not dominate: from the one mu that leads, where X_0 contains it.

    With z the last token and y the differences to it, z' = C z + D y and y' = K y: an eigenvector
    of K is one of the layer with z = (mu - C)^-1 D y.
    """
    if case.n * case.d > _OPERATOR:
        return UNKNOWN
    with at_precision(_SOLVED):
        C, D, K = _operator(case)
        spectrum, below = (next(iter(enclose_in_balls(M)), None) for M in (K, C))
        if spectrum is None or below is None:
            return UNKNOWN
        boxes, least = spectrum.boxes, largest(map(abs, below.boxes)).upper()
        top = [
            i for i, x in enumerate(boxes)
            if spectrum.alone[i] and abs(x) > least
            and all(abs(x) > abs(y) for j, y in enumerate(boxes) if j != i)
        ]  # fmt: skip
        if top and X0 is not None:
            _, y = _last_and_differences(X0)
            content = flint.acb_mat([spectrum.left_vector(top[0])]) * y
            top = [] if content[0, 0].contains(0) else top
        return _limit_of_heads(case, C, D, K, boxes[top[0]]) if top else UNKNOWN


_SOLVED = 128


def _operator(case: ManyHeads) -> tuple[flint.acb_mat, flint.acb_mat, flint.acb_mat]:
    """C, D and K of `limits_of_heads`, y row by row."""
    m, d = case.n - 1, case.d
    C, D, K = (flint.acb_mat(*shape) for shape in ((d, d), (d, m * d), (m * d, m * d)))
    if case.residual:
        C, K = _shifted(C * -1, flint.acb(1)), _shifted(K * -1, flint.acb(1))
    for head in case.singly:
        cell = RoundingCell(head)
        E, H = cell.departures, cell.value
        B = [[E[m][j] - E[i][j] + int(i == j) for j in range(m)] for i in range(m)]
        C += flint.acb_mat(H)
        D += _kronecker([[-x for x in E[m][:m]]], H)
        K += _kronecker(B, H)
    return C, D, K


def _kronecker(X: list[Vector], Y: list[Vector]) -> flint.acb_mat:
    return flint.acb_mat([[x * y for x in p for y in q] for p in X for q in Y])


def _shifted(M: flint.acb_mat, x: flint.acb) -> flint.acb_mat:
    """x I - M."""
    k = M.nrows()
    return flint.acb_mat([[(x if i == j else 0) - M[i, j] for j in range(k)] for i in range(k)])


def _last_and_differences(X0: Array) -> tuple[flint.acb_mat, flint.acb_mat]:
    """The last token and the differences to it, as columns."""
    *rows, last = cell_of(X0)
    differences = [x - z for row in rows for x, z in zip(row, last, strict=True)]
    return flint.acb_mat([[x] for x in last]), flint.acb_mat([[x] for x in differences])


def _limit_of_heads(
    case: ManyHeads, C: flint.acb_mat, D: flint.acb_mat, K: flint.acb_mat, mu: flint.acb
) -> Limits:
    """Where one mu, in this ball, is larger than all others."""
    turned = next(iter(enclose_in_balls(K.transpose())), None)
    places = [j for j, x in enumerate(turned.boxes) if x.overlaps(mu)] if turned else []
    mirrored = mu.conjugate()
    if not turned or len(places) > 1 or not turned.alone[places[0]]:
        return UNKNOWN
    if sum(x.overlaps(mirrored) for x in turned.boxes) > 1 or not mu.overlaps(mirrored):
        return UNKNOWN
    n, d = case.n, case.d
    v = turned.left_vector(places[0])
    z = _shifted(C, mu).solve(D * flint.acb_mat([[x] for x in v])).entries()
    rows = [
        [p + q for p, q in zip(z, y, strict=True)]
        for y in (v[k : k + d] for k in range(0, len(v), d))
    ] + [z]
    rank = min(n, d) if ball_rank(rows) == min(n, d) else None
    mean = [sum(column, flint.acb(0)) / n for column in zip(*rows, strict=True)]
    spread = [x - c for row in rows for x, c in zip(row, mean, strict=True)]
    if all(not np.ptp(stationary_distribution(head.A)) for head in case.singly):
        return infinite(rank)
    size = norm(mean)
    if not size > 0:
        return Limits(None, None, rank)
    limit = norm(spread) / size / flint.arb(n).sqrt()
    known = limit.rad() < _KNOWN * limit.mid()
    return Limits("constant", float(limit.mid()) if known else None, rank)
