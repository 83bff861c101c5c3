"""Who reaches whom: every pair of hosts by TCP, with every byte."""

from __future__ import annotations

import pytest

from controllers.paths import nic_pairs
from tests.lab.topologies.bench import Bench, on_bench

pytestmark = pytest.mark.lab

RING = {"o0": ["t0-t1", "t1-t2", "t2-t3", "t3-t0"]}


def every_pair_gets_through(bench: Bench) -> None:
    """All ordered pairs at once, each with an amount of its own that is no multiple of a segment."""
    sizes = {pair: 2_000 + 37 * place for place, pair in enumerate(nic_pairs(bench.fabric))}
    parts = bench.send(sizes, timeout=12)
    assert len(parts) == 16 * 15
    assert [part.bytes - part.unread for part in parts] == list(sizes.values())
    assert bench.lanes.bytes_read == sum(sizes.values())
    assert all(0 < part.start < part.first_byte <= part.end for part in parts)


@on_bench(kind="fat-tree", k=4, rate="20Mbps")
def test_every_pair_of_a_fat_tree(bench: Bench) -> None:
    """k=4, 16 hosts."""
    every_pair_gets_through(bench)


@on_bench(kind="hybrid", rate="20Mbps", reconfiguration="10ms", circuits=RING)
def test_every_pair_over_a_ring_of_circuits(bench: Bench) -> None:
    """Four pods of four, joined by nothing but circuits; opposite pods are two circuits apart."""
    every_pair_gets_through(bench)
