"""Which modes X_0 contains, and which is largest, for every case that rounds to the same floats.

The modes are pairs of a block of A and one of H (theory.spectra.invariant_blocks): a mode is there
for certain where its coefficients in balls are not 0, absent where zeros of the input make them 0.
Two moduli with one h are compared by |1 + h a|^2 - |1 + h b|^2, whose sign does not suffer from
what the rounding of h does to both (T2b, T3b).

An entry x stands for every number within half a unit in the last place, 0 for 0 alone. A is taken
through E = I - A, whose diagonal is the sum of what a token gives to the others: s = 1 - a then has
small relative errors however close to 1 an eigenvalue a is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import flint
import numpy as np

from oversmoothing.theory.layer.attention import cyclic_groups, shares
from oversmoothing.theory.layer.layer import Entries, Layer
from oversmoothing.theory.numbers.rounding import TINY, UNIT, Bounded, at_precision
from oversmoothing.theory.spectra.blocks import Block, Blocks, invariant_blocks
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.limits import UNKNOWN, Decided, Tokens, limits_of, merged

Balls = list[list[flint.acb]]
_ROUND_UP = 1 + 2.0**-20


def departures(case: Layer) -> Balls:
    """E = I - A of all that rounds to the layer."""
    if case.logits is None:
        given = case.given["A"].floats
        errors = np.abs(given.sum(axis=1) - 1) + (1 + len(given)) * UNIT
        rows = zip(given.tolist(), errors.tolist(), strict=True)
        A = [[_ball(x, error) for x in row] for row, error in rows]
    else:
        A = []
        for row in case.logits.tolist():
            top = _ball(max(row), UNIT)
            A.append(shares(None if x == -np.inf else _ball(x, UNIT) - top for x in row))
    E = [[flint.acb(-x) for x in row] for row in A]
    for i, row in enumerate(A):
        # The sum of the others, or the difference where that is known better.
        others, rest = sum((x for j, x in enumerate(row) if j != i), flint.arb(0)), 1 - row[i]
        E[i][i] = flint.acb(others if others.rad() <= rest.rad() else rest)
    return E


def values(case: Layer) -> Balls:
    """H of all that rounds to the layer."""
    if case.factors is None:
        return cell_of(case.given["H"].floats)
    W_V, W_proj = (flint.acb_mat(cell_of(M)) for M in case.factors)
    H: Balls = (W_V * W_proj).transpose().tolist()
    return H


def cell_of(M: Array) -> Balls:
    """All that rounds to the entries of M."""
    return [[flint.acb(_ball(x, UNIT)) for x in row] for row in M.tolist()]


def _ball(x: float, relative: float) -> flint.arb:
    # TINY: half of it, the rounding of a subnormal x, is no float.
    return flint.arb(x, (abs(x) * relative + TINY) * _ROUND_UP) if x else flint.arb(0)


@dataclass(frozen=True)
class Mode:
    """A pair of a block of E = I - A, whose values are s = 1 - a, and one of H. sure: some part of
    it is there; full: if it is, with every eigenvalue h of its block."""

    attention: Block
    value: Block
    multiplier: flint.acb
    sure: bool
    full: bool

    @property
    def modulus(self) -> flint.arb:
        return abs(self.multiplier)

    @property
    def quarter(self) -> bool:
        return bool(self.multiplier.real.contains(0) or self.multiplier.imag.contains(0))

    def exceeds(self, other: "Mode") -> bool:
        """|mu| > |mu'| beyond doubt, for the largest of the modes that each stands for."""
        if self.modulus > other.modulus:
            return True
        if other.value is not self.value or not self.full:
            return False
        # |1 + h a|^2 - |1 + h b|^2 over one h, up to a positive factor.
        h, gap = self.value.value, other.attention.value - self.attention.value
        size = h.real * h.real + h.imag * h.imag
        turned = other.multiplier.conjugate() * h * gap
        difference = 2 * turned.real + size * (gap.real * gap.real + gap.imag * gap.imag)
        return bool(difference > 0)

    def equals(self, other: "Mode") -> bool:
        """The same modulus by structure: one h or its conjugate and a = 1 both, or 1 + 0."""
        if self.multiplier == 1 and other.multiplier == 1:
            return True
        if not (self.attention.consensus and other.attention.consensus):
            return False
        if self.value is other.value:
            return self.full and other.full
        return other.value.columns == self.value.conjugate


