"""OCSs alone, for the benchmarks of circuits: changes of epoch at a controller, stamped, and frames that cross them.

`python -m benchmarks.optics commit|dark` prints what it measured as JSON. It must be started in namespaces of its own
(see `benchmarks.circuits`): it mounts over /run and makes its interfaces where it stands. Every OCS has the circuits
1-2, 3-4, ... or, after a change, 2-3, 4-5, ...: so every circuit changes, each time.
"""

from __future__ import annotations

import itertools
import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from controllers.channel import Committed, ControllerError, RuleChange, Staged
from controllers.client import ControllerClient
from controllers.epochs import Matching, duplex
from controllers.process import ControllerProcess
from controllers.routes import CIRCUIT
from controllers.tables import Rule, Table
from emu.lab.hosts import quiet_ipv6
from emu.lab.openvswitch import OpenVSwitch, run
from emu.lab.tap import Tap, unshaped_sender

PORTS = 16
"""Of each OCS: as many circuits, eight pairs of ports both ways."""
OCSES = 4
COMMITS = 100
DARKS = {10: 30, 100: 20, 1000: 10}
"""By asked dark time (wall ms): how many changes."""

_MS = 1_000_000
_AHEAD_NS = 60 * _MS
"""From the preparation of a change to its instant: what the lab gives, in short."""
_AFTER_NS = 60 * _MS
_SETTLING = 3.0
"""Seconds after the OCSs stand: the kernel is still at work on so many new interfaces."""
_PACE = 0.0002
"""Seconds between two frames, on top of what sending one takes."""
_EVEN, _ODD = (duplex((n, n % PORTS + 1) for n in range(first, PORTS + 1, 2)) for first in (1, 2))


@dataclass(frozen=True)
class Stage:
    """One stage of one change, in seconds: first COMMIT to last barrier, first to last OCS, and how late it began."""

    stage: str
    barrier: float
    skew: float
    late: float

    @classmethod
    def of(cls, staged: Staged) -> Stage:
        """By the controller's stamps."""
        barrier = (staged.replied_ns - staged.sent_ns) / 1e9
        return cls(staged.stage, barrier, staged.skew, staged.lateness)


@dataclass(frozen=True)
class Crossing:
    """One change as frames saw it that cross one OCS, in seconds.

    asked, control, plane: dark time, from the last frame by the old circuit to the first by the new one for `plane`.
    last, last_replied: when the last frame left by the old circuit, after DARK was sent and after it was acknowledged.
    first: when the first left by the new one, after LIGHT was sent. apart: median distance of frames.
    """

    asked: float
    control: float
    plane: float
    last: float
    last_replied: float
    first: float
    apart: float


# -- OCSs --------------------------------------------------------------------------------------------------------------


@contextmanager
def optics(count: int) -> Iterator[ControllerClient]:
    """So many OCSs with their circuits lit, and the controller that they listen to."""
    subprocess.run(["mount", "-t", "tmpfs", "emu", "/run"], check=True)
    switch = OpenVSwitch(Path("/run/emu"))
    switch.start()
    dpids = range(1, count + 1)
    quiet_ipv6()  # as in a lab: neighbour discovery would wake every switch
    run("ip", "-batch", "-", text="link set lo up\n" + "".join(map(_cables, dpids)))
    try:
        with ControllerProcess(Path("/run/emu/controller.sock")) as client:
            run("ovs-vsctl", *itertools.chain.from_iterable(map(_bridge, dpids)))
            client.wait_connected(dpids, 10)
            client.install(dict.fromkeys(dpids, _table(_EVEN)), 10)
            client.poll()
            time.sleep(_SETTLING)
            yield client
    finally:
        switch.stop()


def _cables(dpid: int) -> str:
    """Commands for `ip`: ports o<dpid>-<n> and what is plugged into them, w<dpid>-<n>."""
    lines = []
    for port in range(1, PORTS + 1):
        lines.append(f"link add o{dpid}-{port} type veth peer name w{dpid}-{port}")
        lines += [f"link set {end}{dpid}-{port} up" for end in "ow"]
    return "\n".join(lines) + "\n"


def _bridge(dpid: int) -> list[str]:
    """Arguments for ovs-vsctl: one OCS."""
    name = f"o{dpid}"
    words = ["--", "add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", "protocols=OpenFlow14"]
    words += ["fail-mode=secure", f"other-config:datapath-id={dpid:016x}", "other_config:disable-in-band=true"]
    for number in range(1, PORTS + 1):
        port = f"{name}-{number}"
        words += ["--", "add-port", name, port, "--", "set", "interface", port, f"ofport_request={number}"]
    return [*words, "--", "set-controller", name, "tcp:127.0.0.1:6653"]


def _table(matching: Matching) -> Table:
    return tuple(Rule(CIRCUIT, out, in_port=entry) for entry, out in sorted(matching))


