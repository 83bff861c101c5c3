"""A sealed lab for controller tests: namespaces with a private userspace Open vSwitch and a controller process.

`@sealed` makes a test of a function that takes a Lab; see tests.lab.sealed.

Each test runs twice, on os-ken and on Ryu: conftest.py says in the environment which library the controller takes.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controllers.client import ControllerClient
from controllers.process import ControllerProcess
from tests.lab.sealed import sealed as in_namespaces

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
ETHERTYPE = 0x88B5
SO_RCVBUFFORCE = 33
CONTROLLER = "tcp:127.0.0.1:6653"


def run(*command: str) -> str:
    """Run a command that must succeed; returns what it printed."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout


class Lab:
    """What a sealed test works with."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.controller = ControllerProcess(directory / "controller.sock")
        self._client: ControllerClient | None = None

    @property
    def client(self) -> ControllerClient:
        """The controller's client; starts the controller at the first use."""
        if self._client is None:
            self._client = self.controller.start()
        return self._client

    def start_switches(self) -> None:
        """Start the private Open vSwitch."""
        run("ip", "link", "set", "lo", "up")
        database = self.directory / "db.sock"
        run("ovsdb-tool", "create", str(self.directory / "conf.db"), SCHEMA)
        detached = ["--detach", "--no-chdir", "--pidfile"]
        run("ovsdb-server", *detached, f"--remote=punix:{database}", str(self.directory / "conf.db"))
        run("ovs-vsctl", "--no-wait", "init")
        log = self.directory / "vswitchd.log"
        run("ovs-vswitchd", *detached, f"--log-file={log}", f"unix:{database}")

    def bridge(self, dpid: int, ports: int = 0) -> None:
        """Add the bridge b<dpid>, with `ports` veth pairs: b<dpid>-<n> in it, h<dpid>-<n> outside."""
        name = f"b{dpid}"
        command = ["add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", "protocols=OpenFlow14"]
        command += ["fail-mode=secure", f"other-config:datapath-id={dpid:016x}"]
        for number in range(1, ports + 1):
            run("ip", "link", "add", f"h{dpid}-{number}", "type", "veth", "peer", f"b{dpid}-{number}")
            for end in "bh":
                run("ip", "link", "set", f"{end}{dpid}-{number}", "up")
            port = f"b{dpid}-{number}"
            command += ["--", "add-port", name, port, "--", "set", "interface", port, f"ofport_request={number}"]
        run("ovs-vsctl", *command, "--", "set-controller", name, CONTROLLER)

    def bridges(self, *dpids: int, ports: int = 0) -> ControllerClient:
        """Add bridges and wait until the controller has them all."""
        client = self.client
        for dpid in dpids:
            self.bridge(dpid, ports)
        client.wait_connected(dpids, 5)
        client.poll()
        return client

    def signal_switches(self, number: signal.Signals) -> None:
        """Send a signal to this lab's ovs-vswitchd."""
        os.kill(int((self.directory / "ovs-vswitchd.pid").read_text()), number)


class Wire:
    """The outer end of a bridge's port: sends frames that carry the time, and receives those of others."""

    def __init__(self, dpid: int, number: int) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        self._socket.bind((f"h{dpid}-{number}", ETHERTYPE))
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)  # frames are read after the test
        self._number = number

    def send(self) -> None:
        """Send one frame."""
        header = b"\xff" * 6 + bytes((2, 0, 0, 0, 0, self._number)) + ETHERTYPE.to_bytes(2, "big")
        self._socket.send(header + struct.pack("!Q", time.monotonic_ns()) + bytes(40))

    def received(self) -> list[tuple[int, int]]:
        """All frames that have come: (the port that sent it, when it was sent in CLOCK_MONOTONIC ns)."""
        frames = []
        while True:
            try:
                frame, address = self._socket.recvfrom(200)
            except BlockingIOError:
                return frames
            if address[2] != socket.PACKET_OUTGOING:
                frames.append((frame[11], struct.unpack("!Q", frame[14:22])[0]))


@contextmanager
def _built(directory: Path) -> Iterator[Lab]:
    for variable in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"):
        os.environ[variable] = str(directory)
    lab = Lab(directory)
    lab.start_switches()
    try:
        yield lab
    except BaseException:
        sys.stderr.write(f"controller's log: {lab.controller.log_end(40)}\n")
        raise
    finally:
        lab.controller.stop()


sealed = in_namespaces(_built, timeout=30)
"""Run a test's body in a sealed lab of its own."""
