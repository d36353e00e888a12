"""Which modes X_0 contains, and which is largest, for every case that rounds to the same floats.

The modes are pairs of a block of A and one of H (theory.spectra.invariant_blocks): a mode is there
for certain where its coefficients in balls are not 0, absent where zeros of the input make them 0.
Two moduli with one h are compared by |1 + h a|^2 - |1 + h b|^2, whose sign does not suffer from
what the rounding of h does to both (T2b, T3b).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import flint

from oversmoothing.theory.layer.cell import RoundingCell, cell_of
from oversmoothing.theory.spectra.blocks import Block, Blocks, invariant_blocks
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome

Balls = list[list[flint.acb]]


@dataclass(frozen=True)
class Side:
    """A block of A: s = 1 - a and a, in balls. consensus: a = 1 exactly."""

    block: Block
    s: flint.acb
    a: flint.acb
    consensus: bool


@dataclass(frozen=True)
class Mode:
    """A pair of blocks. sure: some part of it is there; full: if it is, with every eigenvalue h of
    its block."""

    attention: Side
    value: Block
    multiplier: flint.acb
    sure: bool
    full: bool

    @property
    def modulus(self) -> flint.arb:
        return abs(self.multiplier)

    def exceeds(self, other: "Mode") -> bool:
        """|mu| > |mu'| beyond doubt, for the largest of the modes that each stands for."""
        if self.modulus > other.modulus:
            return True
        if other.value is not self.value or not self.full:
            return False
        return bool(_difference(self, other) > 0)

    def equals(self, other: "Mode") -> bool:
        """The same modulus by structure: one h or its conjugate and a = 1 both, or 1 + 0."""
        if self.multiplier == 1 and other.multiplier == 1:
            return True
        if not (self.attention.consensus and other.attention.consensus):
            return False
        if self.value is other.value:
            return self.full and other.full
        return other.value.columns == self.value.conjugate


def _difference(first: Mode, second: Mode) -> flint.arb:
    """|1 + h a|^2 - |1 + h b|^2 over one h, up to a positive factor."""
    h, s, t = first.value.value, first.attention.s, second.attention.s
    size = h.real * h.real + h.imag * h.imag
    gap = t - s
    other = second.multiplier.conjugate() * h * gap
    return 2 * other.real + size * (gap.real * gap.real + gap.imag * gap.imag)


@dataclass(frozen=True)
class Modes:
    """The modes of one case: those of consensus and those of the differences between tokens.

    coefficients: V^-1 X_0 U^-T in balls, None for generic X_0, which contains everything.
    """

    cell: RoundingCell
    A: Blocks
    H: Blocks
    sides: list[Side]
    coefficients: Balls | None

    def part(self, side: Side, value: Block) -> Balls:
        """The coefficients of a pair of blocks [m, p]; of generic X_0 some that are not 0."""
        if self.coefficients is None:
            return [[flint.acb(1)] * len(value) for _ in side.block.columns]
        return [[self.coefficients[i][j] for j in value.columns] for i in side.block.columns]

    def all_modes(self) -> list[Mode]:
        """Those of every pair that may be there."""
        return [
            mode
            for side in self.sides
            for value in self.H.blocks
            if (mode := self._mode(side, value, self.part(side, value))) is not None
        ]

    def consensus(self) -> list[Mode]:
        return [mode for mode in self.all_modes() if mode.attention.consensus]

    def quotient(self) -> list[Mode]:
        """The others, and the differences between class means."""
        modes = [mode for mode in self.all_modes() if not mode.attention.consensus]
        fixed = [side for side in self.sides if side.consensus]
        if len(self.cell.case.classes) == 1:
            return modes
        for value in self.H.blocks:
            if self.coefficients is None:
                rows = self.part(fixed[0], value)
            else:
                rows = _from_the_first(self.fixed_states(fixed, value))
            mode = self._mode(fixed[0], value, rows)
            if mode is not None:
                modes.append(mode)
        return modes

    def fixed_states(self, sides: Sequence[Side], value: Block) -> Balls:
        """sum of V C over some blocks of A, [n, p] on the columns of one block of H."""
        columns = [column for side in sides for column in side.block.columns]
        V = flint.acb_mat([[row[column] for column in columns] for row in self.A.basis])
        C = flint.acb_mat([row for side in sides for row in self.part(side, value)])
        states: Balls = (V * C).tolist()
        return states

    def _mode(self, side: Side, value: Block, rows: Balls) -> Mode | None:
        entries = [x for row in rows for x in row]
        if all(x == 0 for x in entries):
            return None
        sure = any(not x.contains(0) for x in entries)
        full = self.coefficients is None or len(value) == 1
        if len(side.block) == 1 or side.consensus:
            full = full or any(_spans(value.T, row) for row in rows)
        return Mode(side, value, _multiplier(side, value.value), sure, full)

    def outcome(self) -> Outcome:
        """rho_C against rho_Q over what is there (T4e), UNDECIDED where the cell does not agree."""
        consensus, quotient = self.consensus(), self.quotient()
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
        """The modes that lead, of equal moduli or too close to tell; while none of them is there
        for certain and lasts, also those that lead where all of these are missing."""
        left = self.all_modes()
        while left:
            top = [mode for mode in left if not any(x.exceeds(mode) for x in left)]
            yield top
            if any(mode.sure and not mode.multiplier.contains(0) for mode in top):
                return
            left = [mode for mode in left if mode not in top]
        yield []


