"""What was decided about the circuits of a run, on what, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controllers.policies.protocol import DemandSample, EpochResult, Phase, PolicyEvent, PortFailed
from topologies.fabric import Port

Verdict = Literal["plan", "keep", "commit", "abort", "skip", "drain"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision, or the end of one.

    at: when, in modelled seconds. event: what it was decided on, e.g. `phase training`.
    slack: seconds until the fabric is needed, None where the event has none.
    outcome: `plan` (a change was planned), `keep`, `commit`, `abort`, `drain` (a change no longer waits for its
        circuits to be drained), or `skip`: while nothing was in flight, later circuits replaced these before anyone
        could have seen them.
    epoch: that is planned, kept or ended. reason: the policy's or the engine's.
    """

    at: float
    event: str
    slack: float | None
    outcome: Verdict
    epoch: int
    reason: str


def describe(event: PolicyEvent) -> str:
    """An event in the words of the record."""
    match event:
        case Phase(name):
            return f"phase {name}"
        case EpochResult(outcome, epoch):
            return f"epoch {epoch} {outcome}"
        case PortFailed(ocs, port):
            return f"port {Port(ocs, port)} failed"
        case DemandSample():
            return "demand sample"
        case _:
            return "tick"
