"""What a sweep can vary: every parameter of a point, its type, its range, and who uses it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.value_projection import BASES
from oversmoothing.theory.support.errors import InputError

Value = int | float | str

# How A is drawn. 'asymmetric' mixes a symmetric and an antisymmetric W_Q W_K^T (see draw.py).
ATTENTION_KINDS = (*ATTENTION, "asymmetric")
# How H is drawn: a chosen spectrum (interval, disc, plus_minus), a Gaussian matrix (goe, ginibre),
# a head of given rank, one Jordan block.
VALUE_KINDS = ("interval", "disc", "plus_minus", "goe", "ginibre", "low_rank", "defective")


@dataclass(frozen=True)
class Parameter:
    """One parameter. kind: int, float or str. low, high: its closed range (open_low: without low).

    choices: of a string. attention, value: the kinds of A or of H that use it; both None where
    every point does.
    """

    name: str
    kind: type
    default: Value
    meaning: str
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    choices: tuple[str, ...] = ()
    attention: tuple[str, ...] | None = None
    value: tuple[str, ...] | None = None

    def check(self, value: object) -> Value:
        """The value in this parameter's type. Raises `InputError` for another type or range."""
        if self.kind is str:
            if value not in self.choices:
                raise InputError(
                    f"{self.name} = {value!r}: it must be one of {', '.join(self.choices)}"
                )
            return str(value)
        wanted = "an integer" if self.kind is int else "a number"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{self.name} = {value!r}: it must be {wanted}")
        if self.kind is int and not isinstance(value, int):
            raise InputError(f"{self.name} = {value!r}: it must be {wanted} (write it without '.')")
        inside = self.low < value if self.open_low else self.low <= value
        if not (inside and value <= self.high) or not math.isfinite(value):
            raise InputError(f"{self.name} = {value!r}: it must be {wanted} {self._range()}")
        # -0.0 and 0.0 are one point.
        return int(value) if self.kind is int else float(value) + 0.0

    def _range(self) -> str:
        if self.high < math.inf:
            return f"from {self.low:g} to {self.high:g}"
        if self.low == -math.inf:
            return "that is finite"
        return f"{'>' if self.open_low else '>='} {self.low:g}"

    def used_by(self, attention: str, value: str) -> bool:
        """Whether a point with these kinds of A and H depends on this parameter."""
        if self.attention is not None:
            return attention in self.attention
        return self.value is None or value in self.value


_PARAMETERS = (
    Parameter("attention", str, "softmax", "how A is drawn", choices=ATTENTION_KINDS),
    Parameter("value", str, "ginibre", "how H is drawn", choices=VALUE_KINDS),
    Parameter("n", int, 32, "tokens", low=1),
    Parameter("d", int, 16, "features", low=1),
    Parameter("heads", int, 1, "heads: X' = X + sum over h of A_h X W_h / heads", low=1),
    Parameter("depth", int, 1000, "layers", low=2),
    Parameter("seed", int, 0, "one of several draws of the same point", low=0),
    Parameter("temperature", float, 1.0, "divides the logits", low=0, open_low=True),
    Parameter("dim", int, 16, "width of queries and keys", low=1),
    Parameter(
        "asymmetry",
        float,
        0.5,
        "share of ||W_Q W_K^T||^2 that is antisymmetric",
        low=0,
        high=1,
        attention=("asymmetric",),
    ),
    Parameter(
        "coupling",
        float,
        1e-3,
        "between the blocks of A",
        low=0,
        high=1,
        open_low=True,
        attention=("nearly_reducible",),
    ),
    Parameter("blocks", int, 2, "blocks of A", low=1, attention=("nearly_reducible",)),
    Parameter("low", float, -1.0, "smallest eigenvalue of H", value=("interval",)),
    Parameter("high", float, 0.0, "largest eigenvalue of H", value=("interval",)),
    Parameter("centre", float, 0.0, "centre of the disc of eigenvalues", value=("disc",)),
    Parameter("radius", float, 1.0, "radius of that disc", low=0, value=("disc",)),
    Parameter(
        "positive",
        float,
        0.5,
        "share of the eigenvalues +scale, the others are -scale",
        low=0,
        high=1,
        value=("plus_minus",),
    ),
    Parameter(
        "scale",
        float,
        1.0,
        "size of H",
        low=0,
        value=("plus_minus", "goe", "ginibre", "low_rank"),
    ),
    Parameter("rank", int, 1, "rank of a head", low=1, value=("low_rank",)),
    Parameter("eigenvalue", float, -0.5, "the one eigenvalue", value=("defective",)),
    Parameter("size", int, 2, "size of the Jordan block", low=2, value=("defective",)),
    Parameter(
        "basis",
        str,
        "orthogonal",
        "eigenvectors of H",
        choices=BASES,
        value=("interval", "disc", "plus_minus", "defective"),
    ),
)

PARAMETERS: dict[str, Parameter] = {parameter.name: parameter for parameter in _PARAMETERS}
