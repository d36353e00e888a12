"""Rates per layer, the effective rank they lead to (T4c, T5), and depth bounds (T5d).

Of rates spectra come in as plain arrays: `a` [n-1] the eigenvalues of attention without one copy of
1 (T1c), `h` [d] those of H = W^T. Depth bounds hold at every depth, in float64; the certified depth
L*(eps) also with every constant enclosed in balls.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from numpy.typing import ArrayLike

from oversmoothing.theory.depth.ratios import squared_norms
from oversmoothing.theory.depth.recurrence import Powers, layer_rows, square
from oversmoothing.theory.layer.attention import (
    complement_basis,
    perron_deviation,
    quotient,
    stationary_distribution,
)
from oversmoothing.theory.layer.layer import check_attention, check_square, check_states
from oversmoothing.theory.numbers import exact
from oversmoothing.theory.numbers.exact import Matrix, to_flint
from oversmoothing.theory.numbers.rounding import at_precision, norm, to_ball
from oversmoothing.theory.spectra.layer_discs import largest_modulus, multipliers, radius_in_balls
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array, Complex


def _values(values: ArrayLike, name: str) -> Complex:
    array = np.asarray(values, dtype=np.complex128)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InputError(f"{name} must be a list of finite eigenvalues, not shape {array.shape}")
    return array


def rank_rate(a: ArrayLike, h: ArrayLike) -> float:
    """r_sigma = max |mu_ij mu_kl| / rho^2 over i != k and j != l, indices with multiplicity: the
    rate of sigma_2/sigma_1 of X_L for generic X_0 (T4c, T5b). 0.0 where n = 1 or d = 1. Its square
    is that of the largest 1 - |cos| over pairs of tokens: in SMOOTHING, and wherever all dominant
    pairs share one simple real a whose eigenvector has no zero entry.

    In O(n d): with (I, J) any pair of largest modulus, unique or not,
    r_sigma = max{ max_{i!=I, j!=J} |mu_ij| / rho,  max_{j!=J} |mu_Ij| max_{i!=I} |mu_iJ| / rho^2 }.
    Raises `InputError` on other shapes.
    """
    attention, value = _values(a, "a"), _values(h, "h")
    if len(value) == 0:
        raise InputError("h is empty: H has at least one eigenvalue")
    modulus = np.abs(multipliers(np.append(attention, 1.0), value))
    rho = float(modulus.max())
    if rho == 0:
        return 0.0
    row, column = np.unravel_index(int(np.argmax(modulus)), modulus.shape)
    rest = np.delete(np.delete(modulus, row, axis=0), column, axis=1)
    along = float(np.delete(modulus[row], column).max(initial=0.0))
    across = float(np.delete(modulus[:, column], row).max(initial=0.0))
    return max(float(rest.max(initial=0.0)) / rho, along * across / rho**2)


def effective_rank_excess(ratios: ArrayLike) -> float:
    """erank - 1 from s_i = sigma_i / sigma_1, i >= 2, exactly: (1 + S) e^(E/(1+S)) - 1 (T5c).

    S = sum s_i, E = sum s_i log(1/s_i); ratios: [m] in [0, 1]. No cancellation for small s.
    """
    s = np.asarray(ratios, dtype=np.float64).ravel()
    if not ((s >= 0) & (s <= 1)).all():
        raise InputError("ratios must be sigma_i / sigma_1 for i >= 2, between 0 and 1")
    s = s[s > 0]
    S, E = s.sum(), -(s * np.log(s)).sum()
    return float(S + (1 + S) * np.expm1(E / (1 + S)))


# Share of ||X_0|| below which a mode counts as absent.
_PRESENT = 1e-10


@dataclass(frozen=True)
class CertifiedDepth:
    """HFC/LFC <= eps at every L >= depth, from ||HFC||/(sqrt n ||c||) <= K r^L (T5d).

    depth: L*(eps). K, rate r, k = sqrt(n) delta. kappa_H, kappa_B: condition numbers (2-norm) of
    the eigenvector matrices of H and of B = Q^T A Q, Q orthonormal.
    """

    depth: int
    K: float
    rate: float
    k: float
    kappa_H: float
    kappa_B: float


def depth_from_constants(K: float, k: float, rate: float, eps: float) -> int:
    """L* = ceil(log(K (1 + k eps)/eps) / log(1/r)), 1 where r = 0, never below 0 (T5d).

    Raises `InputError` unless eps > 0, K, k >= 0 and 0 <= r < 1.
    """
    if not (eps > 0 and K >= 0 and k >= 0 and 0 <= rate < 1):
        raise InputError(f"eps = {eps}, K = {K}, k = {k}, rate = {rate}: need eps > 0, 0 <= r < 1")
    target = K * (1 + k * eps) / eps
    if target <= 1:
        return 0
    return 1 if rate == 0 else max(math.ceil(math.log(target) / -math.log(rate)), 0)


def _read(A: ArrayLike, H: ArrayLike, X0: ArrayLike) -> tuple[Array, Array, Array, Array, float]:
    """(B, H, X_0, c_0 = pi^T X_0, k = sqrt(n) delta). Raises `InputError` on illegal input."""
    attention, value = check_attention(A), check_square(H)
    start = check_states(X0, len(attention), len(value))
    pi = stationary_distribution(attention)
    k = math.sqrt(len(attention)) * perron_deviation(pi)
    return quotient(attention), value, start, pi @ start, k


def power_depth(
    A: ArrayLike, H: ArrayLike, X0: ArrayLike, eps: float, *, longest: int = 64
) -> CertifiedDepth | None:
    """L*(eps) in float64 for A [n, n], H [d, d], X0 [n, d], from computed powers instead of
    eigenvectors: of defective A and H too (T5d).

    With s = ||T^p||^(1/p) for the best p <= longest, ||T^L|| <= s^L max_{j<p} ||T^j|| / s^j. The
    kappas are inf. None where no power within `longest` shows smoothing, or z^T c_0 = 0. Raises
    `InputError` on illegal input.
    """
    B, value, start, c0, k = _read(A, H, X0)
    n = len(start)
    h, left = np.linalg.eig(value.T)
    content = np.abs(c0 @ left)
    T = np.eye(len(B) * len(value)) + np.kron(value, B)
    norms, power = [1.0], np.eye(len(T))
    for _ in range(longest if len(T) else 0):
        power = power @ T
        norms.append(float(np.linalg.norm(power, 2)))
    hfc = float(np.linalg.norm(start - start.mean(axis=0)))
    bounds = []
    for j in np.flatnonzero(content > 1e-14 * float(np.linalg.norm(c0))):
        growth, scale = float(np.abs(1 + h[j])), hfc / (math.sqrt(n) * float(content[j]))
        for p in range(1, len(norms)):
            s = norms[p] ** (1 / p)
            # Where s = 0 the bound is for p = 1 alone, whose one term is ||T^0|| / s^0 = 1.
            if s < growth and (s > 0 or p == 1):
                K = scale * max(norms[i] / s**i for i in range(p))
                depth = depth_from_constants(K, k, s / growth, eps)
                bounds.append(CertifiedDepth(depth, K, s / growth, k, math.inf, math.inf))
    return min(bounds, key=lambda one: one.depth, default=None)


def hfc_floor(A: ArrayLike, H: ArrayLike, X0: ArrayLike, depths: Sequence[int]) -> Array:
    """log of a lower bound of ||HFC_L||_F at each depth, [len(depths)]: the largest over i < n of
    |mu_ij|^L |w_i^T X_0 z_j| / (||w_i|| ||z_j||), w and z left eigenvectors (T5d). -inf where 0;
    content below 1e-10 of ||X_0|| counts as 0.
    """
    B, value, start, _, _ = _read(A, H, X0)
    # Left eigenvectors are eigenvectors of the transpose: they exist for defective matrices too.
    a, left_a = np.linalg.eig(B.T)
    h, left_h = np.linalg.eig(value.T)
    w, z = left_a.T @ complement_basis(len(start)).T, left_h.T
    scale = np.outer(np.linalg.norm(w, axis=1), np.linalg.norm(z, axis=1))
    part = np.abs(w @ start @ z.T) / scale
    # A mode that X_0 does not contain shows up as rounding, and would outgrow what it does contain.
    part[part < _PRESENT * float(np.linalg.norm(start))] = 0.0
    with np.errstate(divide="ignore"):
        content = np.log(part)
        growth = np.log(np.abs(multipliers(a, h)))
        bounds = [L * growth + content if L else content for L in depths]
    return np.array([float(bound.max(initial=-np.inf)) for bound in bounds])


def ratio_floor(A: ArrayLike, H: ArrayLike, X0: ArrayLike, depths: Sequence[int]) -> Array:
    """A lower bound of HFC/LFC at each depth, [len(depths)], in either verdict (T5d, T1e).

    1/(k + 1/t) with t = ||HFC||/(sqrt n ||c||) bounded below by `hfc_floor` and
    ||c_L|| <= kappa(V_H) rho_C^L ||c_0||.
    """
    _, value, start, mean, k = _read(A, H, X0)
    n = len(start)
    h, vectors = np.linalg.eig(value)
    kappa = float(np.linalg.cond(vectors))
    c0, rho_c = np.linalg.norm(mean), largest_modulus(np.ones(1), h)[0]
    log_hfc = hfc_floor(A, H, X0, depths)
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.array([L * np.log(rho_c) if L else 0.0 for L in depths])
        # A mean that is 0 is so for an infinite kappa, too.
        silent = np.isneginf(np.log(c0) + growth)
        log_c = np.where(silent, -np.inf, np.log(kappa * c0) + growth)
        inverse_t = math.sqrt(n) * np.exp(np.minimum(log_c - log_hfc, 700.0))
        return np.where(np.isneginf(log_hfc), 0.0, 1 / (k + inverse_t))


def certified_depth_in_balls(
    A: Matrix, H: Matrix, X0: Matrix, eps: Fraction
) -> CertifiedDepth | None:
    """L*(eps) from rational input by the eigenvectors, every constant enclosed: rigorous (T5d).

    The floats of the result are rounded for display; `depth` is not. None where balls cannot
    decide: not SMOOTHING, repeated eigenvalues of B or H, no content found.
    """
    for bits in (256, 1024):
        # Eigenvalues or eigenvectors may not be told apart in so many bits.
        with at_precision(bits), suppress(ValueError, ZeroDivisionError):
            return _depth(A, H, X0, eps)
    return None


# Layers that are looked at at once, from a power of the layer: balls widen from each to the next.
_AT_ONCE = 64
# Layers times the square of n d that are looked at before a certified depth: a second or two.
_LOOKED_AT = 2e7


def first_depth(A: Matrix, H: Matrix, X0: Matrix, eps: Fraction, depth: int) -> int:
    """The first layer from which on HFC/LFC <= eps, which holds at every L >= depth.

    The layers before are looked at in balls, from the last to the first that is above; depth
    itself where they are too many.
    """
    n, d = len(A), len(H)
    if depth * (n * d) ** 2 > _LOOKED_AT:
        return depth
    # ||X||^2 = HFC^2 + LFC^2, of which HFC^2 is about eps^2: so many bits cancel.
    with at_precision(256 + 2 * eps.denominator.bit_length()):
        layer = flint.arb_mat(to_flint(layer_rows(A, H)))
        states = Powers(layer, flint.arb_mat([[to_ball(x)] for row in X0 for x in row]))
        total = flint.arb_mat(to_flint(exact.kronecker([[Fraction(1)] * n], exact.identity(d))))
        bound = to_ball((1 + eps * eps) / n)
        for start in range((depth - 1) // _AT_ONCE * _AT_ONCE, -1, -_AT_ONCE):
            state, above = states.at(start), -1
            for L in range(start, min(start + _AT_ONCE, depth)):
                if not square(state) <= bound * square(total * state):
                    above = L
                state = layer * state
            if above >= 0:
                return above + 1
    return 0


def _depth(A: Matrix, H: Matrix, X0: Matrix, eps: Fraction) -> CertifiedDepth | None:
    """At the precision set. Raises ValueError or ZeroDivisionError where that is too low."""
    n = len(A)
    pi = exact.exact_stationary(A, [list(range(n))])
    a, _, kappa_b = _ball_basis(_orthonormal_quotient(A))
    h, left, kappa_h = _ball_basis(flint.acb_mat(to_flint(H)))
    c0 = [to_ball(x) for x in exact.weighted_mean(pi, X0)]
    hfc = to_ball(squared_norms(X0)[0]).sqrt()
    upper_q = radius_in_balls(a, h).upper()
    k_squared = n * sum((p - Fraction(1, n)) ** 2 for p in pi)
    k, e = to_ball(Fraction(k_squared)).sqrt(), to_ball(eps)
    bounds: list[CertifiedDepth] = []
    for j, value in enumerate(h):
        z = [left[j, i] for i in range(len(h))]
        content = abs(sum((x * y for x, y in zip(z, c0, strict=True)), flint.acb(0)))
        lower_c = abs(1 + value).lower()
        if not (content > 0 and lower_c > upper_q):
            continue
        K = kappa_h * kappa_b * hfc * norm(z) / (flint.arb(n).sqrt() * content)
        rate, target, depth = upper_q / lower_c, K * (1 + k * e) / e, 0
        if not target <= 1:
            # Not log 0: where n > 1 balls show no multiplier to be 0, and n = 1 has K = 0.
            layers = (-target.log() / rate.log() + 1e-9).upper().ceil().unique_fmpz()
            if layers is None:
                raise ValueError("more layers than digits")
            depth = max(int(layers), 0)
        parts = [float(x.mid()) for x in (K, rate, k, kappa_h, kappa_b)]
        bounds.append(CertifiedDepth(depth, *parts))
    return min(bounds, key=lambda one: one.depth, default=None)


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
    return values, left, _two_norm_bound(V) * _two_norm_bound(V.inv())


def _two_norm_bound(V: flint.acb_mat) -> flint.arb:
    """(trace (V* V)^m)^(1/2m) >= ||V||_2 for m = 2^10, above it by at most size^(1/2048)."""
    power = V.conjugate().transpose() * V
    for _ in range(10):
        power = power * power
    return (power.trace().real.log() / 2**11).exp()
