"""The cases that round to the same floats: what no answer in floats can tell apart.

A member of the cell of (A, H, X_0) in binary64 is a case in fractions, the rows of A with the sum 1
exactly, whose entries round to those floats; a float 0 stands for 0 alone. Where two members have
different answers, UNDECIDED is the right one: the pair is the witness.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from random import Random

from .draw import Case, Matrix
from .matrices import Rationals, product
from .moduli import TooHard
from .softmax import softmax
from .system import System
from .truth import Truth, truth
from .worker import patience

# What is spent on one member, on all of them, in seconds, and how many are looked at.
_PATIENCE, _PATIENCE_IN_ALL = 2.0, 4.0
_DRAWN = 12
# Entries move by this share of an ulp at most, halved until the rows of A have room for it.
_SHARE = Fraction(15, 32)
_HALVINGS = 40
_PARTS = (("X0",), ("H",), ("A",), ("A", "H", "X0"))

# Limits that differ by less (relative) are one answer.
_SAME = Fraction(1, 10**6)

Member = tuple[Matrix, Matrix, Matrix]
Answer = tuple[Member, Truth]


def witness(answers: list[Answer], field: str) -> tuple[Member, Member] | None:
    """Two members of one cell whose answers in a field differ, None where there are none."""
    for k, (member, found) in enumerate(answers):
        for other, known in answers[:k]:
            if differ(found, known, field):
                return other, member
    return None


def members_answers(case: Case) -> list[Answer]:
    """Members of the cell of a case in floats, each with what is true of it, while time is left."""
    known: list[Answer] = []
    began = time.process_time()
    for member in members(case):
        if time.process_time() - began > _PATIENCE_IN_ALL:
            break
        with suppress(TooHard), patience(_PATIENCE, TooHard("a member")):
            known.append((member, truth(*member)))
    return known


def differ(first: Truth, second: Truth, field: str) -> bool:
    """Whether two answers differ in a field."""
    x, y = getattr(first, field), getattr(second, field)
    if isinstance(x, frozenset):
        return not x & y
    if isinstance(x, tuple) and isinstance(y, tuple):
        return abs(x[0] - y[0]) > _SAME * max(x[1], y[1])
    return x != y


def members(case: Case) -> Iterator[Member]:
    """The case that was meant, the floats themselves, and cases drawn around them."""
    floats = case.A, case.H, case.X0
    if case.logits is not None:
        yield from _softmax_members(case)
        return
    starts: list[Member] = [([_stochastic(row) for row in case.A], case.H, case.X0)]
    if case.meant is not None:
        starts.insert(0, case.meant)
    starts = [member for member in starts if rounds_to(member, floats)]
    starts += [
        split for member in starts[:1] for split in _split(member) if rounds_to(split, floats)
    ]
    starts += [
        dead for member in starts[:2] for dead in _vanishing(member) if rounds_to(dead, floats)
    ]
    starts += [centred for member in starts if rounds_to(centred := _centred(member), floats)]
    yield from starts
    rng = Random(case.name)
    for k in range(_DRAWN if starts else 0):
        A, H, X0 = starts[0]
        moved = _PARTS[k % len(_PARTS)]
        member = (
            [_moved_row(rng, row, given) for row, given in zip(A, case.A, strict=True)]
            if "A" in moved
            else A,
            _moved(rng, H, case.H) if "H" in moved else H,
            _moved(rng, X0, case.X0) if "X0" in moved else X0,
        )
        if rounds_to(member, floats):
            yield member


def _split(member: Member) -> Iterator[Member]:
    """Two eigenvalues h that round to one, at a boundary h = -2 / (1 + a): |1 + h| of the one and
    |1 + h' a| of the other tie and lead."""
    A, H, X0 = member
    lower = all(not x for i, row in enumerate(A) for x in row[i + 1 :])
    found = [row[i] for i, row in enumerate(A)] if lower else []
    if len(A) == 2:
        found = [A[0][0] + A[1][1] - 1]
    triangular = all(not x for i, row in enumerate(H) for x in row[:i])
    for a in found:
        if not triangular or a in (0, 1) or a <= -1:
            continue
        boundary = -2 / (1 + a)
        h = boundary * (1 + Fraction(1, 2**56))
        other = -(2 + h) / a
        places = [i for i in range(len(H)) if float(H[i][i]) == float(boundary)]
        for i in places:
            for j in places:
                if i != j:
                    moved = [list(row) for row in H]
                    moved[i][i], moved[j][j] = h, other
                    yield A, moved, X0


