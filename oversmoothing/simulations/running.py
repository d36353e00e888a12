"""What a run tells beside its numbers: how far it is, and where its result came from.

A long computation has one form of bar on stderr, with the time left. Commands switch it on; a
function called from Python shows a bar only where it is asked to. Nothing is shown in the first two
seconds, or where stderr is no terminal.
"""

import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from oversmoothing.theory.support.errors import required

T = TypeVar("T")
_RECORDED = (
    "oversmoothing", "numpy", "scipy", "torch", "sympy", "python-flint", "matplotlib",
    "scikit-learn", "accelerate", "kornia",
)  # fmt: skip
_SHOWN: ContextVar[bool] = ContextVar("shown", default=False)
_FORM = "{percentage:3.0f} % of {total:,} {unit}s, {elapsed} gone, {remaining} left"


def show(shown: bool = True) -> None:
    """Whether bars are shown from here on, in the computations that do not say it themselves."""
    _SHOWN.set(shown)


class Bar(AbstractContextManager["Bar"]):
    """A bar of so many units; shown: here, whatever was switched on. tqdm loads if it is shown."""

    def __init__(self, total: float | None, unit: str, shown: bool = False) -> None:
        form = None if total is None else _FORM
        self._bar: Any = None
        if shown or _SHOWN.get():
            self._bar = required("tqdm").tqdm(
                total=total, unit=unit, file=sys.stderr, delay=2, disable=None, bar_format=form
            )

    def update(self, number: float = 1) -> None:
        """So many units more are done."""
        if self._bar is not None:
            self._bar.update(number)

    def __exit__(self, *_: object) -> None:
        """No more is said."""
        if self._bar is not None:
            self._bar.close()


def steps(each: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """The same, with a bar of how many are done."""
    with Bar(total, unit) as shown:
        for one in each:
            yield one
            shown.update()


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


@cache
def _commit() -> str | None:
    """The commit of the checkout this code runs from; None for an installed wheel."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=root, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def provenance() -> dict[str, object]:
    """Versions of Python and of the libraries that shape a number, the commit, the platform."""
    return {
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.machine()}",
        "commit": _commit(),
        "versions": {name: _version(name) for name in _RECORDED},
    }
