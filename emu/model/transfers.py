"""Transfers as single messages: spread over the NICs of their hosts, and over when all their stripes have arrived."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from emu.model.motion import Arrival, Message, Motion
from emu.model.network import Network, Path
from emu.records import FlowRecord
from emu.stripes import Stripe, stripes
from topologies.fabric import Fabric, Port
from workloads.protocol import TaskId, Transfer

_BYTE_NOISE = 1e-6
"""Less than this part of a byte is the noise of summing up, not a byte."""


@dataclass(frozen=True, slots=True)
class Route:
    """What one stripe of a finished transfer moved, and the links that its last byte took (none if it moved none)."""

    bytes: int
    path: Path


@dataclass(slots=True)
class _Moving:
    """A transfer under way: its stripes by tag, the routes of those that have arrived, and what was seen of them."""

    transfer: Transfer
    stripes: dict[int, Stripe]
    waits: int
    start: float = math.inf
    first_byte: float = math.inf
    routes: dict[int, Route] = field(default_factory=dict)


class Transfers:
    """The transfers under way in a motion.

    routes: by transfer that is over, its stripes.
    """

    def __init__(self, fabric: Fabric, network: Network, motion: Motion, *, delays: bool) -> None:
        self.routes: dict[TaskId, tuple[Route, ...]] = {}
        self._fabric, self._network, self._motion, self._delays = fabric, network, motion, delays
        self._moving: dict[TaskId, _Moving] = {}
        self._transfer_of: dict[int, TaskId] = {}
        self._tags = count()
        self._seen: dict[int, float] | None = None

    def prepare(self, transfers: Sequence[Transfer]) -> dict[int, Message]:
        """The messages of transfers that are under way from now on, by tag. Raises FabricError for impossible ends."""
        messages: dict[int, Message] = {}
        for transfer in transfers:
            moving = self._moving[transfer.id] = _Moving(transfer, {}, 0)
            for stripe in stripes(self._fabric, transfer):
                tag = next(self._tags)
                messages[tag] = self._message(transfer, stripe)
                moving.stripes[tag] = stripe
                moving.waits += 1
                self._transfer_of[tag] = transfer.id
        return messages

    def arrived(self, arrival: Arrival, now: float) -> FlowRecord | None:
        """A stripe has arrived; the transfer's row if it was the last one."""
        task = self._transfer_of.pop(arrival.tag)
        moving, message = self._moving[task], self._motion.messages.pop(arrival.tag)
        moving.start = min(moving.start, message.start)
        if not math.isnan(arrival.first):
            moving.first_byte = min(moving.first_byte, arrival.first)
        links = tuple(int(link) for link in arrival.path if link < self._network.padding)
        moving.routes[arrival.tag] = Route(moving.stripes[arrival.tag].bytes, links)
        moving.waits -= 1
        if moving.waits:
            return None
        del self._moving[task]
        self.routes[task] = tuple(moving.routes[tag] for tag in moving.stripes)
        return _row(moving, now)

    def forget(self, task: TaskId, now: float) -> list[int]:
        """Stop a transfer; returns the tags of its stripes that were under way, none if it is not."""
        moving = self._moving.pop(task, None)
        if moving is None:
            return []
        tags = [tag for tag in moving.stripes if self._transfer_of.pop(tag, None) is not None]
        self._motion.stop_messages(tags, now)
        return tags

    def received(self, task: TaskId, now: float) -> int:
        """Payload bytes of a transfer that have moved, those still travelling included."""
        moving = self._moving.get(task)
        if moving is None:
            return 0
        flowing = self._motion.left(now) if self._seen is None else self._seen
        left = 0.0
        for tag, stripe in moving.stripes.items():
            message = self._motion.messages.get(tag)
            if message is not None and not message.sent:
                left += flowing.get(tag, 8.0 * stripe.bytes)
        return moving.transfer.bytes - math.ceil(left / 8 - _BYTE_NOISE)

    def waiting(self, tag: int) -> tuple[TaskId, Port, Port]:
        """A stripe's transfer and NICs."""
        task = self._transfer_of[tag]
        stripe = self._moving[task].stripes[tag]
        return task, stripe.src, stripe.dst

    @contextmanager
    def looking(self, now: float) -> Iterator[None]:
        """While many transfers are asked for what they have received at one instant."""
        self._seen = self._motion.left(now)
        try:
            yield
        finally:
            self._seen = None

    def _message(self, transfer: Transfer, stripe: Stripe) -> Message:
        kept = transfer.connection == "kept"
        src, dst = self._network.nic(stripe.src), self._network.nic(stripe.dst)
        extra = 0.0 if kept or not self._delays else self._round_trip(src, dst)
        return Message(src, dst, 8.0 * stripe.bytes, transfer.channel, kept, extra)

    def _round_trip(self, src: int, dst: int) -> float:
        ways = np.array([src, dst]), np.array([dst, src])
        return float(self._network.travel(self._network.paths(*ways)).sum())


def _row(moving: _Moving, now: float) -> FlowRecord:
    transfer = moving.transfer
    return FlowRecord(
        transfer.id,
        transfer.collective,
        transfer.phase,
        str(transfer.src),
        str(transfer.dst),
        transfer.bytes,
        moving.start,
        min(moving.first_byte, now),
        now,
    )
