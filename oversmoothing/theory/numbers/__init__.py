"""Numbers that floats cannot hold: fractions, balls, scaled values, accurate products."""

from typing import TYPE_CHECKING, Any


class _Lazy:
    """python-flint, loaded when the first ball or fraction of it is asked for: floats need none."""

    def __getattr__(self, name: str) -> Any:
        import flint

        attribute = getattr(flint, name)
        setattr(self, name, attribute)
        return attribute


if TYPE_CHECKING:
    import flint as flint
else:
    flint = _Lazy()
