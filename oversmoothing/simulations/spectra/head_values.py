"""Verdicts for thousands of attention matrices against the heads that they belong to (T1, T3).

Each step takes what the one before left open.
  powers     Gelfand's bound g from C, C^2 ... C^64 in float32; 1 + max|h| g < rho_C: SMOOTHING.
  lapack     geev on the quotient, values only; of a causal A its diagonal.
  discs      enclosures of all eigenvalues, and the zero pattern of A, where the margin is small.
LAPACK decides with no margin under `SAFETY` times its error estimate, which is no bound. What
discs do not separate is undecided. Everything runs on one BLAS thread.

C = A - 1 w^T has the spectrum of A but for the eigenvalue 1, which becomes 1 - w^T 1 (Brauer): with
w the column means, as computed, it is about 0, and rounding in w is harmless. Every eigenvalue of C
is at most ||C^m||_F^(1/m) in modulus (Gelfand). Powers are formed by repeated squaring, each scaled
to norm 1, with a bound on what rounding did to them.

|1 + h a| is convex in h, so that only the corners of the convex hull of the h_j can be the largest
for any a. A head of rank r < d has d - r eigenvalues 0 exactly: their modes have modulus 1 whatever
a is, so that neither radius is below 1.

`layer_dominance` is reading E2 of Table 1 of arXiv 2401.04301: one case is an (image, layer); A is
the mean over the heads, H the whole value-projection product, and the dominating eigenvalue is the
largest |1 + h_j a_i| over ALL pairs (j, i) (T1a). Where the heads share one H, I + H (x) mean(A) is
the layer's operator, exactly, up to LN and the FFN. Spectra are complex in general. "smallest" is
the class of the eigenvalue of A with the smallest real part, which is the paper's lambda_1 where
the spectrum is real; another eigenvalue may win when it is not (T3a), the class "other".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Complex128, Float, Float64, Inexact
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from oversmoothing.theory.layer.attention import closed_classes
from oversmoothing.theory.layer.layer import check_attention
from oversmoothing.theory.spectra import layer_discs
from oversmoothing.theory.spectra.discs import Discs, Failure
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict import by_discs, formulas

CLASSES = ("consensus", "smallest", "other", "tie")
# A margin counts where it exceeds this many error estimates.
SAFETY = 10.0


@dataclass(frozen=True)
class HeadValues:
    """spec(H) of one head.

    discs: of all d eigenvalues, exact zeros included. corners [v]: complex, the vertices of the
    hull of the others, in the closed upper half plane and below it alike. floor: 1.0 where an exact
    zero is among the eigenvalues, else 0.0. consensus: rho_C. error: the largest radius of a disc.
    """

    discs: Discs
    corners: Complex
    floor: float
    consensus: layer_discs.Interval
    error: float

    @property
    def largest(self) -> float:
        """max |h_j|."""
        return float(np.abs(self.corners).max(initial=0.0))


def head_values(W_V: Array, W_O: Array) -> HeadValues:
    """The head with H = (W_V W_O)^T, W_V [d, r], W_O [r, d]: core r x r and d - r exact zeros.

    Raises `InputError` for factors of other shapes or with entries that are not finite.
    """
    first, second = np.asarray(W_V, dtype=np.float64), np.asarray(W_O, dtype=np.float64)
    if first.ndim != 2 or second.shape != first.shape[::-1] or first.size == 0:
        raise InputError(
            f"W_V and W_O have shapes {list(first.shape)} and {list(second.shape)}; a head needs "
            "[d, r] and [r, d]"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("W_V and W_O must be finite: replace NaN and infinite entries")
    return _values(layer_discs.head_discs(first, second), (first @ second).T)


def dense_values(H: Array) -> HeadValues:
    """The same for a whole H [d, d] (several heads together): no eigenvalue is known exactly."""
    whole = np.asarray(H, dtype=np.float64)
    return _values(layer_discs.value_discs(whole), whole)


def _values(spectrum: Discs | Failure, H: Array) -> HeadValues:
    discs = known_values(spectrum, H)
    zero = (discs.radii == 0) & (discs.centres == 0)
    return HeadValues(
        discs,
        hull_corners(discs.centres[~zero]),
        1.0 if zero.any() else 0.0,
        layer_discs.consensus_radius(discs),
        float(discs.radii.max(initial=0.0)),
    )


def known_attention(A: Array) -> Discs:
    """Discs of spec(A) without one 1; where there are none, all within the unit disc."""
    parts = None if A.all() else layer_discs.attention_by_parts(*layer_discs.normalised(A))
    discs = layer_discs.attention_discs(A) if parts is None else parts
    return layer_discs.within_unit(A) if isinstance(discs, Failure) else discs


def known_values(discs: Discs | Failure, H: Array) -> Discs:
    """Discs of spec(H) where they were found, else all within the norm of H."""
    return layer_discs.within_norm(H) if isinstance(discs, Failure) else discs


def hull_corners(points: Inexact[np.ndarray, " k"]) -> Complex128[Complex, " v"]:
    """The vertices of the convex hull of complex points [k], by Andrew's monotone chain.

    A point that rounding places on an edge may be kept; a true vertex is never lost by more than
    rounding.
    """
    order = sorted({(float(p.real), float(p.imag)) for p in points})
    if len(order) <= 2:
        return np.array([complex(*p) for p in order], dtype=np.complex128)
    vertices = _chain(order) + _chain(order[::-1])
    return np.array([complex(*p) for p in vertices], dtype=np.complex128)


def _chain(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """One side of the hull, without its last point."""
    kept: list[tuple[float, float]] = []
    for p in points:
        while len(kept) > 1:
            (ax, ay), (bx, by) = kept[-2], kept[-1]
            if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0:
                break
            kept.pop()
        kept.append(p)
    return kept[:-1]


def asymmetry_at_random(d: int) -> float:
    """The ratio of the root mean squares for H [d, d] whose entries have mean 0, one variance s^2
    and no correlation: sqrt((d - 1) / (d + 1)).

    E ||H - H^T||^2 = 2 d (d - 1) s^2, and the diagonal adds 4 d s^2 to E ||H + H^T||^2. The same
    holds of H = sum_h (W_V,h W_O,h)^T for independent W_V and W_O.
    """
    return math.sqrt((d - 1) / (d + 1))


@dataclass(frozen=True)
class LayerDominance:
    """One layer over m images.

    classes [m]: 'consensus', 'smallest', 'other' or 'tie'. rho_consensus: max_j |1 + h_j|, the same
    for every image. rho_quotient [m]. safe [m]: s of the interval (-s, 0) in which a real h loses
    at consensus (T3b). outside [m]: share of the eigenvalues h_j at which consensus does not lose,
    counted alone, j by j; for real h the share outside (-s, 0). h [d] complex: eigenvalues of H.
    subdominant [m]: the second largest |a|, 0 for one token.
    """

    classes: NDArray[np.str_]
    rho_consensus: float
    rho_quotient: NDArray[np.float64]
    safe: NDArray[np.float64]
    outside: NDArray[np.float64]
    h: NDArray[np.complex128]
    subdominant: NDArray[np.float64]

    def share(self, name: str) -> float:
        """The share of the images in one class."""
        return float((self.classes == name).mean())

    @property
    def within_unit(self) -> bool:
        """Whether every h_j is real in [-1, 0): then no image can be won by consensus (T3d)."""
        return bool(((self.h.imag == 0) & (self.h.real >= -1) & (self.h.real < 0)).all())


def mean_attention(attention: Float[np.ndarray, "m heads n n"]) -> Float64[Array, "m n n"]:
    """Attention of the heads [m, heads, n, n] -> mean over heads [m, n, n], float64, rows sum to 1.

    The model's float32 rows sum to 1 within rounding; each is divided by its sum. Raises
    `InputError` for anything that is not row-stochastic to that precision.
    """
    tolerance = attention.shape[-1] * float(np.finfo(attention.dtype).eps)
    return check_attention(attention.astype(np.float64).mean(axis=1), tolerance=tolerance)


def layer_dominance(
    attention: NDArray[np.floating], H: NDArray[np.float64] | Discs
) -> LayerDominance:
    """Reading E2 for one layer: attention [m, heads, n, n] of m images, H [d, d] float64, or its
    eigenvalues in discs.

    Raises `InputError` where the attention is not row-stochastic.
    """
    value = H if isinstance(H, Discs) else known_values(layer_discs.value_discs(H), H)
    h = value.centres
    cases = [known_attention(A) for A in mean_attention(attention)]
    decided = [formulas.dominance(a.centres, h) for a in cases]
    loses = [(formulas.disc_form(h[None, :], a.centres[:, None]) < 0).any(axis=0) for a in cases]
    classes = [_class_of(decision, a, value) for decision, a in zip(decided, cases, strict=True)]
    return LayerDominance(
        classes=np.array(classes),
        rho_consensus=decided[0].rho_consensus,
        rho_quotient=np.array([each.rho_quotient for each in decided]),
        safe=np.array([formulas.safe_interval(a.centres) for a in cases]),
        outside=np.array([1 - each.mean() for each in loses]),
        h=h,
        subdominant=np.array([np.abs(a.centres).max(initial=0.0) for a in cases]),
    )


def _class_of(result: formulas.Dominance, attention: Discs, value: Discs) -> str:
    a, h = attention.centres, value.centres
    if result.quotient_index is None:
        return "consensus"
    i, j = result.quotient_index
    # What |1 + h_j| - |1 + h_k a_i| may be off by over the discs.
    error = (
        value.radii[result.consensus_index]
        + abs(a[i]) * value.radii[j]
        + abs(h[j]) * attention.radii[i]
        + np.finfo(np.float64).eps * (result.rho_consensus + result.rho_quotient)
    )
    outcome = formulas.outcome_of(result.margin - error, result.margin + error)
    if outcome is not formulas.Outcome.NON_SMOOTHING:
        return "consensus" if outcome is formulas.Outcome.SMOOTHING else "tie"
    # A conjugate pair shares its real part, so equality up to the errors counts.
    smallest = int(np.argmin(a.real))
    reach = attention.radii[i] + attention.radii[smallest]
    return "smallest" if a[i].real <= a[smallest].real + reach else "other"


# Values alone are trusted to an eigenvalue condition of 1e7, more than attention of trained ViTs
# shows, but not where A has zeros: triangular attention is far worse conditioned. Closer to a tie
# than that, discs decide.
_TRUSTED_CONDITION = 1e7

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


def quotient_values(A: Float64[Array, "n n"]) -> tuple[Complex128[Complex, " n-1"], float]:
    """spec(A) without one copy of 1 [n-1], for A [n, n] with rows summing to 1, and an estimate of
    the error: that of rounding for the diagonal of a triangular A, else by geev, k eps ||B|| times
    1e7, or where entries vanish beside 1 what the values of A and of B differ by, if that is more.
    """
    unit = len(A) * layer_discs.EPS
    values = layer_discs.attention_spectrum(A)
    if not np.triu(A, 1).any():
        return values, unit
    size = float(np.linalg.norm(A - A.mean(axis=0)))
    size += 4 * layer_discs.EPS * float(np.linalg.norm(A))
    error = unit * size * _TRUSTED_CONDITION
    if A.min() < layer_discs.EPS:
        own = np.linalg.eigvals(A)
        apart = np.abs(values[:, None] - np.delete(own, np.abs(own - 1).argmin()))
        error = max(error, float(apart.min(0).max(initial=0)), float(apart.min(1).max(initial=0)))
    return values, error


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
        return np.asarray(np.exp((self.log_scale + np.log1p(self.error)) / self.m) * (1 + 1e-14))


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
    a, error = quotient_values(matrix)
    simple, size = bool((matrix > 0).all(axis=0).any()), float(np.abs(a).max(initial=0.0))
    answers: list[tuple[object, ...]] = []
    for head in heads:
        top, place, _ = layer_discs.largest_modulus(a, head.corners)
        reach = SAFETY * (
            head.largest * error + (size + error) * head.error + 4 * layer_discs.EPS * (1 + top)
        )
        low, high = max(top - reach, head.floor), max(top + reach, head.floor)
        method, consensus = "lapack", head.consensus
        outcome = formulas.outcome_of(consensus.low - high, consensus.high - low)
        if outcome is formulas.Outcome.UNDECIDED or not simple:
            decided = by_discs.decide(
                known_attention(matrix), head.discs, len(closed_classes(matrix)) - 1
            )
            outcome, method = decided.outcome, "discs"
            low, high = decided.quotient.low, decided.quotient.high
        if outcome is formulas.Outcome.NON_SMOOTHING:
            dominant = "smallest" if a[place].real <= a.real.min() + 2 * error else "other"
        else:
            dominant = "consensus" if outcome is formulas.Outcome.SMOOTHING else "tie"
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
            answer["verdict"], answer["method"] = formulas.Outcome.SMOOTHING, "powers"
            answer["quotient_low"], answer["quotient_high"] = floors[which], high
            for k in np.flatnonzero(~shown.all(axis=1)):
                left = np.flatnonzero(~shown[k])
                answer[k, left] = _by_values(A[start + k], [heads[j] for j in which[k, left]])
    return answers.reshape(index.shape).view(np.recarray)
