"""What becomes of single packets on their way through the tables."""

from __future__ import annotations

import time

import pytest

from tests.lab.topologies.bench import Bench, nic, on_bench, unmatched
from tests.lab.topologies.probes import TTL, Capture, Probes, swallow

pytestmark = pytest.mark.lab

COUNT = 300


@on_bench(kind="fat-tree", k=4, hosts=8, rate="20Mbps")
def test_no_packet_is_doubled_lost_or_led_astray(bench: Bench) -> None:
    """Numbered probes across the core arrive once each, in order, untouched, at one host; no other counter moves."""
    src, dst = nic(0), nic(7)
    path = bench.path(src, dst)
    assert [port.node[0] for port in path] == ["h", "t", "a", "c", "a", "t"]
    captures = {at: Capture(bench, at) for at in bench.fabric.all_nics}
    sinks = swallow(bench, bench.fabric.all_nics)
    probes, before = Probes(bench, src, dst), bench.sent()
    for _ in range(COUNT):
        probes.send()
    time.sleep(0.5)
    after = bench.sent()
    seen = {at: capture.arrivals() for at, capture in captures.items()}
    arrived = seen.pop(dst)
    assert [arrival.number for arrival in arrived] == list(range(COUNT))
    assert {arrival.ttl for arrival in arrived} == {TTL}
    assert {at: found for at, found in seen.items() if found} == {}
    assert {port: after[port] - before[port] for port in after if after[port] != before[port]} == dict.fromkeys(
        path, COUNT
    )
    assert len(sinks) == 8


@on_bench(kind="fat-tree", k=4, hosts=8, rate="20Mbps")
def test_packets_for_nobody_are_dropped(bench: Bench) -> None:
    """Addresses that no host has: packets end where the tables do, having crossed no link twice, and do not flood."""
    captures = [Capture(bench, at) for at in bench.fabric.all_nics]
    before = bench.sent()
    for address in ("10.0.0.99", "10.1.1.99", "10.1.9.2", "10.9.0.2"):
        probes = Probes(bench, nic(0), nic(7), address=address)
        for _ in range(50):
            probes.send()
    time.sleep(0.5)
    after = bench.sent()
    assert [capture.arrivals() for capture in captures] == [[]] * 8
    moved = {port: after[port] - before[port] for port in after if after[port] != before[port]}
    assert moved.pop(nic(0)) == 200
    assert all(port.node[0] in "tac" and count <= 200 for port, count in moved.items()), moved
    assert sum(unmatched(switch) for switch in bench.switches) >= 50
