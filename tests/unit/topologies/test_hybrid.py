"""The hybrid builder: pods, the OCS and its port numbers, the optional electrical core."""

from __future__ import annotations

import time
from typing import Any

import pytest

from controllers.circuits import epoch
from controllers.routes import isolated_pairs
from topologies.fabric import FabricError, Kind, Port
from topologies.hybrid import hybrid


def test_default_has_four_pods_on_one_ocs() -> None:
    fabric = hybrid()
    assert [len(fabric.of_kind(kind)) for kind in (Kind.HOST, Kind.TOR, Kind.OCS, Kind.EPS)] == [16, 4, 1, 0]
    assert {host.pod for host in fabric.hosts[4:8]} == {1}
    assert fabric.routing == "shortest-path"


def test_ocs_ports_follow_the_documented_numbers() -> None:
    fabric = hybrid(pods=3, hosts_per_pod=2, nics=2, uplinks=3)
    for tor in range(3):
        for uplink in range(3):
            assert fabric.peer(Port("o0", tor * 3 + uplink + 1)) == Port(f"t{tor}", 5 + uplink)
    assert fabric.peer(Port("h3", 1)) == Port("t1", 4)


def test_electrical_core_is_thin_and_joins_every_tor() -> None:
    fabric = hybrid(rate=100, uplink_rate=200, electrical_rate=10)
    assert [fabric.peer(port) for port in fabric.ports("c0")] == [Port(f"t{i}", 7) for i in range(4)]
    assert {fabric.link(port).rate for port in fabric.ports("c0")} == {10}
    assert {fabric.link(port).rate for port in fabric.ports("o0")} == {200}
    assert fabric.link(Port("h0", 0)).rate == 100


def test_a_tier_of_ocses_shares_the_uplinks_of_every_tor() -> None:
    """Four uplinks to two OCSs: uplinks 0 and 2 to o0, 1 and 3 to o1, two ports of each for every ToR."""
    fabric = hybrid(pods=3, hosts_per_pod=2, uplinks=4, ocses=2)
    assert [ocs.name for ocs in fabric.ocses] == ["o0", "o1"]
    for tor in range(3):
        for uplink in range(4):
            port = Port(f"o{uplink % 2}", tor * 2 + uplink // 2 + 1)
            assert fabric.peer(port) == Port(f"t{tor}", 3 + uplink)
    lit = epoch(fabric, 0, {"o0": ["t0-t1"], "o1": ["t1-t2"]})
    assert not list(isolated_pairs(fabric, lit))


def test_uplink_rate_follows_rate() -> None:
    assert hybrid(rate=7).link(Port("o0", 1)).rate == 7


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"pods": 1}, "pods must be at least 2"),
        ({"hosts_per_pod": 0}, "hosts_per_pod must be at least 1"),
        ({"uplinks": 0}, "uplinks must be at least 1"),
        ({"ocses": 0}, "ocses must be at least 1"),
        ({"uplinks": 3, "ocses": 2}, "ocses 2 does not divide the 3 uplinks"),
        ({"nics": 0}, "nics must be 1 to 8"),
        ({"electrical_rate": 0}, "rate must be positive"),
    ],
)
def test_impossible_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(FabricError, match=words):
        hybrid(**parameters)


def test_more_uplinks_than_a_switch_has_ports_are_refused_without_delay() -> None:
    began = time.monotonic()
    with pytest.raises(FabricError, match="no such port"):
        hybrid(pods=2, uplinks=1_000_000)
    assert time.monotonic() - began < 5, "each port is found in constant time"
