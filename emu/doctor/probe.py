"""Inside the namespaces of a throw-away lab: does everything work that a lab does? Prints what fails as JSON.

Run as `python -m emu.doctor.probe` by `Machine.probe`; whatever it makes goes with its namespaces.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping

from pyroute2 import IPRoute

from emu.lab.namespaces import NetworkNamespace
from emu.lab.openvswitch import SocketBuffers
from emu.lab.shaping import Shape, apply

_NAME, _PEER = "doctor0", "doctor1"
_MTU = 9000
_DELAY_US = 1000


def veth() -> None:
    """Make a veth pair that takes large frames, and set it up."""
    with IPRoute() as netlink:
        netlink.link("add", ifname=_NAME, kind="veth", peer=_PEER)
        index = netlink.link_lookup(ifname=_NAME)[0]
        netlink.link("set", index=index, mtu=_MTU, state="up")


def shaping() -> None:
    """Shape an interface as a lab does: HTB with a byte-limited FIFO behind it."""
    with IPRoute() as netlink:
        apply(netlink, netlink.link_lookup(ifname=_NAME)[0], _NAME, Shape(rate=20_000_000, queue=100_000), _MTU)


def delay() -> None:
    """Delay what another interface sends."""
    with IPRoute() as netlink:
        netlink.tc("add", "netem", netlink.link_lookup(ifname=_PEER)[0], 0x10000, delay=_DELAY_US)


def buffers() -> None:
    """Take a copy of another process's packet socket and raise its buffers beyond the system's limit."""
    code = "from socket import *; s = socket(AF_PACKET, SOCK_RAW); print(flush=True); __import__('sys').stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        try:
            if other.stdout is not None:
                other.stdout.readline()  # the socket is open now
            sockets = SocketBuffers(other.pid)
            try:
                if not sockets.raise_all():
                    raise OSError("/proc/net/packet does not show the socket")
            finally:
                sockets.close()
        finally:
            other.kill()


def namespaces() -> None:
    """Open a socket inside the network namespace of a process, as the traffic engine does for every host."""
    with subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE) as other:
        try:
            namespace = NetworkNamespace(other.pid)
            with namespace.entered(), socket.socket():
                pass
            namespace.close()
        finally:
            other.kill()


def tmpfs() -> None:
    """Put a file system of its own over /run, where the private Open vSwitch lives."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "mode=0755", "emu", "/run"], check=True, capture_output=True, timeout=5
    )
    os.mkdir("/run/emu")


PROBES: Mapping[str, Callable[[], None]] = {
    "namespaces": namespaces,
    "veth": veth,
    "shaping": shaping,
    "delay": delay,
    "buffers": buffers,
    "tmpfs": tmpfs,
}
"""In this order: shaping and delay use the veth pair."""


def attempt(probe: Callable[[], None]) -> str:
    """What a probe failed with, empty if it did not."""
    try:
        probe()
    except subprocess.CalledProcessError as error:
        return str(error.stderr or b"", errors="replace").strip() or str(error)
    except Exception as error:  # whatever the kernel or a library says is the finding
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    json.dump({name: attempt(probe) for name, probe in PROBES.items()}, sys.stdout)
