"""The command line: what it prints where, and its exit statuses. The lab is replaced; everything else is real."""

from __future__ import annotations

import errno
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from emu.cli import main
from emu.cli.app import run_command
from emu.cli.busy import idle_share
from emu.cli.grid import Field, _fitting
from emu.cli.pages import SCHEMA_FILE, regenerate, schema_text
from emu.cli.progress import PlainLines, display
from emu.cli.tables import reason_lines, show_run
from emu.doctor import Check
from emu.errors import EmuError, InputError
from emu.lab.errors import LabError
from emu.lab.system import CpuTimes
from emu.outcome import Outcome
from emu.progress import Progress
from emu.results import RunSummary, summarise
from emu.verdict import Level, Reason, Verdict
from tests.unit.results.synthetic import FLOWS, SCENARIO, outcome

DOCS = Path(__file__).parents[2] / "docs"
DEGRADED = Verdict("DEGRADED", (Reason("DEGRADED", "run", "the event loop was [late]", "loop_lag"),))
INVALID = Verdict("INVALID", (Reason("INVALID", "t0:1", "the link is slow", "rate_ratio"),))

Lab = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenario")


@pytest.fixture
def good(folder: Path) -> Outcome:
    return outcome(folder, Path("runs/example"))


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Make `emu run` get this outcome (or raise this); the returned list holds the arguments of each call."""

    def lab(result: Outcome | BaseException, *said: Progress) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def run(path: Path, **options: Any) -> Outcome:  # noqa: ANN401 - as they come
            calls.append({"path": path, **options})
            for progress in said:
                options["listener"](progress)
            if isinstance(result, BaseException):
                raise result
            return result

        monkeypatch.setattr("emu.runner.run", run)
        monkeypatch.setattr("emu.cli.busy.idle_share", lambda: 0.9)
        return calls

    return lab


def spoiled(run: Outcome, verdict: Verdict) -> Outcome:
    return replace(run, fabrics=[run.fabrics[0], replace(run.fabrics[1], verdict=verdict)])


# -- emu run ---------------------------------------------------------------------------------------------------------


def test_a_run_shows_its_table_its_verdicts_and_its_directory(
    lab: Lab, good: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    lab(good)
    assert run_command(["run", "x.yaml"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"fabric +measured +min +max +ideal ratio +busbw verdict", out)
    assert "gradients: ring all-reduce of 16 ranks, 512 MiB, 2 times" in out
    assert re.search(r"fat-tree +84\.19 ms +83\.78 ms +84\.59 ms +81\.34 ms 1\.035 +11\.96 GB/s VALID", out)
    assert "exit status" not in out
    assert out.index("fat-tree: VALID") < out.index("optical: VALID") < out.index("runs/example")


def test_flow_lists_show_completion_times(lab: Lab, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab(outcome(folder, Path("runs/example"), FLOWS))
    assert run_command(["run", "x.yaml"]) == 0
    out = capsys.readouterr().out
    assert "flows: 32 flows, completion times" in out
    assert re.search(r"fat-tree +1\.396 ms +[\d.]+ ms +[\d.]+ ms +22\.56 ms +1\.0\d +1\.0\d VALID", out)


@pytest.mark.parametrize(("verdict", "status"), [(DEGRADED, 3), (INVALID, 4)])
def test_the_status_is_that_of_the_worst_verdict_and_reasons_are_shown(
    lab: Lab, good: Outcome, capsys: pytest.CaptureFixture[str], verdict: Verdict, status: int
) -> None:
    lab(spoiled(good, verdict))
    assert run_command(["run", "x.yaml"]) == status
    reason = verdict.reasons[0]
    out = capsys.readouterr().out
    assert f"optical: {verdict.level}\n  {reason.level}: {reason.place}: {reason.text}\n" in out
    assert out.splitlines()[-1] == f"exit status {status}: {verdict.level}"


@pytest.mark.parametrize("rule", ["idle_before", "idle_during"])
@pytest.mark.parametrize("level", ["DEGRADED", "INVALID"])
def test_where_processors_were_busy_a_quiet_machine_is_the_advice(good: Outcome, rule: str, level: Level) -> None:
    busy, slow = Reason(level, "machine", "busy", rule), Reason(level, "t0:1", "slow", "rate_ratio")
    said = shown(summarise(spoiled(good, Verdict(level, (busy, slow)))), 80)
    assert f"  {level}: t0:1: slow" in said
    assert said.count("repeat it when the machine is quiet") == 1
    assert "quiet" not in shown(summarise(spoiled(good, Verdict(level, (slow,)))), 80)


@pytest.mark.parametrize("first", [Progress("plan", "sigma 100"), Progress("build", "16 hosts", "optical")])
def test_a_busy_machine_is_told_once_before_the_lab(
    lab: Lab, good: Outcome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], first: Progress
) -> None:
    lab(good, first, Progress("build", "20 switches", "optical"))
    monkeypatch.setattr("emu.cli.busy.idle_share", lambda: 0.124)
    assert run_command(["run", "x.yaml"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "emu: warning: processors are only 12 % idle: the verdict may suffer"
    assert len(said) == 3
    assert not any("idle" in line for line in said[1:])


def test_a_machine_with_time_to_spare_is_no_news(lab: Lab, good: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    lab(good, Progress("plan", "sigma 100"))
    assert run_command(["run", "x.yaml"]) == 0
    assert capsys.readouterr().err == "emu: plan: sigma 100\n"


def test_the_idle_share_is_that_of_the_processors_now(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([CpuTimes(100, 1000), CpuTimes(130, 1100)])
    monkeypatch.setattr(CpuTimes, "read", lambda: next(times))
    monkeypatch.setattr("emu.cli.busy._WATCHED", 0)
    assert idle_share() == pytest.approx(0.3)


def test_an_interrupted_run_shows_what_there_is(lab: Lab, good: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    lab(replace(good, interrupted=True, fabrics=good.fabrics[:1]))
    assert run_command(["run", "x.yaml"]) == 130
    out = capsys.readouterr().out
    assert "Interrupted" in out
    assert out.endswith("\nexit status 130: INTERRUPTED\n")
    assert "fat-tree: VALID" in out


def test_json_is_all_there_is_on_standard_output(lab: Lab, good: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    lab(spoiled(good, INVALID), Progress("build", "16 hosts", "optical"))
    assert run_command(["run", "x.yaml", "--json"]) == 4
    printed = capsys.readouterr()
    summary = json.loads(printed.out)
    assert (summary["verdict"], summary["directory"], summary["tdf"]) == ("INVALID", "runs/example", 20)
    assert summary["fabrics"][1]["verdict"]["reasons"][0]["place"] == "t0:1"
    assert summary["fabrics"][0]["collectives"][0]["ratio"] == pytest.approx(1.035)
    assert printed.err == "emu: optical: build: 16 hosts\n"


def test_what_a_plugin_prints_is_no_part_of_the_summary(
    monkeypatch: pytest.MonkeyPatch, good: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(path: Path, **options: Any) -> Outcome:  # noqa: ANN401 - as they come
        print("a plugin says something")  # noqa: T201
        return good

    monkeypatch.setattr("emu.runner.run", run)
    assert run_command(["run", "x.yaml", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["verdict"] == "VALID"
    assert printed.err == "a plugin says something\n"


def test_options_reach_the_run(lab: Lab, good: Outcome, tmp_path: Path) -> None:
    calls = lab(good)
    line = (
        f"run x.yaml --engine packet --out {tmp_path} --seed 5 --repeat 3 --plugin a.py --plugin b.py --counterfactual"
    )
    run_command(line.split())
    run_command(["run", "x.yaml"])
    for call in calls:
        del call["listener"]
    assert calls == [
        {
            "path": Path("x.yaml"),
            "out": tmp_path,
            "overrides": {"engine": "packet", "seed": 5, "repeat": 3},
            "plugins": [Path("a.py"), Path("b.py")],
            "counterfactual": True,
        },
        {"path": Path("x.yaml"), "out": None, "overrides": {}, "plugins": (), "counterfactual": False},
    ]


# -- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("no such key", file="x.yaml", line=3, key=("seed",)), 2, "x.yaml:3: seed: no such key"),
        (LabError("a lab needs root; run it with sudo"), 1, "a lab needs root; run it with sudo"),
        (EmuError("two\nlines"), 1, r"two\nlines"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(errno.ENOSPC, "No space left on device", "runs/x"), 1, "runs/x: No space left on device"),
    ],
)
def test_an_error_is_one_line(
    lab: Lab, capsys: pytest.CaptureFixture[str], error: BaseException, status: int, line: str
) -> None:
    lab(error)
    assert run_command(["run", "x.yaml"]) == status
    assert capsys.readouterr() == ("", f"emu: error: {line}\n")


def test_a_defect_is_one_line_with_its_details_in_a_file(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab(ZeroDivisionError("by zero"))
    assert run_command(["run", "x.yaml"]) == 1
    printed = capsys.readouterr()
    match = re.fullmatch(
        r"emu: error: ZeroDivisionError: by zero; this is a defect of emu; details in (\S+)\n", printed.err
    )
    assert match
    details = Path(match[1])
    assert "Traceback" in details.read_text()
    details.unlink()


@pytest.mark.parametrize("arguments", [["run", "nowhere.yaml"], ["doctor"]])
def test_closed_outputs_cost_what_would_be_printed_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr("emu.doctor.examine", lambda: [Check("privileges", True, "root")])
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    assert run_command(arguments) == (2 if "run" in arguments else 0)


def test_debug_shows_the_traceback(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab(ZeroDivisionError("by zero"))
    assert run_command(["run", "x.yaml", "--debug"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("emu: error: ZeroDivisionError: by zero\n")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("fly", "fly"),
        ("run", "SCENARIO"),
        ("run x.yaml --engine warp", "warp"),
        ("run x.yaml --seed one", "--seed"),
        ("run x.yaml --sed 1", "--sed"),
        ("check", "SCENARIO"),
    ],
)
def test_bad_options_are_bad_input(capsys: pytest.CaptureFixture[str], line: str, word: str) -> None:
    assert run_command(line.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("emu: error: ")
    assert printed.err.count("\n") == 1
    assert word in printed.err


def test_a_real_file_that_is_not_there_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "nowhere.yaml"]) == 2
    assert "nowhere.yaml" in capsys.readouterr().err


def test_an_option_out_of_range_is_bad_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "some.yaml"
    path.write_text(SCENARIO)
    assert run_command(["run", str(path), "--repeat", "0"]) == 2
    assert "repeat" in capsys.readouterr().err


# -- the rest --------------------------------------------------------------------------------------------------------


def test_check_prints_fabrics_scale_and_wall_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "some.yaml"
    path.write_text(SCENARIO)
    assert run_command(["check", str(path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"optical +hybrid +16 +16 +4 +1 +24 +scheduled", out)
    assert "sigma 100" in out
    assert re.search(r"time: about .* in all; the budget is 120 s", out)


def test_check_refuses_what_cannot_be_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "wrong.yaml"
    path.write_text(SCENARIO.replace("size: [512MiB, 512MiB]", "size: 1MiB, ranks: [0, 99]"))
    assert run_command(["check", str(path)]) == 2
    assert "wrong.yaml:17: workload.steps[0].ranks: there is no rank 99" in capsys.readouterr().err


CHECKS = (
    Check("privileges", True, "root"),
    Check("delay", False, "netem: not there", "modprobe sch_netem", required=False),
)


@pytest.mark.parametrize("required", [False, True])
def test_doctor_shows_every_check_and_its_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], required: bool
) -> None:
    checks = [CHECKS[0], replace(CHECKS[1], required=required)]
    monkeypatch.setattr("emu.doctor.examine", lambda: checks)
    assert run_command(["doctor"]) == (1 if required else 0)
    word = "FAIL" if required else "warn"
    assert capsys.readouterr().out.splitlines() == [
        "ok   privileges         root",
        f"{word} delay              netem: not there",
        "     fix: modprobe sch_netem",
        "No lab can run here yet: delay" if required else "Labs can run here.",
    ]


def test_the_entry_point_exits_with_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["emu", "run", "nowhere.yaml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--version"]) == 0
    assert re.fullmatch(r"emu \S+\n", capsys.readouterr().out)
    assert run_command(["run", "--help"]) == 0
    assert "sudo emu run scenarios/quickstart.yaml" in capsys.readouterr().out
    assert run_command([]) == 2
    assert "check" in capsys.readouterr().out


# -- progress --------------------------------------------------------------------------------------------------------


def lines_of(*said: Progress, step: float = 0.0) -> list[str]:
    """What plain lines these make, `step` seconds apart."""
    times = iter(step * number for number in range(100))
    text = io.StringIO()
    listener = PlainLines(Console(file=text, width=40), lambda: next(times))
    for progress in said:
        listener(progress)
    return text.getvalue().splitlines()


def test_plain_lines_name_fabric_and_stage_and_are_never_wrapped() -> None:
    text = "a text [of] more than forty characters, in one line"
    assert lines_of(Progress("plan", text), Progress("build", "x", "f"), Progress("build", "x", "f")) == [
        f"emu: plan: {text}",
        "emu: f: build: x",
    ]


def test_plain_lines_tell_how_far_a_stage_is_only_now_and_then() -> None:
    said = [Progress("traffic", f"{number} of 9", "f", number / 9) for number in range(10)]
    assert len(lines_of(*said, step=0.1)) == 1
    assert len(lines_of(*said, step=6.0)) == 10


def test_the_live_display_shows_the_stage_and_ends_clean() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80, color_system=None)
    with display(console, live=True) as listener:
        listener(Progress("plan", "sigma [100]"))
        listener(Progress("traffic", "3 of 9 transfers " + "long " * 30, "fat-tree", 0.33))
        listener(Progress("build", "hosts", "optical"))
    out = text.getvalue()
    assert "sigma [100]" in out
    assert "fat-tree" in out
    assert "optical" in out
    assert max(len(re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", line)) for line in re.split(r"[\r\n]", out)) <= 80


# -- tables ----------------------------------------------------------------------------------------------------------


def shown(summary: RunSummary, width: int) -> str:
    text = io.StringIO()
    show_run(Console(file=text, width=width, force_terminal=True, color_system=None), summary)
    return text.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_tables_fit_their_terminal(good: Outcome, width: int) -> None:
    text = shown(summarise(spoiled(good, INVALID)), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "1.035" in text
    assert "INVALID" in text


def test_the_names_of_fabrics_are_not_folded_at_80_columns(good: Outcome) -> None:
    name = "electrical-and-a-long-tail"
    summary = summarise(good)
    text = shown(replace(summary, fabrics=[replace(summary.fabrics[0], name=name)]), 80)
    rows = [line for line in text.splitlines() if line.startswith("electrical")]
    assert len(rows) > 2
    assert all(line.startswith((f"{name} ", f"{name}:")) for line in rows)


def test_without_repeats_there_is_no_spread(good: Outcome) -> None:
    for fabric in good.fabrics:
        del fabric.measurement.repeats[1]
    assert " min " not in shown(summarise(good), 80)


def test_columns_are_given_up_by_rank_and_together() -> None:
    fields = [Field("a", 10), Field("b", 10, keep=2), Field("c", 10, keep=1), Field("d", 10, keep=2)]
    # Each takes 11 characters with its gap.
    assert [field.header for field in _fitting(fields, 44)] == ["a", "b", "c", "d"]
    assert [field.header for field in _fitting(fields, 43)] == ["a", "c"]
    assert [field.header for field in _fitting(fields, 21)] == ["a"]
    assert [field.header for field in _fitting(fields, 5)] == ["a"]


def test_many_reasons_of_one_rule_are_cut_short() -> None:
    reasons = [Reason("INVALID", f"t{n}:1", "slow", "rate_ratio") for n in range(9)]
    assert list(reason_lines([*reasons, Reason("DEGRADED", "run", "busy", "idle")])) == [
        "INVALID: t0:1: slow",
        "INVALID: t1:1: slow",
        "INVALID: t2:1: slow",
        "INVALID: and 6 more like these, in manifest.json",
        "DEGRADED: run: busy",
    ]


# -- the documentation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["results.md", "verdict.md"])
def test_generated_parts_of_the_pages_are_those_of_the_code(page: str) -> None:
    text = (DOCS / page).read_text()
    assert "<!-- generated: " in text
    assert text == regenerate(text), "run python -m emu.cli.pages docs"


def test_the_schema_file_is_that_of_the_code() -> None:
    assert (DOCS / SCHEMA_FILE).read_text() == schema_text(), "run python -m emu.cli.pages docs"


def test_a_stale_page_is_made_anew() -> None:
    page = "prose\n<!-- generated: statuses -->\nold\n<!-- end -->\nmore\n"
    fresh = regenerate(page)
    assert "old" not in fresh
    assert "| 130 |" in fresh
    assert fresh.startswith("prose\n")
    assert fresh.endswith("<!-- end -->\nmore\n")
