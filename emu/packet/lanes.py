"""Lanes: the TCP connections that transfers go over, both ends held by this one process.

A lane joins two NICs for one channel. Transfers on a lane go one after the other, as bytes of one stream: the receiver
knows from the order which byte belongs to which, so nothing but payload crosses the wire.
"""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from emu.errors import EmuError
from emu.lab.namespaces import NetworkNamespace
from emu.packet import tcp
from emu.packet.loop import Loop
from topologies.fabric import Fabric, Port

_PORT = 5001
_PIECE = 1 << 18
_PAYLOAD = memoryview(bytearray(_PIECE))
_READ, _WRITE = select.EPOLLIN, select.EPOLLOUT
_BATCH = 32 << 10
"""Bytes that must have come before a read is worth a wake-up, while neither a part's first nor its last is awaited."""


_Name = tuple[Port, tuple[str, int]]
"""A connection as the kernel knows it: the listening NIC, and the sender's address and port."""


class LaneKey(NamedTuple):
    """Which connection: from a NIC to a NIC, for a channel."""

    src: Port
    dst: Port
    channel: str

    def __str__(self) -> str:
        return f"{self.src} -> {self.dst}" + (f" ({self.channel})" if self.channel else "")


class ConnectError(EmuError):
    """Connections that could not be opened; the message names some of the pairs."""


@dataclass(slots=True)
class Part:
    """One stretch of bytes on one lane: a transfer, or a transfer's share of one NIC. Times are wall seconds."""

    bytes: int
    done: Callable[[Part], None]
    lane: Lane | None = None
    start: float = 0.0
    first_byte: float = 0.0
    end: float = 0.0
    unsent: int = 0
    unread: int = 0
    retransmits: int = 0
    rtt: float = 0.0
    cancelled: bool = False

    def __post_init__(self) -> None:
        self.unsent = self.unread = self.bytes


@dataclass(slots=True)
class Lane:
    """One open connection and the parts on it: those not fully written, and those not fully read."""

    key: LaneKey
    sender: socket.socket
    receiver: socket.socket | None = None
    writing: deque[Part] = field(default_factory=deque)
    reading: deque[Part] = field(default_factory=deque)
    armed: bool = False
    closed: bool = False
    awaited: int = 1
    last_read: float = 0.0
    retransmits: int = 0
    follower: Callable[[float], None] | None = None
    """Told the wall second of each read, if anybody wants to know."""


