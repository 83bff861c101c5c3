"""What each link carried in a part of a run: measured flows, laid on the routes of the epochs in which they ran.

A link's counters are read once a run, so what it carried in one epoch or phase is put together here: a flow's bytes are
spread evenly from its start to its end, and cross the links that the routes of the epoch then give it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from controllers.epochs import Epoch, OcsCircuit
from controllers.paths import Forwarder
from controllers.routes import routes
from emu.intervals import Interval, common, length, union
from emu.report.optics import Span
from emu.report.series import Floats, Series, numbers, texts
from topologies.fabric import Fabric, Port

LARGEST = 4_000_000
"""Switches times NICs times different sets of circuits: above it routes are not computed only to draw them."""

Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]
Pair = tuple[Port, Port]


@dataclass(frozen=True)
class FlowTimes:
    """The flows of one repeat that crossed the fabric as packets. pairs: the different ones; pair: each flow's."""

    start: Floats
    end: Floats
    bytes: Floats
    phase: np.ndarray[tuple[int], np.dtype[np.object_]]
    pairs: list[Pair]
    pair: np.ndarray[tuple[int], np.dtype[np.intp]]

    @classmethod
    def of(cls, series: Series, repeat: int) -> FlowTimes:
        """Those of one repeat."""
        rows = series.flows
        rows = rows[(rows["repeat"] == repeat) & (rows["how"] == "packets")]
        ends = list(zip(texts(rows, "src"), texts(rows, "dst"), strict=True))
        places = {pair: place for place, pair in enumerate(dict.fromkeys(ends))}
        return cls(
            numbers(rows, "start_s"),
            numbers(rows, "end_s"),
            numbers(rows, "bytes"),
            np.array(texts(rows, "phase"), dtype=object),
            [(nic(src), nic(dst)) for src, dst in places],
            np.array([places[pair] for pair in ends], dtype=np.intp),
        )

    def of_phase(self, phase: str) -> Bools:
        """Which flows are of a phase."""
        return np.asarray(self.phase == phase, dtype=np.bool_)

    def carried(self, window: Interval, which: Bools | None = None) -> dict[Pair, float]:
        """By pair of NICs, bytes that moved within a window; only those of some flows, if they are given."""
        begin, end = window
        times = np.maximum(self.end - self.start, 1e-15)
        share = np.clip((np.minimum(self.end, end) - np.maximum(self.start, begin)) / times, 0.0, 1.0)
        moved = share * self.bytes if which is None else share * self.bytes * which
        totals = np.bincount(self.pair, weights=moved, minlength=len(self.pairs))
        return {self.pairs[place]: float(totals[place]) for place in np.flatnonzero(totals)}

    def active(self, which: Bools | None = None) -> list[Interval]:
        """When any of the flows, or of some, was under way."""
        chosen = np.ones(len(self.start), dtype=np.bool_) if which is None else which
        return union(zip(self.start[chosen].tolist(), self.end[chosen].tolist(), strict=True))


@dataclass
class Routing:
    """The paths of a fabric under any set of circuits; each set's routes are computed once."""

    fabric: Fabric
    seed: int
    _known: dict[frozenset[OcsCircuit], Forwarder] = field(default_factory=dict)
    _paths: dict[tuple[int, Pair], tuple[Port, ...]] = field(default_factory=dict)

    def fits(self, epochs: Sequence[Epoch]) -> bool:
        """Whether it takes no longer than a reader waits."""
        sets = len({epoch.lit for epoch in epochs})
        return len(self.fabric.switches) * len(self.fabric.all_nics) * max(sets, 1) <= LARGEST

    def path(self, epoch: Epoch, pair: Pair) -> tuple[Port, ...]:
        """The ports that transmit on the way from one NIC to another; none if there is no way."""
        forwarder = self._known.get(epoch.lit)
        if forwarder is None:
            forwarder = self._known[epoch.lit] = Forwarder(self.fabric, routes(self.fabric, epoch, self.seed))
        key = (id(forwarder), pair)
        if key not in self._paths:
            self._paths[key] = forwarder.path(*pair) or ()
        return self._paths[key]


def load(routing: Routing, flows: FlowTimes, parts: Sequence[tuple[Span, Interval]], which: Bools | None) -> Loads:
    """What links carried in some windows, each inside the span of an epoch."""
    total: dict[Port, float] = {}
    for span, window in parts:
        for pair, moved in flows.carried(window, which).items():
            for port in routing.path(span.epoch, pair):
                total[port] = total.get(port, 0.0) + moved
    active = common(flows.active(which), union(window for _, window in parts))
    return Loads(total, length(active))


@dataclass(frozen=True)
class Loads:
    """By transmitting port, payload bytes. seconds: modelled, in which any of the flows was under way."""

    bytes: Mapping[Port, float]
    seconds: float

    def share(self, port: Port, rate: int) -> float:
        """Payload by what the link could have carried in that time, 0 to about 1."""
        return 8 * self.bytes.get(port, 0.0) / (rate * self.seconds) if self.seconds > 0 else 0.0


def nic(name: str) -> Port:
    """The NIC that a table of flows calls `h4.0`."""
    host, _, number = name.partition(".")
    return Port(host, int(number or 0))
