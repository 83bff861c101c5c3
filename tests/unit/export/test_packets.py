"""pcapng: against a golden file, and read back by tshark and capinfos."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from emu.captures import FOLDER, INDEX
from emu.cli.app import run_command
from emu.errors import InputError
from emu.export import pcapng_file
from emu.export.formats import export
from emu.export.packets import Mark, commented, read_pcap
from emu.export.pcapng_file import Frame, Interface, PcapngFile
from tests.unit.export import golden, hand_made
from tests.unit.export.hand_made import MS, SENT, ZERO_NS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hand-made run with captures of two links in two repeats."""
    return hand_made.captured(hand_made.written(tmp_path_factory.mktemp("captured")))


@pytest.fixture(scope="module")
def first(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packets of the first repeat."""
    return exported(run, tmp_path_factory.mktemp("first"), repeat=1)


@pytest.fixture(scope="module")
def both(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packets of both repeats."""
    return exported(run, tmp_path_factory.mktemp("both"))


def exported(run: Path, folder: Path, repeat: int | None = None) -> Path:
    """A pcapng file of a run."""
    out = folder / "packets.pcapng"
    with out.open("wb") as stream:
        export(run, "pcapng", stream, repeat=repeat)
    return out


def tool(*command: str) -> str:
    """What a tool of Wireshark's prints."""
    assert shutil.which(command[0]), f"{command[0]} is missing: apt-get install tshark"
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def fields(file: Path, *names: str, where: str = "") -> list[list[str]]:
    """Fields of every packet, as tshark reads them."""
    options = [part for name in names for part in ("-e", name)]
    chosen = ["-Y", where] if where else []
    return [row.split("\t") for row in tool("tshark", "-r", str(file), *chosen, "-T", "fields", *options).splitlines()]


def test_the_file_is_as_it_was(run: Path, both: Path) -> None:
    golden.check_bytes("packets.pcapng", both.read_bytes(), run)


def test_tshark_reads_every_frame_in_the_order_of_its_stamp(first: Path) -> None:
    rows = fields(first, "frame.time_epoch", "frame.interface_name", "frame.len", "frame.cap_len", "ip.dst")
    sent = sorted((ZERO_NS + at * MS, f"optical/{port}") for port, stamps in SENT.items() for at in stamps)
    expected = [[f"{at // 10**9}.{at % 10**9:09d}", name, "1014", "68", "10.0.0.2"] for at, name in sent]
    assert rows == expected


def test_comments_stand_on_the_first_frame_after_what_circuits_did(first: Path) -> None:
    rows = fields(first, "frame.time_epoch", "frame.comment", where="frame.comment")
    at = [round(float(stamp) * 1000) - ZERO_NS // MS for stamp, _ in rows]
    assert at == [1, 300, 410]
    assert rows[0][1] == "optical, repeat 1: time zero"
    assert rows[1][1] == ("optical, repeat 1: dark epoch 1 at 0.06 s modelled: circuits that change carry nothing")
    assert rows[2][1] == "optical, repeat 1: lit epoch 1 at 0.07 s modelled: the new circuits carry traffic"


def test_capinfos_names_each_link_with_its_rate_and_what_it_is(both: Path) -> None:
    said = tool("capinfos", str(both))
    assert "nanoseconds (9)" in said
    assert "Number of interfaces in file: 2" in said
    assert "Name = optical/h0:0" in said
    assert "Description = h0:0 -> t0:1 on optical: 100 Gb/s modelled" in said
    assert said.count("Speed = 10000000") == 2
    assert said.count("Capture length = 68") == 2
    assert "Strict time order:   True" in said
    assert "Capture application: emu 1.2.3" in said
    assert "10 s of it are one modelled second (sigma 1000 for bytes, beta 10000 for rates)" in said


def test_all_repeats_are_in_one_file_unless_one_is_chosen(first: Path, both: Path) -> None:
    assert len(fields(both, "frame.number")) == 14
    assert len(fields(first, "frame.number")) == 7


def test_tshark_follows_tcp_through_truncated_frames(first: Path) -> None:
    rows = fields(first, "tcp.seq_raw", "tcp.len", where='frame.interface_name == "optical/h0:0"')
    assert rows == [["1", "960"], ["961", "960"], ["1921", "960"], ["2881", "960"]]


def test_a_run_without_captures_says_how_to_get_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = hand_made.written(tmp_path)
    out = tmp_path / "packets.pcapng"
    assert run_command(["export", str(directory), "--to", "pcapng", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "no captured packets of optical, electrical" in said
    assert 'add for instance `capture: {links: ["h0:0 -> t0"]}` to the scenario' in said
    assert not out.exists()


def test_a_fabric_that_captured_nothing_is_refused_by_its_name(run: Path) -> None:
    with pytest.raises(InputError, match="no captured packets of electrical"):
        export(run, "pcapng", io.BytesIO(), fabric="electrical")


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    directory = hand_made.captured(hand_made.written(tmp_path), repeats=1, full=True, lost=3)
    notes = export(directory, "pcapng", io.BytesIO())
    assert notes == [
        "optical/h0:0 in repeat 1: only the first 4 frames were captured",
        "optical/h0:0 in repeat 1: 3 frames were not captured, for they were not read in time",
    ]


def test_nothing_binary_is_shown_on_a_terminal(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run_command(["export", str(run), "--to", "pcapng"]) == 2
    assert "name a file with --out" in capsys.readouterr().err


def test_packets_can_be_piped(run: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run_command(["export", str(run), "--to", "pcapng"]) == 0
    assert capsysbinary.readouterr().out[:4] == bytes.fromhex("0a0d0d0a")


def test_captures_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    directory = hand_made.captured(hand_made.written(tmp_path), repeats=1)
    folder = directory / FOLDER / "optical"
    (folder / "1-h0-eth0.pcap").write_bytes(b"no capture at all, whatever its name says")
    with pytest.raises(InputError, match=r"1-h0-eth0\.pcap cannot be read"):
        export(directory, "pcapng", io.BytesIO())
    (folder / INDEX).write_text("{}")
    with pytest.raises(InputError, match=r"captures\.json cannot be read"):
        export(directory, "pcapng", io.BytesIO())


def test_a_last_frame_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    whole = tmp_path / "whole.pcap"
    hand_made.write_pcap(whole, [ZERO_NS, ZERO_NS + MS])
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(whole.read_bytes()[:-10])
    assert [frame.at_ns for frame in read_pcap(whole, "x")] == [ZERO_NS, ZERO_NS + MS]
    assert [frame.at_ns for frame in read_pcap(cut, "x")] == [ZERO_NS]
    empty = tmp_path / "empty.pcap"
    empty.touch()
    assert list(read_pcap(empty, "x")) == []


def test_marks_go_to_frames_of_their_own_fabric_each_once() -> None:
    frames = [Frame(at, f"{fabric}/p", 1, b"x") for at, fabric in ((1, "a"), (2, "b"), (3, "a"), (4, "b"))]
    marks = [Mark(2, "a", "first"), Mark(2, "b", "second"), Mark(3, "a", "third"), Mark(9, "a", "never")]
    assert [comments for _, comments in commented(frames, marks)] == [[], ["second"], ["first", "third"], []]


def test_a_comment_too_long_for_the_format_is_cut_at_a_line(tmp_path: Path) -> None:
    lines = [f"{number:06d} was here" for number in range(10_000)]
    out = tmp_path / "long.pcapng"
    with out.open("wb") as stream:
        PcapngFile(stream, "emu", "\n".join(lines), [Interface("a/p", "", 1, 64, 0)]).finish()
    said = tool("capinfos", "-k", str(out))
    kept = said.count("was here")
    assert 3000 < kept < 10_000
    assert f"... and {10_000 - kept} more lines" in said
    assert pcapng_file.LONGEST_COMMENT < 1 << 16
