"""The dark time of a change, measured in four places, and what circuits carried: held against every frame on a tap."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest

from controllers.channel import Committed
from controllers.epochs import Epoch
from emu.lab.circuits import LabCircuits
from emu.lab.darktime import DarkTime
from emu.lab.snapshot import Snapshot
from emu.lab.tap import Frame, Tap
from emu.measurement import CircuitChange, CircuitUse
from emu.packet.charging import Charging
from emu.packet.engine import PacketEngine
from emu.scale import Scale
from tests.lab.topologies.bench import MTU, Bench, Script, on_bench
from topologies.fabric import Port
from workloads.protocol import Endpoint, Run, Transfer

pytestmark = pytest.mark.lab

MS = 1_000_000
ROOM = 0.2
"""Seconds that a switch may take from a command until its datapath has followed, on a machine that others load, too."""
SETTLING = round(ROOM * 1e9)
IPV4 = 0x0800
HEADERS = 66
SIZE = 2_000_000
"""Bytes: 0.8 s."""
DARK = 0.5

SWAPPED: dict[str, Any] = {
    "kind": "hybrid",
    "pods": 3,
    "hosts_per_pod": 1,
    "uplinks": 2,
    "rate": "20Mbps",
    "reconfiguration": "500ms",
    "circuits": {"o0": ["1-3", "2-5"]},
    "schedule": [{"at": "400ms", "circuits": {"o0": ["1-4", "2-5"]}}],
}
"""t0 is at OCS ports 1, 2; t1 at 3, 4; t2 at 5, 6. The circuit t0-t1 moves to t1's other port, t0-t2 is kept."""


class Recorded(DarkTime):
    """Remembers what the controller said."""

    done: Committed

    def committed(self, done: Committed, change: CircuitChange, epoch: Epoch) -> None:
        """See DarkTime."""
        self.done = done
        super().committed(done, change, epoch)


@dataclass
class Seen:
    """What a run left: its change, its circuits, counters before and after, every IPv4 frame behind an OCS exit."""

    change: CircuitChange
    uses: list[CircuitUse]
    before: Snapshot
    after: Snapshot
    done: Committed
    engine: PacketEngine
    behind: dict[Port, list[Frame]] = field(default_factory=dict)

    def by(self, exit_: int) -> list[Frame]:
        """The frames that left by that port of the OCS."""
        return self.behind.get(Port("o0", exit_), [])

    def use(self, epoch: int, in_port: int) -> CircuitUse:
        """What the circuit at that port carried in that epoch."""
        return next(use for use in self.uses if (use.epoch, use.in_port) == (epoch, in_port))

    @property
    def lost(self) -> int:
        """Packets that died in the OCS."""
        return self.after.dark_drops - self.before.dark_drops


@contextmanager
def tapped(bench: Bench) -> Iterator[dict[Port, list[Frame]]]:
    """Every IPv4 frame that leaves an OCS, by exit, filled in at the end."""
    tap = Tap(IPV4, nullcontext(), everything=True, buffer=256 << 20)  # the kernel books whole frames for it
    exits = {bench.fabric.peer(port).interface: port for port in bench.fabric.ports("o0")}
    behind: dict[Port, list[Frame]] = {}
    yield behind
    for frame in tap.frames():
        if frame.interface in exits:
            behind.setdefault(exits[frame.interface], []).append(frame)
    tap.close()


def run(bench: Bench, transfers: Sequence[Transfer]) -> Seen:
    """Run the transfers through the fabric's one scheduled change."""
    lab, built = bench.lab, bench.built
    bench.open_for(*transfers)
    dark = Recorded(lab, bench.lanes, built.epoch, 1.0)
    circuits = LabCircuits(lab.control, built.epoch, built.policy, built.reconfiguration, lab.loop, dark)
    script = Script(*((0.0, Run(transfer)) for transfer in transfers))
    scale, charging = Scale(1.0, 1.0), Charging(MTU, 0.0, send=True)
    engine = PacketEngine(script, bench.cluster, bench.fabric, lab.loop, bench.lanes, scale, charging, circuits)
    with tapped(bench) as behind:
        before = Snapshot.take(lab)
        engine.run()
        circuits.stop()
        uses = dark.finish(engine.dispatcher.trace.end)
        after = Snapshot.take(lab, dark.probes)
    dark.close()
    assert engine.dispatcher.trace.complete
    (change,) = circuits.changes
    assert change.outcome == "committed"
    return Seen(change, uses, before, after, dark.done, engine, behind)


@on_bench(**SWAPPED)
def test_four_figures_of_a_change_under_traffic(bench: Bench) -> None:
    """A flow over the circuit that moves, another over the one that stays."""
    moved = Transfer("moved", Endpoint("h0"), Endpoint("h1"), SIZE)
    kept = Transfer("kept", Endpoint("h2"), Endpoint("h0"), SIZE)
    seen = run(bench, [moved, kept])
    check_figures(seen)
    check_frames(seen)
    check_circuits(bench, seen)
    assert bench.lab.control.foreign_rules() == []


