"""What a sweep can vary: the sizes that every point has and the options of the generators."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.options import Options, choices, requirement, scalar_type
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError

Value = int | float | str

ATTENTION_KINDS = tuple(ATTENTION)
# A list of eigenvalues is no entry of a table: spectra are drawn, from interval, disc, plus_minus.
VALUE_KINDS = tuple(kind for kind in VALUE_PROJECTION if kind != "spectrum")
AttentionKind: Any = Literal[ATTENTION_KINDS]
ValueKind: Any = Literal[VALUE_KINDS]


class EveryPoint(Options):
    """What every point has."""

    attention: AttentionKind = Field(default="softmax", description="how A is drawn")
    value: ValueKind = Field(default="ginibre", description="how H is drawn")
    n: int = Field(default=32, ge=1, le=sizes.SIZE, description="tokens")
    d: int = Field(default=16, ge=1, le=sizes.SIZE, description="features")
    heads: int = Field(
        default=1,
        ge=1,
        le=sizes.SIZE,
        description="heads: X' = X + sum over h of A_h X W_h / heads",
    )
    depth: int = Field(default=1000, ge=2, le=sizes.DEPTH, description="layers")
    seed: int = Field(
        default=0, ge=0, le=sizes.SEED, description="one of several draws of the same point"
    )


@dataclass(frozen=True)
class Parameter:
    """One parameter: its field in the models, and the kinds of A and of H that use it.

    users: None where every point does.
    """

    name: str
    field: FieldInfo
    default: Value
    users: frozenset[str] | None

    @cached_property
    def kind(self) -> type:
        """int, float or str."""
        return scalar_type(self.field)

    @cached_property
    def _reader(self) -> TypeAdapter[Value]:
        wanted: Any = Literal[choices(self.field)] if self.kind is str else self.kind
        for limit in self.field.metadata:
            wanted = Annotated[wanted, limit]
        return TypeAdapter(wanted, config=ConfigDict(strict=True, allow_inf_nan=False))

    def check(self, value: object) -> Value:
        """The value in this parameter's type. Raises `InputError` for another type or range."""
        try:
            found = self._reader.validate_python(value)
        except ValidationError as error:
            plain = " (write it without '.')" if self.kind is int and type(value) is float else ""
            raise InputError(
                f"{self.name} = {value!r}: it must be {requirement(self.field)}{plain}"
            ) from error
        if self.users is not None:
            sizes.refuse_extreme(self.name, found)
        # -0.0 and 0.0 are one point.
        return found + 0.0 if isinstance(found, float) else found

    def used_by(self, attention: str, value: str) -> bool:
        """Whether a point with these kinds of A and H depends on this parameter."""
        return self.users is None or attention in self.users or value in self.users


def _parameters() -> dict[str, Parameter]:
    kinds: dict[str, type[Options]] = {kind: ATTENTION[kind] for kind in ATTENTION_KINDS}
    kinds |= {kind: VALUE_PROJECTION[kind] for kind in VALUE_KINDS}
    fields = {name: field for name, field in EveryPoint.model_fields.items() if name != "kind"}
    users: dict[str, frozenset[str]] = {}
    for kind, model in kinds.items():
        for name, field in model.model_fields.items():
            if name != "kind":
                fields.setdefault(name, field)
                users[name] = users.get(name, frozenset()) | {kind}
    # The order of the columns of every table so far.
    fields["basis"] = fields.pop("basis")
    # The size of a Jordan block is a number in a table, not "as large as d".
    default = {name: field.default for name, field in fields.items()} | {"size": 2}
    return {
        name: Parameter(name, field, default[name], users.get(name))
        for name, field in fields.items()
    }


PARAMETERS: dict[str, Parameter] = _parameters()
