"""`emu show`, `emu runs` and `emu compare`: run directories, shown again, listed and side by side."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emu.cli.app import run_command
from emu.outcome import Outcome
from emu.results import write_run
from emu.verdict import Reason, Verdict
from tests.unit.results.synthetic import FLOWS, outcome

DEGRADED = Verdict("DEGRADED", (Reason("DEGRADED", "run", "the event loop was [late]", "loop_lag"),))

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Path]:
    """A run on two fabrics, and its directory."""
    folder = tmp_path_factory.mktemp("runs")
    made = outcome(folder, folder / "monday")
    made.directory.mkdir()
    write_run(made)
    return made, made.directory


@pytest.fixture
def make(example: tuple[Outcome, Path], tmp_path: Path) -> Make:
    """Make another run directory like the example's; `changes` are made in its JSON files."""

    def make(name: str, *, scenario: Callable[[Any], None] = id, summary: Callable[[Any], None] = id) -> Path:  # type: ignore[assignment]
        directory = tmp_path / name
        shutil.copytree(example[1], directory)
        for file, change in (("scenario.json", scenario), ("summary.json", summary)):
            data = json.loads((directory / file).read_text())
            change(data)
            (directory / file).write_text(json.dumps(data))
        return directory

    return make


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> str:
    assert run_command([str(argument) for argument in arguments]) == status
    captured = capsys.readouterr()
    return captured.out if status in (0, 3) else captured.err


