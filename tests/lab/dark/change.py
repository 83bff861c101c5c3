"""One flow over a circuit that changes under it, in each dark mode, watched on taps and by counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from controllers.decisions import Decision
from emu.lab.circuits import LabCircuits
from emu.lab.darktime import DarkTime
from emu.lab.snapshot import Snapshot
from emu.lab.tap import Frame, Tap
from emu.measurement import CircuitChange, CircuitUse
from emu.queues import emptying_time, moving_time
from tests.lab.topologies.bench import Bench, Script
from topologies.fabric import Port
from workloads.protocol import Endpoint, Run, Transfer

IPV4 = 0x0800
FULL = 9000
"""Bytes of an IP packet: shorter ones are acknowledgements, or a flow's last."""

SWAPPED: dict[str, Any] = {
    "kind": "hybrid",
    "pods": 3,
    "hosts_per_pod": 1,
    "uplinks": 2,
    "rate": "50Mbps",
    "reconfiguration": "300ms",
    "circuits": {"o0": ["1-3", "2-5"]},
    "schedule": [{"at": "400ms", "circuits": {"o0": ["1-4", "2-5"]}}],
}
"""t0 is at OCS ports 1, 2; t1 at 3, 4; t2 at 5, 6. The circuit t0-t1 moves to t1's other port, t0-t2 is kept."""
DARK = 0.3
MOVED = Transfer("moved", Endpoint("h0"), Endpoint("h1"), 6_000_000)
"""0.97 s alone: it begins before the circuits change, and ends after."""


@dataclass
class Seen:
    """What a run left. behind: by switch port, the frames that left by it."""

    change: CircuitChange
    uses: list[CircuitUse]
    before: Snapshot
    after: Snapshot
    fct: Mapping[str, float]
    decisions: Sequence[Decision]
    behind: dict[Port, list[Frame]] = field(default_factory=dict)

    def data(self, port: Port) -> list[Frame]:
        """The full frames that left by a port."""
        return [frame for frame in self.behind.get(port, []) if int.from_bytes(frame.payload[2:4], "big") >= FULL]

    def sent(self, *ports: Port) -> int:
        """Packets that these ports have transmitted meanwhile."""
        return sum(self.after.ports[port].packets - self.before.ports[port].packets for port in ports)

    @property
    def retransmits(self) -> int:
        """Segments sent again."""
        return self.after.retransmits - self.before.retransmits


@contextmanager
def tapped(bench: Bench) -> Iterator[dict[Port, list[Frame]]]:
    """Every IPv4 frame that leaves a switch port, as it arrives at the far end of its cable, filled in at the end."""
    tap = Tap(IPV4, nullcontext(), everything=True, buffer=256 << 20)
    switches = [node.name for node in (*bench.fabric.switches, *bench.fabric.ocses)]
    fabric = bench.fabric
    exits = {fabric.peer(port).interface: port for name in switches for port in fabric.ports(name)}
    behind: dict[Port, list[Frame]] = {}
    yield behind
    for frame in tap.frames():
        if frame.interface in exits:
            behind.setdefault(exits[frame.interface], []).append(frame)
    tap.close()


def play(bench: Bench, transfers: Sequence[Transfer] = (MOVED,), *later: tuple[float, Transfer]) -> Seen:
    """Run transfers from time zero, and some later, through the fabric's one scheduled change."""
    lab, built = bench.lab, bench.built
    begun = [*((0.0, transfer) for transfer in transfers), *later]
    bench.open_for(*transfers)
    emptied = emptying_time(bench.fabric, lab.scenario.emulation, bench.scale)
    moving = moving_time(bench.fabric, built.dark, lab.scenario.emulation, bench.scale)
    dark = DarkTime(lab, bench.lanes, built.epoch, 1.0, ahead=moving, tail=emptied)
    circuits = LabCircuits(
        *(lab.control, built.epoch, built.policy, built.reconfiguration, lab.loop, dark), dark=built.dark, ahead=moving
    )
    engine = bench.engine(Script(*((at, Run(transfer)) for at, transfer in begun)), circuits)
    with tapped(bench) as behind:
        before = Snapshot.take(lab)
        engine.run()
        circuits.stop()
        uses = dark.finish(engine.dispatcher.trace.end)
        after = Snapshot.take(lab, dark.probes)
    dark.close()
    trace = engine.dispatcher.trace
    assert trace.complete
    (change,) = circuits.changes
    assert change.outcome == "committed"
    return Seen(change, uses, before, after, {row.id: row.fct for row in trace.flows}, circuits.decisions, behind)
