"""The workload run through the model before it runs as packets: what is ideal, and which connections it will use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from emu.model.conditions import Conditions
from emu.model.ideal import Prediction, ideal
from emu.packet.engine import lane_keys
from emu.packet.lanes import LaneKey
from topologies.fabric import Fabric
from workloads.cluster import Cluster
from workloads.collectives import lower
from workloads.protocol import Action, Collective, Event, Orchestrator, Run, Task, Transfer


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The ideal run, and the kept connections of every transfer in it."""

    prediction: Prediction
    lanes: frozenset[LaneKey]


def rehearse(fabric: Fabric, orchestrator: Orchestrator, cluster: Cluster, conditions: Conditions) -> Rehearsal:
    """Use an orchestrator up in the model."""
    watched = _Watched(orchestrator)
    prediction = ideal(fabric, watched, cluster, conditions)
    transfers = (transfer for task in watched.tasks for transfer in _transfers(task, cluster))
    return Rehearsal(prediction, frozenset(lane_keys(fabric, transfers)))


@dataclass
class _Watched:
    """An orchestrator whose tasks are remembered."""

    orchestrator: Orchestrator
    tasks: list[Task] = field(default_factory=list)

    def on(self, event: Event, now: float) -> Sequence[Action]:
        actions = self.orchestrator.on(event, now)
        self.tasks += [action.task for action in actions if isinstance(action, Run)]
        return actions


def _transfers(task: Task, cluster: Cluster) -> tuple[Transfer, ...]:
    if isinstance(task, Transfer):
        return (task,)
    return lower(task, cluster) if isinstance(task, Collective) else ()
