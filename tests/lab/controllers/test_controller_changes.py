"""Epoch changes at real switches, seen from the frames that pass: dark, light, unchanged circuits, and going back."""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest

from controllers.channel import Aborted, Committed, ControllerError, RuleChange, Staged
from controllers.client import ControllerClient
from controllers.tables import Rule
from tests.lab.controllers.sealed import Lab, Wire, run, sealed

pytestmark = pytest.mark.lab

MS = 1_000_000
SETTLING = 30 * MS
"""What the switch may take from a barrier reply until its datapath has followed, on a loaded machine (ns)."""


def circuit(in_port: int, out_port: int) -> Rule:
    """An OCS's rule."""
    return Rule(10, out_port, in_port=in_port)


def route(destination: int, out_port: int) -> Rule:
    """A packet switch's rule for one address."""
    return Rule(10, out_port, destination=destination)


OLD, NEW, KEPT = circuit(1, 2), circuit(1, 3), circuit(4, 5)
DARK, LIGHT = {1: RuleChange(delete=(OLD,))}, {1: RuleChange(add=(NEW,))}


class Bench(NamedTuple):
    """An OCS with the circuits OLD and KEPT, and what is plugged into its five ports."""

    client: ControllerClient
    wires: dict[int, Wire]

    def send_until(self, end_ns: int) -> int:
        """Send a frame into ports 1 and 4 every millisecond; returns how many into each."""
        count = 0
        while time.monotonic_ns() < end_ns:
            self.wires[1].send()
            self.wires[4].send()
            count += 1
            time.sleep(0.001)
        return count

    def arrivals(self) -> dict[int, list[int]]:
        """By port: when the frames that have come out of it were sent."""
        time.sleep(0.1)
        return {number: [sent for _, sent in wire.received()] for number, wire in self.wires.items()}


def optical_bench(lab: Lab) -> Bench:
    """Build it and light it."""
    client = lab.bridges(1, ports=5)
    wires = {number: Wire(1, number) for number in range(1, 6)}
    client.install({1: (OLD, KEPT)}, 5)
    bench = Bench(client, wires)
    bench.send_until(time.monotonic_ns() + 20 * MS)
    warm_up = bench.arrivals()
    assert warm_up[2]
    assert warm_up[5]
    return bench


@sealed
def test_a_scheduled_change_is_dark_then_light(lab: Lab) -> None:
    """Frames pass by the old circuit, then not at all, then by the new one; the circuit that stays loses none."""
    bench = optical_bench(lab)
    at_ns = time.monotonic_ns() + 250 * MS
    prepared = bench.client.prepare("c", dark=DARK, light=LIGHT, at_ns=at_ns, reconfiguration_ns=150 * MS)
    assert prepared.at_ns == at_ns
    sent = bench.send_until(at_ns + 350 * MS)
    seen = bench.arrivals()
    change = bench.client.wait_change("c", 2)
    assert isinstance(change, Committed)
    dark, light = change.dark, change.light
    assert at_ns <= dark.sent_ns < dark.replied_ns < light.sent_ns < light.replied_ns
    assert dark.lateness < 0.05
    assert light.asked_ns == dark.sent_ns + 150 * MS
    assert 0.15 <= change.control_dark < 0.25
    assert dark.sent_ns - 5 * MS < max(seen[2]) < dark.replied_ns + SETTLING
    assert light.sent_ns - 5 * MS < min(seen[3]) < light.replied_ns + SETTLING
    assert seen[1] == seen[4] == []
    assert len(seen[5]) == sent
    assert len(set(seen[2] + seen[3])) == len(seen[2]) + len(seen[3]) < sent - 50
    bench.client.verify([1], 2)


