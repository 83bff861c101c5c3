"""The flow-level simulation: transfers as fluids, circuits with dark time, in the order of modelled time.

At one instant things happen in this order: bytes that arrive are reported, then circuits change, then timers fire and
computations end, and only then transfers that all of these released begin, together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from controllers.circuits import with_dark
from controllers.decisions import Decision
from controllers.epochs import Epoch, EpochChange
from controllers.loads import Load
from emu.crossing import Crossing, circuit_ports, core_ports
from emu.dispatch import Dispatcher
from emu.model.conditions import Conditions
from emu.model.lighting import Lighting
from emu.model.motion import SINGLE, Motion, Program
from emu.model.network import Network
from emu.model.rows import HostRows
from emu.model.shapes import shape_of
from emu.model.transfers import Route, Transfers
from emu.model.wholes import Wholes
from emu.records import Trace
from emu.stripes import loads
from topologies.fabric import Fabric, Port
from workloads.cluster import Cluster
from workloads.protocol import Collective, Endpoint, Orchestrator, TaskId, Transfer

_NEVER = float("inf")
_SAME_INSTANT = 1e-12
"""Instants that differ by less, relative to the time since zero, are one: sums in another order give both."""
_BYTE_NOISE = 1e-6
"""Less than this part of a byte is the noise of summing up, not a byte."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What a simulation had to do.

    instants: at which something happened. messages: that were received. whole: of these, those of collectives that ran
    without being simulated. rates: that were computed.
    """

    instants: int = 0
    messages: int = 0
    whole: int = 0
    rates: int = 0


NO_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A simulated run.

    carried: payload bytes by directed link, of all links.
    routes: by transfer that crossed the fabric and was finished, its stripes.
    changes: of circuits, those that began before the end, in order.
    decisions: what was decided about circuits, in order.
    """

    trace: Trace
    carried: Mapping[Port, int]
    routes: Mapping[TaskId, tuple[Route, ...]]
    network: Network
    changes: tuple[EpochChange, ...] = ()
    decisions: tuple[Decision, ...] = ()
    effort: Effort = NO_EFFORT


def simulate(
    fabric: Fabric,
    orchestrator: Orchestrator,
    cluster: Cluster,
    conditions: Conditions | None = None,
    *,
    whole: bool = False,
) -> Outcome:
    """Run a workload on a fabric to its end. Deterministic: the same arguments give the same rows.

    whole: collectives are not lowered to transfers. Their messages are simulated as arrays, or not at all where a
    collective's time is known without, and the trace has a row for each two hosts instead of one for each message.
    Times are the same.

    A transfer waits while no epoch gives it a path; once nothing can ever move again, those that still wait fail.
    Raises FabricError for endpoints that the fabric lacks, ValueError for a workload that waits for itself, and what
    `controllers.routes.routes` raises for circuits that it cannot route.
    """
    return _Simulation(fabric, orchestrator, cluster, conditions or Conditions(), whole).run()


