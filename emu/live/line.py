"""The socket between a program and its open lab, and the lab's first process at the other end of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from typing import IO, Any, Protocol

from emu.errors import InputError
from emu.lab.errors import LabError
from emu.lab.rooms import SEAL
from emu.live.messages import Answer, Ask, Call, Reply, Setup

_LONGEST_LOG = 2000
_START_LIMIT, PATIENCE = 120.0, 15.0
"""Wall seconds that a lab may take to start, and that a call may take beyond what it was given."""


class Asked(Protocol):
    """What stayed with the user: a policy, an orchestrator."""

    @property
    def on(self) -> Any:  # noqa: ANN401 - each has arguments of its own
        """What is called with the arguments of an `Ask`."""
        ...


class Line:
    """Starts a lab, asks it, and answers what it asks back."""

    def __init__(self, setup: Setup) -> None:
        """Start it and wait until it is built. Raises LabError if it cannot be."""
        self.asked: dict[str, Asked] = {}
        self._raised: BaseException | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - kept until `close`; it has no name to be left behind
        self._process, self._connection = _start(self._log)
        try:
            self._connection.send(setup)
            self.started: float = self._hear(_START_LIMIT)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return not self._connection.closed and self._process.poll() is None

    def do(self, limit: float, name: str, *arguments: Any) -> Any:  # noqa: ANN401 - what each call takes and returns
        """What a call came to; `limit`: wall seconds that it may take by itself. Raises InputError and LabError.

        What a policy or orchestrator raised meanwhile is raised here, as it was.
        """
        if self._connection.closed:
            raise LabError("the lab was closed")
        self._raised = None
        try:
            self._connection.send(Call(name, arguments))
        except OSError as error:
            raise LabError(f"the lab has ended: {self._last_words()}") from error
        return self._hear(limit + PATIENCE)

    def close(self) -> None:
        """End it; the kernel takes away all that it made. May be called twice."""
        self._connection.close()
        self._process.kill()
        self._process.wait()
        self._log.close()

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _hear(self, limit: float) -> Any:  # noqa: ANN401
        """Answer what is asked back until the answer comes."""
        while True:
            heard = self._next(limit)
            if isinstance(heard, Ask):
                self._connection.send(self._reply(heard))
            elif self._raised is not None:
                raise self._raised
            else:
                return self._value(heard)

    def _next(self, limit: float) -> Answer | Ask:
        try:
            if self._connection.poll(limit):
                heard: Answer | Ask = self._connection.recv()
                return heard
        except (EOFError, OSError) as error:
            raise LabError(f"the lab has ended: {self._last_words()}") from error
        except BaseException:  # an interrupt: the answer to come would be taken for that of the next call
            self.close()
            raise
        self.close()
        raise LabError(f"the lab did not answer within {limit:g} s and was ended")

    def _reply(self, ask: Ask) -> Reply:
        try:
            return Reply(self.asked[ask.whom].on(*ask.arguments))
        except BaseException as error:  # pytest.fail and Ctrl-C too
            self._raised = error
            return Reply(raised=True)

    def _value(self, answer: Answer) -> Any:  # noqa: ANN401
        if not answer.problem:
            return answer.value
        if answer.kind == "input":
            raise InputError(answer.problem)
        raise LabError(f"defect: {answer.problem}; {self._last_words()}" if answer.kind == "defect" else answer.problem)

    def _last_words(self) -> str:
        if self._log.closed:
            return "its log is gone"
        size = os.fstat(self._log.fileno()).st_size
        words = os.pread(self._log.fileno(), _LONGEST_LOG, max(0, size - _LONGEST_LOG))
        return words.decode(errors="replace").strip() or "it left no word"


def _start(log: IO[bytes]) -> tuple[subprocess.Popen[bytes], Connection]:
    here, there = socket.socketpair()
    with there:
        process = subprocess.Popen(
            [*SEAL, sys.executable, "-m", "emu.live.inside", str(there.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[there.fileno()],
            start_new_session=True,  # a Ctrl-C at the terminal is for the user's program alone
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },  # the same emu, and what it needs
        )
    return process, Connection(here.detach())
