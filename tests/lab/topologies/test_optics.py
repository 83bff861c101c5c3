"""Circuits as packets see them: who is isolated, who is reached after a change, and that the dark is dark."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controllers.channel import Committed
from controllers.transition import transition
from emu.lab.circuits import ScheduledCircuits
from emu.lab.counters import PortCount, dark_drops
from emu.lab.openvswitch import run
from emu.packet.clock import ModelClock
from emu.packet.lanes import ConnectError, LaneKey
from tests.lab.topologies.bench import Bench, nic, on_bench, unmatched
from tests.lab.topologies.probes import Capture, Probes, swallow
from topologies.fabric import Port

pytestmark = pytest.mark.lab

MS = 1_000_000
SETTLING = 60 * MS
"""What a switch may take from a barrier reply until its datapath has followed, on a loaded machine (ns)."""

ISLANDS: dict[str, Any] = {
    "kind": "hybrid",
    "pods": 6,
    "hosts_per_pod": 1,
    "uplinks": 1,
    "rate": "20Mbps",
    "reconfiguration": "300ms",
    "circuits": {"o0": ["t0-t1", "t2-t3", "t4-t5"]},
    "schedule": [{"at": "300ms", "circuits": {"o0": ["t0-t2", "t1-t3", "t4-t5"]}}],
}
"""One host a pod and one circuit for each pair of pods; ToR i is at OCS port i + 1. The third pair is never touched."""
Counts = Mapping[Port, PortCount]
UPLINK = 2
"""The port of every ToR into the OCS."""


def connects(bench: Bench, src: Port, dst: Port) -> bool:
    """Whether a TCP connection between two hosts opens within a second."""
    key = LaneKey(src, dst, f"try {time.monotonic_ns()}")
    try:
        bench.lanes.open_all([key], timeout=1)
    except ConnectError:
        return False
    return True


def queues(bench: Bench, port: Port) -> list[str]:
    """The queueing disciplines of a port, by the kernel's word."""
    with bench.lab.ports.namespace_of(port):
        return [line.split()[1] for line in run("tc", "qdisc", "show", "dev", port.interface).splitlines()]


def only_electrical_transmitters_have_queues(bench: Bench) -> None:
    """A queue behind a circuit would go on shining while it is dark: ToR uplinks have one, OCS ports do not."""
    for tor in range(6):
        assert queues(bench, Port(f"t{tor}", UPLINK)) == ["htb", "bfifo"]
        assert queues(bench, nic(tor)) == ["htb", "bfifo"]
        assert queues(bench, Port("o0", tor + 1)) == ["noqueue"]


def rewire(bench: Bench) -> ScheduledCircuits:
    """Let the fabric's schedule happen."""
    circuits = ScheduledCircuits(bench.lab.control, bench.epoch, bench.built.schedule, bench.lab.loop)
    clock = ModelClock(1.0)
    clock.start()
    circuits.use(clock)
    at = circuits.next_handover()
    assert at is not None
    bench.turn(lambda: clock.now() >= at, timeout=2)
    circuits.hand_over(clock)
    assert circuits.busy
    assert bench.turn(lambda: not circuits.busy, timeout=5)
    circuits.stop()
    return circuits


@on_bench(**ISLANDS)
def test_circuits_decide_who_is_reached(bench: Bench) -> None:
    """Without a circuit packets end at the ToR. The scheduled change takes some hosts away and brings others."""
    only_electrical_transmitters_have_queues(bench)
    capture, probes, before = Capture(bench, nic(2)), Probes(bench, nic(0), nic(2)), bench.sent()
    for _ in range(20):
        probes.send()
    assert bench.turn(lambda: unmatched("t0") >= 20, timeout=5)
    after = bench.sent()
    assert {port: after[port] - before[port] for port in after if after[port] != before[port]} == {nic(0): 20}
    assert capture.arrivals() == []
    near = {(nic(0), nic(1)): 50_000, (nic(3), nic(2)): 50_000}
    far = {(nic(0), nic(2)): 50_000, (nic(3), nic(1)): 50_000}
    assert [part.unread for part in bench.send(near, timeout=5)] == [0, 0]
    assert not connects(bench, nic(0), nic(2))
    with pytest.raises(ConnectError, match=r"1 of 2 connections did not open: h1:0 -> h2:0 .*timed out"):
        bench.lanes.open_all([LaneKey(nic(1), nic(0), "a"), LaneKey(nic(1), nic(2), "a")], timeout=1)
    (change,) = rewire(bench).changes
    assert change.outcome == "committed"
    assert change.dark_at >= change.asked_at == 0.3
    assert change.control_dark >= 0.3
    assert [part.unread for part in bench.send(far, timeout=5)] == [0, 0]
    assert not connects(bench, nic(0), nic(1))
    assert connects(bench, nic(4), nic(5))
    assert bench.lab.control.foreign_rules() == []