class _Simulation:
    def __init__(
        self, fabric: Fabric, orchestrator: Orchestrator, cluster: Cluster, conditions: Conditions, whole: bool
    ) -> None:
        self._fabric, self._cluster, self._conditions = fabric, cluster, conditions
        efficiency = conditions.efficiency * conditions.transport.efficiency
        self._network = Network(fabric, conditions.initial, conditions.seed, efficiency)
        self._motion = self._new_motion()
        self._transfers = Transfers(fabric, self._network, self._motion, delays=conditions.delays)
        self._wholes = Wholes(self._network, self._motion, self._new_motion, conditions.alpha)
        self._dispatcher = Dispatcher(orchestrator, cluster, self._received, self._crossed, lambda _: whole)
        self._lighting = Lighting(conditions, fabric, self, self._loads)
        self._circuit_links = [self._network.number(port) for port in circuit_ports(fabric)]
        self._core_links = [self._network.number(port) for port in core_ports(fabric)]
        self._host_rows = HostRows(fabric)
        self._rank_nics = [self._network.nic(fabric.nics(end.host)[end.nic or 0]) for end in _ranks(cluster)]
        self._rank_hosts = _numbered([end.host for end in _ranks(cluster)])
        self._whole = whole
        self._now = 0.0
        self._collectives: dict[int, Collective] = {}
        self._owners: dict[TaskId, int] = {}
        self._owner = count(1)
        self._fruitless = 0
        self._instants = 0

    def _new_motion(self) -> Motion:
        conditions = self._conditions
        return Motion(self._network, conditions.alpha, conditions.delays, conditions.transport)

    def run(self) -> Outcome:
        self._dispatcher.start()
        self._lighting.keeper.start()
        self._settle()
        while not self._dispatcher.finished:
            then = self._next()
            if then == _NEVER:
                self._fail_waiting()
            else:
                self._pass(then)
            self._settle()
        self._dispatcher.close()
        return self._outcome()

    def _outcome(self) -> Outcome:
        trace, keeper, motion = self._dispatcher.trace, self._lighting.keeper, self._motion
        trace.complete = True
        bits = motion.streams.carried(self._now)
        carried = {port: round(each / 8) for port, each in zip(self._network.ports, bits.tolist(), strict=True)}
        whole = self._wholes.taken
        effort = Effort(self._instants, motion.received + whole, whole, motion.streams.computed)
        changes, decisions = tuple(keeper.changes), tuple(keeper.decisions)
        return Outcome(trace, carried, self._transfers.routes, self._network, changes, decisions, effort)

    # -- time ---------------------------------------------------------------------------------------------------------

    def _next(self) -> float:
        """The next instant at which anything happens; never, if only circuits go on to change and that helps nobody."""
        wake = self._dispatcher.next_wake
        traffic = min(self._motion.next_at(self._now), self._wholes.next_at, _NEVER if wake is None else wake)
        self._fruitless = self._fruitless + 1 if traffic == _NEVER else 0
        if self._fruitless > self._lighting.patience:
            return _NEVER
        return max(self._now, min(traffic, self._lighting.next_at))

    def _pass(self, then: float) -> None:
        """Let time pass until `then` and do what happens there, except starting transfers."""
        self._now = then
        self._instants += 1
        due = then * (1 + _SAME_INSTANT)
        self._motion.move(then, due)
        self._collect()
        for program in self._wholes.ended(due):
            self._end(program)
        self._change_circuits()
        self._dispatcher.wake(then)

    def _settle(self) -> None:
        """Start and stop what the dispatcher asks for now, until it asks for nothing."""
        while True:
            heard = self._change_circuits()
            started, collectives = self._dispatcher.ready(self._now), self._dispatcher.collectives()
            stopped = self._dispatcher.stopped()
            self._open(started)
            for collective in collectives:
                self._begin(collective)
            self._motion.enter(self._now)
            for task in stopped:
                self._forget(task)
            if not (self._collect() or heard or started or collectives or stopped):
                return
            self._motion.enter(self._now)

    def _collect(self) -> bool:
        """Report what has arrived; whether anything has."""
        arrivals, self._motion.arrivals = self._motion.arrivals, []
        finished, self._motion.finished = self._motion.finished, []
        for arrival in arrivals:
            self._wholes.over(-1 - arrival.tag)
            row = self._transfers.arrived(arrival, self._now)
            if row is not None:
                self._dispatcher.done(row.id, row, self._now)
        for program in finished:
            self._end(program)
        return bool(arrivals or finished)

    # -- circuits -----------------------------------------------------------------------------------------------------

    def _change_circuits(self) -> bool:
        """Tell the keeper what was announced, do what is due, and say what the orchestrator should hear."""
        keeper = self._lighting.keeper
        for announced in self._dispatcher.announced():
            keeper.announce(announced.phase, announced.demand, announced.slack, self._now)
        self._lighting.advance(self._now, self._now * (1 + _SAME_INSTANT))
        events = keeper.take_events()
        for event, at in events:
            self._dispatcher.tell(event, at)
        return bool(events)

    def detour(self, coming: Epoch, now: float) -> None:
        """Traffic takes other ways than circuits that `coming` does not keep."""
        between = with_dark(self._network.epoch, coming)
        self._wholes.wake_where(lambda program: self._rerouted(program, between), now)
        self._network.detour(coming)
        self._motion.reroute(now)

    def darken(self, coming: Epoch, now: float) -> None:
        """Circuits that `coming` does not keep go dark."""
        self._wholes.wake(self._network.leaving(coming), now)
        self._network.darken(coming)
        self._motion.streams.darkness_changed()

    def commit(self, coming: Epoch, dark: float, now: float) -> None:
        """The circuits of `coming` shine, after `dark` seconds; its routes hold."""
        self._wholes.wake_where(lambda program: self._rerouted(program, coming), now)
        self._motion.lit(dark, now)
        self._network.commit(coming)
        self._motion.reroute(now)

    def _rerouted(self, program: Program, coming: Epoch) -> bool:
        outside = ~program.local
        paths = self._network.paths_in(coming, program.src[outside], program.dst[outside])
        return not np.array_equal(paths, program.paths[outside])

    # -- transfers and collectives ------------------------------------------------------------------------------------

    def _open(self, transfers: Sequence[Transfer]) -> None:
        messages = self._transfers.prepare(transfers)
        for tag, message in messages.items() if self._whole else ():
            self._wholes.single(-1 - tag, message.src, message.dst, self._now)
        self._motion.send(messages, self._now)

    def _begin(self, collective: Collective) -> None:
        """Let a collective run, whole if it can."""
        group = list(collective.group)
        nics = np.array([self._rank_nics[rank] for rank in group], dtype=np.int64)
        hosts = np.array([self._rank_hosts[rank] for rank in group], dtype=np.int64)
        shape = shape_of(collective)
        local = hosts[shape.src] == hosts[shape.dst]
        program = self._motion.place(shape, nics[shape.src], nics[shape.dst], local)
        owner = next(self._owner)
        self._collectives[owner], self._owners[collective.id] = collective, owner
        self._wholes.start(program, owner, self._now)

    def _end(self, program: Program) -> None:
        self._wholes.over(program.owner)
        collective = self._collectives.pop(program.owner)
        del self._owners[collective.id]
        rows = self._host_rows.rows(collective, program, self._now)
        self._dispatcher.collective_done(collective.id, rows, self._now)

    def _forget(self, task: TaskId) -> None:
        """Stop a transfer or collective that was cancelled or failed."""
        for tag in self._transfers.forget(task, self._now):
            self._wholes.over(-1 - tag)
        owner = self._owners.pop(task, None)
        if owner is not None:
            if owner in self._motion.programs:
                self._motion.stop(self._motion.programs[owner], self._now)
            self._motion.finished = [program for program in self._motion.finished if program.owner != owner]
            self._wholes.over(owner)
            del self._collectives[owner]

    def _received(self, task: TaskId) -> int:
        """Payload bytes of a transfer or collective under way that have moved (those still travelling included)."""
        owner = self._owners.get(task)
        if owner is None:
            return self._transfers.received(task, self._now)
        if owner in self._wholes:
            self._wholes.wake_one(owner, self._now)
        program = self._motion.programs.get(owner)
        if program is None:  # it is over, and that was not told yet
            return int(next(one for one in self._motion.finished if one.owner == owner).shape.totals().sum())
        left = float(self._motion.lanes_left(program, self._now).sum())
        return int(program.shape.totals().sum()) - math.ceil(left - _BYTE_NOISE)

    def _crossed(self) -> Crossing:
        """Payload that circuits and core have carried so far."""
        bits = self._motion.streams.carried(self._now) + self._wholes.carried(self._now)
        return Crossing(round(bits[self._circuit_links].sum() / 8), round(bits[self._core_links].sum() / 8))

    def _loads(self) -> Iterator[Load]:
        """What still has to cross the fabric."""
        links = np.zeros(self._network.padding + 1, dtype=np.bool_)
        links[self._circuit_links] = True
        self._wholes.wake(links, self._now)
        with self._transfers.looking(self._now):
            yield from loads(self._fabric, self._dispatcher.outstanding())
        nics = self._fabric.all_nics
        for program in self._motion.programs.values():
            left = np.where(program.local, 0.0, self._motion.lanes_left(program, self._now))
            for lane in np.flatnonzero(left > _BYTE_NOISE).tolist():
                yield Load(nics[program.src[lane]], nics[program.dst[lane]], math.ceil(left[lane] - _BYTE_NOISE))

    def _fail_waiting(self) -> None:
        """Nothing will ever move again: fail the transfers that wait for a path."""
        self._fruitless = 0
        owners, tags = self._motion.streams.unreachable()
        if not owners.size:
            raise ValueError("the workload waits for itself: no transfer, computation or timer is left that could end")
        for owner, tag in zip(owners.tolist(), tags.tolist(), strict=True):
            self._dispatcher.failed(*self._failure(owner, tag), self._now)

    def _failure(self, owner: int, tag: int) -> tuple[TaskId, str]:
        """The task that cannot go on, and why."""
        if owner == SINGLE:
            task, src, dst = self._transfers.waiting(tag)
        else:
            program, task = self._motion.programs[owner], self._collectives[owner].id
            lane = int(program.shape.lanes(np.array([tag]))[0])
            nics = self._fabric.all_nics
            src, dst = nics[program.src[lane]], nics[program.dst[lane]]
        return task, (
            f"no path from {src} to {dst} in epoch {self._network.epoch.number}, "
            "and no circuits to come that would give one"
        )


def _ranks(cluster: Cluster) -> tuple[Endpoint, ...]:
    return cluster.endpoints(range(cluster.ranks))


def _numbered(names: list[str]) -> list[int]:
    """Equal names have equal numbers."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]
