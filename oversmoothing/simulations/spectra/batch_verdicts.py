"""Verdicts for thousands of attention matrices against the heads that they belong to (T1, T3).

Each step takes what the one before left open, chunk by chunk.
  powers     Gelfand's bound g from C, C^2 ... C^64 in float32; 1 + max|h| g < rho_C: SMOOTHING.
  ritz       the dominant subspace of C^8 in float64, with bounds on everything outside it.
  lapack     geev on the quotient, values only.
  discs      enclosures of all eigenvalues, and the zero pattern of A, where the margin is small.
No step but the last decides with a margin under `SAFETY` times its error estimate; what discs do
not separate is undecided. Everything runs on one BLAS thread.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex128, Float, Float64
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from oversmoothing.simulations.spectra.head_values import (
    CLASSES,
    SAFETY,
    HeadTable,
    HeadValues,
    head_table,
    known_attention,
)
from oversmoothing.simulations.spectra.power_bounds import (
    centred,
    first_power,
    quotient_bounds,
    ritz,
    squared,
)
from oversmoothing.theory.layer.attention import closed_classes, quotient
from oversmoothing.theory.layer.layer import check_attention
from oversmoothing.theory.spectra.layer_discs import EPS, largest_modulus
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict import by_discs
from oversmoothing.theory.verdict.formulas import Outcome

Values = Array | float

# Values alone are trusted to an eigenvalue condition of 1e7, more than trained attention has shown.
# Closer to a tie than that, discs decide.
TRUSTED_CONDITION = 1e7


def normalised(A: Float[np.ndarray, "*batch n n"]) -> Float64[Array, "*batch n n"]:
    """A [n, n] in float64 with each row divided by its sum."""
    double = A.astype(np.float64)
    return np.asarray(double / double.sum(axis=-1, keepdims=True))


def quotient_values(A: Float64[Array, "n n"]) -> Complex128[Complex, " n-1"]:
    """spec(A) without one copy of 1 [n-1], by geev, for A [n, n] with rows summing to 1."""
    return np.linalg.eigvals(quotient(A)).astype(np.complex128)


def values_error(A: Array) -> float:
    """The error to which `quotient_values` is trusted: k eps ||B|| times `TRUSTED_CONDITION`."""
    size = float(np.linalg.norm(A - A.mean(axis=0))) + 4 * EPS * float(np.linalg.norm(A))
    return len(A) * EPS * size * TRUSTED_CONDITION


def decide(
    consensus_low: Values, consensus_high: Values, quotient_low: Values, quotient_high: Values
) -> NDArray[np.int8]:
    """1 SMOOTHING, -1 NON_SMOOTHING, 0 TIE (structure alone gives equal intervals), 2 undecided."""
    low, high = np.subtract(consensus_low, quotient_high), np.subtract(consensus_high, quotient_low)
    known = np.equal(consensus_low, consensus_high) & np.equal(quotient_low, quotient_high)
    return np.select([known & (low == 0), low > 0, high < 0], [0, 1, -1], 2).astype(np.int8)


def values_interval(a: Complex, head: HeadValues, error: float) -> tuple[float, float]:
    """(low, high) of rho_Q from computed values with that error each, `SAFETY` times over."""
    top = largest_modulus(a, head.corners)[0]
    size = float(np.abs(a).max(initial=0.0))
    reach = SAFETY * (head.largest * error + (size + error) * head.error + 4 * EPS * (1 + top))
    return max(top - reach, head.floor), max(top + reach, head.floor)


def disc_interval(A: Array, head: HeadValues) -> tuple[int, float, float]:
    """(verdict code, low, high) by discs of the matrices themselves."""
    decided = by_discs.decide(known_attention(A), head.discs, len(closed_classes(A)) - 1)
    codes = {Outcome.SMOOTHING: 1, Outcome.NON_SMOOTHING: -1, Outcome.TIE: 0}
    return codes.get(decided.outcome, 2), decided.quotient.low, decided.quotient.high


def class_of(a: Complex, head: HeadValues, error: float) -> str:
    """Which a dominates a NON_SMOOTHING pair: 'smallest' real part of spec(A), or 'other'."""
    place = largest_modulus(a, head.corners)[1]
    return "smallest" if a[place].real <= a.real.min() + 2 * error else "other"


Mask = NDArray[np.bool_]

METHODS = ("powers", "ritz", "lapack", "discs", "one token")

CHUNK = 16
# The first step stops at C^64, or where squaring no longer lowers the bound enough to decide.
_SQUARINGS = 6
# The subspace comes from C^8: what float64 resolves of it goes down to 1e-2 of the largest.
_RITZ_SQUARINGS = 3
_WIDTH = 24
# A head whose last matrices all failed in a step skips it: the same head meets the same outcome.
_PATIENCE = 6


# What becomes of a pair: bounds of rho_Q, and codes: a verdict (`decide`, 3: one token), the
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
        else:
            by_powers, by_bounds = (np.any(f[which] < _PATIENCE, axis=1) for f in failures)
            chunk.bounds(by_bounds, by_powers)
        chunk.lapack(dominant)
        for one, step in zip(which, chunk.answer["method"], strict=True):
            failed = np.stack([step != 0, np.isin(step, (2, 3))])
            failures[:, one] = np.where(failed, failures[:, one] + 1, 0)
    return answers


@dataclass
class _Chunk:
    """Matrices A [b, n, n], the heads of each, pairs [b, p], and the growing answer [b, p].

    Raises `InputError` for what is not row-stochastic to the precision of its dtype.
    """

    A: NDArray[np.floating]
    heads: Sequence[HeadValues]
    table: HeadTable
    pairs: NDArray[np.integer]
    answer: Answers

    def __post_init__(self) -> None:
        A = self.A
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
        spectrum = ritz(
            C.astype(np.float64, copy=False), powers, min(_WIDTH, n - 1), np.random.default_rng(0)
        )
        which = self.pairs[rest]
        low, high = quotient_bounds(spectrum, table.corners[which], table.largest[which])
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


# By the codes of `decide`: -1 is the last.
VERDICTS = (
    Outcome.TIE,
    Outcome.SMOOTHING,
    Outcome.UNDECIDED,
    Outcome.TRIVIAL,
    Outcome.NON_SMOOTHING,
)
# Matrices that go together: beyond, a head that skipped a step tries it again.
_SHARE = 16 * CHUNK


@dataclass(frozen=True)
class SpectralVerdicts:
    """One entry a pair, arrays of the shape [m] or [m, p] of `head_of`.

    verdict: SMOOTHING, NON_SMOOTHING, TIE (by exact zeros of H), UNDECIDED (rounding decides) or
    TRIVIAL (n = 1). rho_consensus. quotient_low, quotient_high: bounds of rho_Q, no sharper than
    the decision needed. method: the step that decided, one of METHODS. dominant: one of consensus,
    smallest, other, tie ('' unless asked for): 'tie' also where rounding decides.
    """

    verdict: NDArray[np.str_]
    rho_consensus: Array
    quotient_low: Array
    quotient_high: Array
    method: NDArray[np.str_]
    dominant: NDArray[np.str_]

    @property
    def fallback(self) -> float:
        """The share of pairs that needed LAPACK."""
        return float(np.isin(self.method, ("lapack", "discs")).mean())

    def __str__(self) -> str:
        names, counts = np.unique(self.verdict, return_counts=True)
        said = ", ".join(f"{c} {v}" for v, c in zip(names, counts, strict=True))
        steps = ", ".join(
            f"{100 * float((self.method == step).mean()):.1f} % {step}" for step in METHODS[:4]
        )
        return f"{self.verdict.size} pairs: {said}; decided by {steps}"


def spectral_verdicts(
    attention: NDArray[np.floating],
    heads: Sequence[HeadValues],
    head_of: NDArray[np.integer],
    *,
    dominant: bool = False,
) -> SpectralVerdicts:
    """The verdict of each attention matrix with its head or heads (T1, T3).

    attention [m, n, n], float32 or float64, row-stochastic to its precision; the rows are divided
    by their sums. heads: from `head_values` or `dense_values`. head_of [m] or [m, p]: indices into
    heads. dominant: also say which class dominates. Raises `InputError` for input of another form.
    """
    A = np.asarray(attention)
    if A.ndim != 3 or A.shape[1] != A.shape[2] or A.dtype not in (np.float32, np.float64):
        raise InputError(
            f"attention has shape {list(A.shape)} and dtype {A.dtype}: give [m, n, n] in float32 "
            "or float64"
        )
    index = np.asarray(head_of)
    if index.ndim not in (1, 2) or len(index) != len(A) or index.dtype.kind not in "iu":
        raise InputError(
            f"head_of has shape {list(index.shape)} for {len(A)} matrices: give [m] or [m, p] "
            "integers"
        )
    if index.size and (index.min() < 0 or index.max() >= len(heads)):
        raise InputError(
            f"head_of must lie in 0 ... {len(heads) - 1}: there are {len(heads)} heads"
        )
    pairs = index[:, None] if index.ndim == 1 else index
    # Matrices of one head stay together, so that what its first ones need is learnt once.
    order = np.argsort(pairs[:, 0] if pairs.size else np.zeros(len(A)), kind="stable")
    answers = np.empty(pairs.shape, dtype=ANSWER)
    with threadpool_limits(limits=1):
        for start in range(0, len(order), _SHARE):
            share = order[start : start + _SHARE]
            answers[share] = decide_share(A, share, heads, pairs[share], dominant)
    answers = answers.reshape(index.shape)
    return SpectralVerdicts(
        np.array(VERDICTS)[answers["code"]],
        np.array([head.consensus.shown for head in heads])[index],
        answers["low"].copy(),
        answers["high"].copy(),
        np.array(METHODS)[answers["method"]],
        np.array([*CLASSES, ""])[answers["dominant"]],
    )
