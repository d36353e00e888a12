"""When streams become one: contraction of differences, and the depth at which they agree (T13b).

R >= 0 with R 1 = 1 is to streams what attention is to tokens: in any norm max_{k,l} ||x_k - x_l||
contracts by Dobrushin's tau(R) = max_{k,l} sum_j |R_kj - R_lj| / 2 a layer, whatever the branch,
where p is a multiple of 1. Over layers the product R_L ... R_1 has a tau of its own, at most the
product of theirs, and attained by some start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint

from oversmoothing.theory.numbers.exact import Matrix, to_flint
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.algebraic import Eigenvalue
from oversmoothing.theory.streams.streams import Mixing, make_mixing, roots_of
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import DEPTH

_BITS = 192


def contraction(R: flint.arb_mat) -> flint.arb:
    """A ball around tau(R) for R [s, s] with equal row sums, 0 for one stream."""
    rows = R.tolist()
    tau = flint.arb(0)
    for k, row in enumerate(rows):
        for other in rows[:k]:
            apart = sum((abs(x - y) for x, y in zip(row, other, strict=True)), flint.arb(0)) / 2
            tau = tau.max(apart)
    return tau


@dataclass(frozen=True)
class Contraction:
    """After so many layers: an upper bound of the product of tau(R_l), and of tau(R_L ... R_1).

    Whatever the branches were, max_{k,l} ||x_k - x_l|| is at most `of_product` times what it was
    (p_l a multiple of 1 in each of these layers).
    """

    depth: int
    product_of_each: float
    of_product: float


def contractions(mixings: Iterable[Any]) -> Iterator[Contraction]:
    """The certificate after each of the layers R_1, R_2, ..., each row-stochastic (`make_mixing`).

    Raises `InputError` for an R_l that is not.
    """
    each = flint.arb(1)
    together: flint.arb_mat | None = None
    for depth, R in enumerate(mixings, start=1):
        mixing = make_mixing(R, claimed="row-stochastic")
        with at_precision(_BITS):
            layer = flint.arb_mat(to_flint(mixing.R))
            together = layer if together is None else layer * together
            each = each * contraction(layer)
            yield Contraction(depth, _up(each), _up(contraction(together)))


def agreement_depth(mixing: Mixing, eps: float) -> int | None:
    """The least L with tau(R^L) <= eps: from L on, streams differ by at most eps of the start.

    For p a multiple of 1 and R row-stochastic, whatever A, H, branch and start; at L - 1 some start
    differs by more (of those whose digits 192 bits tell). None where tau(R^L) does not get there
    within 10^15 layers. Raises `InputError` for other R and p, and unless 0 < eps < 1.
    """
    if not 0 < eps < 1:
        raise InputError(f"eps = {eps} must lie between 0 and 1: a share of the first difference")
    if "row-stochastic" not in mixing.kinds or mixing.keeps_equal_streams is None:
        raise InputError(
            "streams come to agree whatever the branch only for a row-stochastic R and p a "
            "multiple of 1"
        )
    with at_precision(_BITS):
        one = flint.arb_mat(to_flint(mixing.R))

        def agrees(R: flint.arb_mat) -> bool:
            return bool(contraction(R) <= flint.arb(eps))

        # R, R^2, R^4, ... until one contracts enough, then binary descent: tau(R^L) never grows.
        powers = [one]
        while not agrees(powers[-1]):
            if 2 ** len(powers) > DEPTH:
                return None
            powers.append(powers[-1] * powers[-1])
        depth, so_far = 0, flint.arb_mat([[int(k == j) for j in range(mixing.streams)]
                                          for k in range(mixing.streams)])  # fmt: skip
        for exponent in range(len(powers) - 1, -1, -1):
            longer = powers[exponent] * so_far
            if not agrees(longer):
                depth, so_far = depth + 2**exponent, longer
    return depth + 1 if mixing.streams > 1 else 0


def _up(x: flint.arb) -> float:
    """A float at least as large, at most 1 as tau is."""
    import numpy as np

    return min(1.0, float(np.nextafter(float(x.upper()), np.inf)))


def differences_alone(mixing: Mixing, H: Matrix) -> list[Eigenvalue] | None:
    """The eigenvalues of differences between streams, where no branch has part in them: H = 0 adds
    nothing to any stream (a nilpotent H does)."""
    branch = any(x for row in H for x in row)
    c = mixing.keeps_equal_streams if branch else mixing.common_row_sum
    if c is None:
        return None
    one = flint.fmpq_poly([flint.fmpq(-c.numerator, c.denominator), 1])
    return roots_of(mixing.characteristic // one)


def lone_family(mixing: Mixing) -> tuple[Fraction, Fraction] | None:
    """(mu, t) with (R + t p q^T) 1 = mu 1, where there is just one such t; else None."""
    ones = sum(mixing.q)
    sums = [sum(row) for row in mixing.R]
    k = next((k for k, x in enumerate(mixing.p) if x != mixing.p[0]), None)
    if k is None or ones == 0:
        return None
    t = -(sums[k] - sums[0]) / (ones * (mixing.p[k] - mixing.p[0]))
    moved = {total + t * ones * x for total, x in zip(sums, mixing.p, strict=True)}
    return (moved.pop(), t) if len(moved) == 1 else None
