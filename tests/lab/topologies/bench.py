"""A lab on the bench: a fabric built, wired, routed and shaped, for tests that look inside it.

Tests that need no more of a lab than it shows its users have the fixture `lab` of emu's pytest plugin for that.
Rates are not scaled here: a fabric of 20 Mb/s is emulated at 20 Mb/s, and modelled seconds are wall seconds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emu.lab.circuits import ScheduledCircuits
from emu.lab.openvswitch import run
from emu.live import bench as live
from emu.live.script import Script
from emu.live.specify import specify
from emu.packet.engine import PacketEngine, lane_keys
from emu.packet.lanes import LaneKey, Lanes, Part
from emu.wire import payload_efficiency
from tests.lab.sealed import sealed
from topologies.fabric import Port
from workloads.collectives import lower
from workloads.protocol import Collective, Transfer

MTU = 9000
EFFICIENCY = payload_efficiency(MTU)
Pair = tuple[Port, Port]


def nic(host: int, number: int = 0) -> Port:
    """A NIC of host h<host>."""
    return Port(f"h{host}", number)


class Bench(live.Bench):
    """One lab, and the few things that tests do with one."""

    def __init__(self, fabric: Mapping[str, Any], transport: Mapping[str, Any], directory: Path) -> None:
        """`fabric`, `transport`: as in a scenario. Nothing is built yet."""
        options = {key: value for key, value in fabric.items() if key != "kind"}
        emulation = {"mtu": MTU, "queue": "64KiB", "small_messages": "send"}  # no transfer waits long behind another
        spec = specify(fabric["kind"], options, emulation=emulation, transport={"rto_min": "50ms", **transport})
        super().__init__(spec.scenario, spec.built, spec.scale, directory)

    def listen(self) -> Lanes:
        """Be ready for connections; a first one makes Open vSwitch open the socket that it sends by."""
        return self.lanes

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

    def play(self, script: Script, pulse: Callable[[float], None] = lambda now: None) -> PacketEngine:
        """Run a workload with a packet engine to its end, without circuit changes; `pulse` as the engine's."""
        circuits = ScheduledCircuits(self.lab.control, self.epoch, (), self.lab.loop)
        engine = self.engine(script, circuits, pulse)
        try:
            engine.run()
        finally:
            circuits.stop()
        return engine

    # -- switches -----------------------------------------------------------------------------------------------------

    def sent(self) -> dict[Port, int]:
        """Packets that every port has transmitted, OCS ports included."""
        return {port: count.packets for port, count in self.counters().items()}

    def path(self, src: Port, dst: Port) -> tuple[Port, ...]:
        """The transmitting ports that the tables of epoch 0 lead over."""
        found = super().path(src, dst)
        assert found is not None
        return found

    def remove_route(self, switch: str, dst: Port) -> None:
        """Take the rule for one host away from its edge switch, behind the controller's back."""
        ofctl("--strict", "del-flows", switch, f"priority=300,ip,nw_dst={self.fabric.address(dst)}")
        assert [name for name, _ in self.foreign_rules()] == [switch]

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
