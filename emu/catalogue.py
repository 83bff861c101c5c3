"""What a scenario can name, in a line each, taken from where it is defined."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from controllers.policies import BUILT_IN
from emu import plugins
from emu.errors import InputError
from emu.units import write_duration, write_rate, write_size
from topologies import registry
from topologies.fabric import FabricError
from topologies.parameters import Unit
from workloads import models
from workloads.models import Model
from workloads.registry import WORKLOADS, collectives

Part = Literal["fabrics", "policies", "workloads", "models", "collectives"]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that can be named. details: what it takes or has, as a scenario would write it."""

    name: str
    text: str
    details: Mapping[str, Any] = field(default_factory=dict)


def catalogue(part: Part) -> list[Item]:
    """All of one part, those of plug-ins that were loaded included."""
    return list(_PARTS[part]())


def _fabrics() -> Iterator[Item]:
    for name in registry.names():
        try:
            summary = registry.summary(name)
        except FabricError as error:  # an installed plug-in that is broken must not hide the others
            yield Item(name, f"cannot be used: {error}")
            continue
        defaults = {one.name: _written(one) for one in summary.parameters if one.name != "name"}
        yield Item(name, summary.text, defaults)


def _written(parameter: registry.Parameter) -> Any:  # noqa: ANN401 - whatever a builder takes
    """A parameter's default in the form that a scenario gives it."""
    write = _WRITERS.get(parameter.unit) if parameter.unit else None
    return write(parameter.default) if write and parameter.default is not None else parameter.default


def _policies() -> Iterator[Item]:
    for name in BUILT_IN:
        module = importlib.import_module(f"controllers.policies.{name.replace('-', '_')}")
        yield Item(name, _first_line(module))
    yield from _own("policy")


def _workloads() -> Iterator[Item]:
    for name, text in WORKLOADS.items():
        yield Item(name, text)
    yield from _own("workload")


def _own(kind: plugins.Kind) -> Iterator[Item]:
    """Those of the user's own."""
    for name in plugins.names(kind):
        try:
            function = plugins.find(kind, name)
            defaults = {option.name: _written(option) for option in plugins.options(function)}
        except InputError as error:  # an installed plug-in that is broken must not hide the others
            yield Item(name, f"cannot be used: {error}")
            continue
        yield Item(name, _first_line(function), defaults)


def _models() -> Iterator[Item]:
    for name, model in models.models().items():
        yield Item(name, _described(model))


def _described(model: Model) -> str:
    parameters = models.weights_bytes(model, "bf16") / models.dtype_bytes("bf16")
    experts = f", {model.experts} experts, {model.top_k} of them at work" if model.experts else ""
    return f"{parameters / 1e9:.3g} billion parameters, {model.layers} layers, hidden size {model.hidden}{experts}"


def _collectives() -> Iterator[Item]:
    for entry in collectives():
        ways = ", ".join(f"{name} (default)" if name == entry.default else name for name in entry.algorithms)
        yield Item(entry.kind, f"{entry.description}: {ways}", {"algorithms": dict(entry.algorithms)})


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


_WRITERS: Final[Mapping[Unit, Callable[[Any], str]]] = {
    Unit.RATE: write_rate,
    Unit.DURATION: write_duration,
    Unit.SIZE: write_size,
}
_PARTS: Final[Mapping[Part, Callable[[], Iterator[Item]]]] = {
    "fabrics": _fabrics,
    "policies": _policies,
    "workloads": _workloads,
    "models": _models,
    "collectives": _collectives,
}
