"""What a perfect transport would achieve: the ideal that measured times are held against.

The workload is run through the fluid model, so contention that the routes cause is part of a collective's ideal; a
flow's ideal is the flow alone on its path. The bytes that each link should carry come with it, by the routes and
circuits that held when the bytes moved: measured port counters that differ show traffic on a wrong path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from controllers.decisions import Decision
from controllers.epochs import EpochChange
from emu.model.conditions import Conditions
from emu.model.engine import NO_EFFORT, Effort, Outcome, simulate
from emu.model.maxmin import fill, padded
from emu.model.network import Network
from emu.model.transfers import Route
from emu.records import Trace
from topologies.fabric import Fabric, Port
from workloads.cluster import Cluster
from workloads.protocol import Orchestrator, TaskId


@dataclass(frozen=True, slots=True)
class Prediction:
    """The ideal run of a workload on a fabric.

    trace: the rows of that run, as every engine writes them.
    link_bytes: payload bytes by directed link (its transmitting port), of all links, those that carry none included.
    fct: by transfer over the fabric, the seconds that it would take alone, on the path that its last byte took.
    changes: of circuits, in order.
    decisions: what was decided about circuits, in order.
    effort: what the simulation had to do.
    """

    trace: Trace
    link_bytes: Mapping[Port, int]
    fct: Mapping[TaskId, float]
    changes: tuple[EpochChange, ...] = ()
    decisions: tuple[Decision, ...] = ()
    effort: Effort = NO_EFFORT

    @property
    def cct(self) -> dict[TaskId, float]:
        """By collective, its ideal completion time in seconds, the workload's own contention included."""
        return {row.id: row.cct for row in self.trace.collectives}

    @property
    def phases(self) -> dict[str, float]:
        """By phase, the ideal seconds from its first start to its last end."""
        return {name: row.end - row.start for name, row in self.trace.phases.items()}


def ideal(
    fabric: Fabric,
    orchestrator: Orchestrator,
    cluster: Cluster,
    conditions: Conditions | None = None,
    *,
    whole: bool = False,
) -> Prediction:
    """Predict a run. The orchestrator is used up: it must be a fresh one. Raises what `simulate` raises.

    whole: as for `simulate`; `fct` then has single transfers only.
    """
    conditions = conditions or Conditions()
    outcome = simulate(fabric, orchestrator, cluster, conditions, whole=whole)
    alone = _alone(outcome, conditions)
    return Prediction(outcome.trace, outcome.carried, alone, outcome.changes, outcome.decisions, outcome.effort)


def drain_time(paths: list[tuple[int, ...]], sizes: list[float], network: Network) -> float:
    """Seconds until streams of `sizes` payload bits on `paths` are all drained, nobody else on their links."""
    matrix = padded(paths, network.padding)
    left, total = np.array(sizes), 0.0
    while left.size:
        rate = fill(matrix, network.capacities)
        step = float((left / rate).min())
        total += step
        left = left - rate * step
        going = left > np.array(sizes).max() * 1e-12
        left, matrix = left[going], matrix[going]
    return total


def _alone(outcome: Outcome, conditions: Conditions) -> dict[TaskId, float]:
    """By transfer: its time alone. Equal transfers on equal paths are computed once."""
    known = {routes: _transfer_time(routes, outcome.network, conditions) for routes in set(outcome.routes.values())}
    return {transfer: known[routes] for transfer, routes in outcome.routes.items()}


def _transfer_time(routes: tuple[Route, ...], network: Network, conditions: Conditions) -> float:
    moving = [route for route in routes if route.path and route.bytes]
    drained = drain_time([route.path for route in moving], [8.0 * route.bytes for route in moving], network)
    paths = padded([route.path for route in moving], network.padding).astype(np.int32)
    travel = float(network.travel(paths).max(initial=0.0)) if conditions.delays else 0.0
    return conditions.alpha + drained + travel
