"""What probes are sent for a change of circuits, and what they say afterwards. Needs no lab.

See `emu.lab.probing`, which sends them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.channel import Committed
from controllers.circuits import darkened, lit
from controllers.epochs import Epoch
from emu.measurement import DataPlane
from topologies.fabric import Fabric, Port

_MS = 1_000_000
EARLY_NS = 20 * _MS
"""How long before circuits should go dark their probes begin."""
PATIENCE_NS = 250 * _MS
"""After the acknowledgement of the new circuits a probe must have come through them within this time."""
_STILL_NS = 5 * _MS
"""A circuit by which the last probes of a change left, all but those of this time, did not go dark."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Probes into one OCS port: `old`, `new` are the exits of its circuits, None where there is none to look at."""

    entry: Port
    old: Port | None
    new: Port | None


@dataclass(slots=True)
class ProbeLog:
    """What became of one stream's probes. at: when each was sent (ns). left: by exit, which arrived there, and when."""

    stream: Stream
    at: list[int] = field(default_factory=list)
    left: dict[Port, dict[int, int]] = field(default_factory=dict)

    def through(self, exit_: Port | None) -> dict[int, int]:
        """The probes that left by an exit."""
        return {} if exit_ is None else self.left.get(exit_, {})


def streams(fabric: Fabric, old: Epoch, new: Epoch) -> list[Stream]:
    """The ports of entry to probe for a change of epoch: one or two on each OCS that changes, by number."""
    gone, come = darkened(old, new), lit(old, new)
    found: list[Stream] = []
    for ocs in (node.name for node in fabric.ocses):
        before = {circuit.in_port: Port(ocs, circuit.out_port) for circuit in gone.get(ocs, ())}
        after = {circuit.in_port: Port(ocs, circuit.out_port) for circuit in come.get(ocs, ())}
        both = before.keys() & after.keys()
        entries = {min(both)} if both else {min(exits) for exits in (before, after) if exits}
        found += [Stream(Port(ocs, entry), before.get(entry), after.get(entry)) for entry in sorted(entries)]
    return found


def judge_probes(
    probed: Iterable[ProbeLog], done: Committed, dpids: Mapping[str, int], tdf: float, *, in_vain: bool
) -> list[DataPlane]:
    """What probes say of each OCS. in_vain: whether they were sent for as long as patience lasts."""
    by_ocs: dict[str, list[ProbeLog]] = {}
    for sent in probed:
        by_ocs.setdefault(sent.stream.entry.node, []).append(sent)
    return [_judged(ocs, sent, _Instants.of(done, dpids[ocs], in_vain), tdf) for ocs, sent in by_ocs.items()]


@dataclass(frozen=True, slots=True)
class _Instants:
    """Of one OCS: when DARK and LIGHT were sent to it (ns), None if it had no part in that stage.

    in_vain: whether probes were sent for as long as patience lasts.
    """

    dark: int | None
    light: int | None
    in_vain: bool

    @classmethod
    def of(cls, done: Committed, dpid: int, in_vain: bool) -> _Instants:
        dark, light = done.dark.switches.get(dpid), done.light.switches.get(dpid)
        return cls(dark.sent_ns if dark else None, light.sent_ns if light else None, in_vain)


@dataclass(frozen=True, slots=True)
class _Edge:
    """The last or first frame that passed (ns), and how far from it the probe was sent that did not pass.

    problem: why there is none.
    """

    at: int = 0
    apart: int = 0
    problem: str = ""


def _judged(ocs: str, probed: Iterable[ProbeLog], instants: _Instants, tdf: float) -> DataPlane:
    """The dark time of one OCS by its probes; a problem instead where they show that the change went wrong."""
    last = first = None
    for sent in probed:
        if sent.stream.old is not None and instants.dark is not None:
            last = _last(sent, instants.dark)
        if sent.stream.new is not None and instants.light is not None:
            first = _first(sent, instants.in_vain)
    problems = [edge.problem for edge in (last, first) if edge is not None and edge.problem]
    if problems or last is None or first is None or not (last.at and first.at):
        return DataPlane(ocs, problem="; ".join(problems))
    return DataPlane(
        ocs=ocs,
        dark=(first.at - last.at) / 1e9 / tdf,
        resolution_wall=(last.apart + first.apart) / 1e9,
        last_wall=(last.at - (instants.dark or 0)) / 1e9,
        first_wall=(first.at - (instants.light or 0)) / 1e9,
    )


def _last(sent: ProbeLog, dark_ns: int) -> _Edge:
    """The last frame by the circuit that goes."""
    passed, way = sent.through(sent.stream.old), f"{sent.stream.entry} -> {sent.stream.old}"
    if not passed:
        early = bisect_left(sent.at, dark_ns - EARLY_NS // 2)
        return _Edge(problem=f"no probe passed the circuit {way} before it was to go dark" if early else "")
    number = max(passed)
    if sent.at[-1] - sent.at[number] < _STILL_NS:
        return _Edge(problem=f"probes never ceased to pass the circuit {way}, which was to go dark")
    return _Edge(passed[number], sent.at[number + 1] - sent.at[number])


def _first(sent: ProbeLog, in_vain: bool) -> _Edge:
    """The first frame by the circuit that comes."""
    passed, way = sent.through(sent.stream.new), f"{sent.stream.entry} -> {sent.stream.new}"
    if not passed:
        within = f"within {PATIENCE_NS // _MS} ms after it was acknowledged"
        return _Edge(problem=f"no probe passed the new circuit {way} {within}" if in_vain else "")
    number = min(passed)
    return _Edge(passed[number], sent.at[number] - sent.at[number - 1] if number else 0)
