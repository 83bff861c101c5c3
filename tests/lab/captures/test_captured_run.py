"""A run that captures links across a change of circuits: its packets agree with its tables, and it is judged."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from emu.captures import FOLDER, CapturedRepeat, read_captures
from emu.cli.app import run_command
from tests.lab.runs.machine import start_emu

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240)]

SCENARIO = """\
name: captured
emulation: {scale: {sigma: 400, beta: 8000}}
fabrics:
  - kind: hybrid
    pods: 3
    hosts_per_pod: 1
    uplinks: 1
    rate: 100Gbps
    electrical_rate: 25Gbps
    reconfiguration: 10ms
    circuits: {o0: [t0-t1]}
    schedule: [{at: 40ms, circuits: {o0: [t0-t2]}}]
capture: {links: ["h0:0 -> t0", o0], snaplen: 96B}
workload:
  kind: collectives
  steps:
    - {name: ring, collective: permutation, size: 600MB}
    - {name: pause, compute: 2s}
    - {name: again, collective: permutation, size: 100MB}
"""
LATE = 0.1
"""Wall seconds by which a loaded machine may be late to send, or a switch to follow."""

Packets = list[tuple[float, str, str, int]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captured")
    (folder / "captured.yaml").write_text(SCENARIO)
    process = start_emu("run", "captured.yaml", "--out", "run", cwd=folder)
    _, words = process.communicate(timeout=200)
    assert process.returncode in (0, 3, 4), words
    return folder / "run"


@pytest.fixture(scope="module")
def captured(run: Path) -> CapturedRepeat:
    made = read_captures(run / FOLDER / "hybrid")
    assert made is not None
    (repeat,) = made.repeats
    return repeat


@pytest.fixture(scope="module")
def packets(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Packets:
    """When, at which port, with which comment, and the TCP payload, as tshark reads them."""
    out = tmp_path_factory.mktemp("export") / "run.pcapng"
    assert run_command(["export", str(run), "--to", "pcapng", "--out", str(out)]) == 0
    assert shutil.which("tshark"), "tshark is missing: apt-get install tshark"
    fields = [part for name in ("time_epoch", "interface_name", "comment") for part in ("-e", f"frame.{name}")]
    command = ["tshark", "-r", str(out), "-T", "fields", *fields, "-e", "tcp.len"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = (line.split("\t") for line in text.splitlines())
    return [(float(at), name.removeprefix("hybrid/"), said, int(size)) for at, name, said, size in rows]


def rows(run: Path, table: str) -> list[dict[str, str]]:
    with (run / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_run_is_judged_and_says_that_it_captured(run: Path) -> None:
    (fabric,) = json.loads((run / "manifest.json").read_text())["fabrics"]
    assert fabric["verdict"]["level"] in ("VALID", "DEGRADED", "INVALID")
    assert "4 links were captured, which takes processor time" in fabric["facts"]["notes"]
    assert fabric["repeats"][0]["complete"]


def test_every_chosen_link_has_its_packets(run: Path, captured: CapturedRepeat, packets: Packets) -> None:
    assert [link.link for link in captured.links] == ["h0:0", "o0:1", "o0:2", "o0:3"]
    assert not any(link.full or link.lost for link in captured.links)
    sent = sum(size for _, name, _, size in packets if name == "h0:0")
    flows = [row for row in rows(run, "flows") if row["src"] == "h0.0"]
    assert sum(int(row["bytes_emulated"]) for row in flows) <= sent
    assert not (run / "labs" / "hybrid" / FOLDER).exists()


def test_packets_and_flows_are_on_one_clock_before_and_after_a_jump(
    run: Path, captured: CapturedRepeat, packets: Packets
) -> None:
    """The first payload of each of h0's flows leaves its port as the flow starts."""
    assert captured.jumps
    flows = sorted((row for row in rows(run, "flows") if row["src"] == "h0.0"), key=lambda row: float(row["start_s"]))
    assert len(flows) == 2
    for row in flows:
        start = captured.wall_ns(float(row["start_s"])) / 1e9
        after = min(at for at, name, _, size in packets if name == "h0:0" and size and at >= start - 0.005)
        assert after - start < LATE


def test_the_circuit_that_goes_falls_silent_and_the_one_that_comes_starts(
    run: Path, captured: CapturedRepeat, packets: Packets
) -> None:
    """o0:2 leads to t1, which has a circuit before the change; o0:3 leads to t2, which has it after."""
    (change,) = rows(run, "circuits")
    dark, lit = (captured.wall_ns(float(change[column])) / 1e9 for column in ("dark_at_s", "lit_at_s"))
    gone = [at for at, name, _, _ in packets if name == "o0:2"]
    come = [at for at, name, _, _ in packets if name == "o0:3"]
    assert max(gone) < dark + LATE < lit
    assert dark < lit - LATE < min(come)


def test_comments_tell_what_the_circuits_did_before_the_packet(captured: CapturedRepeat, packets: Packets) -> None:
    said = [(at, comment) for at, _, comment, _ in packets if comment]
    assert ["time zero" in said[0][1], " dark epoch 1 " in said[1][1], " lit epoch 1 " in said[2][1]] == [True] * 3
    assert len(said) == 3
    assert [at for at, _ in said] == sorted(at for at, _ in said)
