"""The steps of a decision, chunk by chunk, each on what the one before left open.

  powers     Gelfand's bound g from C, C^2 ... C^64 in float32; 1 + max|h| g < rho_C: SMOOTHING.
  ritz       the dominant subspace of C^8 in float64, with bounds on everything outside it.
  lapack     geev on the quotient, values only.
  discs      enclosures of all eigenvalues, and the zero pattern of A, where the margin is small.
No step but the last decides with a margin under `SAFETY` times its error estimate; what discs do
not separate is undecided.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oversmoothing.simulations.spectra.head_values import SAFETY, HeadTable, HeadValues, head_table
from oversmoothing.simulations.spectra.lapack import (
    class_of,
    decide,
    disc_interval,
    normalised,
    quotient_values,
    values_error,
    values_interval,
)
from oversmoothing.simulations.spectra.powers import centred, first_power, squared
from oversmoothing.simulations.spectra.ritz import quotient_bounds, ritz
from oversmoothing.theory.layer.layer import check_attention
from oversmoothing.theory.support.sizes import Array

Mask = NDArray[np.bool_]

METHODS = ("powers", "ritz", "lapack", "discs", "one token")
CLASSES = ("consensus", "smallest", "other", "tie")

CHUNK = 16
# The first step stops at C^64, or where squaring no longer lowers the bound enough to decide.
_SQUARINGS = 6
# The subspace comes from C^8: what float64 resolves of it goes down to 1e-2 of the largest.
_RITZ_SQUARINGS = 3
_WIDTH = 24
# A head whose last matrices all failed in a step skips it: the same head meets the same outcome.
_PATIENCE = 6


# What becomes of a pair: bounds of rho_Q, and codes: a verdict (`lapack.decide`, 3: one token), the
# place of the step among METHODS and that of the class among CLASSES.
ANSWER = np.dtype(
    [("code", "i1"), ("low", "f8"), ("high", "f8"), ("method", "i1"), ("dominant", "i1")]
)
_OPEN = np.array((2, 0.0, np.inf, -1, len(CLASSES)), dtype=ANSWER)

Answers = NDArray[np.void]


def decide_share(
    A: NDArray[np.floating],
    members: NDArray[np.intp],
    heads: Sequence[HeadValues],
    pairs: NDArray[np.integer],
    method: str,
    dominant: bool,
) -> Answers:
    """Matrices A[members] against heads[pairs], chunk by chunk: ANSWER in the shape of pairs."""
    table = head_table(heads)
    failures = np.zeros((2, len(heads)), dtype=np.intp)
    answers = np.full(pairs.shape, _OPEN)
    for start in range(0, len(members), CHUNK):
        part = slice(start, start + CHUNK)
        which = pairs[part]
        chunk = _Chunk(A[members[part]], heads, table, which, answers[part])
        if chunk.A.shape[-1] == 1:
            chunk.answer[:] = (3, 0.0, 0.0, 4, len(CLASSES))
        elif method == "fast":
            by_powers, by_bounds = (np.any(f[which] < _PATIENCE, axis=1) for f in failures)
            chunk.bounds(by_bounds, by_powers)
        chunk.lapack(dominant)
        if method == "fast":
            for one, step in zip(which, chunk.answer["method"], strict=True):
                failed = np.stack([step != 0, np.isin(step, (2, 3))])
                failures[:, one] = np.where(failed, failures[:, one] + 1, 0)
    return answers


class _Chunk:
    """Matrices A [b, n, n], the heads of each, pairs [b, p], and the growing answer [b, p].

    Raises `InputError` for what is not row-stochastic to the precision of its dtype.
    """

    def __init__(
        self,
        A: NDArray[np.floating],
        heads: Sequence[HeadValues],
        table: HeadTable,
        pairs: NDArray[np.integer],
        answer: Answers,
    ) -> None:
        self.A, self.heads, self.table, self.pairs, self.answer = A, heads, table, pairs, answer
        tolerance = A.shape[-1] * float(np.finfo(A.dtype).eps)
        # NaN fails the comparison.
        if not (A.min() >= 0 and np.abs(A.sum(axis=-1) - 1).max() <= tolerance):
            check_attention(A, tolerance=tolerance)

    def bounds(self, go: Mask, powers_go: Mask) -> None:
        """The steps without LAPACK for the matrices go [b], the first for powers_go [b] alone."""
        A, table, n = self.A, self.table, self.A.shape[-1]
        # Zero entries may make A reducible: the last step looks at the pattern.
        connected = (A > 0).all(axis=-2).any(axis=-1)
        active = np.flatnonzero(go & connected)
        # A disc about 0 shows SMOOTHING alone, and only if some |1 + h_j| exceeds 1.
        hopeful = (table.consensus_low[self.pairs] > 1).any(axis=1)
        first = active[(hopeful & powers_go)[active]]
        if len(first):
            self._powers(first)
        rest = active[(self.answer["code"][active] == 2).any(axis=1)]
        if len(rest) == 0 or n <= 2:
            return
        C, error = centred(A[rest], np.float64)
        powers = first_power(C, error)
        for _ in range(_RITZ_SQUARINGS):
            powers = squared(powers)
        found = ritz(
            C.astype(np.float64, copy=False), powers, min(_WIDTH, n - 1), np.random.default_rng(0)
        )
        which = self.pairs[rest]
        low, high = quotient_bounds(found, table.corners[which], table.largest[which])
        # The h_j are off by their own errors, and |a| < 1.
        doubt = SAFETY * table.error[which]
        self._write(rest, low - doubt, high + doubt, 1)

    def _powers(self, active: NDArray[np.intp]) -> None:
        table = self.table
        powers = first_power(*centred(self.A[active], np.float32))
        before = np.full((len(active), 1), np.inf)
        for step in range(_SQUARINGS + 1):
            if step:
                powers = squared(powers)
            which = self.pairs[active]
            size = (table.largest + SAFETY * table.error)[which]
            g = powers.bound()[:, None]
            high = (1 + size * g) * (1 + 1e-14)
            self._write(active, np.zeros_like(high), high, 0)
            # log ||C^m||^(1/m) falls like 1/m: what is still to come is what the last step gained.
            limit = g * (g / before if step > 1 else np.zeros_like(g))
            with np.errstate(divide="ignore"):
                needed = (table.consensus_low[which] - 1) / size
            on = ((self.answer["code"][active] == 2) & (limit < needed)).any(axis=1)
            if not on.any():
                return
            active, powers, before = active[on], powers.keep(on), g[on]

    def _write(self, rows: NDArray[np.intp], low: Array, high: Array, method: int) -> None:
        """Narrow the bounds of these rows and record what they decide."""
        table, which, answer = self.table, self.pairs[rows], self.answer[rows]
        low = np.maximum(np.maximum(low, table.floor[which]), answer["low"])
        high = np.minimum(np.maximum(high, table.floor[which]), answer["high"])
        code = decide(table.consensus_low[which], table.consensus_high[which], low, high)
        new = answer["code"] == 2
        answer["method"] = np.where(new & (code != 2), method, answer["method"])
        for name, value in (("low", low), ("high", high), ("code", code)):
            answer[name] = np.where(new, value, answer[name])
        self.answer[rows] = answer

    def lapack(self, dominant: bool) -> None:
        """What is left, matrix by matrix; with `dominant` also the classes of NON_SMOOTHING."""
        for row, answer, A in zip(self.pairs, self.answer, self.A, strict=True):
            open_ = answer["code"] == 2
            wanted = np.flatnonzero(open_ | (dominant & (answer["code"] == -1)))
            if len(wanted):
                matrix = normalised(A)
                error = values_error(matrix)
                simple = bool((matrix > 0).all(axis=0).any())
                values = quotient_values(matrix)
            for k in wanted:
                head = self.heads[row[k]]
                if open_[k]:
                    low, high = values_interval(values, head, error)
                    consensus = head.consensus
                    code = int(decide(consensus.low, consensus.high, low, high))
                    step = 2
                    if code == 2 or not simple:
                        code, low, high = disc_interval(matrix, head)
                        step = 3
                    answer[k] = (code, low, high, step, answer["dominant"][k])
                if dominant and answer["code"][k] == -1:
                    answer["dominant"][k] = CLASSES.index(class_of(values, head, error))
            if dominant:
                # One token has no quotient that could dominate.
                answer["dominant"][np.isin(answer["code"], (1, 3))] = 0
                answer["dominant"][np.isin(answer["code"], (0, 2))] = 3
