"""Dark time of the data plane: probe frames through the very circuits that change, only around a change.

A probe enters an OCS where data does: it is sent from the far end of the OCS port's cable, past every queue and shaper
there, so it never waits behind data and takes no data's place. What it meets is the circuit's own rule. It leaves by
the circuit's exit and is seen, and stamped by the kernel, as it arrives at the far end of that cable; the switch there
has no rule for its EtherType. So nothing is added to any switch, no port and no rule: what changes is what is measured.

On each OCS one port of entry is probed, if there is one whose circuit goes and another comes; otherwise one of each
kind. The dark time of an OCS is from the last frame that left by the circuit that goes to the first by the one that
comes. It is too long by at most the distance of probes on both sides, which is reported beside it (`resolution`).

Probes are one every millisecond where the circuits should change and seldom in between. Their frames have the size of a
TCP acknowledgement, so that counters of payload do not see them, and are known by port, to be taken off where frames
are counted.

One thing is not measured: Open vSwitch's userspace datapath keeps an entry for each EtherType, so data's own frames may
cease some microseconds before or after the probes do.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from controllers.channel import Committed
from controllers.circuits import darkened, lit
from controllers.epochs import Epoch
from emu.lab.counters import Transmitters
from emu.lab.tap import Tap, unshaped_sender
from emu.measurement import DataPlane
from emu.packet.loop import Loop, TimerFd
from topologies.fabric import Fabric, Kind, Port

_ETHERTYPE = 0x88B6
"""IEEE 802's local experimental type 2: nobody else's traffic, and no packet switch has a rule for it."""
FRAME_BYTES = 66
"""Of a probe as the kernel counts it."""
_NAME = struct.Struct("!4sIHI")
"""What a probe carries: a mark, its change, its stream, its number."""
_MAGIC = b"dark"
_MS = 1_000_000
_NEAR_NS, _FAR_NS, _SHARE_NS = 1 * _MS, 5 * _MS, 250_000
"""Between two probes of a stream: near a change, in the midst of the dark time, and at least, for each stream."""
EARLY_NS, _AFTER_NS = 20 * _MS, 40 * _MS
"""How long before and after an instant at which circuits should change probes are near each other."""
PATIENCE_NS = 250 * _MS
"""After the acknowledgement of the new circuits a probe must have come through them within this time."""
_SWITCHES = ""
"""Stands for all switches, whose ports are in one namespace."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Probes into one OCS port: `old`, `new` are the exits of its circuits, None where there is none to look at."""

    entry: Port
    old: Port | None
    new: Port | None


@dataclass(slots=True)
class _Sent:
    """What became of one stream's probes: when each was sent, and which arrived behind which exit, and when (ns)."""

    stream: Stream
    at: list[int] = field(default_factory=list)
    left: dict[Port, dict[int, int]] = field(default_factory=dict)

    def through(self, exit_: Port | None) -> dict[int, int]:
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


