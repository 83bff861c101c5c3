"""Circuits that a policy changes while a workload runs: on what it announces, and while nothing is in flight."""

from __future__ import annotations

import time
from unittest.mock import patch

import pytest

from emu.packet import engine as packet_engine
from tests.lab.topologies.bench import MTU, Bench, Script, on_bench
from topologies.fabric import Port
from workloads.protocol import Announce, Endpoint, EpochCommitted, EpochKept, Failed, Run, Transfer

pytestmark = pytest.mark.lab

ISLANDS = {
    "kind": "hybrid",
    "pods": 4,
    "hosts_per_pod": 1,
    "uplinks": 1,
    "rate": "20Mbps",
    "reconfiguration": "300ms",
    "circuits": {"o0": ["t0-t1", "t2-t3"]},
}
"""ToR i is at OCS port i + 1."""
CROSSED = {"o0": ["t0-t2", "t1-t3"]}
SIZE = 100_000
"""Bytes: 40 ms."""


def send(name: str, src: int, dst: int) -> Run:
    """A transfer over a connection of its own, opened when it begins."""
    return Run(Transfer(name, Endpoint(f"h{src}"), Endpoint(f"h{dst}"), SIZE, connection="new"))


@on_bench(**ISLANDS, policy={"kind": "templates", "margin": "50ms", "phases": {"any": CROSSED}})
def test_a_phase_gets_its_circuits_if_there_is_time_for_them(bench: Bench) -> None:
    """One announcement leaves too little slack and changes nothing, the next leaves enough; packets show both."""
    script = Script(
        (0.0, send("before", 0, 1)),
        (0.5, Announce("any", {("h0", "h2"): SIZE}, slack=0.3)),
        (0.6, send("between", 0, 1)),
        (1.5, Announce("any", {("h0", "h2"): SIZE}, slack=1.0)),
        (2.5, send("after", 0, 2)),
    )
    bench.listen()
    before = bench.sent()
    done = bench.run(script, bench.built.policy)
    assert done.trace.complete
    assert {row.id: row.bytes for row in done.trace.flows} == dict.fromkeys(("before", "between", "after"), SIZE)
    (kept,) = script.told(EpochKept)
    assert "slack 300 ms" in kept.reason
    assert script.told(EpochCommitted) == [EpochCommitted(1)]
    (change,) = done.changes
    assert change.outcome == "committed"
    assert 1.5 < change.asked_at <= change.dark_at
    assert change.lit_at < 2.5
    assert change.control_dark >= 0.3
    assert [(decision.outcome, decision.slack) for decision in done.decisions] == [
        ("keep", 0.3),
        ("plan", 1.0),
        ("commit", None),
    ]
    after = bench.sent()
    into = {tor: after[Port("o0", tor + 1)] - before[Port("o0", tor + 1)] for tor in range(4)}
    assert into[1] >= 2 * (SIZE // MTU)
    assert into[2] >= SIZE // MTU
    assert into[3] == 0
    assert bench.lab.control.foreign_rules() == []


@on_bench(**ISLANDS, schedule={"period": "1s", "matchings": [CROSSED, ISLANDS["circuits"]]})
def test_turns_that_nobody_sees_are_laid_once(bench: Bench) -> None:
    """Twenty modelled seconds without traffic take hardly any wall time, and end with the circuits of their end."""
    script = Script((20.5, send("late", 0, 2)))
    bench.listen()
    began = time.monotonic()
    done = bench.run(script, bench.built.policy)
    assert time.monotonic() - began < 6
    (row,) = done.trace.flows
    assert 20.5 <= row.start < row.end < 20.9
    assert [(change.epoch, change.asked_dark) for change in done.changes[:3]] == [(1, 0.3), (20, 0.0), (21, 0.3)]
    assert done.changes[2].asked_at == 20.0
    assert [decision.epoch for decision in done.decisions if decision.outcome == "skip"] == [20]
    assert {change.outcome for change in done.changes} == {"committed"}


@on_bench(**ISLANDS, schedule={"period": "400ms", "matchings": [CROSSED, {"o0": ["t0-t3", "t1-t2"]}]})
def test_circuits_that_go_around_for_ever_do_not_keep_a_stalled_transfer_alive(bench: Bench) -> None:
    """Its circuit is gone for good: when every matching has come without a byte, it fails, and the run ends."""
    lost = Transfer("lost", Endpoint("h0"), Endpoint("h1"), SIZE)
    bench.open_for(lost)
    script = Script((1.0, Run(lost)))
    with patch.object(packet_engine, "STALL_LIMIT", 0.5):
        done = bench.run(script, bench.built.policy)
    (failed,) = script.told(Failed)
    assert failed.task.id == "lost"
    assert "no byte for 0.5 s" in failed.reason
    assert not done.trace.complete
    assert len(done.changes) > len(bench.built.policy.known())
    assert done.trace.end < 10
