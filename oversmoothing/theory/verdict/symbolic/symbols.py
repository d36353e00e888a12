"""The operator I + H (x) A with parameters: polynomial, determinant, inverse, eigenpairs (T1a).

All of it follows from A and H apart: the eigenvalues are 1 + h a, the eigenvectors v u^T. What is
said holds for all parameters outside the zeros of a polynomial: a vector that is written down may
be 0 at single parameters, and eigenvalues may meet there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from oversmoothing.theory.layer.layer import one_of
from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import MatrixLike
from oversmoothing.theory.verdict.symbolic.symbolic_layer import (
    EigenvalueClass,
    SymbolicLayer,
    kernel_of,
    spectrum_of,
    symbolic_matrix,
)
from oversmoothing.theory.verdict.symbolic.symbolic_start import symbolic_verdict
from oversmoothing.theory.verdict.symbolic.symbolic_verdict import SymbolicVerdict

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


class SymbolicOperator:
    """I + H (x) A of A [n, n] and H [d, d] with parameters, as sympy has it; see `symbolic`."""

    def __init__(self, layer: SymbolicLayer) -> None:
        self.layer, self._given = layer, layer.as_given

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The symbols, by name."""
        return tuple(self.layer.symbols)

    @property
    def assumed(self) -> tuple[Any, ...]:
        """What A must satisfy to be attention, as far as it is not settled."""
        return tuple(map(self._given, self.layer.assumed))

    @cached_property
    def matrix(self) -> Any:
        """I + H (x) A [n d, n d], on vec(X) with stacked columns."""
        layer = self.layer
        return self._given(sp.eye(layer.n * layer.d) + sp.kronecker_product(layer.H, layer.A))

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
        return self._given(product).xreplace({z: x})

    @cached_property
    def determinant(self) -> Any:
        """The product of all 1 + h a."""
        size = self.layer.n * self.layer.d
        return sp.factor((-1) ** size * self.polynomial(sp.Integer(0)))

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
        layer, pairs = self.layer, []
        of_h, of_a = (
            [
                (self._given(root), each, _vectors(M, each, root), _vectors(M.T, each, root))
                for each in classes
                for root in each.roots()
            ]
            for M, classes in zip((layer.H, layer.A), self._spectra, strict=True)
        )
        for h, h_class, h_right, h_left in of_h:
            for a, a_class, a_right, a_left in of_a:
                right, left = (
                    tuple((self._given(u), self._given(v)) for u in us for v in vs)
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
        return tuple(self._given(sp.factor(each.polynomial(x))) for each in higher)

    def verdict(self, X0: MatrixLike | None = None) -> SymbolicVerdict:
        """For which parameters it smooths, from generic X_0 or this one [n, d].

        Raises `InputError` for one token, and for an X_0 that does not fit.
        """
        layer = self.layer
        if X0 is not None:
            layer = SymbolicLayer(self._given(layer.A), self._given(layer.H), X0)
        return symbolic_verdict(layer)

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


def _vectors(M: Any, each: EigenvalueClass, root: Any) -> list[Any]:
    """A basis of the eigenvectors of M at one root."""
    if each.degree == 1:
        return kernel_of(M, each)
    if each.multiplicity > 1:
        return [
            v.applyfunc(sp.radsimp) for v in (M - root * sp.eye(M.rows)).nullspace(simplify=True)
        ]
    # (M - other root) kills what else f(M) kills.
    column = kernel_of(M, each)[0]
    return [(M * column - (each.trace - root) * column).applyfunc(sp.factor_terms)]


def symbolic(
    A: MatrixLike,
    H: MatrixLike | None = None,
    X0: MatrixLike | None = None,
    *,
    W: MatrixLike | None = None,
) -> SymbolicOperator:
    """The operator I + H (x) A of matrices with parameters.

    A [n, n] row-stochastic, H [d, d] or its transpose W: sympy matrices, or nested lists of sympy
    expressions, integers, Fractions and text such as "(1 + a)/2". Entries are rational functions of
    real parameters. The answer has `matrix`, `polynomial(x)`, `determinant`, `inverse`,
    `eigenpairs` and `verdict()`, which is for generic X_0 unless X0 [n, d] is given. Raises
    `InputError` where A is no attention for any parameters, for floats beside parameters, and for
    entries that are no rational functions (T1a).

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
        H = symbolic_matrix(W, "W").T
    return SymbolicOperator(SymbolicLayer(A, H, X0))
