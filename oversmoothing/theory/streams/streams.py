"""Streams that share a layer and are mixed by R, p, q, as read from JSON or given (T13a)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oversmoothing.theory.layer.layer import Layer, check_states
from oversmoothing.theory.streams.mixing import Mixing, make_mixing
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_json

_LAYER = ("A", "logits", "H", "W_V", "W_proj")
_MIXING = ("R", "p", "q", "mixing", "start")
_KEYS = {*_LAYER, *_MIXING, "X0", "schema_version", "comment"}
STARTS = ("generic", "equal")


@dataclass(frozen=True)
class Streams:
    """layer: A and H. mixing: R, p, q.

    start: "generic", any start of the streams, or "equal", copies of one X_0 in each, as
    hyper-connections begin; the question is then asked of the streams that these can reach.
    """

    layer: Layer
    mixing: Mixing
    start: str = "generic"

    @property
    def asked(self) -> Mixing:
        """The mixing that the verdict is about."""
        return self.mixing.equal_start() if self.start == "equal" else self.mixing

    def in_fractions(self) -> Streams | None:
        """The same on fractions where the numbers mean what they say, else None."""
        layer = self.layer if self.layer.exact else self.layer.as_fractions()
        return None if layer is None else replace(self, layer=layer)


def read_streams(
    *,
    R: Any,
    p: Any = None,
    q: Any = None,
    mixing: str | None = None,
    start: str = "generic",
    A: Any = None,
    logits: Any = None,
    H: Any = None,
    factors: tuple[Any, Any] | None = None,
    X0: Any = None,
) -> Streams:
    """Validated streams. Raises `InputError` saying what is wrong with which part.

    R [s, s]; p, q [s], 1 and 1/s each where not given. mixing: what R is said to be, which is
    checked. start: see `Streams`. A, logits, H, factors: as in `Layer.of`. X0 [s, n, d], or
    [n, d] for copies of it in every stream: it is checked, and no verdict depends on it.
    """
    if start not in STARTS:
        raise InputError(f"start '{start}' is none of {', '.join(STARTS)}")
    layer = Layer.of(A, H, logits=logits, factors=factors)
    mixed = make_mixing(R, p, q, mixing)
    if X0 is not None:
        if not isinstance(X0, np.ndarray):
            X0 = _numbers(X0)
        if np.ndim(X0) == 2:
            X0 = np.broadcast_to(X0, (mixed.streams, *np.shape(X0)))
        states = check_states(X0, layer.n, layer.d)
        if states.ndim != 3 or len(states) != mixed.streams:
            raise InputError(
                f"X0 has shape {list(states.shape)}; R mixes {mixed.streams} streams, so it must "
                f"be [{mixed.streams}, {layer.n}, {layer.d}], or [{layer.n}, {layer.d}] for copies"
            )
        if start == "equal" and (states != states[0]).any():
            raise InputError('start "equal" means copies of one X0, but the streams of X0 differ')
    return Streams(layer, mixed, start)


def load_streams(path: str) -> Streams:
    """Read CASE.json. Raises `InputError` on anything that is not a legal case."""
    data = read_json(path)
    if not isinstance(data, dict) or "R" not in data:
        raise InputError(
            f'\'{path}\' must hold an object with "R" (s x s) beside "A" and "H"; "p" and '
            '"q" (s numbers each), "mixing" (what R is said to be), "start" and "X0" are optional'
        )
    unknown = sorted(data.keys() - _KEYS)
    if unknown:
        raise InputError(
            f"'{path}' has unknown keys {unknown}; known are {', '.join(sorted(_KEYS))}"
        )
    pair = (data.get("W_V"), data.get("W_proj"))
    return read_streams(
        A=data.get("A"),
        logits=data.get("logits"),
        H=data.get("H"),
        factors=None if pair == (None, None) else pair,
        X0=data.get("X0"),
        start=data.get("start", "generic"),
        **{name: data.get(name) for name in ("R", "p", "q", "mixing")},
    )


def _numbers(value: Any) -> Any:
    """Nested lists with strings ("3/4") as floats."""
    from oversmoothing.theory.numbers.exact import to_fraction

    if isinstance(value, list | tuple):
        parts = [_numbers(x) for x in value]
        if len({np.shape(x) for x in parts}) > 1:
            raise InputError("X0 is ragged: every row, and every stream, must have the same length")
        return np.array(parts)
    try:
        return float(to_fraction(value, "X0"))
    except OverflowError as error:
        raise InputError("X0 has an entry beyond the range of binary64 (1.8e308)") from error
