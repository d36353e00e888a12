"""How far a long computation is: one form of bar on stderr, with the time left.

Commands switch it on; a function called from Python shows a bar only where it is asked to. Nothing
is shown in the first two seconds, or where stderr is no terminal.
"""

import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
_SHOWN: ContextVar[bool] = ContextVar("shown", default=False)
_FORM = "{percentage:3.0f} % of {total:,} {unit}s, {elapsed} gone, {remaining} left"


def show(shown: bool = True) -> None:
    """Whether bars are shown from here on, in the computations that do not say it themselves."""
    _SHOWN.set(shown)


def bar(total: float | None, unit: str, shown: bool = False) -> tqdm:
    """A bar of so many units; shown: here, whatever was switched on."""
    hidden = None if shown or _SHOWN.get() else True
    form = None if total is None else _FORM
    return tqdm(total=total, unit=unit, file=sys.stderr, delay=2, disable=hidden, bar_format=form)


def steps(each: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """The same, with a bar of how many are done."""
    with bar(total, unit) as shown:
        for one in each:
            yield one
            shown.update()
