"""Calibration finds the one link that is slow, whoever made it slow, and accuses no other."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from emu.lab.calibrate import GOOD, LinkCalibrator, Rates
from emu.lab.counters import emulated_rates
from emu.lab.inspection import slow_links
from emu.lab.openvswitch import run
from tests.lab.topologies.bench import EFFICIENCY, Bench, on_bench
from topologies.fabric import Port

pytestmark = pytest.mark.lab

RATE = 10_000_000
TREE: dict[str, Any] = {"kind": "fat-tree", "k": 4, "hosts": 12, "rate": f"{RATE}bps"}


def slow_down(bench: Bench, port: Port) -> None:
    """From outside: the port's HTB class at 70 % of its rate."""
    shape = ["rate", "7mbit", "ceil", "7mbit", "burst", "9038", "cburst", "9038", "overhead", "24"]
    with bench.lab.ports.namespace_of(port):
        run("tc", "class", "change", "dev", port.interface, "parent", "1:", "classid", "1:1", "htb", *shape)
    assert bench.lab.ports.read()[port].configured == 7_000_000


def calibrated(bench: Bench) -> LinkCalibrator:
    """The links of the lab, calibrated."""
    rates = Rates(bench.lab.loop, bench.lanes)
    calibrator = LinkCalibrator(bench.fabric, rates, emulated_rates(bench.fabric, 1.0), EFFICIENCY, 9038)
    calibrator.run(bench.lab.control.tables(bench.epoch))
    sys.stdout.write(f"blamed {[sorted(map(str, links)) for links in calibrator.blamed()]}\n")
    return calibrator


def slow_rows(calibrator: LinkCalibrator) -> list[str]:
    """The links that the table of the calibration shows as slow."""
    return [row.link for row in calibrator.report({}) if row.ratio is not None and row.ratio < GOOD]


@on_bench(**TREE)
def test_no_link_is_blamed_without_cause(bench: Bench) -> None:
    """Every link of the fat-tree is crossed, none comes out above its rate, and none is suspected."""
    calibrator = calibrated(bench)
    assert calibrator.blamed() == []
    assert slow_rows(calibrator) == []
    assert calibrator.best.keys() == set(bench.fabric.transmitters())
    assert max(calibrator.best.values()) <= 1.05


@on_bench(**TREE)
def test_the_slow_link_is_named(bench: Bench) -> None:
    """One of the links between switches, which every flow shares with five others: it alone is blamed."""
    port = Port("a2", 3)
    slow_down(bench, port)
    calibrator = calibrated(bench)
    assert calibrator.blamed() == [{port}]
    (finding,) = slow_links(bench.lab, calibrator)
    assert finding.place == "a2:3 -> c0:2"
    assert slow_rows(calibrator) == ["a2:3"]
    assert 0.5 <= calibrator.best[port] < 0.9
