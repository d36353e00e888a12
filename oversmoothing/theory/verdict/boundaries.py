"""|1 + h|^2 and |1 + h a|^2 of every mode as expressions, each where it holds, and where
rho_C = rho_Q can hold, as polynomials in the parameters.

Eigenvalues are roots of linear and quadratic factors. With T, S, D the trace, determinant and
discriminant of a quadratic one, its roots are (T +- sqrt D)/2 where D >= 0; where D < 0 they are
conjugate, |1 + h|^2 = 1 + T + S, and of two such pairs |1 + h a|^2 and |1 + h conj(a)|^2 are
1 + (T T' -+ sqrt(D D'))/2 + S S'. What is compared is multilinear in the square roots. At single
points `by_fractions` decides, and asks no expression.

Of any factors |mu|^2 of a root mu is one of the products mu_i mu_j, and the largest of these
products that is real is rho^2. With P the polynomial of the multipliers of one side,
Res_y(P(y), y^m P(x/y)) has all products as its roots; rho_C = rho_Q only where one factor of the
one side and one of the other have a common root, that is on their resultant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import flint
import sympy as sp

from oversmoothing.theory.numbers.rounding import doublings
from oversmoothing.theory.verdict.formulas import COMPARED, Outcome
from oversmoothing.theory.verdict.symbolic_layer import EigenvalueClass, SymbolicLayer

# Sums of c times a product of square roots: {numbers of the roots: c}.
Radicals = dict[frozenset[int], Any]


@dataclass(frozen=True, eq=False)
class Guarded:
    """A squared modulus, and the signs of discriminants under which it is one: {root: 1 or -1}.

    terms: with the square roots of +-discriminants, by their numbers. roots: the signs of these
    roots in h and in a, 0 where it has none; of two complex pairs the sign in its terms is a's.
    coefficients: what is not all 0 where an X_0 contains the mode (`symbolic_start`).
    """

    terms: Radicals
    signs: Mapping[int, int]
    roots: tuple[int, int] = (0, 0)
    coefficients: tuple[Radicals, ...] = ()


def times(x: Radicals, y: Radicals, squares: Any) -> Radicals:
    """The product, squares[k] being the square of root k."""
    terms: Radicals = {}
    for (first, c), (second, e) in product(x.items(), y.items()):
        factor = c * e
        for k in first & second:
            factor = factor * squares(k)
        key = first ^ second
        terms[key] = terms.get(key, 0) + factor
    return terms


def plus(x: Radicals, y: Radicals, scale: Any = 1) -> Radicals:
    terms = dict(x)
    for key, c in y.items():
        terms[key] = terms.get(key, 0) + scale * c
    return terms


_ONE = frozenset[int]()


class Candidates:
    """The squared moduli of a layer all of whose eigenvalues have degree 1 or 2.

    quadratics: the discriminants, by number; settled: their signs, where they are known.
    """

    def __init__(self, layer: SymbolicLayer) -> None:
        self.layer = layer
        self.quadratics: list[Any] = []
        self.settled: dict[int, int] = {}
        self._number: dict[Any, int] = {}
        for M, classes in ((layer.H, layer.value), (layer.A, layer.attention)):
            for each in classes:
                if each.degree == 2:
                    self._add(each, symmetric=M.is_symmetric())
        self.consensus = [c for h in layer.value for c in self._squared(h, None)]
        self.quotient = [
            c for h in layer.value for a in layer.attention for c in self._squared(h, a)
        ]

    def _add(self, each: EigenvalueClass, symmetric: bool) -> None:
        if each.discriminant in self._number:
            return
        k = len(self.quadratics)
        self.quadratics.append(each.discriminant)
        self._number[each.discriminant] = k
        # Symmetric matrices have real eigenvalues; where D = 0 either formula holds.
        sign = 1 if symmetric else self.layer.sign(each.discriminant, strict=False)
        if sign:
            self.settled[k] = sign

    def _roots(self, each: EigenvalueClass) -> tuple[int, list[Radicals]]:
        """(number, both real roots)."""
        k = self._number[each.discriminant]
        half = sp.Rational(1, 2)
        return k, [{_ONE: each.trace * half, frozenset([k]): s * half} for s in (1, -1)]

    def _cases(self, each: EigenvalueClass | None) -> Iterator[tuple[dict[int, int], Any, int]]:
        """(signs, real value or None for a complex pair, sign of the root) of each real root, of
        each pair."""
        if each is None:
            yield {}, {_ONE: sp.Integer(1)}, 0
        elif each.degree == 1:
            yield {}, {_ONE: each.value}, 0
        else:
            k, roots = self._roots(each)
            known = self.settled.get(k)
            if known != -1:
                for root, sign in zip(roots, (1, -1), strict=True):
                    yield {k: 1}, root, sign
            if known != 1:
                yield {k: -1}, None, 0

    def _squared(self, h: EigenvalueClass, a: EigenvalueClass | None) -> Iterator[Guarded]:
        """|1 + h a|^2 of every pair of roots, a None for 1."""
        for (of_h, x, s), (of_a, y, t) in product(list(self._cases(h)), list(self._cases(a))):
            # One discriminant for both has one sign.
            if any(of_a.get(k, s) != s for k, s in of_h.items()):
                continue
            signs = {**of_h, **of_a}
            if x is not None and y is not None:
                real = plus({_ONE: sp.Integer(1)}, self._times(x, y))
                yield Guarded(self._times(real, real), signs, (s, t))
            elif x is not None:
                yield Guarded(self._with_pair(x, a), signs, (s, t))
            elif y is not None:
                yield Guarded(self._with_pair(y, h), signs, (s, t))
            else:
                yield from self._both_complex(h, a, signs)

    def _with_pair(self, real: Radicals, pair: Any) -> Radicals:
        """|1 + r z|^2 = 1 + r T + r^2 S of a real r and a complex pair z."""
        first = plus({_ONE: sp.Integer(1)}, real, pair.trace)
        return plus(first, self._times(real, real), pair.determinant)

    def _both_complex(self, h: Any, a: Any, signs: dict[int, int]) -> Iterator[Guarded]:
        base = 1 + h.trace * a.trace / 2 + h.determinant * a.determinant
        i, j = self._number[h.discriminant], self._number[a.discriminant]
        for s in (1, -1):
            half = sp.Rational(s, 2)
            if i == j:
                yield Guarded({_ONE: base - half * self.quadratics[i]}, signs, (0, s))
            else:
                yield Guarded({_ONE: base, frozenset([i, j]): half}, signs, (0, s))

    def _times(self, x: Radicals, y: Radicals) -> Radicals:
        # Only real roots are multiplied: their squares are the discriminants.
        return times(x, y, self.quadratics.__getitem__)

    # --------------------------------------------------------------------------- as sympy has it

    def guard(self, signs: Mapping[int, int]) -> Any:
        """The condition on discriminants, those that are not settled."""
        return sp.And(
            *(
                sp.Ge(self.quadratics[k], 0) if s > 0 else sp.Lt(self.quadratics[k], 0)
                for k, s in signs.items()
                if self.settled.get(k) != s
            )
        )

    def greater(self, first: Guarded, second: Guarded) -> Any:
        """first > second, without factors that are positive wherever A is."""
        signs = {**first.signs, **second.signs}
        terms = plus(first.terms, second.terms, -1)
        terms = {key: sp.factor(c) for key, c in terms.items()}
        if any(key and c != 0 for key, c in terms.items()):
            return sp.Gt(self.total(terms, signs), 0)
        sign, rest = self.layer.reduced(sum(terms.values()))
        return sp.Gt(sign * sp.Mul(*(factor**power for factor, power in rest)), 0)

    def total(self, terms: Radicals, signs: Mapping[int, int]) -> Any:
        """In sympy, with its square roots."""
        total = sp.Integer(0)
        for key, c in terms.items():
            if c != 0:
                roots = (sp.sqrt(sp.factor(signs[k] * self.quadratics[k])) for k in key)
                total += sp.factor(c) * sp.Mul(*roots)
        return total

    def norms(self) -> Iterator[Any]:
        """For each mode of consensus and each other a rational function that is 0 where the two
        tie: the product of their difference over all signs of its square roots."""
        for c, q in product(self.consensus, self.quotient):
            if any(c.signs.get(k, s) != s for k, s in q.signs.items()):
                continue
            signs = {**c.signs, **q.signs}
            terms = plus(c.terms, q.terms, -1)
            for k in sorted({k for key in terms for k in key}):
                x = {key: value for key, value in terms.items() if k not in key}
                y = {key - {k}: value for key, value in terms.items() if k in key}
                square = signs[k] * self.quadratics[k]

                def squares(j: int) -> Any:
                    return signs[j] * self.quadratics[j]  # noqa: B023

                terms = plus(times(x, x, squares), times(y, y, squares), -square)
                terms = {key: sp.cancel(value) for key, value in terms.items()}
            yield sum(terms.values())


def by_table(rows: Sequence[Sequence[int]]) -> int:
    """The sign of rho_C - rho_Q by the signs of each |mu|^2 of consensus less each other one."""
    if any(all(s > 0 for s in row) for row in rows):
        return 1
    return -1 if any(all(s < 0 for s in c) for c in zip(*rows, strict=True)) else 0


# ------------------------------------------------------------------------- where radii are equal

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


def three(smooths: Any, does_not: Any) -> dict[Outcome, Any]:
    """The conditions by outcome: a tie where neither holds."""
    single = isinstance(smooths, sp.Gt) and isinstance(does_not, sp.Gt)
    if single and sp.expand(smooths.lhs + does_not.lhs) == 0:
        ties = sp.Eq(smooths.lhs, 0)
    else:
        ties = sp.And(sp.Not(smooths), sp.Not(does_not))
    return {Outcome.SMOOTHING: smooths, Outcome.NON_SMOOTHING: does_not, Outcome.TIE: ties}
