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

One thing is not measured: Open vSwitch's datapath keeps an entry of its own for each EtherType. All entries of a switch
are renewed in one sweep after a change, but data's own frames may cease or pass a moment before or after probes do.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Mapping

from controllers.channel import Committed
from controllers.epochs import Epoch
from emu.lab.counters import Transmitters
from emu.lab.probelog import EARLY_NS, PATIENCE_NS, ProbeLog, judge_probes, streams
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
_AFTER_NS = 40 * _MS
"""How long after an instant at which circuits should change probes are near each other; and before: EARLY_NS."""
_SETTLED = 0.1
"""Seconds after which a probe that was sent has arrived, or never will."""
_SWITCHES = ""
"""Stands for all switches, whose ports are in one namespace."""


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
        self._probed: list[ProbeLog] = []
        self._change = 0
        self._entries: dict[tuple[int, int], Port] = {}
        """By change and stream, where its probes enter."""
        self._sent_at = 0.0
        self._changes = (0, 0)
        self._until: int | None = None
        loop.watch(self._timer.fileno(), select.EPOLLIN, lambda _: self._tick())

    # -- around one change --------------------------------------------------------------------------------------------

    def begin(self, old: Epoch, new: Epoch, at_ns: int, dark_ns: int) -> None:
        """Probe the change from `old` to `new`, which begins at `at_ns` and is lit `dark_ns` later.

        It ends by `finish`, or a little after `acknowledged`.
        """
        self._change += 1
        self._probed = [ProbeLog(stream) for stream in streams(self._fabric, old, new)]
        self._entries.update({(self._change, n): sent.stream.entry for n, sent in enumerate(self._probed)})
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

    def settle(self) -> None:
        """Wait for what was sent a moment ago to arrive, so that every probe is counted where it went."""
        time.sleep(max(0.0, self._sent_at + _SETTLED - time.monotonic()))
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
                # That a probe came to its port of entry was known when it was sent.
                if magic != _MAGIC or arrival is None or arrival == self._entries.get((change, stream)):
                    continue
                exit_ = self._fabric.peer(arrival)
                self.carried[exit_] += 1
                if change == self._change:
                    self._probed[stream].left.setdefault(exit_, {})[number] = frame.at_ns

    def results(self, done: Committed, dpids: Mapping[str, int], tdf: float) -> list[DataPlane]:
        """What the probes of the change say, which was committed; an entry for each OCS that was probed."""
        in_vain = self._until is not None and time.monotonic_ns() > self._until
        return judge_probes(self._probed, done, dpids, tdf, in_vain=in_vain)

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

    def _send(self, stream: int, sent: ProbeLog) -> None:
        entry = sent.stream.entry
        source = self._fabric.peer(entry)
        frame = _frame(self._change, stream, len(sent.at))
        with contextlib.suppress(OSError):  # the interface is down or full: a probe that is missing tells enough
            self._senders[self._place(source)].sendto(frame, (source.interface, _ETHERTYPE))
            self.carried[source] += 1
        sent.at.append(time.monotonic_ns())
        self._sent_at = time.monotonic()

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