def lasts(modes: list[Mode]) -> bool:
    """Whether X_L never is 0: some mode that is there has mu != 0, or two that share one h have
    different mu."""
    sure = [mode for mode in modes if mode.sure]
    if any(not mode.multiplier.contains(0) for mode in sure):
        return True
    simple = [mode for mode in sure if len(mode.attention.block) == len(mode.value) == 1]
    return any(
        x.value is y.value and not (x.value.value * (x.attention.s - y.attention.s)).contains(0)
        for x, y in combinations(simple, 2)
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


def _multiplier(side: Side, h: flint.acb) -> flint.acb:
    """1 + h a, the narrower of two ways; exact where h or a is 0."""
    ways = 1 + h * side.a, (1 + h) - h * side.s
    return min(ways, key=lambda z: float(z.real.rad()) + float(z.imag.rad()))


def modes_of(cell: RoundingCell, X0: Array | None) -> Iterator[Modes]:
    """The modes of generic X_0 (None), or of this X_0, by finer and coarser blocks."""
    for A in invariant_blocks(cell.departures):
        sides = _sides(cell, A)
        if sides is not None:
            for H in invariant_blocks(cell.value):
                coefficients = None if X0 is None else _coefficients(X0, A, sides, H)
                yield Modes(cell, A, H, sides, coefficients)


def _sides(cell: RoundingCell, A: Blocks) -> list[Side] | None:
    """None where the eigenvalue 1, as often as A has closed classes, is not alone in its blocks."""
    fixed = [block for block in A.blocks if block.value.contains(0)]
    if sum(map(len, fixed)) != len(cell.case.classes):
        return None
    sides = []
    for block in A.blocks:
        s = flint.acb(0) if block in fixed else block.value
        sides.append(Side(block, s, 1 - s, block in fixed))
    return sides


def _coefficients(X0: Array, A: Blocks, sides: list[Side], H: Blocks) -> Balls:
    """V^-1 X_0 U^-T. Only the rows of a = 1 see what all tokens share: the others are taken of
    the differences to one token, which may be far smaller."""
    start, left = cell_of(X0), flint.acb_mat(A.inverse)
    U = flint.acb_mat(H.inverse).transpose()
    rows: Balls = (left * flint.acb_mat(_from_the_first(start)) * U).tolist()
    means: Balls = (left * flint.acb_mat(start) * U).tolist()
    fixed = {column for side in sides if side.consensus for column in side.block.columns}
    return [means[i] if i in fixed else row for i, row in enumerate(rows)]
