"""SMOOTHING or not, for many attention matrices at once: bounds first, LAPACK where they stop.

The steps are in `simulations.spectra.steps`. Everything runs on one BLAS thread; processes > 1
shares the matrices out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from oversmoothing.simulations.spectra.head_values import HeadValues
from oversmoothing.simulations.spectra.steps import ANSWER, CHUNK, CLASSES, METHODS, decide_share
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome

# By the codes of `lapack.decide`: -1 is the last.
VERDICTS = (
    Outcome.TIE,
    Outcome.SMOOTHING,
    Outcome.UNDECIDED,
    Outcome.TRIVIAL,
    Outcome.NON_SMOOTHING,
)
# Matrices that one worker takes at a time.
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
    method: str = "fast",
    dominant: bool = False,
    processes: int = 1,
) -> SpectralVerdicts:
    """The verdict of each attention matrix with its head or heads (T1, T3).

    attention [m, n, n], float32 or float64, row-stochastic to its precision; the rows are divided
    by their sums. heads: from `head_values` or `dense_values`. head_of [m] or [m, p]: indices into
    heads. method 'fast' (bounds, Ritz values, LAPACK last) or 'lapack' (LAPACK for all). dominant:
    also say which class dominates. processes: single-threaded worker processes to share the work.
    Raises `InputError` for input of another form.
    """
    if method not in ("fast", "lapack"):
        raise InputError(f"method '{method}' is not known: use 'fast' or 'lapack'")
    if processes < 1:
        raise InputError(f"processes is {processes}: it must be at least 1")
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
    tasks = [order[start : start + _SHARE] for start in range(0, len(order), _SHARE)]
    if processes == 1:
        with threadpool_limits(limits=1):
            parts = [decide_share(A, t, heads, pairs[t], method, dominant) for t in tasks]
    else:
        parts = Parallel(n_jobs=processes, inner_max_num_threads=1, max_nbytes="1M")(
            delayed(decide_share)(A[t], np.arange(len(t)), heads, pairs[t], method, dominant)
            for t in tasks
        )
    found = np.empty(pairs.shape, dtype=ANSWER)
    for task, part in zip(tasks, parts, strict=True):
        found[task] = part
    found = found.reshape(index.shape)
    return SpectralVerdicts(
        np.array(VERDICTS)[found["code"]],
        np.array([head.consensus.shown for head in heads])[index],
        found["low"].copy(),
        found["high"].copy(),
        np.array(METHODS)[found["method"]],
        np.array([*CLASSES, ""])[found["dominant"]],
    )
