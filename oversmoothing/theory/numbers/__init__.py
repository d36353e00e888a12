"""Numbers that floats cannot hold: fractions, balls, scaled values, accurate products."""

from typing import Any


class _Lazy:
    """python-flint, loaded when the first ball or fraction of it is asked for: floats need none."""

    def __getattr__(self, name: str) -> Any:
        import flint

        attribute = getattr(flint, name)
        setattr(self, name, attribute)
        return attribute


flint: Any = _Lazy()
