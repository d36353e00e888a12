"""What the queries of T2, T3, T7b and T8e share: the four corners, and false neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from oversmoothing.theory.proofs.evidence import ForAllReals, Mutation
from oversmoothing.theory.proofs.query import Query

# a = min spec(A) of a positive row-stochastic A, n >= 2.
EIGENVALUE = ("-1 < a", "a < 1")

# |x| > |y| as squares. q1, p1: consensus (a = 1) at q = min h_j, p = max h_j; qa, pa: the same two
# at a = min spec(A). By T2c these four decide.
CORNERS = (
    ("q1", "(1+q)**2"),
    ("p1", "(1+p)**2"),
    ("qa", "(1+q*a)**2"),
    ("pa", "(1+p*a)**2"),
    ("SMOOTHING", "(q1 > qa and q1 > pa) or (p1 > qa and p1 > pa)"),
    ("NON_SMOOTHING", "(qa > q1 and qa > p1) or (pa > q1 and pa > p1)"),
    ("TIE", "not (SMOOTHING) and not (NON_SMOOTHING)"),
)


def corners(name: str, hypotheses: tuple[str, ...], conclusion: str) -> Query:
    """A query over q <= p and a, with the corners as abbreviations."""
    return Query(name, ("q", "p", "a"), (*EIGENVALUE, "q <= p", *hypotheses), conclusion, CORNERS)


def altered(
    query: Query,
    change: str,
    *,
    hypotheses: tuple[str, ...] | None = None,
    conclusion: str | None = None,
    witness: Mapping[str, str] | None = None,
) -> Mutation:
    """A false neighbour of a query: other hypotheses, or another conclusion."""
    return Mutation(
        change,
        replace(
            query,
            name=f"mutated: {change}",
            hypotheses=query.hypotheses if hypotheses is None else hypotheses,
            conclusion=query.conclusion if conclusion is None else conclusion,
        ),
        dict(witness or {}),
    )


def proved(
    query: Query, example: dict[str, str], *mutations: Mutation, complete: bool = True
) -> ForAllReals:
    """The query as evidence, with an example of its hypotheses and its false neighbours."""
    return ForAllReals(query, mutations, example, complete)