class Lanes:
    """All connections of a run."""

    def __init__(
        self, loop: Loop, fabric: Fabric, namespaces: dict[str, NetworkNamespace], congestion_control: str
    ) -> None:
        """Listen on every NIC. The sockets are opened from this thread, inside the hosts' namespaces."""
        self._loop, self._fabric, self._namespaces = loop, fabric, namespaces
        self._congestion_control = congestion_control
        self._lanes: dict[LaneKey, Lane] = {}
        self._listeners: list[socket.socket] = []
        self._opening: dict[_Name, Lane] = {}
        self._accepted: dict[_Name, socket.socket] = {}
        self._attempts: dict[LaneKey, _Name] = {}
        self._on_open: dict[LaneKey, list[Callable[[Lane], None]]] = {}
        self.failed: dict[LaneKey, str] = {}
        self.bytes_read = 0
        for nic in fabric.all_nics:
            self._listen(nic)

    # -- opening ------------------------------------------------------------

    def open_all(self, keys: Iterable[LaneKey], timeout: float = 5.0) -> None:
        """Open those connections that are not open yet and wait for them; raises ConnectError if some do not come."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self._lanes]
        waiting = set(wanted)
        for key in wanted:
            self.open(key, lambda lane: waiting.discard(lane.key))
        deadline = time.monotonic() + timeout
        while waiting - self.failed.keys() and time.monotonic() < deadline:
            self._loop.turn(time.monotonic() + 0.05)
        if waiting:
            for key in waiting:
                self.close(key)
            sample = ", ".join(f"{key} ({self.failed.get(key, 'timed out')})" for key in sorted(waiting)[:3])
            raise ConnectError(f"{len(waiting)} of {len(wanted)} connections did not open: {sample}")

    def open(self, key: LaneKey, ready: Callable[[Lane], None]) -> None:
        """Start to open a connection, if that is not under way; `ready(lane)` when both ends hold it."""
        self._on_open.setdefault(key, []).append(ready)
        if key in self._attempts:
            return
        self.failed.pop(key, None)
        with self._namespaces[key.src.node].entered():
            sock = socket.socket()
        sock.bind((self._fabric.address(key.src), 0))
        tcp.prepare_sender(sock, self._congestion_control)
        lane = Lane(key, sock)
        name = self._attempts[key] = (key.dst, sock.getsockname())
        self._opening[name] = lane
        status = sock.connect_ex((self._fabric.address(key.dst), _PORT))
        if status not in (0, errno.EINPROGRESS):
            self._give_up(key, status)
            return
        self._loop.watch(sock.fileno(), _WRITE, lambda _: self._connected(name, lane))

    def get(self, key: LaneKey) -> Lane | None:
        """The open lane of that key, if there is one."""
        return self._lanes.get(key)

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    # -- moving bytes ------------------------------------------------------------

    def send(self, lane: Lane, part: Part) -> None:
        """Queue a part on a lane; its first write is tried at once if it is the first in line."""
        part.lane = lane
        lane.writing.append(part)
        lane.reading.append(part)
        if not lane.armed:
            self._write(lane)

    def follow(self, lane: Lane, follower: Callable[[float], None] | None) -> None:
        """Read a lane frame by frame from now on and tell the wall second of each read; None: no longer."""
        lane.follower = follower
        if lane.receiver is not None and not lane.closed:
            self._await(lane, lane.receiver)

    def close(self, key: LaneKey) -> None:
        """Close a connection, or stop to open it; what was on it is dropped."""
        lane = self._lanes.pop(key, None)
        name = self._attempts.pop(key, None)
        if name is not None:
            lane = self._opening.pop(name)
            lane.receiver = self._accepted.pop(name, None)
            del self._on_open[key]
        if lane is not None:
            self._drop(lane)

    def unacknowledged(self) -> int:
        """Bytes written on any lane and not yet acknowledged."""
        return sum(tcp.unacknowledged(lane.sender) for lane in self._lanes.values())

    def retransmits(self) -> int:
        """Segments retransmitted on all open lanes since they were opened."""
        return sum(tcp.info(lane.sender).retransmits for lane in self._lanes.values())

    def close_all(self) -> None:
        """Close every connection and listener."""
        for lane in [*self._lanes.values(), *self._opening.values()]:
            self._drop(lane)
        for listener in self._listeners:
            self._loop.forget(listener.fileno())
            listener.close()
        for sock in self._accepted.values():
            sock.close()
        for known in (self._lanes, self._opening, self._attempts, self._accepted, self._on_open):
            known.clear()

    # -- helpers ------------------------------------------------------------

    def _listen(self, nic: Port) -> None:
        with self._namespaces[nic.node].entered():
            sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((self._fabric.address(nic), _PORT))
        sock.listen(4096)
        sock.setblocking(False)
        self._listeners.append(sock)
        self._loop.watch(sock.fileno(), _READ, lambda _: self._accept(nic, sock))

    def _accept(self, nic: Port, listener: socket.socket) -> None:
        while True:
            try:
                sock, peer = listener.accept()
            except BlockingIOError:
                return
            if (nic, peer) not in self._opening:  # its other end was given up meanwhile
                sock.close()
                continue
            sock.setblocking(False)
            self._accepted[nic, peer] = sock
            self._join((nic, peer))

    def _connected(self, name: _Name, lane: Lane) -> None:
        self._loop.forget(lane.sender.fileno())
        status = lane.sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if status:
            self._give_up(lane.key, status)
            return
        lane.armed = True
        self._join(name)

    def _give_up(self, key: LaneKey, status: int) -> None:
        self.close(key)
        self.failed[key] = errno.errorcode.get(status, str(status))

    def _join(self, name: _Name) -> None:
        """Both ends must be there: the connect has finished and the accept has happened."""
        lane = self._opening.get(name)
        if lane is None or not lane.armed or name not in self._accepted:
            return
        del self._opening[name], self._attempts[lane.key]
        lane.armed = False
        receiver = lane.receiver = self._accepted.pop(name)
        self._loop.watch(lane.sender.fileno(), 0, lambda _: self._write(lane))
        self._loop.watch(receiver.fileno(), _READ, lambda _: self._read(lane, receiver))
        self._lanes[lane.key] = lane
        for ready in self._on_open.pop(lane.key):
            ready(lane)

    def _write(self, lane: Lane) -> None:
        while lane.writing:
            part = lane.writing[0]
            if part.start == 0.0:
                part.start = time.monotonic()
            try:
                sent = lane.sender.send(_PAYLOAD[: part.unsent])
            except BlockingIOError:
                self._arm(lane, True)
                return
            part.unsent -= sent
            if part.unsent == 0:
                lane.writing.popleft()
        self._arm(lane, False)

    def _arm(self, lane: Lane, on: bool) -> None:
        if lane.armed is not on:
            lane.armed = on
            self._loop.change(lane.sender.fileno(), _WRITE if on else 0)

    def _read(self, lane: Lane, receiver: socket.socket) -> None:
        try:
            # MSG_TRUNC makes TCP discard what it would have copied: the bytes crossed the fabric, that is enough.
            got = receiver.recv_into(_PAYLOAD, _PIECE, socket.MSG_TRUNC)
        except BlockingIOError:
            return
        if got == 0:
            self._loop.forget(receiver.fileno())
            return
        now = time.monotonic()
        self.bytes_read += got
        if lane.follower is not None:
            lane.follower(now)
        lane.last_read = now
        while got and not lane.closed:  # what a finished part sets off may close this very lane
            part = lane.reading[0]
            if part.first_byte == 0.0:
                part.first_byte = now
            taken = min(got, part.unread)
            part.unread -= taken
            got -= taken
            if part.unread == 0:
                lane.reading.popleft()
                self._finish(lane, part, now)
        if not lane.closed:
            self._await(lane, receiver)

    def _await(self, lane: Lane, receiver: socket.socket) -> None:
        """Be woken by the first byte of a part, then by batches, then by its last byte; if followed, by every frame."""
        part = lane.reading[0] if lane.reading and lane.follower is None else None
        awaited = 1 if part is None or part.first_byte == 0.0 else min(_BATCH, part.unread)
        if awaited != lane.awaited:
            lane.awaited = awaited
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, awaited)

    def _finish(self, lane: Lane, part: Part, now: float) -> None:
        part.end = now
        state = tcp.info(lane.sender)
        part.retransmits = state.retransmits - lane.retransmits
        part.rtt = state.rtt
        lane.retransmits = state.retransmits
        part.done(part)

    def _drop(self, lane: Lane) -> None:
        lane.closed = True
        # Reset, do not linger: the kernel would go on sending what is buffered long after the lane is gone.
        lane.sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for sock in (lane.sender, lane.receiver):
            if sock is not None:
                self._loop.forget(sock.fileno())
                sock.close()
