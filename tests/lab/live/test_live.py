"""A lab that stays open: what can be asked of it, and how it ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import emu
from controllers.policies.protocol import EpochResult, Keep, Phase, Plan, PolicyEvent, Tick, View
from emu.live.pool import LabPool
from tests.lab.runs.machine import command_of, descendants
from workloads.protocol import Action, Announce, Done, Endpoint, Event, Run, Start, Transfer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(60)]

Open = Callable[..., emu.LiveLab]
PODS = {
    "pods": 4,
    "hosts_per_pod": 1,
    "uplinks": 1,
    "rate": "20Mbps",
    "reconfiguration": "50ms",
    "circuits": {"o0": ["t0-t1", "t2-t3"]},
}
"""ToR i is at OCS port i + 1."""
CROSSED = {"o0": ["t0-t2", "t1-t3"]}


@pytest.fixture(scope="module", autouse=True)
def _closed(emu_labs: LabPool) -> Iterator[None]:
    """Nothing idles beside the tests that follow."""
    yield
    emu_labs.close()


@pytest.fixture
def net(lab: Open) -> emu.LiveLab:
    """Four pods, joined by circuits alone."""
    return lab("hybrid", **PODS)


def transfer(name: str, src: str, dst: str, size: int = 100_000) -> Run:
    return Run(Transfer(name, Endpoint(src), Endpoint(dst), size))


# -- traffic ----------------------------------------------------------------------------------------------------------


def test_bytes_take_the_time_that_the_rate_gives_them(net: emu.LiveLab) -> None:
    """100 kB in frames of 9 kB: 12 frames, 100 000 + 12 * 90 bytes on the wire, 40.4 ms at 20 Mb/s."""
    flow = net.send("h0", "h1", "100kB")
    assert (flow.bytes, flow.src, flow.dst) == (100_000, "h0.0", "h1.0")
    assert 0.036 < flow.fct < 0.12  # the shaper's bucket holds one frame of 3.6 ms


def test_pairs_are_sent_at_once_and_counted(net: emu.LiveLab) -> None:
    before = net.counters()
    flows = net.send({("h0", "h1"): 90_000, ("h3", "h2"): "50kB"})
    assert {pair: row.bytes for pair, row in flows.items()} == {("h0", "h1"): 90_000, ("h3", "h2"): 50_000}
    after = net.counters()
    frames = {port: after[port].packets - before[port].packets for port in ("t0:2", "o0:2", "t3:2", "o0:3")}
    assert 11 <= frames["t0:2"] == frames["o0:2"] <= 25  # payload and what opens the connection; nothing of the others
    assert 6 <= frames["t3:2"] == frames["o0:3"] <= 20
    assert after["h0:0"].configured == 20_000_000
    assert after["o0:2"].configured is None


def test_echoes_go_where_circuits_lead(net: emu.LiveLab) -> None:
    there = net.ping("h0", "h1")
    assert there is not None
    assert 0 < there < 0.5
    assert net.ping("h0", "h2", timeout=0.2) is None


def test_what_cannot_get_through_is_named(net: emu.LiveLab) -> None:
    with pytest.raises(
        emu.LabError, match=r"1 of 2 transfers .* h0\.0 -> h2\.0: 1000 of 1000 bytes to go after 0\.5 s"
    ):
        net.send({("h0", "h2"): 1000, ("h2", "h3"): 1000}, timeout=0.5)
    assert net.send("h0", "h1", 1000).bytes == 1000  # and nothing of it is left over


@pytest.mark.parametrize(
    ("pair", "size", "words"),
    [
        (("h0", "h9"), 1000, "no host or NIC 'h9'; it has h0:0 to h3:0"),
        (("h0:1", "h1"), 1000, "no host or NIC 'h0:1'"),
        (("h0", "h1"), "much", "h0 -> h1: .*much"),
    ],
)
def test_mistakes_are_bad_input(net: emu.LiveLab, pair: tuple[str, str], size: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(emu.InputError, match=words):
        net.send(*pair, size)


def test_a_command_runs_in_its_host(net: emu.LiveLab) -> None:
    assert "h2-eth0" in net.command("h2", "ip", "-brief", "link")
    with pytest.raises(emu.LabError, match="h2: false: status 1"):
        net.command("h2", "false")


# -- circuits ---------------------------------------------------------------------------------------------------------


def test_circuits_are_set_as_in_a_run(net: emu.LiveLab) -> None:
    change = net.set_circuits(CROSSED)
    assert change is not None
    assert change.outcome == "committed"
    assert 0.05 <= change.control_dark < 0.1
    assert net.set_circuits(CROSSED) is None
    assert net.path("h0", "h2") == ("h0:0", "t0:2", "o0:3", "t2:1")
    assert net.path("h0", "h1") is None
    assert net.send("h0", "h2", "10kB").fct < 0.1
    net.reset()
    assert net.path("h0", "h2") is None
    assert net.foreign_rules() == []


def test_circuits_that_no_ocs_can_hold_are_bad_input(net: emu.LiveLab) -> None:
    with pytest.raises(emu.InputError, match="more circuits name t0 than the 1 uplinks"):
        net.set_circuits({"o0": ["t0-t1", "t0-t2"]})


class Crossing:
    """A policy with a memory, which tells what it was asked."""

    name = "crossing"

    def __init__(self, net: emu.LiveLab) -> None:
        self.net = net
        self.asked: list[PolicyEvent] = []

    def known(self) -> tuple[()]:
        """See CircuitPolicy."""
        return ()

    def on(self, event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        """See CircuitPolicy."""
        self.asked.append(event)
        if not isinstance(event, Phase):
            return Keep("only phases bring demand")
        assert view.site_demand == {("t0", "t2"): 100_000}
        return Plan(self.net.matchings(CROSSED), reason="they cross")


def test_a_policy_of_ones_own_decides_in_ones_own_process(net: emu.LiveLab) -> None:
    policy = Crossing(net)
    demand = {("h0", "h2"): 100_000}
    run = net.run([(0.0, Announce("any", demand, slack=1.0)), (0.4, transfer("x", "h0", "h2"))], policy=policy)
    assert run.complete
    assert run.flows["x"].bytes == 100_000
    assert [(change.epoch, change.outcome) for change in run.changes] == [(1, "committed")]
    assert [(decision.outcome, decision.reason) for decision in run.decisions] == [
        ("plan", "they cross"),
        ("commit", ""),
    ]
    assert policy.asked == [Tick(), Phase("any", demand, 1.0), EpochResult("committed", 1)]
    assert net.circuits.lit == run.epoch.lit


def test_a_policys_exception_is_raised_where_it_was_called(net: emu.LiveLab) -> None:
    def policy(event: PolicyEvent, view: View, now: float) -> Keep:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        net.run([(0.0, Announce("any"))], policy=policy)
    assert net.send("h0", "h1", 1000).bytes == 1000


def test_a_policys_impossible_plan_is_bad_input(net: emu.LiveLab) -> None:
    def policy(event: PolicyEvent, view: View, now: float) -> Plan | Keep:
        return Plan({"o7": frozenset()}) if isinstance(event, Phase) else Keep("")

    with pytest.raises(emu.InputError, match=r"policy policy: .*o7"):
        net.run([(0.0, Announce("any"))], policy=policy)


# -- workloads --------------------------------------------------------------------------------------------------------


def test_a_scenarios_workload_runs(net: emu.LiveLab) -> None:
    """A ring over two ranks: each sends half of the 200 kB twice."""
    step = {"name": "sum", "phase": "one", "collective": "all-reduce", "algorithm": "ring", "ranks": [0, 1]}
    run = net.run({"kind": "collectives", "steps": [{**step, "size": "200kB"}]})
    assert run.complete
    assert run.late == 0
    (row,) = run.trace.collectives
    assert (row.kind, row.ranks, row.bytes) == ("all-reduce", 2, 200_000)
    assert sorted(flow.bytes for flow in run.trace.flows) == [100_000] * 4


class PingPong:
    """An orchestrator with a state: each byte count is answered by its half."""

    def __init__(self) -> None:
        self.size, self.heard = 40_000, 0

    def on(self, event: Event, now: float) -> Sequence[Action]:
        """See workloads.protocol.Orchestrator."""
        match event:
            case Start():
                return [transfer("0", "h0", "h1", self.size)]
            case Done() if self.heard < 3:
                self.heard, self.size = self.heard + 1, self.size // 2
                ends = ("h1", "h0") if self.heard % 2 else ("h0", "h1")
                return [transfer(str(self.heard), *ends, self.size)]
        return []


def test_an_orchestrator_of_ones_own_runs_in_ones_own_process(net: emu.LiveLab) -> None:
    mine = PingPong()
    run = net.run(mine)
    assert [(row.id, row.src, row.bytes) for row in run.trace.flows] == [
        ("0", "h0", 40_000),
        ("1", "h1", 20_000),
        ("2", "h0", 10_000),
        ("3", "h1", 5_000),
    ]
    assert mine.heard == 3


def test_what_is_not_over_in_time_has_failed(net: emu.LiveLab) -> None:
    began = time.monotonic()
    run = net.run([(0.0, transfer("lost", "h0", "h2"))], timeout=0.5)
    assert not run.complete
    assert [failure.task for failure in run.failures] == ["lost"]
    assert time.monotonic() - began < 5


def test_the_fabrics_own_policy_decides_without_another(lab: Open) -> None:
    """Two pods; the schedule lights their circuit at 200 ms."""
    two = {"pods": 2, "hosts_per_pod": 1, "uplinks": 1, "rate": "20Mbps", "reconfiguration": "50ms"}
    net = lab("hybrid", **two, schedule=[{"at": "200ms", "circuits": {"o0": ["t0-t1"]}}])
    run = net.run([(0.5, transfer("x", "h0", "h1"))])
    assert run.complete
    assert [(change.epoch, change.asked_at) for change in run.changes] == [(1, 0.2)]


def test_a_scaled_lab_answers_in_modelled_units(lab: Open) -> None:
    """100 Gb/s and 1 GB at sigma 1000 and beta 5000: 1 MB at 20 Mb/s takes 0.4 s, 80 ms of the model."""
    net = lab("fat-tree", k=2, rate="100Gbps", scale=(1000, 5000))
    flow = net.send("h0", "h1", "1GB")
    assert flow.bytes == 1_000_000_000
    assert 0.078 < flow.fct < 0.11
    with pytest.raises(emu.InputError, match=r"100 Gb/s, more than a lab can carry; give a rate, e\.g\. rate='20Mbps'"):
        lab("fat-tree", k=2, rate="100Gbps")


# -- its end ----------------------------------------------------------------------------------------------------------


def _first_process() -> int:
    return next(pid for pid in descendants(os.getpid()) if command_of(pid).startswith("unshare"))


def test_a_lab_that_was_killed_says_so_and_the_next_test_gets_another(lab: Open, emu_labs: LabPool) -> None:
    emu_labs.close()
    net = lab("hybrid", **PODS)
    os.kill(_first_process(), signal.SIGKILL)
    with pytest.raises(emu.LabError, match="the lab has ended"):
        net.send("h0", "h1", 1000)
    again = lab("hybrid", **PODS)
    assert again is not net
    assert again.send("h0", "h1", 1000).bytes == 1000


def test_an_interrupted_call_ends_the_lab(lab: Open, emu_labs: LabPool) -> None:
    """Its late answer would be taken for that of the next call."""
    net = lab("hybrid", **PODS)
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        net.run([(0.0, transfer("lost", "h0", "h2"))], timeout=5)
    assert not net.alive
    assert lab("hybrid", **PODS).send("h0", "h1", 1000).bytes == 1000


def test_a_closed_lab_leaves_no_process(emu_labs: LabPool) -> None:
    emu_labs.close()
    before = set(descendants(os.getpid()))
    with emu.open_lab("fat-tree", k=2, rate="20Mbps") as net:
        assert net.alive
        assert set(descendants(os.getpid())) - before
    assert not net.alive
    deadline = time.monotonic() + 5
    while set(descendants(os.getpid())) - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not set(descendants(os.getpid())) - before
    with pytest.raises(emu.LabError, match="the lab was closed"):
        net.ping("h0", "h1")
