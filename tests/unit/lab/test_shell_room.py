"""The seam between a shell and its room: the words, the terminal's descriptors, and how it ends. No lab is built."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from emu.lab import rooms
from emu.lab.errors import LabError
from emu.lab.job import REFUSED, Job
from emu.lab.rooms import HostRoom, Terminal
from emu.progress import Progress

# Like emu.lab.shell_inner, with three lines in the place of a lab.
INNER = """\
import os, signal, sys, time
from pathlib import Path
from emu.lab.inner import keep_for_progress, teller
from emu.lab.job import Job
from emu.lab.shell_inner import Words, _take
from emu.progress import Progress
signal.signal(signal.SIGINT, signal.SIG_IGN)
words = Words(os.fdopen(os.dup(0), "rb", buffering=0))
given, *ends = map(int, sys.argv[1:])
tell = teller(keep_for_progress())
job = Job.read(Path(f"/proc/self/fd/{given}"))
tell(Progress("build", job.scenario, "f"))
if job.scenario == "broken":
    print("what broke it", file=sys.stderr)
    os._exit(1)
if job.scenario == "slow":
    time.sleep(60)
tell(Progress("done", "open", "f"))
words.opened.wait()
_take(ends)
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    said = sys.stdin.readline()
    if said == "wait\\n":
        print("waiting", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    said = "interrupted"
print("heard", said.strip(), flush=True)
os._exit(2 if said == "wrong\\n" else 0)
"""


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A room without namespaces, that starts the program above."""
    (tmp_path / "fake_inner.py").write_text(INNER)
    monkeypatch.setattr(rooms, "SEAL", ("env", f"PYTHONPATH={rooms._python_path()}:{tmp_path}"))
    started = rooms._started
    monkeypatch.setattr(rooms, "_started", lambda _, *rest: started("fake_inner", *rest))


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, Terminal]]:
    """What to write to, what to read from, and the terminal at their other ends."""
    (inside, keys), (screen, outside) = os.pipe(), os.pipe()
    yield keys, screen, Terminal(inside, outside, outside)
    for descriptor in (inside, keys, screen, outside):
        os.close(descriptor)


def job(scenario: str) -> Job:
    return Job("shell", scenario, 0)


@pytest.mark.parametrize(("typed", "status"), [("hello", 0), ("wrong", REFUSED)])
def test_what_is_typed_reaches_the_shell_and_its_status_comes_back(
    pipes: tuple[int, int, Terminal], typed: str, status: int
) -> None:
    keys, screen, terminal = pipes
    heard: list[Progress] = []
    os.write(keys, f"{typed}\n".encode())
    assert HostRoom().talk(job("fine"), terminal, heard.append) == status
    assert os.read(screen, 100) == f"heard {typed}\n".encode()
    assert [progress.stage for progress in heard] == ["build", "done"]


def test_an_interrupt_is_handed_to_what_runs_in_the_shell(pipes: tuple[int, int, Terminal]) -> None:
    keys, screen, terminal = pipes
    os.write(keys, b"wait\n")

    def interrupt() -> None:
        assert os.read(screen, 100) == b"waiting\n"
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    assert HostRoom().talk(job("fine"), terminal, lambda _: None) == 0
    assert os.read(screen, 100) == b"heard interrupted\n"


def test_an_interrupt_before_there_is_a_prompt_ends_the_lab(pipes: tuple[int, int, Terminal]) -> None:
    def interrupt(said: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HostRoom().talk(job("slow"), pipes[2], interrupt)


def test_a_lab_that_breaks_says_why(pipes: tuple[int, int, Terminal]) -> None:
    with pytest.raises(LabError, match=r"^what broke it$"):
        HostRoom().talk(job("broken"), pipes[2], lambda _: None)


def test_a_shell_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipes: tuple[int, int, Terminal]
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    os.write(pipes[0], b"hello\n")
    HostRoom().talk(job("fine"), pipes[2], lambda _: None if list(place.iterdir()) == [] else sys.exit("a file"))
    assert list(place.iterdir()) == []
