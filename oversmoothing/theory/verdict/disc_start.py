"""What one X_0 leads to, in float64: whether it contains the mode that decides (T4e).

The coefficient of a pair (a_i, h_j) is w^T X_0 z with left eigenvectors w of A and z of H, and of
consensus pi^T X_0 z. Where its bounds leave out 0, every X_0 that rounds to the given one contains
the pair. A pair on the winning side that outgrows all of the other side then decides.

The terms of X_L for `onset`, sum of c_ij mu_ij^L v_i u_j^T, are an estimate and said as one
("about"): no verdict and no limit rests on it.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain, combinations, islice

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.depth.onset import EACH, GAP, Onset, Series, Sides, onset
from oversmoothing.theory.layer.attention import class_families
from oversmoothing.theory.numbers.rounding import UNIT, Bounded, normalise, solved
from oversmoothing.theory.spectra import layer_discs
from oversmoothing.theory.spectra.discs import Discs, eigenvector
from oversmoothing.theory.spectra.layer_discs import EPS
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict import disc_modes
from oversmoothing.theory.verdict.by_discs import CellDiscs
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.limits import Decided, limits_of, limits_of_state

# So many eigenvalues of A are asked for, those that the fewest tokens have first.
_TOKENS = 16
NOTHING = Decided(Outcome.UNDECIDED)


class DiscStart(disc_modes.DiscModes):
    """The modes of a cell for one X_0 [n, d]."""

    generic = False

    def __init__(self, cell: CellDiscs, X0: Array) -> None:
        super().__init__(cell)
        self._X = disc_modes.start_within(X0)

    def decided(self, generic: Outcome) -> Decided:
        """What follows where `generic` is the verdict for generic X_0; perhaps nothing."""
        if generic is Outcome.TIE:
            top = self.leading()[0]
            return Decided(generic) if self._classes_differ(top) else self._tie_of_a_head(top)
        if generic not in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING):
            return NOTHING
        fixed, moving = self.cell.consensus, self.cell.quotient
        if generic is Outcome.NON_SMOOTHING:
            fixed, moving = moving, fixed
        rest = moving.high.max(initial=0.0)
        order = np.argsort(-fixed.low, axis=None, kind="stable")[: disc_modes.TRIED].tolist()
        pairs = [divmod(k, fixed.low.shape[1]) for k in order]
        present = any(
            self._present(i, j, fixed.consensus) for i, j in pairs if fixed.low[i, j] > rest
        )
        if present or (generic is Outcome.NON_SMOOTHING and self._of_some_tokens(rest)):
            return Decided(generic, limits_of(self, generic))
        return NOTHING

    def contains(self, mode: disc_modes.DiscMode) -> bool:
        # Of several that a component holds no eigenvector is proved.
        side = mode.attention
        return self._present(side.columns[0], mode.value.columns[0], side.consensus)

    def _of_some_tokens(self, rest: float) -> bool:
        """Whether tokens that attend to none but themselves show a mode that outgrows `rest`.

        Of modes that lead together, as equal shares of a causal A do, each is simple among few
        enough tokens. Where every h outgrows with it, w^T X_0 != 0 is enough.
        """
        cell, value, W = self.cell, self.cell.value, self.value.T
        away, most, whole = self._X - self._X[:1], disc_modes.TRIED, cell.case.factors is None
        modes = (
            (a, w) for a, w in disc_modes.left_vectors(cell.A, cell.error) if _above(a, value, rest)
        )
        for a, vector in islice(modes, _TOKENS):
            w = vector()
            if w is None:
                continue
            low = layer_discs.pair_moduli(a, value)[1].low[0]
            if low.min() > rest:
                shown = bool((w @ away).nonzero.any())
            else:
                places = np.flatnonzero((low > rest) & value.alone)[:most].tolist()
                rows = disc_modes.left_vectors(W.value, W.error) if whole else ()
                parts = islice((z() for h, z in rows if _above(a, h, rest)), most)
                vectors = chain((self.value_vector(j, left=True) for j in places), parts)
                shown = any(self._with(w, away, z) for z in vectors)
            if shown:
                return True
        return False

    def _classes_differ(self, top: list[disc_modes.DiscMode]) -> bool:
        """Whether the h_j != -1 that leads alone is in pi_k^T X_0 z - pi_l^T X_0 z for two closed
        classes of tokens: then it is in one of these means too."""
        if self.classes == 1 or not top:
            return False
        first, j = top[0].value, top[0].value.columns[0]
        pair, lasts = (first.columns, first.conjugate), self.cell.consensus.low[0, j] > 0
        alone = all(x.attention.consensus and x.value.columns in pair for x in top)
        z = self.value_vector(j, left=True) if alone and lasts else None
        if z is None:
            return False
        means = [w @ (self._X @ z) for w in self._means]
        return any((x - y).nonzero for x, y in combinations(means, 2))

    @staticmethod
    def _with(w: Bounded, X: Bounded, z: Bounded | None) -> bool:
        return z is not None and bool((w @ (X @ z)).nonzero)

    def _tie_of_a_head(self, top: list[disc_modes.DiscMode]) -> Decided:
        """Where the exact zeros of a head lead alone, the part of X_0 on which W is 0 stays: a tie
        where its tokens differ and pi^T of it is not 0."""
        factors = self.cell.case.factors
        if factors is None or not top or not all(mode.value.zero for mode in top):
            return NOTHING
        # X - X W_V G^-1 W_proj, where G = W_proj W_V is proved to be regular.
        W_V, W_proj = factors
        rest = solved(Bounded(*layer_discs.core_within(W_V, W_proj, UNIT)), Bounded.near(W_proj))
        if rest is None:
            return NOTHING
        part = self._X - self._X @ Bounded.near(W_V) @ rest
        if not (part[1:] - part[:1]).nonzero.any():
            return NOTHING
        column = np.eye(part.value.shape[1])[np.argmax(np.abs(part.value.mean(axis=0)))]
        if not self._has_mean(part, Bounded.near(column, 0.0)):
            return NOTHING
        most = min(self.n, len(top[0].value))
        rank = most if disc_modes.rank_at_least(part, most) else None
        # Where the mean is 0 of what stays, HFC/LFC grows: other ways decide that.
        return Decided(Outcome.TIE, limits_of_state(part, rank))

    @cached_property
    def _between(self) -> Bounded:
        """The differences Q^T X_0 [n-1, d]; those to the first token for a causal A."""
        n, away = self.n, self._X[1:] - self._X[:1]
        if self.causal:
            return away
        return away - Bounded.near(np.full((1, n - 1), 1 / (n + np.sqrt(n))), 4 * UNIT) @ away

    def _present(self, i: int, j: int, consensus: bool) -> bool:
        """Whether X_0 contains the pair of a_i, or of a = 1, and h_j."""
        if consensus:
            z = self.value_vector(j, left=True)
            return z is not None and self._has_mean(self._X, z)
        w = eigenvector(self.attention.T, self.cell.attention, i)
        return w is not None and self._with(w, self._between, self.value_vector(j, left=True))

    def _has_mean(self, X: Bounded, z: Bounded) -> bool:
        """Whether pi^T X z is not 0 for a closed class: shared, and the mean of what differs."""
        shared, apart = X[0] @ z, (X[:1] - X) @ z
        return any((shared - w @ apart).nonzero for w in self._means)

    @cached_property
    def _means(self) -> list[Bounded]:
        """pi of each closed class, where it is proved."""
        cell = self.cell
        means = (disc_modes.mean_of_class(cell.A, cell.error, S) for S in cell.case.classes)
        return [w for w in means if w is not None]


def _above(a: Discs, h: Discs, rest: float) -> bool:
    return bool((layer_discs.pair_moduli(a, h)[1].low > rest).any())


# Multiplications spent on looking at layers one by one, and so many layers at least.
_WORK, _FEWEST = 4e8, 16
# Eigenvectors of a larger condition are those of a matrix that is nearly defective.
TRUSTED = 1e6
# Coefficients, and parts of eigenvectors, below so many roundings a token are taken for 0.
DOUBT = 64


def onset_of_cell(cell: CellDiscs, X0: Array, tends_to: str | None) -> Onset | None:
    """The onset of an X_0 in floats; None where eigenvectors do not give it.

    X_0 = V C U^T with the eigenvectors of A and H, those of a = 1 last.
    """
    A, H, (n, d) = cell.case.A, cell.case.H, X0.shape
    with np.errstate(all="ignore"):
        try:
            V, a, classes = _tokens(A)
            h, U = np.linalg.eigh(H) if (H.T == H).all() else np.linalg.eig(H)
            U = U.astype(np.complex128)
            start = normalise(X0)[0].astype(np.complex128)
            C = np.asarray(np.linalg.solve(U, np.linalg.solve(V, start).T).T, dtype=np.complex128)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(C).all() or not np.linalg.cond(V) * np.linalg.cond(U) < TRUSTED:
            return None
    there = np.abs(C) > DOUBT * EPS * n * np.abs(C).max()
    balanced = cell.case.may_balance and bool((np.abs(A.sum(axis=0) - 1) <= n * EPS).all())
    mu = layer_discs.multipliers(a, h.astype(np.complex128))
    moduli = np.abs(mu)
    rho = float(moduli[there].max(initial=0.0))
    if rho <= 0:
        return None
    leading = np.abs(C[there & (moduli >= rho * (1 - GAP))])
    if leading.max() < np.finfo(np.float64).tiny:
        return None
    # P V and 1^T V / n, exactly 0 where the structure of A or rounding says so.
    mean = V.mean(axis=0, keepdims=True)
    hfc = V - mean
    if classes == 1:
        hfc[:, n - 1 :] = 0.0
    if balanced:
        mean[:, : n - classes] = 0.0
    for image in (hfc, mean):
        image[:, np.abs(image).max(axis=0) <= DOUBT * EPS * n] = 0.0
    scaled, logs = mu / moduli.max(), layer_discs.log_multiplier(np.multiply.outer(a, h)).real
    (whole, _), (of_hfc, up), (of_mean, down) = (
        _series(image, there, scaled, logs, C, U) for image in (V, hfc, mean)
    )
    assert whole is not None
    each = int(np.clip(_WORK / (n * d * (n + d)), _FEWEST, EACH))
    return onset(Sides(whole, of_hfc, of_mean, up - down, each=each), tends_to)


def _tokens(A: Array) -> tuple[Complex, Complex, int]:
    """(V [n, n], a [n], closed classes): eigenvectors of A, those of a = 1 last."""
    a, V = np.linalg.eigh(A) if (A.T == A).all() else np.linalg.eig(A)
    order = np.argsort(-np.abs(a - 1), kind="stable")
    a, V = a[order].astype(np.complex128), V[:, order].astype(np.complex128)
    means, ends = class_families(A)
    m = len(means)
    a[len(A) - m :] = 1.0
    V = V - ends @ (means @ V)
    V[:, len(A) - m :] = ends
    lengths = np.linalg.norm(V[:, : len(A) - m], axis=0)
    V[:, : len(A) - m] /= np.where(lengths > 0, lengths, np.nan)
    return V, a, m


def _series(
    image: Complex, kept: NDArray[np.bool_], mu: Complex, logs: Array, C: Complex, U: Complex
) -> tuple[Series | None, float]:
    """A part of X_L and the logarithm of its leading modulus; None where nothing of it is left.
    image: what it takes of the eigenvectors of A. mu [n, d]: up to scale, logs: log |mu|; C [n, d]:
    the coefficients, U [d, d]: the eigenvectors of H."""
    lengths = np.multiply.outer(np.linalg.norm(image, axis=0), np.linalg.norm(U, axis=0))
    with np.errstate(divide="ignore"):
        size = np.log(np.abs(C)) + np.log(lengths)
    there = kept & (lengths > 0)
    top = logs[there].max(initial=-np.inf)
    if np.isneginf(top):
        return None, 0.0
    leads = there & (logs >= top + np.log1p(-GAP))
    rate = np.where(leads, 0.0, logs - top) + 1j * np.angle(mu * mu[leads][0].conj())
    phases = np.exp(1j * np.angle(C))
    units = np.divide(phases, lengths, out=np.zeros_like(phases), where=lengths > 0)

    def combined(weights: Complex) -> Complex:
        full = np.zeros(there.shape, dtype=np.complex128)
        full[there] = weights
        return np.asarray(image @ (full * units) @ U.T)

    powers = np.zeros(int(there.sum()))
    return Series(rate[there], powers, size[there], leads[there], combined), float(top)
