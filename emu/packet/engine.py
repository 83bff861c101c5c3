"""The packet engine: runs an orchestrator's transfers as TCP through a lab, in modelled time.

While bytes are in flight, or a circuit change is under way, modelled time runs at wall/TDF. When the fabric is idle it
jumps to the next event (a timer, a computation's end, the moment at which the next circuit change must be handed over),
so that minutes of computation cost nothing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from emu.crossing import Crossing
from emu.dispatch import Dispatcher
from emu.packet.charging import Charges, Charging
from emu.packet.circuits import Circuits
from emu.packet.clock import ModelClock
from emu.packet.lanes import Lane, LaneKey, Lanes, Part
from emu.packet.loop import Loop
from emu.records import FlowRecord
from emu.scale import Scale
from emu.stripes import Stripe, loads, stripes
from topologies.fabric import Fabric
from workloads.cluster import Cluster
from workloads.protocol import Orchestrator, TaskId, Transfer

_DRAIN_POLL, _DRAIN_LIMIT = 0.001, 2.0
_PULSE = 0.25
STALL_LIMIT = 10.0
"""Wall seconds without a byte, nothing scheduled that could help, after which what is in flight has failed."""


@dataclass(slots=True)
class _Flight:
    """A transfer that was started: its parts (one per stripe), and how many are not over."""

    transfer: Transfer
    parts: list[Part]
    left: int
    own_lanes: list[LaneKey] = field(default_factory=list)
    opened: float | None = None


class PacketEngine:
    """One run of one orchestrator through open lanes."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        cluster: Cluster,
        fabric: Fabric,
        loop: Loop,
        lanes: Lanes,
        scale: Scale,
        charging: Charging,
        circuits: Circuits,
        pulse: Callable[[float], None] = lambda now: None,
        crossed: Callable[[], Crossing] = Crossing,
    ) -> None:
        """`pulse(now)` is called a few times a second: to show progress, and to raise if the lab has broken.

        `crossed()` says what port counters have seen cross the fabric; it is asked when a phase begins and ends.
        """
        self.dispatcher = Dispatcher(orchestrator, cluster, self._received, crossed)
        self.clock = ModelClock(scale.tdf)
        self.late_lanes = 0
        self._fabric, self._loop, self._lanes = fabric, loop, lanes
        self._scale, self._charging, self._circuits = scale, charging, circuits
        self._flights: dict[TaskId, _Flight] = {}
        self._charges = Charges()
        self._pulse = pulse
        self._progress = (0, time.monotonic())
        self._changes_seen = 0
        self._next_pulse = 0.0

    def run(self) -> None:
        """Run to the end of the workload; the rows are in `dispatcher.trace`, complete or not if interrupted."""
        with _quiet_memory():
            self.clock.start()
            self._circuits.use(self.clock, lambda: loads(self._fabric, self.dispatcher.outstanding()))
            self._loop.monitor(True)
            try:
                self.dispatcher.start()
                while not self._over():
                    self._step()
                self.dispatcher.trace.complete = not self.dispatcher.trace.failures
            finally:
                self._loop.monitor(False)
                self.dispatcher.close()
                self.dispatcher.trace.end = max(self.dispatcher.trace.end, self.clock.now())

    # -- time ------------------------------------------------------------

    def _over(self) -> bool:
        self._start_ready()
        return self.dispatcher.finished and not self._circuits.busy

    def _step(self) -> None:
        handover = None if self.dispatcher.finished else self._circuits.next_handover()
        waking = _earliest(self.dispatcher.next_wake, self._charges.next_end)
        target = _earliest(waking, handover)
        if target is not None and target > self.clock.now() and self._idle():
            self._jump(waking, target)
        limit = time.monotonic() + _PULSE
        self._loop.turn(limit if target is None else min(limit, self.clock.wall(target)))
        self._advance(handover)
        self._watch(waking, handover)

    def _jump(self, waking: float | None, target: float) -> None:
        """Go on to `target`; but circuits that would change several times before anyone wakes are laid once, now."""
        if waking is None or target == waking or not self._circuits.pass_over(waking):
            self.clock.jump(target)

    def _advance(self, handover: float | None) -> None:
        now = self.clock.now()
        if handover is not None and handover <= now and not self._circuits.busy:
            self._circuits.hand_over(self.clock)
        self._hear()
        for row in self._charges.due(now):
            self.dispatcher.done(row.id, row, now)
        self.dispatcher.wake(now)

    def _hear(self) -> bool:
        """Pass on what the workload announces, and what the circuits did; returns whether they did anything."""
        for announced in self.dispatcher.announced():
            self._circuits.announce(announced, self.clock.now())
        events = self._circuits.take_events()
        for event, at in events:
            self.dispatcher.tell(event, at)
        return bool(events)

    def _watch(self, waking: float | None, handover: float | None) -> None:
        """Let the lab's keeper look, and give up on transfers that stand still with nothing to come."""
        wall = time.monotonic()
        read, since = self._progress
        if self._lanes.bytes_read != read or not self._flights:
            self._progress, self._changes_seen = (self._lanes.bytes_read, wall), self._circuits.ended
        elif waking is not None or self._circuits_may_help(handover):
            self._progress = (read, wall)
        elif wall - since > STALL_LIMIT:
            for transfer_id in list(self._flights):
                flight = self._flights.get(transfer_id)
                if flight is not None:
                    reason = f"{flight.transfer.src} -> {flight.transfer.dst}: no byte for {STALL_LIMIT:g} s"
                    self.dispatcher.failed(transfer_id, reason, self.clock.now())
        if wall >= self._next_pulse:
            self._next_pulse = wall + _PULSE
            self._pulse(self.clock.now())

    def _circuits_may_help(self, handover: float | None) -> bool:
        coming = handover is not None or self._circuits.busy
        return coming and self._circuits.ended - self._changes_seen <= self._circuits.patience

    def _idle(self) -> bool:
        """Nothing in flight, nothing under way, and every byte acknowledged (so queues are empty too)."""
        if self._flights or self._circuits.busy:
            return False
        deadline = time.monotonic() + _DRAIN_LIMIT
        while self._lanes.unacknowledged():
            if time.monotonic() > deadline:
                return False
            self._loop.turn(time.monotonic() + _DRAIN_POLL)
        return True

    # -- transfers ------------------------------------------------------------

    def _start_ready(self) -> None:
        while True:
            for transfer_id in self.dispatcher.stopped():
                self._forget(transfer_id)
            heard = self._hear()
            ready = self.dispatcher.ready(self.clock.now())
            if not (ready or heard):
                return
            for transfer in ready:
                self._start(transfer)

    def _start(self, transfer: Transfer) -> None:
        parts = stripes(self._fabric, transfer)
        if self._charging.charges(self._scale.bytes(transfer.bytes)):
            rate = min(self._fabric.link(stripe.src).rate for stripe in parts)
            self._charges.add(transfer, self.clock.now(), self._charging.seconds(transfer.bytes, rate))
            return
        flight = self._flights[transfer.id] = _Flight(transfer, [], len(parts))
        for stripe in parts:
            part = Part(self._scale.bytes(stripe.bytes), lambda _: self._part_done(transfer.id))
            flight.parts.append(part)
            self._put(flight, part, stripe)

    def _put(self, flight: _Flight, part: Part, stripe: Stripe) -> None:
        transfer = flight.transfer
        fresh = transfer.connection == "new"
        name = f"{transfer.channel}#{transfer.id}" if fresh else transfer.channel
        key = LaneKey(stripe.src, stripe.dst, name)
        lane = self._lanes.get(key)
        if lane is not None:
            self._lanes.send(lane, part)
            return
        if fresh:
            flight.own_lanes.append(key)
            flight.opened = time.monotonic()  # a new connection's set-up counts
        else:
            self.late_lanes += 1
        self._lanes.open(key, lambda lane: self._send_late(lane, [part]))

    def _send_late(self, lane: Lane, parts: Iterable[Part]) -> None:
        """Send what was not cancelled while the lane opened."""
        for part in parts:
            if not part.cancelled:
                self._lanes.send(lane, part)

    def _part_done(self, transfer_id: TaskId) -> None:
        flight = self._flights[transfer_id]
        flight.left -= 1
        if flight.left == 0:
            del self._flights[transfer_id]
            for key in flight.own_lanes:
                self._lanes.close(key)
            row = self._row(flight)
            self.dispatcher.done(transfer_id, row, max(row.end, self.dispatcher.trace.end))
            self._start_ready()

    def _row(self, flight: _Flight) -> FlowRecord:
        transfer, parts = flight.transfer, flight.parts
        start = min(part.start for part in parts) if flight.opened is None else flight.opened
        return FlowRecord(
            id=transfer.id,
            collective=transfer.collective,
            phase=transfer.phase,
            src=str(transfer.src),
            dst=str(transfer.dst),
            bytes=transfer.bytes,
            start=self._modelled(start),
            first_byte=self._modelled(min(part.first_byte for part in parts)),
            end=self._modelled(max(part.end for part in parts)),
            retransmits=sum(part.retransmits for part in parts),
            rtt=max(part.rtt for part in parts) / self._scale.tdf,
        )

    def _modelled(self, wall: float) -> float:
        """Modelled time of a wall instant since the last jump; a flight never spans a jump."""
        return self.clock.now() - (time.monotonic() - wall) / self._scale.tdf

    def _received(self, transfer_id: TaskId) -> int:
        """Modelled bytes of a transfer that have arrived."""
        flight = self._flights.get(transfer_id)
        if flight is None:
            return 0
        read = sum(part.bytes - part.unread for part in flight.parts)
        return min(flight.transfer.bytes, round(read * self._scale.sigma))

    def _forget(self, transfer_id: TaskId) -> None:
        """Stop a cancelled transfer: its lanes are closed, for bytes already in a stream cannot be taken back."""
        flight = self._flights.pop(transfer_id, None)
        self._charges.forget(transfer_id)
        if flight is None:
            return
        for key in flight.own_lanes:
            self._lanes.close(key)
        for part in flight.parts:
            part.cancelled = True
            if part.lane is not None and part.unread and not part.lane.closed:
                self._restart(part.lane)

    def _restart(self, lane: Lane) -> None:
        """Reopen a kept lane without the parts that were cancelled; what else was on it starts again."""
        others = [part for part in lane.reading if not part.cancelled]
        for part in others:
            part.unsent = part.unread = part.bytes
        self._lanes.close(lane.key)
        self._lanes.open(lane.key, lambda fresh: self._send_late(fresh, others))


def lane_keys(fabric: Fabric, transfers: Iterable[Transfer]) -> Iterator[LaneKey]:
    """The kept connections that these transfers will use."""
    for transfer in transfers:
        if transfer.connection == "kept" and transfer.src.host != transfer.dst.host:
            for stripe in stripes(fabric, transfer):
                yield LaneKey(stripe.src, stripe.dst, transfer.channel)


def _earliest(*instants: float | None) -> float | None:
    return min((instant for instant in instants if instant is not None), default=None)


@contextmanager
def _quiet_memory() -> Iterator[None]:
    """No garbage collection inside: a pause would show up as latency of the fabric."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
