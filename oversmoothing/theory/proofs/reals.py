"""Statements about real numbers: posed to SMT solvers, with false neighbours that must fail.

A query is written in infix, as a reader would write it, and serves three ways: printed in its
claim, translated to SMT-LIB 2 for z3 and cvc5, and evaluated exactly on fractions, so that a model
that a solver returns is checked by other means. `unsat` proves the statement for all reals.

    for_all("h > 0 wins at consensus", given="-1 < a; a < 1; h > 0",
            then="(1+h*a)**2 < (1+h)**2", at="h=1, a=1/2").unless(
        "h >= 0", without="h > 0", given="h >= 0", at="h=0, a=1/2")

is proved by the first query and guarded by the second: a prover that says yes to everything fails.
Of what Coq proves the neighbours alone are evaluated, at points (`Sharp`); no solver is asked.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from oversmoothing.theory.proofs.claim import Effort, Kind, Outcome
from oversmoothing.theory.proofs.solver import Answer, solve

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "(< {})",
    ast.LtE: "(<= {})",
    ast.Gt: "(> {})",
    ast.GtE: "(>= {})",
    ast.Eq: "(= {})",
    ast.NotEq: "(not (= {}))",
}
# Names that SMT-LIB has for itself, and Python has not.
_TAKEN = {
    "abs", "distinct", "div", "exists", "false", "forall", "is_int", "ite", "let", "match", "mod",
    "par", "to_int", "to_real", "true", "xor",
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_CONNECTIVES = {"Implies": "=>", "Iff": "="}
# What a text of the language means to Python, whose own operators do the rest.
_MEANS = {"Fraction": Fraction, "Implies": lambda p, q: not p or q, "Iff": operator.eq}


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
        for name in self.variables:
            if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or name in _TAKEN:
                raise ValueError(
                    f"{self.name}: {name!r} names no variable: take Latin letters, digits and _, "
                    f"and none of {', '.join(sorted(_TAKEN))}"
                )
        lines = [f"(declare-const {name} Real)" for name in self.variables]
        *given, wanted = (
            _smt(self._parsed(text), self.variables, True)
            for text in (*self.hypotheses, self.conclusion)
        )
        lines += [*(f"(assert {text})" for text in given), f"(assert (not {wanted}))"]
        return "\n".join(lines) + "\n"

    def describe(self) -> str:
        """One line of text, as a reader reads it."""
        given = " and ".join(self.hypotheses) or "nothing assumed"
        where = "".join(f", {name} := {text}" for name, text in self.abbreviations)
        return f"for all real {', '.join(self.variables)}: {given} => {self.conclusion}{where}"

    def hypotheses_hold(self, values: Mapping[str, Fraction]) -> bool:
        """Whether every hypothesis holds at these values, exactly."""
        return all(self._evaluate(text, values) for text in self.hypotheses)

    def conclusion_holds(self, values: Mapping[str, Fraction]) -> bool:
        """Whether the conclusion holds at these values, exactly."""
        return self._evaluate(self.conclusion, values)

    def violated(self, values: Mapping[str, Fraction]) -> bool:
        """Whether every hypothesis holds at these values and the conclusion does not, exactly."""
        return self.hypotheses_hold(values) and not self.conclusion_holds(values)

    def _parsed(self, text: str) -> ast.expr:
        table = {name: ast.parse(value, mode="eval").body for name, value in self.abbreviations}

        class Expand(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.expr:
                if node.id in table:
                    return Expand().visit(deepcopy(table[node.id]))  # type: ignore[no-any-return]
                return node

        expanded: ast.expr = Expand().visit(ast.parse(text.strip(), mode="eval").body)
        return expanded

    def _evaluate(self, text: str, values: Mapping[str, Fraction]) -> bool:
        """In fractions. The translation to SMT-LIB has refused all that is not in the language."""
        exact = ast.fix_missing_locations(_Fractions().visit(self._parsed(text)))
        code = compile(ast.Expression(exact), "<query>", "eval")
        return bool(eval(code, {**_MEANS, **values}))


class _Fractions(ast.NodeTransformer):
    """Integers as fractions: 1/2 is no float."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Call(ast.Name("Fraction", ast.Load()), [node], [])


