"""Where rho_C = rho_Q can hold, as polynomials in the parameters.

|mu|^2 of a root mu is one of the products mu_i mu_j, and the largest of these products that is real
is rho^2. With P the polynomial of the multipliers of one side, Res_y(P(y), y^m P(x/y)) has all
products as its roots; rho_C = rho_Q only where one factor of the one side and one of the other have
a common root, that is on their resultant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import flint
import sympy as sp

from oversmoothing.theory.numbers.rounding import doublings
from oversmoothing.theory.verdict.candidates import Candidates
from oversmoothing.theory.verdict.formulas import COMPARED, Outcome
from oversmoothing.theory.verdict.symbolic_layer import EigenvalueClass, SymbolicLayer

_X, _Y = sp.Dummy("x"), sp.Dummy("y")


class Boundaries:
    """The irreducible polynomials on which the verdict of a symbolic layer can change."""

    def __init__(self, layer: SymbolicLayer, candidates: Candidates | None = None) -> None:
        self.layer, self.candidates = layer, candidates
        self._symbols = [*layer.parameters, _X, _Y]
        names = [f"p{k}" for k in range(len(layer.parameters))] + ["x", "y"]
        self._context = flint.fmpz_mpoly_ctx.get(names, "lex")

    def polynomials(self) -> list[Any]:
        """In sympy, each primitive with integer coefficients: of the candidates where they are
        known, else of all products."""
        if self.candidates is not None:
            norms = map(self._from_sympy, self.candidates.norms())
            factors = (factor for norm in norms for factor in self._factors(norm))
            return sorted(set(map(self._to_sympy, factors)), key=sp.default_sort_key)
        consensus = self._distinct(self._moved(h) for h in self.layer.value)
        quotient = self._distinct(
            self._moved(h, a) for h, a in product(self.layer.value, self.layer.attention)
        )
        polynomials = {
            self._to_sympy(factor)
            for p, q in product(consensus, quotient)
            if p != q
            for factor in self._factors(p.resultant(q, "x"))
        }
        return sorted(polynomials, key=sp.default_sort_key)

    def _distinct(self, sides: Iterable[Any]) -> list[Any]:
        """Each factor of the products of the roots of each once."""
        factors = (factor for P in sides for factor in self._products(P))
        return list({str(factor): factor for factor in factors}.values())

    def edges(self) -> list[Any]:
        """Where an entry of A is 0, or a denominator is."""
        factors = set()
        for entry in [*self.layer.A, *self.layer.H]:
            top, below = sp.fraction(sp.together(entry))
            parts = (top, below) if entry in list(self.layer.A) else (below,)
            for part in parts:
                for factor in self._factors(self._from_sympy(part)):
                    factors.add(self._to_sympy(factor))
        return sorted(factors, key=sp.default_sort_key)

    def _moved(self, h: EigenvalueClass, a: EigenvalueClass | None = None) -> Any:
        """The polynomial in x of 1 + h, or of all 1 + h a."""
        if a is None:
            return self._from_sympy(h.polynomial(_X - 1))
        below = sp.expand(_Y**a.degree * a.polynomial((_X - 1) / _Y))
        return self._from_sympy(h.polynomial(_Y)).resultant(self._from_sympy(below), "y")

    def _products(self, P: Any) -> Iterator[Any]:
        """The irreducible factors of the polynomial of all products of two roots of P."""
        x, y = (self._context.gen(len(self._symbols) - k) for k in (2, 1))
        place = len(self._symbols) - 2
        m = P.degrees()[place]
        of_y = P.compose(*(self._context.gen(k) for k in range(place)), y, y, ctx=self._context)
        terms = {}
        for powers, c in P.to_dict().items():
            key = list(powers)
            key[place + 1] = m - powers[place]
            terms[tuple(key)] = c
        yield from self._factors(of_y.resultant(self._context.from_dict(terms), "y"), x)

    def _factors(self, polynomial: Any, of: Any = None) -> Iterator[Any]:
        """The irreducible factors that hold a parameter, or the variable `of`."""
        if polynomial == 0:
            return
        for factor, _ in polynomial.factor()[1]:
            degrees = factor.degrees()
            wanted = degrees[-2] if of is not None else any(degrees[:-2])
            if wanted:
                yield factor if factor.leading_coefficient() > 0 else -factor

    def _from_sympy(self, expression: Any) -> Any:
        top = sp.numer(sp.together(expression))
        terms = sp.Poly(top, *self._symbols, domain="QQ")
        _, whole = terms.clear_denoms(convert=True)
        return self._context.from_dict({m: int(c) for m, c in whole.terms()})

    def _to_sympy(self, polynomial: Any) -> Any:
        return sp.Add(
            *(
                int(c) * sp.Mul(*(s**e for s, e in zip(self._symbols, powers, strict=True)))
                for powers, c in polynomial.to_dict().items()
            )
        )


# ------------------------------------------------------------------------- one parameter alone


def real_roots(polynomials: Iterable[Any], t: Any) -> list[Any]:
    """The real roots of polynomials in t, ascending, each once: rational, with square roots, or
    `sympy.CRootOf`."""
    roots: set[Any] = set()
    for polynomial in polynomials:
        if polynomial.has(t):
            roots |= {sp.sympify(r) for r in sp.Poly(polynomial, t).real_roots(radicals=True)}
    return sorted(roots, key=lambda root: sp.N(root, 60))


def between(roots: list[Any]) -> list[Any]:
    """Rationals, short ones: below all roots, between each two, above all."""
    if not roots:
        return [sp.Integer(0)]
    first, last = sp.floor(roots[0]) - 1, sp.ceiling(roots[-1]) + 1
    return [first, *(_short_between(x, y) for x, y in pairwise(roots)), last]


def _short_between(low: Any, high: Any) -> Any:
    for digits in doublings(15, 2000):
        x, y = (sp.Rational(str(sp.N(z, digits))) for z in (low, high))
        middle = Fraction(int((x + y).p), 2 * int((x + y).q))
        for size in (1, 2, 3, 4, 6, 10, 100, 1000, 10**6, 10 ** (digits - 3)):
            short = middle.limit_denominator(size)
            candidate = sp.Rational(short.numerator, short.denominator)
            margin = abs(y - x) / 8
            if x + margin < candidate < y - margin:
                return candidate
    raise ArithmeticError("two boundaries are too close together to find a point between them")


def intervals(
    t: Any, ends: list[Any], outcome: Callable[[int], Outcome | None]
) -> dict[Outcome, Any]:
    """{outcome: condition on t} from the outcomes on and between ascending ends."""
    places = [outcome(k) for k in range(2 * len(ends) + 1)]
    pieces: dict[Outcome, list[Any]] = {each: [] for each in COMPARED}
    k = 0
    while k < len(places):
        last = k
        while last + 1 < len(places) and places[last + 1] is places[k]:
            last += 1
        each = places[k]
        if each is not None:
            pieces.setdefault(each, []).append(_interval(t, ends, k, last))
        k = last + 1
    return {each: sp.Or(*parts) for each, parts in pieces.items()}


def _interval(t: Any, ends: list[Any], first: int, last: int) -> Any:
    if first == last and first % 2:
        return sp.Eq(t, ends[first // 2])
    parts = []
    if first > 0:
        parts.append((sp.Ge if first % 2 else sp.Gt)(t, ends[(first - 1) // 2]))
    if last < 2 * len(ends):
        parts.append((sp.Le if last % 2 else sp.Lt)(t, ends[last // 2]))
    return sp.And(*parts)
