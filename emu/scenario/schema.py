"""The scenario: what a user's file says, checked as far as that can be done without building a fabric.

Everything is immutable and plain; quantities are in base units. A scenario written to JSON and read back is equal to
the first, so a lab can be handed one without anything else of the machine that made it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator
from pydantic.errors import PydanticUserError

from emu import plugins
from emu.errors import InputError, KeyPath
from emu.scenario.capture_spec import Capture
from emu.scenario.circuits_spec import own_policy
from emu.scenario.fabric_spec import AnyFabric, model_of
from emu.scenario.fields import (
    Flag,
    Name,
    PositiveDuration,
    PositiveSize,
    Real,
    Refusal,
    Strict,
    Whole,
    fault,
    refuse_at,
    repeated,
)
from emu.scenario.source import Source
from emu.scenario.sweep_spec import SweepSpec
from emu.scenario.workload_spec import Workload, own_workload
from topologies import registry
from topologies.fabric import FabricError

Factor = Annotated[Real, Field(ge=1, le=1e9)]


class Scale(Strict):
    """Bytes are divided by sigma, rates by beta; durations then grow by beta/sigma, the time dilation factor.

    sigma: of bytes. beta: of rates; at least sigma.
    """

    sigma: Factor
    beta: Factor

    @property
    def tdf(self) -> float:
        """Wall seconds per modelled second."""
        return self.beta / self.sigma

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.tdf < 1:
            refuse_at(
                {
                    ("beta",): fault(
                        f"{self.beta:g} is below sigma: time would run {1 / self.tdf:.4g} times faster than real",
                        "beta/sigma must be at least 1",
                    )
                }
            )
        return self


def _read_scale(value: Any) -> Any:  # noqa: ANN401 - a validator's input
    """One clear message instead of one for each form of a scale."""
    if value == "auto" or isinstance(value, Scale):
        return value
    if not isinstance(value, dict):
        raise Refusal(f"{value!r:.60} is not a scale", "write auto or {sigma: 400, beta: 8000}")
    return Scale.model_validate(value)


AnyScale = Annotated[Literal["auto"] | Scale, BeforeValidator(_read_scale)]


class Emulation(Strict):
    """How the lab stands for the real system.

    scale: by what bytes and rates are divided; `auto` picks what fits all fabrics, the machine and the budget.
    budget: wall time that the whole scenario may take.
    mtu: of every interface, bytes.
    queue: per transmitting port, in bytes of the real system.
    delay: `strict` refuses link delays on a machine that cannot make them; `best-effort` runs without, and says so.
    datapath: Open vSwitch's; `auto` takes the kernel's if it is there.
    small_messages: those below one MTU after sigma are charged in time, or sent all the same.
    room: what the lab runs in: `host` is namespaces of the running kernel.
    """

    scale: AnyScale = "auto"
    budget: PositiveDuration = 120.0
    mtu: Annotated[Whole, Field(ge=576, le=9216)] = 9000
    queue: PositiveSize = 16 << 20
    delay: Literal["strict", "best-effort"] = "strict"
    datapath: Literal["auto", "kernel", "user"] = "auto"
    small_messages: Literal["charge", "send"] = "charge"
    room: Literal["auto", "host"] = "auto"


class Transport(Strict):
    """TCP's settings in every host, never the kernel's defaults.

    cc: congestion control.
    rto_min: the smallest retransmission time-out, in modelled time.
    slow_start_after_idle: whether an idle connection starts over.
    initcwnd: the first window, in segments.
    """

    cc: Literal["cubic", "reno", "bbr"] = "cubic"
    rto_min: PositiveDuration = 0.004
    slow_start_after_idle: Flag = False
    initcwnd: Annotated[Whole, Field(ge=1, le=1000)] = 10


class Scenario(Strict):
    """One workload on one or more fabrics.

    name: default: that of its file.
    seed: of everything random.
    repeat: how often each fabric runs it.
    engine: `packet` sends packets in a lab, `model` lets fluids flow in the same places.
    traffic: what makes the packets: connections that one event loop serves.
    capture: links whose frames are kept.
    fabrics: what is compared; the workload runs on one after the other.
    workload: what the hosts compute and send.
    sweep: parameters that take several values, for `emu sweep`.
    """

    name: Name = "scenario"
    seed: Annotated[Whole, Field(ge=0, le=2**63 - 1)] = 1
    repeat: Annotated[Whole, Field(ge=1, le=100)] = 1
    engine: Literal["packet", "model"] = "packet"
    traffic: Literal["flows"] = "flows"
    emulation: Emulation = Emulation()
    transport: Transport = Transport()
    capture: Capture | None = None
    sweep: SweepSpec | None = None
    fabrics: Annotated[tuple[AnyFabric, ...], Field(min_length=1, max_length=32)]
    workload: Workload

    _source: Source = PrivateAttr(default_factory=Source)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        twice = repeated([fabric.name for fabric in self.fabrics])
        if twice:
            hint = "give each fabric a name of its own"
            refuse_at(
                {("fabrics", at, "name"): fault(f"another fabric is called {name!r}", hint) for at, name in twice}
            )
        return self

    def error(self, key: KeyPath, problem: str, *, hint: str = "") -> InputError:
        """The error to raise for what stands at `key` of this scenario, with its file and line if they are known."""
        return self._source.error(key, problem, hint=hint)

    def to_json(self) -> str:
        """Canonical JSON with every default filled in: equal scenarios give equal text."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Scenario:
        """The scenario that `to_json` wrote, equal to it. The builders it names must be known (plugins loaded).

        Raises pydantic.ValidationError for JSON that `to_json` did not write.
        """
        return cls.model_validate(json.loads(text))

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors; `fabrics` has one form for each builder that can be used."""
    schema = Scenario.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    definitions = schema["$defs"]
    forms = []
    for kind in registry.names():
        with contextlib.suppress(FabricError, PydanticUserError):  # a broken plugin must not spoil the other kinds
            form = model_of(registry.find(kind)).model_json_schema(by_alias=True)
            definitions |= form.pop("$defs", {})
            form["properties"]["kind"] = {"const": kind}
            definitions[f"fabric {kind}"] = form
            forms.append({"$ref": f"#/$defs/fabric {kind}"})
    schema["properties"]["fabrics"]["items"] = {"oneOf": forms}
    definitions["OwnPolicy"] = _own_forms("policy", own_policy)
    definitions["OwnWorkload"] = _own_forms("workload", own_workload)
    return schema


def _own_forms(kind: plugins.Kind, model: Callable[[str, Callable[..., Any]], type[Strict]]) -> dict[str, Any]:
    """One form for each policy or workload of the user's own."""
    forms = []
    for name in plugins.names(kind):
        with contextlib.suppress(InputError):
            form = model(name, plugins.find(kind, name)).model_json_schema(by_alias=True)
            form["properties"]["kind"] = {"const": name}
            forms.append(form)
    return {"oneOf": forms} if forms else {"not": {}}
