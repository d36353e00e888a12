"""Which assertions a check executed, and where it failed: what asserts nothing checks nothing."""

import ast
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from textwrap import shorten
from types import CodeType, FrameType
from typing import Any

# Assertions count where they stand in a claim, in the checks that claims share, or in the file of
# the check itself.
_OURS = ("/theory/claims/", "/theory/proofs/checks.py", "/theory/proofs/all_depths.py")


@cache
def _asserted_lines(path: str) -> frozenset[int]:
    """The lines of a file on which an assertion stands, whole."""
    try:
        tree = ast.parse(Path(path).read_text("utf-8"))
    except (OSError, SyntaxError):
        return frozenset()
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Assert))
    return frozenset(
        k for node in found for k in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


def executed(check: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """What the check returns, and how many lines of assertions ran while it did."""
    own = _code(check)
    count = 0

    def within(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "line" and frame.f_lineno in _asserted_lines(frame.f_code.co_filename):
            count += 1
        return within

    def entering(frame: FrameType, event: str, _: Any) -> Any:
        path = frame.f_code.co_filename
        ours = path == own or any(part in path for part in _OURS)
        return within if ours else None

    before = sys.gettrace()
    sys.settrace(entering)
    try:
        return check(*arguments), count
    finally:
        sys.settrace(before)


def raised_at(error: BaseException, check: Any) -> str:
    """Where in the file of the check the error arose: "mine.py, line 12 (`return a / b`): "; empty
    where it arose elsewhere."""
    own = _code(check)
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    if not own or not lines:
        return ""
    return located(Path(own).name, lines[-1])


def located(file: str, frame: traceback.FrameSummary) -> str:
    """ "mine.py, line 12 (`return a / b`): "."""
    return f"{file}, line {frame.lineno} (`{shorten(frame.line or '', 80, placeholder=' ...')}`): "


def stated_at(check: Any) -> str:
    """Where the check begins: "mine.py, line 10: "; empty where nothing says so."""
    while hasattr(check, "func"):
        check = check.func
    code = getattr(check, "__code__", None)
    if not isinstance(code, CodeType):
        return ""
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}: "


def _code(check: Any) -> str:
    while hasattr(check, "func"):
        check = check.func
    code = getattr(check, "__code__", None)
    return code.co_filename if isinstance(code, CodeType) else ""
