"""`dark:` of a fabric with an OCS - what becomes of traffic while its circuits are dark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from controllers.dark import DARK_MODES, DROP, Dark, DarkMode, cut_off
from emu.errors import KeyPath
from emu.scenario.fields import Duration, PositiveSize, Refusal, Strict, fault, nearest, refuse_at
from topologies.fabric import Fabric, Kind


class DarkSpec(Strict):
    """A dark mode with its options.

    mode: `drop` loses packets that meet a dark port; `detour` sends them over electrical links meanwhile; `hold` queues
    them at the switch before the circuit; `drain` changes circuits once what has to cross them is over.
    deadline: of drain, after the asked instant: then circuits go dark all the same. Default: the reconfiguration time.
    buffer: of hold, what a switch holds for one other at most. Default: what comes in twice the reconfiguration time.
    """

    mode: DarkMode
    deadline: Duration | None = None
    buffer: PositiveSize | None = None

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        for name, mode in (("deadline", "drain"), ("buffer", "hold")):
            if getattr(self, name) is not None and self.mode != mode:
                refuse_at({(name,): fault(f"is no option of {self.mode}", f"only {mode} has it")})
        return self


def _read(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """One clear message instead of one for each form."""
    if value is None or isinstance(value, DarkSpec):
        return value
    mode = value.get("mode") if isinstance(value, Mapping) else value
    if mode not in DARK_MODES:
        what = "a dark mode is required" if mode is None else f"there is no dark mode {mode!r:.60}"
        raise Refusal(what, nearest(mode, DARK_MODES))
    return DarkSpec.model_validate(value) if isinstance(value, Mapping) else mode


DarkWay = Annotated[DarkMode | DarkSpec | None, BeforeValidator(_read)]
"""A mode, or a mode with its options; None: drop."""


def dark_of(way: DarkMode | DarkSpec | None, reconfiguration: float) -> Dark:
    """What a scenario says of a fabric whose circuits take that long to change, defaults filled in."""
    if way is None:
        return DROP
    spec = way if isinstance(way, DarkSpec) else DarkSpec(mode=way)
    deadline = reconfiguration if spec.deadline is None else spec.deadline
    return Dark(spec.mode, deadline if spec.mode == "drain" else 0.0, spec.buffer)


def dark_problem(fabric: Fabric, way: DarkMode | DarkSpec | None) -> tuple[KeyPath, str, str] | None:
    """Where a fabric cannot do what is asked for, what is wrong, and a hint; None if nothing is."""
    mode = way.mode if isinstance(way, DarkSpec) else way
    key: KeyPath = ("dark", "mode") if isinstance(way, DarkSpec) else ("dark",)
    if mode == "detour" and (pair := cut_off(fabric)) is not None:
        hint = "give the fabric an electrical network (hybrid: electrical_rate), or write hold, drain or drop"
        return key, f"detour needs electrical paths: from {pair[0]} to {pair[1]} there is none", hint
    if mode == "hold" and fabric.ocses and fabric.routing != "shortest-path":
        return key, f"hold cannot queue by destination where routing is {fabric.routing}", "write detour, drain or drop"
    if mode == "hold":
        for port in (fabric.peer(port) for ocs in fabric.ocses for port in fabric.ports(ocs.name)):
            if fabric.node(port.node).kind is Kind.HOST:
                hint = "put a ToR between, or write drain or drop"
                return key, f"hold needs a switch before each OCS port: {port} is a host's", hint
    return None
