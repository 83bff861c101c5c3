"""Fabrics that come back from a run directory as they were wired."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controllers.routes import routes
from emu.errors import InputError
from emu.results.wiring import FABRICS_FILE, StoredFabric, read_wiring, wiring_text
from emu.scenario import build_fabrics
from tests.unit.results.synthetic import outcome, scenario
from topologies import registry


@pytest.fixture
def stored(tmp_path: Path) -> list[StoredFabric]:
    (tmp_path / FABRICS_FILE).write_text(wiring_text(outcome(tmp_path, tmp_path / "run")))
    found = read_wiring(tmp_path)
    assert found is not None
    return found


def test_they_have_the_same_nodes_links_and_addresses(stored: list[StoredFabric], tmp_path: Path) -> None:
    for kept, built in zip(stored, build_fabrics(scenario(tmp_path)), strict=True):
        fabric = kept.rebuild()
        assert (fabric.name, fabric.nodes, fabric.links) == (built.fabric.name, built.fabric.nodes, built.fabric.links)
        addresses = [fabric.address(nic) for nic in fabric.all_nics]
        assert addresses == [built.fabric.address(nic) for nic in built.fabric.all_nics]
        assert kept.epoch.lit == built.epoch.lit


def test_they_route_as_the_run_did(stored: list[StoredFabric], tmp_path: Path) -> None:
    for kept, built in zip(stored, build_fabrics(scenario(tmp_path)), strict=True):
        assert routes(kept.rebuild(), kept.epoch, 7) == routes(built.fabric, built.epoch, 7)


@pytest.mark.parametrize("kind", registry.names())
def test_every_builder_s_fabric_comes_back_equal(kind: str) -> None:
    fabric = registry.build(kind)
    kept = StoredFabric(
        fabric.name,
        fabric.routing,
        list(fabric.nodes),
        list(fabric.links),
        {str(n): fabric.address(n) for n in fabric.all_nics},
    )
    assert (kept.rebuild().nodes, kept.rebuild().links) == (fabric.nodes, fabric.links)


def test_earlier_runs_have_none(tmp_path: Path) -> None:
    assert read_wiring(tmp_path) is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data[0].pop("links"), "0.links: Field required"),
        (lambda data: data[0]["links"].append(data[0]["links"][0]), "is wired already"),
        (lambda data: data[0]["addresses"].update({"h0:0": "1.2.3.4"}), "outside 10.0.0.0/8"),
    ],
)
def test_a_spoiled_file_is_refused_by_name(tmp_path: Path, change: object, problem: str) -> None:
    data = json.loads(wiring_text(outcome(tmp_path, tmp_path / "run")))
    assert callable(change)
    change(data)
    (tmp_path / FABRICS_FILE).write_text(json.dumps(data))
    with pytest.raises(InputError, match=problem) as caught:
        read_wiring(tmp_path)
    assert FABRICS_FILE in str(caught.value)