# -- show ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_show_prints_what_run_printed(
    example: tuple[Outcome, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    made, directory = example
    monkeypatch.setattr("emu.runner.run", lambda *_, **__: made)
    ran = printed(capsys, "run", "x.yaml", *form)
    assert printed(capsys, "show", directory, *form) == ran
    assert str(directory) in ran


def test_show_says_where_a_moved_run_is_now(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"Results after 40 s of wall time: {(moved := make('moved'))}" in printed(capsys, "show", moved)


def test_show_has_status_0_whatever_the_verdict(
    example: tuple[Outcome, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = example[0]
    worse = replace(made, directory=tmp_path, fabrics=[replace(made.fabrics[0], verdict=DEGRADED)])
    write_run(worse)
    assert "DEGRADED: run: the event loop was [late]" in printed(capsys, "show", tmp_path)


@pytest.mark.parametrize("content", [None, "{}", "no JSON"])
def test_show_refuses_what_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content)
    err = printed(capsys, "show", tmp_path, status=2)
    assert "summary.json" in err
    assert err.count("\n") == 1


# -- runs ------------------------------------------------------------------------------------------------------------


def test_runs_lists_finished_and_unfinished_ones(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make("first")
    (tmp_path / "second" / "labs" / "optical").mkdir(parents=True)
    broken = make("broken")
    (broken / "manifest.json").write_text("{")
    (tmp_path / "no-run").mkdir()
    assert run_command(["runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    header, first, *others = out.splitlines()
    assert header.split() == ["began", "run", "scenario", "fabrics", "verdict"]
    assert re.search(r"2023-11-1\d \d\d:\d\d  \S+/first +example +fat-tree, optical +VALID$", first)
    assert len(others) == 2
    assert any(re.search(r"/second +optical +unfinished$", line) for line in others)
    assert any(re.search(r"/broken +unreadable$", line) for line in others)
    assert "no-run" not in out
    assert "broken/manifest.json" in err


def test_runs_names_a_partial_run(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    run = make("stopped")
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "partial": True}))
    assert printed(capsys, "runs", run).splitlines()[1].endswith("VALID (partial)")


def test_runs_as_json(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make("first")
    (found,) = json.loads(printed(capsys, "runs", tmp_path, "--json"))
    assert (found["state"], found["name"], found["wall"]) == ("done", "example", 40.0)
    assert found["fabrics"] == [["fat-tree", "VALID"], ["optical", "VALID"]]


def test_runs_of_an_empty_directory_and_of_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "runs", tmp_path) == ""
    assert "nowhere: No such file or directory" in printed(capsys, "runs", tmp_path / "nowhere", status=2)


# -- compare ---------------------------------------------------------------------------------------------------------


def twice_as_fast(summary: Any) -> None:  # noqa: ANN401 - JSON
    for fabric in summary["fabrics"]:
        fabric["end"] /= 2
        for phase in fabric["phases"]:
            phase["duration"] /= 2


def test_compare_puts_every_fabric_of_every_run_into_one_table(
    example: tuple[Outcome, Path], make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, "compare", example[1], make("tuesday", summary=twice_as_fast))
    assert out.startswith("speed-up: the time of monday: fat-tree by that of the row\n")
    assert re.search(r"run: fabric +time +ideal ratio speed-up verdict", out)
    whole = out[out.index("all phases") :].splitlines()[1:5]
    rows = [re.split(r"\s{2,}|(?<=\d) (?=\d)", line.strip()) for line in whole]
    assert [row[0] for row in rows] == [
        "monday: fat-tree",
        "monday: optical",
        "tuesday: fat-tree",
        "tuesday: optical",
    ]
    speed_ups = [float(re.findall(r"\d+\.\d{3}(?= VALID)", line)[0]) for line in whole]
    assert speed_ups[0] == 1.0
    assert speed_ups[2] == 2.0
    assert speed_ups[3] == pytest.approx(2 * speed_ups[1], abs=0.002)


def test_compare_as_json(example: tuple[Outcome, Path], make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "compare", example[1], make("tuesday", summary=twice_as_fast), "--json")
    found = json.loads(out)
    assert found["runs"] == ["monday", "tuesday"]
    (whole,) = [entry for entry in found["entries"] if entry["what"] == "whole"]
    row = whole["rows"][2]
    assert (row["run"], row["fabric"], row["speed_up"], row["verdict"]) == ("tuesday", "fat-tree", 2.0, "VALID")
    assert row["ratio"] == pytest.approx(row["time"] / row["ideal"])


def test_compare_refuses_other_workloads(
    example: tuple[Outcome, Path], make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(scenario: Any) -> None:  # noqa: ANN401 - JSON
        scenario["workload"]["steps"][0]["size"][1] = "64MiB"

    err = printed(capsys, "compare", example[1], make("other", scenario=other), status=2)
    assert 'ran different workloads: workload.steps[0].size[1] is "512MiB" and "64MiB"' in err
    assert err.count("\n") == 1


def test_compare_tells_what_else_differs(
    example: tuple[Outcome, Path], make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(scenario: Any) -> None:  # noqa: ANN401 - JSON
        scenario["transport"]["cc"] = "bbr"
        scenario["seed"] = 99

    def scaled(summary: Any) -> None:  # noqa: ANN401 - JSON
        summary["sigma"] = 50.0

    out = printed(capsys, "compare", example[1], make("other", scenario=other, summary=scaled))
    assert 'note: monday has transport.cc: "cubic", other has "bbr"' in out
    assert "note: monday was scaled by sigma 100, beta 2000, other by sigma 50, beta 2000" in out
    assert "seed" not in out


def test_compare_of_one_run_compares_its_fabrics(
    example: tuple[Outcome, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, "compare", example[1])
    assert out.startswith("speed-up: the time of fat-tree by that of the row\n")
    assert re.search(r"^fabric +time", out, re.MULTILINE)
    assert re.search(r"^fat-tree +[\d.]+ \w+ +[\d.]+ \w+ +\d\.\d+ +1\.000 VALID", out, re.MULTILINE)


def test_compare_names_runs_by_as_much_of_their_paths_as_tells_them_apart(
    example: tuple[Outcome, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for parent in ("mon", "tue"):
        shutil.copytree(example[1], tmp_path / parent / "first")
    paths = [example[1], tmp_path / "mon" / "first", tmp_path / "tue" / "first"]
    assert json.loads(printed(capsys, "compare", *paths, "--json"))["runs"] == ["monday", "mon/first", "tue/first"]
    twice = json.loads(printed(capsys, "compare", example[1], example[1], "--json"))
    assert twice["runs"] == [str(example[1])] * 2


def test_compare_tells_predicted_times_from_measured_ones(
    example: tuple[Outcome, Path], make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    predicted = make("predicted", summary=lambda summary: summary.update(engine="model"))
    out = printed(capsys, "compare", example[1], predicted)
    whole = out[out.index("all phases") :].splitlines()[1:5]
    assert [line.split()[-1] for line in whole] == ["VALID", "VALID", "PREDICTED", "PREDICTED"]
    assert "note: predicted was predicted by the model, nothing in it was measured" in out
    assert "monday was predicted" not in out


def test_compare_of_runs_without_phases_in_common_shows_both(
    example: tuple[Outcome, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = outcome(tmp_path, tmp_path / "flows", FLOWS)
    flows.directory.mkdir()
    write_run(flows)
    out = printed(capsys, "compare", flows.directory, example[1])
    assert "the time of the first row of a group" in out
    assert "flows: fat-tree" in out
    assert "monday: fat-tree" in out


@pytest.mark.parametrize(("verdict", "status"), [(None, 0), (DEGRADED, 3)])
def test_compare_runs_a_scenario_first(
    example: tuple[Outcome, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verdict: Verdict | None,
    status: int,
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("")
    made, calls = example[0], []
    fabrics = [replace(made.fabrics[0], verdict=verdict or made.fabrics[0].verdict), *made.fabrics[1:]]

    def run(scenario: Path, **options: Any) -> Outcome:  # noqa: ANN401 - as they come
        calls.append((scenario, options["overrides"], options["out"]))
        return replace(made, fabrics=fabrics)

    monkeypatch.setattr("emu.runner.run", run)
    out = printed(capsys, "compare", path, "--seed", "5", "--out", tmp_path / "new", status=status)
    assert calls == [(path, {"seed": 5}, tmp_path / "new")]
    assert re.search(r"^optical +[\d.]+ ", out, re.MULTILINE)


def test_compare_takes_no_scenario_beside_runs(
    example: tuple[Outcome, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("")
    assert "x.yaml is a file" in printed(capsys, "compare", example[1], path, status=2)
