"""The engine's end of the channel to the controller process."""

from __future__ import annotations

import itertools
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from controllers.channel import (
    Abort,
    Aborted,
    AbortOutcome,
    Answer,
    Barriers,
    Changes,
    Committed,
    ControllerError,
    ControllerLost,
    Echo,
    EchoReply,
    Event,
    Flows,
    Hello,
    Install,
    Installed,
    MeasureBarriers,
    Prepare,
    Prepared,
    ReadFlows,
    Refused,
    Request,
    SwitchConnected,
    SwitchLost,
    Verify,
)
from controllers.lines import LineBuffer, encode
from controllers.tables import Table

_Kind = TypeVar("_Kind", bound=Answer)
_CHUNK = 1 << 16
_GRACE = 1.0
"""Seconds that the controller gets beyond a time-out of its own, so that its reason is heard and not ours."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request that was made with `submit`."""

    request: int
    answer: Answer


class ControllerClient:
    """Asks the controller process and hears from it.

    Two ways to use it, which may be mixed in one thread. In an event loop: register `fileno()` for reading, call `poll`
    when it is readable, and `submit` requests. Otherwise: the blocking calls, each with a time-out in seconds. What
    arrives during a blocking call is kept for the next `poll`, and does not make `fileno()` readable again: so call
    `poll` once after blocking calls.

    Every method raises ControllerLost once the controller process is gone. A blocking call raises ControllerError when
    the controller refuses, naming the switch, and ControllerLost when it does not answer in time.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.setblocking(False)
        self._buffer = LineBuffer()
        self._ids = itertools.count(1)
        self._waiting: set[int] = set()
        self._answers: dict[int, Answer] = {}
        self._heard: list[Event | Answered] = []
        self._gone: str | None = None
        self.connected: set[int] = set()
        self.library = ""

    @classmethod
    def connect(cls, path: Path, timeout: float = 5.0) -> ControllerClient:
        """Connect to a controller that listens at `path` and hear its Hello."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except OSError as error:
            connection.close()
            raise ControllerLost(f"no controller listens at {path}: {error.strerror}") from None
        client = cls(connection)
        try:
            client._until(lambda: bool(client.library), timeout, "say hello")
        except ControllerError:
            client.close()
            raise
        return client

    def close(self) -> None:
        """Hang up; the controller process then ends."""
        self._socket.close()

    # -- in an event loop ---------------------------------------------------------------------------------------------

    def fileno(self) -> int:
        """The descriptor to watch for reading."""
        return self._socket.fileno()

    def submit(self, request: Request) -> int:
        """Send a request and return its number; its Answered comes from `poll`."""
        number = next(self._ids)
        self._send(encode(request, number))
        return number

    def poll(self) -> list[Event | Answered]:
        """What has arrived since the last call, in order; never waits.

        Raises ControllerLost when the controller is gone and all that it said before has been returned.
        """
        self._receive()
        heard, self._heard = self._heard, []
        if not heard and self._gone:
            raise ControllerLost(self._gone)
        return heard

    # -- blocking -----------------------------------------------------------------------------------------------------

    def wait_connected(self, dpids: Iterable[int], timeout: float) -> None:
        """Wait until all of these switches are connected."""
        wanted = set(dpids)
        try:
            self._until(lambda: wanted <= self.connected, timeout, "report all switches connected")
        except ControllerLost as error:
            if self._gone:
                raise
            missing = ", ".join(map(str, sorted(wanted - self.connected)))
            hint = "check each bridge's controller target and that its protocols include OpenFlow14"
            raise ControllerError(f"after {timeout:g} s without a connection: switches {missing}; {hint}") from error

    def install(self, tables: Mapping[int, Table], timeout: float) -> Installed:
        """Make each switch hold exactly its table, and read it back: the ready gate."""
        return self._call(Install(dict(tables), timeout), Installed, timeout + _GRACE)

    def verify(self, dpids: Iterable[int], timeout: float) -> Installed:
        """Check that these switches still hold exactly what was installed and committed."""
        return self._call(Verify(tuple(dpids)), Installed, timeout)

    def prepare(
        self,
        change: str,
        *,
        dark: Changes,
        light: Changes,
        at_ns: int | None,
        reconfiguration_ns: int,
        timeout: float = 5.0,
    ) -> Prepared:
        """Get an epoch change ready, to be fired at `at_ns` (None: now); `poll` then brings Staged and its end."""
        request = Prepare(change, dict(dark), dict(light), at_ns, reconfiguration_ns)
        return self._call(request, Prepared, timeout)

    def abort(self, change: str, timeout: float = 5.0) -> AbortOutcome:
        """Give an epoch change up, if it is not too late."""
        return self._call(Abort(change), AbortOutcome, timeout)

    def wait_change(self, change: str, timeout: float) -> Committed | Aborted:
        """Wait for the end of a prepared change; the event is taken out of what `poll` returns."""

        self._until(lambda: any(self._ends_of(change)), timeout, f"end the change {change}")
        end = next(self._ends_of(change))
        self._heard.remove(end)
        return end

    def echo(self, timeout: float = 5.0) -> float:
        """Seconds that the channel itself takes for a request and its answer."""
        began = time.monotonic_ns()
        self._call(Echo(), EchoReply, timeout)
        return (time.monotonic_ns() - began) / 1e9

    def measure_barriers(self, dpid: int, count: int, timeout: float = 10.0) -> list[float]:
        """Round trips of `count` barriers between the controller and one switch, in seconds."""
        return list(self._call(MeasureBarriers(dpid, count), Barriers, timeout).seconds)

    def read_flows(self, dpid: int, timeout: float = 5.0) -> Flows:
        """What a switch holds, with packet and byte counts."""
        return self._call(ReadFlows(dpid), Flows, timeout)

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _call(self, request: Request, kind: type[_Kind], timeout: float) -> _Kind:
        number = next(self._ids)
        self._waiting.add(number)
        try:
            self._send(encode(request, number))
            self._until(lambda: number in self._answers, timeout, f"answer {type(request).__name__}")
            answer = self._answers.pop(number)
        finally:
            self._waiting.discard(number)
        if isinstance(answer, Refused):
            raise ControllerError(answer.reason, answer.dpid)
        if not isinstance(answer, kind):
            raise ControllerError(f"{type(request).__name__} was answered by {type(answer).__name__}")
        return answer

    def _ends_of(self, change: str) -> Iterator[Committed | Aborted]:
        for event in self._heard:
            if isinstance(event, Committed | Aborted) and event.change == change:
                yield event

    def _until(self, ready: Callable[[], bool], timeout: float, what: str) -> None:
        """Receive until `ready`. Not with `select`: descriptors may be above its limit of 1024."""
        deadline = time.monotonic() + timeout
        while True:
            self._receive()
            if ready():
                return
            if self._gone:
                raise ControllerLost(self._gone)
            if not self._readiness(select.POLLIN, deadline):
                raise ControllerLost(f"the controller did not {what} within {timeout:g} s")

    def _readiness(self, event: int, deadline: float) -> bool:
        poller = select.poll()
        poller.register(self._socket, event)
        return bool(poller.poll(max(0.0, (deadline - time.monotonic()) * 1e3)))

    def _send(self, data: bytes, timeout: float = 5.0) -> None:
        if self._gone:
            raise ControllerLost(self._gone)
        view, deadline = memoryview(data), time.monotonic() + timeout
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                if not self._readiness(select.POLLOUT, deadline):
                    raise ControllerLost(f"the controller read nothing for {timeout:g} s") from None
            except OSError as error:
                self._gone = f"the controller process has ended ({error.strerror})"
                raise ControllerLost(self._gone) from None

    def _receive(self) -> None:
        while not self._gone:
            try:
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                return
            except OSError as error:
                self._gone = f"the controller process has ended ({error.strerror})"
                return
            if not data:
                self._gone = "the controller process has ended"
                return
            for line in self._buffer.feed(data):
                self._sort(line.id, line.body)

    def _sort(self, number: int | None, body: object) -> None:
        if number is not None and isinstance(body, Answer):
            if number in self._waiting:
                self._answers[number] = body
            else:
                self._heard.append(Answered(number, body))
        elif number is None and isinstance(body, Event):
            self._note(body)
            self._heard.append(body)
        else:
            raise ControllerError(f"the controller sent a {type(body).__name__} out of place")

    def _note(self, event: Event) -> None:
        if isinstance(event, Hello):
            self.library = event.library
        elif isinstance(event, SwitchConnected):
            self.connected.add(event.dpid)
        elif isinstance(event, SwitchLost):
            self.connected.discard(event.dpid)