@sealed
def test_packet_switches_follow_the_circuits(lab: Lab) -> None:
    """LIGHT: OCSs first, routes after their barriers. DARK: detours first. One report per stage, then the end."""
    client = lab.bridges(1, 2, 3)
    old, detour, new = route(0x0A000001, 1), route(0x0A000001, 2), route(0x0A000001, 3)
    client.install({1: (OLD, KEPT), 2: (OLD,), 3: (old,)}, 5)
    client.poll()
    dark = {1: RuleChange(delete=(OLD,)), 2: RuleChange(delete=(OLD,)), 3: RuleChange(add=(detour,))}
    light = {3: RuleChange(add=(new,)), 1: RuleChange(add=(NEW,)), 2: RuleChange(add=(NEW,))}
    client.prepare("c", dark=dark, light=light, at_ns=None, reconfiguration_ns=20 * MS)
    client.wait_change("c", 2)
    stages = [event for event in client.poll() if isinstance(event, Staged)]
    assert [stage.stage for stage in stages] == ["dark", "light"]
    dark_stamps, light_stamps = stages[0].switches, stages[1].switches
    assert dark_stamps[3].replied_ns < min(dark_stamps[1].sent_ns, dark_stamps[2].sent_ns)
    assert light_stamps[3].sent_ns > max(light_stamps[1].replied_ns, light_stamps[2].replied_ns)
    assert stages[1].skew == abs(light_stamps[1].replied_ns - light_stamps[2].replied_ns) / 1e9
    assert {flow.rule for flow in client.read_flows(3).flows} == {new}
    assert client.verify([1, 2, 3], 2).rules == 4


@sealed
def test_abort_before_dark_changes_nothing(lab: Lab) -> None:
    """The bundles are discarded: the instant passes and the old circuit never blinks. The name cannot be used again."""
    bench = optical_bench(lab)
    at_ns = time.monotonic_ns() + 150 * MS
    bench.client.prepare("c", dark=DARK, light=LIGHT, at_ns=at_ns, reconfiguration_ns=10 * MS)
    with pytest.raises(ControllerError, match="part of the change 'c', which is not over"):
        bench.client.prepare("d", dark=DARK, light=LIGHT, at_ns=at_ns, reconfiguration_ns=0)
    assert bench.client.abort("c").outcome == "discarded"
    sent = bench.send_until(at_ns + 100 * MS)
    seen = bench.arrivals()
    assert len(seen[2]) == len(seen[5]) == sent
    assert bench.client.wait_change("c", 1) == Aborted("c", "discarded", "the engine asked for it")
    bench.client.verify([1], 2)
    with pytest.raises(ControllerError, match="there is no change 'c' to abort"):
        bench.client.abort("c")


@sealed
def test_abort_in_the_dark_restores_the_old_epoch(lab: Lab) -> None:
    """The third bundle brings the old circuit back at once; the new one never comes."""
    bench = optical_bench(lab)
    bench.client.prepare("c", dark=DARK, light=LIGHT, at_ns=None, reconfiguration_ns=5_000 * MS)
    bench.send_until(time.monotonic_ns() + 100 * MS)
    assert bench.client.abort("c").outcome == "restored"
    restored_ns = time.monotonic_ns()
    bench.send_until(restored_ns + 100 * MS)
    seen = bench.arrivals()
    assert seen[3] == []
    assert [at for at in seen[2] if at > restored_ns + SETTLING]
    assert not [at for at in seen[2] if restored_ns - 60 * MS < at < restored_ns - 20 * MS]
    bench.client.verify([1], 2)
    bench.client.prepare("d", dark=DARK, light=LIGHT, at_ns=None, reconfiguration_ns=0)
    assert isinstance(bench.client.wait_change("d", 2), Committed)
    assert bench.client.abort("d").outcome == "committed"
    assert {flow.rule for flow in bench.client.read_flows(1).flows} == {NEW, KEPT}


@sealed
def test_lateness_is_recorded(lab: Lab) -> None:
    """An instant that has passed is fired at once, and the report says by how much; the dark time stays as asked."""
    client = lab.bridges(1)
    client.install({1: (OLD,)}, 5)
    at_ns = time.monotonic_ns() - 300 * MS
    client.prepare("c", dark=DARK, light=LIGHT, at_ns=at_ns, reconfiguration_ns=40 * MS)
    change = client.wait_change("c", 2)
    assert isinstance(change, Committed)
    assert 0.3 <= change.dark.lateness < 0.5
    assert change.light.sent_ns - change.dark.sent_ns >= 40 * MS


