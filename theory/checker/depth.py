"""The depth from which HFC/LFC stays below eps, by powers of the operator."""

from fractions import Fraction
from typing import Any

import flint

from oversmoothing.theory.checker.operators import operators, stationary
from oversmoothing.theory.checker.reading import Check
from oversmoothing.theory.checker.spectra import exact, to_fmpq

# Longest power of the quotient block tried, and layers checked one by one.
LONGEST_PERIOD = 512
LONGEST_CHECK = 5000


def check_depth(
    A: list[list[Fraction]],
    H: list[list[Fraction]],
    X: list[list[Fraction]],
    depth: int,
    eps: Fraction,
) -> Check:
    """HFC/LFC <= eps at every L >= depth, by powers of the operator in place of eigenvectors.

    |z^T c_L| = |1 + h|^L |z^T c_0| for a left eigenvector z = e^T g(H), g = charpoly / (x - h);
    ||y_L|| <= ||T^p||^q ||T^r|| ||y_0|| for L = p q + r. From some depth on that proves the bound
    for good; the layers before are checked one by one.
    """
    parts, pi = operators(A, H, X), stationary(A)
    if parts is None or pi is None:
        return Check(False, "the stationary distribution of A is not unique")
    _, c, block, y = parts
    n = len(A)
    if block is None or not any(y.entries()):
        return Check(True, f"HFC = 0 at every depth, so HFC/LFC <= {eps} from {depth} on")
    bits = 512
    with flint.ctx.workprec(bits):
        growth, weight = _consensus_growth(H, c)
        if growth is None:
            return Check(False, "no left eigenvector of H was found that X_0 contains")
        start = norm(flint.arb_mat(y).entries())
        k = (n * sum(ball_of((p - Fraction(1, n)) ** 2) for p in pi)).sqrt()
        bound = ball_of(eps)
        norms = [flint.arb(1)]
        power = flint.arb_mat(block)
        period = None
        for p in range(1, LONGEST_PERIOD + 1):
            norms.append(norm(power.entries()))
            if norms[p] < growth**p:
                period = p
                break
            power = power * flint.arb_mat(block)
        if period is None:
            return Check(
                False, "no power of the quotient block is seen to be smaller than consensus"
            )
        # t_L = ||HFC|| / (sqrt n ||c||) <= C s^(L // period), s < 1; T1e: t (1 + k eps) <= eps.
        s = norms[period] / growth**period
        early = [norms[r] / growth**r for r in range(period)]
        largest = early[0]
        for value in early[1:]:
            largest = largest.max(value)
        constant = largest * start / (flint.arb(n).sqrt() * weight)
        target = bound / (1 + k * bound)
        last = depth
        while not constant * s ** (last // period) <= target:
            last += period
            if last > depth + LONGEST_CHECK:
                return Check(False, "the depth could not be confirmed within the layers checked")
    # A layer in balls loses a few bits to the cancellation in its products.
    with flint.ctx.workprec(bits + 8 * last):
        wrong = _first_above(A, H, X, depth, last, eps)
    if wrong is not None:
        return Check(False, f"HFC/LFC <= {eps} does not hold at layer {wrong}, past {depth}")
    return Check(True, f"HFC/LFC <= {eps} at every depth from {depth} on")


def ball_of(x: Fraction) -> Any:
    return flint.arb(to_fmpq(x))


def norm(entries: list[Any]) -> Any:
    """Frobenius norm, which bounds the 2-norm of a matrix."""
    return sum((x * x for x in entries), flint.arb(0)).sqrt()


def _consensus_growth(H: list[list[Fraction]], c: Any) -> tuple[Any, Any]:
    """(|1 + h|, |z^T c_0| / ||z||) for the largest |1 + h| whose left eigenvector sees c_0."""
    d = len(H)
    matrix = flint.acb_mat(exact(H))
    identity = flint.acb_mat(d, d, [int(i == j) for i in range(d) for j in range(d)])
    roots: list[Any] = exact(H).charpoly().numer().complex_roots()
    best: tuple[Any, Any] = (None, None)
    for k, (h, multiplicity) in enumerate(roots):
        if multiplicity > 1:
            continue
        g = identity
        for j, (other, count) in enumerate(roots):
            for _ in range(count if j != k else 0):
                g = g * (matrix - identity * other)
        for i in range(d):
            z = [g[i, j] for j in range(d)]
            content = abs(
                sum((x * flint.acb(v) for x, v in zip(z, c.entries(), strict=True)), flint.acb(0))
            )
            length = sum((x.real * x.real + x.imag * x.imag for x in z), flint.arb(0)).sqrt()
            if content > 0 and length > 0:
                modulus = abs(1 + h)
                if best[0] is None or modulus.lower() > best[0].lower():
                    best = (modulus, content / length)
                break
    return best


def _first_above(
    A: list[list[Fraction]],
    H: list[list[Fraction]],
    X: list[list[Fraction]],
    first: int,
    last: int,
    eps: Fraction,
) -> int | None:
    """The first layer in [first, last) where HFC/LFC <= eps is not seen, in balls, decoupled."""
    parts, pi = operators(A, H, X), stationary(A)
    assert parts is not None and pi is not None
    n, d = len(A), len(H)
    consensus, block = flint.arb_mat(parts[0]), flint.arb_mat(parts[2])
    c, y = flint.arb_mat(parts[1]), flint.arb_mat(parts[3])
    for layer in range(last):
        if layer >= first:
            hfc_squared, lfc_squared = flint.arb(0), flint.arb(0)
            for p in range(d):
                tokens = [flint.arb(0)] + [y[(i - 1) * d + p, 0] for i in range(1, n)]
                mean = sum(tokens, flint.arb(0)) / n
                centred = [x - mean for x in tokens]
                shift = sum(
                    (ball_of(Fraction(1, n) - q) * x for q, x in zip(pi, centred, strict=True)),
                    flint.arb(0),
                )
                hfc_squared += sum((x * x for x in centred), flint.arb(0))
                lfc_squared += n * (c[p, 0] + shift) * (c[p, 0] + shift)
            if not hfc_squared <= ball_of(eps) ** 2 * lfc_squared:
                return layer
        c, y = consensus * c, block * y
    return None
