"""`fabrics:` - what every fabric may say, and the rest of its keys made from its builder's signature."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator
from pydantic_core import PydanticCustomError

from emu.errors import KeyPath
from emu.scenario import options
from emu.scenario.circuits_spec import Circuits, OneShotPolicy, OwnPolicy, Policy, Rotation, Schedule, TemplatesPolicy
from emu.scenario.dark_spec import DarkWay
from emu.scenario.fields import (
    Name,
    PositiveDuration,
    Strict,
    fault,
    nearest,
    refuse_at,
)
from emu.units import format_duration
from topologies import registry
from topologies.fabric import FabricError

Faults = Mapping[KeyPath, PydanticCustomError]


class FabricSpec(Strict):
    """What every fabric may say.

    Its builder's parameters are the fields of a subclass (see `model_of`).

    name: how results call it; default: its kind.
    kind: the name of its builder.
    reconfiguration: how long an OCS is dark while it moves to other circuits.
    circuits: those of epoch 0, lit before time zero.
    schedule: when other circuits follow, in order of time, or which follow each other periodically.
    policy: who decides circuits; default: the schedule if there is one, else they stay.
    dark: what becomes of traffic while its circuits are dark; default: drop.
    """

    kind: str
    name: Name = ""
    reconfiguration: PositiveDuration | None = None
    circuits: Circuits = Field(default_factory=dict)
    schedule: Schedule = ()
    policy: Policy = None
    dark: DarkWay = None

    @model_validator(mode="before")
    @classmethod
    def _name_after_kind(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the YAML holds
        return {"name": data.get("kind"), **data} if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _check_circuits(self) -> Self:
        faults = _needs(self) or _clashes(self) or _wrong_times(self)
        if faults:
            refuse_at(faults)
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The builder's parameters, defaults filled in."""
        return options.values_of(self, FabricSpec)


def _needs(spec: FabricSpec) -> Faults:
    """What circuits that change cannot do without."""
    if spec.reconfiguration is None and (spec.schedule or isinstance(spec.policy, TemplatesPolicy | OwnPolicy)):
        what = "there is a schedule" if spec.schedule else "a policy changes circuits"
        return {("reconfiguration",): fault(f"is required where {what}", "write e.g. 10ms")}
    if spec.policy == "scheduled" and not spec.schedule:
        return {("schedule",): fault("is required where the policy is scheduled", "write [{at: 1s, circuits: ...}]")}
    return {}


def _clashes(spec: FabricSpec) -> Faults:
    """Circuits or a schedule that the policy would never look at."""
    if spec.circuits and isinstance(spec.policy, OneShotPolicy):
        return {("circuits",): fault("are chosen by the policy one-shot", "leave one of them out")}
    if not spec.schedule or spec.policy in (None, "scheduled"):
        return {}
    kind = spec.policy if isinstance(spec.policy, str) else spec.policy.kind if spec.policy else ""
    return {("schedule",): fault(f"is not followed where the policy is {kind}", "leave one of them out")}


def _wrong_times(spec: FabricSpec) -> Faults:
    dark = spec.reconfiguration or 0.0
    if isinstance(spec.schedule, Rotation):
        if spec.schedule.period > dark * (1 + 1e-9):
            return {}
        problem = f"{format_duration(spec.schedule.period)} is not longer than a reconfiguration"
        return {("schedule", "period"): fault(f"{problem}, which takes {format_duration(dark)}")}
    faults: dict[KeyPath, PydanticCustomError] = {}
    for place, (before, change) in enumerate(itertools.pairwise(spec.schedule), start=1):
        if problem := _too_soon(before.at, change.at, dark):
            faults["schedule", place, "at"] = fault(problem)
    return faults


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
    # What the fabric is called is no parameter of it.
    parameters = [parameter for parameter in registry.parameters(builder) if parameter.name != "name"]
    try:
        return options.model_of("fabric", builder.__name__, parameters, FabricSpec)
    except ValueError as error:
        raise FabricError(f"builder {builder.__name__}: {error}") from error