class Sample(NamedTuple):
    """Packets that each OCS port had sent, read between two instants (ns)."""

    began: int
    ended: int
    sent: tuple[int, ...]


def sample() -> Sample:
    """Read the counters of all OCS ports at once."""
    began = time.monotonic_ns()
    rows = Path("/proc/thread-self/net/dev").read_text().splitlines()
    counts = {name.strip(): row.split() for name, _, row in (line.partition(":") for line in rows)}
    return Sample(began, time.monotonic_ns(), tuple(int(counts[f"o0-eth{port}"][9]) for port in range(1, 7)))


def watch_change(bench: Bench, streams: Sequence[Probes]) -> tuple[Committed, list[Sample]]:
    """Change the epoch in 250 ms, send a probe of each stream every millisecond until well after, read counters."""
    control, change = bench.lab.control, bench.built.schedule[0]
    step = transition(control.tables(bench.epoch), control.tables(change.epoch), frozenset({"o0"}), control.dpids)
    at = time.monotonic_ns() + 250 * MS
    control.client.prepare("c", dark=step.dark, light=step.light, at_ns=at, reconfiguration_ns=300 * MS)
    samples: list[Sample] = []
    tick = time.monotonic_ns()
    while tick < at + 800 * MS:
        for stream in streams:
            stream.send()
        samples.append(sample())
        tick += MS
        time.sleep(max(0.0, (tick - time.monotonic_ns()) / 1e9))
    end = control.client.wait_change("c", 5)
    assert isinstance(end, Committed)
    return end, samples


@on_bench(**ISLANDS)
def test_nothing_passes_in_the_dark(bench: Bench) -> None:
    """No frame leaves by circuits that change; those that stay lose none; and every loss is found in its place."""
    pairs = {"old": (nic(0), nic(1)), "new": (nic(0), nic(2)), "kept": (nic(4), nic(5))}
    captures = {name: Capture(bench, dst) for name, (_, dst) in pairs.items()}
    sinks = swallow(bench, [dst for _, dst in pairs.values()])
    streams = {name: Probes(bench, *pair) for name, pair in pairs.items()}
    before = bench.lab.ports.read()
    done, samples = watch_change(bench, list(streams.values()))
    time.sleep(0.3)
    seen = {name: capture.arrivals() for name, capture in captures.items()}
    check_dark(done, samples)
    assert [probe.number for probe in seen["kept"]] == list(range(streams["kept"].count))
    for name in ("old", "new"):
        numbers = [probe.number for probe in seen[name]]
        assert numbers
        assert numbers == sorted(set(numbers))
    assert max(probe.sent_ns for probe in seen["old"]) < done.dark.replied_ns + SETTLING
    assert min(probe.sent_ns for probe in seen["new"]) > done.light.sent_ns - SETTLING
    lost = sum(streams[name].count - len(seen[name]) for name in ("old", "new"))
    after = bench.lab.ports.read()
    died = {switch: entered_and_stayed(bench, before, after, switch) for switch in bench.switches}
    assert sum(died.values()) == lost
    assert {switch for switch, count in died.items() if count} <= {"o0", "t0", "t1", "t2"}
    assert died["o0"] == dark_drops(bench.fabric, after) - dark_drops(bench.fabric, before) >= 50
    assert len(sinks) == 3
    gap = min(probe.sent_ns for probe in seen["new"]) - max(probe.sent_ns for probe in seen["old"])
    sys.stdout.write(f"asked 300 ms, control {done.control_dark * 1e3:.1f} ms, data plane {gap / MS:.1f} ms\n")


def entered_and_stayed(bench: Bench, before: Counts, after: Counts, switch: str) -> int:
    """Packets that came into a switch in between and did not leave it."""
    ports = bench.fabric.ports(switch)
    entered = sum(after[peer].packets - before[peer].packets for peer in map(bench.fabric.peer, ports))
    return entered - sum(after[port].packets - before[port].packets for port in ports)


def check_dark(done: Committed, samples: Sequence[Sample]) -> None:
    """Between DARK's reply (and the datapath's settling) and LIGHT's commit."""
    dark = [s for s in samples if s.began > done.dark.replied_ns + SETTLING and s.ended < done.light.sent_ns]
    assert len(dark) >= 10
    first, last = dark[0].sent, dark[-1].sent
    assert first[:4] == last[:4]
    assert last[5] - first[5] >= len(dark) // 2
    assert samples[-1].sent[2] - last[2] >= 50  # port 3, to t2, is lit now
