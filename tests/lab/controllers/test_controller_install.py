"""Tables in real switches: the ready gate, atomic replacement, and what is refused."""

from __future__ import annotations

import os
import time

import pytest

from controllers.channel import ControllerError
from controllers.tables import Rule, address_number
from tests.lab.controllers.sealed import Lab, Wire, run, sealed
from tests.libraries import VERSIONS

pytestmark = pytest.mark.lab


def route(prefix: str, mask: str, out_port: int, priority: int = 10) -> Rule:
    """A packet switch's rule."""
    return Rule(priority, out_port, destination=address_number(prefix), mask=address_number(mask))


def circuit(in_port: int, out_port: int) -> Rule:
    """An OCS's rule."""
    return Rule(10, out_port, in_port=in_port)


@sealed
def test_tables_are_installed_and_read_back(lab: Lab) -> None:
    """Prefix, suffix, exact and default routes and circuits come back as they were asked, by the switch's own word."""
    client = lab.bridges(1, 2)
    routes = (
        route("10.0.2.2", "255.255.255.255", 1, 30),
        route("10.0.2.0", "255.255.255.0", 2, 20),
        route("0.0.0.3", "0.0.0.255", 3),
        route("0.0.0.0", "0.0.0.0", 4, 1),
    )
    assert client.install({1: routes, 2: (circuit(1, 2), circuit(2, 1))}, 5).rules == 6
    assert {flow.rule for flow in client.read_flows(1).flows} == set(routes)
    dump = run("ovs-ofctl", "-O", "OpenFlow14", "dump-flows", "b1")
    assert "nw_dst=0.0.0.3/0.0.0.255" in dump
    assert "CONTROLLER" not in dump
    assert client.install({1: routes[:1], 2: ()}, 5).rules == 1
    assert client.read_flows(2).flows == ()


@sealed
def test_the_gate_finds_what_is_not_as_asked(lab: Lab) -> None:
    """A rule deleted, and one added, behind the controller's back are named with their switch."""
    client = lab.bridges(1)
    client.install({1: (circuit(1, 2), circuit(2, 1))}, 5)
    client.verify([1], 5)
    run("ovs-ofctl", "-O", "OpenFlow14", "--strict", "del-flows", "b1", "priority=10,in_port=1")
    with pytest.raises(ControllerError, match=r"switch 1: .*1 rules missing.*in_port=1"):
        client.verify([1], 5)
    run("ovs-ofctl", "-O", "OpenFlow14", "add-flow", "b1", "priority=99,actions=flood")
    with pytest.raises(ControllerError, match="1 entries that were not installed from here"):
        client.verify([1], 5)
    assert client.install({1: (circuit(1, 2),)}, 5).rules == 1


@sealed
def test_impossible_tables_are_refused(lab: Lab) -> None:
    """Two rules for one entry, bits outside the mask, an unknown switch: refused with the switch, nothing changed."""
    client = lab.bridges(1)
    client.install({1: (circuit(1, 2),)}, 5)
    for table, reason in (
        ((circuit(1, 2), circuit(1, 3)), "same match and priority"),
        ((Rule(1, 2, destination=1, mask=0xFFFFFF00),), "bits outside its mask"),
        ((Rule(1, 0, in_port=1),), "there is no port 0"),
    ):
        with pytest.raises(ControllerError, match=reason) as caught:
            client.install({1: table}, 5)
        assert caught.value.dpid == 1
    with pytest.raises(ControllerError, match="switch 7: it is not connected"):
        client.install({7: ()}, 5)
    assert client.verify([1], 5).rules == 1


@sealed
def test_replacement_is_atomic(lab: Lab) -> None:
    """Under steady traffic, every frame goes to the old port or the new one: none is lost, none doubled, none mixed."""
    client = lab.bridges(1, ports=3)
    source, old, new = (Wire(1, number) for number in (1, 2, 3))
    client.install({1: (circuit(1, 2),)}, 5)
    source.send()
    time.sleep(0.1)
    assert len(old.received()) == 1
    for number in range(300):
        if number == 150:
            client.install({1: (circuit(1, 3), circuit(2, 1))}, 5)
        source.send()
        time.sleep(0.001)
    time.sleep(0.1)
    first, second = old.received(), new.received()
    assert len(first) + len(second) == 300
    assert len(second) >= 140
    assert max(at for _, at in first) < min(at for _, at in second)


@sealed
def test_barriers_and_echo_are_measured(lab: Lab) -> None:
    """Round trips are positive and far below the time-outs; a switch that never connects is named."""
    client = lab.bridges(1)
    trips = client.measure_barriers(1, 50)
    assert client.library.startswith(VERSIONS[os.environ["EMU_RYU"]])
    assert len(trips) == 50
    assert all(0 < trip < 1 for trip in trips)
    assert 0 < client.echo() < 1
    with pytest.raises(ControllerError, match="switches 8, 9; check each bridge"):
        client.wait_connected([1, 8, 9], 0.2)
