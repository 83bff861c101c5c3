"""Dark time of the service: how long flows stand still when circuits change under them, by their receivers' reads.

A flow is affected if a transfer on it was half received when its circuit went dark. Its figure is the longest time
between two reads from that instant on, until the first read after the new circuits were acknowledged: so it contains
what was still in queues behind the dark circuit, which makes it shorter, and TCP's recovery, which makes it longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from emu.measurement import Service
from emu.packet.lanes import Lane, LaneKey, Lanes, Part


@dataclass(slots=True)
class _Flow:
    """A lane that is followed; the transfer that was on it when the lights went out, and its widest gap (wall s)."""

    lane: Lane
    last: float
    part: Part | None = None
    widest: float = 0.0
    over: bool = False


class ServiceWatch:
    """Follows the lanes that a change affects, from shortly before it until each has read again."""

    def __init__(self, lanes: Lanes) -> None:
        """Follow nothing yet."""
        self._lanes = lanes
        self._flows: list[_Flow] = []
        self._asked = self._lit = 0.0

    def begin(self, affected: Callable[[LaneKey], bool], asked: float) -> None:
        """Follow the lanes that cross a circuit which goes dark at the wall second `asked`."""
        self._asked, self._lit = asked, 0.0
        for lane in self._lanes:
            if affected(lane.key):
                self._follow(_Flow(lane, lane.last_read))

    def darkened(self) -> None:
        """The circuits are dark: go on only with lanes on which a transfer is under way."""
        for flow in self._flows:
            flow.part = flow.lane.reading[0] if flow.lane.reading else None
            if flow.part is None or flow.part.first_byte == 0.0 or flow.lane.closed:
                self._leave(flow)
        self._flows = [flow for flow in self._flows if not flow.over]

    def lit(self, at: float) -> None:
        """The new circuits were acknowledged at this wall second."""
        self._lit = at

    def end(self, tdf: float) -> list[Service]:
        """The gaps of the flows that came back, in modelled seconds; nothing is followed any more."""
        flows, self._flows = self._flows, []
        found = [Service(str(flow.lane.key), flow.widest / tdf) for flow in flows if self._came_back(flow)]
        for flow in flows:
            self._leave(flow)
        return found

    def _follow(self, flow: _Flow) -> None:
        self._flows.append(flow)
        self._lanes.follow(flow.lane, lambda now: self._note(flow, now))

    def _note(self, flow: _Flow, now: float) -> None:
        if now > self._asked and flow.last > 0.0:
            flow.widest = max(flow.widest, now - flow.last)
        flow.last = now
        if self._lit and now > self._lit:
            self._leave(flow)

    def _leave(self, flow: _Flow) -> None:
        if not flow.over:
            flow.over = True
            self._lanes.follow(flow.lane, None)

    def _came_back(self, flow: _Flow) -> bool:
        """Whether bytes of its transfer came after the new circuits; the rest of one may have been past the dark."""
        part = flow.part
        if part is None or part.cancelled or not self._lit or flow.last <= self._lit:
            return False
        return part.end == 0.0 or self._lit < part.end <= time.monotonic()
