"""Epochs, and what links carried in them, from the tables of a run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from controllers.epochs import Circuit, Epoch, OcsCircuit
from emu.report.budget import Budget
from emu.report.drawing import draw, wired
from emu.report.loads import FlowTimes, Routing, load
from emu.report.optics import Span, lights, spans
from emu.report.series import Series, load_series
from tests.report import examples
from topologies import registry
from topologies.fabric import Port

AB, CD = OcsCircuit("o0", Circuit(1, 2)), OcsCircuit("o0", Circuit(3, 4))
EF = OcsCircuit("o0", Circuit(3, 5))


def epoch(number: int, *circuits: OcsCircuit) -> Epoch:
    return Epoch(number, {"o0": frozenset(circuit for _, circuit in circuits)})


@pytest.fixture(scope="module")
def optical(tmp_path_factory: pytest.TempPathFactory) -> list[Series]:
    """Both fabrics of a run whose circuits change at 1 s, dark for 10.2 ms by the control plane."""
    _, series = load_series([examples.optical(tmp_path_factory.mktemp("report"))])
    return series


def test_circuits_that_are_kept_shine_through_a_change() -> None:
    found = [Span(epoch(0, AB, CD), 0, 0, 1), Span(epoch(1, AB, EF), 1, 1.1, 2)]
    assert [(light.circuit, light.start, light.end) for light in lights(found)] == [
        (AB, 0, 2),
        (CD, 0, 1),
        (EF, 1.1, 2),
    ]


def test_a_circuit_that_comes_back_has_two_lights() -> None:
    found = [Span(epoch(0, AB), 0, 0, 1), Span(epoch(1, CD), 1, 1.1, 2), Span(epoch(2, AB), 2, 2.1, 3)]
    assert [(light.start, light.end) for light in lights(found) if light.circuit == AB] == [(0, 1), (2.1, 3)]


def test_spans_lie_between_barriers_and_deletes(optical: list[Series]) -> None:
    first, second = spans(optical[1], 1, Epoch())
    assert (first.start, first.end, second.change) == (0, pytest.approx(1), pytest.approx(1))
    assert second.start == pytest.approx(1.0102)
    assert second.end == pytest.approx(optical[1].end(1))
    assert (len(first.epoch.lit), len(second.epoch.lit)) == (8, 6)


def test_without_the_table_of_circuits_the_first_epoch_is_that_of_the_wiring(optical: list[Series]) -> None:
    (only,) = spans(optical[0], 1, epoch(0, AB))
    assert only.epoch.lit == {AB}


# -- loads -----------------------------------------------------------------------------------------------------------


def flow_times(rows: list[tuple[float, float, int, str]]) -> FlowTimes:
    """Flows from h0 to h1 of a fat-tree: start, end, bytes, phase."""
    frame = pd.DataFrame(rows, columns=["start_s", "end_s", "bytes", "phase"])
    frame = frame.assign(repeat=1, how="packets", src="h0.0", dst="h1.0")

    class Stand:
        flows = frame

    return FlowTimes.of(Stand(), 1)  # type: ignore[arg-type]


def test_a_flow_s_bytes_are_spread_over_its_time() -> None:
    flows = flow_times([(0.0, 2.0, 1000, "a"), (1.0, 2.0, 300, "b")])
    assert list(flows.carried((0.0, 1.0)).values()) == [pytest.approx(500)]
    assert list(flows.carried((1.5, 9.0)).values()) == [pytest.approx(250 + 150)]
    assert list(flows.carried((0.0, 9.0), flows.of_phase("b")).values()) == [pytest.approx(300)]
    assert flows.active() == [(0, 2)]


def test_links_on_the_way_carry_it_and_idle_time_does_not_count() -> None:
    """1000 bytes in 2 s of the 10 s window: 4000 bit/s."""
    fabric = registry.build("fat-tree", k=4, rate=10_000)
    flows = flow_times([(0.0, 2.0, 1000, "a")])
    carried = load(Routing(fabric, 1), flows, [(Span(Epoch(), 0, 0, 10), (0.0, 10.0))], None)
    assert {str(port): moved for port, moved in carried.bytes.items()} == {"h0:0": 1000, "t0:2": 1000}
    assert carried.share(Port("h0", 0), 10_000) == pytest.approx(0.4)
    assert carried.share(Port("h2", 0), 10_000) == 0


def test_a_drawing_steps_through_change_and_epochs_and_phases(optical: list[Series]) -> None:
    drawn = draw(optical[1], 1, wired(optical[1].run), Budget.of(1))
    labels = [step["label"] for step in drawn["groups"]["epochs"]]
    assert labels == ["whole run", "epoch 0", "change to epoch 1", "epoch 1"]
    whole, before, change, after = drawn["groups"]["epochs"]
    assert (len(before["circuits"]), len(after["circuits"])) == (8, 6)
    going = [row for row in change["circuits"] if row[3] is None]
    assert len(change["circuits"]) == 8
    assert len(going) == 6  # of the eight, those between t0 and t1 are kept
    assert all(len(step["load"]) == 2 * len(drawn["cables"]) for step in drawn["groups"]["epochs"])
    assert whole["source"] == "counters"


def test_loads_by_routes_agree_with_counters(optical: list[Series]) -> None:
    """All that the epochs carried together is what the model expected on each link."""
    drawn = draw(optical[0], 1, wired(optical[0].run), Budget.of(1))
    whole, *phases = drawn["groups"]["phases"]
    for at, moved in enumerate(whole["bytes"]):
        assert sum(step["bytes"][at] for step in phases) == pytest.approx(moved, rel=5e-3, abs=1e3)


def test_a_fabric_that_is_not_known_has_words_in_place_of_a_drawing(tmp_path: Path) -> None:
    run = examples.electrical(tmp_path)
    (run / "fabrics.json").unlink()
    text = (run / "scenario.json").read_text()
    (run / "scenario.json").write_text(text.replace('"kind":"fat-tree"', '"kind":"my-tree"'))
    _, (series,) = load_series([run])
    problem = draw(series, 1, wired(series.run), Budget.of(1))["problem"]
    assert "keeps no wiring" in problem
    assert "my-tree" in problem


def test_without_wiring_the_scenario_s_builder_draws(tmp_path: Path) -> None:
    run = examples.electrical(tmp_path)
    (run / "fabrics.json").unlink()
    _, (series,) = load_series([run])
    assert len(draw(series, 1, wired(series.run), Budget.of(1))["nodes"]) == 36


def test_tables_that_do_not_fit_the_wiring_have_words_too(tmp_path: Path) -> None:
    run = examples.optical(tmp_path)
    table = (run / "circuit_use.csv").read_text()
    (run / "circuit_use.csv").write_text(table.replace("o0,1,3,", "o0,1,99,"))
    _, (_, series) = load_series([run])
    assert "port o0:99 is not wired" in draw(series, 1, wired(series.run), Budget.of(1))["problem"]