def _vanishing(member: Member) -> Iterator[Member]:
    """An h that rounds to -1 / a: its mode dies out at once."""
    A, H, X0 = member
    if not all(not x for i, row in enumerate(A) for x in row[i + 1 :]):
        return
    for i, row in enumerate(A):
        for k in range(len(H)):
            if row[i]:
                moved = [list(line) for line in H]
                moved[k][k] = -1 / row[i]
                yield A, moved, X0


def _softmax_members(case: Case) -> Iterator[Member]:
    assert case.logits is not None
    yield case.A, case.H, case.X0
    rng = Random(case.name)
    for _ in range(_DRAWN):
        moved = [[x and _near(rng, x) for x in row] for row in case.logits]
        A = softmax(moved, above=False)
        yield A, _moved(rng, case.H, case.H), _moved(rng, case.X0, case.X0)


def _centred(member: Member) -> Member:
    """The same without consensus: X_0 less its class means, where one class is all there is."""
    A, H, X0 = member
    system = System(A, H)
    if system.classes > 1:
        return member
    mean = product(system.fixed, X0)[0]
    return A, H, [[x - m for x, m in zip(row, mean, strict=True)] for row in X0]


def rounds_to(member: Member, floats: tuple[Rationals, Rationals, Rationals]) -> bool:
    """Whether every entry rounds to its float, zeros to zeros alone, and the rows of A sum to 1."""
    pairs = [
        (x, y)
        for M, N in zip(member, floats, strict=True)
        for rows in zip(M, N, strict=True)
        for x, y in zip(*rows, strict=True)
    ]
    exact = all(sum(row) == 1 for row in member[0])
    return exact and all(Fraction(float(x)) == y and (not x) == (not y) for x, y in pairs)


def ulp(x: Fraction) -> Fraction:
    """The distance to the next float below |x|, x itself a float."""
    size = float(abs(x))
    return Fraction(size) - Fraction(math.nextafter(size, 0.0))


def _stochastic(row: list[Fraction]) -> list[Fraction]:
    """The row with what is missing from 1 put where it rounds away, as far as there is room."""
    left = 1 - sum(row)
    found = list(row)
    for j in sorted(range(len(row)), key=lambda j: -row[j]):
        if not row[j]:
            continue
        room = _SHARE * ulp(row[j])
        step = max(-room, min(room, left))
        found[j] += step
        left -= step
    return found


def _moved(rng: Random, M: Matrix, given: Rationals) -> Matrix:
    return [
        [x if not y else _near(rng, y) for x, y in zip(*rows, strict=True)]
        for rows in zip(M, given, strict=True)
    ]


def _near(rng: Random, x: Fraction, share: Fraction = _SHARE) -> Fraction:
    """As far as it can be as often as in between."""
    step = rng.choice((-16, 16, rng.randint(-16, 16)))
    return x + share * Fraction(step, 16) * ulp(x)


def _moved_row(rng: Random, row: list[Fraction], given: list[Fraction]) -> list[Fraction]:
    """The largest entry takes what the others leave."""
    top = max(range(len(row)), key=lambda j: given[j])
    share = _SHARE
    for _ in range(_HALVINGS):
        found = [
            x if j == top or not y else x + share * Fraction(rng.randint(-16, 16), 16) * ulp(y)
            for j, (x, y) in enumerate(zip(row, given, strict=True))
        ]
        found[top] = 1 - sum(x for j, x in enumerate(found) if j != top)
        if all(Fraction(float(x)) == y for x, y in zip(found, given, strict=True)):
            return found
        share /= 2
    return row
