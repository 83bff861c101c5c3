"""The event loop of the traffic engine: epoll, with a timerfd because its own time-outs round up to a millisecond."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_CLOCK_MONOTONIC, _TFD_FLAGS, _ABSOLUTE = 1, os.O_NONBLOCK | os.O_CLOEXEC, 1
_libc = ctypes.CDLL(None, use_errno=True)

Callback = Callable[[int], None]


class TimerFd:
    """A timerfd on CLOCK_MONOTONIC (os.timerfd_create comes with Python 3.13)."""

    def __init__(self) -> None:
        self._fd = _libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")

    def fileno(self) -> int:
        """The descriptor to poll."""
        return int(self._fd)

    def arm(self, at: float, interval: float = 0.0) -> None:
        """Fire at the absolute second `at`, then every `interval` seconds if that is not zero."""
        self._set(max(at, 1e-9), interval)

    def disarm(self) -> None:
        """Do not fire."""
        self._set(0.0, 0.0)

    def read(self) -> int:
        """How often it fired since the last read."""
        try:
            return int.from_bytes(os.read(self._fd, 8), "little")
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Free the descriptor."""
        os.close(self._fd)

    def _set(self, at: float, interval: float) -> None:
        (whole, rest), (iwhole, irest) = (divmod(round(t * 1e9), 1_000_000_000) for t in (at, interval))
        spec = ctypes.create_string_buffer(struct.pack("4q", iwhole, irest, whole, rest))
        if _libc.timerfd_settime(self._fd, _ABSOLUTE, spec, None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")


@dataclass(slots=True)
class LagMonitor:
    """How late the loop serves a timer that fires every `period` seconds: its own share in what is measured."""

    period: float = 0.005
    lags: list[float] = field(default_factory=list)
    _due: float = 0.0

    def begin(self, now: float) -> float:
        """The first instant to fire at."""
        self._due = now + self.period
        return self._due

    def served(self, now: float, fired: int) -> None:
        """The timer was read at `now` after firing `fired` times."""
        if fired:
            self.lags.append(now - self._due)
            self._due += fired * self.period

    def quantile(self, q: float) -> float:
        """The lag in seconds that a share `q` of the samples stays under; 0 without samples."""
        ordered = sorted(self.lags)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0.0


class Loop:
    """Descriptors and their callbacks, one deadline, and a lag monitor."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callback] = {}
        self._timer, self._ticker = TimerFd(), TimerFd()
        self.lag = LagMonitor()
        self.watch(self._timer.fileno(), select.EPOLLIN, self._expired)
        self.watch(self._ticker.fileno(), select.EPOLLIN, self._tick)

    def watch(self, fd: int, events: int, callback: Callback) -> None:
        """Call `callback(events)` whenever `fd` is ready."""
        self._callbacks[fd] = callback
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        """Wait for other events on a watched descriptor."""
        self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Stop watching."""
        if self._callbacks.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def monitor(self, on: bool) -> None:
        """Start or stop to sample the loop's lag."""
        if on:
            self._ticker.arm(self.lag.begin(time.monotonic()), self.lag.period)
        else:
            self._ticker.disarm()

    def turn(self, deadline: float | None) -> None:
        """Wait until something is ready or `deadline` (CLOCK_MONOTONIC seconds) is reached, and serve it."""
        if deadline is not None:
            if deadline <= time.monotonic():
                self._serve(0)
                return
            self._timer.arm(deadline)
        self._serve(-1)
        if deadline is not None:
            self._timer.disarm()

    def close(self) -> None:
        """Free every descriptor of the loop's own."""
        self._epoll.close()
        self._timer.close()
        self._ticker.close()

    def _serve(self, timeout: float) -> None:
        for fd, events in self._epoll.poll(timeout):
            callback = self._callbacks.get(fd)
            if callback is not None:
                callback(events)

    def _expired(self, _: int) -> None:
        self._timer.read()

    def _tick(self, _: int) -> None:
        self.lag.served(time.monotonic(), self._ticker.read())
