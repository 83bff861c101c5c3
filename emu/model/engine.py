"""The flow-level simulation: transfers as fluids, circuits with dark time, in the order of modelled time.

At one instant things happen in this order: bytes that arrive are reported, then circuits change, then timers fire and
computations end, and only then transfers that all of these released begin, together.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from controllers.decisions import Decision
from controllers.epochs import EpochChange
from emu.crossing import Crossing, circuit_ports, core_ports
from emu.dispatch import Dispatcher
from emu.model.conditions import Conditions
from emu.model.fluid import Connection, Fluid, Stream
from emu.model.lighting import Lighting
from emu.model.network import Network, Path
from emu.records import FlowRecord, Trace
from emu.stripes import Stripe, loads, stripes
from topologies.fabric import Fabric, Port
from workloads.cluster import Cluster
from workloads.protocol import Orchestrator, TaskId, Transfer

_NEVER = float("inf")
_SAME_INSTANT = 1e-12
"""Instants that differ by less, relative to the time since zero, are one: sums in another order give both."""

_BYTE_NOISE = 1e-6
"""Less than this part of a byte is the noise of summing up, not a byte."""


@dataclass(slots=True)
class _Moving:
    """A transfer under way and its streams."""

    transfer: Transfer
    streams: tuple[Stream, ...]
    waits: int
    start: float = _NEVER
    first_byte: float = _NEVER


@dataclass(frozen=True, slots=True)
class Route:
    """What one stripe of a finished transfer moved, and the links that its last byte took (none if it moved none)."""

    bytes: int
    path: Path


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


def simulate(
    fabric: Fabric, orchestrator: Orchestrator, cluster: Cluster, conditions: Conditions | None = None
) -> Outcome:
    """Run a workload on a fabric to its end. Deterministic: the same arguments give the same rows.

    A transfer waits while no epoch gives it a path; once nothing can ever move again, those that still wait fail.
    Raises FabricError for endpoints that the fabric lacks, ValueError for a workload that waits for itself, and what
    `controllers.routes.routes` raises for circuits that it cannot route.
    """
    return _Simulation(fabric, orchestrator, cluster, conditions or Conditions()).run()


@dataclass(order=True, slots=True)
class _Appointment:
    """Something that happens to a stream at an instant, however the rates change."""

    at: float
    order: int
    stream: Stream = field(compare=False)
    what: Callable[[Stream], None] = field(compare=False)


class _Simulation:
    def __init__(self, fabric: Fabric, orchestrator: Orchestrator, cluster: Cluster, conditions: Conditions) -> None:
        self._fabric = fabric
        self._conditions = conditions
        self._network = Network(fabric, conditions.initial, conditions.seed, conditions.efficiency)
        self._fluid = Fluid(self._network)
        self._dispatcher = Dispatcher(orchestrator, cluster, self._received, self._crossed)
        self._circuit_links = [self._network.number(port) for port in circuit_ports(fabric)]
        self._core_links = [self._network.number(port) for port in core_ports(fabric)]
        self._now = 0.0
        self._moving: dict[TaskId, _Moving] = {}
        self._queues: dict[Connection, deque[Stream]] = {}
        self._entering: list[Stream] = []
        self._appointments: list[_Appointment] = []
        self._order = count()
        self._lighting = Lighting(
            conditions, self._network, self._fluid, lambda: loads(fabric, self._dispatcher.outstanding())
        )
        self._fruitless = 0
        self._routes: dict[TaskId, tuple[Route, ...]] = {}

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
        self._dispatcher.trace.complete = True
        carried = {port: round(bits / 8) for port, bits in zip(self._network.ports, self._fluid.carried(), strict=True)}
        keeper = self._lighting.keeper
        return Outcome(
            self._dispatcher.trace, carried, self._routes, self._network, tuple(keeper.changes), tuple(keeper.decisions)
        )

    # -- time ---------------------------------------------------------------------------------------------------------

    def _next(self) -> float:
        """The next instant at which anything happens; never, if only circuits go on to change and that helps nobody."""
        wake = self._dispatcher.next_wake
        traffic = min(
            self._fluid.next_end(self._now),
            self._appointments[0].at if self._appointments else _NEVER,
            _NEVER if wake is None else wake,
        )
        self._fruitless = self._fruitless + 1 if traffic == _NEVER else 0
        if self._fruitless > self._lighting.patience:
            return _NEVER
        return max(self._now, min(traffic, self._lighting.next_at))

    def _pass(self, then: float) -> None:
        """Let time pass until `then` and do what happens there, except starting transfers."""
        drained = self._fluid.advance(self._now, then)
        self._now = then
        for stream in drained:
            self._drained(stream)
        due = then * (1 + _SAME_INSTANT)
        while self._appointments and self._appointments[0].at <= due:
            appointment = heapq.heappop(self._appointments)
            if not appointment.stream.over:
                appointment.what(appointment.stream)
        self._change_circuits()
        self._dispatcher.wake(then)

    def _settle(self) -> None:
        """Start and stop what the dispatcher asks for now, until it asks for nothing."""
        while True:
            heard = self._change_circuits()
            started, stopped = self._dispatcher.ready(self._now), self._dispatcher.stopped()
            for transfer in started:
                self._open(transfer)
            self._fluid.add([stream for stream in self._entering if not stream.over])
            self._entering.clear()
            for transfer_id in stopped:
                self._forget(transfer_id)
            if not (heard or started or stopped):
                return

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

    # -- transfers ----------------------------------------------------------------------------------------------------

    def _open(self, transfer: Transfer) -> None:
        """Put a transfer's stripes on their connections; the first of each connection begins."""
        channel = transfer.id if transfer.connection == "new" else transfer.channel
        streams = tuple(
            Stream(
                transfer.id,
                stripe,
                Connection(stripe.src, stripe.dst, transfer.connection, channel),
                8.0 * stripe.bytes,
            )
            for stripe in stripes(self._fabric, transfer)
        )
        self._moving[transfer.id] = _Moving(transfer, streams, len(streams))
        for stream in streams:
            queue = self._queues.setdefault(stream.connection, deque())
            queue.append(stream)
            if len(queue) == 1:
                self._begin(stream)

    def _begin(self, stream: Stream) -> None:
        """The sender turns to a stream: its connection is free."""
        moving = self._moving[stream.transfer]
        moving.start = min(moving.start, self._now)
        wait = self._conditions.alpha
        if self._conditions.delays and moving.transfer.connection == "new":
            wait += self._round_trip(stream.stripe)
        self._after(wait, stream, self._entering.append)

    def _drained(self, stream: Stream) -> None:
        """The sender has written a stream's last byte: its connection goes on, the byte travels."""
        self._leave(stream)
        self._after(self._travel(stream), stream, self._arrived)

    def _leave(self, stream: Stream) -> None:
        """Give up a stream's place on its connection; if it was the first, the next one begins."""
        queue = self._queues[stream.connection]
        was_first = queue[0] is stream
        queue.remove(stream)
        if not queue:
            del self._queues[stream.connection]
        elif was_first:
            self._begin(queue[0])

    def _arrived(self, stream: Stream) -> None:
        """The receiver has a stream's last byte; a transfer is over when it has those of all stripes."""
        stream.over = True
        moving = self._moving[stream.transfer]
        moving.waits -= 1
        if moving.waits == 0:
            del self._moving[stream.transfer]
            self._routes[stream.transfer] = tuple(Route(s.stripe.bytes, s.path or ()) for s in moving.streams)
            self._dispatcher.done(stream.transfer, self._row(moving), self._now)

    def _row(self, moving: _Moving) -> FlowRecord:
        transfer = moving.transfer
        moved = [stream for stream in moving.streams if not math.isnan(stream.first)]
        first_byte = min((stream.first + self._travel(stream) for stream in moved), default=self._now)
        return FlowRecord(
            transfer.id,
            transfer.collective,
            transfer.phase,
            str(transfer.src),
            str(transfer.dst),
            transfer.bytes,
            moving.start,
            first_byte,
            self._now,
        )

    def _forget(self, transfer_id: TaskId) -> None:
        """Stop a transfer that was cancelled or failed."""
        moving = self._moving.pop(transfer_id, None)
        if moving is None:
            return
        for stream in moving.streams:
            stream.over = True
            self._fluid.remove([stream])
            if stream in self._queues.get(stream.connection, ()):
                self._leave(stream)

    def _received(self, transfer_id: TaskId) -> int:
        """Payload bytes of a transfer under way that have moved (those still travelling included)."""
        moving = self._moving.get(transfer_id)
        if moving is None:
            return 0
        left = sum(self._fluid.left(stream) for stream in moving.streams)
        return moving.transfer.bytes - math.ceil(left / 8 - _BYTE_NOISE)

    def _crossed(self) -> Crossing:
        """Payload that circuits and core have carried so far."""
        bits = self._fluid.carried()
        return Crossing(round(bits[self._circuit_links].sum() / 8), round(bits[self._core_links].sum() / 8))

    def _fail_waiting(self) -> None:
        """Nothing will ever move again: fail the transfers that wait for a path."""
        self._fruitless = 0
        waiting = list(self._fluid.streams)
        if not waiting:
            raise ValueError("the workload waits for itself: no transfer, computation or timer is left that could end")
        for stream in waiting:
            reason = (
                f"no path from {stream.stripe.src} to {stream.stripe.dst} in epoch {self._network.epoch.number}, "
                "and no circuits to come that would give one"
            )
            self._dispatcher.failed(stream.transfer, reason, self._now)

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _after(self, wait: float, stream: Stream, what: Callable[[Stream], None]) -> None:
        if wait > 0:
            heapq.heappush(self._appointments, _Appointment(self._now + wait, next(self._order), stream, what))
        else:
            what(stream)

    def _travel(self, stream: Stream) -> float:
        """Seconds from a bit's leaving to its arrival on a stream's path."""
        return self._network.delay(stream.path) if self._conditions.delays and stream.path else 0.0

    def _round_trip(self, stripe: Stripe) -> float:
        ways = (self._network.path(stripe.src, stripe.dst), self._network.path(stripe.dst, stripe.src))
        return sum(self._network.delay(way) for way in ways if way)
