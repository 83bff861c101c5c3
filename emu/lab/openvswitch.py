"""A private Open vSwitch: own database, own daemon, own run directory on a tmpfs. The system's is never touched.

`SocketBuffers` raises the buffers of the daemon's AF_PACKET sockets from outside. With the userspace datapath all ports
send through one such socket, whose default buffer (net.core.wmem_default) loses packets as soon as some hosts send at
once; the setting is machine-wide, the socket option is not.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from emu.lab.errors import LabError

BUFFER_BYTES = 64 << 20
"""What every AF_PACKET socket of the daemon gets, both ways: seconds of traffic at the rates that it can carry."""

_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_PIDFD_GETFD = 438
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_MEMINFO = 32, 33, 55
_MEMINFO = struct.Struct("9I")  # SK_MEMINFO_*: rmem, rcvbuf, wmem, sndbuf, fwd, queued, optmem, backlog, drops
_libc = ctypes.CDLL(None, use_errno=True)


class OpenVSwitch:
    """One ovsdb-server and one ovs-vswitchd, children of this process."""

    def __init__(self, directory: Path) -> None:
        """Start nothing yet; `directory` must be private to the lab (a tmpfs)."""
        self.directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        """What makes ovs-vsctl, ovs-ofctl and ovs-appctl talk to this instance."""
        place = str(self.directory)
        return {"OVS_RUNDIR": place, "OVS_LOGDIR": place, "OVS_DBDIR": place, "OVS_SYSCONFDIR": place}

    @property
    def switchd_pid(self) -> int:
        """The process id of ovs-vswitchd."""
        return self._processes[1].pid

    def start(self, timeout: float = 10.0) -> None:
        """Start both daemons and set the environment of this process; raises LabError if they do not come up."""
        self.directory.mkdir(parents=True, exist_ok=True)
        os.environ.update(self.environment)
        database, remote = self.directory / "conf.db", f"unix:{self.directory}/db.sock"
        run("ovsdb-tool", "create", str(database), str(_SCHEMA))
        self._spawn("ovsdb-server", f"--remote=p{remote}", str(database))
        self._wait(self.directory / "db.sock", timeout)
        run("ovs-vsctl", "--no-wait", "init")
        # Idle bundles must outlive the wait between prepare and commit; statistics are asked for, not polled.
        settings = ("other_config:bundle-idle-timeout=3600", "other_config:stats-update-interval=3600000")
        run("ovs-vsctl", "--no-wait", "set", "Open_vSwitch", ".", *settings)
        self._spawn("ovs-vswitchd", remote)
        self._wait(self.directory / f"ovs-vswitchd.{self.switchd_pid}.ctl", timeout)

    def alive(self) -> bool:
        """Whether both daemons still run."""
        return all(process.poll() is None for process in self._processes)

    def stop(self) -> None:
        """End both daemons."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._processes.clear()

    def _spawn(self, program: str, *arguments: str) -> None:
        command = [program, "--no-chdir", f"--log-file={self.directory}/{program}.log", "-vconsole:off", *arguments]
        self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))

    def _wait(self, path: Path, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not path.exists():
            if not self.alive() or time.monotonic() > deadline:
                raise LabError(f"Open vSwitch did not start ({path.name} is missing): {self._last_log()}")
            time.sleep(0.01)

    def _last_log(self) -> str:
        logs = sorted(self.directory.glob("*.log"))
        lines = [line for log in logs for line in log.read_text(errors="replace").splitlines()[-2:]]
        return "; ".join(lines) or "it left no log"


def run(*command: str, text: str = "") -> str:
    """Run a command on `text` to its end and return what it printed; raises LabError with its words if it fails."""
    if shutil.which(command[0]) is None:
        raise LabError(f"{command[0]} is not installed; run `emu doctor`")
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"`{' '.join(command[:6])}…` failed: {(done.stderr or done.stdout).strip()[:500]}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class SocketState:
    """One AF_PACKET socket of the daemon as the kernel sees it: buffer sizes and packets lost at its receive queue."""

    send_buffer: int
    receive_buffer: int
    drops: int


class SocketBuffers:
    """Copies of the daemon's AF_PACKET sockets, to set their buffers and to read their drops at any time."""

    def __init__(self, pid: int) -> None:
        """Watch the sockets of process `pid`."""
        self._pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._sockets: dict[str, socket.socket] = {}

    def raise_all(self, size: int = BUFFER_BYTES) -> int:
        """Set both buffers of every AF_PACKET socket that is there now; call it after each port added.

        Returns how many sockets were newly found. Raises PermissionError where the capability is refused.
        """
        found = 0
        for inode, fd in self._packet_sockets():
            if inode in self._sockets:
                continue
            copy = self._duplicate(fd)
            copy.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, size)
            copy.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, size)
            self._sockets[inode] = copy
            found += 1
        return found

    def states(self) -> tuple[SocketState, ...]:
        """The state of every known socket."""
        return tuple(self._state(copy) for copy in self._sockets.values())

    def close(self) -> None:
        """Drop the copies; the daemon keeps its own."""
        for copy in self._sockets.values():
            copy.close()
        os.close(self._pidfd)

    def _packet_sockets(self) -> Sequence[tuple[str, int]]:
        rows = Path("/proc/net/packet").read_text().splitlines()[1:]
        inodes = {row.split()[8] for row in rows}
        out = []
        for entry in os.scandir(f"/proc/{self._pid}/fd"):
            try:
                target = os.readlink(entry.path)
            except OSError:
                continue  # closed between the listing and the look
            if target.startswith("socket:[") and target[8:-1] in inodes:
                out.append((target[8:-1], int(entry.name)))
        return out

    def _duplicate(self, fd: int) -> socket.socket:
        copy = _libc.syscall(_PIDFD_GETFD, self._pidfd, fd, 0)
        if copy < 0:
            error = ctypes.get_errno()
            raise OSError(error, f"pidfd_getfd: {os.strerror(error)}")
        return socket.socket(fileno=copy)

    @staticmethod
    def _state(copy: socket.socket) -> SocketState:
        info = _MEMINFO.unpack(copy.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))
        return SocketState(send_buffer=info[3], receive_buffer=info[1], drops=info[8])
