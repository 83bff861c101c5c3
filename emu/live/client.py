"""The user's side of an open lab: starts it, asks it, and answers what it asks back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast, overload

from controllers import circuits
from controllers.epochs import CircuitError, Epoch, Matchings
from controllers.policies.protocol import CircuitPolicy, Keep, Plan, PolicyEvent, View
from emu.errors import InputError
from emu.lab.errors import LabError
from emu.lab.rooms import HostRoom
from emu.live.line import PATIENCE, Line
from emu.live.messages import Decider, LiveRun, PolicyStub, Setup
from emu.live.specify import Kind, Plugins, Spec, check_rates, specify
from emu.measurement import CircuitChange
from emu.plugins import checked
from emu.records import FlowRecord
from emu.scenario.build import cluster_of
from emu.scenario.fabric_spec import model_of
from emu.scenario.load import load_data
from emu.scenario.traffic import build_orchestrator
from emu.units import parse_size
from topologies import registry
from topologies.fabric import Fabric, Port
from workloads.protocol import Action, Endpoint, Orchestrator, Run, Transfer

if TYPE_CHECKING:
    from emu.lab.counters import PortCount

Circuits = Mapping[str, Sequence[str]]
"""By OCS, circuits as scenarios write them: `{"o0": ["t0-t1"]}`."""
Size = int | str
"""Bytes, or text with a unit: `1MB`, `64KiB`."""

Pair = tuple[str, str]
Decide = Callable[[PolicyEvent, View, float], Plan | Keep]
"""What a policy does: see `CircuitPolicy.on`."""


@dataclass(frozen=True)
class FunctionPolicy:
    """A policy that is just a function."""

    decide: Decide

    @property
    def name(self) -> str:
        """The function's."""
        return getattr(self.decide, "__name__", type(self.decide).__name__)

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """The function's answer. Raises PluginError for one that is neither a Plan nor Keep."""
        return checked(self.name, self.decide(event, view, now))

    def known(self) -> tuple[Matchings, ...]:
        """Nothing beforehand."""
        return ()


