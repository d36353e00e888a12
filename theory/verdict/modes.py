"""The terms of a trajectory from exact spectral projectors, defective blocks included (T4, T6).

For distinct eigenvalues a of A and h of H with projectors E_a, E_h and nilpotents N, M, the block
X_ah = E_a X_0 E_h^T evolves by mu + D, D(X) = h N X + a X M^T + N X M^T, mu = 1 + h a, so that
X_L = sum over blocks and k of C(L, k) mu^(L-k) D^k(X_ah).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import factorial

import flint
import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.exact_matrix import identity as identity_matrix
from oversmoothing.theory.numbers.rational import Matrix, to_flint
from oversmoothing.theory.spectra.algebraic import Eigenvalue, eigenvalues, factors
from oversmoothing.theory.verdict.limits import Term

# Working precision; a coefficient (or a difference of moduli or multipliers) below 2^-ZERO_BITS
# relative to the largest is taken for zero.
BITS = 768
ZERO_BITS = 256


def _to_acb(matrix: Matrix) -> flint.acb_mat:
    return flint.acb_mat(to_flint(matrix))


def _magnitude(matrix: flint.acb_mat) -> flint.arb:
    """Largest |entry|, as an upper bound."""
    return max((abs(x).upper() for x in matrix.entries()), default=flint.arb(0))


def projectors(M: Matrix) -> list[tuple[Eigenvalue, flint.acb_mat, flint.acb_mat]]:
    """(eigenvalue, E, N) for every distinct eigenvalue of a rational matrix, at `BITS` bits.

    E = p(M) with p = 1 mod (x - a)^m and p = 0 mod (x - b)^m_b for the others b; N = (M - a) E.
    """
    found = eigenvalues(factors(M))
    result = []
    with at_precision(BITS):
        dense = _to_acb(M)
        size = dense.nrows()
        identity = _to_acb(identity_matrix(size))
        for a in found:
            m = a.factor.multiplicity
            center = a.ball(BITS)
            others = [b for b in found if b != a]
            # u(x) = prod (x - b)^m_b as a power series in t = x - a, inverted to order m.
            u = [flint.acb(1)] + [flint.acb(0)] * (m - 1)
            U = identity
            for b in others:
                root = b.ball(BITS)
                for _ in range(b.factor.multiplicity):
                    gap = center - root
                    u = [gap * u[k] + (u[k - 1] if k else 0) for k in range(m)]
                    U = U * (dense - identity * root)
            inverse = [1 / u[0]]
            for k in range(1, m):
                tail = sum((u[s] * inverse[k - s] for s in range(1, k + 1)), flint.acb(0))
                inverse.append(-tail / u[0])
            shifted = dense - identity * center
            V = identity * inverse[m - 1]
            for k in range(m - 2, -1, -1):
                V = V * shifted + identity * inverse[k]
            E = U * V
            result.append((a, E, shifted * E))
    return result


@dataclass(frozen=True)
class ModeContent:
    """What X_0 contains: the terms of X_L, and the largest moduli on each side (T4e).

    consensus and quotient: |mu| of the largest mode present, None where there is none.
    comparison: 1 consensus larger (or alone), -1 quotient, 0 equal, None neither present.
    vanishes: only modes with mu = 0 are present, so X_L is exactly 0 from some layer on.
    """

    terms: list[Term]
    consensus: float | None
    quotient: float | None
    comparison: int | None
    vanishes: bool


def mode_content(A: Matrix, H: Matrix, X0: Matrix, pi: list[Fraction]) -> ModeContent:
    """Decompose X_0 (non-zero) over the modes of I + H (x) A at `BITS` bits."""
    with at_precision(BITS):
        tiny = flint.arb(2) ** (-ZERO_BITS)
        start = _to_acb(X0)
        threshold = _magnitude(start) * tiny
        blocks = _blocks(A, H, start, threshold)
        stationary = _to_acb([pi])
        raw: list[_RawTerm] = []
        consensus: list[flint.arb] = []
        quotient: list[flint.arb] = []
        for block in blocks:
            # mu = 0: the block is gone after finitely many layers.
            mu = block.multiplier
            modulus = abs(mu) if abs(mu).upper() >= tiny else flint.arb(0)
            for k, carry in enumerate(block.powers):
                term = _split(modulus, mu, k, carry)
                if _magnitude(term.hfc) >= threshold:
                    quotient.append(modulus)
                if block.attention.is_one and _magnitude(stationary * carry) >= threshold:
                    consensus.append(modulus)
                if modulus > 0:
                    _add(raw, term, tiny)
        top_c, top_q = _top(consensus), _top(quotient)
        return ModeContent(
            _terms(raw, threshold, tiny),
            None if top_c is None else float(top_c.mid()),
            None if top_q is None else float(top_q.mid()),
            _compare(top_c, top_q, tiny),
            vanishes=not raw,
        )


@dataclass(frozen=True)
class _Block:
    """E_a X_0 E_h^T and its images under the nilpotent D, up to the last that is not zero."""

    attention: Eigenvalue
    multiplier: flint.acb
    powers: list[flint.acb_mat]


@dataclass(frozen=True)
class _RawTerm:
    modulus: flint.arb
    multiplier: flint.acb
    k: int
    hfc: flint.acb_mat
    mean: flint.acb_mat


def _blocks(A: Matrix, H: Matrix, start: flint.acb_mat, threshold: flint.arb) -> list[_Block]:
    value = [(h, E.transpose(), M.transpose()) for h, E, M in projectors(H)]
    found = []
    for a, E_a, N in projectors(A):
        left = E_a * start
        for h, E_h, M in value:
            carry = left * E_h
            a_ball, h_ball = a.ball(BITS), h.ball(BITS)
            powers: list[flint.acb_mat] = []
            while _magnitude(carry) >= threshold and len(powers) < start.nrows() + start.ncols():
                powers.append(carry)
                step = N * carry
                carry = step * h_ball + (carry * M) * a_ball + step * M
            if powers:
                found.append(_Block(a, 1 + h_ball * a_ball, powers))
    return found


def _split(modulus: flint.arb, mu: flint.acb, k: int, carry: flint.acb_mat) -> _RawTerm:
    n = carry.nrows()
    mean = flint.acb_mat(1, n, [flint.acb(1) / n] * n) * carry
    return _RawTerm(modulus, mu, k, carry - flint.acb_mat(n, 1, [1] * n) * mean, mean)


def _add(raw: list[_RawTerm], term: _RawTerm, tiny: flint.arb) -> None:
    """Add to the term of the same multiplier and k: means may cancel there (h = 0: mu = 1)."""
    for index, known in enumerate(raw):
        if known.k == term.k and abs(known.multiplier - term.multiplier).upper() < tiny:
            hfc, mean = known.hfc + term.hfc, known.mean + term.mean
            raw[index] = _RawTerm(known.modulus, known.multiplier, known.k, hfc, mean)
            return
    raw.append(term)


def _terms(raw: list[_RawTerm], threshold: flint.arb, tiny: flint.arb) -> list[Term]:
    levels = _levels([term.modulus for term in raw], tiny)
    scale = max((max(_magnitude(t.hfc), _magnitude(t.mean)) for t in raw), default=flint.arb(1))
    terms = []
    for term, level in zip(raw, levels, strict=True):
        # C(L, k) mu^(L-k) ~ L^k / k! mu^(L-k); the phase of mu^-k is left to `limits`.
        size = scale * factorial(term.k) * term.modulus**term.k
        terms.append(
            Term(
                level,
                term.k,
                float(term.multiplier.arg().mid()),
                _numpy(term.hfc, size, threshold),
                _numpy(term.mean, size, threshold)[0],
            )
        )
    return terms


def _numpy(matrix: flint.acb_mat, size: flint.arb, threshold: flint.arb) -> NDArray[np.complex128]:
    if _magnitude(matrix) < threshold:
        return np.zeros((matrix.nrows(), matrix.ncols()), dtype=np.complex128)
    values = [complex((x / size).mid()) for x in matrix.entries()]
    return np.array(values).reshape(matrix.nrows(), matrix.ncols())


def _top(moduli: list[flint.arb]) -> flint.arb | None:
    return max(moduli, key=lambda modulus: modulus.mid(), default=None)


def _compare(first: flint.arb | None, second: flint.arb | None, tiny: flint.arb) -> int | None:
    if first is None or second is None:
        return None if first is second else (1 if second is None else -1)
    if abs(first - second).upper() < tiny:
        return 0
    return 1 if first > second else -1


def _levels(moduli: list[flint.arb], tiny: flint.arb) -> list[int]:
    """Rank order of the moduli, equal ones (within `tiny`) sharing a level."""
    order = sorted(range(len(moduli)), key=lambda i: moduli[i].mid())
    level = [0] * len(moduli)
    for position, index in enumerate(order):
        previous = order[position - 1] if position else index
        step = abs(moduli[index] - moduli[previous]).upper() >= tiny
        level[index] = level[previous] + int(step)
    return level