@sealed
def test_bundles_outlive_the_switch_s_patience(lab: Lab) -> None:
    """A change that waits longer than the switch keeps idle bundles is filled anew and still fires."""
    run("ovs-vsctl", "set", "Open_vSwitch", ".", "other_config:bundle-idle-timeout=5")
    client = lab.bridges(1)
    client.install({1: (OLD,)}, 5)
    at_ns = time.monotonic_ns() + 6_500 * MS
    client.prepare("c", dark=DARK, light=LIGHT, at_ns=at_ns, reconfiguration_ns=0)
    change = client.wait_change("c", 8)
    assert isinstance(change, Committed)
    assert 0 <= change.dark.lateness < 0.05


@sealed
def test_an_expired_bundle_ends_in_the_old_epoch(lab: Lab) -> None:
    """With a patience below ours the switch drops the bundles: the change is given up with the switch's own reason."""
    run("ovs-vsctl", "set", "Open_vSwitch", ".", "other_config:bundle-idle-timeout=1")
    client = lab.bridges(1)
    client.install({1: (OLD,)}, 5)
    client.prepare("c", dark=DARK, light=LIGHT, at_ns=time.monotonic_ns() + 3_000 * MS, reconfiguration_ns=0)
    end = client.wait_change("c", 6)
    assert isinstance(end, Aborted)
    assert (end.outcome, end.dpid) == ("restored", 1)
    assert "OFPET_BUNDLE_FAILED" in end.reason
    client.verify([1], 2)


@sealed
def test_a_change_that_does_not_fit_is_refused(lab: Lab) -> None:
    """Deleting a rule that is not there, or adding an impossible one, names the switch before anything is sent."""
    client = lab.bridges(1)
    client.install({1: (OLD,)}, 5)
    with pytest.raises(ControllerError, match=r"switch 1: .*cannot be deleted: the switch does not hold it"):
        client.prepare("c", dark={1: RuleChange(delete=(NEW,))}, light={}, at_ns=None, reconfiguration_ns=0)
    with pytest.raises(ControllerError, match=r"switch 1: .*there is no port 0"):
        client.prepare("c", dark={}, light={1: RuleChange(add=(circuit(7, 0),))}, at_ns=None, reconfiguration_ns=0)
    with pytest.raises(ControllerError, match="switch 9: it is not connected"):
        client.prepare("c", dark={}, light={9: RuleChange(add=(NEW,))}, at_ns=None, reconfiguration_ns=0)
    client.verify([1], 2)


@sealed
def test_a_connection_lost_in_the_dark_is_named(lab: Lab) -> None:
    """The other switch gets its old epoch back; what cannot be restored is said, in time."""
    client = lab.bridges(1, 2)
    client.install({1: (OLD,), 2: (OLD,)}, 5)
    dark, light = {1: DARK[1], 2: DARK[1]}, {1: LIGHT[1], 2: LIGHT[1]}
    client.prepare("c", dark=dark, light=light, at_ns=None, reconfiguration_ns=60_000 * MS)
    time.sleep(0.1)
    began = time.monotonic()
    run("ovs-vsctl", "del-controller", "b2")
    end = client.wait_change("c", 5)
    assert time.monotonic() - began < 3
    assert isinstance(end, Aborted)
    assert (end.outcome, end.dpid) == ("failed", 2)
    assert "could not restore the old epoch at switch 2" in end.reason
    assert client.verify([1], 2).rules == 1


@sealed
def test_changes_follow_each_other_at_once(lab: Lab) -> None:
    """As soon as the end of one is told, the next can be prepared; also after an abort."""
    client = lab.bridges(1)
    client.install({1: (OLD,)}, 5)
    back = ({1: RuleChange(delete=(NEW,))}, {1: RuleChange(add=(OLD,))})
    for number in range(20):
        dark, light = back if number % 2 else (DARK, LIGHT)
        client.prepare(f"c{number}", dark=dark, light=light, at_ns=None, reconfiguration_ns=0)
        assert isinstance(client.wait_change(f"c{number}", 2), Committed)
    for number in range(10):
        client.prepare(f"d{number}", dark=DARK, light=LIGHT, at_ns=None, reconfiguration_ns=60_000 * MS)
        assert client.abort(f"d{number}").outcome in {"discarded", "restored"}
    assert client.install({1: (OLD,)}, 2).rules == 1