class LiveLab:
    """An open lab; get one from `emu.open_lab`, or from the pytest fixture `lab`.

    Hosts are named as in the fabric, "h0"; NIC n of one is "h0:n" and its first is meant where none is named.
    Times are modelled seconds and sizes modelled bytes: those of the lab itself unless it was opened with a scale.
    Methods raise InputError for arguments that make no sense and LabError when the lab cannot do it or has ended.
    """

    def __init__(self, spec: Spec) -> None:
        """Start it; takes a few seconds. Raises LabError for what the machine lacks."""
        HostRoom().check(Path(tempfile.gettempdir()))
        check_rates(spec)
        self.spec = spec
        self._line = Line(Setup(_conditions(spec), spec.built, spec.scale))

    @property
    def fabric(self) -> Fabric:
        """What is wired."""
        return self.spec.built.fabric

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self._line.alive

    # -- traffic ------------------------------------------------------------------------------------------------------

    @overload
    def send(self, src: str, dst: str, size: Size, *, timeout: float = ...) -> FlowRecord: ...
    @overload
    def send(
        self, src: Mapping[tuple[str, str], Size], *, timeout: float = ...
    ) -> dict[tuple[str, str], FlowRecord]: ...
    def send(
        self,
        src: str | Mapping[Pair, Size],
        dst: str = "",
        size: Size = 0,
        *,
        timeout: float = 60.0,
    ) -> FlowRecord | dict[Pair, FlowRecord]:
        """Send bytes over TCP, of several pairs all at once, and wait until they were received; what was seen of each.

        timeout: wall seconds. Raises LabError, with the pairs, if some were not received whole by then.
        """
        sizes = {(src, dst): size} if isinstance(src, str) else src
        ids = {pair: f"{pair[0]} -> {pair[1]}" for pair in sizes}
        plan = [(0.0, Run(self._transfer(ids[pair], pair, size))) for pair, size in sizes.items()]
        done: LiveRun = self._line.do(timeout, "run", tuple(plan), "static", timeout)
        if done.failures:
            shown = "; ".join(failure.reason for failure in done.failures[:3])
            raise LabError(f"{len(done.failures)} of {len(sizes)} transfers were not received whole: {shown}")
        flows = {pair: done.flows[ids[pair]] for pair in sizes}
        return next(iter(flows.values())) if isinstance(src, str) else flows

    def run(
        self,
        workload: Mapping[str, Any] | Orchestrator | Sequence[tuple[float, Action]],
        *,
        policy: CircuitPolicy | Decide | None = None,
        timeout: float = 60.0,
    ) -> LiveRun:
        """Run a workload to its end, or for `timeout` wall seconds; what is not over by then has failed.

        workload: as under a scenario's `workload:`; or actions of workloads.protocol, each with its modelled second;
        or an orchestrator of your own. policy: of your own, decides circuits: a CircuitPolicy, or just its `on`, a
        function of event, view and time; without one the fabric's does. Policy and orchestrator stay in this process:
        they are asked here, and what they raise is raised here.
        """
        self._line.asked.clear()
        found: LiveRun = self._line.do(timeout, "run", self._work(workload), self._decider(policy), timeout)
        return found

    def ping(self, src: str, dst: str, *, timeout: float = 1.0) -> float | None:
        """The round trip of one ICMP echo in wall seconds; None if no answer came within `timeout`."""
        found: float | None = self._line.do(timeout, "ping", self._nic(src), self._nic(dst), timeout)
        return found

    def command(self, host: str, *command: str) -> str:
        """What a command prints in a host. Raises LabError, with its words, if it fails."""
        self._nic(host)
        found: str = self._line.do(60.0, "command", host, *command)
        return found

    # -- circuits and switches ----------------------------------------------------------------------------------------

    def set_circuits(self, wanted: Circuits) -> CircuitChange | None:
        """Change circuits as a run does: dark, then lit; returns when and how long, None if they are lit already.

        Raises LabError if the switches do not acknowledge it.
        """
        found: CircuitChange | None = self._line.do(60.0, "set_circuits", Epoch(0, self.matchings(wanted)))
        return found

    def matchings(self, wanted: Circuits) -> Matchings:
        """Written circuits as a policy's Plan has them. Raises InputError for those that an OCS cannot hold."""
        try:
            return circuits.epoch(self.fabric, 0, wanted).matchings
        except CircuitError as error:
            raise InputError(str(error)) from error

    @property
    def circuits(self) -> Epoch:
        """Those that are lit."""
        found: Epoch = self._line.do(PATIENCE, "circuits")
        return found

    def counters(self) -> dict[str, PortCount]:
        """By transmitting port, "t0:1": what it has sent since the lab began; those of an OCS count its circuits."""
        return {str(port): count for port, count in self._line.do(PATIENCE, "counters").items()}

    def path(self, src: str, dst: str) -> tuple[str, ...] | None:
        """The transmitting ports from NIC to NIC by the tables of the present circuits, None if there is no way."""
        found = self._line.do(PATIENCE, "path", self._nic(src), self._nic(dst))
        return None if found is None else tuple(map(str, found))

    def foreign_rules(self) -> list[tuple[str, str]]:
        """Switches that do not hold exactly what was installed and committed, with what differs."""
        found: list[tuple[str, str]] = self._line.do(PATIENCE, "foreign_rules")
        return found

    # -- its life -----------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Back to the first circuits, no connection open; counters go on."""
        self._line.do(60.0, "reset")

    def close(self) -> None:
        """End it; the kernel takes away all that it made. May be called twice."""
        self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _work(self, workload: Any) -> Any:  # noqa: ANN401 - see `run`
        if isinstance(workload, Mapping):
            fabric = {"kind": "fat-tree"}  # of any kind: the workload is built for this lab's hosts
            scenario = load_data({"fabrics": [fabric], "workload": workload, "seed": self.spec.scenario.seed})
            return build_orchestrator(scenario, cluster_of(self.fabric), seed=scenario.seed)
        if isinstance(workload, Sequence):
            return tuple(workload)
        self._line.asked["orchestrator"] = workload
        return None

    def _decider(self, policy: CircuitPolicy | Decide | None) -> Decider:
        if policy is None:
            return "fabric"
        chosen = cast(CircuitPolicy, policy) if hasattr(policy, "on") else FunctionPolicy(policy)
        self._line.asked["policy"] = chosen
        return PolicyStub(chosen.name, tuple(map(_plain, chosen.known())))

    def _transfer(self, name: str, pair: Pair, size: Size) -> Transfer:
        src, dst = (self._nic(end) for end in pair)
        try:
            count = size if isinstance(size, int) and size > 0 else parse_size(size)
        except ValueError as error:
            raise InputError(f"{name}: {error}") from error
        return Transfer(name, Endpoint(*src), Endpoint(*dst), count, channel="live")

    def _nic(self, name: str) -> Port:
        host, _, number = name.partition(":")
        port = Port(host, int(number or 0)) if number.isdecimal() or not number else None
        if port not in self.fabric.all_nics:
            known = self.fabric.all_nics
            raise InputError(f"the fabric has no host or NIC {name!r}", hint=f"it has {known[0]} to {known[-1]}")
        return port


def open_lab(
    kind: Kind,
    *,
    scale: tuple[float, float] = (1.0, 1.0),
    emulation: Mapping[str, Any] | None = None,
    transport: Mapping[str, Any] | None = None,
    plugins: Plugins = (),
    **options: Any,  # noqa: ANN401 - whatever the fabric's builder takes
) -> LiveLab:
    """Build a fabric as a sealed lab that stays open: see `LiveLab` for what can be done with it. Needs root.

    kind: a builder's name, or the builder itself. options: what an entry of a scenario's `fabrics:` may say beside.
    scale: (sigma, beta) divide bytes and rates in the lab; (1, 1) emulates the rates that are given, so give small
    ones: `rate="20Mbps"`. emulation, transport: as in a scenario. plugins: Python files that register builders.

    Use it in a `with` statement, or `close` it; it ends with this process in any case. Raises InputError for a fabric
    that cannot be built, LabError for what the machine lacks.
    """
    conditions = specify(kind, options, scale=scale, emulation=emulation, transport=transport, plugins=plugins)
    return LiveLab(conditions)


def _plain(matchings: Matchings) -> Matchings:
    return {ocs: frozenset(matching) for ocs, matching in matchings.items()}


def _conditions(spec: Spec) -> str:
    """The scenario with another fabric: the lab's own may come from a builder that only this process has."""
    stand_in = model_of(registry.find("fat-tree"))(kind="fat-tree")
    return spec.scenario.model_copy(update={"fabrics": (stand_in,)}).to_json()