class Changer:
    """Moves OCSs to and fro between their two sets of circuits."""

    def __init__(self, client: ControllerClient, dpids: range) -> None:
        """All of `dpids` at once; they hold the first set."""
        self._client, self._dpids = client, dpids
        self._old, self._new = _EVEN, _ODD
        self._numbers = itertools.count()
        self._name = ""

    def exits(self, entry: int) -> tuple[int, int]:
        """Where what comes in by a port leaves before and after the next change."""
        return dict(self._old)[entry], dict(self._new)[entry]

    def prepare(self, at_ns: int, dark_ns: int) -> None:
        """Hand the next change over, for an instant."""
        self._name = f"change {next(self._numbers)}"
        dark = dict.fromkeys(self._dpids, RuleChange(delete=_table(self._old)))
        light = dict.fromkeys(self._dpids, RuleChange(add=_table(self._new)))
        self._client.prepare(self._name, dark=dark, light=light, at_ns=at_ns, reconfiguration_ns=dark_ns)

    def wait(self) -> Committed:
        """The end of the change. Raises ControllerError if it was given up."""
        done = self._client.wait_change(self._name, 5)
        self._client.poll()
        if not isinstance(done, Committed):
            raise ControllerError(f"{self._name}: {done.reason}", done.dpid)
        self._old, self._new = self._new, self._old
        return done


# -- COMMIT to barrier -------------------------------------------------------------------------------------------------


def measure_commits() -> list[Stage]:
    """Both stages of many changes of all circuits of all OCSs, 10 ms of darkness each."""
    dpids = range(1, OCSES + 1)
    stages = []
    with optics(OCSES) as client:
        changer = Changer(client, dpids)
        for _ in range(COMMITS):
            changer.prepare(time.monotonic_ns() + _AHEAD_NS, 10 * _MS)
            done = changer.wait()
            stages += [Stage.of(done.dark), Stage.of(done.light)]
        client.verify(dpids, 5)
    return stages


# -- frames through the dark -------------------------------------------------------------------------------------------

_IPV4, _BYTES = 0x0800, 1000
_ENTRY = 1
_NAME = struct.Struct("!II")
_IP = struct.pack("!BBHHHBBH4s4s", 0x45, 0, _BYTES - 14, 0, 0, 64, 253, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
"""An IPv4 header of experimental protocol 253 (RFC 3692): frames meet the entries that data has in the datapath."""
_BUFFER = 256 << 20


class Stream:
    """Numbered frames into one port of the OCS, one every quarter of a millisecond, and where they come out."""

    def __init__(self) -> None:
        """Open the sockets."""
        self._sender: socket.socket = unshaped_sender(nullcontext())
        self._tap = Tap(_IPV4, nullcontext(), buffer=_BUFFER)
        self._change = 0

    def send_until(self, end_ns: int) -> list[int]:
        """Send frames of one change; returns when each was sent."""
        self._change += 1
        sent: list[int] = []
        while (now := time.monotonic_ns()) < end_ns:
            head = bytes((2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1)) + struct.pack("!H", _IPV4)
            frame = (head + _IP + _NAME.pack(self._change, len(sent))).ljust(_BYTES, b"\0")
            self._sender.sendto(frame, (f"w1-{_ENTRY}", _IPV4))
            sent.append(now)
            time.sleep(_PACE)
        return sent

    def arrivals(self) -> Mapping[str, list[int]]:
        """By interface behind a port: when frames of this change arrived there."""
        time.sleep(0.05)
        seen: dict[str, list[int]] = {}
        for frame in self._tap.frames():
            if frame.interface.startswith("w") and frame.payload[: len(_IP)] == _IP:
                change, _ = _NAME.unpack_from(frame.payload, len(_IP))
                if change == self._change:
                    seen.setdefault(frame.interface, []).append(frame.at_ns)
        return seen


def measure_darkness() -> list[Crossing]:
    """Changes of one OCS under a stream of frames, at each of the dark times."""
    with optics(1) as client:
        changer, stream = Changer(client, range(1, 2)), Stream()
        stream.send_until(time.monotonic_ns() + _AHEAD_NS)
        stream.arrivals()
        return [_cross(changer, stream, dark * _MS) for dark, count in DARKS.items() for _ in range(count)]


def _cross(changer: Changer, stream: Stream, dark_ns: int) -> Crossing:
    old, new = (f"w1-{port}" for port in changer.exits(_ENTRY))
    at_ns = time.monotonic_ns() + _AHEAD_NS
    changer.prepare(at_ns, dark_ns)
    sent = stream.send_until(at_ns + dark_ns + _AFTER_NS)
    done = changer.wait()
    seen = stream.arrivals()
    if seen.keys() != {old, new}:
        raise ControllerError(f"frames left by {sorted(seen)}, not just by {old} and {new}", 1)
    last, first = max(seen[old]), min(seen[new])
    gaps = sorted(after - before for before, after in itertools.pairwise(sent))
    return Crossing(
        asked=dark_ns / 1e9,
        control=done.control_dark,
        plane=(first - last) / 1e9,
        last=(last - done.dark.sent_ns) / 1e9,
        last_replied=(last - done.dark.replied_ns) / 1e9,
        first=(first - done.light.sent_ns) / 1e9,
        apart=gaps[len(gaps) // 2] / 1e9,
    )


def main(what: str) -> None:
    """Print a list of `Stage` or of `Crossing`."""
    rows: list[Stage] | list[Crossing] = measure_commits() if what == "commit" else measure_darkness()
    print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main(sys.argv[1])
