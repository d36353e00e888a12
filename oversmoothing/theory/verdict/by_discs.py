"""rho_C against rho_Q for all layers that round to the given floats, by discs in float64 (T1, T10).

The cell of a layer: every A (row-stochastic) and H whose entries round to those given, in their own
precision; a 0 stands for 0 alone. Discs hold the spectra of the whole cell. What they leave open is
UNDECIDED here; nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.attention import (
    closed_classes,
    communicating,
    parts,
    softmax_within,
)
from oversmoothing.theory.layer.layer import Layer, check_attention
from oversmoothing.theory.numbers.rounding import TINY, UNIT, Bounded, gamma, inflated, upper_sum
from oversmoothing.theory.spectra import heads_radius, layer_discs
from oversmoothing.theory.spectra.discs import Discs, Failure, enclose, enclose_all
from oversmoothing.theory.spectra.heads import ManyHeads, consensus_block
from oversmoothing.theory.spectra.layer_discs import Interval, PairModuli
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of


@dataclass(frozen=True)
class CellDiscs:
    """The cell of a case and discs of its two spectra.

    relative: how well its entries are known. A, error [n, n]: every A of the cell is within `error`
    of A. attention: spec(A) without one 1, of which `repeated` further ones are known by the zeros
    of A; value: spec(H), both by norms where no eigenvectors were proved independent. consensus,
    quotient: |1 + h| and |1 + h a| over them.
    """

    case: Layer
    relative: float
    A: Array
    error: Array
    attention: Discs
    value: Discs
    repeated: int
    consensus: PairModuli
    quotient: PairModuli


def cell_discs(case: Layer, relative: float = UNIT) -> CellDiscs:
    """The discs of everything within the rounding of a case (not decided in fractions).

    relative: how well an entry of A and H is known, half a unit in its last place.
    """
    if case.logits is None:
        A, error = shares_within(case.A, case.positive, relative)
    else:
        A, error = softmax_within(case.logits, relative)
    attention = layer_discs.attention_discs(A, error)
    if isinstance(attention, Failure):
        attention = layer_discs.attention_by_parts(A, error) or layer_discs.within_unit(A)
    return _with_ones(case, relative, A, error, attention, _value(case, relative))


def finer(cell: CellDiscs) -> CellDiscs | None:
    """The same cell through the zeros of A and H, where they have any that tell."""
    case, relative, A, error = cell.case, cell.relative, cell.A, cell.error
    attention = layer_discs.attention_by_parts(A, error)
    value = cell.value
    if case.factors is None:
        value = layer_discs.by_parts(*value_within(case, relative))
    if attention is None and value.radii.max() >= cell.value.radii.max():
        return None
    return _with_ones(case, relative, A, error, attention or cell.attention, value)


def _with_ones(
    case: Layer, relative: float, A: Array, error: Array, attention: Discs, value: Discs
) -> CellDiscs:
    repeated = len(case.classes) - 1
    one = at_one(attention) if repeated else None
    if one is not None and int(one.sum()) == repeated:
        # Known exactly, they are 1 and nothing else.
        centres = np.where(one, 1.0, attention.centres)
        attention = replace(attention, centres=centres, radii=np.where(one, 0.0, attention.radii))
    moduli = layer_discs.pair_moduli(attention, value)
    return CellDiscs(case, relative, A, error, attention, value, repeated, *moduli)


def shares_within(A: Array, positive: NDArray[np.bool_], relative: float) -> tuple[Array, Array]:
    """(A over its row sums, error) for one A or a stack, within `relative` of its entries."""
    A, error = layer_discs.normalised(A, relative)
    # Fractions may be so small that nothing of them is left in A.
    return A, np.where(positive & (error == 0), 4 * TINY, error)


def _value(case: Layer, relative: float) -> Discs:
    if case.factors is not None:
        discs = layer_discs.head_discs(*case.factors, relative)
        if not isinstance(discs, Failure):
            return discs
        product = layer_discs.product_within(*case.factors, relative)
        return layer_discs.within_norm(*(x.T for x in product))
    M = value_within(case, relative)
    discs = enclose(*M)
    return layer_discs.by_parts(*M) if isinstance(discs, Failure) else discs


def value_within(case: Layer, relative: float = UNIT) -> tuple[Array, Array]:
    """(W, error): W = H^T [d, d] within its rounding, or the core of a head."""
    if case.factors is not None:
        return layer_discs.core_within(*case.factors, relative)
    W = Bounded.near(np.ascontiguousarray(case.H.T), relative)
    return W.value, W.error


def without_ones(attention: Discs, repeated: int) -> Discs | None:
    """The discs but for those of further eigenvalues 1; None where others may be among these."""
    keep = ~at_one(attention)
    if int(np.count_nonzero(~keep)) != repeated:
        return None
    labels = np.unique(attention.component[keep], return_inverse=True)[1]
    return Discs(attention.centres[keep], attention.radii[keep], labels)


def at_one(attention: Discs) -> NDArray[np.bool_]:
    """bool [n-1], the discs whose component holds 1."""
    touches = np.abs(attention.centres - 1) <= attention.radii * (1 + 8 * UNIT) + 8 * UNIT
    result: NDArray[np.bool_] = np.isin(attention.component, attention.component[touches])
    return result


@dataclass(frozen=True)
class Decision:
    """The outcome that the whole cell shares, or UNDECIDED, and the two radii.

    Of several heads also method: "dense" (discs of the operator), "causal" (token by token) or
    "arnoldi" or "powers", both estimates; and reason: why nothing is known of rho_Q, or empty.
    """

    outcome: Outcome
    consensus: Interval
    quotient: Interval
    method: str = ""
    reason: str = ""

    @property
    def error(self) -> float:
        """How far rho_C - rho_Q may be off by rounding."""
        return sum((x.high - x.low) / 2 for x in (self.consensus, self.quotient))


def decide_cell(cell: CellDiscs) -> Decision:
    """rho_C against rho_Q over the cell."""
    radii = cell.consensus.radius(), cell.quotient.radius()
    return decide(cell.attention, cell.value, cell.repeated, radii)


@dataclass(frozen=True)
class Comparison:
    """The verdict for generic X_0 before its limits, and what it rests on.

    cell: the discs of a case in floats, dominance: the modes of one in fractions, an
    `ExactDominance`.
    """

    answer: Verdict
    cell: CellDiscs | None = None
    dominance: Any = None


# Entries of a stack of layers that are decided together.
_TOGETHER = 2**14


def decide_stack(A: Array, H: Array) -> Iterator[tuple[Decision, Discs, Discs]]:
    """`decide_cell` for each of a stack of layers, all in the same batched products, with the discs
    of spec(A) without one 1 and of spec(H), and their bases: that of H is of W = H^T.

    A [m, n, n] and H [m, d, d], float64, finite. Where 1 repeats in spec(A), or no eigenvectors are
    proved independent, a layer is decided by itself. Raises `InputError` for an A that is not
    row-stochastic.
    """
    m, shares = len(A), check_attention(A)
    size = max(1, _TOGETHER // max(A[0].size, H[0].size, 1)) if m else 1
    # A token that all see is in the one closed class.
    seen: list[bool] = np.any(np.all(A > 0, axis=-2), axis=-1).tolist()
    for start in range(0, m, size):
        part = slice(start, start + size)
        W = Bounded.near(np.ascontiguousarray(H[part].swapaxes(1, 2)))
        value = enclose_all(W.value, W.error, keep=True)
        attention = layer_discs.attention_discs_all(
            *shares_within(shares[part], A[part] > 0, UNIT), keep=True
        )
        # Infinite radii, of layers that are decided by themselves, bound nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            fixed, pairs = layer_discs.pair_moduli(attention, value)
            radii = zip(fixed.radii(), pairs.radii(), strict=True)
        for i, (a, h, both) in enumerate(zip(attention, value, radii, strict=True), start):
            simple = seen[i] or len(closed_classes(A[i])) == 1
            if simple and isinstance(a, Discs) and isinstance(h, Discs):
                yield decide(a, h, 0, both), a, h
            else:
                cell = cell_discs(Layer.of(A[i], H[i]))
                yield decide_cell(cell), cell.attention, cell.value


def decide_heads(case: ManyHeads, dense_size: int) -> Decision:
    """rho_C against rho_Q over all heads that round to these, each entry in its own precision (T7).

    The operator [I +] sum_h H_h (x) A_h falls into blocks: by the features that depend on one
    another in some H_h, and by the tokens that see one another in some A_h. Tokens that see only
    one another have consensus and a quotient of their own, others the block of what they see of one
    another (of one token T7e's). A block of more than dense_size rows is left to Arnoldi's method.
    """
    A, wide = shares_within(case.given["A"].floats, case.positive, UNIT)
    H, off = weights_within(case)
    tokens = parts(case.positive)
    features = communicating(((H != 0) | (off > 0)).any(axis=0))
    method = "causal" if max(len(S) for S, _ in tokens) == 1 else "dense"
    sizes = [len(S) - alone for S, alone in tokens]
    if max(sizes) * max(map(len, features)) > dense_size:
        known = heads_radius.dense_radius(consensus_block(case, case.residual), "dense")
        estimate = heads_radius.quotient_radius(case, case.residual, 0, beside=known)
        fixed, moving = known.interval, estimate.interval
        outcome = outcome_of(fixed.low - moving.high, fixed.high - moving.low)
        return Decision(outcome, fixed, moving, estimate.method, estimate.reason)
    shift, one = float(case.residual), np.ones((len(A), 1, 1))
    consensus, rest = list[Interval](), [Interval(0.0, 0.0)]
    for F in features:
        h, e = H[:, F[:, None], F], off[:, F[:, None], F]
        consensus += _radii([(one, 0 * one)], h, e, shift)
        blocks = []
        for S, alone in tokens:
            a, w = A[:, S[:, None], S], wide[:, S[:, None], S]
            if not alone:
                blocks.append((a, w))
            elif len(S) > 1:
                blocks.append(layer_discs.quotient_within(a, w))
        rest += _radii(blocks, h, e, shift)
    fixed, moving = _largest(consensus), _largest(rest)
    outcome = outcome_of(fixed.low - moving.high, fixed.high - moving.low)
    if sum(alone for _, alone in tokens) > 1:
        # Each group that sees only itself has its own consensus: rho_Q >= rho_C exactly.
        tied = moving.high <= fixed.low
        outcome = Outcome.TIE if tied else outcome_of(-np.inf, fixed.high - moving.low)
        moving = fixed if tied else moving
    return Decision(outcome, fixed, moving, method)


def weights_within(case: ManyHeads) -> tuple[Array, Array]:
    """(H, error) [heads, d, d]."""
    if case.factors is None:
        whole = Bounded.near(case.H)
        return whole.value, whole.error
    products = [layer_discs.product_within(V, P, UNIT) for V, P in zip(*case.factors, strict=True)]
    H, off = (np.swapaxes(np.stack(x), 1, 2) for x in zip(*products, strict=True))
    return H, off


def _radii(
    blocks: list[tuple[Array, Array]], h: Array, e: Array, shift: float
) -> Iterator[Interval]:
    """The radius of [I +] sum_h H_h (x) A_h for each of some blocks (A, error) [heads, m, m] of the
    tokens and one (H, error) [heads, k, k] of the features, those of one size together."""
    for _, group in groupby(sorted(blocks, key=lambda b: b[0].shape[-1]), lambda b: b[0].shape[-1]):
        a, w = (np.stack(x) for x in zip(*group, strict=True))
        M, error = operator_within(a, w, h, e)
        for k, spectrum in enumerate(enclose_all(M, error)):
            if isinstance(spectrum, Discs):
                yield heads_radius.modulus_interval(spectrum, shift)
            else:
                yield _by_subspaces(M[k], error[k], shift)


def operator_within(a: Array, w: Array, h: Array, e: Array) -> tuple[Array, Array]:
    """sum_h H_h (x) A_h and its error [stack, rows, rows], from A and its error w [stack, heads, m,
    m], and H and its error e [heads, k, k]."""

    def summed(x: Any, y: Any) -> Array:
        rows = x.shape[-1] * y.shape[-1]
        total: Array = np.einsum("hij,shkl->sikjl", x, y).reshape(-1, rows, rows)
        return total

    size, more = np.abs(h), np.abs(a)
    error = gamma(len(h) + 2) * summed(size, more) + summed(size + e, w) + summed(e, more)
    some = summed((size + e > 0) * 1.0, (more + w > 0) * 1.0) > 0
    return summed(h, a), np.where(some, inflated(error, 3 * len(h) + 8), 0.0)


# Rows of a matrix that is enclosed in balls where discs fail.
_BALLS = 64


def _by_subspaces(M: Array, error: Array, shift: float) -> Interval:
    """The radius by invariant subspaces, which near-defective matrices have too."""
    low, high = 0.0, shift + float(upper_sum(inflated(np.abs(M) + error, 2)).max())
    if len(M) <= _BALLS:
        # Loaded for what discs leave open.
        from oversmoothing.theory.spectra.blocks import in_balls, invariant_blocks

        for subspaces in invariant_blocks(in_balls(M, error)):
            moduli = [abs(block.value + shift) for block in subspaces.blocks]
            low = max(low, *(float(x.lower()) * (1 - 8 * UNIT) for x in moduli))
            high = min(high, max(float(x.upper()) * (1 + 8 * UNIT) for x in moduli))
    return Interval(low, high)


def _largest(radii: Sequence[Interval]) -> Interval:
    """That of several blocks together."""
    return Interval(
        max(x.low for x in radii), max(x.high for x in radii), None, max(x.shown for x in radii)
    )


def decide(
    attention: Discs, value: Discs, repeated: int, radii: tuple[Interval, Interval] | None = None
) -> Decision:
    """rho_C against rho_Q for all spectra in these discs (T2, T3).

    attention: without one eigenvalue 1 of A, which occurs `repeated` times more. radii: both, where
    they are known.
    """
    consensus, quotient = radii or (x.radius() for x in layer_discs.pair_moduli(attention, value))
    if repeated == 0:
        outcome = outcome_of(consensus.low - quotient.high, consensus.high - quotient.low)
        if outcome is Outcome.UNDECIDED and len(attention) > 0:
            outcome = _for_every_attention(value)
        return Decision(outcome, consensus, quotient)
    # 1 repeats, so that rho_Q >= rho_C exactly: only the other eigenvalues can make it more.
    outcome, others = Outcome.UNDECIDED, without_ones(attention, repeated)
    if quotient.low > consensus.high:
        outcome = Outcome.NON_SMOOTHING
    elif others is not None and layer_discs.quotient_radius(others, value).high <= consensus.low:
        outcome = Outcome.TIE
    return Decision(outcome, consensus, quotient)


def _for_every_attention(value: Discs) -> Outcome:
    """The outcome that spec(H) alone settles, for every A with a simple eigenvalue 1 (T2d, T3d).

    |a| <= 1 and a != 1: a real h in [-1, 0) has |1 + h a| > |1 + h|, and a real h > 0 has
    |1 + h a| < 1 + h, however close to 1 (or to -1) a may be.
    """
    h, radius = value.centres, value.radii
    real = (h.imag == 0) & value.alone
    with np.errstate(invalid="ignore"):
        low, high = np.nextafter(h.real - radius, -np.inf), np.nextafter(h.real + radius, np.inf)
    low, high = np.where(radius > 0, low, h.real), np.where(radius > 0, high, h.real)
    if (real & (low >= -1) & (high < 0)).all():
        return Outcome.NON_SMOOTHING
    top = float(np.where(real, low, 0.0).max())
    size = inflated(np.abs(h) + radius, 4)
    if ((real & (low > 0)) | (size < top)).all():
        return Outcome.SMOOTHING
    return Outcome.UNDECIDED
