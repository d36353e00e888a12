"""Spectra in balls: exact characteristic polynomials, or discs from left eigenvectors.

Gershgorin's discs of U M U^-1 in balls, with approximate left eigenvectors U refined by Newton.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.checker.reading import Given, Matrix, to_fmpq

# Characteristic polynomials up to this size, where discs do as well beyond ...
POLYNOMIAL_SIZE = 20
# ... and up to this one where only they will do.
TIE_SIZE = 48
# Bound of what a characteristic polynomial may cost: some seconds.
WORK = 2**33
# Side of the largest matrix that discs are taken of: half a minute.
DISC_SIZE = 320


def exact(M: Matrix) -> flint.fmpq_mat:
    return flint.fmpq_mat([[to_fmpq(x) for x in row] for row in M])


def has_polynomial(M: Matrix, size: int) -> bool:
    """Whether the characteristic polynomial of M is computed: side^4 times its bits is bounded."""
    if len(M) > size:
        return False
    most = WORK // len(M) ** 4
    common = flint.fmpz(1)
    for row in M:
        for x in row:
            below = flint.fmpz(x.denominator)
            common *= below // common.gcd(below)
            if common.bit_length() + x.numerator.bit_length() > most:
                return False
    return True


def with_polynomials(given: Given) -> tuple[Matrix, Matrix] | None:
    """A and H where both are in fractions and their characteristic polynomials are computed."""
    if given.A is None or not given.H:
        return None
    small = all(has_polynomial(M, TIE_SIZE) for M in (given.A, given.H))
    return (given.A, given.H) if small else None


@dataclass(frozen=True)
class Discs:
    """One box for each eigenvalue; discs that meet share the box around their union.

    single: whether no other eigenvalue is in the box. U [k, k], and similar = U M U^-1 as rows.
    """

    boxes: list[Any]
    single: list[bool]
    U: Any
    similar: list[list[Any]]


def discs(M: Any, bits: int) -> Discs | None:
    """Discs of a real ball matrix M [k, k]; None where U is not proved invertible, or k too large.

    With R = U M U^-1, (I + G) U for G_ij = R_ij / (R_ii - R_jj) squares the error.
    """
    if M.nrows() > DISC_SIZE:
        return None
    try:
        with flint.ctx.workprec(bits):
            middle = np.array([[float(x.real.mid()) for x in row] for row in M.tolist()])
            U = flint.acb_mat(np.linalg.eig(middle.T)[1].T.tolist())
            similar = _similar(U, M)
            for _ in range(bits // 96):
                R = np.array([[complex(x.mid()) for x in row] for row in similar])
                step = np.zeros_like(R)
                # What overflows is not refined.
                with np.errstate(all="ignore"):
                    gap = np.diag(R)[:, None] - np.diag(R)[None, :]
                    np.divide(R, gap, out=step, where=np.abs(gap) / 4 > np.abs(R))
                U = (U + flint.acb_mat(step.tolist()) * U).mid()
                similar = _similar(U, M)
            return merged(U, similar)
    except (np.linalg.LinAlgError, ZeroDivisionError):
        return None


def _similar(U: Any, M: Any) -> list[list[Any]]:
    """U M U^-1, from the transposed system U^T X = (U M)^T."""
    table: list[list[Any]] = U.transpose().solve((U * M).transpose()).transpose().tolist()
    return table


def _off_diagonal(moduli: list[list[Any]], i: int) -> tuple[Any, Any]:
    """Sums over row i and over column i without the diagonal."""
    others = [j for j in range(len(moduli)) if j != i]
    row = sum((moduli[i][j] for j in others), flint.arb(0))
    return row, sum((moduli[j][i] for j in others), flint.arb(0))


def merged(U: Any, similar: list[list[Any]]) -> Discs:
    """The discs of similar = U M U^-1; those that meet share a box."""
    moduli = [[abs(x) for x in row] for row in similar]
    boxes = []
    for i in range(len(similar)):
        row, column = _off_diagonal(moduli, i)
        spread = flint.arb(0, row.max(column))
        boxes.append(similar[i][i] + flint.acb(spread, spread))
    group = np.arange(len(boxes))
    for i, box in enumerate(boxes):
        for k, before in enumerate(boxes[:i]):
            if box.overlaps(before):
                group[group == group[k]] = group[i]
    met = [[boxes[j] for j in np.flatnonzero(group == g)] for g in group]
    hulls = [reduce(flint.acb.union, several) for several in met]
    return Discs(hulls, [len(several) == 1 for several in met], U, similar)


def left_eigenvector(spectrum: Discs, i: int) -> Any:
    """w^T [1, k] with w^T M = lambda w^T for a single box i: y^T U with y^T R = lambda y^T.

    The largest y_m is y_i = 1, for lambda lies in no other column disc; the others are at most
    their column sum over their distance to lambda.
    """
    k = len(spectrum.boxes)
    moduli = [[abs(x) for x in row] for row in spectrum.similar]
    own = _off_diagonal(moduli, i)[1]
    y = []
    for m in range(k):
        if m == i:
            y.append(flint.acb(1))
            continue
        distance = abs(spectrum.similar[m][m] - spectrum.similar[i][i]) - own
        size = flint.arb(0, _off_diagonal(moduli, m)[1] / distance)
        y.append(flint.acb(size, size))
    return flint.acb_mat(1, k, y) * spectrum.U


def steps(given: Given) -> Iterator[tuple[int, int]]:
    """(bits, size up to which polynomials are used) to try, one after the other.

    Discs gain nothing from more than a few hundred bits, and polynomials of moderate size still see
    what discs do not: Jordan blocks.
    """
    largest = max(given.n, given.d)
    if given.logits is None and largest <= POLYNOMIAL_SIZE:
        yield from ((bits, POLYNOMIAL_SIZE) for bits in (160, 640, 2560, 10240, 40960))
        return
    yield from ((bits, POLYNOMIAL_SIZE) for bits in (160, 288))
    if min(given.n if given.A else TIE_SIZE + 1, given.d if given.H else TIE_SIZE + 1) <= TIE_SIZE:
        yield from ((bits, TIE_SIZE) for bits in (160, 640, 2560))


def enclosures(given: Given) -> Iterator[tuple[Any, Any, Any]]:
    """Finer and finer balls around rho_C, rho_Q and rho_C - rho_Q (None for n = 1).

    None at all where no spectra are enclosed.
    """
    for bits, size in steps(given):
        spectra = eigenvalues(given, bits, size)
        if spectra is None:
            continue
        a, h = spectra
        with flint.ctx.workprec(bits):
            rho_c = maximum([abs(1 + x) for x in h])
            rho_q = maximum([abs(1 + x * y) for x in h for y in a]) if a else None
            margin = None if rho_q is None else rho_c - rho_q
        yield rho_c, rho_q, margin


def attention_balls(given: Given, bits: int) -> Any:
    """A in balls [n, n]: as it is, or the softmax of the logits."""
    with flint.ctx.workprec(bits + 64):
        if given.A is not None:
            return flint.arb_mat(exact(given.A))
        rows = []
        for row in given.logits or []:
            top = max(x for x in row if x is not None)
            weights = [0 if x is None else flint.arb(to_fmpq(x - top)).exp() for x in row]
            share = 1 / sum(weights, flint.arb(0))
            rows.append([x * share for x in weights])
        return flint.arb_mat(rows)


def attention_discs(given: Given, bits: int) -> Discs | None:
    """spec(A) without one copy of 1: with z_i = x_1 - x_(i+1), the first token as reference, the
    matrix is A_(i+1)(j+1) - A_1(j+1)."""
    with flint.ctx.workprec(bits + 64):
        first, *rest = attention_balls(given, bits).tolist()
        table = [[x - y for x, y in zip(row[1:], first[1:], strict=True)] for row in rest]
        matrix = flint.acb_mat(table)
    return discs(matrix, bits)


def value_discs(given: Given, bits: int) -> tuple[Discs | None, Any, bool]:
    """(discs, lift, zeros): left eigenvectors z of H are lift times those of the enclosed matrix.

    H itself where it is given or no larger, else the core (W_proj W_V)^T of a head, lifted by W_V,
    and whether exact zeros come on top.
    """
    with flint.ctx.workprec(bits + 64):
        # The zeros of a head, semisimple and many, would leave no basis of eigenvectors in floats.
        if given.factors is None or len(given.factors[1]) >= given.d:
            return discs(flint.acb_mat(exact(given.H)), bits), None, False
        W_V, W_proj = (exact(factor) for factor in given.factors)
        core = (W_proj * W_V).transpose()
        return discs(flint.acb_mat(core), bits), flint.acb_mat(W_V), core.nrows() < given.d


def eigenvalues(given: Given, bits: int, size: int) -> tuple[list[Any], list[Any]] | None:
    """Balls that contain spec(A) without one copy of 1, and spec(H); from a polynomial
    each different eigenvalue once, and so the exact zeros of a head."""
    if given.n == 1:
        a = []
    elif given.A is not None and has_polynomial(given.A, size):
        polynomial, rest = divmod(exact(given.A).charpoly(), flint.fmpq_poly([-1, 1]))
        assert rest.is_zero()
        a = roots(polynomial.numer(), bits)
    elif _is_causal(given):
        A = attention_balls(given, bits)
        a = [flint.acb(A[i, i]) for i in range(1, given.n)]
    else:
        attention = attention_discs(given, bits)
        if attention is None:
            return None
        a = attention.boxes
    if given.H and has_polynomial(given.H, size):
        return a, roots(exact(given.H).charpoly().numer(), bits)
    value, _, zeros = value_discs(given, bits)
    return None if value is None else (a, value.boxes + [flint.acb(0)] * zeros)


def _is_causal(given: Given) -> bool:
    """Lower triangular: then the first token attends to itself alone, and the diagonal is spec."""
    if given.A is not None:
        return not any(any(row[i + 1 :]) for i, row in enumerate(given.A))
    rows = given.logits or []
    return all(x is None for i, row in enumerate(rows) for x in row[i + 1 :])


def roots(polynomial: Any, bits: int) -> list[Any]:
    """The different roots of a polynomial of integers, in balls."""
    with flint.ctx.workprec(bits):
        return [root for root, _ in polynomial.complex_roots()]


def maximum(values: list[Any]) -> Any:
    """A ball around the largest of several real numbers, each known by a ball."""
    low, high = values[0].lower(), values[0].upper()
    for x in values[1:]:
        low, high = low.max(x.lower()), high.max(x.upper())
    return low.union(high)
