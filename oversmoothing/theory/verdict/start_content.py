"""What one X_0 contains and what it leads to, decided exactly for rational A, H and X_0 (T4, T14).

X_0 contains consensus modes as far as its class means pi_k^T X_L do not vanish, and others as far
as P X_L does not. The verdict for this X_0 compares how fast the two grow, its limits how fast P X
and the mean grow: the same resolvent, the same comparison of moduli.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.numbers.balls import at_precision, largest
from oversmoothing.theory.numbers.rational import Matrix, exact_stationary
from oversmoothing.theory.verdict.asymptotic_rank import leading_rank
from oversmoothing.theory.verdict.cosine_limits import TokensOfStart
from oversmoothing.theory.verdict.growth import (
    Growth,
    Multipliers,
    OutOfReachError,
    compare_growth,
    growth_of,
    squared_modulus,
)
from oversmoothing.theory.verdict.leading import ratio_limit
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits
from oversmoothing.theory.verdict.onset import Onset
from oversmoothing.theory.verdict.onset_exact import onset_of_start
from oversmoothing.theory.verdict.resolvent import Part, Resolvent, resolvent
from oversmoothing.theory.verdict.tokens import SHOWN_BITS


@dataclass(frozen=True)
class Content:
    """The modes of one X_0.

    consensus, quotient: |mu| of the largest mode that X_0 contains on each side, None where it
    contains none. comparison: 1 consensus larger (or alone), -1 quotient, 0 equal; None where
    neither is there or the two agree further than is compared. vanishes: X_L = 0 from some depth
    on. at_consensus: P X_0 = 0. limits: of HFC/LFC and the rank. onset: from which layer on X_0
    shows what decides, None where it is not known. tokens: token by token.
    """

    consensus: float | None
    quotient: float | None
    comparison: int | None
    vanishes: bool
    at_consensus: bool
    limits: Limits
    onset: Onset | None
    tokens: TokensOfStart


def start_content(
    A: Matrix,
    H: Matrix,
    X0: Matrix,
    classes: Sequence[Sequence[int]] | None = None,
    begins: bool = True,
) -> Content | None:
    """Decompose X_0 (not 0). None where its resolvent is too large to compute.

    classes: the closed classes of A, found where they are not given. begins: whether `onset` is
    wanted, which takes longest.
    """
    found = resolvent(A, H, X0)
    if found is None:
        return None
    if classes is None:
        positive = np.array([[float(x > 0) for x in row] for row in A])
        classes = [members.tolist() for members in closed_classes(positive)]
    n = len(A)
    identity = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    multipliers = Multipliers(A, H, found.scale)
    whole = found.part(identity)
    hfc = found.part([[n * x - 1 for x in row] for row in identity])
    mean = found.part([[Fraction(1)] * n])
    consensus = found.part([exact_stationary(A, [members]) for members in classes])
    comparison = first = None
    behaviour = UNKNOWN
    try:
        comparison = _compare(consensus, hfc, multipliers)
        behaviour = _limits(whole, hfc, mean, (n, len(H)), multipliers)
        if begins and not whole.dies:
            first = onset_of_start(whole, hfc, mean, multipliers, behaviour.tends_to)
    except OutOfReachError:
        pass
    return Content(
        _radius(consensus, found),
        _radius(hfc, found),
        None if whole.dies else comparison,
        whole.dies,
        hfc.is_zero,
        behaviour,
        first,
        TokensOfStart(found, multipliers, n),
    )


def _compare(consensus: Part, hfc: Part, multipliers: Multipliers) -> int:
    # X_0 is not 0: it has one of them.
    if hfc.is_zero:
        return 1
    if consensus.is_zero:
        return -1
    first, second = (growth_of(part, multipliers) for part in (consensus, hfc))
    return multipliers.compare(first.roots[0], second.roots[0])


def _limits(
    whole: Part, hfc: Part, mean: Part, shape: tuple[int, int], multipliers: Multipliers
) -> Limits:
    if whole.dies:
        return UNKNOWN
    rank = leading_rank(whole, growth_of(whole, multipliers), shape, multipliers)
    if hfc.dies:
        return Limits("zero", 0.0, rank)
    if mean.dies:
        return Limits("infinity", float("inf"), rank)
    growths: tuple[Growth, Growth] = (growth_of(hfc, multipliers), growth_of(mean, multipliers))
    sign = compare_growth(*growths, multipliers)
    if sign > 0:
        return Limits("infinity", float("inf"), rank)
    if sign < 0:
        return Limits("zero", 0.0, rank)
    return Limits(*ratio_limit(hfc, mean, growths, shape[0], multipliers), rank)


def _radius(part: Part, found: Resolvent) -> float | None:
    if part.is_zero:
        return None
    with at_precision(SHOWN_BITS):
        top = largest(squared_modulus(root, SHOWN_BITS) for root, _ in part.roots())
        return float((top.sqrt() / found.scale).mid())