def _literal(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r}: write integers and quotients of integers")
    return f"{value}.0"


def _is_formula(node: ast.expr) -> bool:
    """Whether it is true or false; else it is a number."""
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return negated or isinstance(node, ast.BoolOp | ast.Compare | ast.Call)


def _smt(node: ast.expr, variables: Collection[str], formula: bool) -> str:
    """A formula or a number in SMT-LIB.

    Raises ValueError where it is not in the language, or where the one stands for the other.
    """
    translated = _translated(node, variables)
    if _is_formula(node) is not formula:
        kinds = ("a formula", "a number")
        raise ValueError(
            f"'{ast.unparse(node)}' is {kinds[formula]}, where {kinds[not formula]} stands"
        )
    return translated


def _translated(node: ast.expr, variables: Collection[str]) -> str:
    number, formula = (partial(_smt, variables=variables, formula=kind) for kind in (False, True))
    match node:
        case ast.Name(id=name):
            if name not in variables:
                known = ", ".join(sorted(variables)) or "none"
                raise ValueError(f"'{name}' is not a variable of the query ({known})")
            return name
        case ast.Constant(value=value):
            return _literal(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(- {number(operand)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"(not {formula(operand)})"
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(power))):
            # A product has two factors at least.
            factors = ["1.0"] * (2 - power) + [number(base)] * power
            return f"(* {' '.join(factors)})"
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=q)) if q:
            return f"(/ {number(left)} {_literal(q)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return f"({_ARITHMETIC[type(op)]} {number(left)} {number(right)})"
        case ast.BoolOp(op=op, values=values):
            word = "and" if isinstance(op, ast.And) else "or"
            return f"({word} {' '.join(map(formula, values))})"
        case ast.Compare(left=left, ops=ops, comparators=rest) if {*map(type, ops)} <= {*_SIGNS}:
            # Two formulas can be equal.
            equal = _is_formula(left) and {*map(type, ops)} <= {ast.Eq, ast.NotEq}
            sides = [*map(formula if equal else number, (left, *rest))]
            pairs = zip(ops, pairwise(sides), strict=True)
            parts = [_SIGNS[type(sign)].format(" ".join(pair)) for sign, pair in pairs]
            return parts[0] if len(parts) == 1 else f"(and {' '.join(parts)})"
        case ast.Call(func=ast.Name(id=name), args=[first, second]) if name in _CONNECTIVES:
            return f"({_CONNECTIVES[name]} {formula(first)} {formula(second)})"
    raise ValueError(f"'{ast.unparse(node)}' is not in the language of queries")


# Conditions in infix, separated by semicolons; or several such texts.
Conditions = str | tuple[str, ...]

# a = min spec(A) of a positive row-stochastic A, n >= 2.
EIGENVALUE = "-1 < a; a < 1"

# |x| > |y| as squares. q1, p1: consensus (a = 1) at q = min h_j, p = max h_j; qa, pa: the same two
# at a = min spec(A). By T2c these four decide.
CORNERS = {
    "q1": "(1+q)**2",
    "p1": "(1+p)**2",
    "qa": "(1+q*a)**2",
    "pa": "(1+p*a)**2",
    "SMOOTHING": "(q1 > qa and q1 > pa) or (p1 > qa and p1 > pa)",
    "NON_SMOOTHING": "(qa > q1 and qa > p1) or (pa > q1 and pa > p1)",
    "TIE": "not (SMOOTHING) and not (NON_SMOOTHING)",
}


def _conditions(texts: Conditions) -> tuple[str, ...]:
    joined = ";".join([texts] if isinstance(texts, str) else texts)
    return tuple(part.strip() for part in joined.split(";") if part.strip())


