"""The certified depth L*(eps) with every constant enclosed: rigorous (T5d)."""

from fractions import Fraction

import flint

from oversmoothing.theory.depth.bounds import CertifiedDepth
from oversmoothing.theory.depth.ratios import squared_norms
from oversmoothing.theory.numbers.balls import at_precision, norm, to_ball
from oversmoothing.theory.numbers.exact import Matrix, exact_stationary, to_flint, weighted_mean
from oversmoothing.theory.spectra.layer_discs import radius_in_balls


def certified_depth_in_balls(
    A: Matrix, H: Matrix, X0: Matrix, eps: Fraction
) -> CertifiedDepth | None:
    """The same from rational input with every constant enclosed: rigorous (T5d).

    The floats of the result are rounded for display; `depth` is not. None where balls cannot
    decide: not SMOOTHING, repeated eigenvalues of B or H, no content found.
    """
    for bits in (256, 1024):
        with at_precision(bits):
            try:
                return _depth(A, H, X0, eps)
            except (ValueError, ZeroDivisionError):
                # Eigenvalues or eigenvectors that are not told apart in so many bits.
                continue
    return None


def _depth(A: Matrix, H: Matrix, X0: Matrix, eps: Fraction) -> CertifiedDepth | None:
    """At the precision set. Raises ValueError or ZeroDivisionError where that is too low."""
    n = len(A)
    pi = exact_stationary(A, [list(range(n))])
    a, _, kappa_b = _ball_basis(_orthonormal_quotient(A))
    h, left, kappa_h = _ball_basis(flint.acb_mat(to_flint(H)))
    c0 = [to_ball(x) for x in weighted_mean(pi, X0)]
    hfc = to_ball(squared_norms(X0)[0]).sqrt()
    upper_q = radius_in_balls(a, h).upper()
    k_squared = n * sum((p - Fraction(1, n)) ** 2 for p in pi)
    k, e = to_ball(Fraction(k_squared)).sqrt(), to_ball(eps)
    found: list[CertifiedDepth] = []
    for j, value in enumerate(h):
        z = [left[j, i] for i in range(len(h))]
        content = abs(sum((x * y for x, y in zip(z, c0, strict=True)), flint.acb(0)))
        lower_c = abs(1 + value).lower()
        if not (content > 0 and lower_c > upper_q):
            continue
        K = kappa_h * kappa_b * hfc * norm(z) / (flint.arb(n).sqrt() * content)
        rate, target = upper_q / lower_c, K * (1 + k * e) / e
        if target <= 1:
            depth = 0
        else:
            # Not log 0: where n > 1 balls show no multiplier to be 0, and n = 1 has K = 0.
            layers = (-target.log() / rate.log() + 1e-9).upper().ceil().unique_fmpz()
            if layers is None:
                raise ValueError("more layers than digits")
            depth = max(int(layers), 0)
        parts = [float(x.mid()) for x in (K, rate, k, kappa_h, kappa_b)]
        found.append(CertifiedDepth(depth, *parts))
    return min(found, key=lambda one: one.depth, default=None)


def _orthonormal_quotient(A: Matrix) -> flint.acb_mat:
    """Q^T A Q in balls, Q from the Householder reflector of theory.layer.quotient."""
    n = len(A)
    u = [1 / flint.arb(n).sqrt() for _ in range(n)]
    u[0] = u[0] + 1
    rows = [[int(i == j) - u[i] * u[j] / u[0] for j in range(1, n)] for i in range(n)]
    Q = flint.arb_mat(n, n - 1, [x for row in rows for x in row])
    return flint.acb_mat(Q.transpose() * flint.arb_mat(to_flint(A)) * Q)


def _ball_basis(M: flint.acb_mat) -> tuple[list[flint.acb], flint.acb_mat, flint.arb]:
    """(eigenvalues, left eigenvectors as rows, upper bound of the condition number).

    The right eigenvectors are scaled to length 1. Raises ValueError where they are not isolated.
    """
    size = M.nrows()
    if size == 0:
        return [], M, flint.arb(1)
    values, left, right = M.eig(left=True, right=True)
    columns = [norm([right[i, j] for i in range(size)]) for j in range(size)]
    V = flint.acb_mat(
        size, size, [right[i, j] / columns[j] for i in range(size) for j in range(size)]
    )
    inverse = V.inv()
    return values, left, _two_norm_bound(V) * _two_norm_bound(inverse)


def _two_norm_bound(V: flint.acb_mat) -> flint.arb:
    """(trace (V* V)^m)^(1/2m) >= ||V||_2 for m = 2^10, above it by at most size^(1/2048)."""
    power = V.conjugate().transpose() * V
    for _ in range(10):
        power = power * power
    return (power.trace().real.log() / 2**11).exp()