class CellModes:
    """The modes of one case: those of consensus and those of the differences between tokens.

    coefficients: V^-1 X_0 U^-T in balls; of generic X_0, which contains everything, ones.
    """

    def __init__(self, case: Layer, A: Blocks, H: Blocks, X0: Array | None) -> None:
        self.case, self.A, self.H, self.generic = case, A, H, X0 is None
        self.shape, self.classes = (case.n, case.d), len(case.classes)
        some = [[flint.acb(1)] * case.d] * case.n
        self.coefficients = some if X0 is None else _coefficients(X0, A, H)

    def part(self, side: Block, value: Block) -> Balls:
        """The coefficients of a pair of blocks [m, p]."""
        return [[self.coefficients[i][j] for j in value.columns] for i in side.columns]

    def all_modes(self) -> list[Mode]:
        """Those of every pair that may be there."""
        pairs = product(self.A.blocks, self.H.blocks)
        modes = (self._mode(side, value, self.part(side, value)) for side, value in pairs)
        return [mode for mode in modes if mode is not None]

    def _between_classes(self) -> Iterator[Mode]:
        """The differences between class means."""
        fixed = [side for side in self.A.blocks if side.consensus]
        for value in self.H.blocks if self.classes > 1 else ():
            rows = self.part(fixed[0], value)
            if not self.generic:
                rows = _from_the_first(self.fixed_states(fixed, value))
            mode = self._mode(fixed[0], value, rows)
            if mode is not None:
                yield mode

    def fixed_states(self, sides: Sequence[Block], value: Block) -> Balls:
        """sum of V C over some blocks of A, [n, p] on the columns of one block of H."""
        columns = [column for side in sides for column in side.columns]
        V = flint.acb_mat([[row[column] for column in columns] for row in self.A.basis])
        C = flint.acb_mat([row for side in sides for row in self.part(side, value)])
        states: Balls = (V * C).tolist()
        return states

    def _mode(self, side: Block, value: Block, rows: Balls) -> Mode | None:
        entries = [x for row in rows for x in row]
        if all(x == 0 for x in entries):
            return None
        sure = any(not x.contains(0) for x in entries)
        full = self.generic or len(value) == 1
        if len(side) == 1 or side.consensus:
            full = full or any(_spans(value.T, row) for row in rows)
        return Mode(side, value, _multiplier(side.value, value.value), sure, full)

    def outcome(self) -> Outcome:
        """rho_C against rho_Q over what is there (T4e), UNDECIDED where the cell does not agree."""
        modes = self.all_modes()
        consensus = [mode for mode in modes if mode.attention.consensus]
        quotient = [mode for mode in modes if not mode.attention.consensus]
        quotient += self._between_classes()
        if _beat(consensus, quotient):
            return Outcome.SMOOTHING
        if _beat(quotient, consensus):
            return Outcome.NON_SMOOTHING
        for c in consensus:
            lasts = c.sure and not c.multiplier.contains(0)
            if not (lasts and any(q.sure and c.equals(q) for q in quotient)):
                continue
            if all(c.equals(x) or c.exceeds(x) for x in consensus + quotient):
                return Outcome.TIE
        return Outcome.UNDECIDED

    def leading(self) -> Iterator[list[Mode]]:
        left = self.all_modes()
        # What a mode that is there exceeds leads nowhere.
        sure = [mode for mode in left if mode.sure]
        left = [mode for mode in left if not any(x.exceeds(mode) for x in sure)]
        while left:
            top = [mode for mode in left if not any(x.exceeds(mode) for x in left)]
            # While some of these may be missing, others lead that not all of them exceed.
            while more := [
                x for x in left if x not in top and not all(mode.exceeds(x) for mode in top)
            ]:
                top += more
            yield top
            if any(mode.sure and not mode.multiplier.contains(0) for mode in top):
                return
            left = [mode for mode in left if mode not in top]
        yield []

    def lasts(self) -> bool:
        return lasts(self.all_modes())

    def tokens(self, top: list[Mode]) -> Tokens | None:
        block = top[0].attention
        # Of a block of several real eigenvalues one leads only where nothing turns beside it, where
        # |1 + h a| grows with a, or falls, for each h, and X_0 has it with each h.
        slopes = [mode.value.value.real * mode.multiplier.real for mode in top]
        steady = (
            self.A.triangular
            and (self.generic or len(top) == 1)
            and all(mode.value.real and len(mode.value) == 1 for mode in top)
            and (all(x > 0 for x in slopes) or all(x < 0 for x in slopes))
        )
        y = _chain(block) if len(block) == 1 or steady else None
        if y is None:
            return None
        V = flint.acb_mat([[row[c] for c in block.columns] for row in self.A.basis])
        return _tokens((V * flint.acb_mat([[x] for x in y])).entries())

    def feature(self, value: Block) -> Bounded | None:
        return bounded([row[value.columns[0]] for row in self.H.basis])

    def summed(self, top: list[Mode]) -> Tokens | None:
        alike = all(mode.attention.consensus for mode in top)
        # Of a block of several a = 0 some may be a chain, and grow.
        fixed = (x.multiplier == 1 and (x.value.zero or len(x.attention) == 1) for x in top)
        if self.generic or not (alike or all(fixed)):
            return None
        w = self.fixed_states([mode.attention for mode in top], top[0].value)
        return _tokens([row[0] for row in w])

    def one_feature(self, top: list[Mode]) -> bool:
        """|1 + h a| has a slope in h, and no second h of the block has the same modulus: rank 1,
        whatever A does."""
        value = top[0].value
        if not value.real or _chain(value) is None:
            return False
        attention = (1 - x.attention.value for x in top)
        slopes = (a.real + value.value.real * abs(a) ** 2 for a in attention)
        return not any(slope.contains(0) for slope in slopes)

    def without_mean(self, side: Block) -> bool:
        """A root of unity, by the zeros of A."""
        case = self.case
        if len(side) > 1 or side.consensus or case.n != sum(map(len, case.classes)):
            return False
        for members in case.classes:
            groups = cyclic_groups(case.positive, members)
            if len({len(group) for group in groups}) > 1:
                continue
            for k in range(1, len(groups)):
                s = 1 - (flint.acb(flint.fmpq(2 * k, len(groups)))).exp_pi_i()
                holders = [block for block in self.A.blocks if block.value.overlaps(s)]
                if len(holders) == 1 and holders[0] is side:
                    return True
        return False


