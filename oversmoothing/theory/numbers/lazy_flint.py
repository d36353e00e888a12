"""python-flint, loaded when the first ball or fraction of it is asked for: floats need none."""

from typing import Any


def __getattr__(name: str) -> Any:
    import flint

    globals()[name] = attribute = getattr(flint, name)
    return attribute
