"""What a run leaves behind where it is refused, interrupted, or partly broken; no lab is opened."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import emu
from emu import runner
from emu.errors import EmuError, InputError
from emu.lab.errors import LabError
from emu.lab.job import MEASUREMENT, Job
from emu.lab.rooms import HostRoom
from emu.progress import Listener, Progress, silent
from emu.scenario.build import build_fabrics
from tests.unit.results import synthetic

FAT_TREE = "fabrics: [{kind: fat-tree, k: 4, rate: 100Gbps}]\n"
DARK = "fabrics: [{kind: hybrid, pods: 4, reconfiguration: 10ms}]\n"  # no circuits and no core
ALL_REDUCE = "workload: {kind: collectives, steps: [{name: a, collective: all-reduce, size: 1GiB}]}\n"


@pytest.fixture(autouse=True)
def _no_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any machine will do, and none opens a lab."""

    def run(room: HostRoom, job: Job, directory: Path, listener: Listener) -> int:
        raise AssertionError("a lab was opened")

    monkeypatch.setattr(HostRoom, "check", lambda room, directory: None)
    monkeypatch.setattr(HostRoom, "run", run)


def refused(folder: Path, text: str) -> InputError:
    path = folder / "some.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        runner.run(path, out=folder / "out")
    return caught.value


def test_a_scale_that_takes_too_long_leaves_no_run_directory(tmp_path: Path) -> None:
    error = refused(tmp_path, "emulation: {scale: {sigma: 1, beta: 100000}}\n" + FAT_TREE + ALL_REDUCE)
    assert "more than its budget" in error.problem
    assert not (tmp_path / "out").exists()


def test_what_no_circuits_carry_is_refused_before_a_lab_is_opened(tmp_path: Path) -> None:
    assert "can never end" in refused(tmp_path, DARK + ALL_REDUCE).problem
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("2026|INFO|fine\nOSError: [Errno 28] No space left on device\n", "the lab ended early: OSError: [Errno 28]"),
        (None, "the lab was ended before it measured anything"),
    ],
)
def test_a_lab_that_finds_no_capacity_leaves_its_log_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str | None, reason: str
) -> None:
    def run(room: HostRoom, job: Job, directory: Path, listener: Listener) -> int:
        if log is not None:
            (directory / "lab.log").write_text(log)
        return 1

    monkeypatch.setattr(HostRoom, "run", run)
    path = tmp_path / "some.yaml"
    path.write_text(FAT_TREE + ALL_REDUCE)
    with pytest.raises(EmuError) as caught:
        runner.run(path, out=tmp_path / "out")
    assert str(caught.value).startswith(reason)
    assert str(caught.value).endswith(f"its log is {tmp_path}/out/labs/fat-tree/lab.log")


# -- runs of which something is left ----------------------------------------------------------------------------------

TWO = """\
name: two
emulation: {scale: {sigma: 100, beta: 2000}}
fabrics: [{kind: fat-tree, k: 4, rate: 100Gbps}, {name: other, kind: fat-tree, k: 4, rate: 100Gbps}]
workload: {kind: collectives, steps: [{name: a, phase: one, collective: all-reduce, size: 1GiB}]}
"""
Act = Callable[[Path], None]


@dataclass
class Labs:
    """Stands for labs: writes a good measurement of each fabric, but does what `acts` has for its place instead."""

    acts: dict[int, Act] = field(default_factory=dict)
    opened: list[int] = field(default_factory=list)

    def run(self, job: Job, directory: Path, listener: Listener) -> int:
        """See Room.run."""
        self.opened.append(job.fabric)
        listener(Progress("traffic", "", str(job.fabric)))
        self.acts.get(job.fabric, lambda folder: measure(job, folder))(directory)
        return 0


def measure(job: Job, folder: Path) -> None:
    """Write what a good lab would."""
    scenario = runner.Scenario.from_json(job.scenario)
    built = build_fabrics(scenario)[job.fabric]
    prediction = runner.predict(scenario, built, seed=scenario.seed, buckets=job.buckets)
    synthetic.measurement(built, prediction, repeats=1).write(folder / MEASUREMENT)


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> Labs:
    found = Labs()
    monkeypatch.setattr(HostRoom, "run", lambda room, *arguments: found.run(*arguments))
    return found


def run_two(folder: Path, listener: Listener = silent) -> emu.RunRecord:
    """Run the scenario with two fabrics; what it left."""
    (folder / "two.yaml").write_text(TWO)
    runner.run(folder / "two.yaml", out=folder / "out", listener=listener)
    return emu.load(folder / "out")


def signalled(number: signal.Signals) -> Act:
    """A lab in which the run gets a signal before anything was measured."""
    return lambda folder: signal.raise_signal(number)


def refusing(error: Exception) -> Act:
    """A lab that cannot be opened."""

    def act(folder: Path) -> None:
        raise error

    return act