def _chain(block: Block) -> list[flint.acb] | None:
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


def _tokens(w: list[flint.acb]) -> Tokens:
    mean = sum(w, flint.acb(0)) / len(w)
    both = bounded([mean, *(x - mean for x in w)])
    return Tokens(both[1:], both[0])


def bounded(v: list[flint.acb]) -> Bounded:
    """v up to scale."""
    top = max((abs(x).upper() for x in v), default=flint.arb(0))
    unit = top.mid() if top.is_finite() and top > 0 else flint.arb(1)
    scaled = [x / unit for x in v]
    value = np.array([complex(x.mid()) for x in scaled])
    off = [float(abs(x - z).upper()) for x, z in zip(scaled, value.tolist(), strict=True)]
    return Bounded(value, np.nextafter(off, np.inf))


def lasts(modes: list[Mode]) -> bool:
    """Whether X_L never is 0: some mode that is there has mu != 0, or two that share one h have
    different mu."""
    sure = [mode for mode in modes if mode.sure]
    if any(not mode.multiplier.contains(0) for mode in sure):
        return True
    simple = [mode for mode in sure if len(mode.attention) == len(mode.value) == 1]
    return any(
        not (x.value.value * (x.attention.value - y.attention.value)).contains(0)
        for x, y in combinations(simple, 2)
        if x.value is y.value
    )