def _values(text: str) -> dict[str, Fraction]:
    """ "h=1, a=1/2" by name. Raises ValueError where a part is not a name with a fraction."""
    values = {}
    for part in filter(str.strip, text.split(",")):
        name, _, value = part.partition("=")
        try:
            values[name.strip()] = Fraction(value.strip())
        except (ValueError, ZeroDivisionError):
            wanted = 'write them as "h=1, a=1/2"'
            raise ValueError(f"'{text}' gives no values: {wanted}") from None
    return values


def _said(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def for_all(
    title: str,
    *,
    given: Conditions = (),
    then: str,
    at: str,
    covers: tuple[int, ...] = (),
    where: Mapping[str, str] | None = None,
) -> ForAllReals:
    """For all reals `given` implies `then` (infix, see `Query`).

    at: every variable with a value ("h=1, a=1/2"), at which the hypotheses hold; where:
    abbreviations; covers: the clauses that it proves. False neighbours: `unless`.
    """
    example = _values(at)
    query = Query(title, tuple(example), _conditions(given), then, tuple((where or {}).items()))
    return ForAllReals(query, (), example, covers)


@dataclass(frozen=True)
class Mutation:
    """A false neighbour of a query, to show that the prover is not vacuous.

    change: what was altered, in words. witness: values at which it fails, shown if the solver's own
    model is irrational.
    """

    change: str
    query: Query
    witness: dict[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class ForAllReals:
    """A query that must be unsat, with mutated ones that must be sat, each evaluated exactly.

    The hypotheses must be satisfiable too (by `example`), or unsat would mean nothing; without a
    mutated query it is open: a prover that says yes to everything would pass.
    """

    query: Query
    mutations: tuple[Mutation, ...]
    example: dict[str, Fraction]
    covers: tuple[int, ...] = ()
    kind: Kind = Kind.REALS

    @property
    def title(self) -> str:
        return self.query.name

    def unless(
        self,
        change: str,
        *,
        without: Conditions = (),
        given: Conditions = (),
        then: str | None = None,
        at: str = "",
    ) -> ForAllReals:
        """The same with one more false neighbour, `change` in words.

        without: hypotheses left out; given: those that stand in their place (at the end where none
        is left out); then: another conclusion. at: a witness, every variable with a value. Raises
        ValueError where `without` names no hypothesis or `at` not the variables of the query.
        """
        dropped, added = _conditions(without), _conditions(given)
        hypotheses = self.query.hypotheses
        if unknown := set(dropped) - set(hypotheses):
            raise ValueError(f"{self.title} has no hypothesis {sorted(unknown)} to leave out")
        witness = _values(at)
        if witness and set(witness) != set(self.query.variables):
            wanted = ", ".join(f"{name}=..." for name in self.query.variables)
            raise ValueError(f"'{at}' is no witness ({change}): write it as \"{wanted}\"")
        rest = [condition for condition in hypotheses if condition not in dropped]
        place = min((hypotheses.index(condition) for condition in dropped), default=len(rest))
        mutated = replace(
            self.query,
            name=f"mutated: {change}",
            hypotheses=(*rest[:place], *added, *rest[place:]),
            conclusion=self.query.conclusion if then is None else then,
        )
        return replace(self, mutations=(*self.mutations, Mutation(change, mutated, witness)))

    def run(self, effort: Effort) -> Outcome:
        if not self.query.hypotheses_hold(self.example):
            said = _said(self.example)
            return Outcome(False, f"the example {said} does not satisfy the hypotheses")
        smtlib = self.query.to_smtlib()
        data: dict[str, Any] = {"query": self.query.describe(), "smtlib": smtlib}
        answer = solve(smtlib, "z3", effort.solver_limit)
        data["z3"] = _record(answer)
        if answer.result == "sat":
            shown = _model(self.query, answer)
            return Outcome(False, f"z3 finds a counterexample: {shown}", shown, data)
        second = None
        if effort.second_opinion:
            second = solve(smtlib, "cvc5", effort.solver_limit)
            data["cvc5"] = _record(second)
            if second.result == "sat":
                return Outcome(False, "cvc5 finds a counterexample where z3 does not", None, data)
        if "unsat" not in (answer.result, second.result if second else None):
            return Outcome(None, f"z3: {answer.result} after {answer.seconds:.2f} s", None, data)
        words = [f"z3 {answer.result} in {answer.seconds:.3f} s"]
        if second is not None:
            words.append(f"cvc5 {second.result} in {second.seconds:.3f} s")
        if not self.mutations:
            said = f"{words[0]}, but there is no false neighbour: add .unless(...)"
            return Outcome(None, said, None, data)
        mutated = []
        for mutation in self.mutations:
            shown, failure = _mutated(mutation, effort)
            if failure is not None:
                return Outcome(False, failure, None, data)
            mutated.append({"change": mutation.change, "counterexample": shown})
            words.append(f"mutated ({mutation.change}): sat at {shown}")
        data["mutations"] = mutated
        return Outcome(True, "; ".join(words), None, data)


def _record(answer: Answer) -> dict[str, Any]:
    return {"result": answer.result, "seconds": round(answer.seconds, 4)}


def _rational(model: dict[str, str]) -> dict[str, Fraction] | None:
    try:
        return {name: Fraction(value) for name, value in model.items()}
    except ValueError:
        return None


def _model(query: Query, answer: Answer) -> str:
    values = _rational(answer.model)
    shown = _said(dict(sorted(answer.model.items())))
    if values is None:
        return shown
    values |= {name: Fraction(0) for name in query.variables if name not in values}
    if not query.violated(values):
        raise ArithmeticError(f"the model {shown} of {query.name} is not a counterexample")
    return shown


def _mutated(mutation: Mutation, effort: Effort) -> tuple[str, str | None]:
    """The counterexample to a mutated query, exactly checked; or what went wrong."""
    answer = solve(mutation.query.to_smtlib(), "z3", effort.solver_limit)
    if answer.result != "sat":
        return "", f"the mutated query ({mutation.change}) is {answer.result}, it must be sat"
    if at := mutation.witness:
        if not mutation.query.violated(at):
            return "", f"the witness {_said(at)} is no counterexample ({mutation.change})"
        return _said(at), None
    if _rational(answer.model) is None:
        return (
            "",
            f"the model of the mutated query ({mutation.change}) is irrational: add a witness",
        )
    return _model(mutation.query, answer), None


@dataclass(frozen=True)
class Sharp:
    """A query whose false neighbours are evaluated, each at its witness; it covers no clause.

    At a witness every hypothesis of the neighbour holds, its conclusion fails, and the statement
    itself is not violated; at the example the statement holds, hypotheses and conclusion.
    """

    stated: ForAllReals
    covers: tuple[int, ...] = ()
    kind: Kind = Kind.SHARP

    def __post_init__(self) -> None:
        """Raises ValueError where there is no neighbour, or a neighbour without a witness."""
        if not self.stated.mutations:
            raise ValueError(f"'{self.title}' has no false neighbour")
        for mutation in self.stated.mutations:
            if not mutation.witness:
                raise ValueError(f"the neighbour '{mutation.change}' has no point: add at `...`")

    @property
    def title(self) -> str:
        return f"sharp: {self.stated.title}"

    def run(self, effort: Effort) -> Outcome:
        query = self.stated.query
        data = {"query": query.describe()}
        example = self.stated.example
        if not (query.hypotheses_hold(example) and query.conclusion_holds(example)):
            return Outcome(False, f"it does not hold at its example {_said(example)}")
        shown = []
        for mutation in self.stated.mutations:
            at, words = mutation.witness, _said(mutation.witness)
            if query.violated(at):
                return Outcome(False, f"it is violated at {words}", words, data)
            if not mutation.query.violated(at):
                return Outcome(False, f"{words} does not violate: {mutation.change}", None, data)
            shown.append(f"false when changed ({mutation.change}): at {words}")
        return Outcome(True, "; ".join(shown), None, data)
