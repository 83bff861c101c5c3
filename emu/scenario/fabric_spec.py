"""`fabrics:` - what every fabric may say, and the rest of its keys made from its builder's signature."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Annotated, Any, Self, Union, get_args, get_origin

from pydantic import BeforeValidator, Field, SerializeAsAny, create_model, model_validator
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticCustomError

from emu.errors import KeyPath
from emu.scenario.fields import (
    Duration,
    Flag,
    Name,
    PositiveDuration,
    PositiveRate,
    Real,
    Size,
    Strict,
    fault,
    nearest,
    refuse_at,
)
from emu.units import format_duration
from topologies import registry
from topologies.fabric import FabricError
from topologies.parameters import Unit

_MOST = 1_000_000
"""Of any whole number that a builder takes: its loops end."""

Circuits = dict[str, tuple[str, ...]]
"""By OCS: pairs as `controllers.circuits.resolve` reads them, `t0-t1` for instance."""


class Change(Strict):
    """From `at` on (modelled time) the fabric moves to these circuits; an OCS that is not named goes dark."""

    at: Duration
    circuits: Circuits


class FabricSpec(Strict):
    """What every fabric may say. Its builder's parameters are the fields of a subclass (see `model_of`).

    name: how results call it; default: its kind.
    kind: the name of its builder.
    reconfiguration: how long an OCS is dark while it moves to other circuits.
    circuits: those of epoch 0, lit before time zero.
    schedule: when other circuits follow, in order of time.
    """

    kind: str
    name: Name = ""
    reconfiguration: PositiveDuration | None = None
    circuits: Circuits = Field(default_factory=dict)
    schedule: tuple[Change, ...] = Field(default=(), max_length=10_000)

    @model_validator(mode="before")
    @classmethod
    def _name_after_kind(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the YAML holds
        return {"name": data.get("kind"), **data} if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _check_schedule(self) -> Self:
        if self.schedule and self.reconfiguration is None:
            refuse_at({("reconfiguration",): fault("is required where there is a schedule", "write e.g. 10ms")})
        faults: dict[KeyPath, PydanticCustomError] = {}
        for place, (before, change) in enumerate(zip(self.schedule, self.schedule[1:], strict=False), start=1):
            if problem := _too_soon(before.at, change.at, self.reconfiguration or 0.0):
                faults[("schedule", place, "at")] = fault(problem)
        if faults:
            refuse_at(faults)
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The builder's parameters, defaults filled in."""
        return {key: getattr(self, key) for key in type(self).model_fields if key not in FabricSpec.model_fields}


def _too_soon(before: float, at: float, reconfiguration: float) -> str:
    if at <= before:
        return f"{format_duration(at)} does not come after the change at {format_duration(before)}"
    if at - before <= reconfiguration * (1 + 1e-9):  # decimal instants are no exact floats
        ready = f"{format_duration(before)}, which takes {format_duration(reconfiguration)}"
        return f"{format_duration(at)} is before the end of the change at {ready}"
    return ""


def _dispatch(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """Validate one fabric with the model that its kind's builder gives."""
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        refuse_at({("kind",): fault("is required", f"write {' or '.join(registry.names())}")})
    kind = value["kind"]
    if not isinstance(kind, str) or kind not in registry.names():
        refuse_at({("kind",): fault(f"there is no fabric {kind!r}", nearest(kind, registry.names()))})
    try:
        return model_of(registry.find(kind)).model_validate(value)
    except FabricError as error:
        refuse_at({("kind",): fault(str(error))})


AnyFabric = Annotated[SerializeAsAny[FabricSpec], BeforeValidator(_dispatch)]
"""One entry of `fabrics:`; an instance of its kind's model."""


@functools.cache
def model_of(builder: registry.Builder) -> type[FabricSpec]:
    """The schema of a fabric of that builder's kind.

    Raises FabricError if a parameter has a type that no scenario can give, or a name that all fabrics use.
    """
    fields: dict[str, Any] = {}
    for parameter in registry.parameters(builder):
        if parameter.name == "name":
            continue  # what the fabric is called, not a parameter of it
        if parameter.name in FabricSpec.model_fields:
            raise FabricError(f"builder {builder.__name__}: {parameter.name} is a key of every fabric; rename it")
        fields[parameter.name] = (_field(parameter.type), parameter.default)
    try:
        model: type[FabricSpec] = create_model(f"{builder.__name__}_fabric", __base__=FabricSpec, **fields)
    except PydanticUserError as error:
        raise FabricError(f"builder {builder.__name__}: {error}") from error
    return model


_QUANTITIES: Mapping[Unit, Any] = {Unit.RATE: PositiveRate, Unit.DURATION: Duration, Unit.SIZE: Size}
_WHOLE = Annotated[int, Field(strict=True, ge=-_MOST, le=_MOST)]
_SCALARS: Mapping[object, Any] = {int: _WHOLE, float: Real, bool: Flag}


def _field(annotation: Any) -> Any:  # noqa: ANN401 - a type, as typing gives it
    """The schema's type for a parameter's: quantities take units, numbers do not take text."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        units = [item for item in metadata if isinstance(item, Unit)]
        return _QUANTITIES[units[0]] if units else Annotated[(_field(inner), *metadata)]
    if get_origin(annotation) in (Union, types.UnionType):
        return Union[tuple(_field(part) for part in get_args(annotation))]  # noqa: UP007 - made at run time
    if get_origin(annotation) in (tuple, list) and (parts := get_args(annotation)):
        items = [part if part is Ellipsis else _field(part) for part in parts]
        return types.GenericAlias(tuple, (*items, Ellipsis) if get_origin(annotation) is list else tuple(items))
    return _SCALARS.get(annotation, annotation)
