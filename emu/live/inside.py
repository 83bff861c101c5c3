"""The first process of an open lab's namespaces: `python -m emu.live.inside FD`, FD being its end of the socket.

It builds the lab that the first message asks for, answers, and then does one call after the other until the other end
is closed. When it ends, the kernel takes the namespaces away and all that is in them.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from controllers.epochs import CircuitError
from controllers.policies.protocol import CircuitPolicy
from controllers.policies.static import Static
from emu.errors import EmuError, InputError
from emu.live.bench import Bench
from emu.live.messages import Answer, Ask, Call, Decider, LiveRun, PolicyStub, Reply, Setup, Work
from emu.live.script import DistantOrchestrator, DistantPolicy, Script
from emu.scenario.schema import Scenario
from workloads.protocol import Orchestrator

_PRIVATE = Path("/run")


class _AskedError(Exception):
    """What stayed with the user raised an exception; the user's side has it."""


class Server:
    """Does what the other end asks for."""

    def __init__(self, connection: Connection) -> None:
        """`serve` waits for the first message."""
        self._connection = connection

    def serve(self) -> None:
        """Build, then answer calls until the other end is closed."""
        setup: Setup = self._connection.recv()
        scenario = Scenario.from_json(setup.scenario)
        if not self._answer(lambda: self._build(scenario, setup)):
            return
        while True:
            try:
                call: Call = self._connection.recv()
            except (EOFError, OSError):
                return
            self._answer(lambda call=call: self._do[call.name](*call.arguments))  # type: ignore[misc]

    def _build(self, scenario: Scenario, setup: Setup) -> float:
        self._bench = Bench(scenario, setup.built, setup.scale, _PRIVATE / "emu")
        self._bench.build()
        self._bench.install()
        return self._bench.started

    @property
    def _do(self) -> Mapping[str, Callable[..., Any]]:
        bench = self._bench
        plain = ("reset", "ping", "command", "set_circuits", "circuits", "counters", "path", "foreign_rules")
        return {"run": self._run, **{name: getattr(bench, name) for name in plain}}

    def _run(self, work: Work, decider: Decider, timeout: float) -> LiveRun:
        policy = self._policy(decider)
        if work is None:  # an orchestrator with a state: it can be asked once only
            return self._bench.run(DistantOrchestrator(self._ask), policy, timeout)
        return self._bench.rehearsed(lambda: _fresh(work), policy, timeout)

    def _policy(self, decider: Decider) -> CircuitPolicy:
        if isinstance(decider, PolicyStub):
            return DistantPolicy(decider.name, decider.known, self._ask)
        return self._bench.built.policy if decider == "fabric" else Static()

    def _ask(self, whom: str, *arguments: Any) -> Any:  # noqa: ANN401 - whatever is asked and answered
        self._connection.send(Ask(whom, arguments))  # type: ignore[arg-type]
        reply: Reply = self._connection.recv()
        if reply.raised:
            raise _AskedError
        return reply.value

    def _answer(self, act: Callable[[], Any]) -> bool:
        try:
            answer = Answer(act())
        except (InputError, CircuitError) as error:  # a policy's circuits that no OCS can hold are its user's mistake
            answer = Answer(problem=str(error), kind="input")
        except EmuError as error:
            answer = Answer(problem=str(error), kind="lab")
        except Exception:
            traceback.print_exc()
            answer = Answer(problem=traceback.format_exc(limit=-1).strip().splitlines()[-1], kind="defect")
        self._connection.send(answer)
        return not answer.problem


def _fresh(work: Orchestrator | tuple[Any, ...]) -> Orchestrator:
    """An orchestrator that nobody has asked yet."""
    return Script(*work) if isinstance(work, tuple) else pickle.loads(pickle.dumps(work))


def main(descriptor: int) -> None:
    """Take a tmpfs of the lab's own, and serve."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "emu", str(_PRIVATE)], check=True)
    Server(Connection(descriptor)).serve()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # the namespaces end with this process, and everything in them
