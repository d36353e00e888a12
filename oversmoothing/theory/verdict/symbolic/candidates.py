"""|1 + h|^2 and |1 + h a|^2 of every mode as expressions, each where it holds.

Eigenvalues are roots of linear and quadratic factors. With T, S, D the trace, determinant and
discriminant of a quadratic one, its roots are (T +- sqrt D)/2 where D >= 0; where D < 0 they are
conjugate, |1 + h|^2 = 1 + T + S, and of two such pairs |1 + h a|^2 and |1 + h conj(a)|^2 are
1 + (T T' -+ sqrt(D D'))/2 + S S'. What is compared is multilinear in the square roots. At single
points `by_fractions` decides, and asks no expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import sympy as sp

from oversmoothing.theory.verdict.symbolic.symbolic_layer import EigenvalueClass, SymbolicLayer

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
            factor = factor * squares[k]
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

    def _cases(self, each: EigenvalueClass | None) -> Iterator[tuple[dict[int, int], Any, int]]:
        """(signs, real value or None for a complex pair, sign of the root) of each real root, of
        each pair."""
        if each is None:
            yield {}, {_ONE: sp.Integer(1)}, 0
        elif each.degree == 1:
            yield {}, {_ONE: each.value}, 0
        else:
            k = self._number[each.discriminant]
            known, half = self.settled.get(k), sp.Rational(1, 2)
            for sign in (1, -1) if known != -1 else ():
                yield {k: 1}, {_ONE: each.trace * half, frozenset([k]): sign * half}, sign
            if known != 1:
                yield {k: -1}, None, 0

    def _squared(self, h: EigenvalueClass, a: EigenvalueClass | None) -> Iterator[Guarded]:
        """|1 + h a|^2 of every pair of roots, a None for 1."""
        for (of_h, x, s), (of_a, y, t) in product(list(self._cases(h)), list(self._cases(a))):
            # One discriminant for both has one sign.
            if any(of_a.get(k, s) != s for k, s in of_h.items()):
                continue
            signs = {**of_h, **of_a}
            # Only real roots are multiplied: their squares are the discriminants.
            if x is not None and y is not None:
                real = plus({_ONE: sp.Integer(1)}, times(x, y, self.quadratics))
                yield Guarded(times(real, real, self.quadratics), signs, (s, t))
            elif x is None and y is None:
                yield from self._both_complex(h, a, signs)
            else:
                # |1 + r z|^2 = 1 + r T + r^2 S of a real r and a complex pair z.
                r, pair = (y, h) if x is None else (x, a)
                assert pair is not None
                terms = plus({_ONE: sp.Integer(1)}, r, pair.trace)
                terms = plus(terms, times(r, r, self.quadratics), pair.determinant)
                yield Guarded(terms, signs, (s, t))

    def _both_complex(self, h: Any, a: Any, signs: dict[int, int]) -> Iterator[Guarded]:
        base = 1 + h.trace * a.trace / 2 + h.determinant * a.determinant
        roots = frozenset([self._number[h.discriminant], self._number[a.discriminant]])
        for s in (1, -1):
            half = sp.Rational(s, 2)
            if len(roots) == 1:
                yield Guarded({_ONE: base - half * h.discriminant}, signs, (0, s))
            else:
                yield Guarded({_ONE: base, roots: half}, signs, (0, s))

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
            squares = {k: s * self.quadratics[k] for k, s in signs.items()}
            terms = plus(c.terms, q.terms, -1)
            for k in sorted({k for key in terms for k in key}):
                x = {key: value for key, value in terms.items() if k not in key}
                y = {key - {k}: value for key, value in terms.items() if k in key}
                terms = plus(times(x, x, squares), times(y, y, squares), -squares[k])
                terms = {key: sp.cancel(value) for key, value in terms.items()}
            yield sum(terms.values())


def by_table(rows: Sequence[Sequence[int]]) -> int:
    """The sign of rho_C - rho_Q by the signs of each |mu|^2 of consensus less each other one."""
    if any(all(s > 0 for s in row) for row in rows):
        return 1
    return -1 if any(all(s < 0 for s in c) for c in zip(*rows, strict=True)) else 0
