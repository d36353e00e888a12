"""|1 + h|^2 and |1 + h a|^2 of every mode as expressions, and where rho_C = rho_Q can hold.

Eigenvalues are roots of linear and quadratic factors. With T, S, D the trace, determinant and
discriminant of a quadratic one, its roots are (T +- sqrt D)/2 where D >= 0; where D < 0 they are
conjugate, |1 + h|^2 = 1 + T + S, and of two such pairs |1 + h a|^2 and |1 + h conj(a)|^2 are
1 + (T T' -+ sqrt(D D'))/2 + S S'. What is compared is multilinear in the square roots. At single
points `by_fractions` decides, and asks no expression.

Boundaries are polynomials in the parameters. |mu|^2 of a root mu is one of the products mu_i mu_j,
and the largest of these products that is real is rho^2. With P the polynomial of the multipliers of
one side, Res_y(P(y), y^m P(x/y)) has all products as its roots; rho_C = rho_Q only where one factor
of the one side and one of the other have a common root, that is on their resultant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import groupby, pairwise, product
from typing import Any

import flint
import sympy as sp

from oversmoothing.theory.numbers.rounding import doublings
from oversmoothing.theory.verdict.formulas import COMPARED, Outcome
from oversmoothing.theory.verdict.symbolic.symbolic_layer import (
    AT_ONE,
    EigenvalueClass,
    SymbolicLayer,
    said,
)

# Sums of c times a product of square roots: {the discriminants under them: c}.
Radicals = dict[frozenset[Any], Any]


@dataclass(frozen=True, eq=False)
class Guarded:
    """A squared modulus, and the signs of discriminants D under which it is one: {D: 1 or -1}.

    terms: with the square roots of +-D. roots: the signs of these roots in h and in a, 0 where it
    has none; of two complex pairs the sign in its terms is a's. coefficients: what is not all 0
    where an X_0 contains the mode (`symbols`).
    """

    terms: Radicals
    signs: Mapping[Any, int]
    roots: tuple[int, int] = (0, 0)
    coefficients: tuple[Radicals, ...] = ()


def times(x: Radicals, y: Radicals, signs: Mapping[Any, int] | None = None) -> Radicals:
    """The product; a square root is one of the discriminant, or of that times its sign."""
    terms: Radicals = {}
    for (first, c), (second, e) in product(x.items(), y.items()):
        squares = sp.Mul(*(D if signs is None else signs[D] * D for D in first & second))
        terms = plus(terms, {first ^ second: c * e * squares})
    return terms


def plus(x: Radicals, y: Radicals, scale: Any = 1) -> Radicals:
    terms = dict(x)
    for key, c in y.items():
        terms[key] = terms.get(key, 0) + scale * c
    return terms


# What has no square root.
ONE = frozenset[Any]()
# Each pair of modes is compared from both sides, and its roots stand in many of them.
_factor = cache(sp.factor)


class Candidates:
    """The squared moduli of a layer all of whose eigenvalues have degree 1 or 2.

    quadratics: {discriminant: its sign, None where it is not known}.
    """

    def __init__(self, layer: SymbolicLayer) -> None:
        self.layer = layer
        self.quadratics: dict[Any, int | None] = {}
        for M, classes in ((layer.H, layer.value), (layer.A, layer.attention)):
            for D in (each.discriminant for each in classes if each.degree == 2):
                if D not in self.quadratics:
                    # Symmetric matrices have real eigenvalues; where D = 0 either formula holds.
                    sign = 1 if M.is_symmetric() else layer.sign(D, strict=False)
                    self.quadratics[D] = sign or None
        self.consensus, self.quotient = (
            [c for h, a in product(layer.value, side) for c in self._squared(h, a)]
            for side in ([AT_ONE], layer.attention)
        )

    def _cases(
        self, each: EigenvalueClass
    ) -> Iterator[tuple[dict[Any, int], Radicals, Radicals, int]]:
        """(signs, T, S, sign of the root) of each real root x, as a pair of two x, and of each pair
        of complex roots."""
        if each.degree == 1:
            yield {}, {ONE: 2 * each.trace}, {ONE: each.trace**2}, 0
            return
        D, T = each.discriminant, each.trace
        for sign in (1, -1) if self.quadratics[D] != -1 else ():
            S = {ONE: T**2 / 2 - each.determinant, frozenset([D]): sign * T / 2}
            yield {D: 1}, {ONE: T, frozenset([D]): sp.Integer(sign)}, S, sign
        if self.quadratics[D] != 1:
            yield {D: -1}, {ONE: T}, {ONE: each.determinant}, 0

    def _squared(self, h: EigenvalueClass, a: EigenvalueClass) -> Iterator[Guarded]:
        """|1 + h a|^2 of every pair of roots."""
        half = sp.Rational(1, 2)
        for (of_h, *x, s), (of_a, *y, t) in product(list(self._cases(h)), list(self._cases(a))):
            if not agree(of_h, of_a):
                continue
            signs = {**of_h, **of_a}
            # Only real roots are multiplied: their squares are the discriminants.
            T, S = (times(p, q) for p, q in zip(x, y, strict=True))
            terms = plus(plus({ONE: sp.Integer(1)}, T, half), S)
            if {-1} != set(of_h.values()) or {-1} != set(of_a.values()):
                yield Guarded(terms, signs, (s, t))
                continue
            roots = frozenset(signs)
            apart = {roots: half} if len(roots) == 2 else {ONE: -half * h.discriminant}
            for sign in (1, -1):
                yield Guarded(plus(terms, apart, sign), signs, (0, sign))

    # --------------------------------------------------------------------------- as sympy has it

    def guard(self, signs: Mapping[Any, int]) -> Any:
        """The condition on discriminants, those that are not settled."""
        unknown = ((D, s) for D, s in signs.items() if self.quadratics[D] != s)
        return sp.And(*(sp.Ge(D, 0) if s > 0 else sp.Lt(D, 0) for D, s in unknown))

    def greater(self, first: Guarded, second: Guarded) -> Any:
        """first > second, without factors that are positive wherever A is."""
        signs = {**first.signs, **second.signs}
        terms = plus(first.terms, second.terms, -1)
        terms = {key: _factor(c) for key, c in terms.items()}
        if any(key and c != 0 for key, c in terms.items()):
            return sp.Gt(self.total(terms, signs), 0)
        sign, rest = self.layer.reduced(sum(terms.values()))
        return sp.Gt(sign * sp.Mul(*(factor**power for factor, power in rest)), 0)

    @staticmethod
    def total(terms: Radicals, signs: Mapping[Any, int]) -> Any:
        """In sympy, with its square roots."""
        return sp.Add(
            *(
                _factor(c) * sp.Mul(*(sp.sqrt(_factor(signs[D] * D)) for D in key))
                for key, c in terms.items()
            )
        )

    def norms(self) -> Iterator[Any]:
        """For each mode of consensus and each other a rational function that is 0 where the two
        tie: the product of their difference over all signs of its square roots."""
        for c, q in product(self.consensus, self.quotient):
            if not agree(c.signs, q.signs):
                continue
            signs = {**c.signs, **q.signs}
            terms = plus(c.terms, q.terms, -1)
            for D in [D for D in signs if any(D in key for key in terms)]:
                x = {key: value for key, value in terms.items() if D not in key}
                y = {key - {D}: value for key, value in terms.items() if D in key}
                terms = plus(times(x, x, signs), times(y, y, signs), -signs[D] * D)
                terms = {key: sp.cancel(value) for key, value in terms.items()}
            yield sum(terms.values())


def agree(first: Mapping[Any, int], second: Mapping[Any, int]) -> bool:
    """Whether no discriminant has another sign in the one than in the other."""
    return all(second.get(D, sign) == sign for D, sign in first.items())


def by_table(rows: Sequence[Sequence[int]]) -> int:
    """The sign of rho_C - rho_Q by the signs of each |mu|^2 of consensus less each other one."""
    if any(all(s > 0 for s in row) for row in rows):
        return 1
    return -1 if any(all(s < 0 for s in c) for c in zip(*rows, strict=True)) else 0


# ------------------------------------------------------------------------------ boundaries

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
            return self._parted(map(self._from_sympy, self.candidates.norms()))
        pairs = product(*map(self._products, ([AT_ONE], self.layer.attention)))
        return self._parted(p.resultant(q, "x") for p, q in pairs if p != q)

    def _parted(self, polynomials: Iterable[Any]) -> list[Any]:
        """Their irreducible factors with a parameter, in sympy, each once."""
        factors = {self._to_sympy(f) for p in polynomials for f in self._factors(p)}
        return sorted(factors, key=sp.default_sort_key)

    def edges(self) -> list[Any]:
        """Where an entry of A is 0, or a denominator is."""
        of_A, of_H = (
            [sp.fraction(sp.together(x)) for x in M] for M in (self.layer.A, self.layer.H)
        )
        parts = [x for both in of_A for x in both] + [below for _, below in of_H]
        return self._parted(map(self._from_sympy, parts))

    def _products(self, attention: Sequence[EigenvalueClass]) -> list[Any]:
        """The irreducible factors of the polynomials, in x, of all products of two multipliers
        1 + h a of one pair of classes, each once."""
        *parameters, _, y = self._context.gens()
        factors: dict[str, Any] = {}
        for h, a in product(self.layer.value, attention):
            below = sp.expand(_Y**a.degree * a.polynomial((_X - 1) / _Y))
            P = self._from_sympy(h.polynomial(_Y)).resultant(self._from_sympy(below), "y")
            of_y, m = P.compose(*parameters, y, y, ctx=self._context), P.degrees()[-2]
            terms = {(*powers[:-1], m - powers[-2]): c for powers, c in P.to_dict().items()}
            whole = of_y.resultant(self._context.from_dict(terms), "y")
            factors |= {str(f): f for f in self._factors(whole, of_x=True)}
        return list(factors.values())

    def _factors(self, polynomial: Any, of_x: bool = False) -> Iterator[Any]:
        """The irreducible factors that hold a parameter, or x."""
        if polynomial == 0:
            return
        try:
            factors = polynomial.factor()[1]
        except OverflowError:  # where it sorts factors by coefficients beyond a C int
            whole = sp.Poly(self._to_sympy(polynomial), *self._symbols)
            factors = [(self._from_sympy(f.as_expr()), k) for f, k in whole.factor_list()[1]]
        for factor, _ in factors:
            degrees = factor.degrees()
            if degrees[-2] if of_x else any(degrees[:-2]):
                yield factor if factor.leading_coefficient() > 0 else -factor

    def _from_sympy(self, expression: Any) -> Any:
        top = sp.numer(sp.together(expression))
        terms = sp.Poly(top, *self._symbols, domain="QQ")
        _, whole = terms.clear_denoms(convert=True)
        return self._context.from_dict({m: int(c) for m, c in whole.terms()})

    def _to_sympy(self, polynomial: Any) -> Any:
        terms = {powers: int(c) for powers, c in polynomial.to_dict().items()}
        return sp.Poly.from_dict(terms, *self._symbols).as_expr()


# ------------------------------------------------------------------------- one parameter alone


def real_roots(polynomials: Iterable[Any], t: Any) -> list[Any]:
    """The real roots of polynomials in t, ascending, each once: rational, with square roots, or
    `sympy.CRootOf`."""
    roots: set[Any] = set()
    for polynomial in polynomials:
        if polynomial.has(t):
            roots |= {sp.sympify(r) for r in sp.Poly(polynomial, t).real_roots(radicals=True)}
    return sorted(roots, key=lambda root: sp.N(root, 60))


def critical(polynomials: list[Any], s: Any, t: Any) -> list[Any]:
    """Polynomials in s, between whose roots the real roots in t keep their number and order."""
    cuts = [p for p in polynomials if not p.has(t)]
    tall = [p for p in polynomials if p.has(t)]
    cuts += [sp.Poly(p, t).LC() for p in tall]
    cuts += [sp.discriminant(p, t) for p in tall if sp.degree(p, t) > 1]
    cuts += [sp.resultant(p, q, t) for k, p in enumerate(tall) for q in tall[k + 1 :]]
    return [p for p in cuts if p.has(s)]


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
    pieces: dict[Outcome, list[Any]] = {each: [] for each in COMPARED}
    for each, run in groupby(range(2 * len(ends) + 1), outcome):
        places = list(run)
        if each is not None:
            pieces.setdefault(each, []).append(_interval(t, ends, places[0], places[-1]))
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


_WIDER = (frozenset([-1, 0, 1]), frozenset([-1, 1]), frozenset([0, 1]), frozenset([-1, 0]))
_SIGNS = {
    **dict(zip(_WIDER[1:], ("!=", ">=", "<="), strict=True)),
    **{frozenset([sign]): word for sign, word in ((1, ">"), (-1, "<"), (0, "=="))},
}


def sign_condition(
    polynomials: list[Any], yes: Iterable[tuple[int, ...]], no: Sequence[tuple[int, ...]]
) -> Any:
    """A condition on signs of polynomials: all signs of `yes` meet it, and none of `no`.

    Each part starts as one of `yes` and gives up what is not needed to keep `no` out: first of
    polynomials whose sign alone never parts them, then of the longest.
    """
    yes, refused = sorted(yes, key=lambda signs: signs.count(0)), set(no)

    def parts_them(k: int) -> bool:
        return any(x[k] and (*x[:k], -x[k], *x[k + 1 :]) in refused for x in yes)

    def meets(part: Mapping[int, frozenset[int]], signs: tuple[int, ...]) -> bool:
        return all(signs[k] in allowed for k, allowed in part.items())

    places = range(len(polynomials))
    occur = [{x[k] for x in (*yes, *no)} for k in places]
    order = sorted(places, key=lambda k: (parts_them(k), -sp.count_ops(polynomials[k])))
    condition, parts = sp.false, list[dict[int, frozenset[int]]]()
    for signs in yes:
        if any(meets(part, signs) for part in parts):
            continue
        part = {k: frozenset([sign]) for k, sign in enumerate(signs)}
        for k, wider in product(order, _WIDER):
            more = {**part, k: part[k] | wider}
            if not any(meets(more, other) for other in refused):
                part = more
        parts.append(part)
        kept = {k: allowed & occur[k] for k, allowed in part.items() if len(allowed) < 3}
        condition |= sp.And(*(bounded(polynomials[k], _SIGNS[x]) for k, x in kept.items()))
    return condition


# ------------------------------------------------------------------------------------ in words


def bounded(polynomial: Any, sign: str) -> Any:
    """polynomial < 0, or another sign: solved where it is linear in one parameter alone."""
    s, *others = polynomial.free_symbols
    if others or sp.degree(polynomial, s) != 1:
        return sp.Rel(polynomial, 0, sign)
    lead, rest = sp.Poly(polynomial, s).all_coeffs()
    turned = sp.Rel(s, 0, sign).reversed.rel_op if lead < 0 else sign
    return sp.Rel(s, -rest / lead, turned)


def in_ranges(conditions: Iterable[Any]) -> Any:
    """All of them, each p > 0 or p >= 0 solved where p is linear in one parameter alone."""
    solved = (
        bounded(x.lhs, x.rel_op) if isinstance(x, sp.Gt | sp.Ge) and x.lhs.is_polynomial() else x
        for x in conditions
    )
    return sp.And(*solved).simplify()


def said_where(where: Any) -> str:
    """Where conditions hold as they are written, in words, and what to do elsewhere."""
    solved = in_ranges(sp.And.make_args(where))
    parts = sorted(sp.And.make_args(solved), key=lambda x: sp.default_sort_key(x.rhs))
    ends = " and ".join(f"{x.lhs} = {x.rhs}" for x in parts)
    edges = "elsewhere `subs` in Python answers"
    if not any(isinstance(x, sp.Ne) for x in parts):
        one = len(where.free_symbols) == 1 and all(x.lhs.is_Symbol for x in parts)
        ends = ends if one else "the edges of this"
        edges = f"at {ends} more entries of A are 0: ask for these apart"
    return f"{said(solved)}; {edges}"
