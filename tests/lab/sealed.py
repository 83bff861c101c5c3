"""Tests in fresh namespaces: nothing that they do is seen outside, and nothing outlives them.

`sealed(room)` makes a test of a function that takes what `room` opens: the test starts this module in namespaces of
its own, which opens the room, calls the function and passes its outcome on. The namespaces' first process dies with the
test's, and everything else in them with it. What the function writes to the standard output becomes the test's.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEAL = (
    *("prlimit", "--nofile=1024:"),  # what a login has, whatever this one has
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--mount-proc", "--fork", "--kill-child", "--"),
)

_LONGEST = 1000

T = TypeVar("T")
Room = Callable[[Path], AbstractContextManager[T]]
"""Opens in a directory (a tmpfs of the test's own), inside the namespaces, what a test works with."""


def sealed(room: Room[T], timeout: float = 60.0) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test's body in namespaces of its own, with what `room` opens as its first argument.

    Further arguments come from pytest.mark.parametrize and must be plain (they travel as JSON). `timeout`: seconds
    after which the whole test is killed and has failed.
    """

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        def outside(**arguments: Any) -> None:  # noqa: ANN401 - whatever parametrize gives
            _run(body, arguments, timeout)

        outside.__name__, outside.__doc__, outside.__module__ = body.__name__, body.__doc__, body.__module__
        signature = inspect.signature(body)
        _, *rest = signature.parameters.values()
        outside.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined] # what pytest reads
        outside.inside = (room, body)  # type: ignore[attr-defined]
        return outside

    return decorate


def _run(body: Callable[..., None], arguments: dict[str, Any], timeout: float) -> None:
    """Outside: start this module in the namespaces and judge how it ends."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to make namespaces")
    module = ".".join(Path(body.__code__.co_filename).resolve().relative_to(ROOT).with_suffix("").parts)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory(prefix="sealed-") as directory:
        command = [*SEAL, sys.executable, "-m", __name__, module, body.__name__, directory, json.dumps(arguments)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, f"in the sealed lab:\n{done.stdout}{done.stderr}"


def main(arguments: Sequence[str]) -> int:
    """Inside the namespaces: open the room and run one test's body; returns the exit status."""
    module, name, directory, values = arguments
    room, body = getattr(importlib.import_module(module), name).inside
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], check=True)
    try:
        with room(Path(directory)) as opened:
            body(opened, **json.loads(values))
    except BaseException as error:
        sys.stderr.writelines(_story(error))
        return 1
    return 0


def _story(error: BaseException) -> Iterator[str]:
    """A traceback with every frame's locals, cut short: they stand in for what pytest would say of an assertion."""
    found = traceback.TracebackException.from_exception(error, capture_locals=True)
    for frame in found.stack:
        frame.locals = {name: value[:_LONGEST] for name, value in (frame.locals or {}).items()}
    return found.format()


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # the namespaces end with this process, and everything in them