def _beat(winners: list[Mode], losers: list[Mode]) -> bool:
    """Whether a winner exceeds every loser; alone, whether it does not die out."""
    sure = [mode for mode in winners if mode.sure]
    return lasts(sure) and all(any(w.exceeds(x) for w in sure) for x in losers)


def _from_the_first(rows: Balls) -> Balls:
    """The differences to the first row."""
    differences: Balls = (flint.acb_mat(rows) - flint.acb_mat(rows[:1] * len(rows))).tolist()
    return differences


def _spans(T: Balls, row: Sequence[flint.acb]) -> bool:
    """Whether y, T y, T^2 y, ... span everything: then y contains every eigenvalue of T."""
    step = flint.acb_mat(T)
    vectors = [flint.acb_mat(len(T), 1, list(row))]
    for _ in T[1:]:
        vectors.append(step * vectors[-1])
    table = flint.acb_mat([v.entries() for v in vectors])
    return not table.det().contains(0)


def _multiplier(s: flint.acb, h: flint.acb) -> flint.acb:
    """1 + h (1 - s), the narrower of two ways; exact where h or 1 - s is 0."""
    ways = 1 + h * (1 - s), (1 + h) - h * s
    return min(ways, key=lambda z: float(z.real.rad()) + float(z.imag.rad()))


def modes_of(case: Layer, X0: Array | None) -> Iterator[CellModes]:
    """The modes of generic X_0 (None), or of this X_0, by finer and coarser blocks."""
    H_cell = values(case)
    for A in invariant_blocks(departures(case)):
        around_0 = [block.value.contains(0) for block in A.blocks]
        sides = [
            replace(block, value=flint.acb(0), consensus=True) if fixed else block
            for block, fixed in zip(A.blocks, around_0, strict=True)
        ]
        # The eigenvalue 1 occurs as often as A has closed classes: is it alone in its blocks?
        if sum(len(side) for side in sides if side.consensus) == len(case.classes):
            for H in invariant_blocks(H_cell):
                yield CellModes(case, replace(A, blocks=sides), H, X0)


def _coefficients(X0: Array, A: Blocks, H: Blocks) -> Balls:
    """V^-1 X_0 U^-T. Only the rows of a = 1 see what all tokens share: the others are taken of
    the differences to one token, which may be far smaller."""
    start, left = cell_of(X0), flint.acb_mat(A.inverse)
    U = flint.acb_mat(H.inverse).transpose()
    rows: Balls = (left * flint.acb_mat(_from_the_first(start)) * U).tolist()
    means: Balls = (left * flint.acb_mat(start) * U).tolist()
    fixed = {column for side in A.blocks if side.consensus for column in side.columns}
    return [means[i] if i in fixed else row for i, row in enumerate(rows)]


# Balls of so many bits lose next to nothing beside the rounding of the input.
_BITS = 192
# Beyond this side, and so many pairs, the balls would take longer than a verdict in floats is
# worth; beyond that side, longer than the limits where the verdict is known.
LARGEST_SIDE, LARGEST_PAIRS, _KNOWN_SIDE = 64, 1024, 32


def decided_in_cell(case: Layer, start: Entries | None, known: bool = False) -> Decided:
    """For generic X_0 (None), or for a start that is not at consensus. known: the outcome is."""
    outcome, limits = Outcome.UNDECIDED, UNKNOWN
    side = max(case.n, case.d)
    beyond = side > (_KNOWN_SIDE if known else LARGEST_SIDE) or case.n * case.d > LARGEST_PAIRS
    if beyond or case.n == 1:
        return Decided(outcome, limits)
    with at_precision(_BITS):
        for modes in modes_of(case, None if start is None else start.floats):
            if outcome is Outcome.UNDECIDED:
                outcome = modes.outcome()
            limits = merged(limits, second=limits_of(modes, outcome))
            settled = outcome, limits.tends_to, limits.limit_rank
            if {Outcome.UNDECIDED, None}.isdisjoint(settled):
                break
    return Decided(outcome, limits)