def check_figures(seen: Seen) -> None:
    """Each from its own place: none is another's, all are about what was asked for."""
    change = seen.change
    plane = change.data_plane_dark
    (service,) = change.service
    assert plane is not None
    assert change.transport_share is not None
    sys.stdout.write(
        f"asked {change.asked_dark * 1e3:.1f}, control {change.control_dark * 1e3:.1f}, data plane {plane * 1e3:.1f}, "
        f"service {service.gap * 1e3:.1f} ms; {change.data_plane}\n"
    )
    assert change.asked_dark == DARK
    assert seen.done.control_dark - 0.001 < change.control_dark < DARK + ROOM  # ToRs acknowledge last
    assert change.control_dark > DARK
    (measured,) = change.data_plane
    assert measured.ocs == "o0"
    assert measured.problem == ""
    assert measured.last_wall is not None
    assert measured.first_wall is not None
    assert -0.005 < measured.last_wall < ROOM
    assert -0.001 < measured.first_wall < ROOM
    assert 0.0005 < measured.resolution_wall < ROOM
    assert plane != change.asked_dark
    assert plane == pytest.approx(DARK, abs=ROOM)
    assert service.flow == "h0:0 -> h1:0"
    assert change.service_dark == service.gap > plane - ROOM
    assert change.transport_share == service.gap - plane
    # The probes' word is the data's: the hole in the flow's frames as the tap saw it holds the dark time.
    hole = min(f.at_ns for f in seen.by(4)) - max(f.at_ns for f in seen.by(3))
    assert hole / 1e9 > plane - ROOM


def check_frames(seen: Seen) -> None:
    """No data leaves by a dark circuit, none twice, and the circuit that is kept has no hole."""
    dark, lit = seen.done.dark, seen.done.light
    assert max(f.at_ns for f in seen.by(3)) < dark.replied_ns + SETTLING
    assert min(f.at_ns for f in seen.by(4)) > lit.sent_ns - MS
    back = [f.at_ns for f in seen.by(1)]
    assert not [at for at in back if dark.replied_ns + SETTLING < at < lit.sent_ns - MS]
    assert seen.by(6) == []
    copies = Counter(_name(frame) for frames in seen.behind.values() for frame in frames)
    assert max(copies.values()) == 1
    during = sorted(f.at_ns for f in seen.by(2) if dark.sent_ns < f.at_ns < lit.replied_ns)
    assert len(during) > 0.4 * DARK * 20e6 / 8 / (MTU + 38)


def _name(frame: Frame) -> tuple[bytes, bytes]:
    """Addresses and ports, and the identification: every transmission of a segment has one of its own."""
    ip = frame.payload
    return ip[12:24], ip[4:6]


def check_circuits(bench: Bench, seen: Seen) -> None:
    """What is booked for circuits is what the tap counted, what was lost is what the ports' counters miss."""
    assert {(use.epoch, use.in_port, use.out_port) for use in seen.uses if use.out_port is not None} == {
        *((0, 1, 3), (0, 3, 1), (0, 2, 5), (0, 5, 2)),
        *((1, 1, 4), (1, 4, 1), (1, 2, 5), (1, 5, 2)),
    }
    assert seen.use(0, 1).packets == len(seen.by(3))
    assert seen.use(1, 1).packets == len(seen.by(4))
    assert seen.use(0, 5).packets + seen.use(1, 5).packets == len(seen.by(2))
    payload = sum(seen.use(epoch, 1).bytes - HEADERS * seen.use(epoch, 1).packets for epoch in (0, 1))
    rows = {row.id: row for row in seen.engine.dispatcher.trace.flows}
    assert SIZE <= payload <= SIZE + rows["moved"].retransmits * MTU
    assert sum(use.lost for use in seen.uses) == seen.lost, (
        [(u.epoch, u.in_port, u.lost) for u in seen.uses],
        seen.lost,
    )
    assert seen.lost > 0
    assert {use.in_port for use in seen.uses if use.lost} <= {1, 3, 4}  # so the circuit that is kept lost nothing
    end = seen.engine.dispatcher.trace.end
    assert seen.use(0, 1).lit == pytest.approx(seen.change.dark_at)
    assert sum(seen.use(epoch, 5).duty for epoch in (0, 1)) == pytest.approx(1.0)
    assert sum(seen.use(epoch, 1).duty for epoch in (0, 1)) == pytest.approx(1 - seen.change.control_dark / end)
    assert sent_by_probes(bench, seen) == 0


def sent_by_probes(bench: Bench, seen: Seen) -> int:
    """Packets that counters show on links and no tap saw: probes would be such, if they were counted."""
    exits = bench.fabric.ports("o0")
    counted = sum(seen.after.ports[port].packets - seen.before.ports[port].packets for port in exits)
    return counted - sum(map(len, seen.behind.values()))


@on_bench(**SWAPPED)
def test_what_was_not_there_is_not_measured(bench: Bench) -> None:
    """No flow crosses the circuit that moves: the service's figure is empty, the data plane's is there all the same."""
    seen = run(bench, [Transfer("kept", Endpoint("h2"), Endpoint("h0"), SIZE)])
    assert seen.change.service == []
    assert seen.change.service_dark is None
    assert seen.change.transport_share is None
    assert seen.change.data_plane_dark == pytest.approx(DARK, abs=ROOM)
    assert seen.lost == 0
    assert [use.lost for use in seen.uses] == [0] * len(seen.uses)
    assert _packets(seen.uses, 1) == _packets(seen.uses, 3) == 0


def _packets(uses: Iterable[CircuitUse], in_port: int) -> int:
    return sum(use.packets for use in uses if use.in_port == in_port)
