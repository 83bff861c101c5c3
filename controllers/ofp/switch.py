"""One connected switch: sending to it, and getting each reply to whoever waits for it.

A reply has the transaction id (xid) of its request, and so has an error message. Whoever sends registers the ids that
it used in an Inbox and takes what arrives there, with a deadline. A lost connection arrives in every inbox.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from controllers.channel import Flows
from controllers.ofp.flows import read_entry, request_flows
from controllers.ryu_api import hub


class SwitchError(Exception):
    """A switch is lost, answered with an error, or did not answer in time."""

    def __init__(self, dpid: int, reason: str) -> None:
        super().__init__(f"switch {dpid}: {reason}")
        self.dpid = dpid
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Arrival:
    """A reply and when it was handled (CLOCK_MONOTONIC, ns); or a failure, and then no message."""

    at_ns: int
    message: Any
    failure: str | None = None


def deadline_in(seconds: float) -> int:
    """The instant so many seconds from now, CLOCK_MONOTONIC in ns."""
    return time.monotonic_ns() + round(seconds * 1e9)


class Inbox:
    """What arrives for some transaction ids. A context manager: leave it to stop listening."""

    def __init__(self, switch: Switch, xids: Iterable[int]) -> None:
        self._switch = switch
        self.xids = frozenset(xids)
        self._queue = hub.Queue()

    def __enter__(self) -> Inbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def put(self, arrival: Arrival) -> None:
        """Called by the application's event handlers."""
        self._queue.put(arrival)

    def take(self, deadline_ns: int, what: str) -> Arrival:
        """The next reply. Raises SwitchError for an error message, a lost connection, or at the deadline."""
        left = max(0.0, (deadline_ns - time.monotonic_ns()) / 1e9)
        try:
            arrival: Arrival = self._queue.get(timeout=left)
        except hub.QueueEmpty:
            raise SwitchError(self._switch.dpid, f"no {what} in time") from None
        if arrival.failure is not None:
            raise SwitchError(self._switch.dpid, arrival.failure)
        return arrival

    def close(self) -> None:
        """Stop listening."""
        self._switch.forget(self)


class Switch:
    """A datapath of the library that has finished its handshake."""

    def __init__(self, datapath: Any) -> None:  # noqa: ANN401
        self.datapath = datapath
        self.dpid: int = datapath.id
        self.lost: str | None = None
        self._inboxes: dict[int, Inbox] = {}
        self._ignored: set[int] = set()
        # Ids of our own: the library counts without a lock, and threads would now and then get the same number.
        self._xids = itertools.count(1)
        self.bundle_ids = itertools.count(1)

    # -- sending ------------------------------------------------------------------------------------------------------

    def encode(self, messages: Sequence[Any]) -> tuple[bytes, list[int]]:
        """Messages as one piece of bytes (one hand-over to the sending thread instead of many), and their ids."""
        parts, xids = [], []
        for message in messages:
            xid = next(self._xids)
            message.set_xid(xid)
            message.serialize()
            parts.append(bytes(message.buf))
            xids.append(xid)
        return b"".join(parts), xids

    def send(self, data: bytes, ignore: Iterable[int] = ()) -> int:
        """Send encoded messages; returns when that was asked (ns). Raises SwitchError if the connection is gone.

        ignore: the ids of messages whose replies, errors included, are of no interest.
        """
        at_ns = time.monotonic_ns()
        self._ignored.update(ignore)
        if self.lost is not None:
            raise SwitchError(self.dpid, self.lost)
        if not self.datapath.send(data):
            raise SwitchError(self.dpid, "the connection is closing")
        return at_ns

    def send_at_once(self, data: bytes) -> int:
        """Send encoded messages past the library's queue; returns when (ns). Raises SwitchError if that fails.

        The queue hands over to another thread, which must find a free processor; meanwhile switches that were sent to
        before already keep them all busy, and the last COMMIT of several leaves a millisecond late. For a few bytes at
        a time only: those enter the socket whole, whatever else is sent on it.
        """
        if self.lost is not None:
            raise SwitchError(self.dpid, self.lost)
        at_ns = time.monotonic_ns()
        try:
            self.datapath.socket.sendall(data)
        except OSError as error:
            raise SwitchError(self.dpid, f"its OpenFlow connection fails: {error}") from None
        return at_ns

    # -- receiving ----------------------------------------------------------------------------------------------------

    def inbox(self, xids: Iterable[int]) -> Inbox:
        """Listen for replies to these transaction ids. Call it before sending them."""
        inbox = Inbox(self, xids)
        for xid in inbox.xids:
            self._inboxes[xid] = inbox
        if self.lost is not None:
            inbox.put(Arrival(time.monotonic_ns(), None, self.lost))
        return inbox

    def forget(self, inbox: Inbox) -> None:
        """Stop listening for an inbox's ids."""
        for xid in inbox.xids:
            self._inboxes.pop(xid, None)

    def deliver(self, xid: int, arrival: Arrival) -> bool:
        """Give an arrival to who waits for this id; False if nobody does and it is not to be ignored."""
        if xid in self._ignored:
            self._ignored.discard(xid)
            return True
        inbox = self._inboxes.get(xid)
        if inbox is not None:
            inbox.put(arrival)
        return inbox is not None

    def lose(self, reason: str) -> None:
        """Mark the connection as gone and tell everyone who waits."""
        self.lost = reason
        for inbox in set(self._inboxes.values()):
            inbox.put(Arrival(time.monotonic_ns(), None, reason))

    # -- asking -------------------------------------------------------------------------------------------------------

    def barrier(self, deadline_ns: int) -> float:
        """Seconds from a barrier request to its reply."""
        data, xids = self.encode([self.datapath.ofproto_parser.OFPBarrierRequest(self.datapath)])
        with self.inbox(xids) as inbox:
            sent_ns = self.send(data)
            return (inbox.take(deadline_ns, "barrier reply").at_ns - sent_ns) / 1e9

    def flows(self, deadline_ns: int) -> Flows:
        """Everything the switch holds."""
        data, xids = self.encode([request_flows(self.datapath)])
        entries: list[Any] = []
        with self.inbox(xids) as inbox:
            self.send(data)
            more = True
            while more:
                reply = inbox.take(deadline_ns, "flow statistics").message
                entries.extend(reply.body)
                more = bool(reply.flags & self.datapath.ofproto.OFPMPF_REPLY_MORE)
        read = [read_entry(entry) for entry in entries]
        flows = tuple(sorted((flow for flow in read if not isinstance(flow, str)), key=lambda flow: repr(flow.rule)))
        return Flows(self.dpid, flows, tuple(flow for flow in read if isinstance(flow, str)))
