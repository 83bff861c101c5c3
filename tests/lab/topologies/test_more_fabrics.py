"""The fabrics of the papers as real labs of 8 and 16 hosts: TCP gets everywhere, by the way that the tables say."""

from __future__ import annotations

import pytest

from controllers.paths import nic_pairs
from tests.lab.topologies.bench import Bench, on_bench

pytestmark = pytest.mark.lab

AROUND = {
    **{f"o{pod}": [f"t{2 * pod}-t{2 * pod + 1}", f"t{2 * pod}-x0", f"t{2 * pod + 1}-x0"] for pod in range(4)},
    "x0": ["o0-o1", "o1-o2", "o2-o3", "o3-o0"],
}
"""A ring of the eight ToRs: one circuit in each pod, and four that pass two aggregation OCSs and the core's."""


def some_pairs_get_through(bench: Bench, *, of: int) -> None:
    """One ordered pair in `of`, all at once, each with an amount of its own; every port of their ways has sent."""
    before = bench.sent()
    pairs = list(nic_pairs(bench.fabric))[::of]
    sizes = {pair: 2_000 + 37 * place for place, pair in enumerate(pairs)}
    parts = bench.send(sizes, timeout=20)
    assert [part.bytes - part.unread for part in parts] == list(sizes.values())
    sent = bench.sent()
    used = {port for pair in pairs for port in bench.path(*pair)}
    assert [str(port) for port in sorted(used) if sent[port] <= before[port]] == []


@on_bench(kind="leaf-spine", spines=2, rate="20Mbps")
def test_a_leaf_spine_with_parallel_links(bench: Bench) -> None:
    """Four leaves of four hosts, two links from each to each of two spines."""
    some_pairs_get_through(bench, of=1)


@on_bench(kind="rail", hosts=16, nics=2, rate="20Mbps")
def test_rails_joined_by_a_spine(bench: Bench) -> None:
    """Two rails of 16 NICs, sixteen links from each to the one spine."""
    some_pairs_get_through(bench, of=7)


@on_bench(kind="rfabric", electrical=False, rate="20Mbps", reconfiguration="10ms", circuits=AROUND)
def test_rfabric_over_two_tiers_of_circuits(bench: Bench) -> None:
    """Without the electrical network: all that arrives has gone over circuits, up to three OCSs to the next ToR."""
    some_pairs_get_through(bench, of=2)


@on_bench(kind="topoopt", hosts=8, nics=2, rate="20Mbps", reconfiguration="10ms", policy="one-shot")
def test_hosts_that_forward_over_one_way_circuits(bench: Bench) -> None:
    """Eight hosts on two planes of permutations: most packets pass other hosts, and answers come back another way."""
    some_pairs_get_through(bench, of=3)
