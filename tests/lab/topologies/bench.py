"""A lab on the bench: a fabric built, wired, routed and shaped, for tests that look at its packets.

Rates are not scaled here: a fabric of 20 Mb/s is emulated at 20 Mb/s, and modelled seconds are wall seconds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from controllers.routes import path, reachable_pairs
from emu.lab.circuits import ScheduledCircuits
from emu.lab.lab import Lab
from emu.lab.openvswitch import run
from emu.packet.charging import Charging
from emu.packet.engine import PacketEngine, lane_keys
from emu.packet.lanes import LaneKey, Lanes, Part
from emu.scale import Scale
from emu.scenario.build import build_fabrics, cluster_of
from emu.scenario.load import validate
from emu.scenario.source import Source
from emu.wire import payload_efficiency
from tests.lab.sealed import sealed
from topologies.fabric import Port
from workloads.collectives import lower
from workloads.protocol import Action, Collective, Event, Run, SetTimer, Start, Task, Timer, Transfer

MTU = 9000
EFFICIENCY = payload_efficiency(MTU)
Pair = tuple[Port, Port]


def nic(host: int, number: int = 0) -> Port:
    """A NIC of host h<host>."""
    return Port(f"h{host}", number)


class Script:
    """An orchestrator that acts at the times it was given, and remembers what it heard."""

    def __init__(self, *plan: tuple[float, Action]) -> None:
        """`plan`: modelled seconds, and what to do then."""
        self.heard: list[tuple[Event, float]] = []
        self._plan = plan

    @classmethod
    def of(cls, *tasks: Task) -> Script:
        """All of these at time zero."""
        return cls(*((0.0, Run(task)) for task in tasks))

    def on(self, event: Event, now: float) -> Sequence[Action]:
        """See workloads.protocol.Orchestrator."""
        self.heard.append((event, now))
        match event:
            case Start():
                later = [SetTimer(str(place), at) for place, (at, _) in enumerate(self._plan) if at > 0]
                return [*(action for at, action in self._plan if at <= 0), *later]
            case Timer(name):
                return [self._plan[int(name)][1]]
            case _:
                return []

    def told(self, kind: type[Event]) -> list[Any]:
        """The events of one kind that it heard."""
        return [event for event, _ in self.heard if isinstance(event, kind)]


class Bench:
    """One lab, and the few things that tests do with one."""

    def __init__(self, fabric: Mapping[str, Any], transport: Mapping[str, Any], directory: Path) -> None:
        """`fabric`, `transport`: as in a scenario. Nothing is built yet."""
        scenario = validate(
            {
                # A queue below the floor: 64 frames, so that no transfer waits for long behind another.
                "emulation": {"mtu": MTU, "queue": "64KiB", "small_messages": "send"},
                "transport": {"rto_min": "50ms", **transport},
                "fabrics": [dict(fabric)],
                "workload": {"kind": "collectives", "steps": [{"name": "any", "compute": "1s"}]},
            },
            Source(),
        )
        self.built = build_fabrics(scenario)[0]
        self.fabric, self.epoch = self.built.fabric, self.built.epoch
        self.cluster = cluster_of(self.fabric)
        self.started = 0.0
        """Seconds that `build` took."""
        self.lab = Lab(scenario, self.built, directory, lambda progress: None)

    def build(self) -> None:
        """Everything but tables: hosts, switches that are connected, wiring checked, links shaped."""
        began = time.monotonic()
        self.lab.build(tdf=1.0)
        self.lab.control.wait_for_switches()
        self.lab.verify_wiring()
        self.lab.shape(beta=1.0, sigma=1.0)
        self.started = time.monotonic() - began

    def install(self) -> None:
        """Epoch 0's tables."""
        self.lab.control.install(self.epoch)

    def listen(self) -> Lanes:
        """Be ready for connections; a first one makes Open vSwitch open the socket that it sends by."""
        return self.lanes

    @cached_property
    def lanes(self) -> Lanes:
        """The lab's connections; see `listen`, which the first use does."""
        lanes = self.lab.open_lanes()
        first = LaneKey(*next(reachable_pairs(self.fabric, self.epoch)), "first")
        lanes.open_all([first])
        lanes.close(first)
        self.lab.raise_buffers()
        return lanes

    # -- traffic ------------------------------------------------------------------------------------------------------

    def turn(self, ready: Callable[[], bool], timeout: float) -> bool:
        """Serve the event loop until `ready`; returns whether that came within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not ready():
            if time.monotonic() > deadline:
                return False
            self.lab.loop.turn(min(deadline, time.monotonic() + 0.05))
        return True

    def send(self, sizes: Mapping[Pair, int], timeout: float) -> list[Part]:
        """Open a lane for each pair, send so many bytes on it, all at once, and wait; returns the parts."""
        keys = [LaneKey(*pair, "bench") for pair in sizes]
        self.lanes.open_all(keys, timeout)
        done: list[Part] = []
        parts = [Part(size, done.append) for size in sizes.values()]
        for key, part in zip(keys, parts, strict=True):
            lane = self.lanes.get(key)
            assert lane is not None
            self.lanes.send(lane, part)
        self.turn(lambda: len(done) == len(parts), timeout)
        return parts

    def open_for(self, *tasks: Transfer | Collective) -> None:
        """Open the kept connections that these tasks will use."""
        lowered = (lower(task, self.cluster) if isinstance(task, Collective) else (task,) for task in tasks)
        transfers = (transfer for group in lowered for transfer in group)
        self.lanes.open_all(lane_keys(self.fabric, transfers))

    def run(self, script: Script, pulse: Callable[[float], None] = lambda now: None) -> PacketEngine:
        """Run a workload with a packet engine to its end, without circuit changes; `pulse` as the engine's."""
        circuits = ScheduledCircuits(self.lab.control, self.epoch, (), self.lab.loop)
        scale, charging = Scale(1.0, 1.0), Charging(MTU, 0.0, send=True)
        loop = self.lab.loop
        engine = PacketEngine(script, self.cluster, self.fabric, loop, self.lanes, scale, charging, circuits, pulse)
        try:
            engine.run()
        finally:
            circuits.stop()
        return engine

    # -- switches -----------------------------------------------------------------------------------------------------

    def sent(self) -> dict[Port, int]:
        """Packets that every port has transmitted, OCS ports included."""
        return {port: count.packets for port, count in self.lab.ports.read().items()}

    def path(self, src: Port, dst: Port) -> tuple[Port, ...]:
        """The transmitting ports that the tables of epoch 0 lead over."""
        found = path(self.fabric, self.lab.control.tables(self.epoch), src, dst)
        assert found is not None
        return found

    def remove_route(self, switch: str, dst: Port) -> None:
        """Take the rule for one host away from its edge switch, behind the controller's back."""
        ofctl("--strict", "del-flows", switch, f"priority=300,ip,nw_dst={self.fabric.address(dst)}")
        assert [name for name, _ in self.lab.control.foreign_rules()] == [switch]

    @property
    def switches(self) -> list[str]:
        """All switches, optical ones included."""
        return list(self.lab.control.dpids)


def ofctl(*arguments: str) -> str:
    """What ovs-ofctl says."""
    return run("ovs-ofctl", "-O", "OpenFlow14", *arguments)


def rules_held(switch: str) -> int:
    """How many rules a switch holds, by its own word."""
    return len(re.findall(r"\bcookie=", ofctl("dump-flows", switch)))


def unmatched(switch: str) -> int:
    """Packets that a switch has dropped because no rule was for them."""
    found = re.findall(r"lookup=(\d+), matched=(\d+)", ofctl("dump-tables", switch))
    return sum(int(looked_up) - int(matched) for looked_up, matched in found)


def on_bench(
    *,
    tables: bool = True,
    transport: Mapping[str, Any] | None = None,
    **fabric: Any,  # noqa: ANN401
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a sealed test of a function that takes a Bench.

    fabric: as in a scenario's `fabrics`. tables: whether epoch 0's are installed already.
    """

    @contextmanager
    def room(directory: Path) -> Iterator[Bench]:
        bench = Bench(fabric, transport or {}, directory)
        bench.build()
        if tables:
            bench.install()
        yield bench

    return sealed(room)
