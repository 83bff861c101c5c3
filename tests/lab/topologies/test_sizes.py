"""Fabrics larger and wider than sixteen hosts of one NIC."""

from __future__ import annotations

import sys

import pytest

from emu.stripes import stripes
from tests.lab.topologies.bench import EFFICIENCY, Bench, Script, on_bench
from workloads.protocol import Collective, Endpoint, Transfer

pytestmark = pytest.mark.lab

RATE = 20_000_000


@on_bench(kind="fat-tree", hosts=16, nics=2, rate=f"{RATE}bps")
def test_sixteen_hosts_of_two_nics_stripe_over_both(bench: Bench) -> None:
    """Half of a transfer leaves by each NIC and comes in at each, at twice the rate of one."""
    transfer = Transfer("t", Endpoint("h0"), Endpoint("h15"), 6_000_000)
    halves = stripes(bench.fabric, transfer)
    ways = [bench.path(half.src, half.dst) for half in halves]
    assert len(bench.fabric.all_nics) == 32
    assert not set(ways[0]) & set(ways[1])
    bench.open_for(transfer)
    before = bench.lab.ports.read()
    engine = bench.play(Script.of(transfer))
    after = bench.lab.ports.read()
    (row,) = engine.dispatcher.trace.flows
    assert engine.dispatcher.trace.complete
    assert engine.late_lanes == 0
    assert 1.2 <= row.bytes * 8 / row.fct / EFFICIENCY / RATE <= 2.02  # one NIC alone comes to 1
    for place in (0, -1):
        carried = [after[way[place]].bytes - before[way[place]].bytes for way in ways]
        assert min(carried) >= 3_000_000
        assert max(carried) / min(carried) < 1.05


@on_bench(kind="fat-tree", k=6, rate="5Mbps")
def test_54_hosts_start_and_reduce(bench: Bench) -> None:
    """k=6: a ring all-reduce of all hosts, 54000 bytes in pieces of a thousand, comes to its end."""
    hosts = len(bench.fabric.hosts)
    steps = 2 * (hosts - 1)
    task = Collective("r", "all-reduce", "ring", tuple(range(hosts)), hosts * 1000)
    bench.open_for(task)
    before = bench.lab.ports.read()
    engine = bench.play(Script.of(task))
    after = bench.lab.ports.read()
    trace = engine.dispatcher.trace
    assert hosts == 54
    assert trace.complete
    assert engine.late_lanes == 0
    assert len(trace.flows) == hosts * steps
    assert {row.bytes for row in trace.flows} == {1000}
    for port in bench.fabric.all_nics:
        assert after[port].bytes - before[port].bytes >= steps * 1000
    sys.stdout.write(f"54 hosts started in {bench.started:.1f} s and reduced in {trace.collectives[0].cct:.1f} s\n")
