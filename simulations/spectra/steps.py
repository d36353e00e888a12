"""The steps of a decision, chunk by chunk, each on what the one before left open.

  powers     Gelfand's bound g from C, C^2 ... C^64 in float32; 1 + max|h| g < rho_C: SMOOTHING.
  ritz       the dominant subspace of C^8 in float64, with bounds on everything outside it.
  lapack     geev on the quotient, values only.
  condition  all condition numbers, and the zero pattern of A, where the margin is still too small.
No step decides with a margin under `SAFETY` times its error estimate, and what the last one cannot
separate is undecided.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversmoothing.simulations.spectra.head_values import SAFETY, HeadTable, HeadValues, head_table
from oversmoothing.simulations.spectra.lapack import (
    class_of,
    conditioned_interval,
    decide,
    normalised,
    quotient_values,
    values_error,
    values_interval,
)
from oversmoothing.simulations.spectra.powers import Powers, centred, first_power, squared
from oversmoothing.simulations.spectra.ritz import quotient_bounds, ritz
from oversmoothing.theory.layer.input_checks import check_attention
from oversmoothing.theory.support.arrays import Array

Codes = NDArray[np.int8]
Mask = NDArray[np.bool_]

METHODS = ("powers", "ritz", "lapack", "condition", "one token")
CLASSES = ("consensus", "smallest", "other", "tie")

CHUNK = 16
# The first step stops at C^64, or where squaring no longer lowers the bound enough to decide.
_SQUARINGS = 6
# The subspace comes from C^8: what float64 resolves of it goes down to 1e-2 of the largest.
_RITZ_SQUARINGS = 3
_WIDTH = 24
# A head whose last matrices all failed in a step skips it: the same head meets the same outcome.
_PATIENCE = 6


@dataclass
class Answers:
    """The growing answer of one chunk, [b, p] each."""

    code: Codes
    low: Array
    high: Array
    method: Codes
    dominant: NDArray[np.int8]


def decide_share(
    A: NDArray[np.floating],
    members: NDArray[np.intp],
    heads: Sequence[HeadValues],
    pairs: NDArray[np.integer],
    method: str,
    dominant: bool,
) -> Answers:
    """Matrices A[members] against heads[pairs], chunk by chunk."""
    table = head_table(heads)
    failures = np.zeros((2, len(heads)), dtype=np.intp)
    parts = []
    for start in range(0, len(members), CHUNK):
        chunk = A[members[start : start + CHUNK]]
        which = pairs[start : start + CHUNK]
        _check(chunk)
        answer = _empty(which.shape)
        if chunk.shape[-1] == 1:
            answer.code[:], answer.method[:] = 3, 4
            answer.high[:] = 0.0
        elif method == "fast":
            by_powers = np.any(failures[0][which] < _PATIENCE, axis=1)
            by_bounds = np.any(failures[1][which] < _PATIENCE, axis=1)
            _bounds(chunk, table, which, answer, by_bounds, by_powers)
        _lapack(chunk, heads, which, answer, dominant)
        if method == "fast":
            for one, step in zip(which, answer.method, strict=True):
                failed = np.stack([step != 0, np.isin(step, (2, 3))])
                failures[:, one] = np.where(failed, failures[:, one] + 1, 0)
        parts.append(answer)
    names = ("code", "low", "high", "method", "dominant")
    return Answers(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _empty(shape: tuple[int, ...]) -> Answers:
    return Answers(
        np.full(shape, 2, dtype=np.int8),
        np.zeros(shape),
        np.full(shape, np.inf),
        np.full(shape, -1, dtype=np.int8),
        np.full(shape, len(CLASSES), dtype=np.int8),
    )


def _check(A: NDArray[np.floating]) -> None:
    """Refuse what is not row-stochastic to the precision of its dtype."""
    tolerance = A.shape[-1] * float(np.finfo(A.dtype).eps)
    sums = A.sum(axis=-1)
    # NaN fails the comparison.
    if not (A.min() >= 0 and np.abs(sums - 1).max() <= tolerance):
        check_attention(A, tolerance=tolerance)


def _bounds(
    A: NDArray[np.floating],
    table: HeadTable,
    pairs: NDArray[np.integer],
    answer: Answers,
    go: Mask,
    powers_go: Mask,
) -> None:
    """The steps without LAPACK for the matrices go [b], the first for powers_go [b] of them alone.

    What they decide is written to answer.
    """
    n = A.shape[-1]
    # Zero entries may make A reducible: the last step looks at the pattern.
    connected = (A > 0).all(axis=-2).any(axis=-1)
    active = np.flatnonzero(go & connected)
    # A disc about 0 shows SMOOTHING alone, and only if some |1 + h_j| exceeds 1.
    hopeful = (table.consensus_low[pairs] > 1).any(axis=1)
    first = active[(hopeful & powers_go)[active]]
    if len(first):
        _powers(A, first, table, pairs, answer)
    rest = active[(answer.code[active] == 2).any(axis=1)]
    if len(rest) == 0 or n <= 2:
        return
    C, error = centred(A[rest], np.float64)
    powers = first_power(C, error)
    for _ in range(_RITZ_SQUARINGS):
        powers = squared(powers)
    found = ritz(
        C.astype(np.float64, copy=False), powers, min(_WIDTH, n - 1), np.random.default_rng(0)
    )
    which = pairs[rest]
    low, high = quotient_bounds(found, table.corners[which], table.largest[which])
    # The h_j are off by their own errors, and |a| < 1.
    doubt = SAFETY * table.error[which]
    low, high = low - doubt, high + doubt
    _write(answer, rest, table, which, low, high, 1)


def _powers(
    A: NDArray[np.floating],
    active: NDArray[np.intp],
    table: HeadTable,
    pairs: NDArray[np.integer],
    answer: Answers,
) -> None:
    C, error = centred(A[active], np.float32)
    powers: Powers = first_power(C, error)
    before = np.full((len(active), 1), np.inf)
    for step in range(_SQUARINGS + 1):
        if step:
            powers = squared(powers)
        which = pairs[active]
        size = (table.largest + SAFETY * table.error)[which]
        g = powers.bound()[:, None]
        high = (1 + size * g) * (1 + 1e-14)
        _write(answer, active, table, which, np.zeros_like(high), high, 0)
        # log ||C^m||^(1/m) falls like 1/m: what is still to come is what the last step gained.
        limit = g * (g / before if step > 1 else np.zeros_like(g))
        with np.errstate(divide="ignore"):
            needed = (table.consensus_low[which] - 1) / size
        on = ((answer.code[active] == 2) & (limit < needed)).any(axis=1)
        if not on.any():
            return
        active, powers, before = active[on], powers.keep(on), g[on]


def _write(
    answer: Answers,
    rows: NDArray[np.intp],
    table: HeadTable,
    which: NDArray[np.integer],
    low: Array,
    high: Array,
    method: int,
) -> None:
    """Narrow the bounds of these rows and record what they decide."""
    low = np.maximum(np.maximum(low, table.floor[which]), answer.low[rows])
    high = np.minimum(np.maximum(high, table.floor[which]), answer.high[rows])
    code = decide(table.consensus_low[which], table.consensus_high[which], low, high)
    new = answer.code[rows] == 2
    answer.low[rows] = np.where(new, low, answer.low[rows])
    answer.high[rows] = np.where(new, high, answer.high[rows])
    answer.method[rows] = np.where(new & (code != 2), method, answer.method[rows])
    answer.code[rows] = np.where(new, code, answer.code[rows])


def _lapack(
    A: NDArray[np.floating],
    heads: Sequence[HeadValues],
    pairs: NDArray[np.integer],
    answer: Answers,
    dominant: bool,
) -> None:
    """What is left, matrix by matrix; with `dominant` also the classes of NON_SMOOTHING pairs."""
    for i, row in enumerate(pairs):
        open_ = answer.code[i] == 2
        classes = dominant & (answer.code[i] == -1)
        if (open_ | classes).any():
            matrix = normalised(A[i])
            error = values_error(matrix)
            simple = bool((matrix > 0).all(axis=0).any())
            values = quotient_values(matrix)
            for k in np.flatnonzero(open_ | classes):
                head = heads[row[k]]
                if open_[k]:
                    _decide_one(answer, (i, int(k)), matrix, head, values, error, simple)
                if dominant and answer.code[i, k] == -1:
                    name = class_of(values, head, error)
                    answer.dominant[i, k] = CLASSES.index(name)
        if dominant:
            code = answer.code[i]
            # One token has no quotient that could dominate.
            answer.dominant[i][(code == 1) | (code == 3)] = 0
            answer.dominant[i][(code == 0) | (code == 2)] = 3


def _decide_one(
    answer: Answers,
    place: tuple[int, int],
    matrix: Array,
    head: HeadValues,
    values: NDArray[np.complex128],
    error: float,
    simple: bool,
) -> None:
    low, high = values_interval(values, head, error)
    consensus = head.consensus
    code = int(decide(np.array(consensus.low), np.array(consensus.high), low, high))  # type: ignore[arg-type]
    step = 2
    if code == 2 or not simple:
        code, low, high = conditioned_interval(matrix, head)[:3]
        step = 3
    answer.code[place], answer.low[place], answer.high[place] = code, low, high
    answer.method[place] = step
