"""The controller process: `python -m controllers.process --socket PATH --listen 127.0.0.1:6653`.

It runs in the lab's namespaces, listens for switches on the loopback interface only, talks to the engine over the Unix
socket and writes its log to the standard error. It ends when the engine hangs up, and dies with its parent.
`ControllerProcess` starts it and stops it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import ipaddress
import logging
import os
import shutil
import signal
import socket as sockets
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from controllers.channel import ControllerError, ControllerLost
from controllers.client import ControllerClient

_PR_SET_PDEATHSIG = 1
_PR_SET_TIMERSLACK = 29
_SWITCH_INTERVAL = 0.0005
"""Seconds after which a thread must hand over the interpreter: Python's own 5 ms would show as lateness."""
INTERPRETER = "EMU_CONTROLLER_PYTHON"
"""The environment variable that names another Python for the controller."""
_LOG = logging.getLogger("controllers")


# -- inside the process ----------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller until the engine hangs up."""
    options = _parse(arguments)
    _tie_to_parent(options.parent)
    logging.basicConfig(stream=sys.stderr, level=options.log_level, format="%(asctime)s %(name)s %(message)s")
    host, port = options.listen
    _require_free(host, port)
    status = _serve(options.socket, host, port)
    logging.shutdown()
    # The library's native threads cannot be stopped, and an ordinary exit would wait for them.
    os._exit(status)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="controllers.process", description="The OpenFlow controller of a lab.")
    parser.add_argument("--socket", required=True, help="path of the Unix socket for the engine")
    parser.add_argument("--listen", type=_loopback, default=("127.0.0.1", 6653), metavar="ADDRESS:PORT")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process that this one must not outlive")
    parser.add_argument("--log-level", default="WARNING", choices=["DEBUG", "INFO", "WARNING", "ERROR"])
    return parser.parse_args(arguments)


def _loopback(text: str) -> tuple[str, int]:
    """ADDRESS:PORT of the loopback interface; argparse shows the message of what it raises."""
    address, _, port = text.rpartition(":")
    try:
        loopback = ipaddress.IPv4Address(address).is_loopback and 0 < int(port) < 65536
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    if not loopback:
        raise argparse.ArgumentTypeError(f"{text}: the controller listens on the loopback interface only")
    return address, int(port)


def _tie_to_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends; leave if that has happened already."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # nanoseconds; inherited by threads started later
    if os.getppid() != parent:
        sys.exit("the process that started the controller is gone")


def _require_free(host: str, port: int) -> None:
    """Leave if the port is taken: Ryu would share it (SO_REUSEPORT), and each of two controllers get some switches."""
    with sockets.socket() as probe:
        probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            sys.exit(f"cannot listen at {host}:{port}: {error.strerror}")


def _serve(socket: str, host: str, port: int) -> int:
    """Run the applications until the engine is gone; returns the exit status."""
    from controllers import ryu_api  # noqa: PLC0415 - costs 0.4 s, and only this process needs it

    hub, ended = ryu_api.hub, ryu_api.hub.Queue()
    ryu_api.configure(host, port)
    manager = ryu_api.AppManager.get_instance()
    manager.load_apps(["controllers.ofp.app", ryu_api.OFP_HANDLER])
    services = manager.instantiate_apps(
        socket=socket, on_gone=lambda reason: ended.put((0, reason)), **manager.create_contexts()
    )
    hub.spawn(_watch_listener, hub, services, ended)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    gc.collect()
    gc.freeze()  # the library's tables never die; without this a collection walks them all
    _LOG.info("%s listens at %s:%d and %s", ryu_api.VERSION, host, port, socket)
    status, reason = ended.get()
    _LOG.log(logging.ERROR if status else logging.INFO, "ends: %s", reason)
    return int(status)


def _watch_listener(hub: Any, services: list[Any], ended: Any) -> None:  # noqa: ANN401 - the library has no types
    """The library's listener only ends when it cannot listen; its own log then says why."""
    hub.joinall(services)
    ended.put((1, "the library stopped listening for switches"))


# -- outside ---------------------------------------------------------------------------------------------------------


def interpreter() -> str:
    """The interpreter that runs the controller: what EMU_CONTROLLER_PYTHON names, a path or a program, or this one.

    Ryu cannot be installed beside os-ken's companions, so it has an environment of its own. Raises ControllerError if
    the variable names nothing that can be run.
    """
    asked = os.environ.get(INTERPRETER)
    if not asked:
        return sys.executable
    found = shutil.which(asked)
    if found is None:
        raise ControllerError(f"{INTERPRETER}={asked}: there is no such program")
    return found


class ControllerProcess:
    """Starts the controller process and stops it. A context manager.

    socket: where it shall talk to the engine; in a directory of the lab, at most 107 bytes long.
    listen: where switches connect, on the loopback interface of this process's network namespace.
    log: the file for its standard error, by default beside the socket.
    python: the interpreter to run it, by default `interpreter()`; see `controllers.ryu_api` for what the environment
        says about the library that it uses.

    Start it from a thread that lives as long as the lab: it is killed when that thread ends.
    """

    def __init__(
        self, socket: Path, *, listen: str = "127.0.0.1:6653", log: Path | None = None, python: str | None = None
    ) -> None:
        self._socket = socket
        self._listen = listen
        self.log = log or socket.with_suffix(".log")
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self._client: ControllerClient | None = None

    def __enter__(self) -> ControllerClient:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process's id. Raises ControllerLost if it was not started."""
        if self._process is None:
            raise ControllerLost("the controller process was not started")
        return self._process.pid

    def start(self, timeout: float = 10.0) -> ControllerClient:
        """Start the process and return a connected client. Raises ControllerError with the log's end if that fails."""
        self._process = self._spawn()
        try:
            self._client = self._connect(self._process, time.monotonic() + timeout)
        except BaseException:
            self.stop()
            raise
        return self._client

    def stop(self, timeout: float = 2.0) -> None:
        """Hang up, which ends the process; kill it if that takes too long. Safe to call twice."""
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._process is not None:
            try:
                self._process.wait(timeout if self._process.poll() is None else 0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._socket.unlink(missing_ok=True)

    def log_end(self, lines: int = 5) -> str:
        """The last lines of the log."""
        try:
            return " | ".join(self.log.read_text(errors="replace").splitlines()[-lines:]) or "(nothing logged)"
        except OSError as error:
            return f"({self.log}: {error.strerror})"

    def _connect(self, process: subprocess.Popen[bytes], deadline: float) -> ControllerClient:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise ControllerError(f"the controller ended with status {process.returncode}: {self.log_end()}")
            if self._socket.exists():
                with contextlib.suppress(ControllerLost):  # bound, but not listening yet
                    return ControllerClient.connect(self._socket, max(0.1, deadline - time.monotonic()))
            time.sleep(0.01)
        raise ControllerError(f"the controller did not start in time: {self.log_end()}")

    def _spawn(self) -> subprocess.Popen[bytes]:
        root = str(Path(__file__).resolve().parent.parent)
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        command = [self._python or interpreter(), "-m", "controllers.process"]
        command += ["--socket", str(self._socket), "--listen", self._listen]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [*command, "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )


if __name__ == "__main__":
    sys.exit(main())
