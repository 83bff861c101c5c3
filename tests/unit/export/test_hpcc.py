"""fct.txt: against a golden file, and read as scripts for the HPCC simulator read it."""

from __future__ import annotations

import io
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from emu.errors import InputError
from emu.export.formats import export
from emu.export.hosts import nics_of
from emu.export.hpcc import address
from tests.unit.export import golden, hand_made
from tests.unit.export.golden import exported

SLOWDOWNS = "{if ($4==100 && $6+$7<3000000000) {slow=$7/$8; print slow<1?1:slow, $5}}"
"""What HPCC's analysis makes of its ordinary flows: slowdown and size."""


@pytest.fixture
def flows(run: Path) -> list[list[str]]:
    return [line.split() for line in exported(run, "hpcc-fct", "optical", 1).splitlines()]


def test_the_file_is_as_it_was(run: Path) -> None:
    golden.check("fct.txt", exported(run, "hpcc-fct", "optical"), run)


def test_a_line_is_addresses_ports_size_and_nanoseconds(flows: list[list[str]]) -> None:
    # In the order of their ends: f0 at 10 ms, f1 at 15 ms, f2 at 22.5 ms. Each would take 8 ms alone.
    assert flows[0] == ["0b000001", "0b000101", "10000", "100", "100000000", "0", "10000000", "8000000"]
    assert flows[1] == ["0b000001", "0b000201", "10000", "100", "50000000", "5000000", "10000000", "8000000"]
    assert flows[2] == ["0b000301", "0b000001", "10000", "100", "25000000", "20000000", "2500000", "8000000"]
    assert len(flows) == 3


def test_scripts_take_the_nodes_numbers_back_from_the_addresses(flows: list[list[str]]) -> None:
    nodes = [((int(src, 16) >> 8) & 0xFFFF, (int(dst, 16) >> 8) & 0xFFFF) for src, dst, *_ in flows]
    assert nodes == [(0, 1), (0, 2), (3, 0)]
    assert [(address(n) >> 8) & 0xFFFF for n in (255, 256, 65535)] == [255, 256, 65535]


def test_awk_finds_slowdowns_by_size(run: Path) -> None:
    text = exported(run, "hpcc-fct", "optical", 1)
    awk = shutil.which("awk")
    assert awk is not None
    found = subprocess.run([awk, SLOWDOWNS], input=text, capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == ["1.25 100000000", "1.25 50000000", "1 25000000"]


def test_flows_between_the_same_nodes_have_source_ports_of_their_own(run: Path) -> None:
    rows = [line.split() for line in exported(run, "hpcc-fct", "optical").splitlines()]
    assert len(rows) == 6
    assert len({(src, dst, port) for src, dst, port, *_ in rows}) == 6


def test_flows_that_sent_no_packets_are_left_out_and_told(run: Path) -> None:
    notes = export(run, "hpcc-fct", io.BytesIO(), fabric="optical", repeat=1)
    assert notes == ["left out: 1 charged transfers, which sent no packets"]


def test_a_run_without_packets_is_refused(tmp_path: Path) -> None:
    made = hand_made.outcome(tmp_path, tmp_path / "run")
    for fabric in made.fabrics:
        for repeat in fabric.measurement.repeats:
            repeat.trace.flows = [replace(row, how="local") for row in repeat.trace.flows]
    directory = hand_made.write(tmp_path, made)
    with pytest.raises(InputError, match="no flow of it was sent as packets"):
        exported(directory, "hpcc-fct", "optical")


def test_nics_are_numbered_by_host_with_idle_ones_and_without_switches() -> None:
    links = [
        {"link": "h10:0", "peer": "t1:1"},
        {"link": "h2:1", "peer": "t0:2"},
        {"link": "t0:1", "peer": "h2:0"},
        {"link": "t0:3", "peer": "a0:1"},
    ]
    assert nics_of(links) == ["h2:0", "h2:1", "h10:0"]
    assert nics_of(links, [{"src": "h1", "dst": "h2.1"}]) == ["h1:0", "h2:0", "h2:1", "h10:0"]
