"""Verdicts for thousands of attention matrices against the heads that they belong to (T1, T3).

Each step takes what the one before left open.
  powers     Gelfand's bound g from C, C^2 ... C^64 in float32; 1 + max|h| g < rho_C: SMOOTHING.
  lapack     geev on the quotient, values only.
  discs      enclosures of all eigenvalues, and the zero pattern of A, where the margin is small.
LAPACK decides with no margin under `SAFETY` times its error estimate; what discs do not separate is
undecided. Everything runs on one BLAS thread.

C = A - 1 w^T has the spectrum of A but for the eigenvalue 1, which becomes 1 - w^T 1 (Brauer): with
w the column means, as computed, it is about 0, and rounding in w is harmless. Every eigenvalue of C
is at most ||C^m||_F^(1/m) in modulus (Gelfand). Powers are formed by repeated squaring, each scaled
to norm 1, with a bound on what rounding did to them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Complex128, Float, Float64
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from oversmoothing.simulations.spectra.head_values import SAFETY, HeadValues, known_attention
from oversmoothing.theory.layer.attention import closed_classes, quotient
from oversmoothing.theory.layer.layer import check_attention
from oversmoothing.theory.spectra.layer_discs import EPS, largest_modulus
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict import by_discs
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of

# Values alone are trusted to an eigenvalue condition of 1e7, more than trained attention has shown.
# Closer to a tie than that, discs decide.
TRUSTED_CONDITION = 1e7

CHUNK = 16
# Powers stop at C^64, or where squaring no longer lowers the bound enough to decide.
_SQUARINGS = 6

# What `spectral_verdicts` says of a pair.
_ANSWER = [
    ("verdict", "U13"), ("rho_consensus", "f8"), ("quotient_low", "f8"), ("quotient_high", "f8"),
    ("method", "U9"), ("dominant", "U9"),
]  # fmt: skip


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


def values_interval(a: Complex, head: HeadValues, error: float) -> tuple[float, float]:
    """(low, high) of rho_Q from computed values with that error each, `SAFETY` times over."""
    top = largest_modulus(a, head.corners)[0]
    size = float(np.abs(a).max(initial=0.0))
    reach = SAFETY * (head.largest * error + (size + error) * head.error + 4 * EPS * (1 + top))
    return max(top - reach, head.floor), max(top + reach, head.floor)


def class_of(a: Complex, head: HeadValues, error: float) -> str:
    """Which a dominates a NON_SMOOTHING pair: 'smallest' real part of spec(A), or 'other'."""
    place = largest_modulus(a, head.corners)[1]
    return "smallest" if a[place].real <= a.real.min() + 2 * error else "other"


Batch = Float[np.ndarray, "b n n"]
Each = Float64[Array, " b"]
# Roundings on the way from A to C: a pairwise sum over a row, a division, a subtraction.
_CENTRING = 32


class Powers:
    """C^m = exp(log_scale) power, with ||power||_F = 1, for a batch of b matrices.

    power [b, n, n]; log_scale [b]; error [b]: bound on the Frobenius norm of what rounding did to
    `power`; m: the exponent.
    """

    def __init__(
        self, X: Batch, rounding: Each, log_scale: Array | float = 0.0, m: int = 1
    ) -> None:
        """Of X = exp(-log_scale) C^m; rounding [b]: the same bound for X."""
        size, unit = norms(X), float(np.finfo(X.dtype).eps) / 2
        # Where X vanishes to rounding, all that is known is the rounding error itself.
        small = size <= rounding
        scale = np.where(small, rounding, size) * (1 + 4 * X.shape[-1] * unit)
        self.power = X * (1 / scale).astype(X.dtype)[:, None, None]
        self.error = np.where(small, 1.0, rounding / scale) + 4 * unit
        self.log_scale, self.m = log_scale + np.log(scale), m

    @staticmethod
    def of_attention(A: Batch) -> "Powers":
        """C for A [b, n, n], in its precision, with rows divided by their sums."""
        X = A / A.sum(axis=-1, keepdims=True)
        mean, unit = X.mean(axis=-2, keepdims=True), float(np.finfo(A.dtype).eps) / 2
        X -= mean
        wide = np.sqrt(np.square(mean, dtype=np.float64).sum(axis=(-2, -1)))
        return Powers(X, _CENTRING * unit * (norms(X) + np.sqrt(A.shape[-1]) * wide))

    def squared(self, which: NDArray[np.bool_] | slice = slice(None)) -> "Powers":
        """C^(2m) of some: ||fl(X X) - X X||_F <= n u ||X||_F^2 for any order of summation."""
        X, error = self.power[which], self.error[which]
        unit = float(np.finfo(X.dtype).eps) / 2
        rounding = 2 * error + error**2 + 1.02 * X.shape[-1] * unit
        return Powers(X @ X, rounding, 2 * self.log_scale[which], 2 * self.m)

    def bound(self) -> Each:
        """||C^m||_F^(1/m) with its rounding error, [b]: an upper bound on the spectral radius."""
        result: Array = np.exp((self.log_scale + np.log1p(self.error)) / self.m) * (1 + 1e-14)
        return result


def norms(X: Float[np.ndarray, "b _ _"]) -> Each:
    """Frobenius norms [b]."""
    flat = X.reshape(len(X), -1)
    return np.asarray(np.sqrt(np.vecdot(flat, flat).astype(np.float64)))


def _powers(A: NDArray[np.floating], consensus: Array, size: Array) -> Array:
    """Upper bounds of rho_Q [b, p], by discs about 0, for A [b, n, n] against heads of these lower
    bounds of rho_C and upper bounds of max|h|, both [b, p]; infinite where none is looked for."""
    highest = np.full(size.shape, np.inf)
    # Zero entries may make A reducible: the pattern is looked at. A disc about 0 shows SMOOTHING
    # alone, and only if some |1 + h_j| exceeds 1.
    active = np.flatnonzero((A > 0).all(axis=-2).any(axis=-1) & (consensus > 1).any(axis=1))
    if len(active) == 0:
        return highest
    powers = Powers.of_attention(A[active].astype(np.float32))
    before = np.full((len(active), 1), np.inf)
    for step in range(_SQUARINGS + 1):
        g = powers.bound()[:, None]
        highest[active] = np.minimum(highest[active], (1 + size[active] * g) * (1 + 1e-14))
        # log ||C^m||^(1/m) falls like 1/m: what is still to come is what the last step gained.
        limit = g * (g / before if step > 1 else np.zeros_like(g))
        with np.errstate(divide="ignore"):
            needed = (consensus[active] - 1) / size[active]
        on = np.any((highest[active] >= consensus[active]) & (limit < needed), axis=1)
        if step == _SQUARINGS or not on.any():
            break
        active, powers, before = active[on], powers.squared(on), g[on]
    return highest


def _by_values(A: NDArray[np.floating], heads: Sequence[HeadValues]) -> list[tuple[object, ...]]:
    """An answer each, from the eigenvalues of A [n, n] or, where the margin is small, by discs."""
    matrix = normalised(A)
    a, error = quotient_values(matrix), values_error(matrix)
    simple = bool((matrix > 0).all(axis=0).any())
    answers: list[tuple[object, ...]] = []
    for head in heads:
        (low, high), method, consensus = values_interval(a, head, error), "lapack", head.consensus
        outcome = outcome_of(consensus.low - high, consensus.high - low)
        if outcome is Outcome.UNDECIDED or not simple:
            decided = by_discs.decide(
                known_attention(matrix), head.discs, len(closed_classes(matrix)) - 1
            )
            outcome, method = decided.outcome, "discs"
            low, high = decided.quotient.low, decided.quotient.high
        if outcome is Outcome.NON_SMOOTHING:
            dominant = class_of(a, head, error)
        else:
            dominant = "consensus" if outcome is Outcome.SMOOTHING else "tie"
        answers.append((outcome, consensus.shown, low, high, method, dominant))
    return answers


def spectral_verdicts(
    attention: NDArray[np.floating], heads: Sequence[HeadValues], head_of: NDArray[np.integer]
) -> "np.recarray[Any, Any]":
    """The verdict of each attention matrix with its head or heads, and what dominates (T1, T3).

    attention [m, n, n], float32 or float64, row-stochastic to its precision; the rows are divided
    by their sums. heads: from `head_values` or `dense_values`. head_of [m] or [m, p]: indices into
    heads. Raises `InputError` for input of another form.

    A record a pair, of the shape of head_of. verdict: SMOOTHING, NON_SMOOTHING, TIE (by exact zeros
    of H), UNDECIDED (rounding decides) or TRIVIAL (n = 1). rho_consensus. quotient_low,
    quotient_high: bounds of rho_Q, no sharper than the decision needed. method: the step that
    decided, or "one token". dominant: one of consensus, smallest, other, tie, where 'tie' also says
    that rounding decides.
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
    tolerance = A.shape[-1] * float(np.finfo(A.dtype).eps)
    pairs = index[:, None] if index.ndim == 1 else index
    lowest = np.array([head.consensus.low for head in heads])
    sizes = np.array([head.largest + SAFETY * head.error for head in heads])
    floors = np.array([head.floor for head in heads])
    one = np.array(("TRIVIAL", 0, 0, 0, "one token", "consensus"), _ANSWER)
    answers = np.full(pairs.shape, one)
    answers["rho_consensus"] = np.array([head.consensus.shown for head in heads])[pairs]
    with threadpool_limits(limits=1):
        for start in range(0, len(A), CHUNK):
            part = slice(start, start + CHUNK)
            which, answer = pairs[part], answers[part]
            check_attention(A[part], tolerance=tolerance)
            if A.shape[-1] == 1:
                continue
            high = _powers(A[part], lowest[which], sizes[which])
            shown = high < lowest[which]
            answer["verdict"], answer["method"] = Outcome.SMOOTHING, "powers"
            answer["quotient_low"], answer["quotient_high"] = floors[which], high
            for k in np.flatnonzero(~shown.all(axis=1)):
                left = np.flatnonzero(~shown[k])
                answer[k, left] = _by_values(A[start + k], [heads[j] for j in which[k, left]])
    return answers.reshape(index.shape).view(np.recarray)
