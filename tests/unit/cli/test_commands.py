"""What all commands share: help with examples, quick starts, completion; and `check` and `shell` without a lab."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from emu.cli.app import app, run_command
from emu.lab import delays
from emu.lab.job import REFUSED
from emu.lab.rooms import HostRoom, Terminal
from tests.unit.cli.test_list import PLUGIN
from tests.unit.results.synthetic import SCENARIO
from topologies import registry

ROOT = Path(__file__).parents[3]
COMMANDS = sorted(typer.main.get_group(app).commands)
HEAVY = (
    "numpy",
    "scipy",
    "networkx",
    "pandas",
    "plotly",
    "jinja2",
    "pydantic",
    "ruamel",
    "pyroute2",
    "mininet",
    "torch",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_of_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"\n  Examples?:\n", out)
    assert f"    emu {command}" in out or f"    sudo emu {command}" in out


def test_the_list_of_commands_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--help"]) == 0
    lines = capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    own = ("run", "check", "shell", "show", "compare", "runs", "list", "schema", "doctor")
    shown = [line for line in lines if line.split() and line.split()[0] in own]
    assert len(shown) == len(own)
    assert not [line for line in shown if line.endswith("...")]


def test_help_needs_none_of_the_large_libraries() -> None:
    code = (
        "import sys\nfrom emu.cli.app import run_command\nstatus = run_command(['--help'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], status, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stderr == "[] 0\n"


# -- completion ------------------------------------------------------------------------------------------------------


def completed(**environment: str) -> subprocess.CompletedProcess[str]:
    """`emu` as its shell calls it to complete a line."""
    return subprocess.run(
        [sys.executable, "-m", "emu"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def test_bash_completes_commands_and_options() -> None:
    done = completed(_EMU_COMPLETE="complete_bash", COMP_WORDS="emu sh", COMP_CWORD="1")
    assert done.stdout.split() == ["shell", "show"]
    done = completed(_EMU_COMPLETE="complete_bash", COMP_WORDS="emu compare --se", COMP_CWORD="2")
    assert done.stdout.split() == ["--seed"]
    done = completed(_EMU_COMPLETE="complete_bash", COMP_WORDS="emu list mod", COMP_CWORD="2")
    assert done.stdout.split() == ["models"]


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete -o default -F _emu_completion emu"), ("zsh", "#compdef emu")]
)
def test_the_completion_script_can_be_shown(shell: str, words: str) -> None:
    done = completed(_EMU_COMPLETE=f"source_{shell}")
    assert words in done.stdout
    assert "_EMU_COMPLETE" in done.stdout


def test_completion_can_be_installed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "emu", "--install-completion", "bash"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "completion installed in" in done.stdout
    script = tmp_path / ".bash_completions" / "emu.sh"
    assert "_EMU_COMPLETE=complete_bash" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()


# -- check -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "some.yaml"
    path.write_text(SCENARIO)
    return path


def test_check_as_json(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", str(scenario), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["scale"]) == ("example", {"sigma": 100, "beta": 2000, "tdf": 20})
    assert [(one["name"], one["hosts"], one["ocses"], one["circuits"]) for one in found["fabrics"]] == [
        ("fat-tree", 16, 0, None),
        ("optical", 16, 1, "scheduled"),
    ]
    assert found["wall_s"] == pytest.approx(sum(e["start"] + e["calibrate"] + e["traffic"] for e in found["estimates"]))
    assert found["plan"][0].startswith("scale: sigma 100")


def test_what_a_plugin_prints_is_no_part_of_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "_builders", dict(registry._builders))
    (tmp_path / "pair.py").write_text(PLUGIN)
    path = tmp_path / "pair.yaml"
    path.write_text(
        "emulation: {scale: {sigma: 100, beta: 2000}}\nfabrics: [{kind: listed-pair}]\n"
        "workload: {kind: collectives, steps: [{name: s, collective: broadcast, size: 64MiB}]}\n"
    )
    assert run_command(["check", str(path), "--plugin", str(tmp_path / "pair.py"), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["fabrics"][0]["hosts"] == 2
    assert printed.err == "a plugin says something\n"


def test_check_refuses_delays_that_no_lab_can_make_here(
    scenario: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(delays, "can_delay", lambda: False)
    scenario.write_text(SCENARIO.replace("k: 4, rate: 100Gbps", "k: 4, delay: 5us"))
    for command in ("check", "run", "shell"):
        assert run_command([command, str(scenario)]) == 2
        err = capsys.readouterr().err
        assert f"{scenario}:6: fabrics[0].delay: " in err
        assert "delay: best-effort" in err
        assert err.count("\n") == 1
    assert not list(scenario.parent.glob("runs"))


# -- shell -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """No lab is opened; the list holds the jobs that would have been, and the room's answer is REFUSED."""
    jobs: list[Any] = []

    def talk(self: HostRoom, job: Any, terminal: Terminal, listener: Any) -> int:  # noqa: ANN401
        jobs.append((job, terminal))
        return REFUSED

    monkeypatch.setattr(HostRoom, "check", lambda *_: None)
    monkeypatch.setattr(HostRoom, "talk", talk)
    return jobs


def test_a_shell_is_opened_in_the_fabric_that_is_named(scenario: Path, room: list[Any]) -> None:
    assert run_command(["shell", str(scenario), "--fabric", "optical"]) == 2
    assert run_command(["shell", str(scenario)]) == 2
    (first, terminal), (second, _) = room
    assert (first.stage, first.fabric, first.sigma, first.beta) == ("shell", 1, 100, 2000)
    assert second.fabric == 0
    assert terminal == (0, 1, 2)


def test_a_shell_in_a_fabric_that_is_not_there_is_bad_input(
    scenario: Path, room: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["shell", str(scenario), "--fabric", "optcal"]) == 2
    assert "no fabric 'optcal'; did you mean 'optical'?" in capsys.readouterr().err
    assert not room
