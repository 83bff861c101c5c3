"""Schemas made of signatures: what a scenario may say to a builder, policy or workload that takes named parameters."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import Field, create_model
from pydantic.errors import PydanticUserError

from emu.scenario.fields import Duration, Flag, PositiveRate, Real, Size, Strict
from topologies.parameters import Unit
from topologies.registry import Parameter

_Spec = TypeVar("_Spec", bound=Strict)

_MOST = 1_000_000
"""Of any whole number that a function takes: its loops end."""


def model_of(what: str, name: str, parameters: Iterable[Parameter], base: type[_Spec]) -> type[_Spec]:
    """A subclass of `base` with a field for each parameter. what: fabric, policy or workload.

    Raises ValueError for a parameter with a type that no scenario can give, or with the name of a field of `base`.
    """
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name in base.model_fields:
            raise ValueError(f"{parameter.name} is a key of every {what}; rename it")
        fields[parameter.name] = (_field(parameter.type), parameter.default)
    try:
        model: type[_Spec] = create_model(f"{name}_{base.__name__}", __base__=base, **fields)
    except PydanticUserError as error:
        raise ValueError(str(error)) from error
    return model


def values_of(spec: Strict, base: type[Strict]) -> dict[str, Any]:
    """What the scenario says to the function, defaults filled in: the fields that `base` does not have."""
    return {key: getattr(spec, key) for key in type(spec).model_fields if key not in base.model_fields}


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
