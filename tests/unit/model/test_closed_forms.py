"""Collectives of many ranks held against closed forms, on fabrics that block nobody and on oversubscribed ones."""

import pytest

from emu.model.engine import simulate
from tests.unit.model.fluid_pieces import GB, RATE, Script, cluster_of
from topologies.fabric import Fabric
from topologies.fat_tree import fat_tree
from workloads.protocol import Algorithm, Collective, CollectiveKind

WITHIN = 1e-3


def cct(fabric: Fabric, kind: CollectiveKind, algorithm: Algorithm, size: int, group: tuple[int, ...]) -> float:
    script = Script(Collective("c", kind, algorithm, group, size))
    return simulate(fabric, script, cluster_of(fabric), whole=True).trace.collectives[0].cct


@pytest.fixture(scope="module")
def large() -> Fabric:
    """A fat-tree filled with 1024 hosts."""
    return fat_tree(k=16, rate=RATE)


@pytest.fixture(scope="module")
def narrow() -> Fabric:
    """A fat-tree of 128 hosts with four times as many NICs as uplinks at each of its 8 edge switches' two uplinks."""
    return fat_tree(k=4, oversubscription=8, rate=RATE)


def test_ring_of_1024(large: Fabric) -> None:
    n = 1024
    assert cct(large, "all-reduce", "ring", GB, tuple(range(n))) == pytest.approx(2 * (n - 1) / n, rel=WITHIN)


def test_incast_of_1024(large: Fabric) -> None:
    assert cct(large, "incast", "direct", GB // 1000, tuple(range(1024))) == pytest.approx(1.023, rel=WITHIN)


def test_permutation_of_1024(large: Fabric) -> None:
    assert cct(large, "permutation", "direct", GB, tuple(range(1024))) == pytest.approx(1.0, rel=WITHIN)


def test_halving_doubling_of_16_within_switches() -> None:
    # Partners one host apart share an edge switch, farther ones go up: nobody is blocked on a tree of one pod's width.
    fabric = fat_tree(k=4, rate=RATE)
    moved = 2 * (1 - 1 / 16)
    assert cct(fabric, "all-reduce", "halving-doubling", GB, tuple(range(16))) >= moved * (1 - WITHIN)
    alone = fat_tree(k=32, hosts=16, rate=RATE)
    assert cct(alone, "all-reduce", "halving-doubling", GB, tuple(range(16))) == pytest.approx(moved, rel=WITHIN)


def test_pairwise_all_to_all_of_64() -> None:
    fabric = fat_tree(k=128, hosts=64, rate=RATE)  # all below one switch
    n = 64
    assert cct(fabric, "all-to-all", "pairwise", GB, tuple(range(n))) == pytest.approx((n - 1) / n, rel=WITHIN)


def test_direct_all_to_all_of_64_is_bound_by_the_core_of_an_oversubscribed_tree() -> None:
    # k=4 and 4:1: each of the 8 edge switches has 8 hosts and two uplinks, which carry 8 * 56 of its 8 * 63 blocks.
    fabric = fat_tree(k=4, oversubscription=4, rate=RATE)
    assert len(fabric.hosts) == 64
    expected = 8 * 56 / 64 / 2
    assert cct(fabric, "all-to-all", "direct", GB, tuple(range(64))) == pytest.approx(expected, rel=WITHIN)


def test_permutation_across_pods_of_an_oversubscribed_tree(narrow: Fabric) -> None:
    # Every host sends one pod further: the 16 hosts of an edge switch share its two uplinks.
    hosts = len(narrow.hosts)
    assert hosts == 128
    order = tuple(pod * 32 + place for place in range(32) for pod in range(4))
    expected = 8.0
    found = cct(narrow, "permutation", "direct", GB, order)
    assert found == pytest.approx(expected, rel=WITHIN)


def test_ring_in_sequence_on_an_oversubscribed_tree(narrow: Fabric) -> None:
    # One flow crosses each edge switch's uplinks.
    assert cct(narrow, "all-reduce", "ring", GB, tuple(range(128))) == pytest.approx(2 * 127 / 128, rel=WITHIN)


def test_tree_of_two_ranks_and_chunks() -> None:
    fabric = fat_tree(k=4, rate=RATE)
    # Two ranks: each tree sends its half up and then down, and the halves go opposite ways.
    assert cct(fabric, "all-reduce", "tree", GB, (0, 1)) == pytest.approx(1.0, rel=WITHIN)
