"""Statements about real numbers, posed to SMT solvers as the search for a counterexample.

A query is written in infix, as a reader would write it, and serves three ways: printed in its
claim, translated to SMT-LIB 2 for z3 and cvc5, and evaluated exactly on fractions, so that a model
that a solver returns is checked by other means. `unsat` proves the statement for all reals.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("(< {})", operator.lt),
    ast.LtE: ("(<= {})", operator.le),
    ast.Gt: ("(> {})", operator.gt),
    ast.GtE: ("(>= {})", operator.ge),
    ast.Eq: ("(= {})", operator.eq),
    ast.NotEq: ("(not (= {}))", operator.ne),
}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_EXACTLY: dict[type[ast.operator], Callable[[Any, Any], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_CONNECTIVES = {"Implies": "=>", "Iff": "="}


@dataclass(frozen=True)
class Query:
    """For all reals `variables`: `hypotheses` imply `conclusion`.

    Infix strings over the variables: + - *, powers by a literal, integer and n/m literals,
    comparisons (chained too), `and`, `or`, `not`, Implies(p, q), Iff(p, q). Abbreviations are
    substituted by name before anything else.
    """

    name: str
    variables: tuple[str, ...]
    hypotheses: tuple[str, ...]
    conclusion: str
    abbreviations: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError where a text is not in the language or names what has no value."""
        try:
            self.to_smtlib()
        except SyntaxError as error:
            raise ValueError(f"{self.name}: '{error.text}' is no formula") from None

    def to_smtlib(self) -> str:
        """The negation as SMT-LIB 2: unsat means that the statement holds for all reals."""
        lines = [f"(declare-const {name} Real)" for name in self.variables]
        lines += [f"(assert {self._translate(text)})" for text in self.hypotheses]
        lines.append(f"(assert (not {self._translate(self.conclusion)}))")
        return "\n".join(lines) + "\n"

    def describe(self) -> str:
        """One line of text, as a reader reads it."""
        given = " and ".join(self.hypotheses) or "nothing assumed"
        where = "".join(f", {name} := {text}" for name, text in self.abbreviations)
        return f"for all real {', '.join(self.variables)}: {given} => {self.conclusion}{where}"

    def hypotheses_hold(self, values: Mapping[str, Fraction]) -> bool:
        """Whether every hypothesis holds at these values, exactly."""
        return all(bool(self._evaluate(text, values)) for text in self.hypotheses)

    def conclusion_holds(self, values: Mapping[str, Fraction]) -> bool:
        """Whether the conclusion holds at these values, exactly."""
        return bool(self._evaluate(self.conclusion, values))

    def _parsed(self, text: str) -> ast.expr:
        table = {name: ast.parse(value, mode="eval").body for name, value in self.abbreviations}

        class Expand(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.expr:
                if node.id in table:
                    return Expand().visit(_copy(table[node.id]))  # type: ignore[no-any-return]
                return node

        expanded: ast.expr = Expand().visit(ast.parse(text.strip(), mode="eval").body)
        return expanded

    def _translate(self, text: str) -> str:
        return _smt(self._parsed(text), set(self.variables))

    def _evaluate(self, text: str, values: Mapping[str, Fraction]) -> bool | Fraction:
        return _exact(self._parsed(text), values)


def _copy(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


def _literal(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r}: write integers and quotients of integers")
    return f"{value}.0"


def _known(ops: list[ast.cmpop]) -> bool:
    return all(type(op) in _COMPARISONS for op in ops)


def _smt(node: ast.expr, variables: set[str]) -> str:
    match node:
        case ast.Name(id=name):
            if name not in variables:
                known = ", ".join(sorted(variables)) or "none"
                raise ValueError(f"'{name}' is not a variable of the query ({known})")
            return name
        case ast.Constant(value=value):
            return _literal(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(- {_smt(operand, variables)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"(not {_smt(operand, variables)})"
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(power))):
            return f"(* {' '.join([_smt(base, variables)] * power)})"
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=q)) if q:
            return f"(/ {_smt(left, variables)} {_literal(q)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return f"({_ARITHMETIC[type(op)]} {_smt(left, variables)} {_smt(right, variables)})"
        case ast.BoolOp(op=op, values=values):
            word = "and" if isinstance(op, ast.And) else "or"
            return f"({word} {' '.join(_smt(value, variables) for value in values)})"
        case ast.Compare(left=left, ops=ops, comparators=rest) if _known(ops):
            parts = []
            for sign, right in zip(ops, rest, strict=True):
                pair = f"{_smt(left, variables)} {_smt(right, variables)}"
                parts.append(_COMPARISONS[type(sign)][0].format(pair))
                left = right
            return parts[0] if len(parts) == 1 else f"(and {' '.join(parts)})"
        case ast.Call(func=ast.Name(id=name), args=[first, second]) if name in _CONNECTIVES:
            return f"({_CONNECTIVES[name]} {_smt(first, variables)} {_smt(second, variables)})"
    raise ValueError(f"'{ast.unparse(node)}' is not in the language of queries")


def _exact(node: ast.expr, values: Mapping[str, Fraction]) -> bool | Fraction:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=int(value)):
            return Fraction(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -Fraction(_exact(operand, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _exact(operand, values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _EXACTLY:
            x, y = Fraction(_exact(left, values)), Fraction(_exact(right, values))
            return Fraction(_EXACTLY[type(op)](x, y))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_exact(part, values) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(_exact(part, values) for part in parts)
        case ast.Compare(left=first, ops=ops, comparators=rest) if _known(ops):
            current = _exact(first, values)
            for sign, part in zip(ops, rest, strict=True):
                other = _exact(part, values)
                if not _COMPARISONS[type(sign)][1](current, other):
                    return False
                current = other
            return True
        case ast.Call(func=ast.Name(id=name), args=[premise, consequence]):
            p, q = bool(_exact(premise, values)), bool(_exact(consequence, values))
            return (not p or q) if name == "Implies" else p == q
    raise ValueError(f"'{ast.unparse(node)}' is not in the language of queries")
