"""Whole reports: what is in them, what they refuse, and how large they get."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emu.cli.app import run_command
from emu.errors import EmuError, InputError
from emu.report import write_report
from emu.report.collectives import collective_rows, sweeps
from emu.report.darkness import dark_points, dark_rows
from emu.report.decided import decisions
from emu.report.modelled import counterfactual_rows
from emu.report.series import load_series
from emu.report.verdicts import cards
from emu.report.wires import circuit_rows, link_rows
from tests.report import examples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def optical(folder: Path) -> Path:
    return examples.optical(folder)


@pytest.fixture(scope="module")
def page(optical: Path, folder: Path) -> str:
    return write_report([optical], folder / "report.html").read_text(encoding="utf-8")


def data(page: str) -> Any:  # noqa: ANN401 - whatever the page holds
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def sections(page: str) -> Iterator[str]:
    return iter(re.findall(r'<section id="(\w+)">', page))


def test_the_verdict_comes_first_and_everything_in_its_order(page: str) -> None:
    order = ["verdict", "run", "fabric", "timeline", "phases", "flows", "collectives", "links", "dark"]
    assert list(sections(page)) == order


def test_nothing_is_fetched_and_the_browser_is_told_so(page: str) -> None:
    html = re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert "default-src 'none'" in html
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', html) == []
    style = re.search(r"<style>.*?</style>", page, re.DOTALL)
    assert style is not None
    assert "url(" not in style[0]


def test_it_does_not_say_where_it_was_made(page: str, folder: Path) -> None:
    assert str(folder) not in page


def test_a_run_without_circuits_or_collectives_has_no_section_of_them(folder: Path) -> None:
    page = write_report([examples.flows_only(folder)], folder / "flows.html").read_text(encoding="utf-8")
    assert "collectives" not in set(sections(page))
    page = write_report([examples.electrical(folder)], folder / "electrical.html").read_text(encoding="utf-8")
    assert "dark" not in set(sections(page))
    assert "circuits-table" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_a_run_that_measured_nothing_says_so_and_why(folder: Path) -> None:
    page = write_report([examples.nothing(folder)], folder / "nothing.html").read_text(encoding="utf-8")
    assert page.count("Nothing was measured.") == 2
    assert "no namespaces here" in page
    assert data(page)["views"] == []


def test_reasons_are_text_and_those_alike_are_folded(folder: Path) -> None:
    page = write_report([examples.doubtful(folder)], folder / "doubtful.html").read_text(encoding="utf-8")
    assert "is &lt;b&gt;slow&lt;/b&gt; &amp; &lt;/script&gt; late" in page
    assert "<b>slow</b>" not in page
    assert "<summary>6 more of this kind</summary>" in page


def test_names_of_directories_are_text(optical: Path, folder: Path) -> None:
    odd = folder / "a<b>&"
    odd.symlink_to(optical)
    page = write_report([optical, odd], folder / "odd.html").read_text(encoding="utf-8")
    assert "a<b>" not in page
    assert [each["label"] for each in data(page)["series"]] == [
        "optical (1): fat-tree", "optical (1): optical", "optical (2): fat-tree", "optical (2): optical"
    ]  # fmt: skip


# -- predictions -----------------------------------------------------------------------------------------------------


def shown(page: str) -> str:
    """The page without its scripts and styles, in one line."""
    return " ".join(re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL).split())


def test_a_prediction_has_no_verdict_and_nothing_of_a_lab(folder: Path) -> None:
    page = write_report([examples.predicted(folder)], folder / "predicted.html").read_text(encoding="utf-8")
    html = shown(page)
    assert "<title>example: PREDICTED (emu)</title>" in html
    assert '<h1 class="predicted">' in html
    assert "Predicted by the model, nothing was measured." in html
    assert "was busy, by the model." in html
    for words in (
        "VALID",
        "chosen by emu",
        "TDF",
        "cubic",
        "segments sent again",
        "by its counters",
        "The bar is what was measured",
    ):
        assert words not in html
    assert "transport: " not in html
    assert "ideal, sharing links max-min fairly" in html
    sources = {view["fabric"]["groups"]["epochs"][0]["source"] for view in data(page)["views"] if view["series"] == 1}
    assert sources == {"the model"}


def test_of_a_predicted_change_there_is_only_what_was_asked_for(folder: Path) -> None:
    _, series = load_series([examples.predicted(folder, "asked")])
    assert [(row.figure, row.measured, row.median) for row in dark_rows(series)] == [("asked", "modelled, 1", "10 ms")]
    assert [point["figure"] for point in dark_points(series)] == ["asked"]


def test_counterfactuals_stand_beside_what_was(folder: Path) -> None:
    run = examples.predicted(folder, "otherwise")
    rows = counterfactual_rows(load_series([run])[1])
    assert [(row.fabric, row.phase) for row in rows] == [
        ("optical", "whole run"), ("optical", "gradients"), ("optical", "sweep")
    ]  # fmt: skip
    assert rows[0].was == "96.59 ms"
    assert rows[0].instant.text == "86.59 ms"  # without the 10 ms of its change
    assert rows[0].never.text not in (rows[0].was, rows[0].instant.text, "–")
    html = shown(write_report([run], folder / "otherwise.html").read_text(encoding="utf-8"))
    assert '<th scope="col" class="num">changes in no time, modelled</th>' in html
    assert '<td class="num">86.59 ms</td>' in html


def test_a_counterfactual_without_a_path_says_why(folder: Path) -> None:
    run = examples.predicted(folder, "cut")
    manifest = json.loads((run / "manifest.json").read_text())
    never = manifest["fabrics"][1]["counterfactuals"][1]
    never.update(end_s=None, phases_s={"gradients": 0.5, "sweep": None}, problems={"sweep": "h0 has no path to h4"})
    (run / "manifest.json").write_text(json.dumps(manifest))
    rows = counterfactual_rows(load_series([run])[1])
    assert [row.never.text for row in rows] == ["no path", "500 ms", "no path"]
    html = shown(write_report([run], folder / "cut.html").read_text(encoding="utf-8"))
    assert html.count('<p class="note">No path: h0 has no path to h4</p>') == 1


def test_beside_measured_runs_a_prediction_is_called_one(optical: Path, folder: Path) -> None:
    both = [optical, examples.predicted(folder, "beside")]
    assert [run.label for run in load_series(both)[0]] == ["optical (measured)", "beside (predicted)"]
    html = shown(write_report(both, folder / "both.html").read_text(encoding="utf-8"))
    assert '<h1 class="valid">' in html
    assert "nothing was measured: <strong>beside (predicted)</strong>." in html
    assert "<td>packet, traffic by" in html
    assert "<td>model: predicted, nothing was measured</td>" in html
    assert html.count('<span class="pill predicted">PREDICTED</span>') == 2


# -- comparisons -----------------------------------------------------------------------------------------------------


def test_runs_are_told_apart_by_name_or_directory(optical: Path, folder: Path) -> None:
    again = examples.optical(folder, "again")
    runs, series = load_series([optical, again])
    assert [run.label for run in runs] == ["optical", "again"]
    assert [one.label for one in series] == [
        "optical: fat-tree",
        "optical: optical",
        "again: fat-tree",
        "again: optical",
    ]
    assert [one.place for one in series] == [0, 1, 2, 3]


# -- what the tables say ---------------------------------------------------------------------------------------------


def test_figures_are_those_of_the_run(optical: Path) -> None:
    _, series = load_series([optical])
    card = cards(series)[1]
    figures = {figure.what: figure.value for figure in card.figures}
    assert figures["dark, in 1 change of circuits"] == "10.2 ms"
    assert figures["segments sent again"] == "3"


def test_collectives_of_one_step_and_size_are_one_row_for_each_fabric(optical: Path) -> None:
    rows, more = collective_rows(load_series([optical])[1])
    assert more == 0
    found = [(row.label, row.fabric, row.count.value, row.size.text) for row in rows]
    assert found == [
        ("gradients", "fat-tree", 4, "20 GiB"),
        ("gradients", "optical", 4, "20 GiB"),
        *(("sweep", fabric, 2, f"{size} GiB") for size in (1, 2, 4, 8) for fabric in ("fat-tree", "optical")),
    ]
    assert rows[0].ratio.text == "1.035"  # the median of 1.03 and 1.04
    assert rows[0].bounds == "yes"
    assert rows[0].busbw.value == pytest.approx(1.75 * rows[0].algbw.value)  # 2 * 7/8


def test_a_ratio_in_bounds_is_no_verdict(folder: Path) -> None:
    html = shown(
        write_report([examples.doubtful(folder, "bounds")], folder / "bounds.html").read_text(encoding="utf-8")
    )
    table = re.search(r'<table class="sortable" id="collectives-table">.*?</table>', html)
    assert table is not None
    assert "ratio in bounds" in table[0]
    assert table[0].count("<td>yes</td>") == 10
    assert "VALID" not in table[0]
    assert "(0.98 to 1.1 for VALID, 0.95 to 1.3 for DEGRADED)" in html


def test_steps_of_many_sizes_are_sweeps(optical: Path) -> None:
    curves = sweeps(load_series([optical])[1])
    assert [(curve["label"], curve["series"]) for curve in curves] == [("sweep", 0), ("sweep", 1)]
    assert curves[0]["size"] == [2**30, 2**31, 2**32, 2**33]


def test_the_four_dark_times_are_kept_apart(optical: Path) -> None:
    _, series = load_series([optical])
    rows = {row.figure: (row.measured, row.median) for row in dark_rows(series)}
    assert rows == {
        "asked": ("2 of 2", "10 ms"),
        "control": ("2 of 2", "10.2 ms"),
        "data plane": ("2 of 2", "10.1 ms"),
        "service": ("2 of 2", "18 ms"),
        "transport's share": ("2 of 2", "7.9 ms"),
    }
    points = {point["figure"]: point["seconds"] for point in dark_points(series)}
    assert points["service"] == [0.018, 0.018]
    assert set(points) == {"asked", "control", "data plane", "service"}


def test_links_and_circuits_have_their_utilisation_and_duty(optical: Path) -> None:
    _, series = load_series([optical])
    busiest = link_rows(series)[0]
    assert busiest.utilisation.text == "97.1 %"  # 1.005 / 1.035, see tests/unit/results
    rows, more = circuit_rows(series, {0: None, 1: None})
    assert (len(rows), more) == (2 * (8 + 6), 0)
    assert rows[0].duty.value == pytest.approx(rows[0].lit.value / series[1].end(1), rel=1e-6)


def test_decisions_are_told_with_their_reasons(folder: Path) -> None:
    run = examples.decided(folder, 2)
    rows, more = decisions(load_series([run])[1])
    found = [(row.fabric, row.repeat, row.at.text, row.what, row.epoch, row.reason) for row in rows]
    assert found == [
        ("optical", repeat, at, "keep", "epoch 0", f"phase training, slack 0.2 s: <{number}> is cheaper")
        for repeat in (1, 2)
        for number, at in ((0, "0 s"), (1, "1 ms"))
    ]  # on the fat-tree nothing can be decided
    assert more == 0
    html = shown(write_report([run], folder / "decided.html").read_text(encoding="utf-8"))
    assert "phase training, slack 0.2 s: &lt;1&gt; is cheaper" in html
    assert "more are in events.csv" not in html


def test_of_many_decisions_each_fabric_shows_its_first(folder: Path) -> None:
    many, few = examples.decided(folder, 150, "many"), examples.decided(folder, 1, "few")
    rows, more = decisions(load_series([many, few])[1])
    assert ([row.fabric for row in rows].count("many: optical"), len(rows), more) == (100, 102, 200)
    html = shown(write_report([many, few], folder / "decisions.html").read_text(encoding="utf-8"))
    assert "200 more are in events.csv." in html


# -- writing ---------------------------------------------------------------------------------------------------------


def test_what_is_no_run_is_refused_and_nothing_written(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no whole run directory"):
        write_report([tmp_path], tmp_path / "report.html")
    with pytest.raises(InputError, match="no run to report"):
        write_report([], tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_takes_no_file_is_an_error_with_its_name(optical: Path, tmp_path: Path) -> None:
    with pytest.raises(EmuError, match=r"cannot write the report .*/gone/report\.html: No such file"):
        write_report([optical], tmp_path / "gone" / "report.html")


def test_the_command_writes_into_the_run_or_where_it_is_told(
    optical: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["report", str(optical)]) == 0
    assert capsys.readouterr().out == f"{optical}/report.html\n"
    assert run_command(["report", str(optical), str(optical)]) == 0
    assert capsys.readouterr().out == "comparison.html\n"
    assert run_command(["report", str(optical), "--out", "here.html"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"comparison.html", "here.html"}


def test_the_command_refuses_what_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", str(tmp_path)]) == 2
    assert "no whole run directory" in capsys.readouterr().err
