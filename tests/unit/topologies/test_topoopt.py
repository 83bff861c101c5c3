"""The TopoOpt-like builder: planes, interfaces, and hosts that forward."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.checks import check
from controllers.epochs import Circuit, Epoch
from controllers.routes import isolated_pairs, path, routes
from tests.unit.topologies.invariants import nic_rates, tier_rates
from topologies.fabric import Fabric, FabricError, Kind, Port
from topologies.topoopt import topoopt


def ring(fabric: Fabric, plane: int, stride: int) -> dict[str, frozenset[Circuit]]:
    """Interface of each host to that `stride` hosts on, one way, as TopoOpt's ring permutations are."""
    hosts = len(fabric.hosts)
    return {f"o{plane}": frozenset(Circuit(i + 1, (i + stride) % hosts + 1) for i in range(hosts))}


def test_default_gives_each_host_an_interface_into_each_plane() -> None:
    fabric = topoopt()
    assert [len(fabric.of_kind(kind)) for kind in (Kind.HOST, Kind.TOR, Kind.OCS)] == [16, 16, 4]
    assert [str(fabric.peer(Port("f3", 5 + plane))) for plane in range(4)] == ["o0:4", "o1:4", "o2:4", "o3:4"]
    assert {node.hardware for node in fabric.of_kind(Kind.TOR)} == {"host"}
    assert {node.hardware for node in fabric.ocses} == {"patch-panel"}
    assert {node.hardware for node in topoopt(patch_panel=False).ocses} == {"box"}


def test_hosts_forward_around_a_ring() -> None:
    fabric = topoopt(hosts=4, nics=1)
    lit = Epoch(0, ring(fabric, 0, 1))
    tables = routes(fabric, lit)
    found = path(fabric, tables, Port("h0", 0), Port("h2", 0))
    assert found is not None
    assert [str(port) for port in found] == ["h0:0", "f0:2", "o0:2", "f1:2", "o0:3", "f2:1"]
    assert list(isolated_pairs(fabric, lit)) == []
    assert check(fabric, lit, tables) == []


def test_a_broken_out_nic_gives_slower_interfaces() -> None:
    """A 400G NIC as four 100G interfaces, as TopoOpt's prototype breaks 100G out into 4 x 25G."""
    fabric = topoopt(nics=1, degree=4)
    assert nic_rates(fabric) == {400_000_000_000}
    assert fabric.link(Port("o3", 1)).rate == 100_000_000_000


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 8), st.integers(1, 4), st.integers(1, 4), st.data())
def test_invariants(hosts: int, nics: int, degree: int, data: st.DataObject) -> None:
    fabric = topoopt(hosts=hosts, nics=nics, degree=degree, rate=12)
    assert len(fabric.all_nics) == hosts * nics
    assert nic_rates(fabric) == {12}
    assert tier_rates(fabric)[Kind.TOR, Kind.OCS] == {12 * nics // degree}
    assert {len(fabric.ports(ocs.name)) for ocs in fabric.ocses} == {hosts}
    strides = data.draw(st.lists(st.integers(1, hosts - 1), min_size=degree, max_size=degree))
    lit = Epoch(0, {ocs: of for plane, stride in enumerate(strides) for ocs, of in ring(fabric, plane, stride).items()})
    assert check(fabric, lit, routes(fabric, lit)) == []


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"hosts": 1}, "hosts must be at least 2"),
        ({"degree": 0}, "degree must be at least 1"),
        ({"nics": 1, "degree": 3}, "degree 3 does not divide the 400000000000 bit/s"),
        ({"nics": 9}, "nics must be 1 to 8"),
        ({"rate": 0}, "rate must be at least 1"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(FabricError, match=words):
        topoopt(**parameters)
