"""The mutants of a module: mutmut's operators on its syntax tree, and a few of our own.

Changed: operators, comparisons, numbers, truth values, branches and conditions; since this code is
made of bounds, max against min (argmax, all, ceil, upper ... likewise); two arguments exchanged; an
argument given by keyword left to its default. Not mutmut's `None` in the place of an argument or of
an assigned value, nor a positional argument left out: any test that comes by turns red at those,
they would only flatter the count.

Left alone: text (literals, f-strings, what `raise` says), annotations and type aliases, docstrings,
decorators, imports, `len` and `isinstance`, and `strict=` of `zip`, an assertion that never fires.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst
import libcst.matchers as m
from libcst.metadata import CodeRange, MetadataWrapper, WhitespaceInclusivePositionProvider
from mutmut.mutation import mutators

_PAIRS = [("max", "min"), ("argmax", "argmin"), ("any", "all"), ("ceil", "floor")]
_SYMMETRIC = {"max", "min", "maximum", "minimum", "array_equal", "isclose", "gcd"}
_OPPOSITE = dict(_PAIRS) | {b: a for a, b in _PAIRS}


def _opposite(node: cst.Call) -> Iterable[cst.Call]:
    """max for min and the like: the error that bounds are prone to (mutmut swaps lower, upper)."""
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    if isinstance(name, cst.Name) and name.value in _OPPOSITE:
        yield node.with_deep_changes(name, value=_OPPOSITE[name.value])


def _exchanged(node: cst.Call) -> Iterable[cst.Call]:
    """f(b, a) for f(a, b), neighbours only, unless f is symmetric."""
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    if isinstance(name, cst.Name) and name.value in _SYMMETRIC:
        return
    for i, (first, second) in enumerate(pairwise(node.args)):
        if not (first.keyword or second.keyword or first.star or second.star):
            swapped = [
                first.with_changes(value=second.value),
                second.with_changes(value=first.value),
            ]
            yield node.with_changes(args=[*node.args[:i], *swapped, *node.args[i + 2 :]])


def _defaulted(node: cst.Call) -> Iterable[cst.Call]:
    """f(a) for f(a, b=...)."""
    for i, one in enumerate(node.args):
        if one.keyword is not None and not _left_alone(one):
            yield node.with_changes(args=[*node.args[:i], *node.args[i + 1 :]])


def _negated(test: cst.BaseExpression) -> cst.BaseExpression:
    bare = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(operator=cst.Not(), expression=bare)


_NOT_USED = (mutators.operator_string, mutators.operator_assignment, mutators.operator_arg_removal)
OPERATORS = [
    *(
        (kind, operator)
        for kind, operator in mutators.mutation_operators
        if operator not in _NOT_USED
    ),
    (cst.Call, _opposite),
    (cst.Call, _exchanged),
    (cst.Call, _defaulted),
]


@dataclass(frozen=True)
class Mutant:
    """One change. where: the qualified name around it; lines: those of the statement it is in
    (empty: it acts on import); constants: the names that this statement gives to what it makes on
    import; before and after: the changed source lines, joined by blanks."""

    where: str
    lines: range
    before: str
    after: str
    source: str
    constants: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The same while function and statement stay the same, wherever in the file they are."""
        return f"{self.where}: {self.before}  ->  {self.after}"

    def rank(self, seed: int) -> str:
        """Mutants in this order are a sample without replacement, the same each time."""
        return hashlib.sha256(f"{seed} {self.name}".encode()).hexdigest()


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module's source that compile and differ from it, each once."""
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    visitor = _Visitor()
    wrapper.visit(visitor)
    tree = ast.parse(source)
    lines, constants, unchanged = _statement_lines(tree), _constants(tree), ast.dump(tree)
    rows = source.splitlines(keepends=True)
    found: dict[str, Mutant] = {}
    for where, span, changed in visitor.found:
        # Spans include the white space that belongs to a node, as its code does.
        first, last = span.start.line - 1, span.end.line - 1
        head, tail = rows[first][: span.start.column], rows[last][span.end.column :]
        old = "".join(rows[first : last + 1])
        new = head + wrapper.module.code_for_node(changed) + tail
        if "".join(old.split()) == "".join(new.split()):
            continue
        text = "".join(rows[:first]) + new + "".join(rows[last + 1 :])
        key = "".join(text.split())
        if key in found:
            continue
        try:
            # 1e9 and 1e+9 are one number.
            same = ast.dump(ast.parse(text)) == unchanged
        except SyntaxError:
            continue
        if same:
            continue
        before, after = (" ".join(part.split()) for part in (old, new))
        reached = lines.get(first + 1, range(0))
        names = constants.get(first + 1, frozenset())
        found[key] = Mutant(where, reached, before, after, text, names)
    return list(found.values())


class _Visitor(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (WhitespaceInclusivePositionProvider,)

    def __init__(self) -> None:
        self.found: list[tuple[str, CodeRange, cst.CSTNode]] = []
        self._scope: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._scope.append(node.name.value)
        if _left_alone(node) or (not self._scope and _is_alias(node)):
            return False
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                for changed in operator(node):
                    self._add(node, changed)
        if isinstance(node, cst.If | cst.While):
            self._add(node.test, _negated(node.test))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._scope.pop()

    def _add(self, node: cst.CSTNode, changed: cst.CSTNode) -> None:
        span = self.get_metadata(WhitespaceInclusivePositionProvider, node)
        self.found.append((".".join(self._scope), span, changed))


_TEXT = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)


def _left_alone(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        return m.matches(node.func, m.Name("len") | m.Name("isinstance"))
    if isinstance(node, cst.Arg):
        return node.keyword is not None and node.keyword.value == "strict"
    return isinstance(
        node, (*_TEXT, cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.Raise)
    )


def _is_alias(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Assign) and isinstance(node.value, cst.Subscript)


def _statement_lines(tree: ast.Module) -> dict[int, range]:
    """Line -> the lines of the innermost statement within a function (its head, if compound)."""
    found: dict[int, range] = {}

    def visit(statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            body = getattr(statement, "body", None)
            last = (statement.end_lineno if body is None else body[0].lineno - 1) or 0
            span = range(statement.lineno, max(last, statement.lineno) + 1)
            found.update(dict.fromkeys(span, span))
            for block in _blocks(statement):
                visit(block)

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            visit(node.body)
    return found


def _constants(tree: ast.Module) -> dict[int, frozenset[str]]:
    """Line -> the names that an assignment of the module there binds."""
    found: dict[int, frozenset[str]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            names = [
                n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)
            ]
            last = statement.end_lineno or statement.lineno
            found.update(dict.fromkeys(range(statement.lineno, last + 1), frozenset(names)))
    return found


def lines_of_use(source: str, names: frozenset[str]) -> set[int] | None:
    """Lines of the statements within functions that read one of the names, as a name of their own
    or as an attribute; None where one is read on import (by a class, a default, another constant).
    """
    tree = ast.parse(source)
    within, found = _statement_lines(tree), set[int]()
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
        if name not in names or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if node.lineno not in within:
            return None
        found.update(within[node.lineno])
    return found


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body
