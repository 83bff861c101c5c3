"""The packet engine at work: thousands of transfers, connections old and new, cancelled and stalled ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from emu.packet import engine as packet_engine
from emu.packet.engine import PacketEngine
from tests.lab.topologies.bench import Bench, Script, nic, on_bench
from workloads.protocol import Cancel, Cancelled, Connection, Done, Endpoint, Failed, Run, Transfer

pytestmark = pytest.mark.lab


def transfer(name: str, src: int, dst: int, size: int, connection: Connection = "kept", channel: str = "") -> Transfer:
    """From h<src> to h<dst>."""
    return Transfer(name, Endpoint(f"h{src}"), Endpoint(f"h{dst}"), size, channel, connection)


def opened_by(bench: Bench, host: str) -> int:
    """Connections that a host has opened since it was made, by the kernel's count."""
    with bench.lab.net.namespaces[host].entered():
        rows = [row.split() for row in Path("/proc/thread-self/net/snmp").read_text().splitlines()]
    names, values = (row for row in rows if row[0] == "Tcp:")
    return int(values[names.index("ActiveOpens")])


def ends(engine: PacketEngine) -> dict[str, int]:
    """Bytes of every transfer that has ended."""
    return {row.id: row.bytes for row in engine.dispatcher.trace.flows}


def once(at: float, act: Callable[[], None]) -> Callable[[float], None]:
    """A pulse that acts when `at` has passed."""
    pending = [act]

    def pulse(now: float) -> None:
        if now > at and pending:
            pending.pop()()

    return pulse


@on_bench(kind="fat-tree", k=4, rate="20Mbps")
def test_two_thousand_transfers_at_once(bench: Bench) -> None:
    """All begun at time zero; half over kept connections, half over a thousand new ones. Each ends, once, whole."""
    pairs = [(src, dst) for src in range(16) for dst in range(16) if src != dst]
    tasks = [
        transfer(f"{how}{number}", *pairs[number % len(pairs)], 500 + number, how)
        for how in ("kept", "new")
        for number in range(1000)
    ]
    bench.open_for(*tasks)
    before = {host.name: opened_by(bench, host.name) for host in bench.fabric.hosts}
    script = Script.of(*tasks)
    engine = bench.play(script)
    assert engine.dispatcher.trace.complete
    assert ends(engine) == {task.id: task.bytes for task in tasks}
    assert len(engine.dispatcher.trace.flows) == len(script.told(Done)) == len(tasks)
    assert engine.late_lanes == 0
    assert sum(opened_by(bench, host) - count for host, count in before.items()) == 1000
    assert len(list(bench.lanes)) == len(pairs)
    assert len(os.listdir("/proc/self/fd")) < 1000


@on_bench(kind="fat-tree", k=4, hosts=4, rate="20Mbps")
def test_kept_connections_are_kept(bench: Bench) -> None:
    """Transfers one after the other use the one connection of their channel; one that was not open is opened, once."""
    first = [transfer(f"a{number}", 0, 3, 20_000) for number in range(5)]
    bench.open_for(*first)
    (lane,) = bench.lanes
    before = opened_by(bench, "h0")
    engine = bench.play(Script.of(*first))
    starts = [row.start for row in engine.dispatcher.trace.flows]
    last = [row.end for row in engine.dispatcher.trace.flows]
    assert opened_by(bench, "h0") == before
    assert list(bench.lanes) == [lane]
    assert starts == sorted(starts)
    assert last == sorted(last)
    late = [transfer(f"b{number}", 0, 2, 20_000) for number in range(3)]
    engine = bench.play(Script.of(*late))
    assert ends(engine) == dict.fromkeys(("b0", "b1", "b2"), 20_000)
    assert engine.late_lanes == 3
    assert opened_by(bench, "h0") == before + 1


@on_bench(kind="fat-tree", k=4, hosts=4, rate="20Mbps")
def test_the_setup_of_a_new_connection_counts(bench: Bench) -> None:
    """With the way back blocked for a while the handshake waits for TCP's first time-out, a second: so does the FCT."""
    bench.listen()
    before = opened_by(bench, "h0")
    bench.remove_route("t0", nic(0))
    engine = bench.play(Script.of(transfer("far", 0, 3, 20_000, "new")), once(0.3, bench.install))
    (row,) = engine.dispatcher.trace.flows
    assert row.start < 0.3
    assert row.first_byte - row.start > 0.9
    assert opened_by(bench, "h0") == before + 1


@on_bench(kind="fat-tree", k=4, hosts=4, nics=2, rate="20Mbps")
def test_a_transfer_is_cancelled_in_flight(bench: Bench) -> None:
    """What it shared a connection with ends whole; its own bytes stop; what had arrived is told."""
    size = 4_000_000
    doomed, behind, other = (
        transfer("doomed", 0, 3, size),
        transfer("behind", 0, 3, 30_000),
        transfer("other", 1, 2, size),
    )
    bench.open_for(doomed, behind, other)
    script = Script((0, Run(doomed)), (0, Run(behind)), (0, Run(other)), (0.3, Cancel("doomed")))
    before = bench.lab.ports.read()
    engine = bench.play(script)
    after = bench.lab.ports.read()
    assert ends(engine) == {"behind": 30_000, "other": size}
    (cancelled,) = script.told(Cancelled)
    assert cancelled.task == doomed
    assert 0 < cancelled.progress < size / 2
    for port in bench.fabric.nics("h0"):
        assert after[port].bytes - before[port].bytes < size / 4


@on_bench(kind="fat-tree", k=4, hosts=4, rate="20Mbps")
def test_a_transfer_is_cancelled_before_it_is_connected(bench: Bench) -> None:
    """Over new, and over kept but unopened connections: nothing of it is sent, and what comes later goes through."""
    bench.listen()
    connections: tuple[Connection, ...] = ("new", "kept")
    for connection in connections:
        bench.remove_route("t0", nic(0))
        first, second = (transfer(f"{connection} {name}", 0, 3, 50_000, connection) for name in "ab")
        script = Script((0, Run(first)), (0.2, Cancel(first.id)), (0.6, Run(second)))
        read = bench.lanes.bytes_read
        engine = bench.play(script, once(0.3, bench.install))
        assert ends(engine) == {second.id: 50_000}
        assert [(event.task, event.progress) for event in script.told(Cancelled)] == [(first, 0)]
        assert bench.lanes.bytes_read - read == 50_000


@on_bench(kind="fat-tree", k=4, hosts=4, rate="20Mbps")
def test_a_stalled_transfer_fails_by_name(bench: Bench) -> None:
    """Its way is taken away in flight, with ovs-ofctl: the pair is named, and what went another way has ended."""
    lost, fine = transfer("lost", 0, 3, 4_000_000), transfer("fine", 2, 1, 200_000)
    bench.open_for(lost, fine)
    script = Script.of(lost, fine)
    cut = once(0.4, lambda: bench.remove_route("t1", nic(3)))
    with patch.object(packet_engine, "STALL_LIMIT", 1.0):
        engine = bench.play(script, cut)
    (failure,) = engine.dispatcher.trace.failures
    assert (failure.task, failure.reason) == ("lost", "h0 -> h3: no byte for 1 s")
    assert [(event.task, event.reason) for event in script.told(Failed)] == [(lost, failure.reason)]
    assert ends(engine) == {"fine": 200_000}
    assert not engine.dispatcher.trace.complete
