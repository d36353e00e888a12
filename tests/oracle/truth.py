"""What is true of one (A, H, X_0): the oracle's answer, in the project's words.

The words are those of `Outcome` and of `Verdict`: SMOOTHING rho_C > rho_Q, NON_SMOOTHING rho_C <
rho_Q, TIE equal moduli; TRIVIAL n = 1 or X_0 at consensus; UNDEFINED where the state is, or
becomes, exactly 0. verdict_x0 compares the modes that X_0 contains (T4e).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from .leading import limit_rank, square_root, squared_limit
from .matrices import Rationals, cleared, product
from .moduli import compare
from .start import Part, Start, spread
from .system import System


@dataclass(frozen=True)
class Truth:
    """verdict, verdict_x0: the outcomes that are right, several where the words leave it open.

    tends_to: "zero", "constant", "infinity", "oscillates" or None; limit: an interval, None where
    there is no limit; limit_rank None where the state becomes 0.
    """

    verdict: frozenset[str]
    verdict_x0: frozenset[str] | None = None
    tends_to: str | None = None
    limit: tuple[Fraction, Fraction] | float | None = None
    limit_rank: int | None = None
    notes: list[str] = field(default_factory=list)


_OUTCOME = {1: "SMOOTHING", 0: "TIE", -1: "NON_SMOOTHING"}


def generic_verdict(system: System) -> frozenset[str]:
    if system.n == 1:
        return frozenset({"TRIVIAL"})
    found = {_OUTCOME[system.comparison]}
    if system.consensus[0].is_zero and system.quotient[0].is_zero:
        # Every state becomes 0: equal moduli, and nothing is defined either.
        found.add("UNDEFINED")
    return frozenset(found)


def truth(A: Rationals, H: Rationals, X0: Rationals | None = None) -> Truth:
    """The answer for A [n, n] row-stochastic, H [d, d] and X0 [n, d] in fractions."""
    system = System(A, H)
    verdict = generic_verdict(system)
    if X0 is None:
        return Truth(verdict)
    if not any(map(any, X0)):
        undefined = frozenset({"UNDEFINED"})
        return Truth(undefined, undefined)
    start = Start(system, X0)
    if start.state is None:
        return Truth(verdict, frozenset({"UNDEFINED"}))
    tends_to, limit = _limit(start)
    return Truth(verdict, _outcomes(start), tends_to, limit, limit_rank(start, start.state))


def _outcomes(start: Start) -> frozenset[str]:
    first = start.powers[0]
    if all(row == first[0] for row in first):
        return frozenset({"TRIVIAL"})
    consensus, quotient = start.radius(_class_means(start.system)), start.radius(spread)
    assert quotient is not None
    sign = -1 if consensus is None else compare(consensus, quotient)
    return frozenset({_OUTCOME[sign]})


def _class_means(system: System) -> Part:
    """pi_k^T X for each closed class k: the consensus within it. Each pi_k is where its tokens end.

    With several classes X_0 contains consensus as far as some class mean is not 0.
    """
    members = system.closed_classes
    assert len(members) == system.classes
    rows, _ = cleared([system.fixed[tokens[0]] for tokens in members])
    return lambda Z: [x for row in product(rows, Z) for x in row]


def _limit(start: Start) -> tuple[str, tuple[Fraction, Fraction] | float | None]:
    hfc, lfc = start.hfc, start.lfc
    if hfc is None:
        return "zero", 0.0
    if lfc is None:
        return "infinity", float("inf")
    sign = hfc.compare(lfc)
    if sign:
        return ("infinity", float("inf")) if sign > 0 else ("zero", 0.0)
    roots = dict.fromkeys([*hfc.roots, *lfc.roots])
    assert start.state is not None and set(roots) == set(start.state.roots)
    bounds = squared_limit(start, start.state)
    if bounds is None:
        return "oscillates", None
    return "constant", square_root(bounds)