@pytest.mark.parametrize("error", [LabError("no namespaces here"), OSError(11, "no namespaces here")])
def test_a_second_lab_that_cannot_be_opened_costs_only_its_own_fabric(
    tmp_path: Path, labs: Labs, error: Exception
) -> None:
    labs.acts[1] = refusing(error)
    record = run_two(tmp_path)
    first, other = record.manifest.fabrics
    assert (first.verdict.level, len(first.repeats)) == ("VALID", 1)
    assert "no namespaces here" in other.error
    assert (record.verdict, record.manifest.partial) == ("INVALID", True)
    assert "no namespaces here" in record.reasons["other"][0].text
    assert set(record.phases["fabric"]) == {"fat-tree"}


def test_a_first_lab_that_cannot_be_opened_leaves_the_second_one_its_turn(tmp_path: Path, labs: Labs) -> None:
    labs.acts[0] = refusing(LabError("no namespaces here"))
    assert set(run_two(tmp_path).phases["fabric"]) == {"other"}


def test_labs_none_of_which_can_be_opened_are_an_error(tmp_path: Path, labs: Labs) -> None:
    labs.acts = {place: refusing(LabError(f"no namespaces for {place}")) for place in (0, 1)}
    with pytest.raises(LabError, match="no namespaces for 0"):
        run_two(tmp_path)
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_keeps_what_was_measured(tmp_path: Path, labs: Labs, number: signal.Signals) -> None:
    labs.acts[1] = signalled(number)
    (tmp_path / "two.yaml").write_text(TWO)
    assert runner.run(tmp_path / "two.yaml", out=tmp_path / "out").interrupted
    record = emu.load(tmp_path / "out")
    assert record.manifest.partial
    assert [(fabric.name, fabric.partial) for fabric in record.manifest.fabrics] == [
        ("fat-tree", False),
        ("other", True),
    ]
    assert set(record.phases["fabric"]) == {"fat-tree"}


def test_a_signal_in_the_first_lab_opens_no_second(tmp_path: Path, labs: Labs) -> None:
    labs.acts[0] = signalled(signal.SIGTERM)
    run_two(tmp_path)
    assert labs.opened == [0]


def test_a_signal_while_the_plan_is_made_leaves_no_directory(tmp_path: Path, labs: Labs) -> None:
    def listen(progress: Progress) -> None:
        if progress.stage == "plan":
            signal.raise_signal(signal.SIGHUP)

    with pytest.raises(KeyboardInterrupt):
        run_two(tmp_path, listen)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("moment", ["judge", "write_run"])
def test_a_signal_while_results_are_judged_or_written_waits_for_them(
    tmp_path: Path, labs: Labs, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """All was measured: nothing is partial, but the run says that it was to end."""
    real = getattr(runner, moment)

    def interrupted(*arguments: object) -> object:
        monkeypatch.setattr(runner, moment, real)
        signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(runner, moment, interrupted)
    (tmp_path / "two.yaml").write_text(TWO)
    assert runner.run(tmp_path / "two.yaml", out=tmp_path / "out").interrupted
    record = emu.load(tmp_path / "out")
    assert (record.verdict, record.manifest.partial) == ("VALID", False)


def test_what_a_listener_raises_is_raised_after_results_are_written(tmp_path: Path, labs: Labs) -> None:
    def listen(progress: Progress) -> None:
        if progress.fabric == "1":
            raise OSError(5, "the terminal is gone")

    with pytest.raises(OSError, match="the terminal is gone"):
        run_two(tmp_path, listen)
    record = emu.load(tmp_path / "out")
    assert [(fabric.name, fabric.partial) for fabric in record.manifest.fabrics] == [
        ("fat-tree", False),
        ("other", True),
    ]
    assert record.manifest.fabrics[1].error == "the lab was ended before it measured anything"


def test_a_defect_keeps_what_was_measured_before_it(tmp_path: Path, labs: Labs) -> None:
    labs.acts[1] = refusing(ZeroDivisionError("a defect"))
    with pytest.raises(ZeroDivisionError):
        run_two(tmp_path)
    assert set(emu.load(tmp_path / "out").phases["fabric"]) == {"fat-tree"}


def test_a_run_has_a_report_of_both_its_fabrics(tmp_path: Path, labs: Labs) -> None:
    run_two(tmp_path)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<title>two: VALID (emu)</title>" in page
    assert '"label":"fat-tree"' in page
    assert '"label":"other"' in page
    assert str(tmp_path) not in page


def test_a_report_that_cannot_be_drawn_costs_nothing_but_itself(
    tmp_path: Path, labs: Labs, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Progress] = []
    monkeypatch.setattr(runner, "write_report", lambda runs, out: 1 / 0)
    assert run_two(tmp_path, said.append).valid
    assert not (tmp_path / "out" / "report.html").exists()
    (told,) = (progress.text for progress in said if progress.stage == "report")
    again = f"`emu report {tmp_path}/out` tries again"
    assert told == f"none was written: ZeroDivisionError: division by zero; {again}"
