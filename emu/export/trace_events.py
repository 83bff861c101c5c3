"""Events of the Chrome trace format, one constructor for each kind, and threads that get their numbers by name.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Instants and durations
come in seconds of modelled time and are written in microseconds, to the nanosecond.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Event = dict[str, Any]
Args = Mapping[str, Any]
T = TypeVar("T")


def micros(seconds: float) -> float:
    """Seconds as the format's microseconds."""
    return round(seconds * 1e6, 3)


@dataclass(slots=True)
class Process:
    """One process of a trace; its threads are numbered from 1 in the order in which they are first named."""

    pid: int
    name: str
    _threads: dict[str, int] = field(default_factory=dict)

    def thread(self, name: str) -> int:
        """The number of the thread of that name."""
        return self._threads.setdefault(name, len(self._threads) + 1)

    def names(self) -> Iterator[Event]:
        """Metadata that names the process and every thread asked for so far, and keeps them in this order."""
        yield self._metadata("process_name", 0, {"name": self.name})
        yield self._metadata("process_sort_index", 0, {"sort_index": self.pid})
        for name, tid in self._threads.items():
            yield self._metadata("thread_name", tid, {"name": name})
            yield self._metadata("thread_sort_index", tid, {"sort_index": tid})

    def _metadata(self, name: str, tid: int, args: Args) -> Event:
        return {"name": name, "ph": "M", "pid": self.pid, "tid": tid, "args": dict(args)}

    def slice(self, thread: str, category: str, name: str, start: float, end: float, args: Args) -> Event:
        """Something that lasts from `start` to `end`: a complete event."""
        first, last = micros(start), micros(end)
        duration = round(max(0.0, last - first), 3)
        return {**self._event("X", thread, category, name, start), "dur": duration, "args": _known(args)}

    def instant(self, thread: str, category: str, name: str, at: float, args: Args, *, whole: bool = False) -> Event:
        """Something that happens at once. whole: it is drawn across the whole process, not only its thread."""
        scope = "p" if whole else "t"
        return {**self._event("i", thread, category, name, at), "s": scope, "args": _known(args)}

    def counter(self, name: str, series: str, at: float, value: float) -> Event:
        """From `at` on, a number has this value."""
        return {"name": name, "cat": "load", "ph": "C", "ts": micros(at), "pid": self.pid, "args": {series: value}}

    def arrow(self, thread: str, name: str, at: float, number: int, *, ends: bool) -> Event:
        """One end of an arrow between the slices of two threads; the other has the same name and number."""
        event = self._event("f" if ends else "s", thread, "transfer", name, at)
        return {**event, "id": number, **({"bp": "e"} if ends else {})}

    def _event(self, phase: str, thread: str, category: str, name: str, at: float) -> Event:
        tid = self.thread(thread)
        return {"name": name, "cat": category, "ph": phase, "ts": micros(at), "pid": self.pid, "tid": tid}


def lanes(items: Iterable[T], span: Callable[[T], tuple[float, float]]) -> Iterator[tuple[T, int]]:
    """Items by their starts, each with a lane (from 0) in which it overlaps no other: slices of a thread must not.

    span: start and end of an item. The lowest free lane is taken, so there are no more lanes than items overlap.
    """
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    count = 0
    for item in sorted(items, key=span):
        start, end = span(item)
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, count = count, count + 1
        heapq.heappush(busy, (end, lane))
        yield item, lane


def _known(args: Args) -> dict[str, Any]:
    """Without what is not known: an absent argument says so better than a null."""
    return {name: value for name, value in args.items() if value is not None}
