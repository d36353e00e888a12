"""What is asked of a layer with parameters: its operator, and the verdict from a given X_0.

The operator I + H (x) A: polynomial, determinant, inverse, eigenpairs (T1a). All of it follows from
A and H apart: the eigenvalues are 1 + h a, the eigenvectors v u^T. What is said holds for all
parameters outside the zeros of a polynomial: a vector that is written down may be 0 at single
parameters, and eigenvalues may meet there.

The verdict over the modes that an X_0 contains (T4e): with w a left eigenvector of A and u one of
H, w^T X_0 u is what X_0 contains of the mode. Its differences y_i = x_i - x_n move by themselves,
Y' = Y + B Y W (T1c), and consensus by the left eigenvectors of A at 1. What is written down holds
where the left vectors of all eigenvalues together are a basis and no two eigenvalues of one
quadratic factor meet: colliding eigenvalues of different factors then do no harm, as each keeps its
own coefficient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from oversmoothing.theory.layer.layer import one_of
from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import MatrixLike, WeightLike
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.start import start_content
from oversmoothing.theory.verdict.symbolic.boundaries import (
    ONE,
    Candidates,
    Guarded,
    Radicals,
    plus,
    three,
)
from oversmoothing.theory.verdict.symbolic.symbolic_layer import (
    AT_ONE,
    EigenvalueClass,
    OfLayer,
    SymbolicLayer,
    kernel_of,
    said,
    spectrum_of,
    symbolic_matrix,
    vectors_of,
)
from oversmoothing.theory.verdict.symbolic.symbolic_verdict import SymbolicVerdict, condition


class _NoClosedFormError(Exception):
    pass


class Modes(Candidates):
    """The modes that X_0 contains for some parameters, each with its coefficients.

    never: polynomials outside whose zeros the left vectors of H, and those of B, are a basis and
    the roots of a quadratic factor apart.
    """

    def __init__(self, layer: SymbolicLayer) -> None:
        k, X0 = layer.n - 1, layer.X0
        self._differences = sp.Matrix(k, layer.d, lambda i, j: X0[i, j] - X0[k, j])
        self._kept: dict[Any, list[Any]] = {}
        ones = [a for a in layer.attention if a.coefficients == AT_ONE.coefficients]
        self._consensus = replace(AT_ONE, multiplicity=1 + sum(a.multiplicity for a in ones))
        bases = [
            sp.Matrix.vstack(sp.zeros(0, M.rows), *(x for f in factors for x in self._rows(M, f)))
            for M, factors in ((layer.H, layer.value), (layer.quotient, layer.attention))
        ]
        super().__init__(layer)
        domains = [DomainMatrix.from_Matrix(M).to_field() for M in bases]
        parts = [*self.quadratics, *(M.domain.to_sympy(M.det()) for M in domains)]
        factors = {factor for each in parts for factor, _ in layer.reduced(each)[1]}
        self.never = sorted(factors, key=sp.default_sort_key)

    def _rows(self, M: Any, each: EigenvalueClass) -> list[Any]:
        """Left vectors of all roots of a factor: of a simple one l, l M, l M^2 ..."""
        key = (M.as_immutable(), each)
        if key not in self._kept:
            rows = [x.T for x in kernel_of(M.T, each, each.multiplicity)]
            if each.multiplicity == 1:
                rows = [rows[0] * M**k for k in range(each.degree)]
            self._kept[key] = rows
        return self._kept[key]

    def _squared(self, h: EigenvalueClass, a: EigenvalueClass) -> Iterator[Guarded]:
        """Those modes of the pair that X_0 contains somewhere."""
        layer, of_a, M, X = self.layer, a, self.layer.quotient, self._differences
        if a is AT_ONE:
            of_a, M, X = self._consensus, layer.A, layer.X0
        left, right = self._rows(M, of_a), self._rows(layer.H, h)
        if all(sp.cancel((x * X * y.T)[0]) == 0 for x, y in product(left, right)):
            return
        for each, name in ((h, "H"), (of_a, "A")):
            if each.degree > 2 or (each.degree == 2 and each.multiplicity > 1):
                x = sp.Symbol("x")
                raise _NoClosedFormError(
                    f"{name} has the factor {layer.as_given(sp.factor(each.polynomial(x)))} in its "
                    f"characteristic polynomial{', repeated' if each.degree == 2 else ''}, and "
                    "which of its roots X0 contains has no closed form here"
                )
        for mode in super()._squared(h, a):
            coefficients = tuple(
                {key: sp.cancel(c) for key, c in each.items()}
                for each in self._coefficients(mode, (M, of_a, left), X, (layer.H, h, right))
            )
            if any(c != 0 for each in coefficients for c in each.values()):
                yield replace(mode, coefficients=coefficients)

    def _coefficients(self, mode: Guarded, of_a: Any, X: Any, of_h: Any) -> Iterator[Radicals]:
        """What vanishes, all of it, where X_0 does not contain the mode."""
        s, t = mode.roots
        pairs = [f.discriminant for f in (of_h[1], of_a[1]) if f.degree == 2]
        if len(pairs) < 2 or any(mode.signs[D] > 0 for D in pairs):
            for left, right in product(self._sided(of_a, t), self._sided(of_h, s)):
                yield self._product(left, X, right)
            return
        # With J = 2 M - T, J^2 = D, the mode belongs to an eigenvalue +-sqrt(D D') of the product
        # of both J, and the other's part is taken away.
        sides = product(self._sided(of_a, 0), self._sided(of_h, 0))
        p, q, r, u = (self._product(left, X, right)[ONE] for left, right in sides)
        D, same = pairs[0], pairs[0] == pairs[1]
        for x, y in ((u, p), (D * r, q)):
            yield plus({ONE: x}, {ONE: -D * y} if same else {frozenset(pairs): y}, t)

    @staticmethod
    def _sided(side: Any, sign: int) -> list[Radicals]:
        """Left vectors of one real root, or of a pair l and l (2 M - T), with square roots."""
        M, each, rows = side
        if each.degree == 1:
            return [{ONE: row} for row in rows]
        turned = (rows[0] * (2 * M - each.trace * sp.eye(M.rows))).applyfunc(sp.cancel)
        if sign:
            return [{ONE: turned, frozenset([each.discriminant]): sign * rows[0]}]
        return [{ONE: rows[0]}, {ONE: turned}]

    @staticmethod
    def _product(left: Radicals, X: Any, right: Radicals) -> Radicals:
        terms: Radicals = {}
        for (first, x), (second, y) in product(left.items(), right.items()):
            terms = plus(terms, {first ^ second: sp.Mul((x * X * y.T)[0], *(first & second))})
        return terms

    def is_not_zero(self, terms: Radicals, mode: Guarded) -> Any:
        """As a condition, without factors that are never 0."""
        if any(key and c != 0 for key, c in terms.items()):
            return sp.Ne(self.total(terms, mode.signs), 0)
        sign, rest = self.layer.reduced(terms.get(ONE, sp.Integer(0)))
        kept = (f for f, power in rest if power > 0 and f not in self.never)
        return sp.Ne(abs(sign) * sp.Mul(*kept), 0)


def _resolved(*parts: Any) -> Any:
    """Their conjunction, without alternatives that one of them excludes."""
    whole = sp.And.make_args(sp.And(*parts))
    excluded = {sp.Not(each) for each in whole}
    return sp.And(
        *(sp.Or(*(x for x in sp.Or.make_args(each) if x not in excluded)) for each in whole)
    )


class SymbolicMode(NamedTuple):
    """A mode of X_0: |mu|^2, when X_0 contains it, and by which discriminants there is one."""

    squared: Any
    contained: Any
    when: Any
    consensus: bool


class SymbolicStartVerdict(SymbolicVerdict):
    """For which parameters X' = X + A X W smooths from this X_0 [n, d], by the modes in it (T4e).

    As `SymbolicVerdict`, which is about generic X_0, with two conditions more: trivial, where X_0
    is at consensus and does not vanish, and undefined, where X_L becomes 0. Exactly one of the five
    holds wherever `where` does. modes: those that X_0 contains for some parameters. why: what has
    no closed form, in the form "cells", else nothing.

    >>> import oversmoothing
    >>> A = [["3/4", "1/4"], ["1/4", "3/4"]]
    >>> found = oversmoothing.symbolic(A, [["-1/2"]], X0=[["x"], ["y"]]).verdict()
    >>> found.does_not, found.trivial
    (Ne(x - y, 0), Eq(x - y, 0) & Ne(x + y, 0))
    """

    why = ""

    def _modes(self) -> Modes | None:
        self.modes: list[SymbolicMode] = []
        try:
            return Modes(self.layer)
        except _NoClosedFormError as error:
            self.why = str(error)
            self._open = (
                f"no closed form: {self.why}. `subs` decides each point. The verdict changes only "
                "where a coefficient of X0 is 0, or one of these holds"
            )
            return None

    def _found(self) -> dict[Outcome, Any] | None:
        known = self._candidates
        if known is None:
            return None
        assert isinstance(known, Modes)
        self._say_where(known.never)
        has = {
            each: sp.Or(*(known.is_not_zero(x, each) for x in each.coefficients))
            for each in known.consensus + known.quotient
        }
        here = {each: sp.And(known.guard(each.signs), has[each]) for each in has}
        given, C, Q = self.layer.as_given, known.consensus, known.quotient
        for each, when in has.items():
            squared, guard = known.total(each.terms, each.signs), known.guard(each.signs)
            self.modes.append(SymbolicMode(given(squared), given(when), given(guard), each in C))
        # Those that do not die out at once.
        last = {each: sp.And(here[each], known.is_not_zero(each.terms, each)) for each in has}
        smooths = _resolved(
            sp.Or(*(here[q] for q in Q)),
            sp.Or(*(_resolved(here[c], self._above(c, Q, has)) for c in C)),
        )
        does_not = sp.Or(*(_resolved(last[q], self._above(q, C, has)) for q in Q))
        if len(C) == len(Q) == 1:
            equal = three(known.greater(C[0], Q[0]), known.greater(Q[0], C[0]))[Outcome.TIE]
            ties = _resolved(last[C[0]], last[Q[0]], equal)
        else:
            ties = sp.And(sp.Or(*(last[q] for q in Q)), sp.Not(smooths), sp.Not(does_not))
        conditions = {
            Outcome.SMOOTHING: smooths,
            Outcome.TIE: ties,
            Outcome.NON_SMOOTHING: does_not,
            Outcome.TRIVIAL: sp.And(
                sp.Not(sp.Or(*(here[q] for q in Q))), sp.Or(*(last[c] for c in C))
            ),
            Outcome.UNDEFINED: sp.Not(sp.Or(*last.values())),
        }
        return {each: sp.to_nnf(when, simplify=False) for each, when in conditions.items()}

    trivial = condition(Outcome.TRIVIAL, "When all tokens of X_0 are equal: they stay so.")
    undefined = condition(Outcome.UNDEFINED, "When X_L becomes 0.")

    def _exact(self, values: Mapping[Any, Any]) -> Outcome:
        (A, H), X0 = self.layer.at(values), self.layer.fractions(self.layer.X0, values)
        if not any(x for row in X0 for x in row):
            return Outcome.UNDEFINED
        content = start_content(A, H, X0, begins=False)
        return Outcome.UNDECIDED if content is None else content.outcome

    def __str__(self) -> str:
        lines = [super().__str__()]
        for squared, contained, when, consensus in self.modes:
            words = "" if when is sp.true else f", where {said(when)}"
            side = "consensus" if consensus else "another mode"
            only = said(contained) if contained in (sp.true, sp.false) else f"iff {said(contained)}"
            lines.append(f"  {side}, |mu|^2 = {squared}{words}: in X0 {only}")
        return "\n".join(lines)


def symbolic_verdict(layer: SymbolicLayer, thorough: bool = False) -> SymbolicVerdict:
    """The verdict on a layer with parameters: for its X_0 where it has one, else for generic X_0.

    Raises `InputError` for one token.
    """
    return (SymbolicVerdict if layer.X0 is None else SymbolicStartVerdict)(layer, thorough)


# ---------------------------------------------------------------------------- the operator

# Rows of an operator that is inverted: the entries of larger ones fill pages.
_INVERTED = 24


@dataclass(frozen=True)
class SymbolicPair:
    """The multiplier 1 + h a, how often the pair occurs, and its vectors.

    right, left: pairs (u, v) of columns; the operator takes vec(v u^T) to the multiplier times it,
    its transpose the left ones.
    """

    h: Any
    a: Any
    multiplier: Any
    multiplicity: int
    right: tuple[tuple[Any, Any], ...]
    left: tuple[tuple[Any, Any], ...]


class SymbolicOperator(OfLayer):
    """I + H (x) A of A [n, n] and H [d, d] with parameters, as sympy has it; see `symbolic`."""

    @cached_property
    def matrix(self) -> Any:
        """I + H (x) A [n d, n d], on vec(X) with stacked columns."""
        layer = self.layer
        return layer.as_given(sp.eye(layer.n * layer.d) + sp.kronecker_product(layer.H, layer.A))

    @cached_property
    def _spectra(self) -> tuple[list[EigenvalueClass], list[EigenvalueClass]]:
        """Of H, and of all of A."""
        return self.layer.value, spectrum_of(self.layer.A)

    def polynomial(self, x: Any) -> Any:
        """The characteristic polynomial det(x I - operator), in factors.

        One for each pair of irreducible factors of those of H and A: no determinant of n d rows.
        """
        y, z = sp.Dummy("y"), sp.Dummy("z")
        product = sp.Integer(1)
        for h in self._spectra[0]:
            for a in self._spectra[1]:
                below = sp.expand(y**a.degree * a.polynomial((z - 1) / y))
                joint = sp.resultant(h.polynomial(y), below, y)
                whole = sp.Poly(joint, z)
                monic = sp.factor(sp.cancel(whole.as_expr() / whole.LC()))
                product *= monic ** (h.multiplicity * a.multiplicity)
        return self.layer.as_given(product).xreplace({z: x})

    @cached_property
    def determinant(self) -> Any:
        """The product of all 1 + h a."""
        return sp.factor((-1) ** (self.layer.n * self.layer.d) * self.polynomial(sp.Integer(0)))

    @cached_property
    def inverse(self) -> Any:
        """The inverse [n d, n d], where the determinant is not 0.

        Raises `InputError` where it is 0 for all parameters, and for more than 24 rows.
        """
        if self.determinant == 0:
            raise InputError("the determinant is 0 for all parameters: there is no inverse")
        if self.layer.n * self.layer.d > _INVERTED:
            raise InputError(
                f"the operator has {self.layer.n * self.layer.d} rows, more than the {_INVERTED} "
                "whose inverse is written out: solve with numbers, by `operator`"
            )
        inverse = DomainMatrix.from_Matrix(self.matrix).to_field().inv().to_Matrix()
        return inverse.applyfunc(sp.factor)

    @cached_property
    def eigenpairs(self) -> tuple[SymbolicPair, ...]:
        """The pairs (h, a) whose eigenvalues are roots of factors of degree 1 or 2."""
        given, pairs = self.layer.as_given, []
        of_h, of_a = (
            [
                (given(root), each, vectors_of(M, each, root), vectors_of(M.T, each, root))
                for each in classes
                for root in each.roots()
            ]
            for M, classes in zip((self.layer.H, self.layer.A), self._spectra, strict=True)
        )
        for h, h_class, h_right, h_left in of_h:
            for a, a_class, a_right, a_left in of_a:
                right, left = (
                    tuple((given(u), given(v)) for u in us for v in vs)
                    for us, vs in ((h_right, a_right), (h_left, a_left))
                )
                count = h_class.multiplicity * a_class.multiplicity
                pairs.append(SymbolicPair(h, a, sp.factor(1 + h * a), count, right, left))
        return tuple(pairs)

    @property
    def unsolved(self) -> tuple[Any, ...]:
        """Factors of degree 3 and more of the polynomials of H and A, in x.

        Their roots have no closed form here.
        """
        x = sp.Symbol("x")
        higher = (each for classes in self._spectra for each in classes if each.degree > 2)
        return tuple(self.layer.as_given(sp.factor(each.polynomial(x))) for each in higher)

    def verdict(self, X0: MatrixLike | None = None, thorough: bool = False) -> SymbolicVerdict:
        """For which parameters it smooths, from generic X_0 or this one [n, d].

        thorough: also the boundaries that are left out for their cost else.

        Raises `InputError` for one token, and for an X_0 that does not fit.
        """
        layer = self.layer
        if X0 is not None:
            layer = SymbolicLayer(self.layer.as_given(layer.A), self.layer.as_given(layer.H), X0)
        return symbolic_verdict(layer, thorough)

    def at(self, values: Mapping[Any, Any]) -> tuple[Matrix, Matrix]:
        """A and H in fractions where all parameters have values, {symbol or name: number}.

        Raises `InputError` where one is missing, or A is no attention there.
        """
        known = self.layer.read_values(values, {})
        missing = [s.name for s in self.layer.parameters if s not in known]
        if missing:
            raise InputError(f"give values of {', '.join(missing)} too")
        return self.layer.at(known)

    def latex(self) -> str:
        """The matrix in LaTeX."""
        return str(sp.latex(self.matrix))

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self.parameters)
        return f"<I + H (x) A: {self.layer.n} tokens, {self.layer.d} features, in {names}>"


def symbolic(
    A: MatrixLike,
    H: MatrixLike | None = None,
    X0: MatrixLike | None = None,
    *,
    W: WeightLike | None = None,
) -> SymbolicOperator:
    """The operator I + H (x) A of matrices with parameters.

    A [n, n] row-stochastic, H [d, d] or its transpose W, W = (W_V, W_proj) too: sympy matrices, or
    nested lists of sympy expressions, integers, Fractions and text such as "(1 + a)/2". Entries are
    rational functions of real parameters. The answer has `matrix`, `polynomial(x)`, `determinant`,
    `inverse`, `eigenpairs` and `verdict()`, which is for generic X_0 unless X0 [n, d] is given.
    Raises `InputError` where A is no attention for any parameters, for floats beside parameters,
    and for entries that are no rational functions (T1a).

    >>> import oversmoothing
    >>> A = [["(1 + a)/2", "(1 - a)/2"], ["(1 - a)/2", "(1 + a)/2"]]
    >>> found = oversmoothing.symbolic(A, [["h"]])
    >>> found.determinant
    (h + 1)*(a*h + 1)
    >>> [(pair.multiplier, pair.right) for pair in found.eigenpairs][0]
    (h + 1, ((Matrix([[1]]), Matrix([
    [1],
    [1]])),))
    """
    if one_of(H, W) == "W":
        named = (("W_V", "W_proj"), W) if isinstance(W, tuple) else (("W",), (W,))
        H = prod(symbolic_matrix(M, name) for name, M in zip(*named, strict=True)).T
    return SymbolicOperator(SymbolicLayer(A, H, X0))
