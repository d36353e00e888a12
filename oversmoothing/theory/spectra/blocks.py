"""Spectra in balls: bases of invariant subspaces, and discs of a refined similarity (T6, T10).

Blocks: M V = V diag(T_1, ..., T_m) for every matrix of a cell (all matrices that round to the same
floats). Eigenvalues that the cell cannot tell apart share a block, so that V keeps its digits where
eigenvectors lose theirs. Two ways: by substitution where the zeros of M leave each index alone with
its eigenvalue (causal attention, diagonal H), with relative errors however small the entries are;
else by ordered Schur forms, refined by nothing but proved in balls, as Stewart (1973) does for a
perturbed matrix.

Discs: with V close to eigenvectors of M, R = V^-1 M V (solved in balls, which proves V invertible)
is nearly diagonal, and Gershgorin's discs contain the spectrum as in theory.spectra.discs.
V (I + F), F_ij = R_ij / (R_jj - R_ii), is closer by Newton's square; the discs are proved anew for
whatever V comes out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, pairwise, permutations
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.numbers.rounding import (
    UNIT,
    around,
    at_precision,
    gamma,
    inflated,
    upper_product,
    upper_sum,
)
from oversmoothing.theory.support.sizes import Array, Complex

Balls = list[list[flint.acb]]

# Eigenvalues this close (relative to the matrix) share a block: each way of drawing the line.
_DISTANCES = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
# Beyond this change of the basis nothing is claimed.
_LARGEST_CHANGE = 0.125


@dataclass(frozen=True)
class Block:
    """T [m, m] on the columns `columns` of the basis; value: a ball around all its eigenvalues.

    real: all are, in every matrix of the cell. conjugate: the column of the conjugate of its one
    eigenvalue, where that is another. consensus: of I - A, all are 0 exactly.
    """

    columns: tuple[int, ...]
    T: Balls
    value: flint.acb
    real: bool
    conjugate: tuple[int, ...] = ()
    consensus: bool = False

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def zero(self) -> bool:
        """Whether it is one eigenvalue, and 0 exactly."""
        return len(self) == 1 and bool(self.value == 0)


@dataclass(frozen=True)
class Blocks:
    """basis V [k, k] and its inverse, for the blocks of M.

    triangular: the eigenvalues are the diagonal entries of M, column i that of index i.
    """

    blocks: list[Block]
    basis: Balls
    inverse: Balls
    triangular: bool = False


def in_balls(M: Array, error: Array) -> Balls:
    """All matrices within error of M."""
    rows = zip(M.tolist(), error.tolist(), strict=True)
    return [[flint.acb(flint.arb(x, r)) for x, r in zip(*row, strict=True)] for row in rows]


def invariant_blocks(M: Balls) -> Iterator[Blocks]:
    """Blocks of every real matrix in the balls M [k, k], the finest first; perhaps none."""
    order = _order(M)
    return _by_schur(M) if order is None else iter([_by_substitution(M, order)])


def _order(M: Balls) -> list[int] | None:
    """Indices such that each row has entries at itself and at those before alone; None without."""
    left, order = set(range(len(M))), list[int]()
    while left:
        free = [i for i in sorted(left) if all(j == i or M[i][j] == 0 for j in left)]
        if not free:
            return None
        order += free
        left -= set(free)
    return order


def _by_substitution(M: Balls, order: list[int]) -> Blocks:
    """V_ip for the member p of a block: 1 at p, 0 at its other members, and elsewhere from
    M_ii V_i + sum_(j before i) M_ij V_j = V_i T."""
    k = len(M)
    reach: dict[int, set[int]] = {}
    for i in order:
        direct = [j for j in range(k) if j != i and M[i][j] != 0]
        reach[i] = set(direct).union(*(reach[j] for j in direct))
    zero, one = flint.acb(0), flint.acb(1)
    V = [[zero] * k for _ in range(k)]
    blocks = []

    def chained(p: int, q: int) -> bool:
        """Whether eigenvalues may be equal of which one reaches the other."""
        i, j = order[p], order[q]
        return j in reach[i] and bool(M[i][i].overlaps(M[j][j]))

    for places in clusters(k, chained):
        members = [order[p] for p in places]
        T = [[zero] * len(members) for _ in members]
        for i in order:
            sums = [
                sum((M[i][j] * V[j][p] for j in reach[i] if M[i][j] != 0), zero) for p in members
            ]
            if i in members:
                place = members.index(i)
                V[i][i] = one
                T[place] = [x + (M[i][i] if q == place else 0) for q, x in enumerate(sums)]
                continue
            for p in reversed(range(len(members))):
                total = sums[p] - sum(
                    (V[i][members[r]] * T[r][p] for r in range(p + 1, len(members))), zero
                )
                V[i][members[p]] = zero if total == 0 else total / (T[p][p] - M[i][i])
        value = reduce(flint.acb.union, (M[i][i] for i in members))
        blocks.append(Block(tuple(members), T, value, True))
    inverse = [[zero] * k for _ in range(k)]
    for i in order:
        for p in range(k):
            rest = sum((V[i][j] * inverse[j][p] for j in reach[i]), zero)
            inverse[i][p] = (one if i == p else zero) - rest
    return Blocks(blocks, V, inverse, triangular=True)


def clusters(count: int, near: Callable[[int, int], bool]) -> list[list[int]]:
    """0 ... count - 1 in groups: two near one another, by `near`(later, earlier), share one."""
    groups: list[list[int]] = []
    for i in range(count):
        joined = [g for g in groups if any(near(i, j) for j in g)]
        groups = [g for g in groups if g not in joined]
        groups.append([*sorted(j for g in joined for j in g), i])
    return groups


def ordered_schur(M: Array, values: Complex, members: Sequence[int]) -> tuple[Complex, Complex]:
    """(Z, T), M Z = Z T: orthonormal columns for these of the eigenvalues `values` of M."""
    from scipy.linalg import schur

    def inside(z: complex) -> bool:
        return int(np.argmin(np.abs(values - z))) in members

    T, Z, count = schur(M, output="complex", sort=inside)
    return Z[:, :count], T[:count, :count]


def _by_schur(M: Balls) -> Iterator[Blocks]:
    middle = np.array([[float(x.real.mid()) for x in row] for row in M])
    if not 1e-100 < float(np.abs(middle).max()) < 1e100:
        return
    values = np.linalg.eigvals(middle).astype(np.complex128)
    scale = float(np.linalg.norm(middle))
    seen: list[list[list[int]]] = []
    for distance in _DISTANCES:
        near = np.abs(values[:, None] - values) <= distance * scale
        groups = sorted(clusters(len(values), near.item))
        if groups in seen:
            continue
        seen.append(groups)
        blocks = _stewart(M, middle, values, groups)
        if blocks is not None:
            yield blocks


def _stewart(M: Balls, middle: Array, values: Complex, groups: list[list[int]]) -> Blocks | None:
    """S (I + Y) for S^-1 M S = D + O in balls, D block diagonal and all else in O (Brouwer).

    Y_ij (i != j) solves D_i Y_ij - Y_ij D_j = -(O Y)_ij - O_ij + Y_ij (O_jj + sum_k O_jk Y_kj),
    which maps column blocks with ||Y_j|| <= y = 2 ||O|| / sep into themselves where y <= 1/8, as
    then 1 + 2 y + y^2 <= 2. Norms of Frobenius; sep: the least over pairs of blocks.
    """
    from scipy.linalg import block_diag

    parts = [ordered_schur(middle, values, group)[0] for group in groups]
    if [Z.shape[1] for Z in parts] != list(map(len, groups)):
        return None
    S = flint.acb_mat(np.hstack(parts).tolist())
    try:
        inverse, similar = S.inv(), S.solve(flint.acb_mat(M) * S)
    except ZeroDivisionError:
        return None
    ends = accumulate(map(len, groups), initial=0)
    spans = [tuple(range(a, b)) for a, b in pairwise(ends)]
    D = [np.array([[complex(similar[p, q].mid()) for q in s] for p in s]) for s in spans]
    error = _frobenius(similar - flint.acb_mat(block_diag(*D).tolist()))
    moved = flint.arb(0)
    if len(D) > 1:
        separation = flint.arb(min(_separation(x, y) for x, y in permutations(D, 2)))
        if not 2 * error <= _LARGEST_CHANGE * separation:
            return None
        moved = 2 * error / separation
    within = error * (1 + moved)
    blocks = [
        Block(s, _balls(x, within), _disc(x, within), False) for s, x in zip(spans, D, strict=True)
    ]
    # ||(I + Y)^-1 - I|| <= ||Y|| / (1 - ||Y||), over all column blocks.
    whole = moved * flint.arb(len(groups)).sqrt()
    if not whole < 0.5:
        return None
    blurred = whole / (1 - whole) * _frobenius(inverse)
    return Blocks(
        [_realised(block, blocks) for block in blocks],
        _balls(S, moved * _frobenius(S)),
        _balls(inverse, blurred),
    )


def _frobenius(M: flint.acb_mat) -> flint.arb:
    """An upper bound of the norm of Frobenius."""
    return sum((x * x for x in (abs(x).upper() for x in M.entries())), flint.arb(0)).sqrt().upper()


def _separation(first: Complex, second: Complex) -> float:
    """A lower bound of the least singular value of Y -> first Y - Y second; 0 where none is proved.

    For a table T of the map and X ~ T^-1 it is at least (1 - ||I - X T||) / ||X||.
    """
    i, j = len(first), len(second)
    table = np.kron(np.eye(j), first) - np.kron(second.T, np.eye(i))
    try:
        X = np.linalg.inv(table)
    except np.linalg.LinAlgError:
        return 0.0
    k = i * j
    with np.errstate(all="ignore"):
        # Products of complex numbers of length k, and one rounding of each entry of T.
        wrong = upper_product(np.abs(X), np.abs(table)) * (2 * gamma(2 * k + 4) + 4 * UNIT)
        defect = inflated(np.abs(np.eye(k) - X @ table) + wrong, 8)
        size = inflated(np.abs(X), 4)
        norm = min(
            float(inflated(np.asarray(np.linalg.norm(size)), k * k + 8)),
            float(upper_sum(size).max() ** 0.5 * upper_sum(size.T).max() ** 0.5 * (1 + 8 * UNIT)),
        )
        lost = float(inflated(np.asarray(np.linalg.norm(defect)), k * k + 8))
        least = (1 - lost) / norm * (1 - 8 * UNIT)
    return least if least > 0 else 0.0


def _disc(block: Complex, error: flint.arb) -> flint.acb:
    """Around all eigenvalues of every matrix this close to the block: |z| <= ||K^p||^(1/p)."""
    m = len(block)
    centre = complex(np.trace(block)) / m
    K = flint.acb_mat(_balls(block, error)) - flint.acb_mat((centre * np.eye(m)).tolist())
    power, radius = K, _frobenius(K)
    for p in range(2, 2 * m + 1):
        power = power * K
        size = _frobenius(power).root(p).upper()
        radius = size if size < radius else radius
    return _balls(np.array([[centre]]), radius)[0][0]


def _balls(M: Complex | flint.acb_mat, error: flint.arb) -> Balls:
    return [[around(flint.acb(x), error.upper()) for x in row] for row in M.tolist()]


def _realised(block: Block, blocks: list[Block]) -> Block:
    """Conjugates of the eigenvalues of a real matrix are among them: one that no other can be the
    conjugate of is real."""
    mirrored = block.value.conjugate()
    near = [b for b in blocks if mirrored.overlaps(b.value)]
    if len(block) > 1 or len(near) != 1 or len(near[0]) > 1:
        return block
    if near[0] is not block:
        return replace(block, conjugate=near[0].columns)
    value = flint.acb(block.value.real)
    return Block(block.columns, [[value]], value, True)


# Bits that the entries of a matrix are enclosed with, and bits worked with step by step: each step
# squares the error of V, from 1e-14 over 1e-28 to 1e-56.
BITS = 320
_SCHEDULE = (128, 128, 256, 256)


@dataclass(frozen=True)
class BallSpectrum:
    """A box for each of the k eigenvalues of M; alone: whether the box holds that eigenvalue only
    (else it is the hull of a cluster). basis V, similar V^-1 M V, in so many bits."""

    boxes: list[flint.acb]
    alone: list[bool]
    basis: flint.acb_mat
    similar: flint.acb_mat
    bits: int

    def left_vector(self, i: int) -> list[flint.acb]:
        """w [k] with w^T M = lambda_i w^T, for a box that is alone.

        w^T = y^T V^-1 and y^T R = lambda_i y^T. The largest entry of y is y_i, taken as 1: were it
        y_m, lambda_i would lie in the column disc of m. Then |y_m| <= c_m / (|R_mm - R_ii| - c_i)
        with the column sums c of the moduli off the diagonal.
        """
        with at_precision(self.bits):
            k, table = len(self.boxes), self.similar.tolist()
            column = _off_diagonal(self.similar).sum(axis=0)
            reach = [
                (column[m] / (abs(table[m][m] - table[i][i]) - column[i])).upper() if m != i else 0
                for m in range(k)
            ]
            y = [around(flint.acb(int(m == i)), r) for m, r in enumerate(reach)]
            return self.basis.transpose().solve(flint.acb_mat(k, 1, y)).entries()


def _off_diagonal(M: flint.acb_mat) -> Any:
    """The moduli of the entries [k, k], 0 on the diagonal."""
    moduli = np.array([[abs(x) for x in row] for row in M.tolist()], dtype=object)
    np.fill_diagonal(moduli, flint.arb(0))
    return moduli


def enclose_in_balls(M: flint.acb_mat) -> Iterator[BallSpectrum]:
    """Finer and finer spectra of every real matrix in the balls M [k, k].

    None at all where no V is proved invertible.
    """
    middle = np.array([[float(x.real.mid()) for x in row] for row in M.tolist()])
    try:
        V = flint.acb_mat(np.linalg.eig(middle)[1].tolist())
        for bits in _SCHEDULE:
            with at_precision(bits):
                spectrum = _discs(V, M, bits)
                V = _refined(spectrum)
            yield spectrum
    except (np.linalg.LinAlgError, ZeroDivisionError):
        return


def _refined(spectrum: BallSpectrum) -> flint.acb_mat:
    R = np.array([[complex(x.mid()) for x in row] for row in spectrum.similar.tolist()])
    # What overflows is not refined.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = np.diag(R)[None, :] - np.diag(R)[:, None]
        # Within a cluster the step would not be small: its members stay together.
        F = np.where(np.abs(R) < np.abs(gap) / 4, R / gap, 0.0)
    return (spectrum.basis + spectrum.basis * flint.acb_mat(F.tolist())).mid()


def _discs(V: flint.acb_mat, M: flint.acb_mat, bits: int) -> BallSpectrum:
    """Raises ZeroDivisionError where V is not proved invertible."""
    similar = V.solve(M * V)
    off, k = _off_diagonal(similar), similar.nrows()
    sums = zip(off.sum(axis=1), off.sum(axis=0), strict=True)
    boxes = [around(similar[i, i], r.max(c).upper()) for i, (r, c) in enumerate(sums)]
    alone, hulls = [False] * k, list(boxes)
    for group in clusters(k, lambda i, j: bool(boxes[i].overlaps(boxes[j]))):
        whole = reduce(flint.acb.union, (boxes[j] for j in group))
        for j in group:
            alone[j], hulls[j] = len(group) == 1, whole
    return BallSpectrum(hulls, alone, V, similar, bits)
