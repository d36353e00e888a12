"""A layer whose A and H hold parameters: what is read, what is assumed of it, and its two spectra.

Entries are rational functions of real parameters. B_ij = A_ij - A_nj (i, j < n) has the eigenvalues
of A without one copy of 1 (T1c), as far as the rows of A sum to 1. Nothing is assumed in silence:
what sympy cannot settle of rows and signs is a condition in `assumed`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import permutations
from operator import add, mul, sub, truediv
from typing import Any

import sympy as sp
from sympy.core.relational import Relational
from sympy.polys.matrices import DomainMatrix
from sympy.printing.str import StrPrinter
from sympy.solvers.simplex import InfeasibleLPError, UnboundedLPError, lpmin

from oversmoothing.theory.numbers.exact import Matrix, rows_of
from oversmoothing.theory.support.errors import InputError

_VALUE = sp.Dummy("x")
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.Pow: pow,
}  # fmt: skip


class _Words(StrPrinter):
    def _print_Relational(self, expr: Any) -> str:
        sign = {"==": "=", "!=": "is not"}.get(expr.rel_op, expr.rel_op)
        return f"{self._print(expr.lhs)} {sign} {self._print(expr.rhs)}"

    def _joined(self, word: str, expr: Any) -> str:
        parts = {x: self._print(x) for x in expr.args}
        for low, high in permutations(expr.args if word == "and" else (), 2):
            pair = isinstance(low, sp.Gt | sp.Ge) and isinstance(high, sp.Lt | sp.Le)
            if pair and low.lhs == high.lhs and {low, high} <= parts.keys():
                parts[high] = f"{self._print(low.rhs)} {low.reversed.rel_op} {parts[high]}"
                del parts[low]
        plain = (Relational, sp.Symbol)
        return f" {word} ".join(y if isinstance(x, plain) else f"({y})" for x, y in parts.items())

    def _print_And(self, expr: Any) -> str:
        return self._joined("and", expr)

    def _print_Or(self, expr: Any) -> str:
        return self._joined("or", expr)

    def _print_Not(self, expr: Any) -> str:
        return f"not ({self._print(expr.args[0])})"

    def _print_BooleanTrue(self, expr: Any) -> str:
        return "always"

    def _print_BooleanFalse(self, expr: Any) -> str:
        return "never"


def said(condition: Any) -> str:
    """A condition in plain words: "h = 0 or h < -2/(a + 1)"."""
    return str(_Words().doprint(condition))


def truth(condition: Any, at: Mapping[Any, Any]) -> bool | None:
    """Whether it holds at values of its symbols.

    None where sympy does not tell, or a number is not real: a guard beside it may decide.
    """
    if isinstance(condition, sp.Not):
        inside = truth(condition.args[0], at)
        return None if inside is None else not inside
    if isinstance(condition, sp.And | sp.Or):
        deciding = isinstance(condition, sp.Or)
        parts = [truth(part, at) for part in condition.args]
        return deciding if deciding in parts else None if None in parts else not deciding
    try:
        return {sp.true: True, sp.false: False}.get(condition.xreplace(at))
    except TypeError:
        return None


def parsed(text: str, where: str) -> Any:
    """An entry as text, "(1 + a)/2", in sympy: numbers, names and + - * / ** alone, never run.

    Raises `InputError` for anything else.
    """

    def read(node: ast.AST) -> Any:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return sp.Integer(value)
            case ast.Constant(value=float()):
                return sp.Rational(ast.get_source_segment(text.strip(), node))
            case ast.Name(id=name):
                return sp.Symbol(name, real=True)
            case ast.UnaryOp(op=ast.USub(), operand=x):
                return -read(x)
            case ast.UnaryOp(op=ast.UAdd(), operand=x):
                return read(x)
            case ast.BinOp(left=x, op=ast.Pow(), right=ast.Constant(value=int(power))):
                if abs(power) <= 64:
                    return read(x) ** power
            case ast.BinOp(left=x, op=op, right=y) if type(op) in _OPERATIONS:
                return _OPERATIONS[type(op)](read(x), read(y))
        raise ValueError

    try:
        return read(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(
            f'{where} = {text[:80]!r} is no expression in parameters: write "(1 + a)/2", with '
            "names, numbers and + - * / **"
        ) from error


def symbolic_matrix(value: Any, name: str) -> Any:
    """A sympy matrix of a matrix-like value of expressions, text among them.

    Raises `InputError` for what is no matrix, and for floats, whose meaning is not exact.
    """
    rows = rows_of(value, name)
    entries = [
        [_entry(x, f"{name}[{i}, {j}]") for j, x in enumerate(row)] for i, row in enumerate(rows)
    ]
    return sp.Matrix(entries)


def _entry(x: Any, where: str) -> Any:
    expression = parsed(x, where) if isinstance(x, str) else sp.sympify(x)
    if not isinstance(expression, sp.Expr):
        raise InputError(f"{where} = {x!r} is no expression in parameters")
    if expression.has(sp.Float):
        raise InputError(
            f"{where} = {x} holds a float beside parameters: write it exactly, "
            'sympy.Rational("0.75")'
        )
    return expression


@dataclass(frozen=True)
class EigenvalueClass:
    """The roots of one factor, irreducible over the rational functions of the parameters.

    coefficients: of the monic polynomial, highest first. multiplicity: of each root.
    """

    coefficients: tuple[Any, ...]
    multiplicity: int

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1

    @property
    def trace(self) -> Any:
        """The sum of the roots: of a factor of degree 1 its one root."""
        return sp.factor(-self.coefficients[1])

    @property
    def determinant(self) -> Any:
        """The product of both roots of a quadratic."""
        return sp.factor(self.coefficients[2])

    @cached_property
    def discriminant(self) -> Any:
        """The square of their difference: negative where they are complex."""
        return sp.factor(self.coefficients[1] ** 2 - 4 * self.coefficients[2])

    def roots(self) -> list[Any]:
        """In sympy, of a factor of degree 1 or 2; else none."""
        if self.degree == 1:
            return [self.trace]
        if self.degree == 2:
            root = sp.sqrt(self.discriminant)
            return [sp.factor_terms((self.trace + sign * root) / 2) for sign in (1, -1)]
        return []

    def polynomial(self, x: Any) -> Any:
        return sum(c * x**k for k, c in enumerate(reversed(self.coefficients)))


# That of consensus, a = 1.
AT_ONE = EigenvalueClass((sp.Integer(1), sp.Integer(-1)), 1)


def spectrum_of(M: Any) -> list[EigenvalueClass]:
    """The eigenvalues of a sympy matrix of rational functions, by irreducible factors."""
    if M.rows == 0:
        return []
    over_field = DomainMatrix.from_Matrix(M).to_field()
    coefficients = map(over_field.domain.to_sympy, reversed(over_field.charpoly()))
    whole = sp.together(sum(c * _VALUE**k for k, c in enumerate(coefficients)))
    _, factors = sp.factor_list(sp.expand(sp.numer(whole)))
    classes = []
    for factor, multiplicity in factors:
        if not factor.has(_VALUE):
            continue
        parts = sp.Poly(factor, _VALUE).all_coeffs()
        monic = tuple(sp.cancel(c / parts[0]) for c in parts)
        classes.append(EigenvalueClass(monic, multiplicity))
    return classes


def kernel_of(M: Any, each: EigenvalueClass, power: int = 1) -> list[Any]:
    """Columns x that span the kernel of f(M)^power, f the factor: each without denominators and
    common factors."""
    value = sum((c * M**k for k, c in enumerate(reversed(each.coefficients))), 0 * M)
    value = value.applyfunc(sp.cancel)
    rows = (DomainMatrix.from_Matrix(value).to_field() ** int(power)).nullspace().to_Matrix()
    return [_whole(rows.row(k).T) for k in range(rows.rows)]


def vectors_of(M: Any, each: EigenvalueClass, root: Any) -> list[Any]:
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


def _whole(column: Any) -> Any:
    parts = [sp.together(x) for x in column]
    below = sp.lcm_list([sp.denom(x) for x in parts])
    tops = [sp.cancel(x * below) for x in parts]
    common = sp.gcd_list(tops)
    return sp.Matrix([sp.factor(sp.cancel(x / common)) for x in tops])


class SymbolicLayer:
    """A [n, n] and H [d, d] of rational functions of real parameters, and X0 [n, d] perhaps.

    parameters: the symbols, by name. assumed: conditions that must hold for A to be attention, as
    far as sympy does not settle them. stated: the same, and what is taken for granted, in words.
    """

    def __init__(self, A: Any, H: Any, X0: Any = None) -> None:
        named = {"A": A, "H": H, "X0": X0}
        given = {name: symbolic_matrix(M, name) for name, M in named.items() if M is not None}
        theirs = sorted({s for M in given.values() for s in M.free_symbols}, key=lambda s: s.name)
        for symbol in theirs:
            if symbol.is_real is False:
                raise InputError(
                    f"the parameter {symbol} is not real: the theory is about real matrices"
                )
            if [s.name for s in theirs].count(symbol.name) > 1:
                raise InputError(f"two different symbols are called {symbol}: make them once")
        self.symbols = theirs
        real = {s: sp.Symbol(s.name, real=True, **_sign(s)) for s in theirs}
        self.own, self.theirs = real, {r: s for s, r in real.items()}
        self.parameters = list(real.values())
        given = {name: M.xreplace(real) for name, M in given.items()}
        self.A, self.H = given["A"], given["H"]
        self.X0: Any = given.get("X0")
        self.n, self.d = int(self.A.rows), int(self.H.rows)
        for name, M in given.items():
            if name != "X0" and M.rows != M.cols:
                raise InputError(f"{name} has shape {list(M.shape)}; it must be square")
            for place, entry in enumerate(M):
                if not entry.is_rational_function(*self.parameters) or entry.has(sp.I):
                    i, j = divmod(place, M.cols)
                    raise InputError(
                        f"{name}[{i}, {j}] = {entry} is no rational function of the parameters: "
                        "give what is not rational a symbol of its own (w for exp(l))"
                    )
        if self.X0 is not None and self.X0.shape != (self.n, self.d):
            raise InputError(
                f"X0 has shape {list(self.X0.shape)}; A is {self.n} x {self.n} and H is "
                f"{self.d} x {self.d}, so it must be [{self.n}, {self.d}]: one row a token"
            )
        self.assumed: list[Any] = []
        # Positive wherever no entry of A that can be positive is 0.
        self.positive: list[Any] = [s for s in self.parameters if s.is_positive]
        self._check_attention()
        self._sign_of_factor = cache(self._settled)

    def _check_attention(self) -> None:
        for i in range(self.n):
            excess = sp.cancel(sum(self.A.row(i)) - 1)
            if excess.is_number and excess != 0:
                raise InputError(f"A is not row-stochastic: row {i} sums to {excess + 1}")
            if excess != 0:
                self.assumed.append(sp.Eq(sp.cancel(excess + 1), 1))
        for place, entry in enumerate(self.A):
            entry = sp.factor(entry)
            if entry.is_negative:
                i, j = divmod(place, self.n)
                raise InputError(f"A[{i}, {j}] = {entry} is negative: attention is row-stochastic")
            if not entry.is_nonnegative and sp.Ge(entry, 0) not in self.assumed:
                self.assumed.append(sp.Ge(entry, 0))
            if not entry.is_number and entry not in self.positive:
                self.positive.append(entry)

    def as_given(self, expression: Any) -> Any:
        """The same with the symbols that the user made."""
        return expression.xreplace(self.theirs)

    @cached_property
    def quotient(self) -> Any:
        """B [n-1, n-1]."""
        k = self.n - 1
        return sp.Matrix(k, k, lambda i, j: sp.cancel(self.A[i, j] - self.A[k, j]))

    @cached_property
    def attention(self) -> list[EigenvalueClass]:
        """The eigenvalues of A without one copy of 1."""
        return spectrum_of(self.quotient)

    @cached_property
    def value(self) -> list[EigenvalueClass]:
        """The eigenvalues of H."""
        return spectrum_of(self.H)

    def read_values(self, values: Mapping[Any, Any], more: Mapping[str, Any]) -> dict[Any, Any]:
        """{parameter: rational} of {symbol or name: number}. Raises `InputError` for others."""
        by_name = {s.name: s for s in self.parameters}
        numbers = {}
        for key, value in {**values, **more}.items():
            name = getattr(key, "name", key)
            if name not in by_name:
                raise InputError(f"no parameter {name!r}: there are {', '.join(by_name) or 'none'}")
            number = sp.Rational(str(value)) if isinstance(value, str) else sp.sympify(value)
            if isinstance(number, sp.Float):
                number = sp.Rational(*float(value).as_integer_ratio())
            if not isinstance(number, sp.Rational):
                raise InputError(f"{name} = {value} is not rational: give a fraction or a number")
            symbol = by_name[name]
            for word in _sign(symbol):
                if not getattr(number, f"is_{word}"):
                    raise InputError(f"{name} = {number}, and {name} was declared {word}")
            numbers[symbol] = number
        return numbers

    def at(self, values: Mapping[Any, Any]) -> tuple[Matrix, Matrix]:
        """A and H in fractions where every parameter has a rational value.

        Raises `InputError` where A is no attention there, or a denominator is 0.
        """
        A, H = (self.fractions(M, values) for M in (self.A, self.H))
        for i, row in enumerate(A):
            if sum(row) != 1 or min(row) < 0:
                raise InputError(
                    f"there A is no attention: row {i} is {', '.join(map(str, row))}, and entries "
                    "must be >= 0 and sum to 1"
                )
        return A, H

    @staticmethod
    def fractions(M: Any, values: Mapping[Any, Any]) -> Matrix:
        """A, H or X0 there. Raises `InputError` where a denominator is 0."""
        matrix = M.xreplace(dict(values))
        rows = [[sp.cancel(x) for x in matrix.row(i)] for i in range(matrix.rows)]
        if not all(isinstance(x, sp.Rational) for row in rows for x in row):
            raise InputError("a denominator is 0 there")
        return [[Fraction(int(x.p), int(x.q)) for x in row] for row in rows]

    # ------------------------------------------------------------------------------- signs

    def sign(self, expression: Any, strict: bool = True) -> int | None:
        """1 or -1 where the expression has that sign wherever all that is in `positive` is
        positive, 0 where it vanishes; None where that is not settled. Not strict: or is 0."""
        sign, rest = self.reduced(expression)
        if not strict:
            rest = [(factor, power) for factor, power in rest if power % 2]
        return None if rest else sign

    def reduced(self, expression: Any) -> tuple[int, list[tuple[Any, int]]]:
        """(sign of what is settled, other factors with their powers)."""
        top, below = sp.fraction(sp.together(expression))
        total, rest = 1, []
        for part, turn in ((top, 1), (below, -1)):
            # A sum that cancels to a number is a factor that sympy refuses.
            coefficient, factors = sp.factor_list(sp.expand(part))
            total *= int(sp.sign(coefficient))
            for factor, power in factors:
                sign = self._sign_of_factor(factor)
                if sign is None:
                    rest.append((factor, turn * power))
                else:
                    total *= sign**power
        return total, rest

    def _settled(self, factor: Any) -> int | None:
        return next(
            (s for s in (1, -1) if (s * factor).is_positive or self._implied(s * factor)), None
        )

    def _implied(self, expression: Any) -> bool:
        """Whether it is a sum of the positive ones with coefficients >= 0, not all 0, and perhaps a
        constant >= 0, by linear programming in fractions."""
        # A denominator that is not a positive number has a sign of its own.
        parts = (sp.fraction(sp.together(x)) for x in self.positive)
        facts = [top if below.is_positive else top * below for top, below in parts]
        weights = sp.symbols(f"c0:{len(facts) + 1}", cls=sp.Dummy)
        rest = sp.expand(
            expression - sum(w * f for w, f in zip(weights[1:], facts, strict=True)) - weights[0]
        )
        equations = sp.Poly(rest, *self.parameters).coeffs() if self.parameters else [rest]
        if any(not e.free_symbols and e != 0 for e in equations):
            return False
        try:
            best, _ = lpmin(
                -sum(weights),
                [sp.Eq(e, 0) for e in equations if e != 0] + [w >= 0 for w in weights],
            )
        except (InfeasibleLPError, UnboundedLPError):
            return False
        return bool(best < 0)


class OfLayer:
    """What is said of a layer with parameters."""

    def __init__(self, layer: SymbolicLayer) -> None:
        self.layer = layer

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The symbols, by name."""
        return tuple(self.layer.symbols)

    @property
    def assumed(self) -> tuple[Any, ...]:
        """What A must satisfy to be attention, as far as it is not settled."""
        return tuple(map(self.layer.as_given, self.layer.assumed))


def _sign(symbol: Any) -> dict[str, bool]:
    """What was declared of a symbol and matters here."""
    kept = ("positive", "negative", "nonnegative", "nonpositive", "nonzero")
    return {name: True for name in kept if getattr(symbol, f"is_{name}")}
