"""The recorder of captures, with a stand-in for tcpdump that writes what it was called with."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emu.captures import read_captures
from emu.lab.capture import Recorder
from emu.lab.errors import LabError
from emu.lab.namespaces import NetworkNamespace
from emu.packet.clock import ModelClock
from emu.scenario.capture_spec import Capture
from topologies.fabric import Fabric, Kind, Port

LISTENS = """\
#!/bin/sh
trap 'echo "7 packets captured" >&2; echo "LOST packets dropped by kernel" >&2; exit 0' TERM
echo "$@"
echo "tcpdump: listening on here" >&2
AFTER
while :; do sleep 0.05; done
"""


class Stage:
    """A lab of a host and a ToR, as far as a recorder needs one."""

    def __init__(self, folder: Path) -> None:
        fabric = Fabric("pair")
        fabric.add_host("h0")
        fabric.add_switch("t0", Kind.TOR)
        fabric.connect(Port("h0", 0), Port("t0", 1), rate=10**9)
        self.fabric = fabric
        self.folder = folder / "captures"
        own = SimpleNamespace(entered=NetworkNamespace().entered) if os.geteuid() == 0 else None
        self.lab: Any = SimpleNamespace(notes=[], net=SimpleNamespace(namespaces={"h0": own}))

    def recorder(self, *links: str, repeats: int = 1) -> Recorder:
        """A recorder of these links, and 116 kB for all."""
        wanted = Capture.model_validate({"links": links, "snaplen": "100B", "limit": "116kB"}) if links else None
        recorder = Recorder(self.fabric, wanted, repeats, 100.0)
        recorder.folder = self.folder
        return recorder


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def tcpdump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """Put a script in tcpdump's place."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("emu.lab.capture._DRAIN", 0.05)

    def tcpdump(text: str = LISTENS, *, lost: int = 0, after: str = "") -> None:
        script = tmp_path / "tcpdump"
        script.write_text(text.replace("LOST", str(lost)).replace("AFTER", after))
        script.chmod(0o755)

    return tcpdump


def clock() -> ModelClock:
    made = ModelClock(10.0)
    made.start()
    return made


def test_each_link_gets_a_tcpdump_with_its_limit(stage: Stage, tcpdump: Any) -> None:  # noqa: ANN401
    tcpdump()
    recorder = stage.recorder("t0:1", repeats=2)
    for _ in range(2):
        with recorder.recording(stage.lab):
            recorder.clock = clock()
    made = read_captures(stage.folder)
    assert made is not None
    assert [(one.repeat, one.tdf) for one in made.repeats] == [(1, 10.0), (2, 10.0)]
    (link,) = made.repeats[1].links
    # 116 kB by 1 link, 2 repeats and 100 + 16 bytes a frame.
    assert (link.link, link.peer, link.rate, link.rate_emulated, link.most) == ("t0:1", "h0:0", 10**9, 10**7, 500)
    assert (link.full, link.lost) == (False, 0)
    words = (stage.folder / link.file).read_text().split()
    assert words[:6] == ["-i", "t0-eth1", "-Q", "out", "-n", "-s"]
    assert words[words.index("-c") + 1] == "500"
    assert words[-1] == "ip"
    assert stage.lab.notes == ["1 links were captured, which takes processor time"]


def test_a_capture_that_ended_itself_reached_its_limit(stage: Stage, tcpdump: Any) -> None:  # noqa: ANN401
    tcpdump(after="exit 0")
    recorder = stage.recorder("t0:1")
    with recorder.recording(stage.lab):
        recorder.clock = clock()
    made = read_captures(stage.folder)
    assert made is not None
    assert made.repeats[0].links[0].full
    reached = "repeat 1: the capture of t0:1 -> h0:0 reached its limit of 1000 frames; later ones are missing"
    assert reached in stage.lab.notes


def test_frames_that_the_kernel_dropped_are_told(stage: Stage, tcpdump: Any) -> None:  # noqa: ANN401
    tcpdump(lost=12)
    recorder = stage.recorder("t0:1")
    with recorder.recording(stage.lab):
        recorder.clock = clock()
    assert "repeat 1: the capture of t0:1 -> h0:0 lost 12 frames, which were not read in time" in stage.lab.notes


def test_a_tcpdump_that_cannot_capture_ends_the_lab_with_its_words(stage: Stage, tcpdump: Any) -> None:  # noqa: ANN401
    tcpdump("#!/bin/sh\necho 'tcpdump: t0-eth1: No such device exists' >&2; exit 1\n")
    with (
        pytest.raises(LabError, match=r"cannot capture t0:1: tcpdump: t0-eth1: No such device exists"),
        stage.recorder("t0:1").recording(stage.lab),
    ):
        pytest.fail("the repeat must not run")


def test_without_tcpdump_the_lab_is_refused_with_the_fix(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match="apt-get install tcpdump"):
        stage.recorder("t0:1")
    stage.recorder()  # nothing to capture: nothing is missing


def test_an_interrupt_ends_captures_and_keeps_them(stage: Stage, tcpdump: Any) -> None:  # noqa: ANN401
    tcpdump()
    recorder = stage.recorder("t0:1")
    with suppress(KeyboardInterrupt), recorder.recording(stage.lab):
        recorder.clock = clock()
        raise KeyboardInterrupt
    assert read_captures(stage.folder) is not None


def test_a_repeat_that_never_began_is_not_kept(stage: Stage, tcpdump: Any) -> None:  # noqa: ANN401
    tcpdump()
    recorder = stage.recorder("t0:1")
    with suppress(LabError), recorder.recording(stage.lab):
        recorder.clock = ModelClock(10.0)
        raise LabError("the lab broke")
    assert read_captures(stage.folder) is None


def test_nothing_is_done_where_nothing_is_captured(stage: Stage) -> None:
    recorder = stage.recorder()
    with recorder.recording(stage.lab):
        pass
    assert not stage.folder.exists()
    assert stage.lab.notes == []