class Prober:
    """Sends probes around one change at a time and sees where they arrive."""

    def __init__(
        self,
        fabric: Fabric,
        ports: Transmitters,
        loop: Loop,
        *,
        ticked: Callable[[int], None] = lambda now_ns: None,
        filtered: bool = False,
    ) -> None:
        """Open the sockets; nothing is sent before `begin`.

        ticked: called with the time whenever probes were sent. filtered: as the kernel's datapath needs it.
        """
        self._ticked = ticked
        self.carried: Counter[Port] = Counter()
        """Probes that each port has transmitted, over all changes, as far as `collect` was called."""
        self._fabric, self._loop = fabric, loop
        self._senders: dict[str, socket.socket] = {}
        self._taps: list[Tap] = []
        for port in (fabric.peer(port) for ocs in fabric.ocses for port in fabric.ports(ocs.name)):
            if self._place(port) not in self._senders:
                self._senders[self._place(port)] = unshaped_sender(ports.namespace_of(port))
                self._taps.append(Tap(_ETHERTYPE, ports.namespace_of(port), everything=filtered))
        optical = [port for ocs in fabric.ocses for port in fabric.ports(ocs.name)]
        self._ports = {port.interface: port for port in (*optical, *map(fabric.peer, optical))}
        self._timer = TimerFd()
        self._probed: list[_Sent] = []
        self._change = 0
        self._changes = (0, 0)
        self._until: int | None = None
        loop.watch(self._timer.fileno(), select.EPOLLIN, lambda _: self._tick())

    # -- around one change --------------------------------------------------------------------------------------------

    def begin(self, old: Epoch, new: Epoch, at_ns: int, dark_ns: int) -> None:
        """Probe the change from `old` to `new`, which begins at `at_ns` and is lit `dark_ns` later.

        It ends by `finish`, or a little after `acknowledged`.
        """
        self._probed = [_Sent(stream) for stream in streams(self._fabric, old, new)]
        self._changes, self._until = (at_ns, at_ns + dark_ns), None
        if self._probed:
            self._timer.arm(max(at_ns - EARLY_NS, time.monotonic_ns()) / 1e9)

    def expect_light(self, at_ns: int) -> None:
        """The new circuits come later than was asked for: DARK was late."""
        self._changes = (self._changes[0], at_ns)

    def acknowledged(self, at_ns: int) -> None:
        """The new circuits were acknowledged: probe until a frame came through each, in vain only for so long."""
        self._until = at_ns + PATIENCE_NS

    @property
    def busy(self) -> bool:
        """Whether probes are still being sent."""
        return bool(self._probed) and not self._over()

    def finish(self) -> None:
        """Send no more probes for this change, and take in what has arrived."""
        self._timer.disarm()
        self.collect()

    def forget(self) -> None:
        """The change was dealt with: frames of it that come late say nothing."""
        self._probed = []
        self._change += 1

    def collect(self) -> None:
        """Take in what has arrived."""
        for tap in self._taps:
            for frame in tap.frames():
                magic, change, stream, number = _NAME.unpack_from(frame.payload)
                arrival = self._ports.get(frame.interface)
                if magic == _MAGIC and change == self._change and arrival is not None:
                    self._note(self._probed[stream], arrival, number, frame.at_ns)

    def results(self, done: Committed, dpids: Mapping[str, int], tdf: float) -> list[DataPlane]:
        """What the probes of the change say, which was committed; an entry for each OCS that was probed."""
        by_ocs: dict[str, list[_Sent]] = {}
        for sent in self._probed:
            by_ocs.setdefault(sent.stream.entry.node, []).append(sent)
        in_vain = self._until is not None and time.monotonic_ns() > self._until
        return [_judged(ocs, sent, _Instants.of(done, dpids[ocs], in_vain), tdf) for ocs, sent in by_ocs.items()]

    def close(self) -> None:
        """Close every socket."""
        self._loop.forget(self._timer.fileno())
        self._timer.close()
        for tap in self._taps:
            tap.close()
        for sender in self._senders.values():
            sender.close()

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if not self._timer.read():
            return
        for number, sent in enumerate(self._probed):
            self._send(number, sent)
        self._ticked(time.monotonic_ns())
        if self._until is not None:
            self.collect()
            if self._over():
                return
        self._timer.arm((time.monotonic_ns() + self._pace()) / 1e9)

    def _send(self, stream: int, sent: _Sent) -> None:
        entry = sent.stream.entry
        source = self._fabric.peer(entry)
        frame = _frame(self._change, stream, len(sent.at))
        with contextlib.suppress(OSError):  # the interface is down or full: a probe that is missing tells enough
            self._senders[self._place(source)].sendto(frame, (source.interface, _ETHERTYPE))
            self.carried[source] += 1
        sent.at.append(time.monotonic_ns())

    def _note(self, sent: _Sent, arrival: Port, number: int, at_ns: int) -> None:
        """A probe was seen; that it came to its port of entry was known when it was sent."""
        if arrival == sent.stream.entry:
            return
        exit_ = self._fabric.peer(arrival)
        self.carried[exit_] += 1
        if number < len(sent.at):
            sent.left.setdefault(exit_, {})[number] = at_ns

    def _over(self) -> bool:
        if self._until is None:
            return False
        arrived = all(sent.through(sent.stream.new) for sent in self._probed if sent.stream.new is not None)
        return arrived or time.monotonic_ns() > self._until

    def _pace(self) -> int:
        now = time.monotonic_ns()
        dark, light = self._changes
        near = dark - EARLY_NS <= now <= dark + _AFTER_NS or now >= light - EARLY_NS
        return max(_NEAR_NS if near else _FAR_NS, _SHARE_NS * len(self._probed))

    def _place(self, port: Port) -> str:
        return port.node if self._fabric.node(port.node).kind is Kind.HOST else _SWITCHES


def _frame(change: int, stream: int, number: int) -> bytes:
    head = b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack("!H", _ETHERTYPE)
    return (head + _NAME.pack(_MAGIC, change, stream, number)).ljust(FRAME_BYTES, b"\0")


# -- what probes say --------------------------------------------------------------------------------------------------


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


def _judged(ocs: str, probed: Iterable[_Sent], instants: _Instants, tdf: float) -> DataPlane:
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


def _last(sent: _Sent, dark_ns: int) -> _Edge:
    """The last frame by the circuit that goes."""
    passed, way = sent.through(sent.stream.old), f"{sent.stream.entry} -> {sent.stream.old}"
    if not passed:
        early = bisect_left(sent.at, dark_ns - EARLY_NS // 2)
        return _Edge(problem=f"no probe passed the circuit {way} before it was to go dark" if early else "")
    number = max(passed)
    if sent.at[-1] - sent.at[number] < _FAR_NS:
        return _Edge(problem=f"probes never ceased to pass the circuit {way}, which was to go dark")
    return _Edge(passed[number], sent.at[number + 1] - sent.at[number])


def _first(sent: _Sent, in_vain: bool) -> _Edge:
    """The first frame by the circuit that comes."""
    passed, way = sent.through(sent.stream.new), f"{sent.stream.entry} -> {sent.stream.new}"
    if not passed:
        within = f"within {PATIENCE_NS // _MS} ms after it was acknowledged"
        return _Edge(problem=f"no probe passed the new circuit {way} {within}" if in_vain else "")
    number = min(passed)
    return _Edge(passed[number], sent.at[number] - sent.at[number - 1] if number else 0)
