"""The outcomes of a sweep's points of one shape in the same batched products (T1, T2, T10).

What is drawn, proved and measured is that of `points.outcome`, one array operation for all points:
their draws keep their seeds, the radii come from the discs of `decide_stack`, and the same bases
give X_L at half depth and at full depth (T1a), of several heads the powers of the operator. Where
no state is asked for, the largest eigenvalues of A settle most verdicts (`leading_discs`). No
operation mixes points: a point's bytes do not depend on its neighbours. One head of low rank, large
operators of several, several closed classes, what discs leave open or may overflow, near-defective
bases and depths that need refined eigenvalues go point by point.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.simulations.generators.attention import ATTENTION, DoublyStochastic
from oversmoothing.simulations.generators.options import Generator
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION
from oversmoothing.simulations.sweep.config import Value
from oversmoothing.simulations.sweep.heads_together import Powers
from oversmoothing.simulations.sweep.points import (
    OF_A_STATE,
    SQUARED,
    Point,
    columns,
    entropy_of,
    generator,
    measured,
    outcome,
    verdict_columns,
)
from oversmoothing.theory.depth.closed_form import from_quotient
from oversmoothing.theory.depth.eigenbasis import DEEP
from oversmoothing.theory.layer.attention import closed_classes, stationary_distributions
from oversmoothing.theory.layer.layer import check_attention, row_sum_tolerance
from oversmoothing.theory.numbers.rounding import UNIT, Bounded, ScaledState, to_quotient
from oversmoothing.theory.spectra.discs import Discs, enclose_all
from oversmoothing.theory.spectra.layer_discs import log_multiplier, pair_moduli, quotient_within
from oversmoothing.theory.spectra.leading_discs import SMALL, quotient_radii
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict.by_discs import Decision, decide_stack, shares_within
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of

# Entries of A, or of H, of the points that are worked on together; of the operator of several
# heads twice as many.
_TOGETHER = 2**17
# Entries of H beyond this, or its inverse, are left to the checks for overflow of a single point.
_LARGE = 1e100
# Bases are used without a further look up to the first condition (of Frobenius norms), and up to
# the second where no two eigenvalues are near: a single point looks for repeated ones, and iterates
# from about 1e8 on.
_PLAIN, _APART = 1e2, 1e7
# A mode this many e-folds below the largest is none.
_GONE = 100.0
_LOG2 = float(np.log(2.0))
# Of mallopt: beyond how many bytes freed memory, and a single array, go back to the system.
_FREED, _SINGLE, _BYTES = -1, -3, 2**25


@cache
def _keep_memory() -> None:
    """What is freed is kept for the next array: pages new from the system cost a tenth of a sweep.

    Elsewhere than with glibc nothing is asked for.
    """
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        for option in (_FREED, _SINGLE):
            libc.mallopt(option, _BYTES)


def outcomes(points: Sequence[Point], measures: tuple[str, ...]) -> list[dict[str, Any]]:
    """`points.outcome` of each, up to the rounding of the last digits."""
    _keep_memory()
    rows: list[dict[str, Any] | None] = [None] * len(points)
    shapes = [_shape(point) for point in points]
    order = sorted(range(len(points)), key=lambda k: shapes[k])
    for shape, group in groupby(order, lambda k: shapes[k]):
        n, d, heads, _ = shape
        entries = max(n, d, 1) ** 2 if heads < 2 else max(2, ((n - 1) * d) ** 2) // 2
        places, size = list(group), max(1, _TOGETHER // entries)
        for start in range(0, len(places) if all(shape) else 0, size):
            some = places[start : start + size]
            for k, row in zip(some, _rows([points[k] for k in some], measures), strict=True):
                rows[k] = row
    return [
        outcome(point, measures) if row is None else row
        for point, row in zip(points, rows, strict=True)
    ]


def _shape(point: Point) -> tuple[int, int, int, int]:
    """(n, d, heads, depth) of points that are worked on together; zeros for others."""
    n, d, heads, depth = (int(point[name]) for name in ("n", "d", "heads", "depth"))
    if heads == 1:
        alone = point["value"] == "low_rank" or depth >= DEEP
    else:
        alone = (n - 1) * d > min(SQUARED, depth - 1)
    return (0, 0, 0, 0) if alone or n == 1 else (n, d, heads, depth)


# Columns by the place of a point.
_Rows = dict[int, dict[str, Any]]
# The verdicts, and states at the depths, with the places of the points that they are of.
_Known = tuple[_Rows, list[ScaledState], Sequence[int]]


def _rows(points: list[Point], measures: tuple[str, ...]) -> list[dict[str, Any] | None]:
    """Of points of one shape; None where a point has to go by itself."""
    table: list[dict[str, Any] | None] = [None] * len(points)
    state = any(measure in OF_A_STATE for measure in measures)
    if "limits" in measures:
        return table
    with np.errstate(all="ignore"):
        A, H, X0 = _drawn(points, state)
        sums, size = A.sum(axis=-1), np.abs(H).max(axis=(1, 2, 3))
        good = (np.abs(sums - 1) <= row_sum_tolerance(A.shape[-1])).all(axis=(1, 2))
        good &= (size < _LARGE) & ((size > 1 / _LARGE) | (size == 0))
        places = np.flatnonzero(good)
        if len(places) < len(points):
            A, H, X0 = A[places], H[places], X0[places]
        depth = int(points[0]["depth"])
        depths = [depth // 2, depth] if state else []
        of_kind, method = (_of_one, "closed form") if A.shape[1] == 1 else (_of_heads, "iteration")
        rows, states, seen = of_kind(A, H, X0, depths)
        if state:
            told = _measured(states, seen, measures)
            rows = {i: rows[i] | {"method": method} | told[i] for i in rows.keys() & told.keys()}
    names = columns(measures)
    for i, row in rows.items():
        table[places[i]] = {name: row.get(name) for name in names}
    return table


def _of_one(A: Array, H: Array, X0: Array, depths: list[int]) -> _Known:
    """Of one head; no depths where no state is asked for."""
    A, H = A[:, 0], H[:, 0]
    rows = _Rows() if depths or A.shape[-1] <= SMALL else _by_leading(A, H)
    left = [i for i in range(len(A)) if i not in rows]
    decided = dict(zip(left, decide_stack(A[left], H[left]), strict=True))
    kept = [i for i in left if decided[i][0].outcome is not Outcome.UNDECIDED]
    rows |= {i: _verdict(decided[i][0]) for i in kept}
    if not depths:
        return rows, [], []
    seen: list[bool] = np.any(np.all(A > 0, axis=1), axis=1).tolist()
    kept = [i for i in kept if seen[i] or len(closed_classes(A[i])) == 1]
    return rows, *_states(A, X0, {i: decided[i][1:] for i in kept}, depths)


def _by_leading(A: Array, H: Array) -> _Rows:
    """The verdict of each A > 0 of which its largest eigenvalues settle it."""
    rows, places = _Rows(), np.flatnonzero((A > 0).all(axis=(1, 2)))
    if len(places) < len(A):
        A, H = A[places], H[places]
    W = Bounded.near(np.ascontiguousarray(H.swapaxes(1, 2)))
    value = enclose_all(W.value, W.error)
    shares = shares_within(check_attention(A), A > 0, UNIT)
    quotients = quotient_radii(*quotient_within(*shares), value)
    fixed = pair_moduli(None, value)[0].radii()
    for place, c, q in zip(places.tolist(), fixed, quotients, strict=True):
        outcome = outcome_of(c.low - q.high, c.high - q.low) if q else Outcome.UNDECIDED
        if q and outcome is not Outcome.UNDECIDED:
            rows[place] = _verdict(Decision(outcome, c, q))
    return rows


def _of_heads(A: Array, H: Array, X0: Array, depths: list[int]) -> _Known:
    """The same of several heads."""
    powers = Powers(A, H / A.shape[1])
    rows = _Rows()
    for i, (fixed, moving) in enumerate(zip(powers.consensus_radii(), powers.radii(), strict=True)):
        if fixed is not None and moving is not None:
            rho_c, rho_q = fixed.shown, moving.shown
            error = sum(max(x.high - x.shown, x.shown - x.low) for x in (fixed, moving))
            outcome = outcome_of(rho_c - rho_q - error, rho_c - rho_q + error)
            if outcome is not Outcome.UNDECIDED:
                rows[i] = verdict_columns("estimated", outcome, rho_c, rho_q, error)
    return rows, list(powers.states(X0, depths)) if depths else [], range(len(A))


def _verdict(decision: Decision) -> dict[str, Any]:
    rho_c = decision.consensus.shown
    rho_q = rho_c if decision.outcome is Outcome.TIE else decision.quotient.shown
    return verdict_columns("certified", decision.outcome, rho_c, rho_q, decision.error)


class _Together:
    """The generators of several points as one, whose draws have a first axis of points."""

    def __init__(self, each: Sequence[np.random.Generator]) -> None:
        self.each = each

    def standard_normal(self, size: tuple[int, ...]) -> Array:
        return np.stack([one.standard_normal(size[1:]) for one in self.each])


def _drawn(points: list[Point], state: bool) -> tuple[Array, Array, Array]:
    """A [p, heads, n, n], H [p, heads, d, d], times heads, and X_0 [p, n, d] as `points.draw` has
    them; NaN where it refuses. Without state X_0 is empty.
    """
    n, d, heads = (int(points[0][name]) for name in ("n", "d", "heads"))
    p = len(points)
    # SeedSequence takes the words of a number faster than the number.
    words = [
        np.frombuffer(seed.to_bytes(-(-seed.bit_length() // 32) * 4, "little"), dtype="<u4")
        for seed in map(entropy_of, points)
    ]
    A, H = np.full((p, heads, n, n), np.nan), np.full((p, heads, d, d), np.nan)

    def rng(place: int, *key: int) -> np.random.Generator:
        return np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(words[place], spawn_key=key))
        )

    for places, drawn in _alike("attention", ATTENTION, points):
        each = [rng(k, 0, h) for k in places for h in range(heads)]
        try:
            if isinstance(drawn, DoublyStochastic):
                # Its rounds end for all of a batch together.
                raise InputError("one by one")
            together = drawn.draw(n, rng=_Together(each), batch=(len(each),))  # type: ignore[arg-type]
            A[places] = together.reshape(len(places), heads, n, n)
        except InputError:
            for k, h in product(places, range(heads)):
                with suppress(InputError):
                    A[k, h] = drawn.draw(n, rng=rng(k, 0, h))
    for places, made in _alike("value", VALUE_PROJECTION, points):
        for k, h in product(places, range(heads)):
            with suppress(InputError):
                H[k, h] = made.draw(d, rng=rng(k, 1, h))
    X0 = [rng(k, 2).standard_normal((n, d)) for k in range(p)] if state else np.empty((p, 0, d))
    return A, H, np.asarray(X0)


def _alike(
    what: str, known: Mapping[str, type[Generator]], points: list[Point]
) -> Iterator[tuple[list[int], Generator]]:
    """(places, generator) of the points whose A, or H, is drawn with the same options."""
    groups: dict[tuple[Value | None, ...], list[int]] = {}
    for k, point in enumerate(points):
        kind = str(point[what])
        options = map(point.get, known[kind].model_fields)
        groups.setdefault((kind, *options), []).append(k)
    for places in groups.values():
        try:
            maker = generator(what, known, points[places[0]])
        except InputError:
            continue
        yield places, maker


class _Bases:
    """M = V diag(values) V^-1 of a stack: P [p, k, k] has Re v and Im v of a pair, Y = P^-1."""

    def __init__(self, each: Sequence[Discs]) -> None:
        bases = [discs.basis for discs in each if discs.basis is not None]
        self.P, self.Y = (np.stack(x) for x in zip(*bases, strict=True))
        self.values: Complex = np.stack([discs.centres for discs in each])
        condition = np.prod([np.linalg.norm(x, axis=(1, 2)) for x in (self.P, self.Y)], axis=0)
        apart = np.max([discs.component for discs in each], axis=1) + 1 == self.values.shape[-1]
        # Whether each is used as it is.
        self.plain = condition < np.where(apart, _APART, _PLAIN)
        self.sign = np.sign(self.values.imag)
        place = np.arange(self.values.shape[-1])
        # The two columns of each one's pair; a real one is both.
        self.first = (place - (self.sign < 0)).astype(np.intp)
        self.second = (place + (self.sign > 0)).astype(np.intp)

    def times_vectors(self, x: Array) -> Complex:
        """x V [p, m, k] from x P."""
        one, other = (
            np.take_along_axis(x, place[:, None], axis=-1) for place in (self.first, self.second)
        )
        return np.asarray(one + 1j * (self.sign[:, None] * other))

    def times_inverse(self, F: Complex, owner: NDArray[np.intp]) -> Complex:
        """F V^-1 as coordinates beside Y, for rows F [r, k] of the points `owner` [r]."""
        one, other = (
            np.take_along_axis(F, place[owner], axis=-1) for place in (self.first, self.second)
        )
        half = (one + other) / 2
        return np.where(self.sign[owner] < 0, -0.5j * (one - other), half)


def _powers(C: Complex, log: Complex, owner: NDArray[np.intp], depth: int) -> tuple[Complex, Array]:
    """C mu^L / 2^e, and e [p] such that the largest of each point is about 1: of modes with
    coefficients C [r, d], log mu [r, d], and the point of each row, in order."""
    size = depth * log.real + np.log(np.abs(C))
    starts = np.searchsorted(owner, np.arange(owner[-1] + 1))
    top = np.maximum.reduceat(size.max(axis=-1), starts)
    e = np.ceil(top / _LOG2)
    kept = size > (top - _GONE)[owner, None]
    phase = np.remainder(depth * log.imag[kept], 2 * np.pi)
    moduli = np.exp((size - (e * _LOG2)[owner, None])[kept])
    powers = np.zeros_like(C)
    powers[kept] = moduli * (np.cos(phase) + 1j * np.sin(phase)) * (C[kept] / np.abs(C[kept]))
    return powers, e


def _at_depths(
    A: Array, X0: Array, attention: _Bases, value: _Bases, depths: Sequence[int]
) -> list[ScaledState]:
    """The closed form (T1a): HFC by pairs of eigenvalues, c = pi^T X by those with a = 1."""
    n = A.shape[-1]
    offset = (1 / n - stationary_distributions(A / A.sum(axis=-1, keepdims=True)))[:, None]
    mean = X0.mean(axis=1, keepdims=True)
    hfc = X0 - mean
    left = hfc.mean(axis=1, keepdims=True)
    hfc -= left
    c = mean + left - offset @ hfc
    C = value.times_vectors(attention.Y @ (to_quotient(hfc) @ value.P))
    # Of the rows of a pair one is enough, (first - i second) / 2: the other is its conjugate.
    owner, row = np.nonzero(attention.sign >= 0)
    pair = attention.sign[owner, row] > 0
    other = np.where(pair, row + 1, row)
    weight = np.where(pair, 0.5, 1.0)[:, None]
    C = weight * (C[owner, row] - 1j * np.where(pair[:, None], C[owner, other], 0.0))
    own = np.arange(len(A))
    moving = C, log_multiplier(attention.values[owner, row][:, None] * value.values[owner]), owner
    fixed = value.times_vectors(c @ value.P)[:, 0], log_multiplier(value.values), own
    states = []
    for depth in depths:
        F, hfc_scale = _powers(*moving, depth)
        K = value.times_inverse(F, owner)
        packed = np.empty((len(A), n - 1, X0.shape[-1]))
        packed[owner, other] = -2.0 * K.imag
        packed[owner, row] = K.real / weight
        hfc = from_quotient(attention.P @ (packed @ value.Y))
        f, c_scale = _powers(*fixed, depth)
        c = value.times_inverse(f, own).real[:, None] @ value.Y
        part = offset @ hfc
        # m = c + (1/n - pi)^T HFC, on the larger of the two scales.
        top = np.where(part.any(axis=(1, 2)), np.maximum(c_scale, hfc_scale), c_scale)
        c, part = (
            x * np.exp2(np.clip(scale - top, -2000, 0))[:, None, None]
            for x, scale in ((c, c_scale), (part, hfc_scale))
        )
        states.append(ScaledState(depth, hfc, (c + part)[:, 0], hfc_scale, top))
    return states


def _states(
    A: Array, X0: Array, spectra: dict[int, tuple[Discs, Discs]], depths: list[int]
) -> tuple[list[ScaledState], list[int]]:
    """The states at the depths and their places in A, where bases are plain."""
    places = [i for i, (a, h) in spectra.items() if a.basis is not None and h.basis is not None]
    while places:
        attention, value = (_Bases([spectra[i][side] for i in places]) for side in (0, 1))
        plain = attention.plain & value.plain
        if plain.all():
            return _at_depths(A[places], X0[places], attention, value, depths), places
        places = [i for i, good in zip(places, plain.tolist(), strict=True) if good]
    return [], []


def _measured(states: list[ScaledState], places: Sequence[int], measures: tuple[str, ...]) -> _Rows:
    """The columns of the measures of states at half the depth and there, where all are finite."""
    if not states:
        return {}
    values, good = measured(states[0], states[1], measures)
    for name, column in values.items():
        if not name.startswith("cos"):
            good &= np.isfinite(column)
    table = [
        dict(zip(values, row, strict=True))
        for row in zip(*map(np.ndarray.tolist, values.values()), strict=True)
    ]
    return {i: row for i, row, fine in zip(places, table, good.tolist(), strict=True) if fine}
