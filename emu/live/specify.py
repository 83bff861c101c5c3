"""Which fabric: from a kind and its options, as in a scenario, to what a lab builds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from emu.errors import InputError
from emu.scale import Scale
from emu.scenario.build import BuiltFabric, build_fabrics
from emu.scenario.load import load_data
from emu.scenario.schema import Scenario
from emu.units import format_rate
from topologies import registry
from topologies.fabric import Fabric, FabricError

Kind = str | Callable[..., Fabric]
"""The name of a builder, or the builder itself: a function as `topologies.registry` describes it."""
Plugins = Sequence[str | os.PathLike[str]]

_IDLE: Final[Mapping[str, Any]] = {"kind": "flow-list", "flows": "src,dst,bytes\n0,1,1\n"}
"""A workload that is never run. It has no steps, so that a policy may name any phase."""
_CALM: Final[Mapping[str, Any]] = {"small_messages": "send", "queue": "64KiB"}
"""Nothing is charged instead of sent; queues are the shortest, so that no transfer waits long behind another."""
_FASTEST = 2_000_000_000
"""bit/s that a link of a lab may have: about what one core switches."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A fabric and the conditions of its lab, checked."""

    scenario: Scenario
    built: BuiltFabric
    scale: Scale

    @property
    def key(self) -> tuple[str, Scale]:
        """Equal for labs that are built alike."""
        return self.scenario.to_json(), self.scale


def specify(
    kind: Kind,
    options: Mapping[str, Any],
    *,
    scale: tuple[float, float] = (1.0, 1.0),
    emulation: Mapping[str, Any] | None = None,
    transport: Mapping[str, Any] | None = None,
    plugins: Plugins = (),
) -> Spec:
    """The fabric of a kind, with the options that an entry of a scenario's `fabrics:` may have.

    scale: sigma, by which bytes, and beta, by which rates are divided in the lab. emulation, transport: as in a
    scenario. Raises InputError for what a scenario would be refused for.
    """
    data = {
        "name": "live",
        "emulation": {**_CALM, **(emulation or {})},
        "transport": dict(transport or {}),
        "fabrics": [{"kind": _name_of(kind), **options}],
        "workload": _IDLE,
    }
    scenario = load_data(data, plugins)
    return Spec(scenario, build_fabrics(scenario)[0], Scale(*scale))


def check_rates(spec: Spec) -> None:
    """Raise InputError for a fabric whose links are too fast for a lab at this scale."""
    fastest = max(link.rate for link in spec.built.fabric.links)
    if fastest > _FASTEST * spec.scale.beta:
        beta = -(-fastest // 20_000_000)
        raise InputError(
            f"fabrics[0]: its fastest links have {format_rate(fastest)}, more than a lab can carry",
            hint=f"give a rate, e.g. rate='20Mbps', or a scale, e.g. scale=({beta // 10}, {beta})",
        )


def _name_of(kind: Kind) -> str:
    if isinstance(kind, str):
        return kind
    known = next((name for name in registry.names() if registry.find(name) is kind), None)
    if known is not None:
        return known
    try:
        registry.builder(kind.__name__)(kind)
    except FabricError as error:
        raise InputError(str(error)) from error
    return kind.__name__
