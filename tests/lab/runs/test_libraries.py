"""A run on the second OpenFlow library, as its user starts it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests import libraries
from tests.lab.runs.machine import start_emu

pytestmark = [pytest.mark.lab, pytest.mark.timeout(150)]

_SCENARIO = """
name: rewired-by-ryu
emulation: {scale: {sigma: 1000, beta: 20000}}
fabrics:
  - kind: hybrid
    pods: 2
    hosts_per_pod: 1
    uplinks: 1
    reconfiguration: 10ms
    circuits: {o0: []}
    schedule: [{at: 100ms, circuits: {o0: [t0-t1]}}]
workload:
  kind: collectives
  steps: [{name: crossing, phase: one, collective: permutation, size: 2GB, at: 150ms}]
"""


def _rows(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / "run" / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))


def test_ryu_rewires_a_run_and_the_manifest_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is committed, and what crosses between the pods afterwards goes over the new circuit, both ways."""
    libraries.use(libraries.RYU, monkeypatch)
    (tmp_path / "rewired.yaml").write_text(_SCENARIO)
    process = start_emu("run", "rewired.yaml", "--out", "run", "--json", cwd=tmp_path)
    out, words = process.communicate(timeout=140)
    assert out, words
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    (fabric,) = manifest["fabrics"]
    assert fabric["facts"]["versions"]["controller"].startswith(libraries.VERSIONS[libraries.RYU])
    (change,) = _rows(tmp_path, "circuits")
    assert (change["epoch"], change["outcome"]) == ("1", "committed")
    links = _rows(tmp_path, "links")
    optical = {row["link"]: float(row["payload_bytes"]) for row in links if row["peer"].startswith("o0:")}
    assert optical == pytest.approx({"t0:2": 2e9, "t1:2": 2e9}, rel=0.02)
